"""The closing table of an ingest run: every file, what came of it, and why if it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from shared.ingest.report import FileOutcome, IngestReport, Outcome

_LISTED = frozenset({Outcome.QUARANTINED, Outcome.UNREADABLE, Outcome.BUSY})


def as_document(report: IngestReport, *, source: str, acl: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the report as one JSON document."""
    return {
        "source": source,
        "counts": report.counts(),
        "waiting_for_index": report.waiting,
        "complete": report.complete,
        "held": _held(report),
        "acl": acl,
        "files": [_file(outcome) for outcome in report.files],
    }


def as_text(report: IngestReport, *, source: str) -> str:
    """Return the counts, and a line with the reason for each file that did not get in."""
    counts = {name: count for name, count in report.counts().items() if count}
    stopped = [file for file in report.files if file.outcome in _LISTED]
    width = max(map(len, counts), default=0)
    lines = [f"Source {source}", *(f"  {name:<{width}}  {count:>6}" for name, count in counts.items())]
    lines.extend(f"  ! {file.path}: {file.reason} ({file.outcome.value}, {file.error})" for file in stopped)
    held = report.settled.held
    if held is not None:
        lines.append(
            f"  ! {held.lost} of {held.known} files are not there any more, seen so by {held.scans} scans in a row. "
            "They are still shown: three such scans are needed, or ki ingest ... --allow-deletes"
        )
        lines.extend(f"      {path}" for path in held.paths)
        lines.extend(["      ..."] if held.lost > len(held.paths) else [])
    if report.waiting:
        lines.append(f"  {report.waiting} versions wait for the index; run ki ingest again when it is back")
    return "\n".join(lines)


def _held(report: IngestReport) -> dict[str, Any] | None:
    held = report.settled.held
    return None if held is None else asdict(held)


def _file(outcome: FileOutcome) -> dict[str, Any]:
    return {
        "path": outcome.path,
        "outcome": outcome.outcome.value,
        "error": outcome.error,
        "reason": outcome.reason,
        "document_id": outcome.document_id,
        "version_id": outcome.version_id,
    }
