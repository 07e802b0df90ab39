"""Metadata: title, language, date, type, status, identifiers, parties and clauses of a version.

Rules read them; a language model, if one is configured, is asked about what they did not find. Without its answer the
version is as the rules have read it, with a note that says so.
"""

from __future__ import annotations

import json
import logging

from shared.errors import MisconfiguredError, ProviderRefusedError, ProviderUnavailableError, TransientError
from shared.ingest.contract import Services, StageInput, StageResult
from shared.ingest.facts import Reading
from shared.ingest.metadata.clauses import clauses_to_json, find_clauses
from shared.ingest.metadata.read import read_both
from shared.ingest.metadata.refine import refine, with_note
from shared.ontology.tree import load_ontology
from shared.providers.llm.factory import RULES
from shared.providers.storage import derived_key
from shared.text.converted import ConvertedText

_LOG = logging.getLogger(__name__)


def extract_metadata(call: StageInput, services: Services) -> StageResult:
    """Store what is read from the text alone and with the name, and the clauses; hand on the keys."""
    text = ConvertedText.from_json(services.store.get(call.payload.need("text_key")))
    ontology = load_ontology(services.settings.ontology.path)
    facts = read_both(
        text,
        name=call.row.name,
        mime=call.payload.need("mime"),
        max_identifier_chars=services.settings.ingest.max_identifier_chars,
        ontology=ontology,
    )
    facts = _refined(call, services, facts, text)
    content = json.dumps(facts.to_json(), ensure_ascii=False, sort_keys=True).encode()
    found = {"facts_key": _stored(services, "facts", content)}
    # The type without the name: a file's name is for those who may cite the file, a clause for all who see the text.
    if ontology.holds_clauses(facts.content.doc_type) and (clauses := find_clauses(text.text, ontology)):
        found["clauses_key"] = _stored(services, "clauses", clauses_to_json(clauses))
    return StageResult(found)


def _refined(call: StageInput, services: Services, facts: Reading, text: ConvertedText) -> Reading:
    llm = services.settings.llm
    if llm.provider == RULES:
        return facts
    if services.model is None:
        raise MisconfiguredError(f"llm.provider is {llm.provider}, but no model was handed to the pipeline")
    try:
        return refine(
            facts,
            text,
            mime=call.payload.need("mime"),
            model=services.model,
            ontology=load_ontology(services.settings.ontology.path),
            max_text_chars=llm.max_text_chars,
        )
    except (ProviderUnavailableError, ProviderRefusedError) as error:
        if isinstance(error, TransientError) and not call.is_last_try:
            raise
        name = type(error).__name__
        _LOG.warning("no answer of the language model", extra={"object_id": str(call.row.id), "error": name})
        return with_note(facts, f"read by rules alone: {services.model.model_id} gave no answer ({name})")


def _stored(services: Services, kind: str, content: bytes) -> str:
    key = derived_key(kind, content)
    if not services.store.exists(key):
        services.store.put(key, content)
    return key
