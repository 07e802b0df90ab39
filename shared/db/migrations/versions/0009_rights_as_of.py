"""As of when the ACLs of a source are known, which file of ACLs was begun last, and a guard that looks up by key.

The guard of 0002 asked for one offender with LIMIT 1. PostgreSQL then expects to meet one soon and reads every object
whose ACL is unknown for every new grant: with a million of them, minutes for a thousand objects. An aggregate has to
see them all, so that each is looked up by its key. What the guard refuses is the same.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("acls_as_of", "acls_begun_as_of"):
        op.add_column("sources", sa.Column(name, sa.DateTime(timezone=True)))
    op.execute("""
create or replace function source_object_acl_guard() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $body$
declare
  offender text;
begin
  if tg_table_name = 'source_objects' then
    perform from source_objects o join after a on a.id = o.id
    where o.acl_state = 'unknown' and exists (select from before b where b.id = a.id and b.acl_state <> 'unknown')
    for update of o;
    select min(g.source_object_id::text) into offender
    from after a join source_object_grants g on g.source_object_id = a.id
    where a.acl_state = 'unknown';
  else
    select min(o.id::text) into offender
    from after a join source_objects o on o.id = a.source_object_id
    where o.acl_state = 'unknown';
  end if;
  if offender is not null then
    raise exception 'source object % has grants, so its acl_state must be known', offender
      using errcode = 'check_violation', constraint = 'source_object_acl_guard';
  end if;
  return null;
end $body$
""")
