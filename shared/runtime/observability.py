"""Logs and metrics of a process: one JSON line an event, with the correlation id of the request it belongs to.

At info level and above a line holds ids, counts, durations and names of errors; never the text of a query or a
document, an address, or the message of a foreign error, which may quote any of them.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, Final

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

SERVICE: Final = "knowledge-index"
NAMESPACE: Final = "KnowledgeIndex"
# Every module below logs to a child of this one, by its own name.
_ROOT: Final = "shared"
_MAX_CAUSES: Final = 5

_correlation_id: ContextVar[str | None] = ContextVar("correlation_id", default=None)


@contextmanager
def correlated(correlation_id: str) -> Iterator[None]:
    """Put this id into every line logged inside the block, by this thread alone."""
    token = _correlation_id.set(correlation_id)
    try:
        yield
    finally:
        _correlation_id.reset(token)


@cache
def log() -> logging.Logger:
    """Return the logger of requests; the first call sets up the format of all lines of this process."""
    handler = _StandardOutput()
    handler.addFilter(_add_correlation_id)
    Logger(service=SERVICE, level=logging.INFO, utc=True, use_rfc3339=True, logger_handler=handler)
    core = logging.getLogger(_ROOT)
    if handler not in core.handlers:
        core.addHandler(handler)
        core.setLevel(logging.INFO)
    return logging.getLogger(f"{_ROOT}.requests")


def log_failure(event: str, error: BaseException, **fields: object) -> None:
    """Log an error that nobody expected: its kind, its causes and where it was raised, without its message."""
    log().error(event, extra={"errors": kinds(error), "frames": frames(error), **fields})


def count_request(*, route: str, status: int, duration_ms: float, cold_start: bool) -> None:
    """Write the metrics of one request in CloudWatch's embedded format.

    Of its own each time: the shared Metrics class would mix requests that run side by side.
    """
    metrics = EphemeralMetrics(namespace=NAMESPACE, service=SERVICE)
    metrics.add_dimension(name="route", value=route)
    metrics.add_dimension(name="outcome", value=f"{status // 100}xx")
    metrics.add_metric(name="Requests", unit=MetricUnit.Count, value=1)
    metrics.add_metric(name="Duration", unit=MetricUnit.Milliseconds, value=duration_ms)
    if cold_start:
        metrics.add_metric(name="ColdStart", unit=MetricUnit.Count, value=1)
    metrics.flush_metrics()


def kinds(error: BaseException) -> list[str]:
    """Return the class of the error and of what caused it, outermost first."""
    names: list[str] = []
    current: BaseException | None = error
    while current is not None and len(names) < _MAX_CAUSES:
        names.append(type(current).__name__)
        current = current.__cause__ or current.__context__
    return names


def frames(error: BaseException) -> list[str]:
    """Return where the error came from, innermost last: file, line, function."""
    summary = traceback.extract_tb(error.__traceback__)
    return [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in summary]


class _StandardOutput(logging.Handler):
    """Writes to what is the standard output at the moment, each line whole: requests run side by side."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stdout.write(self.format(record) + "\n")
        except (OSError, ValueError):  # closed or full: a log that cannot be written fails no request
            self.handleError(record)


def _add_correlation_id(record: logging.LogRecord) -> bool:
    if (current := _correlation_id.get()) is not None:
        record.correlation_id = current
    return True


def fields_of(**fields: object) -> Mapping[str, Any]:
    """Return the fields that have a value, for `extra`."""
    return {name: value for name, value in fields.items() if value is not None}
