"""A kept scope equals a cold one and the reference, whatever happens in between, and each safeguard is needed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from shared.access import compilation, freshness
from shared.db.engine import make_engine
from shared.db.tables.base import PgSnapshot
from shared.settings import load_settings
from shared.types import AclMode
from tests.access import changes
from tests.access.walk import ScopeDiffersError, Walk


@pytest.fixture
def walked_engine(database_url: str) -> Iterator[sa.Engine]:
    made = make_engine(load_settings({"KI_DATABASE__URL": database_url}).database)
    yield made
    made.dispose()


@pytest.mark.parametrize("mode", list(AclMode))
def test_a_kept_scope_equals_a_cold_one_and_the_reference_after_every_change(
    walked_engine: sa.Engine, mode: AclMode
) -> None:
    walk = Walk(walked_engine, mode, random.Random(20261201))
    walk.run(150)
    # A walk on which everything was compiled cold proves nothing.
    assert walk.counts["patched to effect"] > 80, walk.counts
    assert walk.counts["cold"] < walk.counts["scopes"] / 2, walk.counts
    assert walk.counts["told something"] > walk.counts["compared"] * 0.6, walk.counts
    for event in ("late commit", "late rollback", "pruned", "inside", "delete_document", "delete_project"):
        assert walk.counts[event], (event, walk.counts)
    assert sum(walk.counts[change.__name__] for change in changes.TRUNCATE.values()), walk.counts


def forget_statements() -> None:
    compilation._probe.cache_clear()
    compilation._patch.cache_clear()


GRANT_CHANGES = {
    "insert": [changes.add_grant],
    "update": [changes.change_grants],
    "delete": [changes.remove_grants],
}
# Each trigger, with the changes that exercise it. Truncating a table that others refer to truncates them as well, so
# only the tables at the end of such a chain depend on their own trigger.
SAFEGUARDS = {
    **{
        f"{table} {event}": (f"drop trigger scope_log_{event} on {table}", favoured)
        for table in changes.GRANTS
        for event, favoured in GRANT_CHANGES.items()
    },
    "documents update": ("drop trigger scope_log_update on documents", [changes.move_document]),
    "document_versions update": (
        "drop trigger scope_log_update on document_versions",
        [changes.move_version, changes.renumber_version],
    ),
    "document_versions delete": ("drop trigger scope_log_delete on document_versions", [changes.delete_version]),
    "version_sources insert": ("drop trigger scope_log_insert on version_sources", [changes.observe]),
    "version_sources update": ("drop trigger scope_log_update on version_sources", [changes.move_observation]),
    "version_sources delete": ("drop trigger scope_log_delete on version_sources", [changes.forget_observation]),
    "source_objects update": (
        "drop trigger scope_log_update on source_objects",
        [changes.bury_or_raise, changes.toggle_acl, changes.move_object],
    ),
    "sources update": ("drop trigger scope_log_update on sources", [changes.change_source]),
    **{
        f"{table} truncate": (
            f"drop trigger scope_log_truncate on {table}",
            [changes.TRUNCATE[table], changes.add_grant],
        )
        for table in ("project_grants", "document_grants", "source_object_grants", "version_sources", "scope_log")
    },
}


@pytest.mark.parametrize("safeguard", SAFEGUARDS)
def test_the_walk_finds_a_missing_trigger(walked_engine: sa.Engine, safeguard: str) -> None:
    statement, favoured = SAFEGUARDS[safeguard]
    with walked_engine.begin() as connection:
        connection.execute(sa.text(statement))
    walk = Walk(walked_engine, AclMode.SUFFICIENT, random.Random(7), with_reference=False, favoured=favoured)
    with pytest.raises(ScopeDiffersError):
        walk.run(150)


def test_the_walk_finds_a_watermark_that_forgets_running_transactions(
    walked_engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the branch over `xip`, a transaction that began before the snapshot and committed after it is lost."""
    monkeypatch.setattr(freshness, "_still_running", lambda _: sa.func.pg_snapshot_xip(sa.cast(sa.null(), PgSnapshot)))
    forget_statements()
    walk = Walk(walked_engine, AclMode.SUFFICIENT, random.Random(7), with_reference=False)
    try:
        with pytest.raises(ScopeDiffersError):
            walk.run(150)
    finally:
        forget_statements()
