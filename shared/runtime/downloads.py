"""A download as an answer: a link as JSON, or the bytes under a name that every browser understands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from shared.runtime.http import Bytes

if TYPE_CHECKING:
    from shared.catalog.documents import Download

# RFC 9110, section 8.3.1. What a file says about itself goes into a header only in this form.
_MEDIA_TYPE: Final = re.compile(r"[a-zA-Z0-9!#$&^_.+-]{1,100}/[a-zA-Z0-9!#$&^_.+-]{1,100}")
_UNKNOWN: Final = "application/octet-stream"


def download_answer(found: Download) -> object:
    """Return the body of GET /documents/{id}/download."""
    if found.content is None:
        return {
            "url": found.link,
            "expires_in_s": found.link_lifetime_s,
            "name": found.name,
            "mime": found.mime,
            "size_bytes": found.size_bytes,
            "sha256": found.sha256,
        }
    from shared.providers.storage.s3 import content_disposition  # noqa: PLC0415

    mime = found.mime if _MEDIA_TYPE.fullmatch(found.mime) else _UNKNOWN
    # A stored page must never run in the API's name, whatever a browser makes of it.
    return Bytes(
        found.content,
        {
            "content-type": mime,
            "content-disposition": content_disposition(found.name),
            "content-security-policy": "sandbox; default-src 'none'",
        },
    )
