"""What of each source is in, for people."""

from __future__ import annotations

from collections.abc import Sequence

from shared.ingest.completeness import SourceCompleteness

_COLUMNS = ("found", "indexed", "waiting", "empty", "quarantined", "tombstoned", "held")


def as_text(sources: Sequence[SourceCompleteness]) -> str:
    """Return a table of the sources, and below it what stopped files, what is held and what has waited longest."""
    rows = [("source", *_COLUMNS, "rights as of"), *(_row(one) for one in sources)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    for one in sources:
        lines += [f"  ! {one.source}: {line}" for line in _notes(one)]
    return "\n".join(lines)


def _row(one: SourceCompleteness) -> tuple[str, ...]:
    as_of = one.rights_as_of
    rights = "-" if as_of is None else f"{as_of:%Y-%m-%d %H:%M}"
    return (one.source, *(str(getattr(one, name)) for name in _COLUMNS), rights)


def _notes(one: SourceCompleteness) -> list[str]:
    notes = [f"{reason.count} stopped at {reason.stage}: {reason.example} ({reason.error})" for reason in one.reasons]
    if one.held:
        notes.append(
            f"{one.held} files were not found by {one.held_scans} scans in a row and are still shown; three are "
            "needed, or: ki ingest PATH --source NAME --allow-deletes"
        )
    if one.oldest_pending is not None:
        notes.append(f"the longest waiting file waits since {one.oldest_pending:%Y-%m-%d %H:%M:%S %Z}")
    return notes
