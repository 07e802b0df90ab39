"""The context object that Lambda hands to a handler beside the event."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

TIMEOUT_S = 30.0  # API Gateway waits no longer
MEMORY_MB = 1024


@dataclass(frozen=True, slots=True)
class LambdaContext:
    """What handlers and Powertools read of Lambda's context."""

    function_name: str
    aws_request_id: str
    timeout_s: float = TIMEOUT_S
    memory_limit_in_mb: int = MEMORY_MB
    function_version: str = "$LATEST"
    started: float = field(default_factory=time.monotonic)

    @property
    def invoked_function_arn(self) -> str:
        """The function's ARN, in an account and region that do not exist."""
        return f"arn:aws:lambda:local:000000000000:function:{self.function_name}"

    @property
    def log_group_name(self) -> str:
        """The name the log group would have."""
        return f"/aws/lambda/{self.function_name}"

    @property
    def log_stream_name(self) -> str:
        """The name the log stream would have."""
        return "local"

    def get_remaining_time_in_millis(self) -> int:
        """Return the time left until Lambda would end the invocation, never below zero."""
        left_s = self.timeout_s - (time.monotonic() - self.started)
        return max(0, int(left_s * 1000))
