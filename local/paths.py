"""Where a checkout keeps what the local stack makes; all of it below `.ki/`, which git does not track."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

CHECKOUT = Path(__file__).resolve().parent.parent


def distributions_folder(checkout: Path) -> Path:
    """Return the folder of the fetched OpenSearch, which outlives the data."""
    return checkout / ".ki" / "opensearch-dist"


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of one stack. `heap` is the OpenSearch JVM's; `throwaway` trades crash safety for speed."""

    state: Path
    distributions: Path
    cache: Path
    heap: str = "1g"
    throwaway: bool = False

    @classmethod
    def of(cls, checkout: Path = CHECKOUT) -> Self:
        """Return the layout of a checkout."""
        kept = checkout / ".ki"
        return cls(state=kept / "local", distributions=distributions_folder(checkout), cache=kept / "cache")

    @property
    def state_file(self) -> Path:
        """Ports and processes."""
        return self.state / "state.json"

    @property
    def lock_file(self) -> Path:
        """Held by the one command that changes the stack."""
        return self.state / "lock"

    @property
    def postgres(self) -> Path:
        """The cluster's data folder."""
        return self.state / "postgres" / "data"

    @property
    def opensearch(self) -> Path:
        """The node's home."""
        return self.state / "opensearch"

    @property
    def storage(self) -> Path:
        """Original bytes and converted texts."""
        return self.state / "storage"

    @property
    def signing_key(self) -> Path:
        """The token issuer's private key."""
        return self.state / "keys" / "issuer.pem"

    @property
    def audit_key(self) -> Path:
        """The secret for keyed hashes in the audit trail."""
        return self.state / "keys" / "audit.key"

    def log(self, part: str) -> Path:
        """Return the log file of a part."""
        return self.state / "log" / f"{part}.log"
