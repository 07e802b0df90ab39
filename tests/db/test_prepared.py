from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from local import postgres
from local.postgres import PostgresCluster
from shared.db import prepared
from shared.db.engine import make_engine, reading, sqlstate
from shared.db.prepared import hot, run_hot
from shared.db.tables.base import Json, TextArray
from shared.settings import Database, load_settings

ADDED = hot(sa.text("select cast(:number as integer) + 1"))
ECHOED = hot(sa.text("select * from echoed where number = cast(:number as integer)"))


def settings(url: str, **values: str) -> Database:
    given = {f"KI_DATABASE__{name.upper()}": value for name, value in values.items()}
    return load_settings({"KI_DATABASE__URL": url, **given}).database


@pytest.fixture(scope="module")
def url(make_database: Callable[[], str]) -> str:
    return make_database()


@pytest.fixture
def engine(url: str) -> Iterator[sa.Engine]:
    made = make_engine(settings(url, pool_size="1"))
    yield made
    made.dispose()


def names(connection: sa.Connection) -> list[Any]:
    rows = connection.execute(sa.text("select statement from pg_prepared_statements order by prepare_time"))
    return list(rows.scalars())


def test_a_hot_statement_is_prepared_once_a_connection(engine: sa.Engine) -> None:
    for number in range(3):
        with reading(engine) as connection:
            assert connection.scalar(ADDED, {"number": number}) == number + 1
    with reading(engine) as connection:
        assert names(connection) == ["select cast($1 as integer) + 1"]


@pytest.mark.parametrize("pooler", ["none", "transaction"])
def test_a_statement_run_by_its_text_gives_what_it_gives_otherwise(
    url: str, postgres_cluster: PostgresCluster, pooler: str
) -> None:
    names_, detail = sa.bindparam("names", type_=TextArray), sa.bindparam("detail", type_=Json)
    number = sa.bindparam("number", type_=sa.Integer)
    statement = hot(
        sa.select(
            sa.func.array_length(names_, 1),
            sa.literal("user:b").op("=")(sa.any_(names_)),
            sa.cast(names_, TextArray),
            detail.op("->>")(sa.literal("a")),
            number + 1,
            sa.literal_column("'50%'"),
            sa.case((sa.bindparam("missing", type_=sa.Text).is_(None), True), else_=False),
        )
    )
    database = str(sa.make_url(url).database)
    postgres.execute(postgres_cluster, f"ALTER DATABASE {database} SET statement_timeout = '15s'")
    made = make_engine(settings(url, pooler=pooler))
    try:
        for listed in (["user:a", "user:b"], ['with "marks", commas\\ and {braces}', "NULL", "", "ä"]):
            values = {"names": listed, "detail": {"a": '"ü"'}, "number": 4, "missing": None}
            with reading(made) as connection:
                by_text = [tuple(run_hot(connection, statement, values).one()) for _ in range(2)]
                assert by_text == [tuple(connection.execute(statement, values).one())] * 2
                assert by_text[0] == (len(listed), "user:b" in listed, listed, '"ü"', 5, "50%", True)
                assert values["names"] is listed
    finally:
        postgres.execute(postgres_cluster, f"ALTER DATABASE {database} RESET statement_timeout")
        made.dispose()


def test_other_statements_stay_unnamed(engine: sa.Engine) -> None:
    with reading(engine) as connection:
        assert connection.scalar(sa.text("select cast(:number as integer)"), {"number": 1}) == 1
        assert names(connection) == []


def test_in_a_transaction_nothing_is_prepared(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        assert connection.scalar(ADDED, {"number": 1}) == 2
        assert names(connection) == []


def test_behind_a_transaction_pooler_nothing_is_prepared(url: str, postgres_cluster: PostgresCluster) -> None:
    database = str(sa.make_url(url).database)
    postgres.execute(postgres_cluster, f"ALTER DATABASE {database} SET statement_timeout = '15s'")
    pooled = make_engine(settings(url, pooler="transaction"))
    try:
        with reading(pooled) as connection:
            assert connection.scalar(ADDED, {"number": 1}) == 2
            assert names(connection) == []
    finally:
        postgres.execute(postgres_cluster, f"ALTER DATABASE {database} RESET statement_timeout")
        pooled.dispose()


def test_a_changed_table_is_read_as_it_is_now(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("create table echoed (number integer)")
        connection.exec_driver_sql("insert into echoed values (1)")
    with reading(engine) as connection:
        assert connection.execute(ECHOED, {"number": 1}).all() == [(1,)]
    with engine.begin() as connection:
        connection.exec_driver_sql("alter table echoed add column word text default 'new'")
    with reading(engine) as connection:
        assert connection.execute(ECHOED, {"number": 1}).all() == [(1, "new")]
    with engine.begin() as connection:
        connection.exec_driver_sql("drop table echoed")


def test_statements_that_the_session_lost_are_prepared_again(engine: sa.Engine) -> None:
    with reading(engine) as connection:
        connection.scalar(ADDED, {"number": 1})
        connection.exec_driver_sql("deallocate all")
        assert connection.scalar(ADDED, {"number": 2}) == 3
        assert len(names(connection)) == 1


def test_a_statement_that_fails_says_why_and_leaves_the_connection_usable(engine: sa.Engine) -> None:
    wrong = hot(sa.text("select cast(:number as integer) / 0"))
    unknown = hot(sa.text("select nothing_of_the_kind where :number = '1'"))
    with reading(engine) as connection:
        for _ in range(2):
            with pytest.raises(sa.exc.ProgrammingError) as raised:
                connection.execute(wrong, {"number": 1})
            assert sqlstate(raised.value) == "22012"
            with pytest.raises(sa.exc.ProgrammingError) as raised:
                connection.execute(unknown, {"number": "1"})
            assert sqlstate(raised.value) == "42703"
        assert connection.scalar(ADDED, {"number": 2}) == 3
        assert len(names(connection)) == 2


def test_no_more_statements_are_kept_than_the_limit(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "_KEPT", 2)
    with reading(engine) as connection:
        for plus in (1, 2, 1, 3):
            statement = hot(sa.text(f"select cast(:number as integer) + {plus}"))
            assert connection.scalar(statement, {"number": 1}) == 1 + plus
        # The one that was used longest ago has gone.
        assert names(connection) == [f"select cast($1 as integer) + {plus}" for plus in (1, 3)]


def test_a_new_connection_prepares_anew(engine: sa.Engine) -> None:
    with reading(engine) as connection:
        connection.scalar(ADDED, {"number": 1})
        connection.invalidate()
    with reading(engine) as connection:
        assert names(connection) == []
        assert connection.scalar(ADDED, {"number": 1}) == 2
        assert len(names(connection)) == 1


def test_packets_are_sent_at_once_and_nothing_is_compiled(engine: sa.Engine) -> None:
    with reading(engine) as connection:
        driver: Any = connection.connection.driver_connection
        assert driver._usock.getsockopt(6, 1) == 1  # TCP_NODELAY
        assert connection.exec_driver_sql("show jit").scalar() == "off"
