"""As of when the ACLs of a source are known, and which file of ACLs was begun last."""

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
