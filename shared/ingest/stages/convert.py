"""Convert: the text of the original, made once for the same bytes, and the files in it as objects of their own."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.engine import reading, recording
from shared.db.prepared import hot
from shared.db.tables.content import artifacts
from shared.errors import LimitExceededError
from shared.ingest import deletions, objects
from shared.ingest.contract import Payload, Services, StageInput, StageResult
from shared.ingest.convert.formats import FORMATS, Format, Member, format_of
from shared.ingest.objects import MEMBER_MARK, MemberRow
from shared.ingest.recordset import recordset
from shared.ingest.refusals import MEMBERS_KIND
from shared.providers.storage import derived_key, original_key
from shared.text.converted import ARTIFACT_KIND
from shared.text.normalise import single_line

MAX_DEPTH = 8
_MAX_NAME_CHARS = 200
# Of the 2,500 bytes that the id of an object may have.
_MAX_FOLDER_BYTES = 600


def producer(payload: Payload) -> str:
    """Return the converter of this kind of file and its version; a kind nobody reads has a producer of its own."""
    known = FORMATS.get(payload.mime or "")
    return known.producer if known else "none/1"


def convert(call: StageInput, services: Services) -> StageResult:
    """Store the text, register the members, and hand on the text's key."""
    sha256 = call.payload.need("sha256")
    chosen = format_of(call.payload.need("mime"))
    made = _earlier(services, sha256, chosen) or _convert(call, services, sha256, chosen)
    if made[MEMBERS_KIND]:
        if len(MEMBER_MARK.findall(call.row.external_id)) >= MAX_DEPTH:
            raise LimitExceededError(f"files lie in one another more than {MAX_DEPTH} deep")
        members = [MemberRow(**row) for row in json.loads(services.store.get(made[MEMBERS_KIND]))]
        with services.engine.begin() as connection:
            objects.register_members(connection, call.row, members, most=services.settings.ingest.max_members)
    elif call.row.sha256 is not None:
        # It may have held files before its bytes changed.
        with services.engine.begin() as connection:
            deletions.tombstone_members(connection, call.row.id)
    return StageResult({kind + "_key": key for kind, key in made.items() if key})


def _earlier(services: Services, sha256: str, chosen: Format) -> dict[str, str] | None:
    """Return the storage keys of this conversion by kind if it was made before and is still stored."""
    with reading(services.engine) as connection:
        rows = connection.execute(
            _recorded(), {"sha256": sha256, "producer": chosen.name, "producer_version": chosen.version}
        )
        keys = {row.kind: row.storage_key for row in rows}
    if ARTIFACT_KIND not in keys or not all(services.store.exists(key) for key in keys.values()):
        return None
    return {MEMBERS_KIND: "", **keys}


def _convert(call: StageInput, services: Services, sha256: str, chosen: Format) -> dict[str, str]:
    content = services.store.get(call.payload.need("original_key"))
    result = services.converter.convert(chosen.name, content, timeout_s=services.settings.ingest.convert_timeout_s)
    made = {ARTIFACT_KIND: result.text.to_json()}
    if result.members:
        made[MEMBERS_KIND] = _stored_members(services, result.members)
    keys = {kind: derived_key(f"{kind}s".replace("ss", "s"), body) for kind, body in made.items()}
    for kind, body in made.items():
        services.store.put(keys[kind], body)
    rows = [
        {
            "sha256": sha256,
            "producer": chosen.name,
            "producer_version": chosen.version,
            "kind": kind,
            "storage_key": keys[kind],
            "size_bytes": len(body),
        }
        for kind, body in sorted(made.items())
    ]
    with recording(services.engine) as connection:
        connection.execute(_record(), {"made": rows})
    return {MEMBERS_KIND: "", **keys}


@cache
def _recorded() -> sa.Select[tuple[str, str]]:
    same = (artifacts.c[name] == sa.bindparam(name) for name in ("sha256", "producer", "producer_version"))
    return hot(sa.select(artifacts.c.kind, artifacts.c.storage_key).where(*same))


@cache
def _record() -> sa.Insert:
    names = ("sha256", "producer", "producer_version", "kind", "storage_key", "size_bytes")
    made = recordset("made", [artifacts.c[name] for name in names])
    insert = pg.insert(artifacts).from_select(names, sa.select(*(made.c[n] for n in names)).order_by(made.c.kind))
    changed = {name: insert.excluded[name] for name in ("storage_key", "size_bytes")}
    return hot(insert.on_conflict_do_update(index_elements=[artifacts.c[n] for n in names[:4]], set_=changed))


def _stored_members(services: Services, members: Sequence[Member]) -> bytes:
    """Store each member's bytes as an original and return the list of them; a name is data, never a path."""
    rows: list[MemberRow] = []
    seen: Counter[tuple[str, str]] = Counter()
    for position, member in enumerate(members, start=1):
        place = (member_folder(member.folder), member_name(member.name, position))
        # Two whose names were cleaned to the same are still two.
        seen[place] += 1
        sha256 = None if member.content is None else _stored(services, member.content)
        raw = member.raw_name.hex() if member.raw_name is not None else None
        refused = asdict(member.refused) if member.refused else None
        rows.append(MemberRow(seen[place], place[1], sha256, place[0], raw, refused))
    return json.dumps([asdict(row) for row in rows], ensure_ascii=False).encode()


def _stored(services: Services, content: bytes) -> str:
    sha256 = hashlib.sha256(content).hexdigest()
    key = original_key(sha256)
    if not services.store.exists(key):
        services.store.put(key, content)
    return sha256


def member_name(name: str, position: int) -> str:
    """Return the last part of a member's name, printable; "../../touch.pl" is "touch.pl"."""
    last = _parts(name)[-1]
    if len(last) > _MAX_NAME_CHARS:
        stem, dot, ending = last.rpartition(".")
        kept = f"{dot}{ending}"[:20] if dot else ""
        last = (stem or last)[: _MAX_NAME_CHARS - len(kept)] + kept
    return last or f"file {position}"


def member_folder(folder: str) -> str:
    """Return a member's folder without what leads out of it; of a long one, the end that is nearest to the file."""
    parts = [part[:_MAX_NAME_CHARS] for part in _parts(folder) if part]
    while len("/".join(parts).encode()) > _MAX_FOLDER_BYTES:
        del parts[0]
    return "/".join(parts)


def _parts(path: str) -> list[str]:
    parts = single_line(path).replace("\\", "/").rstrip("/").split("/")
    return ["".join(c for c in part if c.isprintable()).strip(". ") for part in parts]
