"""The state machine of the pipeline, as it runs in Step Functions."""

from __future__ import annotations

from typing import Any

from shared.errors import EngineUnavailableError


class StateMachine:
    """Starts executions; the client (boto3 "stepfunctions") is made in the composition root and handed in."""

    def __init__(self, client: Any, arn: str) -> None:
        self._client = client
        self._arn = arn

    def start(self, name: str, payload: str) -> None:
        """Start the execution of this name, unless there has been one: a name is used once in ninety days."""
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - only where AWS is used

        try:
            self._client.start_execution(stateMachineArn=self._arn, name=name, input=payload)
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code"))
            if code != "ExecutionAlreadyExists":
                raise EngineUnavailableError(f"the state machine refused to start an execution: {code}") from error
        except BotoCoreError as error:
            raise EngineUnavailableError(f"Step Functions is away: {type(error).__name__}") from error
