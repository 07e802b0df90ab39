"""Measurements as rows of one table, each with the bound that it is held to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.conversion import Speed
from bench.indexing import IndexingBench
from bench.paired import Comparison
from bench.search import SearchBench

SEARCH_RATIO: Final = 1.5
INDEXING_RATIO: Final = 1.5
HANDLER_MS: Final = 3.0
_SCOPE_MS: Final[Mapping[str, float | None]] = {
    "cold_ms": 2000,
    "unchanged_ms": 5,
    "unchanged_from_table_ms": None,
    "after_document_deny_ms": 20,
    "after_project_deny_ms": None,
    "after_tombstone_ms": None,
    "verify_100_ms": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line: what was measured, in both arms where there are two, and the bound if there is one."""

    what: str
    measured: float
    unit: str
    bound: float | None
    ours: str = ""
    bare: str = ""
    spread: str = ""

    @property
    def is_met(self) -> bool:
        """Whether the bound is kept, as far as there is one."""
        return self.bound is None or self.measured <= self.bound


def search_row(measured: SearchBench, *, is_bound: bool) -> Row:
    """Return the service's p50 over that of the replay; for a limit that is given for information, without a bound."""
    found = measured.comparison
    return Row(
        what=f"search, limit {measured.limit}, {measured.chunks} chunks: service / raw _msearch",
        measured=found.ratio,
        unit="",
        bound=SEARCH_RATIO if is_bound else None,
        ours=f"{found.ours_p50_ms:.1f} ms",
        bare=f"{found.raw_p50_ms:.1f} ms",
        spread=f" ({found.ratio_low:.2f} to {found.ratio_high:.2f})",
    )


def handler_row(found: Comparison) -> Row:
    """Return what the handler takes beyond the service."""
    return Row(
        what="search: handler beyond the service",
        measured=found.ours_p50_ms - found.raw_p50_ms,
        unit=" ms",
        bound=HANDLER_MS,
        ours=f"{found.ours_p50_ms:.1f} ms",
        bare=f"{found.raw_p50_ms:.1f} ms",
    )


def indexing_row(measured: IndexingBench) -> Row:
    """Return the time of the outbox's drain over that of the bare bulk."""
    return Row(
        what=f"indexing {measured.versions} versions, {measured.rows} rows: outbox / raw _bulk",
        measured=measured.ratio,
        unit="",
        bound=INDEXING_RATIO,
        ours=f"{measured.ours_s:.1f} s",
        bare=f"{measured.raw_s:.1f} s",
    )


def conversion_rows(speeds: Sequence[Speed]) -> list[Row]:
    """Return how many pages a second each format's conversion reads; there is no bound."""
    return [
        Row(
            what=f"conversion, {speed.what}: {speed.pages:.0f} pages in {speed.seconds:.1f} s",
            measured=speed.pages_per_s,
            unit=" pages/s",
            bound=None,
        )
        for speed in speeds
    ]


def scope_rows(figures: Mapping[str, Any]) -> list[Row]:
    """Return the scope's medians."""
    return [
        Row(
            what=f"scope of {figures['visible']} in {figures['versions']} versions: {name.removesuffix('_ms')}",
            measured=figures[name],
            unit=" ms",
            bound=bound,
        )
        for name, bound in _SCOPE_MS.items()
    ]
