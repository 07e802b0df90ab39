"""Metadata without a model: title, language, date, type, status and identifiers of a version."""

from __future__ import annotations

import json

from shared.ingest.contract import Services, StageInput, StageResult
from shared.ingest.metadata.read import read_both
from shared.providers.storage import derived_key
from shared.text.converted import ConvertedText


def extract_metadata(call: StageInput, services: Services) -> StageResult:
    """Store what is read from the text alone and with the name, and hand on its key."""
    text = ConvertedText.from_json(services.store.get(call.payload.need("text_key")))
    facts = read_both(
        text,
        name=call.row.name,
        mime=call.payload.need("mime"),
        max_identifier_chars=services.settings.ingest.max_identifier_chars,
    )
    content = json.dumps(facts.to_json(), ensure_ascii=False, sort_keys=True).encode()
    key = derived_key("facts", content)
    if not services.store.exists(key):
        services.store.put(key, content)
    return StageResult({"facts_key": key})
