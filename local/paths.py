"""Where a checkout keeps what the local stack makes; all of it below `.ki/`, which git does not track."""

from __future__ import annotations

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent


def state_folder(checkout: Path) -> Path:
    """Return the folder of data, ports, keys and logs of this checkout's stack."""
    return checkout / ".ki" / "local"


def distributions_folder(checkout: Path) -> Path:
    """Return the folder of the fetched OpenSearch, which outlives the data."""
    return checkout / ".ki" / "opensearch-dist"
