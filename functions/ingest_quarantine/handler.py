"""A failure that its stage could not write down."""

from __future__ import annotations

from typing import Any

from shared.runtime.executions import LambdaContext, quarantine


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Write down what the state machine caught."""
    return quarantine(event, context)
