"""The benchmark runs on a small world, and its own checks (kept equals cold, verification passes) hold."""

from __future__ import annotations

from bench.scope import run


def test_the_scope_benchmark_measures_a_small_firm(database_url: str) -> None:
    figures = run(6_000, url=database_url, progress=lambda _: None)
    assert figures["versions"] == 6_000
    assert 0 < figures["visible"] < 3_000
    assert 40 <= figures["principals"] <= 60
    for name in ("cold_ms", "unchanged_ms", "after_document_deny_ms", "after_tombstone_ms", "verify_100_ms"):
        assert figures[name] > 0
