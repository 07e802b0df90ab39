"""Files of ACLs and memberships in the bucket of uploads, below `_acl/`: applied when they come.

The key is `_acl/<source id>/<any name>`. A file that is deleted takes nothing back: what it said is in force until a
newer one says otherwise. Events come twice and in any order; the file's own time decides, not theirs.
"""

from __future__ import annotations

import tempfile
from typing import BinaryIO, Final, Protocol
from uuid import UUID

from shared.access.caller import Caller
from shared.access.sync import AccessSync, FileReport
from shared.errors import InvalidRequestError
from shared.ingest.events import ACLS, Change, ObjectEvent
from shared.types import SourceId

_BUCKET: Final = Caller("bucket", frozenset())


class AclBucket(Protocol):
    """The bucket that sources keep their files in, as it is now."""

    @property
    def name(self) -> str:
        """The bucket's name."""

    def copy_to(self, key: str, file: BinaryIO) -> bool:
        """Write what lies under the key to the file; return whether anything does."""


class AclUploads:
    """Applies the files as `AccessSync.file` does. Safe to call twice."""

    def __init__(self, sync: AccessSync, bucket: AclBucket) -> None:
        self._sync = sync
        self._bucket = bucket

    def take(self, event: ObjectEvent) -> FileReport | None:
        """Return what came of the file, None if the event brings none.

        Raises `InvalidRequestError` for another bucket or a key without a source, and what `AccessSync.file` raises.
        """
        if event.bucket != self._bucket.name:
            raise InvalidRequestError(f"uploads lie in {self._bucket.name}, not in {event.bucket}", field="bucket")
        if event.change is not Change.CREATED or event.is_folder:
            return None
        source_id = _source_id(event.key)
        # Read twice, from where it cannot change: the bucket may hold another file at the second reading.
        with tempfile.TemporaryFile() as file:
            if not self._bucket.copy_to(event.key, file):
                return None
            return self._sync.file(_BUCKET, source_id, file)


def _source_id(key: str) -> SourceId:
    name, _, rest = key.removeprefix(ACLS).partition("/")
    try:
        found = UUID(name)
    except ValueError:
        found = None
    if found is None or not rest or not key.startswith(ACLS):
        raise InvalidRequestError(f"the key {key[:200]!r} is not {ACLS}<source id>/<name>", field="key")
    return SourceId(found)
