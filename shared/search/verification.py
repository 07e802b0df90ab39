"""The last statement of a search: the rule again on every candidate, the page with all that it shows, the audit row.

SQL decides what is shown, and in one snapshot: which candidates are visible now, which of a document's rows stands for
it, where the page begins and ends, and whether another one follows. What is audited is exactly what is returned, and
an answer whose audit row cannot be written does not leave (docs/adr/0007-audit-on-the-last-statement.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.access import kept as keeping
from shared.access import predicate
from shared.access.audit import AuditEntry
from shared.access.kept import KeptScope
from shared.access.predicate import Standing
from shared.access.scope import CompiledAccessScope, bitmap_of
from shared.db.chain import latest_finals
from shared.db.prepared import hot, run_hot
from shared.db.tables.audit import audit_events
from shared.db.tables.base import Json, TextArray
from shared.db.tables.catalog import (
    document_parties,
    document_versions,
    documents,
    matter_parties,
    matters,
    parties,
    projects,
)
from shared.db.tables.content import chunks
from shared.db.tables.sources import source_objects, sources
from shared.types import AclMode, ChunkKind

_LOOKED_AT: Final = 2_000
"""Of so many versions that wait for the index, the oldest, it is asked whether one is in the scope."""
_Ids: Final = pg.ARRAY(pg.UUID(as_uuid=False))
_Numbers: Final = pg.ARRAY(sa.Integer)
_AUDITED: Final = (
    "action",
    "subject",
    "principals",
    "outcome",
    "scope_fingerprint",
    "query_hash",
    "query_chars",
    "correlation_id",
)


class Given(NamedTuple):
    """One candidate in order. Candidates of one `place` are tied. `shown_id` is the chunk to show for it."""

    place: int
    version_seq: int
    chunk_id: str
    shown_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Which hits are wanted: `count` of them from `first`, at most `per_document` rows of a document.

    `collapsed` orders tied hits by their document, else by their row.
    """

    first: int
    count: int
    per_document: int
    collapsed: bool


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One hit with everything that it shows; `nr` is the number of its candidate, from 1.

    `matched` is the chunk that was found, `wanted` the one to show for it, `passage` the first one of a profile's
    version. The text of `matched` is there only if there is no `wanted`.
    """

    at: int
    nr: int
    version_id: str
    document_id: str
    is_latest_final: bool
    title: str
    version_ordinal: int
    version_status: str
    sha256: str
    facts: dict[str, Any]
    project_id: str | None
    project_key: str | None
    project_title: str | None
    matter_id: str | None
    matter_key: str | None
    matter_title: str | None
    parties: list[str] | None
    sources: list[dict[str, Any]] | None
    matched_id: str | None
    matched_kind: str | None
    matched_text: str | None
    matched_char_start: int | None
    matched_char_end: int | None
    matched_page_from: int | None
    matched_locus: str | None
    wanted_id: str | None
    wanted_kind: str | None
    wanted_text: str | None
    wanted_char_start: int | None
    wanted_char_end: int | None
    wanted_page_from: int | None
    wanted_locus: str | None
    passage_id: str | None
    passage_kind: str | None
    passage_text: str | None
    passage_char_start: int | None
    passage_char_end: int | None
    passage_page_from: int | None
    passage_locus: str | None


_ROWS: Final = msgspec.json.Decoder(list[Row])


@dataclass(frozen=True, slots=True)
class Verified:
    """The page's rows in order, and how many hits there are up to where the candidates were looked at.

    `is_certain` says that no further candidate can change the page or whether another follows. Only then it is
    audited, and only then it may be shown. `is_pending`: the index has yet to take a version of the scope; it says
    nothing about any other version.
    """

    rows: list[Row]
    hits: int
    is_certain: bool
    is_pending: bool
    as_of: datetime


def verified(
    connection: sa.Connection,
    scope: CompiledAccessScope,
    given: Sequence[Given],
    cut: Cut,
    entry: AuditEntry,
    *,
    is_all: bool,
) -> Verified:
    """Return the page, from one statement. `is_all`: there are no further candidates.

    A scope that is worth keeping is kept by the same statement.
    """
    statement = _statement(scope.mode, is_administrator=scope.administrator, collapsed=cut.collapsed)
    values = {
        "viewer": sorted(scope.principals),
        "places": _listed(one.place for one in given),
        "seqs": _listed(one.version_seq for one in given),
        "chunk_ids": _listed(one.chunk_id for one in given),
        "shown_ids": _listed(one.shown_id for one in given),
        "per_document": cut.per_document,
        "first": cut.first,
        "count": cut.count,
        "is_all": is_all,
        "detail": dict(entry.detail),
        **{name: getattr(entry, name) for name in _AUDITED},
        "principals": sorted(entry.principals),
    }
    if isinstance(scope.pending, KeptScope):
        statement = statement.add_cte(keeping.upsert(scope.pending).cte("kept_scope"))
        found = connection.execute(statement, values).one()
    else:
        found = run_hot(connection, statement, values).one()
    # The scope is what the viewer may see: whatever else the index has yet to take does not show in this.
    is_pending = scope.visible.intersect(bitmap_of(found.unindexed))
    return Verified(_ROWS.decode(found.rows), found.hits, found.is_certain, is_pending, found.as_of)


@cache
def _statement(mode: AclMode, *, is_administrator: bool, collapsed: bool) -> sa.Select[Any]:
    """Return the statement; built once a process, because building it costs more than running it."""
    standing = Standing(sa.bindparam("viewer", type_=TextArray), mode, is_administrator)
    visible = predicate.visible_versions(standing, among=_with_siblings(_array("seqs", _Numbers)))
    citable = predicate.citable_observations(standing, visible)
    hits = _hits(_candidates(visible, citable), collapsed=collapsed)
    first, count = sa.bindparam("first", type_=sa.Integer), sa.bindparam("count", type_=sa.Integer)
    page = sa.select(hits).where(hits.c.at >= first, hits.c.at < first + count).cte("page")
    number = sa.select(sa.func.count()).select_from(hits).scalar_subquery()
    is_certain = sa.or_(sa.bindparam("is_all", type_=sa.Boolean), number > first + count)
    state = sa.select(number.label("hits"), is_certain.label("is_certain")).cte("state").prefix_with("MATERIALIZED")
    audit = _audit(page, state)
    shown = _shown(page, citable).subquery("shown")
    # One text for all rows, read in C: the driver would make objects of some three hundred values one by one.
    rows = sa.func.json_agg(pg.aggregate_order_by(shown.table_valued(), shown.c.at))
    as_text = sa.func.coalesce(sa.cast(rows, sa.Text), sa.literal_column("'[]'")).label("rows")
    return hot(
        sa.select(
            state.c.hits,
            state.c.is_certain,
            sa.select(as_text).scalar_subquery().label("rows"),
            _unindexed().label("unindexed"),
            sa.func.now().label("as_of"),
        )
        .add_cte(audit)
        .select_from(state)
    )


def _unindexed() -> sa.ScalarSelect[Any]:
    """Return the numbers of the versions that the index has yet to take, packed; next to nothing unless much is new."""
    oldest = (
        sa.select(document_versions.c.seq)
        .where(document_versions.c.indexed_at.is_(None))
        .order_by(document_versions.c.seq)
        .limit(_LOOKED_AT)
        .subquery("unindexed")
    )
    packed = sa.func.string_agg(sa.func.int4send(oldest.c.seq), sa.literal_column("''::bytea"))
    return sa.select(packed).scalar_subquery()


def _with_siblings(seqs: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """Return: all versions of the candidates' documents. Which one is the latest final is a matter of all visible."""
    candidates = document_versions.alias("candidate_versions")
    documents_of = sa.select(candidates.c.document_id).where(candidates.c.seq == sa.any_(seqs))
    # An array: the planner then goes through the index on the document, however many versions there are.
    return document_versions.c.document_id == sa.any_(sa.func.array(documents_of.scalar_subquery()))


def _array(name: str, kind: pg.ARRAY[Any]) -> sa.ColumnElement[Any]:
    """Return the array behind a parameter that is made by `_listed`."""
    return sa.cast(sa.bindparam(name, type_=sa.Text), kind)


def _listed(values: Iterable[object]) -> str:
    """Return numbers or ids as the text of an array: the driver would spell every id out letter by letter."""
    return f"{{{','.join(map(str, values))}}}"


def _candidates(visible: sa.CTE, citable: sa.CTE) -> sa.CTE:
    """Return the candidates that may be shown: their version is visible and citable, their chunk is one of it."""
    given = (
        sa.func.unnest(
            _array("places", _Numbers),
            _array("seqs", _Numbers),
            _array("chunk_ids", _Ids),
            _array("shown_ids", _Ids),
        )
        .table_valued("place", "seq", "chunk_id", "shown_id", with_ordinality="nr", name="given")
        .render_derived()
    )
    its_chunk = sa.and_(chunks.c.id == given.c.chunk_id, chunks.c.version_id == visible.c.version_id)
    any_chunk = chunks.alias("any_chunk")
    latest = latest_finals(sa.select(citable.c.version_id)).cte("latest_finals")
    # The row of a version without any text stands for it in the index and in no table of chunks.
    has_no_text = ~sa.exists().where(any_chunk.c.version_id == visible.c.version_id)
    return (
        sa.select(
            given.c.place,
            given.c.nr,
            given.c.shown_id,
            chunks.c.id.label("chunk_id"),
            visible.c.version_id,
            visible.c.document_id,
            latest.c.version_id.is_not(None).label("is_latest_final"),
        )
        .select_from(given)
        .join(visible, visible.c.seq == given.c.seq)
        .outerjoin(latest, latest.c.version_id == visible.c.version_id)
        .outerjoin(chunks, its_chunk)
        .where(visible.c.version_id.in_(sa.select(citable.c.version_id)), sa.or_(chunks.c.id.is_not(None), has_no_text))
        .cte("candidates")
    )


def _hits(found: sa.CTE, *, collapsed: bool) -> sa.CTE:
    """Return the rows that stand for their documents, numbered from 0 in `at`."""
    within = sa.func.row_number().over(
        partition_by=found.c.document_id, order_by=(found.c.place, found.c.is_latest_final.desc(), found.c.nr)
    )
    numbered = sa.select(found, within.label("within")).subquery("numbered")
    order = (numbered.c.place, numbered.c.document_id) if collapsed else (numbered.c.place, numbered.c.nr)
    at = sa.func.row_number().over(order_by=order) - 1
    return (
        sa.select(numbered, at.label("at"))
        .where(numbered.c.within <= sa.bindparam("per_document", type_=sa.Integer))
        .cte("hits")
        .prefix_with("MATERIALIZED")
    )


def _audit(page: sa.CTE, state: sa.CTE) -> sa.CTE:
    """Return the insert of the audit row with the ids of the versions on the page, once the page is certain."""
    empty: sa.ColumnElement[Any] = sa.cast(sa.literal_column("'[]'"), Json)
    ids = sa.func.jsonb_agg(pg.aggregate_order_by(page.c.version_id, page.c.at))
    versions = sa.select(sa.func.coalesce(ids, empty)).scalar_subquery()
    detail = sa.bindparam("detail", type_=Json).op("||")(sa.func.jsonb_build_object("version_ids", versions))
    columns = [sa.bindparam(name, type_=audit_events.c[name].type) for name in _AUDITED]
    row = sa.select(*columns, detail).select_from(state).where(state.c.is_certain)
    return sa.insert(audit_events).from_select([*_AUDITED, "detail"], row).cte("audited")


def _shown(page: sa.CTE, citable: sa.CTE) -> sa.Select[Any]:
    """Return the page's rows with everything that a hit shows."""
    matched, wanted = chunks.alias("matched"), chunks.alias("wanted")
    # What a profile quotes of its version's text: its first passage.
    passage = (
        sa.select(chunks)
        .where(
            chunks.c.version_id == page.c.version_id,
            chunks.c.kind == sa.literal_column(f"'{ChunkKind.CHUNK}'"),
            matched.c.kind == sa.literal_column(f"'{ChunkKind.PROFILE}'"),
        )
        .order_by(chunks.c.ordinal)
        .limit(1)
        .correlate(page, matched)
        .lateral("passage")
    )
    described = (
        page.join(document_versions, document_versions.c.id == page.c.version_id)
        .join(documents, documents.c.id == page.c.document_id)
        .outerjoin(projects, projects.c.id == documents.c.project_id)
        .outerjoin(matters, matters.c.id == documents.c.matter_id)
        .outerjoin(matched, matched.c.id == page.c.chunk_id)
        # A chunk of another version is never shown, whatever the index says.
        .outerjoin(wanted, sa.and_(wanted.c.id == page.c.shown_id, wanted.c.version_id == page.c.version_id))
        .outerjoin(passage, sa.true())
    )
    return sa.select(
        page.c.at,
        page.c.nr,
        page.c.version_id,
        page.c.document_id,
        page.c.is_latest_final,
        document_versions.c.title,
        document_versions.c.ordinal.label("version_ordinal"),
        document_versions.c.status.label("version_status"),
        document_versions.c.sha256,
        document_versions.c.facts,
        projects.c.id.label("project_id"),
        projects.c.key.label("project_key"),
        projects.c.title.label("project_title"),
        matters.c.id.label("matter_id"),
        matters.c.key.label("matter_key"),
        matters.c.title.label("matter_title"),
        _parties(page).label("parties"),
        _sources(page, citable).label("sources"),
        *_passage_columns("matched", matched, text=sa.case((wanted.c.id.is_(None), matched.c.text))),
        *_passage_columns("wanted", wanted),
        *_passage_columns("passage", passage),
    ).select_from(described)


def _passage_columns(prefix: str, table: Any, *, text: sa.ColumnElement[Any] | None = None) -> list[Any]:
    names = ("id", "kind", "text", "char_start", "char_end", "page_from", "locus")
    columns = {name: table.c[name] for name in names}
    if text is not None:
        columns["text"] = text
    return [column.label(f"{prefix}_{name}") for name, column in columns.items()]


def _parties(page: sa.CTE) -> sa.ScalarSelect[Any]:
    """Return the names of the parties of the version, as it writes them, and of its matter, sorted."""
    of_version = (
        sa.select(document_parties.c.name).where(document_parties.c.version_id == page.c.version_id).correlate(page)
    )
    of_matter = (
        sa.select(parties.c.name)
        .join(matter_parties, matter_parties.c.party_id == parties.c.id)
        .where(matter_parties.c.matter_id == documents.c.matter_id)
        .correlate(documents)
    )
    names = sa.union(of_version, of_matter).subquery("party_names")
    sorted_names = sa.func.array_agg(pg.aggregate_order_by(names.c.name, names.c.name), type_=TextArray)
    return sa.select(sorted_names).scalar_subquery()


def _sources(page: sa.CTE, citable: sa.CTE) -> sa.ScalarSelect[Any]:
    """Return the source objects that this viewer may be shown, as JSON."""
    one = sa.func.jsonb_build_object(
        "source",
        sources.c.name,
        "path",
        source_objects.c.path,
        "name",
        source_objects.c.name,
        "source_object_id",
        source_objects.c.id,
        "source_version",
        source_objects.c.source_version,
    )
    listed = sa.func.jsonb_agg(
        pg.aggregate_order_by(one, sources.c.name, source_objects.c.path, source_objects.c.id), type_=Json
    )
    return (
        sa.select(listed)
        .select_from(citable)
        .join(source_objects, source_objects.c.id == citable.c.source_object_id)
        .join(sources, sources.c.id == source_objects.c.source_id)
        .where(citable.c.version_id == page.c.version_id)
        .correlate(page)
        .scalar_subquery()
    )
