"""Advisory locks: one worker at an object, one decision at a time about the documents of a matter."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from shared.db.prepared import hot
from shared.types import SourceObjectId

_KEY = sa.bindparam("key", type_=sa.BigInteger)
_TRY = hot(sa.select(sa.func.pg_try_advisory_lock(_KEY)))
_UNLOCK = hot(sa.select(sa.func.pg_advisory_unlock(_KEY)))
_WAIT = sa.select(sa.func.pg_advisory_xact_lock(_KEY))


@contextmanager
def object_lock(connection: sa.Connection, object_id: SourceObjectId) -> Iterator[bool]:
    """Yield whether this session holds the object now; `connection` is kept in autocommit and does nothing else.

    The lock ends with the block, or with the session when the worker is killed.
    """
    key = lock_key("object", str(object_id))
    held = bool(connection.execute(_TRY, {"key": key}).scalar_one())
    try:
        yield held
    finally:
        if held:
            connection.execute(_UNLOCK, {"key": key})


def lock_documents(connection: sa.Connection, places: Iterable[str]) -> None:
    """Wait until this transaction alone decides about documents of these places; in order, so never a deadlock."""
    for key in sorted({lock_key("documents", place) for place in places}):
        connection.execute(_WAIT, {"key": key})


def place_name(project_key: str | None, matter_key: str | None) -> str:
    """Return the name under which decisions about the documents of a place are serialised."""
    return json.dumps([project_key, matter_key], ensure_ascii=False)


def lock_key(kind: str, name: str) -> int:
    """Return the 64-bit key of a lock."""
    digest = hashlib.sha256(f"{kind}:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
