"""The ACL of a file holds for everything taken out of it: nobody reads an attachment but not its mail."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from shared.db.tables.access import source_object_grants
from shared.db.tables.sources import source_objects
from shared.types import SourceObjectId


def inherit_acl(connection: sa.Connection, source_object_id: SourceObjectId) -> None:
    """Give all objects below this one its ACL, state and rows; an unknown ACL is inherited as unknown.

    Call it in the transaction that changes the ACL or registers the objects. Rows that are right are not touched.
    """
    direct = sa.select(source_objects.c.id).where(source_objects.c.parent_id == source_object_id)
    tree = direct.cte("tree", recursive=True)
    deeper = source_objects.alias("deeper")
    tree = tree.union(sa.select(deeper.c.id).join(tree, deeper.c.parent_id == tree.c.id))
    below = sa.select(tree.c.id)
    grants, theirs = source_object_grants, source_object_grants.alias("theirs")
    surplus = ~sa.exists().where(
        theirs.c.source_object_id == source_object_id,
        theirs.c.principal == grants.c.principal,
        theirs.c.effect == grants.c.effect,
    )
    connection.execute(sa.delete(grants).where(grants.c.source_object_id.in_(below), surplus))
    # The state before the rows: grants on an object whose ACL is unknown are refused.
    held = source_objects.alias("held")
    copied = ("acl_state", "acl_as_of", "acl_warning")
    differs = [source_objects.c[name].is_distinct_from(held.c[name]) for name in copied]
    connection.execute(
        sa.update(source_objects)
        .where(source_objects.c.id.in_(below), held.c.id == source_object_id, sa.or_(*differs))
        .values({name: held.c[name] for name in copied})
    )
    names = ["source_object_id", "principal", "effect", "granted_by", "reason"]
    rows = (
        sa.select(tree.c.id, *(theirs.c[name] for name in names[1:]))
        .select_from(theirs.join(tree, sa.true()))
        .where(theirs.c.source_object_id == source_object_id)
        .order_by(tree.c.id, theirs.c.principal, theirs.c.effect)
    )
    connection.execute(pg.insert(grants).from_select(names, rows).on_conflict_do_nothing())
