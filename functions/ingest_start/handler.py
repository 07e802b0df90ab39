"""What a bucket tells of its objects: one execution for each that is to be taken in."""

from __future__ import annotations

from typing import Any

from shared.runtime.executions import LambdaContext, start


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one event of EventBridge, or one notification of S3."""
    return start(event, context)
