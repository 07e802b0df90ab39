from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.dialects.postgresql.base import ischema_names

from shared.db.migrate import upgrade
from shared.db.tables import metadata
from shared.db.tables.base import PgSnapshot, Xid8

_COLUMNS = """
select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
       pg_get_expr(d.adbin, d.adrelid)
from pg_attribute a join pg_class c on c.oid = a.attrelid and c.relkind in ('r', 'p') and not c.relispartition
  and c.relnamespace = 'public'::regnamespace
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attnum > 0 and not a.attisdropped and c.relname <> 'alembic_version'
"""
_CONSTRAINTS = """
select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint
where connamespace = 'public'::regnamespace and conrelid::regclass::text !~ '^(alembic_version|audit_events_)'
"""
_INDEXES = """
select tablename, indexname, indexdef from pg_indexes where schemaname = 'public' and tablename !~ '^(alembic_version|audit_events_)'
"""


def _is_no_partition(name: str | None, kind: str, _parents: object) -> bool:
    """Partitions come and go with the months."""
    return kind != "table" or not (name or "").startswith("audit_events_")


def _shape(url: str) -> list[set[tuple[object, ...]]]:
    with sa.create_engine(url, poolclass=sa.NullPool).connect() as connection:
        return [
            {tuple(row) for row in connection.execute(sa.text(query))} for query in (_COLUMNS, _CONSTRAINTS, _INDEXES)
        ]


def test_migrations_and_tables_say_the_same(database_url: str, monkeypatch) -> None:
    # Reflection does not know these two types by itself.
    monkeypatch.setitem(ischema_names, "pg_snapshot", PgSnapshot)
    monkeypatch.setitem(ischema_names, "xid8", Xid8)
    with sa.create_engine(database_url, poolclass=sa.NullPool).connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_name": _is_no_partition})
        assert compare_metadata(context, metadata) == []


def test_migrated_database_has_every_column_constraint_and_index_of_the_tables(
    database_url: str, empty_database: Callable[[], str]
) -> None:
    direct = empty_database()
    metadata.create_all(sa.create_engine(direct, poolclass=sa.NullPool))
    migrated, expected = _shape(database_url), _shape(direct)
    for found, wanted in zip(migrated, expected, strict=True):
        assert found == wanted
        assert len(wanted) > 20


def test_a_second_upgrade_changes_nothing(database_url: str) -> None:
    before = _shape(database_url)
    upgrade(database_url)
    assert _shape(database_url) == before


def test_two_processes_that_start_together_migrate_once(empty_database: Callable[[], str]) -> None:
    url = empty_database()
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(upgrade, url) for _ in range(2)]:
            done.result(timeout=60)
    assert _shape(url)[0]


def test_the_folder_one_stands_in_does_not_matter(empty_database: Callable[[], str], monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    url = empty_database()
    upgrade(url)
    with sa.create_engine(url, poolclass=sa.NullPool).connect() as connection:
        assert connection.scalar(sa.text("select count(*) from alembic_version")) == 1
