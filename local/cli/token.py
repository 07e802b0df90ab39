"""`ki token`."""

from __future__ import annotations

import time

import click

from local import stack
from local.cli.output import ExitCode, emit, json_option, reporting
from local.issuer import DEFAULT_TTL_S, subject_of
from shared.errors import InvalidRequestError


@click.command("token")
@click.option("--as", "email", required=True, metavar="EMAIL", help="Whose token, such as anna@kanzlei.example.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="A group the person is in; repeatable.")
@click.option("--admin", is_flag=True, help="The person is an administrator.")
@click.option("--ttl", "ttl_s", type=click.FloatRange(min=1), default=DEFAULT_TTL_S, help="Seconds it is valid.")
@json_option
@reporting
def command(*, email: str, groups: tuple[str, ...], admin: bool, ttl_s: float, as_json: bool) -> ExitCode:
    """Print a token of the local issuer, verified like that of any other issuer."""
    name, at, domain = email.partition("@")
    if not (name and at and domain):
        raise InvalidRequestError(f"--as wants an e-mail address, not {email!r}", field="as")
    subject = subject_of(email)
    now = time.time()
    token = stack.issuer().issue(subject, email=email, groups=groups, admin=admin, ttl_s=ttl_s, issued_at=now)
    answer = {
        "token": token,
        "subject": subject,
        "email": email,
        "groups": list(groups),
        "expires_at": int(now + ttl_s),
    }
    emit(answer, as_json=as_json, text=token)
    return ExitCode.DONE
