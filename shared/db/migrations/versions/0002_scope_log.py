"""Write down everything that can move a version into or out of a scope.

Statement-level triggers with transition tables: one call a statement, whatever its size. They run with the owner's
rights, because who may write a grant need not be able to write the log, and they stay on under
`session_replication_role = replica`. Filters stand in the bodies: PostgreSQL allows no column list beside a
transition table.
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Above this, a statement is logged as one row a target for everyone, instead of one a target and principal.
MANY = 2000

GRANTS = {
    "project_grants": ("project", "project_id"),
    "document_grants": ("document", "document_id"),
    "source_object_grants": ("source_object", "source_object_id"),
}
EVENTS = {
    **dict.fromkeys(GRANTS, ("insert", "update", "delete")),
    "documents": ("update",),
    "document_versions": ("update", "delete"),
    "version_sources": ("insert", "update", "delete"),
    "source_objects": ("update",),
    "sources": ("update",),
}
TRUNCATED = (*EVENTS, "scope_log", "scope_epoch")


def upgrade() -> None:
    for table, (kind, target) in GRANTS.items():
        _log_function(table, grant_body(kind, target))
    _log_function("documents", row_body("document", "id", "id, project_id"))
    _log_function("document_versions", version_body("seq", "id, seq, document_id"))
    _log_function("version_sources", observation_body())
    state = "id, source_id, acl_state, deleted_at is null as is_active"
    _log_function("source_objects", row_body("source_object", "id", state))
    _log_function("sources", everything_body("id, kind"))
    for table, events in EVENTS.items():
        for event in events:
            _trigger(table, event)
    _truncate_trigger()
    _acl_guard()
    op.execute("insert into scope_epoch default values")


def _log_function(table: str, body: str) -> None:
    op.execute(f"""
create function scope_log_{table}() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $body$
begin
{body}
  return null;
end $body$
""")


def _rows(columns: str, insert: str) -> str:
    """`insert` for each kind of event; `{changed}` in it stands for the rows that changed in `columns`."""
    differing = (
        f"((select {columns} from before except select {columns} from after) union all "
        f"(select {columns} from after except select {columns} from before))"
    )
    return f"""
  if tg_op = 'UPDATE' then
    {insert.format(changed=differing)}
  elsif tg_op = 'INSERT' then
    {insert.format(changed="after")}
  else
    {insert.format(changed="before")}
  end if;"""


def grant_body(kind: str, target: str) -> str:
    insert = f"""
    if (select count(*) from (select from {{changed}} c limit {MANY + 1}) many) > {MANY} then
      insert into scope_log (kind, target) select distinct '{kind}', c.{target} from {{changed}} c;
    else
      insert into scope_log (kind, target, principal)
      select distinct '{kind}', c.{target}, c.principal from {{changed}} c;
    end if;"""
    return _rows(f"{target}, principal, effect", insert)


def row_body(kind: str, target: str, columns: str) -> str:
    return _rows(
        columns, f"insert into scope_log (kind, target) select distinct '{kind}', c.{target} from {{changed}} c;"
    )


def version_body(seq: str, columns: str) -> str:
    return _rows(columns, f"insert into scope_log (kind, seq) select distinct 'version', c.{seq} from {{changed}} c;")


def observation_body() -> str:
    # A version that goes in the same statement cannot be found any more; its own trigger logs it.
    insert = """insert into scope_log (kind, seq)
    select distinct 'version', v.seq from {changed} c join document_versions v on v.id = c.version_id;"""
    return _rows("version_id, source_object_id", insert)


def everything_body(columns: str) -> str:
    return _rows(columns, "insert into scope_log (kind) select 'everything' where exists (select from {changed} c);")


def _trigger(table: str, event: str) -> None:
    tables = {
        "insert": "new table as after",
        "update": "old table as before new table as after",
        "delete": "old table as before",
    }[event]
    op.execute(f"""
create trigger scope_log_{event} after {event} on {table}
referencing {tables} for each statement execute function scope_log_{table}()
""")
    op.execute(f"alter table {table} enable always trigger scope_log_{event}")


def _truncate_trigger() -> None:
    """Truncating anything the rule reads concerns everyone; a truncated log must not look like a quiet one."""
    op.execute("""
create function scope_log_truncated() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $body$
begin
  if tg_table_name = 'scope_log' then
    update scope_epoch set token = gen_random_uuid();
  else
    insert into scope_log (kind) values ('everything');
  end if;
  return null;
end $body$
""")
    for table in TRUNCATED:
        op.execute(f"""
create trigger scope_log_truncate after truncate on {table}
for each statement execute function scope_log_truncated()
""")
        op.execute(f"alter table {table} enable always trigger scope_log_truncate")


def _acl_guard() -> None:
    """An unknown ACL with grants is impossible: the rule would have to guess which of the two is meant.

    The lock meets the one that a new grant's foreign key holds, so two rivals cannot both look and see nothing.
    """
    op.execute("""
create function source_object_acl_guard() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $body$
declare
  offender uuid;
begin
  if tg_table_name = 'source_objects' then
    perform from source_objects o join after a on a.id = o.id
    where o.acl_state = 'unknown' and exists (select from before b where b.id = a.id and b.acl_state <> 'unknown')
    for update of o;
    select g.source_object_id into offender from source_object_grants g join after a on a.id = g.source_object_id
    where a.acl_state = 'unknown' limit 1;
  else
    select o.id into offender from source_objects o join after a on a.source_object_id = o.id
    where o.acl_state = 'unknown' limit 1;
  end if;
  if offender is not null then
    raise exception 'source object % has grants, so its acl_state must be known', offender
      using errcode = 'check_violation', constraint = 'source_object_acl_guard';
  end if;
  return null;
end $body$
""")
    for table, event, tables in (
        ("source_object_grants", "insert", "new table as after"),
        ("source_object_grants", "update", "new table as after"),
        ("source_objects", "update", "old table as before new table as after"),
    ):
        op.execute(f"""
create trigger acl_guard_{event} after {event} on {table}
referencing {tables} for each statement execute function source_object_acl_guard()
""")
        op.execute(f"alter table {table} enable always trigger acl_guard_{event}")
