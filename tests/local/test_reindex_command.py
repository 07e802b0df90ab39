"""`ki up` says when the index does not fit, `ki reindex` makes it fit, and `ki up` works again."""

from __future__ import annotations

import json
from dataclasses import replace
from uuid import uuid4

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from local import prepare as preparing
from local import stack
from local.cli import reindex as reindex_command
from local.cli.main import main
from local.paths import Layout
from local.stack import PartStatus
from local.state import Part
from shared.db.tables.catalog import document_versions
from shared.errors import IndexMappingError
from shared.index import generations
from shared.index.ensure import live_index
from shared.index.writer import IndexWriter
from shared.runtime import bootstrap
from shared.settings import load_settings
from tests.index.firm import Firm
from tests.stub_embedding import StubEmbedding


class Product:
    """A stack's engines, with a model whose width can be changed."""

    def __init__(self, database_url, opensearch_url):
        self.env = {
            "KI_DATABASE__URL": database_url,
            "KI_OPENSEARCH__URL": opensearch_url,
            "KI_RETRIEVAL__INDEX_NAME": f"t{uuid4().hex}",
        }
        self.set_width(16)

    def set_width(self, width):
        self.env["KI_RETRIEVAL__EMBEDDING_DIMENSIONS"] = str(width)
        self.model = StubEmbedding(dimensions=width)

    def services(self, settings=None):
        return bootstrap.Services(settings or load_settings(self.env), {"embedding": self.model})

    def live(self):
        parts = self.services()
        try:
            return live_index(parts.index, parts.settings.retrieval.index_name).name
        finally:
            parts.close()


@pytest.fixture
def product(database_url, opensearch_url, tmp_path, monkeypatch):
    made = Product(database_url, opensearch_url)
    layout = replace(Layout.of(), state=tmp_path / "local", cache=tmp_path / "cache")
    monkeypatch.setattr(Layout, "of", classmethod(lambda _cls, *_args: layout))
    monkeypatch.setattr(reindex_command, "services_on_engines", made.services)
    monkeypatch.setattr(bootstrap, "build", made.services)
    preparing.prepare(made.env)
    parts = made.services()
    firm = Firm(parts.engine)
    for number in range(3):
        firm.indexed(f"Vertrag {number}")
    IndexWriter(parts.engine, parts.index, made.model, parts.settings).drain(10)
    yield made
    parts.index.request("DELETE", f"/{made.env['KI_RETRIEVAL__INDEX_NAME']}-*?ignore_unavailable=true")
    parts.close()


def run(*words):
    return CliRunner().invoke(main, words)


def test_from_an_index_that_does_not_fit_to_one_that_does(product):
    old = product.live()
    product.set_width(24)
    with pytest.raises(IndexMappingError, match="ki reindex"):
        preparing.prepare(product.env)
    assert product.live() == old

    answer = run("reindex", "--json")
    assert answer.exit_code == 0
    report = json.loads(answer.stdout)
    assert (report["versions"], report["rows_compared"], report["previous"]) == (3, 3, [old])
    assert product.live() == report["index"]
    preparing.prepare(product.env)

    dropped = run("reindex", "--drop-old", "--json")
    assert (dropped.exit_code, json.loads(dropped.stdout)) == (0, {"dropped": [old]})
    assert "there is no old index" in run("reindex", "--drop-old").stdout


def test_for_people_it_names_what_is_live_and_what_is_kept(product):
    old = product.live()
    result = run("reindex")
    assert result.exit_code == 0
    assert f"{old}-g2" in result.stdout
    assert f"kept     {old} (ki reindex --drop-old deletes it)" in result.stdout


@pytest.mark.parametrize(("pid", "started"), [(4711, [True]), (None, [])])
def test_a_server_with_earlier_settings_is_started_anew(product, monkeypatch, pid, started):
    ups = []
    serving = PartStatus(Part.SERVE, "http://127.0.0.1", pid, healthy=pid is not None)
    monkeypatch.setattr(stack, "status", lambda: [serving])
    monkeypatch.setattr(stack, "up", lambda **_kwargs: ups.append(product.live().endswith("-g2")))
    assert run("reindex").exit_code == 0
    assert ups == started


def test_a_second_run_beside_the_first_is_a_no(product):
    parts = product.services()
    with parts.engine.connect() as holder:
        holder.execute(sa.select(sa.func.pg_advisory_xact_lock(0x6B695F7265696478)))
        result = run("reindex", "--json")
    parts.close()
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["type"] == "ConflictError"


def test_the_next_start_writes_what_a_dead_rebuild_left_out(product, monkeypatch):
    parts = product.services()
    firm = Firm.__new__(Firm)
    firm.engine = parts.engine
    swap = generations.swap

    def late(*args, **kwargs):
        version_id = firm.entries()[0].version_id
        with parts.engine.begin() as connection:
            rename = sa.update(document_versions).where(document_versions.c.id == version_id)
            connection.execute(rename.values(title="Neuer Titel"))
        firm.queue(version_id)
        IndexWriter(parts.engine, parts.index, StubEmbedding(dimensions=16), load_settings(old_env)).drain(10)
        swap(*args, **kwargs)
        raise KeyboardInterrupt

    old_env = dict(product.env)
    product.set_width(24)
    with monkeypatch.context() as patched:
        patched.setattr(generations, "swap", late)
        assert run("reindex").exit_code != 0
    alias = product.env["KI_RETRIEVAL__INDEX_NAME"]
    parts.index.refresh(alias)
    assert parts.index.count(alias, {"match": {"title": "Neuer"}}) == 0
    preparing.prepare(product.env)
    parts.index.refresh(alias)
    assert parts.index.count(alias, {"match": {"title": "Neuer"}}) == 1
    parts.close()


def test_up_with_an_index_that_does_not_fit_says_so(monkeypatch):
    def unfit(**_kwargs):
        raise IndexMappingError("The vectors differ. Rebuild with `ki reindex`.")

    monkeypatch.setattr(stack, "up", unfit)
    result = run("up", "--json")
    assert result.exit_code == 1
    assert "ki reindex" in json.loads(result.stdout)["error"]["message"]
    assert "PostgreSQL and OpenSearch run" in result.stderr


def test_without_engines_it_says_what_to_start(tmp_path, monkeypatch):
    layout = replace(Layout.of(), state=tmp_path / "local", cache=tmp_path / "cache")
    monkeypatch.setattr(Layout, "of", classmethod(lambda _cls, *_args: layout))
    result = run("reindex")
    assert result.exit_code == 3
    assert "ki up" in result.stderr
