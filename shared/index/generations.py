"""The indices behind the alias: the live one, the one being built, those that were live before.

Who is what is written in aliases alone, which the engine changes in one step: `<alias>-next` is being built,
`<alias>-previous` was live. What a build must remember over a crash is in the `_meta` of its own index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from shared.errors import IndexMappingError
from shared.index import fields
from shared.index.client import IndexClient
from shared.index.ensure import LiveIndex, fits, live_index, missing_fields, refuse_differences
from shared.index.mapping import concrete_name, fitting_alias, index_body, vector_field
from shared.settings import Settings

_META_KEY = "reindex"


@dataclass(frozen=True, slots=True)
class Build:
    """An index being built, and how far it is.

    All that was committed before `since` is in it once it is `copied`. A `rejected` build did not compare equal and
    is of no use any more.
    """

    name: str
    since: datetime
    copied: bool = False
    rejected: bool = False


def next_alias(index_name: str) -> str:
    """Return the alias of the index that is being built."""
    return f"{index_name}-next"


def previous_alias(index_name: str) -> str:
    """Return the alias of the indices that were live before."""
    return f"{index_name}-previous"


def begin(client: IndexClient, settings: Settings, *, embedding_signature: str, since: datetime) -> Build:
    """Create an empty index beside the live one and return it."""
    body = index_body(settings.retrieval, embedding_signature=embedding_signature)
    build = Build(_free_name(client, settings, embedding_signature), since)
    body["mappings"]["_meta"] |= _remembered(build, settings)
    body["aliases"] = {next_alias(settings.retrieval.index_name): {}}
    client.request("PUT", f"/{quote(build.name)}", body, target=build.name)
    return build


def remember(client: IndexClient, settings: Settings, build: Build) -> Build:
    """Write down how far a build is, in its index; return it."""
    found = live_index(client, next_alias(settings.retrieval.index_name))
    if found is None or found.name != build.name:
        raise IndexMappingError(f"The index {build.name!r} is no longer the one being built; run `ki reindex` again.")
    meta = {**found.mappings.get("_meta", {}), **_remembered(build, settings)}
    client.request("PUT", f"/{quote(build.name)}/_mapping", {"_meta": meta}, target=build.name)
    return build


def building(client: IndexClient, settings: Settings) -> Build | None:
    """Return the index being built, whether it fits the settings or not; None if there is none."""
    found = live_index(client, next_alias(settings.retrieval.index_name))
    if found is None:
        return None
    meta = found.mappings.get("_meta", {}).get(_META_KEY, {})
    # Without a note everything counts as moved: too much is written again, never too little.
    since = datetime.fromisoformat(meta.get("since", "1970-01-01T00:00:00+00:00"))
    return Build(found.name, since, copied=meta.get("copied") is True, rejected=meta.get("rejected") is True)


def can_go_on(client: IndexClient, settings: Settings, *, embedding_signature: str) -> bool:
    """Tell whether the index being built is what the settings would build today."""
    found = live_index(client, next_alias(settings.retrieval.index_name))
    return found is not None and _is_as_configured(found, settings, embedding_signature)


def swap(client: IndexClient, settings: Settings, build: Build, *, old: str | None, embedding_signature: str) -> None:
    """Put the new index in the place of the old one, in one step; who reads or writes meets one of the two.

    The new index keeps its alias `next` until `settle`: a sign for who comes after a crash. Raises if `old` is no
    longer the live index.
    """
    name = settings.retrieval.index_name
    add = [name, fitting_alias(settings.retrieval, embedding_signature=embedding_signature)]
    actions: list[dict[str, Any]] = [{"add": {"index": build.name, "alias": alias}} for alias in add]
    if old is not None:
        actions += [
            {"remove": {"index": old, "alias": name, "must_exist": True}},
            {"remove": {"index": old, "aliases": _written_through(client, old, name), "must_exist": False}},
            {"add": {"index": old, "alias": previous_alias(name)}},
        ]
    client.request("POST", "/_aliases", {"actions": actions}, target=build.name)


def settle(client: IndexClient, settings: Settings, build: Build) -> None:
    """Take the alias `next` away: nothing is being built any more."""
    alias = next_alias(settings.retrieval.index_name)
    client.request("POST", "/_aliases", {"actions": [{"remove": {"index": build.name, "alias": alias}}]}, target=alias)


def discard(client: IndexClient, settings: Settings) -> str | None:
    """Delete the index being built, unless it is the live one; return its name."""
    build, live = building(client, settings), live_index(client, settings.retrieval.index_name)
    if build is None or (live is not None and live.name == build.name):
        return None
    client.request("DELETE", f"/{quote(build.name)}", target=build.name)
    return build.name


def previous(client: IndexClient, settings: Settings) -> list[str]:
    """Return the names of the indices that were live before and are kept."""
    return sorted(_behind(client, previous_alias(settings.retrieval.index_name)))


def drop_previous(client: IndexClient, settings: Settings) -> list[str]:
    """Delete the indices that were live before; return their names. Raises if no index is live."""
    live = live_index(client, settings.retrieval.index_name)
    if live is None:
        text = f"No index is live behind {settings.retrieval.index_name!r}: the old ones stay. Run `ki reindex` first."
        raise IndexMappingError(text)
    old = [name for name in previous(client, settings) if name != live.name]
    for name in old:
        client.request("DELETE", f"/{quote(name)}", target=name)
    return old


def _free_name(client: IndexClient, settings: Settings, embedding_signature: str) -> str:
    """Return the name by schema and vector space, with the number of a generation if it is taken."""
    taken = client.request("GET", f"/{quote(settings.retrieval.index_name)}-*/_settings/index.uuid")
    generation = 1
    while True:
        suffix = "" if generation == 1 else f"-g{generation}"
        name = concrete_name(settings.retrieval, embedding_signature=f"{embedding_signature}{suffix}")
        if name not in taken:
            return name
        generation += 1


def _is_as_configured(found: LiveIndex, settings: Settings, embedding_signature: str) -> bool:
    body = index_body(settings.retrieval, embedding_signature=embedding_signature)
    meta: Mapping[str, Any] = found.mappings.get("_meta", {})
    try:
        refuse_differences(found, body, settings.retrieval)
    except IndexMappingError:
        return False
    return (
        not missing_fields(found, body)
        and meta.get("schema") == body["mappings"]["_meta"]["schema"]
        and meta.get(_META_KEY, {}).get("rows") == _row_settings(settings)
        and fits(vector_field(settings.retrieval), found.mappings["properties"][fields.EMBEDDING])
    )


def _remembered(build: Build, settings: Settings) -> dict[str, Any]:
    note = {
        "since": build.since.isoformat(),
        "copied": build.copied,
        "rejected": build.rejected,
        "rows": _row_settings(settings),
    }
    return {_META_KEY: note}


def _row_settings(settings: Settings) -> list[Any]:
    """Return the settings that shape rows but not the mapping: half an index of each is no index."""
    return [settings.retrieval.chunk_contextualize, settings.ingest.max_identifier_chars]


def _written_through(client: IndexClient, index: str, index_name: str) -> list[str]:
    """Return the aliases that rows of `index` are written through; a wildcard would match other deployments' too."""
    prefix = f"{index_name}-for-"
    described = client.request("GET", f"/{quote(index)}/_alias", target=index)
    return [alias for alias in described[index]["aliases"] if alias.startswith(prefix)] or [f"{prefix}none"]


def _behind(client: IndexClient, alias: str) -> list[str]:
    answer = client.request("GET", f"/{quote(alias)}?ignore_unavailable=true&allow_no_indices=true", target=alias)
    return list(answer)
