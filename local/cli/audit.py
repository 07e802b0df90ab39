"""`ki audit`: the audit trail as evidence."""

from __future__ import annotations

import getpass
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from local.cli.output import ExitCode, emit, json_option, note, reporting
from local.product import running_services
from shared.access import audit_trail
from shared.errors import InvalidRequestError

_DAY = click.DateTime(["%Y-%m-%d"])


@click.group("audit")
def command() -> None:
    """Seal, verify and export the audit trail, and drop months that are kept no longer."""


@command.command("seal")
@json_option
@reporting
def seal_command(*, as_json: bool) -> ExitCode:
    """Seal the rows that were added since the last time, and make the partitions of the next months."""
    services = running_services()
    with services.engine.begin() as connection:
        audit_trail.prepare(connection)
    made = audit_trail.seal(services.engine, services.hasher)
    lines = [f"seal {one.number}: {one.events} events of {one.month:%Y-%m}, digest {one.digest}" for one in made]
    emit([asdict(one) for one in made], as_json=as_json, text="\n".join(lines) or "Everything is sealed.")
    return ExitCode.DONE


@command.command("verify")
@click.option("--anchor", metavar="DIGEST", help="A digest noted elsewhere, which must be one of the chain's.")
@json_option
@reporting
def verify_command(*, anchor: str | None, as_json: bool) -> ExitCode:
    """Compute every seal anew; exit code 1 if a row was changed, removed or slipped in."""
    services = running_services()
    with services.engine.connect() as connection:
        found = audit_trail.verify(
            connection,
            services.hasher,
            anchor=anchor,
            progress=None if as_json else lambda number: note(f"seal {number} read") if number % 1000 == 0 else None,
        )
    lines = [
        f"{found.seals} seals over {found.events} events; {found.unsealed} not sealed yet",
        f"{found.dropped} events were dropped by rule",
        f"last digest {found.last_digest}",
        *(f"seal {fault.seal}: {fault.problem}" for fault in found.faults),
        "The trail is whole." if found.is_whole else "THE TRAIL WAS CHANGED.",
    ]
    emit({**asdict(found), "is_whole": found.is_whole}, as_json=as_json, text="\n".join(lines))
    return ExitCode.DONE if found.is_whole else ExitCode.NO


@command.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--since", type=_DAY, help="From this day on (UTC).")
@click.option("--until", type=_DAY, help="Before this day (UTC).")
@json_option
@reporting
def export_command(*, file: Path, since: datetime | None, until: datetime | None, as_json: bool) -> ExitCode:
    """Write the rows to FILE, one JSON document a line, exactly as they are sealed. An existing file stays."""
    if file.exists():
        raise InvalidRequestError(f"{file} exists already; name another file")
    count = 0
    with running_services().engine.connect() as connection, file.open("w", encoding="utf-8") as out:
        bounds = {"since": _utc(since), "until": _utc(until)}
        for line in audit_trail.export(connection, **bounds):
            out.write(line + "\n")
            count += 1
    emit({"file": str(file), "events": count}, as_json=as_json, text=f"{count} events in {file}")
    return ExitCode.DONE


@command.command("drop")
@click.option("--keep-months", type=click.IntRange(min=1), required=True, help="So many whole months are kept.")
@click.option("--reason", required=True, help="The rule by which older months are dropped; kept in the trail.")
@json_option
@reporting
def drop_command(*, keep_months: int, reason: str, as_json: bool) -> ExitCode:
    """Drop whole sealed months that are older. Each leaves an audit row; their seals stay."""
    services = running_services()
    by = f"local:{getpass.getuser()}"
    dropped = audit_trail.drop_expired(services.engine, keep_months=keep_months, by=by, reason=reason)
    emit(dropped, as_json=as_json, text="\n".join(dropped) or "No month is older.")
    return ExitCode.DONE


def _utc(day: datetime | None) -> datetime | None:
    return None if day is None else day.replace(tzinfo=UTC)
