"""Makes sure that the live index is the one the configuration means: creates it, adds fields, or says what differs.

A field that is missing can be added to a live index; anything else that differs (width, engine, space, an analyser, a
field's type) needs a new index beside the old one.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from pyroaring import BitMap

from shared.errors import EngineUnavailableError, IndexMappingError, IndexRequestError
from shared.index import fields
from shared.index.client import IndexClient
from shared.index.mapping import concrete_name, fitting_alias, index_body
from shared.settings import Retrieval

_log = logging.getLogger(__name__)
_REINDEX: Final = "Set the old value again, or rebuild the index beside the old one with `ki reindex`."


@dataclass(frozen=True, slots=True)
class LiveIndex:
    """The index behind the alias, as the engine describes it."""

    name: str
    aliases: frozenset[str]
    mappings: Mapping[str, Any]
    settings: Mapping[str, Any]


def ensure_index(client: IndexClient, retrieval: Retrieval, *, embedding_signature: str) -> str:
    """Return the name of the index behind the alias, created or brought up to date first if need be.

    Safe to run in several processes at once. Raises `IndexMappingError` if the live index cannot be made to fit.
    """
    live = live_index(client, retrieval.index_name)
    if live is None:
        live = _created(client, retrieval, embedding_signature)
    body = index_body(retrieval, embedding_signature=embedding_signature)
    missing = missing_fields(live, body)
    refuse_differences(live, body, retrieval)
    if missing:
        _log.info("index_fields_added", extra={"index": live.name, "fields": sorted(missing)})
        addition = {"_meta": body["mappings"]["_meta"], "properties": missing}
        client.request("PUT", f"/{quote(live.name)}/_mapping", addition, target=live.name)
    written_through = fitting_alias(retrieval, embedding_signature=embedding_signature)
    if written_through not in live.aliases:
        # An index of an earlier version of the product, or one that has just got its new fields.
        client.request("PUT", f"/{quote(live.name)}/_alias/{quote(written_through)}", target=live.name)
    _prove_bitmaps(client, retrieval.index_name)
    return live.name


def check_index(client: IndexClient, retrieval: Retrieval, *, embedding_signature: str) -> str:
    """Return the name of the index behind the alias if it fits the configuration; changes nothing.

    Raises `IndexMappingError` naming what differs, `EngineUnavailableError` if there is no index.
    """
    live = live_index(client, retrieval.index_name)
    if live is None:
        text = (
            f"The search index {retrieval.index_name!r} does not exist; create it with `ki up` or the migrate function."
        )
        raise EngineUnavailableError(text)
    body = index_body(retrieval, embedding_signature=embedding_signature)
    refuse_differences(live, body, retrieval)
    missing = missing_fields(live, body)
    if missing:
        names = ", ".join(sorted(missing))
        text = f"The index {live.name!r} lacks the fields {names}; add them with `ki up` or the migrate function."
        raise IndexMappingError(text)
    if fitting_alias(retrieval, embedding_signature=embedding_signature) not in live.aliases:
        text = f"The index {live.name!r} lacks the alias that rows are written through; add it with `ki up`."
        raise IndexMappingError(text)
    _prove_bitmaps(client, retrieval.index_name)
    return live.name


def live_index(client: IndexClient, alias: str) -> LiveIndex | None:
    """Return the one index behind `alias`, or None. Raises `IndexMappingError` if there are several."""
    # A name that nothing bears answers 200 with an empty object, so that "missing" and "away" stay apart.
    answer = client.request("GET", f"/{quote(alias)}?ignore_unavailable=true&allow_no_indices=true", target=alias)
    if not answer:
        return None
    if alias in answer:
        raise IndexMappingError(
            f"{alias!r} is an index of its own, not an alias; remove it, or set another index_name."
        )
    if len(answer) > 1:
        names = ", ".join(sorted(answer))
        raise IndexMappingError(f"The alias {alias!r} stands for several indices ({names}); leave it on one of them.")
    [(name, described)] = answer.items()
    return LiveIndex(name, frozenset(described["aliases"]), described["mappings"], described["settings"])


def _created(client: IndexClient, retrieval: Retrieval, embedding_signature: str) -> LiveIndex:
    name = concrete_name(retrieval, embedding_signature=embedding_signature)
    body = index_body(retrieval, embedding_signature=embedding_signature)
    # Index and aliases in one step: nobody ever sees the one without the other.
    written_through = fitting_alias(retrieval, embedding_signature=embedding_signature)
    body["aliases"] = {retrieval.index_name: {}, written_through: {}}
    refusal: IndexRequestError | None = None
    try:
        client.request("PUT", f"/{quote(name)}", body, target=name)
    except IndexRequestError as error:
        # Most likely another process was first; if not, the alias is still missing.
        refusal = error
    live = live_index(client, retrieval.index_name)
    if live is None:
        text = f"The index {name!r} exists without the alias {retrieval.index_name!r}: run `ki reindex`."
        raise IndexMappingError(text) from refusal
    return live


def refuse_differences(live: LiveIndex, body: Mapping[str, Any], retrieval: Retrieval) -> None:
    """Raise `IndexMappingError` naming the first thing that a live index cannot change."""
    vector = live.mappings.get("properties", {}).get(fields.EMBEDDING)
    if vector is not None:
        _refuse_other_vectors(live, vector, retrieval)
    live_meta, meta = live.mappings.get("_meta", {}), body["mappings"]["_meta"]
    if live_meta.get("embedding_signature") != meta["embedding_signature"]:
        raise IndexMappingError(
            f"The index {live.name!r} holds vectors of {live_meta.get('embedding_signature')!r}, the configured model "
            f"is {meta['embedding_signature']!r}; vectors of two models cannot be compared. {_REINDEX}"
        )
    if live.mappings.get("dynamic") != "strict":
        raise IndexMappingError(f"The index {live.name!r} takes unknown fields (dynamic is not strict). {_REINDEX}")
    for name, wanted in body["mappings"]["properties"].items():
        found = live.mappings.get("properties", {}).get(name)
        if found is not None and name != fields.EMBEDDING and not fits(_without_subfields(wanted), found):
            raise IndexMappingError(f"The field {name!r} of the index {live.name!r} is of another kind. {_REINDEX}")
    analysis = live.settings.get("index", {}).get("analysis", {})
    if not fits(body["settings"]["index"]["analysis"], analysis):
        raise IndexMappingError(f"The index {live.name!r} analyses text in another way. {_REINDEX}")


def _refuse_other_vectors(live: LiveIndex, vector: Mapping[str, Any], retrieval: Retrieval) -> None:
    method = vector.get("method", {})
    pairs = (
        ("dimensions", vector.get("dimension"), retrieval.embedding_dimensions),
        ("engine", method.get("engine"), retrieval.vector_engine),
        ("space type", method.get("space_type"), retrieval.vector_space_type),
    )
    for what, found, wanted in pairs:
        if found != wanted:
            raise IndexMappingError(
                f"The vectors of the index {live.name!r} have {what} {found}, "
                f"the configuration says {wanted}. {_REINDEX}"
            )


def missing_fields(live: LiveIndex, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields to add; a field that lacks only a subfield is among them, whole."""
    found = live.mappings.get("properties", {})
    return {
        name: wanted
        for name, wanted in body["mappings"]["properties"].items()
        if name not in found or not wanted.get("fields", {}).keys() <= found[name].get("fields", {}).keys()
    }


def _without_subfields(field: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in field.items() if key != "fields"}


def fits(wanted: object, found: object) -> bool:
    """Tell whether `found` says all that `wanted` says. The engine answers settings as strings, and adds defaults."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(fits(value, found.get(key)) for key, value in wanted.items())
    if isinstance(wanted, (list, tuple)):
        if not isinstance(found, list) or len(found) != len(wanted):
            return False
        return all(map(fits, wanted, found))
    return _written(wanted) == _written(found)


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _prove_bitmaps(client: IndexClient, alias: str) -> None:
    """Raise `IndexMappingError` if the engine does not filter by a bitmap as it filters by a list."""
    sample = client.search(alias, {"size": 1, "_source": False, "docvalue_fields": [fields.VERSION_SEQ]})
    seq = sample.rows[0].fields[fields.VERSION_SEQ][0] if sample.rows and sample.rows[0].fields else 1
    bitmap = b64encode(BitMap([seq]).serialize()).decode("ascii")
    listed = client.count(alias, {"terms": {fields.VERSION_SEQ: [seq]}})
    mapped = client.count(alias, {"terms": {fields.VERSION_SEQ: [bitmap], "value_type": "bitmap"}})
    if listed != mapped:
        text = f"A bitmap filter finds {mapped} rows where a list finds {listed}; this engine cannot hold a scope."
        raise IndexMappingError(text)
