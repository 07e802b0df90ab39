"""Where the local sources lie on this machine: remembered at `ki ingest`, needed to read a file again."""

from __future__ import annotations

import json
from pathlib import Path

from local.paths import Layout
from local.private_file import write_private


def remember(source: str, folder: Path, layout: Layout | None = None) -> None:
    """Remember the folder of a source, in place of an older one."""
    known = {**_read(layout), source: str(folder.resolve())}
    write_private(_file(layout), json.dumps(known, ensure_ascii=False, indent=1, sort_keys=True).encode())


def folder_of(source: str, layout: Layout | None = None) -> Path | None:
    """Return the source's folder, or None if this machine never took it in or the folder is gone."""
    known = _read(layout).get(source)
    return Path(known) if known is not None and Path(known).exists() else None


def _read(layout: Layout | None) -> dict[str, str]:
    path = _file(layout)
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _file(layout: Layout | None) -> Path:
    return (layout or Layout.of()).state / "folders.json"
