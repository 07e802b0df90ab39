"""`ki acl`: what a source says about who may read its objects, from a file of any size."""

from __future__ import annotations

import getpass
from pathlib import Path

import click
import sqlalchemy as sa

from local.cli.output import ExitCode, emit, json_option, note, reporting
from local.cli.progress import counting_progress
from local.product import running_services
from shared.access.caller import Caller
from shared.access.snapshots import FileKind
from shared.access.sync import FileReport
from shared.db.tables.sources import sources
from shared.errors import InvalidRequestError
from shared.types import SourceId


@click.group("acl")
def command() -> None:
    """Mirror what a source says about rights."""


@command.command("apply")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--source", "name", required=True, metavar="NAME", help="The source whose rights these are.")
@json_option
@reporting
def apply_command(*, file: Path, name: str, as_json: bool) -> ExitCode:
    """Apply FILE, the ACLs of a source's objects or all its groups with their members, as JSON Lines.

    The first line says {"kind": "acl" or "memberships", "as_of": TIME, "complete": true, "count": LINES}; then one
    object {"external_id" or "path", "entries"} or one group {"group", "members"} a line. The file is read to its end
    before anything is applied; one that is wrong anywhere, or older than what is in force, is refused. Exit code 1 if
    it names objects that the source does not have, or not all that it has.
    """
    engine = running_services().engine
    caller = Caller(f"local:{getpass.getuser()}", frozenset())
    with file.open("rb") as content, counting_progress(name, quiet=as_json) as progress:
        report = running_services().access_sync.file(caller, _source_id(engine, name), content, progress=progress)
    for warning in report.warnings:
        note(f"Warning: {warning}")
    emit({"source": name, **report.to_json()}, as_json=as_json, text=_text(report))
    return ExitCode.DONE if report.settles_all else ExitCode.NO


def _source_id(engine: sa.Engine, name: str) -> SourceId:
    with engine.connect() as connection:
        found = connection.execute(sa.select(sources.c.id).where(sources.c.name == name)).scalar_one_or_none()
    if found is None:
        raise InvalidRequestError(f"there is no source {name}; ki status lists them", field="source")
    return SourceId(found)


def _text(report: FileReport) -> str:
    if report.kind is FileKind.MEMBERSHIPS:
        did = "The memberships changed" if report.changed else "The memberships are as they were"
        return f"{did}: {report.lines} groups, as of {report.as_of:%Y-%m-%d %H:%M:%S %Z}."
    lines = [f"{report.changed} objects changed, {report.unchanged} unchanged, of {report.lines} in the file."]
    if report.kept:
        lines.append(f"{report.kept} keep an ACL that is newer than the file.")
    if report.unknown:
        lines.append(f"{report.unknown} are not at the source; when they come they are closed: apply the file again.")
    if report.unnamed:
        lines.append(f"{report.unnamed} objects of the source are not in the file and keep the ACL they have.")
    if report.rights_as_of is not None:
        lines.append(f"Rights as of {report.rights_as_of:%Y-%m-%d %H:%M:%S %Z}.")
    return "\n".join(lines)
