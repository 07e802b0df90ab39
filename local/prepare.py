"""What the engines need before the product runs on them: the one hook between the stack and the core."""

from __future__ import annotations

from collections.abc import Mapping


def prepare(env: Mapping[str, str]) -> None:
    """Bring the engines to what this version of the product expects.

    Called at every `ki up` with the stack's environment, after both engines answer and before anything is
    served. Safe to call again; raises when it cannot do its work. So far the schema; the index belongs here, too.
    """
    from shared.db.migrate import upgrade  # noqa: PLC0415  # Alembic is slow to import, and `ki token` needs none

    upgrade(env["KI_DATABASE__URL"])
