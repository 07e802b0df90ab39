"""Extract decisions: what changed from the draft before and to the draft after, and what the text says was settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from uuid import UUID

import sqlalchemy as sa

from shared.db.engine import reading, recording, run_retrying
from shared.ingest.contract import Services, StageInput, StageResult
from shared.ingest.decisions import rows
from shared.ingest.decisions.changes import changes
from shared.ingest.decisions.record import Decision
from shared.ingest.decisions.resolved import resolved
from shared.ingest.decisions.rows import Draft
from shared.ingest.facts import Reading
from shared.ingest.locks import lock_documents
from shared.ingest.threads import is_mail, mail_of
from shared.providers.storage import ObjectStore
from shared.text.converted import ConvertedText
from shared.types import VersionId

_Pair = tuple[VersionId, VersionId]
_Records = list[tuple[Decision, VersionId | None]]


def extract_decisions(call: StageInput, services: Services) -> StageResult:
    """Write the decisions of the version and of the draft behind it; two statements for a document of one version."""
    version_id = VersionId(UUID(call.payload.need("version_id")))
    told = _told(call, services)
    with reading(services.engine) as connection:
        drafts = rows.drafts_of(connection, version_id)
    # A mail at the place of another one is no draft of it.
    if len(drafts) == 1 or is_mail(call.payload.need("mime")):
        if told or any(draft.has_records for draft in drafts):
            with recording(services.engine) as connection:
                rows.replace(
                    connection,
                    own=version_id,
                    records={(None, version_id): told},
                    neighbours=(),
                    document=(),
                )
        return StageResult({})
    left_out = run_retrying(services.engine, lambda connection: _settle(connection, services, version_id, told))
    return StageResult({}, note=f"{left_out} changes were left out" if left_out else None)


def _settle(connection: sa.Connection, services: Services, version_id: VersionId, told: _Records) -> int:
    """Compare the version with its neighbours, alone at this document; return how many changes were left out."""
    [document_id] = {draft.document_id for draft in rows.drafts_of(connection, version_id)}
    lock_documents(connection, [rows.locked_name(document_id)])
    # Who waited for the lock looks again: another draft may have come in between.
    drafts = rows.drafts_of(connection, version_id)
    neighbours = _neighbours(drafts)
    known = {draft.version_id: draft for draft in drafts}
    records: dict[tuple[VersionId | None, VersionId], _Records] = {(None, version_id): told}
    left_out = 0
    for earlier, later in neighbours:
        compared = known[later].compared_with
        if version_id in {earlier, later} or (compared is not None and compared != earlier):
            records[earlier, later], left = _compared(services.store, known[earlier], known[later])
            left_out += left
    rows.replace(connection, own=version_id, records=records, neighbours=neighbours, document=list(known))
    return left_out


def _neighbours(drafts: Sequence[Draft]) -> list[_Pair]:
    """Return the pairs of drafts that follow one another; a comparison is no state of its own."""
    states = [draft.version_id for draft in drafts if not draft.is_comparison and draft.text_key is not None]
    return list(pairwise(states))


def _compared(store: ObjectStore, earlier: Draft, later: Draft) -> tuple[_Records, int]:
    assert earlier.text_key is not None
    assert later.text_key is not None
    old, new = (ConvertedText.from_json(store.get(key)) for key in (earlier.text_key, later.text_key))
    found, left_out = changes(old, new)
    if left_out:
        # The last record says that it is the last one kept.
        found[-1] = replace(found[-1], evidence={**found[-1].evidence, "left_out": left_out})
    if later.carrier is None or later.carrier_key is None:
        return [(decision, None) for decision in found], left_out
    mail = mail_of(ConvertedText.from_json(store.get(later.carrier_key)))
    return [
        (decision, None)
        if decision.author is not None or mail.sender is None
        else (replace(decision, author=mail.sender, decided_at=mail.sent_at), later.carrier)
        for decision in found
    ], left_out


def _told(call: StageInput, services: Services) -> _Records:
    text = ConvertedText.from_json(services.store.get(call.payload.need("text_key")))
    if is_mail(call.payload.need("mime")):
        mail = mail_of(text)
        return [(one, None) for one in resolved(text, author=mail.sender, decided_at=mail.sent_at)]
    day = Reading.from_json(services.store.get(call.payload.need("facts_key"))).content.doc_date.day
    found = resolved(text, author=None, decided_at=None)
    if day is None:
        return [(one, None) for one in found]
    return [(replace(one, evidence={**one.evidence, "day": day.isoformat()}), None) for one in found]
