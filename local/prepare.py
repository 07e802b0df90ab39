"""What the engines need before the product runs on them: the one hook between the stack and the core."""

from __future__ import annotations

from collections.abc import Mapping


def prepare(env: Mapping[str, str]) -> None:
    """Bring the schema and the index to what this version of the product expects.

    Called at every `ki up` with the stack's environment, after both engines answer and before anything is
    served. Safe to call again; raises when it cannot do its work, `IndexMappingError` if the index must be rebuilt.
    """
    # Alembic and the model are slow to import, and `ki token` needs neither.
    from shared.db.migrate import upgrade  # noqa: PLC0415
    from shared.index.ensure import ensure_index  # noqa: PLC0415
    from shared.index.reindex import finish_interrupted  # noqa: PLC0415
    from shared.runtime.bootstrap import build  # noqa: PLC0415
    from shared.settings import load_settings  # noqa: PLC0415

    upgrade(env["KI_DATABASE__URL"])
    parts = build(load_settings(env))
    try:
        left_out = finish_interrupted(parts.engine, parts.index, parts.settings)
        ensure_index(parts.index, parts.settings.retrieval, embedding_signature=parts.embedding.signature)
        if left_out:
            parts.writer.drain(left_out)
    finally:
        parts.close()
