"""Who may ask and order what only administrators may: after expansion, as it is at this moment."""

from __future__ import annotations

import sqlalchemy as sa

from shared.access.caller import Caller
from shared.access.expansion import expand
from shared.access.principals import is_administrator
from shared.errors import NotVisibleError
from shared.types import Principal


def require_administrator(connection: sa.Connection, caller: Caller) -> frozenset[Principal]:
    """Return the caller's expanded principals.

    Raises `NotVisibleError`, in the words of a route that is not there, for anybody but an administrator: by token,
    alias or membership.
    """
    principals = expand(connection, caller.principals)
    if not is_administrator(principals):
        raise NotVisibleError("there is no such route")
    return principals
