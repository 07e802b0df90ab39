"""Bring a database to the newest schema.

One transaction under an advisory lock: several starting processes migrate once, and a failed migration leaves
nothing behind. There is no way down; a mistake is mended by the next migration.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext

import shared.db.migrations
from shared.db import rights
from shared.db.tables import metadata

_LOCK = 0x6B690001  # any constant that no other program takes


def upgrade(url: str) -> None:
    """Bring the database at `url` to the newest schema; a second call changes nothing.

    The roles' rights are made what `shared.db.rights` says.

    Statistics are made anew whenever something changed: the scope's plan depends on them.
    """
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        before = MigrationContext.configure(connection).get_current_heads()
        command.upgrade(_configuration(connection), "head")
        rights.apply(connection, metadata.tables)
        if MigrationContext.configure(connection).get_current_heads() != before:
            connection.execute(sa.text("ANALYZE"))


def draft_revision(url: str, message: str) -> None:
    """Write a new migration from the difference between the tables in code and the database at `url`.

    The draft is a starting point: read it before it is committed.
    """
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        command.revision(_configuration(connection), message=message, autogenerate=True)


def _configuration(connection: sa.Connection) -> Config:
    folder = Path(shared.db.migrations.__path__[0])
    configuration = Config()
    # Percent signs are the configuration file's own syntax.
    configuration.set_main_option("script_location", str(folder).replace("%", "%%"))
    configuration.set_main_option("path_separator", "os")
    configuration.attributes["connection"] = connection
    return configuration
