"""The index brought up to date with the database, on a schedule."""

from __future__ import annotations

from typing import Any

from shared.runtime.executions import LambdaContext, sweep


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer counts of what was written, removed and repaired."""
    return sweep(event, context)
