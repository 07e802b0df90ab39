from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from pg8000 import dbapi, legacy

from local import postgres
from local.ports import choose_port
from local.postgres import PostgresCluster
from shared.db.engine import make_engine, reading, run_retrying, sqlstate
from shared.errors import EngineUnavailableError, MisconfiguredError, TransientError
from shared.settings import Database, load_settings
from tests.conftest import without_tls
from tests.statements import counted


def settings(url: str | None, **values: str) -> Database:
    given = {f"KI_DATABASE__{name.upper()}": value for name, value in values.items()}
    return load_settings({"KI_DATABASE__URL": url or "", **given}).database


@pytest.fixture(scope="module")
def url(make_database: Callable[[], str]) -> str:
    return make_database()


@pytest.fixture
def engine(url: str) -> Iterator[sa.Engine]:
    made = make_engine(settings(url))
    yield made
    made.dispose()


def test_a_missing_address_says_what_to_set() -> None:
    with pytest.raises(MisconfiguredError, match="KI_DATABASE__URL"):
        make_engine(settings(None))


def test_iam_without_a_token_provider_is_refused(url: str) -> None:
    with pytest.raises(MisconfiguredError, match="iam_auth"):
        make_engine(settings(url, iam_auth="true"))


def test_every_new_connection_asks_for_a_fresh_password(url: str) -> None:
    parsed = sa.make_url(url)
    asked = []

    def password() -> str:
        asked.append(1)
        return str(parsed.password)

    made = make_engine(
        settings(parsed.set(password="outdated").render_as_string(hide_password=False), iam_auth="true"),
        password=password,
    )
    with made.connect() as one, made.connect() as two:
        assert one.scalar(sa.select(1)) == two.scalar(sa.select(1)) == 1
    assert len(asked) == 2
    made.dispose()


def test_a_statement_over_the_limit_is_a_transient_error(url: str) -> None:
    made = make_engine(settings(url, statement_timeout_ms="50"))
    with made.connect() as connection, pytest.raises(TransientError, match="longer than allowed") as raised:
        connection.execute(sa.text("select pg_sleep(20)"))
    assert sqlstate(raised.value.__cause__) == "57014"
    with made.connect() as connection:
        assert connection.scalar(sa.select(1)) == 1
    made.dispose()


def test_a_server_that_is_not_there_is_unavailable() -> None:
    made = make_engine(settings(f"postgresql+pg8000://ki:x@127.0.0.1:{choose_port()}/ki"))
    with pytest.raises(EngineUnavailableError, match="away"):
        made.connect()


def test_a_connection_that_was_cut_is_unavailable_once_and_replaced(
    engine: sa.Engine, postgres_cluster: PostgresCluster
) -> None:
    with engine.connect() as connection:
        pid = connection.scalar(sa.text("select pg_backend_pid()"))
        postgres.execute(postgres_cluster, f"select pg_terminate_backend({pid}, 5000)")
        with pytest.raises(EngineUnavailableError):
            connection.execute(sa.select(1))
    with engine.connect() as connection:
        assert connection.scalar(sa.select(1)) == 1


def test_a_connection_that_died_while_idle_is_replaced_unseen(
    engine: sa.Engine, postgres_cluster: PostgresCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine.connect() as connection:
        pid = connection.scalar(sa.text("select pg_backend_pid()"))
    postgres.execute(postgres_cluster, f"select pg_terminate_backend({pid}, 5000)")
    monkeypatch.setattr("shared.db.engine._TRUSTED_IDLE_S", -1.0)
    with engine.connect() as connection:
        assert connection.scalar(sa.text("select pg_backend_pid()")) != pid


def test_an_ordinary_error_stays_what_it_is(engine: sa.Engine) -> None:
    with engine.connect() as connection, pytest.raises(sa.exc.DBAPIError) as raised:
        connection.execute(sa.text("select 1 / 0"))
    assert sqlstate(raised.value) == "22012"
    assert sqlstate(ValueError("x")) is None
    assert sqlstate(None) is None


def test_reads_pay_no_begin_and_no_commit(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    for name in ("execute_simple", "execute_unnamed"):
        original: Any = getattr(legacy.Connection, name)

        def recorded(self: Any, statement: str, *args: Any, _original: Any = original, **named: Any) -> Any:
            sent.append(statement)
            return _original(self, statement, *args, **named)

        monkeypatch.setattr(legacy.Connection, name, recorded)
    with engine.connect() as connection:
        connection.scalar(sa.select(sa.literal(1)))
    sent.clear()
    with counted(engine) as statements, reading(engine) as connection:
        assert connection.scalar(sa.select(sa.literal(2))) == 2
        assert connection.scalar(sa.text("select pg_current_xact_id_if_assigned()")) is None
    assert len(sent) == len(statements) == 2
    with engine.begin() as connection:
        connection.scalar(sa.select(sa.literal(3)))
    assert sent[2:] == ["begin transaction", sent[3], "commit"], "the connection is an ordinary one again"


def test_behind_a_pooler_the_role_must_carry_the_limit_and_reads_are_transactions(
    url: str, postgres_cluster: PostgresCluster
) -> None:
    made = make_engine(settings(url, pooler="transaction"))
    with pytest.raises(MisconfiguredError, match="ALTER ROLE"), reading(made):
        pass
    database = str(sa.make_url(url).database)
    postgres.execute(postgres_cluster, f"ALTER DATABASE {database} SET statement_timeout = '50ms'")
    try:
        with reading(made) as connection:
            started = connection.scalar(sa.text("select transaction_timestamp()"))
            assert connection.scalar(sa.text("select transaction_timestamp()")) == started
            with pytest.raises(TransientError):
                connection.execute(sa.text("select pg_sleep(20)"))
    finally:
        postgres.execute(postgres_cluster, f"ALTER DATABASE {database} RESET statement_timeout")
        made.dispose()


def test_two_sessions_that_deadlock_both_finish(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("insert into parties (name, normalised_name) values ('A', 'a'), ('B', 'b')"))
    met = threading.Barrier(2, timeout=20)
    attempts: list[str] = []

    def rename(first: str, second: str) -> None:
        def work(connection: sa.Connection) -> None:
            attempts.append(first)
            update = sa.text("update parties set name = name || :by where normalised_name = :n")
            connection.execute(update, {"by": first, "n": first})
            if len(attempts) <= 2:
                met.wait()
            connection.execute(update, {"by": first, "n": second})

        run_retrying(engine, work, sleep=lambda _: None)

    threads = [threading.Thread(target=rename, args=pair) for pair in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    with engine.connect() as connection:
        names = connection.scalars(sa.text("select name from parties")).all()
    assert len(attempts) >= 3, "one of the two had to begin again"
    assert all(sorted(name[1:]) == ["a", "b"] for name in names), "each wrote exactly once"


def test_retries_end_with_a_transient_error(engine: sa.Engine) -> None:
    tried: list[int] = []
    waited: list[float] = []

    def work(connection: sa.Connection) -> None:
        tried.append(1)
        connection.execute(sa.text("do $$ begin raise exception 'no' using errcode = '40001'; end $$"))

    with pytest.raises(TransientError, match="40001"):
        run_retrying(engine, work, attempts=3, sleep=waited.append)
    assert (len(tried), len(waited)) == (3, 2)


def test_other_errors_are_not_retried(engine: sa.Engine) -> None:
    tried: list[int] = []

    def work(connection: sa.Connection) -> None:
        tried.append(1)
        connection.execute(sa.text("select 1 / 0"))

    with pytest.raises(sa.exc.DBAPIError):
        run_retrying(engine, work)
    assert len(tried) == 1


@pytest.mark.parametrize(
    "query",
    [
        "select %s, '%s', \"%s\", 1 %% 2 -- %s\n, %s",
        "select 'it''s %s', E'a\\'%s', $$ %s $$, %s::text",
        "insert into t values (%s, %s), (%s, %s)",
    ],
)
def test_remembered_conversions_are_the_drivers_own(engine: sa.Engine, query: str) -> None:
    arguments = ("a", "b")
    for _ in range(2):
        assert legacy.convert_paramstyle("format", query, arguments) == dbapi.convert_paramstyle(
            "format", query, arguments
        )
    assert hasattr(legacy.convert_paramstyle, "remembered")


@pytest.mark.parametrize(
    "words",
    [
        ["user:anna@kanzlei.example", "group:a/b-c_d.1", "0b6c2f5e-7a51-4f8e-9a55-3a1c1b1f0d11"],
        ["", "NULL", "null", "Null", "a b", 'say "so"', "back\\slash", "{curly}", "a,b", "Größe", "tab\tnew\nline"],
    ],
)
def test_words_come_back_from_an_array_as_they_went(engine: sa.Engine, words: list[str]) -> None:
    with reading(engine) as connection:
        assert connection.scalar(sa.text("select cast(:words as text[])"), {"words": words}) == words


def test_on_this_machine_no_connection_pays_for_a_tls_context(url: str, monkeypatch) -> None:
    def made(*_: object, **__: object) -> None:
        raise AssertionError("a TLS context was made")

    monkeypatch.setattr(ssl, "create_default_context", made)
    # What spares the tests' own engines the same must not answer for the product's.
    sa.event.remove(sa.Engine, "do_connect", without_tls)
    try:
        engine = make_engine(settings(url))
        with engine.connect() as connection:
            assert connection.execute(sa.text("select 1")).scalar_one() == 1
        engine.dispose()
    finally:
        sa.event.listen(sa.Engine, "do_connect", without_tls)
