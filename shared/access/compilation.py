"""The three statements behind a scope: ask what is known, patch what is kept, compile anew."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from pyroaring import BitMap
from sqlalchemy.dialects import postgresql as pg

from shared.access import predicate
from shared.access.expansion import expanded
from shared.access.freshness import EVERYTHING, database_state, is_within_log, unseen_rows
from shared.access.kept import KeptScope
from shared.access.predicate import Viewer
from shared.access.scope import bitmap_of
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
    narrowing: BitMap | None


@dataclass(frozen=True, slots=True)
class Patch:
    """The versions behind the changes, and which of them are visible at `snapshot`."""

    snapshot: str
    affected: BitMap
    visible: BitMap


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
    names = expanded(sorted(principals))
    listed = sa.select(
        sa.func.coalesce(
            _sorted_array(names.c.principal),
            sa.cast(sa.literal_column("'{}'"), TextArray),
        ).label("principals")
    ).cte("listed")
    state = database_state()
    # As JSON the list is unambiguous, whatever characters a name holds.
    spelt = sa.func.concat(key_prefix(mode), sa.cast(sa.func.to_json(listed.c.principals), sa.Text))
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
    kept = _kept(known, guess, from_table=from_table)
    concerned = sa.or_(scope_log.c.principal.is_(None), scope_log.c.principal.in_(sa.select(names.c.principal)))
    unseen = unseen_rows(kept.c.snapshot, kept, concerned, limit + 1, "unseen")
    wide = (
        sa.select(documents.c.id)
        .join(unseen, sa.and_(unseen.c.kind == "project", documents.c.project_id == unseen.c.target))
        .limit(wide_limit + 1)
        .subquery()
    )
    row = connection.execute(
        sa.select(
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
            _narrowing(project_ids).label("narrowing"),
        ).select_from(known.outerjoin(kept, sa.true()))
    ).one()
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


def compile_anew(connection: sa.Connection, viewer: Viewer) -> tuple[str, BitMap]:
    """Return the snapshot and the whole visible set, from one statement."""
    row = connection.execute(_whole(viewer)).one()
    return row.snapshot, bitmap_of(row.visible)


def find_patch(connection: sa.Connection, viewer: Viewer, *, epoch: str, snapshot: str, limit: int) -> Patch | None:
    """Run the rule for just the versions behind what `snapshot` has not seen, in one statement.

    None when the kept scope cannot be patched after all: the log was pruned, or everything changed, in the meantime.
    """
    state = database_state()
    given = (
        sa.select(sa.cast(sa.literal(snapshot), PgSnapshot).label("snapshot"))
        .select_from(state)
        .where(state.c.epoch == epoch, is_within_log(sa.cast(sa.literal(snapshot), PgSnapshot), state))
        .cte("given")
        .prefix_with("MATERIALIZED")
    )
    held = scope_log.c.principal == sa.any_(sa.bindparam(None, sorted(viewer.principals), type_=TextArray))
    unseen = unseen_rows(
        given.c.snapshot, given, sa.or_(scope_log.c.principal.is_(None), held), limit, "unseen"
    ).prefix_with("MATERIALIZED")
    affected = _versions_behind(unseen).cte("affected").prefix_with("MATERIALIZED")
    base = predicate.base_versions(document_versions.c.seq.in_(sa.select(affected.c.seq)), "base")
    visible = predicate.visible_seqs(viewer, base).subquery("visible")
    row = connection.execute(
        sa.select(
            sa.cast(state.c.snapshot, sa.Text).label("snapshot"),
            sa.exists().select_from(given).label("is_usable"),
            sa.select(sa.func.count()).select_from(unseen).scalar_subquery().label("unseen"),
            sa.exists().select_from(unseen).where(unseen.c.kind == EVERYTHING).label("is_everything"),
            sa.select(_packed(affected.c.seq)).scalar_subquery().label("affected"),
            sa.select(_packed(visible.c.seq)).scalar_subquery().label("visible"),
        ).select_from(state)
    ).one()
    if not row.is_usable or row.is_everything or row.unseen >= limit:
        return None
    return Patch(row.snapshot, bitmap_of(row.affected), bitmap_of(row.visible))


@cache
def key_prefix(mode: AclMode) -> str:
    """Return what every key of this rule and mode begins with: a corrected rule never meets an old kept scope."""
    viewers = [Viewer(frozenset({Principal(name)}), mode) for name in ("user:x", "role:admin")]
    dialect = pg.dialect()  # type: ignore[no-untyped-call]  # its constructor has no types
    texts = [str(_whole(viewer).compile(dialect=dialect)) for viewer in viewers]
    return f"{hashlib.sha256(repr(texts).encode()).hexdigest()}:{mode}:"


def _whole(viewer: Viewer) -> sa.Select[str, bytes]:
    base = predicate.base_versions(predicate.EVERYTHING, "base")
    visible = predicate.visible_seqs(viewer, base).subquery("visible")
    return sa.select(
        sa.cast(sa.func.pg_current_snapshot(), sa.Text).label("snapshot"), _packed(visible.c.seq).label("visible")
    )


def _packed(seq: Any) -> sa.ColumnElement[bytes]:
    """Four bytes a number: ten times faster to carry than rows, for large sets."""
    empty: sa.ColumnElement[bytes] = sa.literal_column("''::bytea")
    return sa.func.string_agg(sa.func.int4send(seq), empty, type_=sa.LargeBinary)


def _sorted_array(column: sa.ColumnElement[str]) -> sa.ColumnElement[Any]:
    return sa.func.array_agg(pg.aggregate_order_by(column, sa.collate(column, "C")), type_=TextArray)


def _kept(known: sa.CTE, guess: KeptScope | None, *, from_table: bool) -> sa.CTE:
    """Return a CTE of at most one usable kept scope: `snapshot`, `visible` (null for the guess)."""
    choices = []
    no_guess: sa.ColumnElement[bool] = sa.true()
    if guess is not None:
        snapshot = sa.cast(sa.literal(guess.snapshot), PgSnapshot)
        holds = sa.and_(known.c.key == guess.key, known.c.epoch == guess.epoch, is_within_log(snapshot, known))
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


def _narrowing(project_ids: Collection[ProjectId] | None) -> sa.ColumnElement[bytes | None]:
    if project_ids is None:
        return sa.cast(sa.null(), sa.LargeBinary)
    wanted = sa.bindparam(None, list(project_ids), type_=pg.ARRAY(Uuid))
    return (
        sa.select(_packed(document_versions.c.seq))
        .join(documents, documents.c.id == document_versions.c.document_id)
        .where(documents.c.project_id == sa.any_(wanted))
        .scalar_subquery()
    )
