"""The audit trail: who asked what, with what outcome. Query texts enter it only as keyed hashes.

A search or a read that cannot be audited fails: the row is written before the answer leaves.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from shared.db.tables.audit import audit_events
from shared.errors import MisconfiguredError
from shared.types import Principal

ALLOWED: Final = "allowed"
NOT_VISIBLE: Final = "not_visible"
_MIN_KEY_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One row. `detail` holds ids of what left the house; never text, titles or paths."""

    action: str
    subject: str
    principals: Collection[Principal]
    outcome: str
    scope_fingerprint: str | None = None
    query_hash: str | None = None
    query_chars: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    correlation_id: str | None = None


def insertion(entry: AuditEntry) -> sa.Insert:
    """Return the statement that appends the entry."""
    # Inline: nothing comes back. The roles that add to the trail may not read it, and RETURNING reads.
    statement = sa.insert(audit_events).inline()
    return statement.values(
        action=entry.action,
        subject=entry.subject,
        principals=sorted(entry.principals),
        outcome=entry.outcome,
        scope_fingerprint=entry.scope_fingerprint,
        query_hash=entry.query_hash,
        query_chars=entry.query_chars,
        detail=dict(entry.detail),
        correlation_id=entry.correlation_id,
    )


class AuditHasher:
    """Keyed hashes (HMAC-SHA-256): equal queries can be counted, none can be guessed without the key."""

    def __init__(self, key: bytes) -> None:
        if len(key) < _MIN_KEY_BYTES:
            raise MisconfiguredError(f"the audit key must have at least {_MIN_KEY_BYTES} bytes")
        self._key = key

    @classmethod
    def from_key_file(cls, path: str | None) -> AuditHasher:
        """Return the hasher whose key is the file's content, without the line end an editor leaves."""
        if path is None:
            raise MisconfiguredError("audit.hmac_key_file is not set; set KI_AUDIT__HMAC_KEY_FILE")
        try:
            return cls(Path(path).read_bytes().strip())
        except OSError as error:
            raise MisconfiguredError(f"the audit key file cannot be read: {type(error).__name__}") from error

    def hash(self, text: str) -> str:
        """Return the hash of a query text, in hex."""
        return hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def derived_key(self, label: str) -> bytes:
        """Return a key of 32 bytes for another purpose. No text hashes to it: it is cut from another hash function."""
        return hmac.new(self._key, label.encode(), hashlib.sha512).digest()[:32]
