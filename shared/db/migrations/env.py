"""Run the migrations on the connection that `shared.db.migrate` hands over; there is no other way in."""

from __future__ import annotations

from alembic import context

from shared.db.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    transaction_per_migration=False,
    user_module_prefix="base.",
)
with context.begin_transaction():
    context.run_migrations()
