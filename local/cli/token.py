"""`ki token`."""

from __future__ import annotations

import click

from local.cli.output import ExitCode, emit, json_option, reporting
from local.issuer import DEFAULT_TTL_S
from local.sign_in import sign_in


@click.command("token")
@click.option("--as", "email", required=True, metavar="EMAIL", help="Whose token, such as anna@kanzlei.example.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="A group the person is in; repeatable.")
@click.option("--admin", is_flag=True, help="The person is an administrator.")
@click.option("--ttl", "ttl_s", type=click.FloatRange(min=1), default=DEFAULT_TTL_S, help="Seconds it is valid.")
@json_option
@reporting
def command(*, email: str, groups: tuple[str, ...], admin: bool, ttl_s: float, as_json: bool) -> ExitCode:
    """Print a token of the local issuer, verified like that of any other issuer."""
    person = sign_in(email, groups, admin=admin, ttl_s=ttl_s)
    answer = {
        "token": person.token,
        "subject": person.subject,
        "email": email,
        "groups": list(person.groups),
        "expires_at": person.expires_at,
    }
    emit(answer, as_json=as_json, text=person.token)
    return ExitCode.DONE
