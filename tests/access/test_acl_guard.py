from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from shared.db.engine import make_engine, sqlstate
from shared.settings import load_settings
from tests.access.world import World, id_of, write

GRANT = "insert into source_object_grants values (:o, 'user:anna', 'allow')"
UNKNOWN = "update source_objects set acl_state = 'unknown' where id = :o"
CHECK_VIOLATION = "23514"


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    made = make_engine(load_settings({"KI_DATABASE__URL": database_url}).database)
    world = World().document("d").source("s", "local_fs").file("known", "s", "d", acl=()).file("unknown", "s", "d")
    with made.begin() as connection:
        write(connection, world)
    yield made
    made.dispose()


def test_an_unknown_acl_takes_no_grant(engine: sa.Engine) -> None:
    with engine.connect() as connection, pytest.raises(sa.exc.DBAPIError) as refused:
        connection.execute(sa.text(GRANT), {"o": id_of("object/unknown")})
    assert sqlstate(refused.value) == CHECK_VIOLATION


def test_an_acl_with_grants_does_not_become_unknown(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        connection.execute(sa.text(GRANT), {"o": id_of("object/known")})
        with pytest.raises(sa.exc.DBAPIError) as refused:
            connection.execute(sa.text(UNKNOWN), {"o": id_of("object/known")})
    assert sqlstate(refused.value) == CHECK_VIOLATION


@pytest.mark.parametrize("order", [(GRANT, UNKNOWN), (UNKNOWN, GRANT)], ids=["grant first", "state first"])
def test_two_sessions_cannot_make_it_together(engine: sa.Engine, order: tuple[str, str]) -> None:
    """Each alone is allowed and neither sees the other's row: one waits for the other and is then refused."""
    target = {"o": id_of("object/known")}
    outcome: list[str | None] = []

    def rival() -> None:
        try:
            with engine.begin() as connection:
                connection.execute(sa.text(order[1]), target)
            outcome.append("committed")
        except sa.exc.DBAPIError as error:
            outcome.append(sqlstate(error))

    with engine.connect() as connection:
        connection.execute(sa.text(order[0]), target)
        thread = threading.Thread(target=rival)
        thread.start()
        waiting = sa.text("select count(*) from pg_stat_activity where wait_event_type = 'Lock'")
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as observer:
            for _ in range(2000):
                if observer.scalar(waiting) or outcome:
                    break
        connection.commit()
        thread.join(timeout=20)
    assert outcome == [CHECK_VIOLATION]
