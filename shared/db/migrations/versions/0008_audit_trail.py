"""Cut the audit trail into months, let nothing in it be changed, and keep seals of it.

A partition is made ahead for each month; what fits none lies in the one for the rest, so that an audit row never fails
for want of a partition. Rows are refused to be updated or deleted, and partitions to be truncated, by triggers: the
owner's rights do not suffice either. Retention detaches and drops whole months.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql as pg

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_COLUMNS = (
    "at, action, subject, principals, outcome, scope_fingerprint, query_hash, query_chars, detail, correlation_id"
)


def upgrade() -> None:
    op.execute("create temporary table audit_events_before on commit drop as select * from audit_events")
    op.drop_table("audit_events")
    op.execute("create sequence audit_events_number as bigint")
    op.create_table(
        "audit_events",
        sa.Column(
            "id", sa.BigInteger(), server_default=sa.text("nextval('audit_events_number'::regclass)"), nullable=False
        ),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("principals", pg.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("scope_fingerprint", sa.Text(), nullable=True),
        sa.Column("query_hash", sa.Text(), nullable=True),
        sa.Column("query_chars", sa.Integer(), nullable=True),
        sa.Column("detail", pg.JSONB(none_as_null=True, astext_type=sa.Text()), server_default="{}", nullable=False),
        sa.Column("correlation_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", "at", name=op.f("pk_audit_events")),
        postgresql_partition_by="RANGE (at)",
    )
    op.create_index("ix_audit_events_at", "audit_events", ["at"], unique=False)
    op.create_table(
        "audit_seals",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("sealed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("month", sa.Date(), nullable=False),
        sa.Column("after_id", sa.BigInteger(), nullable=False),
        sa.Column("until_id", sa.BigInteger(), nullable=False),
        sa.Column("events", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.CheckConstraint("after_id < until_id and events >= 0", name=op.f("ck_audit_seals_range_known")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_audit_seals")),
    )
    op.execute("""
create function audit_append_only() returns trigger language plpgsql set search_path = public, pg_temp as $body$
begin
  raise exception 'the audit trail is only added to: % on %', tg_op, tg_table_name
    using errcode = 'insufficient_privilege', constraint = 'audit_append_only';
end $body$
""")
    op.execute("""
create trigger audit_append_only before update or delete on audit_events
for each row execute function audit_append_only()
""")
    for table in ("audit_events", "audit_seals"):
        op.execute(f"""
create trigger audit_no_truncate before truncate on {table} for each statement execute function audit_append_only()
""")
    op.execute("""
create trigger audit_append_only before update or delete on audit_seals
for each row execute function audit_append_only()
""")
    # Makes the partition of a month if it is not there. With the owner's rights: who writes rows makes no tables.
    op.execute("""
create function audit_partition(month date) returns text language plpgsql security definer
set search_path = public, pg_temp as $body$
declare
  first date := date_trunc('month', month)::date;
  name text := 'audit_events_' || to_char(first, 'YYYY_MM');
begin
  if to_regclass('public.' || name) is null then
    execute format(
      'create table public.%I partition of public.audit_events for values from (%L) to (%L)',
      name, first::text || ' 00:00:00+00', (first + interval '1 month')::date::text || ' 00:00:00+00');
    execute format('create trigger audit_no_truncate before truncate on public.%I for each statement '
                   'execute function public.audit_append_only()', name);
  end if;
  return name;
end $body$
""")
    op.execute("revoke execute on function audit_partition(date) from public")
    # Waits for who is writing, keeps others out for the moment of one look at an index, and returns the highest id.
    # With the owner's rights: the lock asks for more than adding rows does.
    op.execute("""
create function audit_final_id(wait_ms integer) returns bigint language plpgsql security definer
set search_path = public, pg_temp as $body$
begin
  perform set_config('lock_timeout', wait_ms::text || 'ms', true);
  lock table audit_events in share mode;
  return coalesce((select max(id) from audit_events), 0);
end $body$
""")
    op.execute("revoke execute on function audit_final_id(integer) from public")
    op.execute("create table audit_events_rest partition of audit_events default")
    op.execute("""
create trigger audit_no_truncate before truncate on audit_events_rest
for each statement execute function audit_append_only()
""")
    op.execute("""
select audit_partition(month::date) from generate_series(
  date_trunc('month', coalesce((select min(at) from audit_events_before), now()) at time zone 'UTC'),
  date_trunc('month', now() at time zone 'UTC') + interval '3 months', interval '1 month') month
""")
    op.execute(f"insert into audit_events ({_COLUMNS}) select {_COLUMNS} from audit_events_before order by id")
