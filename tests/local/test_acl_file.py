"""An ACL file means exactly one thing, or is refused: a misread one would leave a file open."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from local.acl_file import AclFile, apply
from shared.db.engine import make_engine
from shared.db.tables.access import source_object_grants
from shared.db.tables.sources import source_objects
from shared.errors import InvalidRequestError
from shared.ingest import objects
from shared.ingest.objects import MemberRow
from shared.settings import load_settings
from shared.sources.base import FoundObject
from shared.sources.config import SourceConfig
from shared.types import SourceId

NOW = datetime(2026, 6, 1, tzinfo=UTC)
PATHS = ("akte/post.eml", "akte/Übergabe.txt")


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    made = make_engine(load_settings({"KI_DATABASE__URL": database_url}).database)
    yield made
    made.dispose()


@pytest.fixture
def source_id(engine: sa.Engine) -> SourceId:
    """A source with two files; the mail holds two attachments of one name."""
    with engine.begin() as connection:
        made = objects.ensure_source(connection, "ablage", SourceConfig())
        found = [FoundObject(path, path, path.rpartition("/")[2]) for path in PATHS]
        ids = objects.register(connection, made, found)
        row = connection.execute(sa.select(*objects.columns()).where(source_objects.c.id == ids["akte/post.eml"])).one()
        members = [MemberRow(position, "Anlage.txt", f"{position}" * 64) for position in (1, 2)]
        objects.register_members(connection, objects.ObjectRow(*row), members, most=10)
    return made


def read(tmp_path: Path, text: str) -> AclFile:
    file = tmp_path / "acl.json"
    file.write_text(text, encoding="utf-8")
    return AclFile.read(file)


def states(engine: sa.Engine) -> dict[str, str]:
    with engine.connect() as connection:
        rows = connection.execute(sa.select(source_objects.c.external_id, source_objects.c.acl_state)).all()
    return {row.external_id: row.acl_state for row in rows}


@pytest.mark.parametrize(
    "text",
    [
        '{"objects": {"akte/post.eml": null, "akte/post.eml": [{"principal": "group:alle"}]}}',
        '{"objects": {"akte/post.eml": [{"principal": "user:a", "effect": "deny", "effect": "allow"}]}}',
        '{"memberships": {"group:a": ["user:a"], "group:a": ["user:b"]}}',
        '{"objects": {"akte/post.eml": [{"principal": "user:a", "efect": "deny"}]}}',
        '{"objects": {"akte/post.eml": "nobody"}}',
        '{"object": {}}',
        "[]",
        "",
        "[" * 100_000,
    ],
    ids=lambda text: text[:60],
)
def test_an_ambiguous_or_wrong_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"^acl\.json: "):
        read(tmp_path, text)


def test_what_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="cannot be read"):
        AclFile.read(tmp_path)


def test_a_path_in_two_unicode_forms_is_refused_and_changes_nothing(
    tmp_path: Path, engine: sa.Engine, source_id: SourceId
) -> None:
    text = '{"objects": {"akte/\u00dcbergabe.txt": null, "akte/U\u0308bergabe.txt": [{"principal": "group:alle"}]}}'
    with pytest.raises(InvalidRequestError, match="twice"):
        apply(engine, source_id, read(tmp_path, text), as_of=NOW)
    assert set(states(engine).values()) == {"unknown"}


@pytest.mark.parametrize("path", ["akte/post.eml/Anlage.txt", "akte/Uebergabe.txt"])
def test_a_path_that_is_no_file_of_the_source_is_refused_and_changes_nothing(
    tmp_path: Path, engine: sa.Engine, source_id: SourceId, path: str
) -> None:
    text = f'{{"objects": {{"akte/post.eml": null, "{path}": [{{"principal": "user:a"}}]}}}}'
    with pytest.raises(InvalidRequestError, match="no object"):
        apply(engine, source_id, read(tmp_path, text), as_of=NOW)
    assert set(states(engine).values()) == {"unknown"}


def test_a_file_s_acl_closes_everything_in_it(tmp_path: Path, engine: sa.Engine, source_id: SourceId) -> None:
    counts = apply(engine, source_id, read(tmp_path, '{"objects": {"akte/post.eml": null}}'), as_of=NOW)
    assert counts["changed"] == 1
    assert states(engine) == {
        "akte/post.eml": "known",
        "akte/post.eml!/1/Anlage.txt": "known",
        "akte/post.eml!/2/Anlage.txt": "known",
        "akte/Übergabe.txt": "unknown",
    }
    with engine.connect() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(source_object_grants)).scalar_one() == 0
