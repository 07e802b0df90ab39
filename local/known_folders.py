"""Where sources lie, as seen from this machine: remembered at `ki ingest`, needed to read a file again."""

from __future__ import annotations

import json
from pathlib import Path

from local.paths import Layout
from local.private_file import write_private

BUCKET = "s3://"


def remember(source: str, place: Path | str, layout: Layout | None = None) -> None:
    """Remember the folder of a source, or the address of its bucket, in place of an older one."""
    address = place if isinstance(place, str) else str(place.resolve())
    known = {**_read(layout), source: address}
    write_private(_file(layout), json.dumps(known, ensure_ascii=False, indent=1, sort_keys=True).encode())


def place_of(source: str, layout: Layout | None = None) -> str | None:
    """Return the source's folder or bucket; None if this machine never took it in or the folder is gone."""
    known = _read(layout).get(source)
    if known is None or known.startswith(BUCKET):
        return known
    return known if Path(known).exists() else None


def folder_of(source: str, layout: Layout | None = None) -> Path | None:
    """Return the source's folder, or None if it has none here."""
    known = place_of(source, layout)
    return None if known is None or known.startswith(BUCKET) else Path(known)


def _read(layout: Layout | None) -> dict[str, str]:
    path = _file(layout)
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _file(layout: Layout | None) -> Path:
    return (layout or Layout.of()).state / "folders.json"
