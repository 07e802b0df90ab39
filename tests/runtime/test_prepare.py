"""`ki up` brings schema and index to what the product expects, as often as it is called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from local.prepare import prepare
from shared.errors import EngineUnavailableError, IndexMappingError
from shared.runtime.bootstrap import build
from shared.settings import load_settings


def test_an_empty_database_and_an_empty_engine_become_usable_and_stay_so(
    empty_database: Callable[[], str], opensearch_url: str, tmp_path: Path
) -> None:
    environment = {
        "KI_DATABASE__URL": empty_database(),
        "KI_OPENSEARCH__URL": opensearch_url,
        "KI_RETRIEVAL__INDEX_NAME": f"p{uuid4().hex}",
        "KI_RETRIEVAL__EMBEDDING_DIMENSIONS": "384",
        "KI_EMBEDDING__PROVIDER": "local_e5",
        "KI_EMBEDDING__MODEL_ID": "multilingual-e5-small",
        "KI_STORAGE__KIND": "file",
        "KI_STORAGE__ROOT": str(tmp_path),
    }
    settings = load_settings(environment)
    parts = build(settings)
    with pytest.raises(EngineUnavailableError, match="ki up"):
        _ = parts.checked_index
    prepare(environment)
    prepare(environment)
    assert parts.checked_index is parts.index
    with parts.engine.connect() as connection:
        assert connection.exec_driver_sql("select count(*) from documents").scalar_one() == 0
    # Another space cannot be had from a live index: the stack says so instead of serving wrong answers.
    with pytest.raises(IndexMappingError, match="space type"):
        prepare({**environment, "KI_RETRIEVAL__VECTOR_SPACE_TYPE": "l2"})
    parts.index.request("DELETE", f"/{settings.retrieval.index_name}-*?ignore_unavailable=true")
    parts.close()
