"""The three statements behind a scope: ask what is known, patch what is kept, compile anew."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from pyroaring import FrozenBitMap
from sqlalchemy.dialects import postgresql as pg

from shared.access import predicate
from shared.access.expansion import expanded
from shared.access.freshness import EVERYTHING, database_state, is_within_log, unseen_rows
from shared.access.kept import KeptScope
from shared.access.predicate import Standing, Viewer
from shared.access.scope import bitmap_of
from shared.db.prepared import hot, run_hot
from shared.db.tables.access import kept_scopes, scope_log
from shared.db.tables.base import PgSnapshot, TextArray, Uuid
from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.sources import version_sources
from shared.types import AclMode, Principal, ProjectId


@dataclass(frozen=True, slots=True)
class Probe:
    """What one statement tells before anything is compiled.

    `kept_snapshot` is null when nothing usable is kept; `kept_visible` is set when it came from the table and not
    from the guess. `unseen` counts the relevant log rows, `wide` the documents of the projects among them.
    """

    principals: frozenset[Principal]
    key: str
    epoch: str | None
    is_clean: bool
    snapshot: str
    kept_snapshot: str | None
    kept_visible: bytes | None
    unseen: int
    is_everything: bool
    wide: int
    narrowing: FrozenBitMap | None


@dataclass(frozen=True, slots=True)
class Patch:
    """The versions behind the changes, and which of them are visible at `snapshot`."""

    snapshot: str
    affected: FrozenBitMap
    visible: FrozenBitMap


def probe(
    connection: sa.Connection,
    principals: frozenset[Principal],
    mode: AclMode,
    *,
    guess: KeptScope | None,
    from_table: bool,
    project_ids: Collection[ProjectId] | None,
    limit: int,
    wide_limit: int,
) -> Probe:
    """Expand the principals, find the kept scope and count what it has not seen, in one statement."""
    values: dict[str, Any] = {
        "principals": sorted(principals),
        "key_prefix": key_prefix(mode),
        "limit": limit + 1,
        "wide_limit": wide_limit + 1,
    }
    if guess is not None:
        values |= {"guess_key": guess.key, "guess_epoch": guess.epoch, "guess_snapshot": guess.snapshot}
    if project_ids is not None:
        values["project_ids"] = list(project_ids)
    statement = _probe(has_guess=guess is not None, from_table=from_table, is_narrowed=project_ids is not None)
    row = run_hot(connection, statement, values).one()
    return Probe(
        principals=frozenset(map(Principal, row.principals)),
        key=row.key,
        epoch=row.epoch,
        is_clean=row.is_clean,
        snapshot=row.snapshot,
        kept_snapshot=row.kept_snapshot,
        kept_visible=row.kept_visible,
        unseen=row.unseen,
        is_everything=row.is_everything,
        wide=row.wide,
        narrowing=None if project_ids is None else bitmap_of(row.narrowing),
    )


def compile_anew(connection: sa.Connection, viewer: Viewer) -> tuple[str, FrozenBitMap]:
    """Return the snapshot and the whole visible set, from one statement."""
    statement = _whole(viewer.mode, is_administrator=viewer.is_administrator)
    row = connection.execute(statement, {"viewer": sorted(viewer.principals)}).one()
    return row.snapshot, bitmap_of(row.visible)


def find_patch(connection: sa.Connection, viewer: Viewer, *, epoch: str, snapshot: str, limit: int) -> Patch | None:
    """Run the rule for just the versions behind what `snapshot` has not seen, in one statement.

    None when the kept scope cannot be patched after all: the log was pruned, or everything changed, in the meantime.
    """
    statement = _patch(viewer.mode, is_administrator=viewer.is_administrator)
    values = {"viewer": sorted(viewer.principals), "epoch": epoch, "kept_snapshot": snapshot, "limit": limit}
    row = connection.execute(statement, values).one()
    if not row.is_usable or row.is_everything or row.unseen >= limit:
        return None
    return Patch(row.snapshot, bitmap_of(row.affected), bitmap_of(row.visible))


@cache
def key_prefix(mode: AclMode) -> str:
    """Return what every key of this rule and mode begins with: a corrected rule never meets an old kept scope."""
    dialect = pg.dialect()  # type: ignore[no-untyped-call]  # its constructor has no types
    statements = [_whole(mode, is_administrator=is_administrator) for is_administrator in (False, True)]
    texts = [str(statement.compile(dialect=dialect)) for statement in statements]
    return f"{hashlib.sha256(repr(texts).encode()).hexdigest()}:{mode}:"


# The statements are built once a process: building one costs more than running it.


@cache
def _probe(*, has_guess: bool, from_table: bool, is_narrowed: bool) -> sa.Select[Any]:
    names = expanded(sa.bindparam("principals", type_=TextArray))
    empty: sa.ColumnElement[Any] = sa.cast(sa.literal_column("'{}'"), TextArray)
    listed = sa.select(sa.func.coalesce(_sorted_array(names.c.principal), empty).label("principals")).cte("listed")
    state = database_state()
    # As JSON the list is unambiguous, whatever characters a name holds.
    prefix = sa.bindparam("key_prefix", type_=sa.Text)
    spelt = sa.func.concat(prefix, sa.cast(sa.func.to_json(listed.c.principals), sa.Text))
    digest = sa.func.encode(sa.func.sha256(sa.func.convert_to(spelt, "UTF8")), "hex", type_=sa.Text)
    known = (
        sa.select(
            listed.c.principals,
            digest.label("key"),
            state.c.snapshot,
            state.c.epoch,
            state.c.is_clean,
            state.c.floor,
        )
        .select_from(listed.join(state, sa.true()))
        .cte("known")
        .prefix_with("MATERIALIZED")
    )
    kept = _kept(known, has_guess=has_guess, from_table=from_table)
    concerned = sa.or_(scope_log.c.principal.is_(None), scope_log.c.principal.in_(sa.select(names.c.principal)))
    unseen = unseen_rows(kept.c.snapshot, kept, concerned, sa.bindparam("limit", type_=sa.Integer), "unseen")
    wide = (
        sa.select(documents.c.id)
        .join(unseen, sa.and_(unseen.c.kind == "project", documents.c.project_id == unseen.c.target))
        .limit(sa.bindparam("wide_limit", type_=sa.Integer))
        .subquery()
    )
    statement = sa.select(
        known.c.principals,
        known.c.key,
        known.c.epoch,
        known.c.is_clean,
        sa.cast(known.c.snapshot, sa.Text).label("snapshot"),
        sa.cast(kept.c.snapshot, sa.Text).label("kept_snapshot"),
        kept.c.visible.label("kept_visible"),
        sa.select(sa.func.count()).select_from(unseen).scalar_subquery().label("unseen"),
        sa.select(sa.func.coalesce(sa.func.bool_or(unseen.c.kind == EVERYTHING), sa.false()))
        .scalar_subquery()
        .label("is_everything"),
        sa.select(sa.func.count()).select_from(wide).scalar_subquery().label("wide"),
        (_narrowing() if is_narrowed else sa.cast(sa.null(), sa.LargeBinary)).label("narrowing"),
    ).select_from(known.outerjoin(kept, sa.true()))
    return hot(statement)


@cache
def _patch(mode: AclMode, *, is_administrator: bool) -> sa.Select[Any]:
    standing = _standing(mode, is_administrator=is_administrator)
    state = database_state()
    snapshot = sa.cast(sa.bindparam("kept_snapshot", type_=sa.Text), PgSnapshot)
    given = (
        sa.select(snapshot.label("snapshot"))
        .select_from(state)
        .where(state.c.epoch == sa.bindparam("epoch", type_=sa.Text), is_within_log(snapshot, state))
        .cte("given")
        .prefix_with("MATERIALIZED")
    )
    concerned = sa.or_(scope_log.c.principal.is_(None), scope_log.c.principal == sa.any_(standing.names))
    limit = sa.bindparam("limit", type_=sa.Integer)
    unseen = unseen_rows(given.c.snapshot, given, concerned, limit, "unseen").prefix_with("MATERIALIZED")
    affected = _versions_behind(unseen).cte("affected").prefix_with("MATERIALIZED")
    base = predicate.base_versions(document_versions.c.seq.in_(sa.select(affected.c.seq)), "base")
    visible = predicate.visible_seqs(standing, base).subquery("visible")
    return sa.select(
        sa.cast(state.c.snapshot, sa.Text).label("snapshot"),
        sa.exists().select_from(given).label("is_usable"),
        sa.select(sa.func.count()).select_from(unseen).scalar_subquery().label("unseen"),
        sa.exists().select_from(unseen).where(unseen.c.kind == EVERYTHING).label("is_everything"),
        sa.select(_packed(affected.c.seq)).scalar_subquery().label("affected"),
        sa.select(_packed(visible.c.seq)).scalar_subquery().label("visible"),
    ).select_from(state)


@cache
def _whole(mode: AclMode, *, is_administrator: bool) -> sa.Select[str, bytes]:
    base = predicate.base_versions(predicate.EVERYTHING, "base")
    visible = predicate.visible_seqs(_standing(mode, is_administrator=is_administrator), base).subquery("visible")
    return sa.select(
        sa.cast(sa.func.pg_current_snapshot(), sa.Text).label("snapshot"), _packed(visible.c.seq).label("visible")
    )


def _standing(mode: AclMode, *, is_administrator: bool) -> Standing:
    return Standing(sa.bindparam("viewer", type_=TextArray), mode, is_administrator)


def _packed(seq: Any) -> sa.ColumnElement[bytes]:
    """Four bytes a number: ten times faster to carry than rows, for large sets."""
    empty: sa.ColumnElement[bytes] = sa.literal_column("''::bytea")
    return sa.func.string_agg(sa.func.int4send(seq), empty, type_=sa.LargeBinary)


def _sorted_array(column: sa.ColumnElement[str]) -> sa.ColumnElement[Any]:
    return sa.func.array_agg(pg.aggregate_order_by(column, sa.collate(column, "C")), type_=TextArray)


def _kept(known: sa.CTE, *, has_guess: bool, from_table: bool) -> sa.CTE:
    """Return a CTE of at most one usable kept scope: `snapshot`, `visible` (null for the guess)."""
    choices = []
    no_guess: sa.ColumnElement[bool] = sa.true()
    if has_guess:
        snapshot = sa.cast(sa.bindparam("guess_snapshot", type_=sa.Text), PgSnapshot)
        holds = sa.and_(
            known.c.key == sa.bindparam("guess_key", type_=sa.Text),
            known.c.epoch == sa.bindparam("guess_epoch", type_=sa.Text),
            is_within_log(snapshot, known),
        )
        no_guess = holds.is_not(sa.true())
        choices.append(
            sa.select(snapshot.label("snapshot"), sa.cast(sa.null(), sa.LargeBinary).label("visible"))
            .select_from(known)
            .where(holds)
        )
    table = kept_scopes.c
    choices.append(
        sa.select(table.snapshot.label("snapshot"), table.visible.label("visible"))
        .join(known, sa.and_(table.key == known.c.key, table.epoch == known.c.epoch))
        .where(is_within_log(table.snapshot, known), no_guess, sa.true() if from_table else sa.false())
    )
    return sa.union_all(*choices).cte("kept").prefix_with("MATERIALIZED")


def _versions_behind(unseen: sa.CTE) -> sa.CompoundSelect[tuple[int]]:
    """Return the `seq` of every version that a log row of `unseen` may have moved."""
    seq = document_versions.c.seq
    return sa.union_all(
        sa.select(unseen.c.seq).where(unseen.c.kind == "version"),
        sa.select(seq)
        .select_from(unseen)
        .join(documents, documents.c.project_id == unseen.c.target)
        .join(document_versions, document_versions.c.document_id == documents.c.id)
        .where(unseen.c.kind == "project"),
        sa.select(seq)
        .select_from(unseen)
        .join(document_versions, document_versions.c.document_id == unseen.c.target)
        .where(unseen.c.kind == "document"),
        sa.select(seq)
        .select_from(unseen)
        .join(version_sources, version_sources.c.source_object_id == unseen.c.target)
        .join(document_versions, document_versions.c.id == version_sources.c.version_id)
        .where(unseen.c.kind == "source_object"),
    )


def _narrowing() -> sa.ColumnElement[bytes | None]:
    wanted = sa.bindparam("project_ids", type_=pg.ARRAY(Uuid))
    return (
        sa.select(_packed(document_versions.c.seq))
        .join(documents, documents.c.id == document_versions.c.document_id)
        .where(documents.c.project_id == sa.any_(wanted))
        .scalar_subquery()
    )
