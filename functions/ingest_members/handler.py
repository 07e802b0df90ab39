"""The files in an object, page by page."""

from __future__ import annotations

from typing import Any

from shared.runtime.executions import LambdaContext, find_members


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer the next page to the one before it."""
    return find_members(event, context)
