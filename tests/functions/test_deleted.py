"""A file that is gone at its source is gone from every route at once, and from the index; and comes back (RC59)."""

from __future__ import annotations

from collections.abc import Callable
from email.message import EmailMessage

import pytest
import sqlalchemy as sa

from shared.db.tables.catalog import document_versions
from shared.db.tables.sources import source_objects, version_sources
from shared.index import fields
from shared.index.reconcile import reconcile, sweep
from shared.ingest import deletions
from shared.runtime.bootstrap import Services
from shared.sources.config import ProjectRef, SourceConfig
from shared.sources.given import GivenDocument, GivenDocuments
from tests.functions.api import Api
from tests.functions.firm import Firm

NORD = SourceConfig(project=ProjectRef(key="nord", title="Projekt Nord"))
WORD = "schwundwort"


def post() -> bytes:
    message = EmailMessage()
    message["From"], message["Subject"] = "anna@kanzlei.example", "Post"
    message["Message-ID"] = "<schwund@kanzlei.example>"
    message.set_content(f"Die Anlage zum {WORD}.")
    message.add_attachment(
        f"Der Text der Anlage zum {WORD}.".encode(), maintype="text", subtype="plain", filename="Anlage.txt"
    )
    return message.as_bytes()


FILES = {"Brief.txt": f"Ein Brief zum {WORD}.".encode(), "post.eml": post(), "Rest.txt": b"Etwas anderes."}


def take_in(parts: Services, *names: str, drain: bool = True) -> None:
    given = [GivenDocument(name, name, FILES[name]) for name in names]
    report = parts.ingest_service(index=False).ingest(GivenDocuments("schwund", given, NORD, is_whole=True))
    assert all(file.reason is None for file in report.files)
    if drain:
        settle(parts)


def settle(parts: Services) -> None:
    parts.writer.drain(100)
    parts.index.refresh(parts.settings.retrieval.index_name)


def vanish_by_scan(parts: Services) -> None:
    take_in(parts, "Rest.txt", drain=False)


def vanish_by_event(parts: Services) -> None:
    with parts.engine.begin() as connection:
        gone = sa.select(source_objects.c.id).where(source_objects.c.external_id.in_(["Brief.txt", "post.eml"]))
        deletions.tombstone(connection, gone)


def rows_of(parts: Services, versions: list[str]) -> int:
    query = {"bool": {"filter": [{"terms": {fields.DOCUMENT_VERSION_ID: versions}}, {"term": {fields.DELETED: False}}]}}
    return parts.index.count(parts.settings.retrieval.index_name, query)


@pytest.mark.parametrize("vanish", [vanish_by_scan, vanish_by_event])
def test_a_deleted_file_is_gone_from_every_route_and_from_the_index_and_comes_back(
    api: Api, firm: Firm, token_of: Callable[[str], str], vanish: Callable[[Services], None]
) -> None:
    parts = firm.parts
    take_in(parts, *FILES)
    try:
        with parts.engine.connect() as connection:
            rows = connection.execute(
                sa.select(source_objects.c.path, document_versions.c.id, document_versions.c.document_id)
                .join(version_sources, version_sources.c.source_object_id == source_objects.c.id)
                .join(document_versions, document_versions.c.id == version_sources.c.version_id)
                .where(source_objects.c.path.in_(["Brief.txt", "post.eml", "post.eml/Anlage.txt"]))
            ).all()
        documents, versions = {str(row.document_id) for row in rows}, [str(row.id) for row in rows]
        assert len(documents) == 3

        def found(persona: str) -> set[str]:
            hits = api.post("/search", token_of(persona), {"query": WORD}).json["results"]
            listed = api.post("/search/filter", token_of(persona), {"limit": 100}).json["results"]
            return {hit["document_id"] for hit in [*hits, *listed]} & documents

        def statuses(persona: str) -> set[int]:
            places = [f"/documents/{one}{part}" for one in documents for part in ("", "/download")]
            return {api.get(place, token_of(persona)).status for place in places}

        for persona in ("anna", "root"):
            assert found(persona) == documents
            assert statuses(persona) == {200}
        assert rows_of(parts, versions) >= 3
        vanish(parts)
        # Before the index has heard of it.
        for persona in ("anna", "root"):
            assert found(persona) == set()
            assert statuses(persona) == {404}
        settle(parts)
        assert rows_of(parts, versions) == 0
        with parts.engine.begin() as connection:
            assert reconcile(connection, parts.index, parts.settings.retrieval.index_name).none
            assert sweep(connection, parts.index, parts.settings.retrieval.index_name) == 0
        take_in(parts, *FILES)
        for persona in ("anna", "root"):
            assert found(persona) == documents
            assert statuses(persona) == {200}
        with parts.engine.connect() as connection:
            assert reconcile(connection, parts.index, parts.settings.retrieval.index_name).none
    finally:
        with parts.engine.begin() as connection:
            everything = sa.select(source_objects.c.id).where(source_objects.c.external_id.in_(FILES))
            deletions.tombstone(connection, everything)
        settle(parts)


def test_what_waits_for_the_index_behind_a_wall_does_not_show_in_any_answer(
    api: Api, firm: Firm, token_of: Callable[[str], str]
) -> None:
    behind = firm.versions["sued/Klage canname.txt"]

    def wait(moment: sa.ColumnElement[object]) -> None:
        with firm.parts.engine.begin() as connection:
            connection.execute(
                sa.update(document_versions).where(document_versions.c.id == behind).values(indexed_at=moment)
            )

    def pending(persona: str) -> set[bool]:
        answers = (
            api.post("/search", token_of(persona), {"query": "Kündigungsfrist"}),
            api.post("/search/filter", token_of(persona), {}),
        )
        return {answer.json["completeness"]["index_pending"] for answer in answers}

    assert pending("clara") == {False}
    wait(sa.null())
    try:
        assert {persona: pending(persona) for persona in ("anna", "dora", "clara", "root")} == {
            "anna": {False},
            "dora": {False},
            "clara": {True},
            "root": {True},
        }
    finally:
        wait(sa.func.now())
