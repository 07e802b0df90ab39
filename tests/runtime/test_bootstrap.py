"""The composition root."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from shared.errors import EngineUnavailableError, MisconfiguredError
from shared.providers.storage import FileStore
from shared.runtime import bootstrap
from shared.runtime.bootstrap import Services, build
from shared.settings import load_settings


@pytest.fixture(autouse=True)
def nothing_installed() -> Iterator[None]:
    bootstrap.reset()
    yield
    bootstrap.reset()


def counting(**environment: str) -> Services:
    return build(load_settings({"KI_DATABASE__URL": "postgresql+pg8000://ki@127.0.0.1:9/ki", **environment}))


def test_one_set_of_services_serves_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KI_RETRIEVAL__INDEX_NAME", "one")
    first = bootstrap.services()
    assert bootstrap.services() is first
    monkeypatch.setenv("KI_RETRIEVAL__INDEX_NAME", "two")
    assert bootstrap.services().settings.retrieval.index_name == "one"
    bootstrap.reset()
    assert bootstrap.services().settings.retrieval.index_name == "two"


def test_a_part_is_made_once_however_many_ask_at_once() -> None:
    parts = counting()
    gate = threading.Barrier(16)

    def ask(_: int) -> Any:
        gate.wait(timeout=10)
        return parts.engine

    with ThreadPoolExecutor(16) as pool:
        assert len({id(engine) for engine in pool.map(ask, range(16))}) == 1
    parts.close()


def test_a_part_that_could_not_be_made_is_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    from shared.index import ensure

    parts = counting(KI_OPENSEARCH__URL="http://127.0.0.1:9", KI_RETRIEVAL__EMBEDDING_DIMENSIONS="384",
                     KI_EMBEDDING__PROVIDER="local_e5", KI_EMBEDDING__MODEL_ID="multilingual-e5-small")  # fmt: skip
    asked: list[int] = []

    def check(*_: Any, **__: Any) -> str:
        asked.append(1)
        if len(asked) == 1:
            raise EngineUnavailableError
        return "index"

    monkeypatch.setattr(ensure, "check_index", check)
    with pytest.raises(EngineUnavailableError):
        _ = parts.checked_index
    assert parts.checked_index is parts.index
    assert parts.checked_index is parts.index
    assert len(asked) == 2
    parts.close()


def test_a_part_can_be_handed_in_and_a_misspelt_one_is_refused(tmp_path: Any) -> None:
    store = FileStore(tmp_path)
    assert build(load_settings({}), store=store).store is store
    with pytest.raises(MisconfiguredError, match="stroe"):
        build(load_settings({}), stroe=store)


@pytest.mark.parametrize(
    ("part", "setting"),
    [
        ("engine", "KI_DATABASE__URL"),
        ("index", "KI_OPENSEARCH__URL"),
        ("store", "KI_STORAGE__BUCKET"),
        ("verifier", "KI_IDENTITY__JWKS_URL"),
        ("hasher", "KI_AUDIT__HMAC_KEY_FILE"),
    ],
)
def test_a_missing_setting_is_named_by_the_part_that_needs_it(part: str, setting: str) -> None:
    with pytest.raises(MisconfiguredError, match=setting):
        getattr(build(load_settings({})), part)


def test_the_aws_edges_are_made_without_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "eu-central-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    parts = build(
        load_settings(
            {
                "KI_DATABASE__URL": "postgresql+pg8000://ki@db.kanzlei.example:5432/ki",
                "KI_DATABASE__IAM_AUTH": "true",
                "KI_OPENSEARCH__URL": "https://search.kanzlei.example",
                "KI_OPENSEARCH__AUTH": "sigv4",
                "KI_OPENSEARCH__REGION": "eu-central-1",
                "KI_STORAGE__BUCKET": "kanzlei",
            }
        )
    )
    assert parts.engine.url.host == "db.kanzlei.example"
    assert parts.index is parts.index
    link = parts.store.presigned_url("originals/ab", file_name="Begründung.pdf", expires_s=60)
    assert link is not None
    assert "X-Amz-Expires=60" in link
    from shared.runtime.aws import database_password

    token = database_password(str(parts.engine.url))()
    assert token.startswith("db.kanzlei.example:5432/?Action=connect&DBUser=ki&")
    parts.close()
