"""The matter that the document belongs to: one stage of one object."""

from __future__ import annotations

from typing import Any

from shared.runtime.executions import LambdaContext, run_stage


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer the payload after the stage to the payload before it."""
    return run_stage("classify_matter", event, context)
