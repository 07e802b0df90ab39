"""Relate: which document and which version the object's bytes are.

Within one project and matter identical bytes are one version with several observations; across them they are separate
documents. New bytes at the same path are the next version of the same document; the version that lay there before
keeps its observation and stays readable through the same object. Drafts in one folder whose names differ only by
version marks are versions of one document (ADR 0005).

A file's name is for those who may cite the file. What is read with it is a version's only while all files that ever
showed the version bear this name; else the version has the facts of its content alone. This is settled in the
transaction that adds the file, so nobody meets a version between the two.

In the same transaction go what the version says of others and is called by them, its thread, and what it or a file
beside it is a redline of (ADR 0014).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

import sqlalchemy as sa

from shared.db.engine import run_retrying
from shared.db.tables.catalog import document_versions, documents
from shared.db.tables.sources import source_objects, version_sources
from shared.ingest import outbox, places
from shared.ingest.contract import Services, StageInput, StageResult
from shared.ingest.facts import DocDate, Facts, Reading
from shared.ingest.families import Link, position_of
from shared.ingest.locks import lock_documents
from shared.ingest.metadata.names import stem_key
from shared.ingest.metadata.read import read_both
from shared.ingest.objects import MemberRow
from shared.ingest.places import PlaceKeys
from shared.ingest.relations import rows as relation_rows
from shared.ingest.relations.annexes import folder_key
from shared.ingest.relations.reading import read_said
from shared.ingest.relations.redlines import settle_redlines
from shared.ingest.relations.rows import Realms
from shared.ingest.relations.said import Intent, Key
from shared.ingest.stages import version_rows
from shared.ingest.stages.document_facts import profile_of, refresh_document
from shared.ingest.stages.profile import text_of_bytes
from shared.ingest.stages.situation import Shown, Situation, look
from shared.ingest.stages.version_rows import ChainVersion, NewVersion
from shared.ingest.threads import Mail, is_mail, mail_of, move_messages, settle_message
from shared.ontology.tree import load_ontology
from shared.text.converted import ConvertedText
from shared.types import DocumentId, RelationKind, VersionId, VersionStatus

NEW, CHANGED, COPY, SAME = "new", "changed", "copy", "same"


def relate(call: StageInput, services: Services) -> StageResult:
    """Write the version and its observation, and say whether it is new, changed, a copy or the same as before."""
    read = _read(call, services)
    place = PlaceKeys(places.by_path(services.source.config, call.row).project, call.payload.matter)
    held = {places.fingerprint(place)}

    def work(connection: sa.Connection) -> StageResult | set[str]:
        lock_documents(connection, held)
        situation = look(connection, call.row, place, call.payload.need("sha256"))
        more = set(situation.elsewhere.values()) - held
        if more:
            return more
        decision = _Decision(connection, services, call, read)
        for document_id in sorted(situation.elsewhere):
            decision.leave(document_id, situation)
            situation = look(connection, call.row, place, call.payload.need("sha256"))
        return decision.make(situation)

    while True:
        found = run_retrying(services.engine, work)
        if isinstance(found, StageResult):
            return found
        # The object has shown documents in other places: begin again with the locks of all, taken in order.
        held |= found


@dataclass(frozen=True, slots=True)
class _Read:
    """What is read of the object before the transaction begins."""

    text: ConvertedText
    reading: Reading
    said: tuple[list[Intent], list[Key]]
    mail: Mail | None

    @property
    def has_signs_of_a_redline(self) -> bool:
        return any(intent.kind is RelationKind.REDLINE_OF for intent in self.said[0])


def _read(call: StageInput, services: Services) -> _Read:
    payload, store = call.payload, services.store
    text = ConvertedText.from_json(store.get(payload.need("text_key")))
    reading = Reading.from_json(store.get(payload.need("facts_key")))
    members = [MemberRow(**row) for row in json.loads(store.get(payload.members_key))] if payload.members_key else []
    mime, sha256 = payload.need("mime"), payload.need("sha256")
    said = read_said(text, call.row, reading, mime=mime, sha256=sha256, members=members)
    return _Read(text, reading, said, mail_of(text) if is_mail(mime) else None)


class _Decision:
    """One decision in one transaction."""

    def __init__(self, connection: sa.Connection, services: Services, call: StageInput, read: _Read) -> None:
        self._connection = connection
        self._services = services
        self._payload = call.payload
        self._row = call.row
        self._read = read
        self._reading = read.reading

    def make(self, situation: Situation) -> StageResult:
        known, current = situation.known, situation.current
        renamed = self._forget_other_names(situation, known)
        if known is not None:
            document_id, version_id, note = known.document_id, known.version_id, self._observed(situation, known)
            changed = self._describe(known)
            self._refresh(situation, {document_id: changed}, renamed)
        elif current is not None:
            document_id, note = current, CHANGED
            version_id = self._append(situation, document_id, renamed)
        else:
            related = self._family(situation)
            if related is not None:
                document_id, note = related, NEW
                version_id = self._append(situation, document_id, renamed)
            else:
                note = NEW
                document_id, version_id = self._new_document(situation)
                self._refresh(situation, {}, renamed)
        self._relate(situation, version_id, unchunked=None if known is not None else version_id)
        return StageResult({"document_id": str(document_id), "version_id": str(version_id)}, note=note)

    def leave(self, document_id: DocumentId, situation: Situation) -> None:
        """Move a document that only this object shows; leave one behind that others show as well."""
        theirs = sa.select(document_versions.c.id).where(document_versions.c.document_id == document_id)
        seen_by = version_sources.c.version_id.in_(theirs)
        others = sa.exists().where(seen_by, version_sources.c.source_object_id != self._row.id)
        if situation.same_bytes or self._connection.execute(sa.select(others)).scalar_one():
            self._connection.execute(
                sa.delete(version_sources).where(seen_by, version_sources.c.source_object_id == self._row.id)
            )
            return
        place = situation.place
        self._connection.execute(
            sa.update(documents)
            .where(documents.c.id == document_id)
            .values(project_id=place.project_id, matter_id=place.matter_id, updated_at=sa.func.now())
        )
        moved = [VersionId(UUID(str(one))) for one in self._connection.execute(theirs).scalars()]
        outbox.queue(self._connection, {version: [] for version in moved})
        realms = Realms.of(place.project_id, place.matter_id)
        relation_rows.move(self._connection, moved, realms)
        move_messages(self._connection, moved, realms.project)
        self._refresh(situation, {document_id: []}, {})

    def _relate(self, situation: Situation, version_id: VersionId, *, unchunked: VersionId | None) -> None:
        """Write what the version says of others; settle its thread, and the redlines in its folder."""
        realms = Realms.of(situation.place.project_id, situation.place.matter_id)
        folder = folder_key(self._row.source_id, self._row.path)
        redlines = relation_rows.replace(
            self._connection, version_id, self._row.id, realms, self._read.said, folder=folder
        )
        if self._read.has_signs_of_a_redline:
            redlines.append(version_id)
        for document_id in sorted(
            settle_redlines(self._connection, self._services.store, self._row, situation.place, redlines)
        ):
            refresh_document(self._connection, self._services, document_id, situation.matter, unchunked=unchunked)
        if self._read.mail is not None and realms.project is not None:
            settle_message(self._connection, version_id, realms.project, self._read.mail)

    def _observed(self, situation: Situation, known: Shown) -> str:
        if any(one.version_id == known.version_id for one in situation.shown):
            return SAME
        version_rows.observe(self._connection, known.version_id, self._row.id)
        return COPY

    def _describe(self, known: Shown) -> list[VersionId]:
        """Write what may be shown of the version now; return it if its index rows change.

        Of copies the first object decides; every other one when a name has begun or ceased to count.
        """
        wanted = self._reading.facts_for({stem_key(name) for name in (*known.names, self._row.name)})
        if known.first != self._row.id and known.named_by == wanted.named_by:
            return []
        before = self._stored(known)
        if before == wanted:
            return []
        version_rows.describe(self._connection, known.version_id, wanted, content=self._reading.content)
        return [known.version_id] if before.indexed != wanted.indexed else []

    def _stored(self, shown: Shown) -> Facts:
        chain = version_rows.load_chain(self._connection, shown.document_id)
        return next(one.facts for one in chain if one.version_id == shown.version_id)

    def _forget_other_names(self, situation: Situation, known: Shown | None) -> dict[DocumentId, list[VersionId]]:
        """Give older versions of a renamed object the facts of their content; return them by document."""
        forgotten: dict[DocumentId, list[VersionId]] = {}
        for one in situation.shown:
            if (known is None or one.version_id != known.version_id) and one.bears_other_names():
                chain = version_rows.load_chain(self._connection, one.document_id)
                version = next(v for v in chain if v.version_id == one.version_id)
                content = self._content_facts(version)
                version_rows.describe(self._connection, one.version_id, content, content=content)
                forgotten.setdefault(one.document_id, []).append(one.version_id)
        return forgotten

    def _content_facts(self, version: ChainVersion) -> Facts:
        text = text_of_bytes(self._connection, self._services, version.sha256)
        if text is None:
            return replace(
                version.facts,
                title="untitled",
                doc_date=DocDate(None, None, None),
                doc_type=None,
                doc_type_ancestors=(),
                status=VersionStatus.UNKNOWN,
                status_evidence=(),
                family=None,
                number=None,
                named_by=None,
                parties=(),
            )
        settings = self._services.settings
        return read_both(
            text,
            name=self._row.name,
            mime=version.mime,
            max_identifier_chars=settings.ingest.max_identifier_chars,
            ontology=load_ontology(settings.ontology.path),
        ).content

    def _refresh(
        self,
        situation: Situation,
        documents_changed: dict[DocumentId, list[VersionId]],
        renamed: dict[DocumentId, list[VersionId]],
        *,
        unchunked: VersionId | None = None,
    ) -> None:
        for document_id in sorted(documents_changed.keys() | renamed.keys()):
            refresh_document(
                self._connection,
                self._services,
                document_id,
                situation.matter,
                changed=[*documents_changed.get(document_id, ()), *renamed.get(document_id, ())],
                unchunked=unchunked,
            )

    def _family(self, situation: Situation) -> DocumentId | None:
        """Return the document of a draft beside this file whose name differs only by version marks.

        A document is signed once: a second signed paper is one of its own.
        """
        facts = self._reading.named
        if facts.family is None:
            return None
        folder, _, _ = self._row.path.rpartition("/")
        signed = document_versions.alias("signed")
        has_signed = sa.exists().where(
            signed.c.document_id == document_versions.c.document_id, signed.c.status == VersionStatus.EXECUTED
        )
        beside = sa.func.regexp_replace(source_objects.c.path, "(^|/)[^/]*$", "") == folder
        found = self._connection.execute(
            sa.select(document_versions.c.document_id)
            .join(documents, documents.c.id == document_versions.c.document_id)
            .join(version_sources, version_sources.c.version_id == document_versions.c.id)
            .join(source_objects, source_objects.c.id == version_sources.c.source_object_id)
            .where(
                _here(situation),
                document_versions.c.facts["family"].astext == facts.family,
                document_versions.c.facts["doc_type"].astext.is_not_distinct_from(facts.doc_type),
                source_objects.c.source_id == self._row.source_id,
                source_objects.c.parent_id.is_not_distinct_from(self._row.parent_id),
                source_objects.c.deleted_at.is_(None),
                beside,
                ~has_signed if facts.status is VersionStatus.EXECUTED else sa.true(),
            )
            .order_by(document_versions.c.seq)
            .limit(1)
        ).scalar()
        return None if found is None else DocumentId(found)

    def _new_document(self, situation: Situation) -> tuple[DocumentId, VersionId]:
        new = self._new_version(DocumentId(uuid4()), ordinal=1)
        profile = []
        if self._services.settings.retrieval.profile_embeddings:
            profile = profile_of(new.version_id, new.facts, situation.matter, self._read.text)
        version_rows.insert_document(self._connection, new, situation.place, profile)
        return new.document_id, new.version_id

    def _append(
        self, situation: Situation, document_id: DocumentId, renamed: dict[DocumentId, list[VersionId]]
    ) -> VersionId:
        """Write a new version at its place in the chain, with its observation."""
        chain = version_rows.load_chain(self._connection, document_id)
        facts = self._reading.named
        # New bytes at the object's own path came last, whatever they call themselves.
        own = {one.version_id for one in situation.shown} & {one.version_id for one in chain}
        version_id = VersionId(uuid4())
        position = len(chain)
        if not own:
            position = position_of(Link(version_id, facts.status, facts.number), [one.link for one in chain])
        new = self._new_version(document_id, ordinal=position + 1, version_id=version_id)
        version_rows.insert_version(self._connection, new)
        order = [(one.version_id, one.ordinal) for one in chain]
        order.insert(position, (version_id, new.ordinal))
        version_rows.number(self._connection, order)
        self._refresh(situation, {document_id: []}, renamed, unchunked=version_id)
        return version_id

    def _new_version(self, document_id: DocumentId, *, ordinal: int, version_id: VersionId | None = None) -> NewVersion:
        """Return the object's bytes as a version that it alone shows, so its name counts."""
        return NewVersion(
            version_id or VersionId(uuid4()),
            document_id,
            self._payload.need("sha256"),
            self._payload.need("mime"),
            self._reading,
            self._row.id,
            ordinal,
        )


def _here(situation: Situation) -> sa.ColumnElement[bool]:
    return documents.c.project_id.is_not_distinct_from(situation.place.project_id) & (
        documents.c.matter_id.is_not_distinct_from(situation.place.matter_id)
    )
