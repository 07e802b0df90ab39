"""Original bytes out of a bucket and out of a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import boto3
import pytest
import sqlalchemy as sa
from moto import mock_aws

from shared.catalog.documents import MAX_INLINE_BYTES
from shared.db.tables.catalog import document_versions
from shared.providers.storage import S3Store
from shared.runtime import bootstrap
from shared.runtime.bootstrap import build
from tests.functions.api import Api
from tests.functions.firm import CONTROL, Firm


@pytest.fixture
def bucket(firm: Firm, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The firm with a bucket for its originals."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        client = boto3.client("s3", region_name="eu-central-1")
        client.create_bucket(Bucket="kanzlei", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        parts = build(firm.parts.settings, embedding=firm.parts.embedding, store=S3Store(client, "kanzlei"))
        bootstrap.install(parts)
        yield client
        parts.close()


def test_a_bucket_serves_a_link_under_the_file_s_name(
    api: Api, firm: Firm, bucket: Any, token_of: Callable[[str], str]
) -> None:
    with firm.parts.engine.begin() as connection:
        connection.execute(
            sa.text("update source_objects set name = 'Begründung – Anlage K1.txt' where id = :id"),
            {"id": firm.objects[CONTROL]},
        )
    reply = api.get(f"/documents/{firm.documents[CONTROL]}/download", token_of("anna"))
    assert reply.status == 200
    assert reply.json["name"] == "Begründung – Anlage K1.txt"
    assert reply.json["expires_in_s"] == 120
    query = parse_qs(urlsplit(reply.json["url"]).query)
    [disposition] = query["response-content-disposition"]
    assert unquote(disposition.partition("filename*=UTF-8''")[2]) == "Begründung – Anlage K1.txt"
    # A key is a hash: nothing of a name or a path is in the address itself.
    assert urlsplit(reply.json["url"]).path.endswith(f"/originals/{reply.json['sha256']}")


def test_who_may_not_see_the_document_gets_no_link(
    api: Api, firm: Firm, bucket: Any, token_of: Callable[[str], str]
) -> None:
    reply = api.get(f"/documents/{firm.documents[CONTROL]}/download", token_of("dora"))
    assert reply.status == 404
    assert "originals" not in reply.everything


def test_a_text_that_the_store_lost_is_a_fault_without_details(
    api: Api, firm: Firm, bucket: Any, token_of: Callable[[str], str]
) -> None:
    reply = api.get(f"/documents/{firm.documents[CONTROL]}", token_of("anna"))
    assert (reply.status, "detail" in reply.json) == (500, False)


def test_a_large_file_in_a_folder_is_too_large_to_hand_out(
    api: Api, firm: Firm, token_of: Callable[[str], str]
) -> None:
    version = document_versions.c.id == firm.versions[CONTROL]
    with firm.parts.engine.begin() as connection:
        before = connection.execute(sa.select(document_versions.c.size_bytes).where(version)).scalar_one()
        connection.execute(sa.update(document_versions).where(version).values(size_bytes=MAX_INLINE_BYTES + 1))
    try:
        reply = api.get(f"/documents/{firm.documents[CONTROL]}/download", token_of("anna"))
        assert reply.status == 413
    finally:
        with firm.parts.engine.begin() as connection:
            connection.execute(sa.update(document_versions).where(version).values(size_bytes=before))
