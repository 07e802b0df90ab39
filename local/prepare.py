"""What the engines need before the product runs on them: the one hook between the stack and the core."""

from __future__ import annotations

from collections.abc import Mapping


def prepare(env: Mapping[str, str]) -> None:
    """Bring the engines to what this version of the product expects: schema and index.

    Called at every `ki up` with the stack's environment after both engines answer and before anything is
    served. Must be safe to call again, and must raise when it cannot do its work.
    """
    # Migrations and the index are made by shared.db and shared.runtime.bootstrap.
    del env
