"""The files that `ki ingest` takes beside the documents, and what the machine remembers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from local.acl_file import AclFile, apply
from local.known_folders import folder_of, remember
from local.paths import Layout
from local.people import Membership, everybody, joined, membership_of, register
from local.source_config import source_config
from shared.db.engine import make_engine
from shared.db.tables.access import source_group_members, source_object_grants
from shared.db.tables.sources import source_objects, sources
from shared.errors import InvalidRequestError
from shared.settings import load_settings
from shared.sources.config import ProjectRef, SourceConfig
from shared.types import AclState, SourceId


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    place = replace(Layout.of(), state=tmp_path / "local", cache=tmp_path / "cache")
    place.state.mkdir()
    return place


@pytest.fixture
def engine(database_url: str):
    engine = make_engine(load_settings({"KI_DATABASE__URL": database_url}).database)
    yield engine
    engine.dispose()


@pytest.fixture
def source_id(engine: sa.Engine) -> SourceId:
    with engine.begin() as connection:
        config = SourceConfig(project=ProjectRef(key="p", title="P")).model_dump(mode="json")
        row = connection.execute(
            sa.insert(sources).values(name="akten", kind="local_fs", config=config).returning(sources.c.id)
        ).one()
        connection.execute(
            sa.insert(source_objects).values(source_id=row.id, external_id="a.txt", path="a.txt", name="a.txt")
        )
    return SourceId(row.id)


def _acl(tmp_path: Path, body: str) -> AclFile:
    file = tmp_path / "acl.json"
    file.write_text(body, encoding="utf-8")
    return AclFile.read(file)


def _state(engine: sa.Engine) -> tuple[str, str | None, list[str]]:
    with engine.connect() as connection:
        state, warning = connection.execute(sa.select(source_objects.c.acl_state, source_objects.c.acl_warning)).one()
        grants = connection.execute(sa.select(source_object_grants.c.principal)).scalars()
        return state, warning, sorted(grants)


def test_an_acl_file_is_mirrored_as_the_whole_list_and_the_same_again_changes_nothing(
    tmp_path: Path, engine: sa.Engine, source_id: SourceId
) -> None:
    snapshot = _acl(
        tmp_path,
        '{"objects": {"a.txt": [{"principal": "group:Partner"}]}, "memberships": {"group:Partner": ["user:anna"]}}',
    )
    first = apply(engine, source_id, snapshot, as_of=datetime.now(UTC))
    again = apply(engine, source_id, snapshot, as_of=datetime.now(UTC))
    assert (first["changed"], again["changed"], again["unchanged"]) == (2, 0, 2)
    assert _state(engine) == (AclState.KNOWN, None, [f"group:src.{source_id}.partner"])
    with engine.connect() as connection:
        assert connection.execute(sa.select(source_group_members.c.member_principal)).scalars().all() == ["user:anna"]


def test_an_acl_that_could_not_be_read_closes_the_object_with_a_warning(
    tmp_path: Path, engine: sa.Engine, source_id: SourceId
) -> None:
    apply(engine, source_id, _acl(tmp_path, '{"objects": {"a.txt": null}}'), as_of=datetime.now(UTC))
    state, warning, grants = _state(engine)
    assert (state, grants) == (AclState.KNOWN, [])
    assert warning is not None


def test_a_path_that_is_not_at_the_source_is_refused_and_nothing_is_written(
    tmp_path: Path, engine: sa.Engine, source_id: SourceId
) -> None:
    snapshot = _acl(tmp_path, '{"objects": {"a.txt": [], "b.txt": []}}')
    with pytest.raises(InvalidRequestError, match=r"b\.txt"):
        apply(engine, source_id, snapshot, as_of=datetime.now(UTC))
    assert _state(engine) == (AclState.UNKNOWN, None, [])


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("{", "acl.json"),
        ('{"object": {}}', "object"),
        ('{"objects": {"a": [{"principal": "user:a", "effect": "x"}]}}', "effect"),
    ],
)
def test_a_wrong_acl_file_is_refused_and_what_is_wrong_is_named(tmp_path: Path, body: str, told: str) -> None:
    with pytest.raises(InvalidRequestError, match=told):
        _acl(tmp_path, body)


def test_a_sources_configuration_is_given_or_kept_from_the_last_time(
    tmp_path: Path, engine: sa.Engine, source_id: SourceId
) -> None:
    assert source_id
    kept = source_config(engine, "akten", project=None, file=None)
    assert kept.project is not None
    assert kept.project.key == "p"
    assert source_config(engine, "neu", project=None, file=None).project is None
    file = tmp_path / "source.json"
    file.write_text('{"project": {"key": "q", "title": "Q"}, "exclude": ["*.tmp"]}', encoding="utf-8")
    given = source_config(engine, "akten", project="r", file=file)
    assert given.project is not None
    assert (given.project.key, given.exclude) == ("q", ("*.tmp",))
    file.write_text('{"projekt": {}}', encoding="utf-8")
    with pytest.raises(InvalidRequestError, match="projekt"):
        source_config(engine, "akten", project=None, file=file)


def test_the_directory_knows_people_without_regard_to_case_and_adds_groups(layout: Layout) -> None:
    register({"Anna@Kanzlei.example": Membership(("a",), admin=True)}, layout)
    register({"ben@kanzlei.example": Membership(("b",))}, layout)
    assert membership_of("anna@kanzlei.example", layout) == Membership(("a",), admin=True)
    assert membership_of("ANNA@kanzlei.example", layout).token_groups == ("a", "ki-admins")
    assert membership_of("carla@kanzlei.example", layout) == Membership()
    assert list(everybody(layout)) == ["anna@kanzlei.example", "ben@kanzlei.example"]
    assert joined(Membership(("a",)), ["b", "a"], admin=False) == Membership(("a", "b"))


def test_a_sources_folder_is_remembered_while_it_is_there(layout: Layout, tmp_path: Path) -> None:
    folder = tmp_path / "akten"
    folder.mkdir()
    remember("akten", folder, layout)
    assert folder_of("akten", layout) == folder.resolve()
    assert folder_of("andere", layout) is None
    folder.rmdir()
    assert folder_of("akten", layout) is None
