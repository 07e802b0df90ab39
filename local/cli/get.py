"""`ki get`."""

from __future__ import annotations

from urllib.parse import quote, urlencode

import click

from local.cli.output import ExitCode, emit, json_option, reporting
from local.cli.persona import persona_options
from local.cli.results import citation_lines
from local.sign_in import sign_in


@click.command("get")
@click.argument("document")
@persona_options
@click.option("--version", "version_id", metavar="V", help="Another version than the latest final one.")
@click.option("--page", type=int, help="Only this page.")
@json_option
@reporting
def command(
    *, document: str, email: str, groups: tuple[str, ...], version_id: str | None, page: int | None, as_json: bool
) -> ExitCode:
    """Print a document's text, with its citation and the versions that this person may see."""
    given = {"version_id": version_id, "page": page}
    query = urlencode({name: value for name, value in given.items() if value is not None})
    answer = sign_in(email, groups).get(f"/documents/{quote(document, safe='')}" + (f"?{query}" if query else ""))
    text = "\n".join([answer["title"], *citation_lines(answer["citation"]), "", answer["text"]])
    emit(answer, as_json=as_json, text=text)
    return ExitCode.DONE
