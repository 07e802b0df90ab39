"""The engine: one pool a process, statement time-outs, retry of what PostgreSQL asks to retry, errors of our own.

Reads run in autocommit (`reading`): a search pays no BEGIN and COMMIT, and every statement sees the newest state.
"""

from __future__ import annotations

import random
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

import sqlalchemy as sa
from pg8000 import converters, legacy
from pg8000.exceptions import DatabaseError, InterfaceError

from shared.db.prepared import prepare_hot_statements
from shared.errors import EngineUnavailableError, MisconfiguredError, TransientError
from shared.settings import Database

SERIALIZATION_FAILURE = "40001"
DEADLOCK_DETECTED = "40P01"
QUERY_CANCELED = "57014"
_RETRIED = frozenset({SERIALIZATION_FAILURE, DEADLOCK_DETECTED})
# Shutting down, starting up, crashed, too many connections; read-only, because it was demoted: connect anew.
_AWAY = frozenset({"57P01", "57P02", "57P03", "53300", "25006"})
_RECYCLE_S = 840  # an RDS IAM token lives 900 s
_LONGEST_REMEMBERED = 50_000  # bulk inserts are longer, and seldom the same twice
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_.:@/-]+")
_TRUSTED_IDLE_S = 30.0
_CONNECT_TIMEOUT_S = 10
_AUTOCOMMIT_ALLOWED = "ki_autocommit_allowed"
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

T = TypeVar("T")


def make_engine(settings: Database, *, password: Callable[[], str] | None = None, tls: Any = None) -> sa.Engine:
    """Return the engine of this process.

    `password` gives a fresh password for each new connection (IAM tokens); `tls` is an `ssl.SSLContext`. A statement
    over the time limit raises `TransientError`, a server that is away `EngineUnavailableError`.
    """
    if settings.url is None:
        raise MisconfiguredError("database.url is not set; set KI_DATABASE__URL")
    if settings.iam_auth and password is None:
        raise MisconfiguredError("database.iam_auth is on, but no token provider was handed to make_engine")
    connect_args: dict[str, Any] = {"timeout": _CONNECT_TIMEOUT_S, "tcp_keepalive": True}
    if tls is not None:
        connect_args["ssl_context"] = tls
    elif sa.engine.make_url(settings.url).host in _LOOPBACK:
        # The driver would make a TLS context for every connection, which takes 20 ms, and use it for none here.
        connect_args["ssl_context"] = False
    if settings.pooler == "none":
        # Part of the start-up packet: no round trip. RDS Proxy takes no such parameters.
        # Compiling a statement of many steps takes longer than running it.
        connect_args["startup_params"] = {"statement_timeout": str(settings.statement_timeout_ms), "jit": "off"}
    _remember_conversions()
    _spell_plain_words_at_once()
    engine = sa.create_engine(
        settings.url,
        pool_size=settings.pool_size,
        max_overflow=0,
        pool_timeout=_CONNECT_TIMEOUT_S,
        pool_recycle=_RECYCLE_S,
        pool_use_lifo=True,
        connect_args=connect_args,
    ).execution_options(**{_AUTOCOMMIT_ALLOWED: settings.pooler == "none"})
    sa.event.listen(engine, "handle_error", _translate)
    sa.event.listen(engine.pool, "connect", _sends_at_once)
    sa.event.listen(engine.pool, "connect", _waits_as_long_as_a_statement(settings.statement_timeout_ms))
    if settings.pooler == "none":
        prepare_hot_statements(engine)
    else:
        sa.event.listen(engine.pool, "connect", _require_role_timeout)
    _listen_for_stale_connections(engine)
    if password is not None:
        _listen_for_passwords(engine, password)
    return engine


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Hand out a connection for reads: each statement is a transaction of its own, without extra round trips.

    Behind a transaction pooler the block is one transaction, because an unnamed prepared statement may not be
    separated from its execution.
    """
    with engine.connect() as connection:
        if not engine.get_execution_options().get(_AUTOCOMMIT_ALLOWED, True):
            yield connection
            return
        # SQLAlchemy's isolation_level option would cost two statements at each return to the pool.
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.autocommit = True
        try:
            yield connection
        finally:
            driver.autocommit = False


@contextmanager
def recording(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Hand out a connection as `reading` does, for one statement that reads and records: what it writes is kept."""
    with reading(engine) as connection:
        yield connection
        if not engine.get_execution_options().get(_AUTOCOMMIT_ALLOWED, True):
            connection.commit()


def run_retrying(
    engine: sa.Engine,
    work: Callable[[sa.Connection], T],
    *,
    attempts: int = 5,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Return what `work` returns, run in one transaction and repeated as a whole on 40001 and 40P01.

    `work` must have no effect outside the transaction. Raises `TransientError` when the last attempt fails so too.
    """
    for attempt in range(1, attempts + 1):
        try:
            with engine.begin() as connection:
                return work(connection)
        except sa.exc.DBAPIError as error:
            if sqlstate(error) not in _RETRIED:
                raise
            if attempt == attempts:
                raise TransientError(f"the database refused {attempts} attempts in a row: {sqlstate(error)}") from error
            sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311  # spreads rivals, guards nothing
    raise MisconfiguredError("run_retrying needs at least one attempt")


def sqlstate(error: BaseException | None) -> str | None:
    """Return the five characters PostgreSQL gave for this error, None when it did not come from the server."""
    original = error.orig if isinstance(error, sa.exc.DBAPIError) else error
    if isinstance(original, DatabaseError) and original.args and isinstance(original.args[0], dict):
        return original.args[0].get("C")
    return None


def _remember_conversions() -> None:
    """Let the driver turn `%s` into `$1` once a statement text instead of at every execution.

    It reads the text character by character in Python: 2 to 4 ms for a long statement, more than running it takes.
    """
    driver: Any = legacy
    original = driver.convert_paramstyle
    if hasattr(original, "remembered"):
        return

    @lru_cache(maxsize=512)
    def remembered(style: str, query: str) -> str:
        return str(original(style, query, ())[0])

    def convert(style: str, query: str, args: Any) -> Any:
        # Positional styles leave the arguments as they are.
        if style != "format" or len(query) > _LONGEST_REMEMBERED:
            return original(style, query, args)
        return remembered(style, query), args

    convert.remembered = remembered  # type: ignore[attr-defined]  # marks it as ours
    driver.convert_paramstyle = convert


def _spell_plain_words_at_once() -> None:
    """Let the driver write ids and names into arrays as they are; it looks at them letter by letter otherwise."""
    driver: Any = converters
    original = driver.array_string_escape
    if hasattr(original, "plain"):
        return

    def spelt(value: str) -> str:
        if value.upper() == "NULL":
            return f'"{value}"'  # in any case of letters, the server takes it for a null without the quotes
        return value if _PLAIN_WORD.fullmatch(value) else str(original(value))

    spelt.plain = True  # type: ignore[attr-defined]  # marks it as ours
    driver.array_string_escape = spelt


def _translate(context: sa.engine.ExceptionContext) -> None:
    """Turn what no caller can handle by itself into the product's errors; the driver's error stays the cause."""
    code = sqlstate(context.original_exception)
    if code == QUERY_CANCELED:
        raise TransientError("a database statement took longer than allowed") from context.original_exception
    original = context.original_exception
    unreachable = isinstance(original, (OSError, InterfaceError)) and (context.connection is None or _lost(original))
    if code in _AWAY or context.is_disconnect or unreachable:
        context.invalidate_pool_on_disconnect = True
        if context.connection is not None and not context.connection.invalidated:
            context.connection.invalidate()
        raise EngineUnavailableError("the database is away; try again shortly") from original


def _lost(error: BaseException) -> bool:
    return isinstance(error, OSError) or "connection" in str(error) or "network error" in str(error)


def _sends_at_once(driver: Any, _record: Any) -> None:
    """Spare a statement of more than 8 KB the 40 ms that its second packet waits for the first one's receipt."""
    if driver._usock.family != socket.AF_UNIX:  # noqa: SLF001
        driver._usock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # noqa: SLF001


def _waits_as_long_as_a_statement(statement_timeout_ms: int) -> Callable[[Any, Any], None]:
    """After connecting, the socket waits for the statement time-out and a little more, not for the connect limit."""

    def set_timeout(driver: Any, _record: Any) -> None:
        driver._usock.settimeout(statement_timeout_ms / 1000 + _CONNECT_TIMEOUT_S)  # noqa: SLF001

    return set_timeout


def _require_role_timeout(driver: Any, _record: Any) -> None:
    cursor = driver.cursor()
    try:
        cursor.execute("SHOW statement_timeout")
        if cursor.fetchone()[0] == "0":
            raise MisconfiguredError(
                "database.pooler is 'transaction' and the role has no time limit; "
                "run ALTER ROLE ... SET statement_timeout = '15s'"
            )
    finally:
        cursor.close()
        driver.rollback()


def _listen_for_stale_connections(engine: sa.Engine) -> None:
    """Ask a connection that lay idle for long whether it still lives; a frozen Lambda often loses its sockets."""

    @sa.event.listens_for(engine.pool, "checkin")
    def remember(_driver: Any, record: Any) -> None:
        record.info["idle_since"] = time.monotonic()

    @sa.event.listens_for(engine.pool, "checkout")
    def ask(driver: Any, record: Any, _proxy: Any) -> None:
        if time.monotonic() - record.info.get("idle_since", time.monotonic()) < _TRUSTED_IDLE_S:
            return
        try:
            driver.autocommit = True
            driver.cursor().execute("SELECT 1")
        except (DatabaseError, InterfaceError, OSError) as error:
            raise sa.exc.DisconnectionError("the connection died while idle") from error
        finally:
            driver.autocommit = False


def _listen_for_passwords(engine: sa.Engine, password: Callable[[], str]) -> None:
    @sa.event.listens_for(engine, "do_connect")
    def give_password(_dialect: Any, _record: Any, _args: Any, parameters: dict[str, Any]) -> None:
        parameters["password"] = password()
