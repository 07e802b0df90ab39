"""Statements that the server keeps parsed and planned: the few that every search runs.

The driver sends a statement without a name: parsed and planned anew each time, in three round trips. Planning the
verification of a search takes longer than running it. A statement marked `hot` is prepared once a connection and then
takes one round trip; after five runs the server may settle on a plan that serves any values.

Only reads in autocommit are run so (`shared.db.engine.reading`): a transaction pooler would hand the next statement to
another session, and a plan that went stale could not be replaced within a transaction.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import sqlalchemy as sa
from pg8000.converters import array_out, make_params
from pg8000.exceptions import DatabaseError

_OPTION: Final = "ki_hot"
_INFO: Final = "ki_named_statements"
_KEPT: Final = 32
_GONE: Final = "26000"
_CHANGED: Final = ("0A000", "RevalidateCachedQuery")  # its columns are no longer of the types they had

_Statement = TypeVar("_Statement", bound=sa.Executable)


def hot(statement: _Statement) -> _Statement:
    """Return the statement marked as one that is worth preparing: it runs often, with parameters only."""
    return statement.execution_options(**{_OPTION: True})


def run_hot(connection: sa.Connection, statement: sa.Select[Any], values: Mapping[str, Any]) -> sa.CursorResult[Any]:
    """Return what a `hot` statement that was built once a process returns for these values.

    Its text and the order of its parameters are remembered, so SQLAlchemy has no more to do than for a plain text.
    Values of columns come as the driver gives them.
    """
    form = _driver_form(statement, connection.dialect)
    return connection.exec_driver_sql(form.text, form.parameters(values), execution_options={_OPTION: True})


class _DriverForm(NamedTuple):
    text: str
    names: Sequence[str]
    fixed: Mapping[str, Any]
    processors: Mapping[str, Callable[[Any], Any]]

    def parameters(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        given = {**self.fixed, **values}
        for name, process in self.processors.items():
            given[name] = process(given[name])
        for name, value in given.items():
            if isinstance(value, list):
                # Once, however often the text refers to it; the server reads it by the type that the text gives it.
                given[name] = array_out(value)
        return tuple([given[name] for name in self.names])


@lru_cache(maxsize=_KEPT)
def _driver_form(statement: sa.Select[Any], dialect: sa.Dialect) -> _DriverForm:
    compiled: Any = statement.compile(dialect=dialect)
    if compiled.post_compile_params or compiled.literal_execute_params:
        raise AssertionError("the text of a hot statement must not depend on its values")
    wanted = {name for name, bind in compiled.binds.items() if bind.required}
    fixed = {name: value for name, value in compiled.params.items() if name not in wanted}
    return _DriverForm(compiled.string, compiled.positiontup, fixed, dict(compiled._bind_processors))  # noqa: SLF001


def prepare_hot_statements(engine: sa.Engine) -> None:
    """Let this engine prepare the statements that are marked `hot`."""
    sa.event.listen(engine.pool, "connect", _equip)
    sa.event.listen(engine, "do_execute", _execute)


class NamedStatements:
    """What one connection has prepared. Stands in for the driver's way to run a statement without a name."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._unnamed = driver.execute_unnamed
        self._known: OrderedDict[str, _Named] = OrderedDict()
        self.is_wanted = False
        """Set around the run of a hot statement."""

    def __call__(self, text: str, vals: Sequence[Any] = (), oids: Sequence[int] = (), stream: Any = None) -> Any:
        """Run a statement as the driver does, by its name if that is wanted."""
        if not self.is_wanted or oids or stream is not None:
            return self._unnamed(text, vals=vals, oids=oids, stream=stream)
        try:
            return self._run(text, vals)
        except DatabaseError as error:
            if not _is_outdated(error):
                raise
            # Refused before anything ran: once more, prepared anew.
            self._forget(text, is_gone=_code(error) == _GONE)
            return self._run(text, vals)

    def _run(self, text: str, vals: Sequence[Any]) -> Any:
        named = self._known.get(text)
        if named is None:
            named = self._prepared(text)
        else:
            self._known.move_to_end(text)
        values = make_params(self._driver.py_types, vals)  # type: ignore[no-untyped-call]  # the driver has no types
        return self._driver.execute_named(named.name, values, named.columns, named.converters, text)

    def _prepared(self, text: str) -> _Named:
        while len(self._known) >= _KEPT:
            self._forget(next(iter(self._known)), is_gone=False)
        used = set(self._driver._statement_nums)  # noqa: SLF001
        try:
            named = _Named(*self._driver.prepare_statement(text, ()))
        except DatabaseError:
            self._driver._statement_nums = used  # noqa: SLF001  # the driver keeps the name of what was refused
            raise
        self._known[text] = named
        return named

    def _forget(self, text: str, *, is_gone: bool) -> None:
        named = self._known.pop(text)
        if is_gone:
            self._driver._statement_nums.discard(named.name)  # noqa: SLF001
        else:
            self._driver.close_prepared_statement(named.name)


class _Named(NamedTuple):
    name: bytes
    columns: Any
    converters: Any


def _equip(driver: Any, record: Any) -> None:
    named = NamedStatements(driver)
    driver.execute_unnamed = named
    record.info[_INFO] = named


def _execute(cursor: Any, statement: str, parameters: Any, context: Any) -> bool:
    """Run a hot statement by name; False leaves it to SQLAlchemy."""
    if not parameters or not context.execution_options.get(_OPTION):
        return False
    connection = context.root_connection.connection
    if not connection.driver_connection.autocommit:
        return False
    named = connection.info[_INFO]
    named.is_wanted = True
    try:
        cursor.execute(statement, parameters)
    finally:
        named.is_wanted = False
    return True


def _is_outdated(error: DatabaseError) -> bool:
    return _code(error) == _GONE or (_code(error), _field(error, "R")) == _CHANGED


def _code(error: DatabaseError) -> str | None:
    return _field(error, "C")


def _field(error: DatabaseError, name: str) -> str | None:
    details = error.args[0] if error.args else None
    return details.get(name) if isinstance(details, dict) else None
