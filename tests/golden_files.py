"""Reviewed files that outputs are compared with: `make golden` writes them anew, the diff is the review."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"
WRITE = "KI_TEST_WRITE_GOLDEN"


def assert_golden(name: str, text: str) -> None:
    """Fail unless the golden file `name` holds exactly `text`; write it instead if asked to."""
    path = FOLDER / name
    if os.environ.get(WRITE) == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path.name} is missing; run `make golden` and review the diff"
    assert text == path.read_text(encoding="utf-8"), f"{path.name} differs; run `make golden` and review the diff"
