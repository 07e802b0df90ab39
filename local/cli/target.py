"""What a command about grants is for: a project by its key or id, or a document by its id."""

from __future__ import annotations

import getpass
from uuid import UUID

import sqlalchemy as sa

from shared.access.requests import GrantPlace
from shared.db.tables.catalog import documents, projects
from shared.errors import NotVisibleError


def target_of(connection: sa.Connection, named: str) -> tuple[GrantPlace, UUID]:
    """Return what `named` is. Raises `NotVisibleError` if it is nothing."""
    try:
        asked = UUID(named)
    except ValueError:
        asked = None
    if asked is not None and _is_there(connection, documents.c.id, asked):
        return GrantPlace.DOCUMENT, asked
    if asked is not None and _is_there(connection, projects.c.id, asked):
        return GrantPlace.PROJECT, asked
    project: UUID | None = connection.execute(
        sa.select(projects.c.id).where(projects.c.key == named)
    ).scalar_one_or_none()
    if project is None:
        raise NotVisibleError(
            f"there is no project with the key {named!r} and no document with that id; "
            f"ki ingest --project {named} makes a project, ki search shows ids of documents"
        )
    return GrantPlace.PROJECT, project


def local_author() -> str:
    """Return who works at this machine, as grants and the audit trail name them."""
    return f"local:{getpass.getuser()}"


def _is_there(connection: sa.Connection, column: sa.Column[UUID], asked: UUID) -> bool:
    return connection.execute(sa.select(column).where(column == asked)).first() is not None
