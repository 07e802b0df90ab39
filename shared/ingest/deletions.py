"""What is gone at its source: tombstones, the guard before them, what comes back, and what was only renamed.

A tombstone ends an object's observations at once, for everybody. Only a scan that has listed everything may set one,
and one that misses a great deal is not believed before it has said so three times (docs/adr/0015-deletion-guard.md).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.tables.ingest import held_deletions, ingest_state, scanned_objects
from shared.db.tables.sources import source_objects, version_sources
from shared.ingest import outbox
from shared.ingest.renames import forget_old_names
from shared.types import SourceId, SourceObjectId

GUARDED_FROM: Final = 20
"""A source with fewer objects may lose more than half of them in one day's work."""
SCANS_TO_BELIEVE: Final = 3
_SHOWN: Final = 20

_objects = source_objects.c


@dataclass(frozen=True, slots=True)
class Scan:
    """A listing that ended without an error.

    `listed_below` is the folder of which it is whole, `hidden` the places of which nothing is known; `listed_from` is
    when it began, by the database's clock.
    """

    run_id: UUID
    source_id: SourceId
    listed_from: datetime
    listed_below: str
    hidden: Sequence[str]


@dataclass(frozen=True, slots=True)
class Held:
    """Deletions that are not believed yet: how many of how many, seen so by how many scans, and the first paths."""

    lost: int
    known: int
    scans: int
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Settled:
    """What a scan's absences came to. `deleted` counts files, without those in other files."""

    moved: int = 0
    deleted: int = 0
    held: Held | None = None


def settle(
    connection: sa.Connection, scan: Scan, *, allowed: bool, proves_gone: Callable[[Iterable[str]], bool]
) -> Settled:
    """Follow renames, then bury what the scan does not find, or hold that; call in a transaction."""
    moved = _follow_renames(connection, scan)
    missing = _missing(scan)
    lost = connection.execute(_counted(missing)).one()
    if not lost.lost:
        connection.execute(sa.delete(held_deletions).where(held_deletions.c.source_id == scan.source_id))
        return Settled(moved)
    found, seen_before = connection.execute(_found(scan)).one()
    known = seen_before + lost.lost
    is_much = found == 0 or (known >= GUARDED_FROM and lost.lost * 2 > known)
    if is_much and not allowed and not proves_gone(_external_ids(connection, missing)):
        scans = _hold(connection, scan, lost.lost, known, lost.digest)
        if scans < SCANS_TO_BELIEVE:
            first = sa.select(_objects.path).where(_objects.id.in_(missing)).order_by(_objects.path).limit(_SHOWN)
            paths = tuple(connection.execute(first).scalars())
            return Settled(moved, held=Held(lost.lost, known, scans, paths))
    tombstone(connection, missing)
    connection.execute(sa.delete(held_deletions).where(held_deletions.c.source_id == scan.source_id))
    return Settled(moved, deleted=lost.lost)


def tombstone(connection: sa.Connection, object_ids: sa.Select[tuple[UUID]]) -> int:
    """Bury these objects and all that was taken out of them; return how many. Call in a transaction.

    The index hears of the versions that now lie nowhere.
    """
    tree = _tree(sa.select(_objects.id).where(_objects.id.in_(object_ids)))
    locked = _locked(sa.and_(_objects.id.in_(sa.select(tree.c.id)), _objects.deleted_at.is_(None)))
    buried = list(
        connection.execute(
            # The moment of the transaction: what was buried together comes back together.
            sa.update(source_objects)
            .where(_objects.id.in_(locked))
            .values(deleted_at=sa.func.now())
            .returning(_objects.id)
        ).scalars()
    )
    if buried:
        outbox.queue_seen_only_at(connection, _listed(buried))
    return len(buried)


def tombstone_members(connection: sa.Connection, parent_id: SourceObjectId, *, but: Sequence[str] = ()) -> None:
    """Bury what was taken out of the object, but for those with these external ids."""
    gone = sa.select(_objects.id).where(
        _objects.parent_id == parent_id, _objects.deleted_at.is_(None), _objects.external_id.not_in(_texts(but))
    )
    if connection.execute(sa.select(gone.exists())).scalar_one():
        tombstone(connection, gone)


def restore(connection: sa.Connection, source_id: SourceId, external_ids: Sequence[str]) -> None:
    """Bring back those of these objects that were buried, with what was buried together with each."""
    back = sa.select(_objects.id).where(
        _objects.source_id == source_id,
        _objects.external_id.in_(_texts(external_ids)),
        _objects.deleted_at.is_not(None),
    )
    roots = [UUID(str(one)) for one in connection.execute(back).scalars()]
    if not roots:
        return
    base = sa.select(_objects.id, _objects.deleted_at).where(_objects.id.in_(_listed(roots)))
    tree = base.cte("restored", recursive=True)
    inner = source_objects.alias("inner_objects")
    tree = tree.union(
        sa.select(inner.c.id, inner.c.deleted_at).join(
            tree, sa.and_(inner.c.parent_id == tree.c.id, inner.c.deleted_at == tree.c.deleted_at)
        )
    )
    locked = _locked(_objects.id.in_(sa.select(tree.c.id)))
    restored = list(
        connection.execute(
            sa.update(source_objects).where(_objects.id.in_(locked)).values(deleted_at=None).returning(_objects.id)
        ).scalars()
    )
    outbox.queue_seen_only_at(connection, _listed(restored))


def _follow_renames(connection: sa.Connection, scan: Scan) -> int:
    """Give rows of renamed files their new paths, instead of burying them and beginning anew; return how many.

    A rename keeps the file's id at the source, its size and its time. The row keeps its ACL, its versions and all that
    was taken out of it. A path that another file had before keeps that file's row.
    """
    old, new = source_objects.alias("old_objects"), source_objects.alias("new_objects")
    is_new = sa.and_(
        new.c.created_at >= scan.listed_from,
        ~sa.exists().where(ingest_state.c.source_object_id == new.c.id),
        ~sa.exists().where(version_sources.c.source_object_id == new.c.id),
    )
    pairs = connection.execute(
        sa.select(
            old.c.id.label("old_id"),
            old.c.external_id.label("old_external_id"),
            new.c.id.label("new_id"),
            *(new.c[name] for name in _MOVED),
        )
        .join(new, sa.and_(new.c.source_id == old.c.source_id, new.c.file_id == old.c.file_id, new.c.id != old.c.id))
        .join(scanned_objects, scanned_objects.c.source_object_id == new.c.id)
        .where(
            scanned_objects.c.run_id == scan.run_id,
            old.c.id.in_(_missing(scan)),
            new.c.size_bytes == old.c.size_bytes,
            new.c.modified_at == old.c.modified_at,
            is_new,
        )
        .order_by(old.c.external_id, new.c.external_id)
    ).all()
    forget_old_names(connection, scan.source_id, {pair.old_external_id: pair.name for pair in pairs})
    taken: set[UUID] = set()
    moved = 0
    for pair in pairs:
        if taken & {pair.old_id, pair.new_id}:
            continue
        taken |= {pair.old_id, pair.new_id}
        _rename(connection, scan, pair)
        moved += 1
    return moved


_MOVED = ("external_id", "path", "name", "fingerprint")


def _rename(connection: sa.Connection, scan: Scan, pair: sa.Row[Any]) -> None:
    was = connection.execute(
        sa.select(_objects.external_id, _objects.path).where(_objects.id == pair.old_id).with_for_update()
    ).one()
    connection.execute(sa.delete(source_objects).where(_objects.id == pair.new_id))
    values = {name: getattr(pair, name) for name in _MOVED}
    connection.execute(sa.update(source_objects).where(_objects.id == pair.old_id).values(values))
    tree = _tree(sa.select(_objects.id).where(_objects.parent_id == pair.old_id))
    connection.execute(
        sa.update(source_objects)
        .where(_objects.id.in_(sa.select(tree.c.id)))
        .values(
            external_id=sa.literal(pair.external_id) + sa.func.substr(_objects.external_id, len(was.external_id) + 1),
            path=sa.literal(pair.path) + sa.func.substr(_objects.path, len(was.path) + 1),
        )
    )
    connection.execute(sa.insert(scanned_objects).values(run_id=scan.run_id, source_object_id=pair.old_id))


def _missing(scan: Scan) -> sa.Select[tuple[UUID]]:
    """Return the objects that lay where the scan has looked and that it did not find.

    What another run has seen since this one began is there.
    """
    seen = sa.exists().where(
        scanned_objects.c.source_object_id == _objects.id,
        sa.or_(scanned_objects.c.run_id == scan.run_id, scanned_objects.c.seen_at >= scan.listed_from),
    )
    hidden = sa.func.jsonb_array_elements_text(sa.cast(sa.literal(json.dumps(list(scan.hidden))), pg.JSONB))
    places = hidden.table_valued(sa.column("path", sa.Text), name="hidden").render_derived()
    is_hidden = sa.exists().select_from(places).where(_lies_below(_objects.path, places.c.path))
    return sa.select(_objects.id).where(
        _objects.source_id == scan.source_id,
        _objects.parent_id.is_(None),
        _objects.deleted_at.is_(None),
        _objects.created_at < scan.listed_from,
        _lies_below(_objects.path, sa.literal(scan.listed_below)),
        ~is_hidden,
        ~seen,
    )


def _lies_below(path: sa.ColumnElement[str], folder: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    return sa.or_(folder == "", path == folder, sa.func.starts_with(path, folder + "/"))


def _counted(missing: sa.Select[tuple[UUID]]) -> sa.Select[Any]:
    ids = missing.cte("missing")
    listed = sa.func.string_agg(sa.cast(ids.c.id, sa.Text), pg.aggregate_order_by(sa.literal(","), ids.c.id))
    digest = sa.func.encode(sa.func.sha256(sa.func.convert_to(sa.func.coalesce(listed, ""), "UTF8")), "hex")
    return sa.select(sa.func.count().label("lost"), digest.label("digest")).select_from(ids)


def _found(scan: Scan) -> sa.Select[int, int]:
    """Return how many objects the scan found, and how many of them were known before."""
    return (
        sa.select(sa.func.count(), sa.func.count().filter(_objects.created_at < scan.listed_from))
        .select_from(scanned_objects)
        .join(source_objects, _objects.id == scanned_objects.c.source_object_id)
        .where(scanned_objects.c.run_id == scan.run_id)
    )


def _external_ids(connection: sa.Connection, missing: sa.Select[tuple[UUID]]) -> list[str]:
    return list(connection.execute(sa.select(_objects.external_id).where(_objects.id.in_(missing))).scalars())


def _hold(connection: sa.Connection, scan: Scan, lost: int, known: int, digest: str) -> int:
    """Write down that these are missing; return how many scans in a row have missed the very same."""
    held = held_deletions.c
    values = {"lost_sha256": digest, "lost": lost, "known": known}
    insert = pg.insert(held_deletions).values(source_id=scan.source_id, scans=1, **values)
    is_same = held.lost_sha256 == insert.excluded.lost_sha256
    upsert = insert.on_conflict_do_update(
        index_elements=[held.source_id],
        set_={
            **{name: insert.excluded[name] for name in values},
            "scans": sa.case((is_same, held.scans + 1), else_=1),
            "since": sa.case((is_same, held.since), else_=sa.func.now()),
        },
    )
    return int(connection.execute(upsert.returning(held.scans)).scalar_one())


def _tree(roots: sa.Select[tuple[UUID]]) -> sa.CTE:
    """Return the ids of these objects and of all that was taken out of them."""
    tree = roots.cte("tree", recursive=True)
    inner = source_objects.alias("inner_objects")
    return tree.union(sa.select(inner.c.id).join(tree, inner.c.parent_id == tree.c.id))


def _locked(which: sa.ColumnElement[bool]) -> sa.Select[tuple[UUID]]:
    # In the order of ids, so that two never wait for each other.
    return sa.select(sa.select(_objects.id).where(which).order_by(_objects.id).with_for_update().cte("locked").c.id)


def _listed(ids: Sequence[UUID]) -> sa.Select[tuple[UUID]]:
    listed = sa.func.jsonb_array_elements_text(sa.cast(sa.literal(json.dumps([str(one) for one in ids])), pg.JSONB))
    rows = listed.table_valued(sa.column("id", sa.Text), name="listed").render_derived()
    return sa.select(sa.cast(rows.c.id, pg.UUID(as_uuid=True)).label("id"))


def _texts(values: Sequence[str]) -> sa.Select[tuple[str]]:
    listed = sa.func.jsonb_array_elements_text(sa.cast(sa.literal(json.dumps(list(values))), pg.JSONB))
    rows = listed.table_valued(sa.column("value", sa.Text), name="texts").render_derived()
    return sa.select(rows.c.value)
