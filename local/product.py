"""The product's services on the running local stack, for commands that work beside the HTTP API."""

from __future__ import annotations

import click

from local import stack
from shared.runtime.bootstrap import Services, build
from shared.settings import load_settings


def running_services() -> Services:
    """Return services on the running stack; the caller's own `KI_` variables come before the stack's.

    Raises `NotRunningError` if the stack is away.
    """
    return _services(stack.running_environment())


def services_on_engines() -> Services:
    """Return services on the stack's engines, for work that comes before anything can be served.

    Raises `NotRunningError` if an engine is away.
    """
    return _services(stack.engines_environment())


def _services(env: dict[str, str]) -> Services:
    made = build(load_settings({**env, **stack.own_settings()}))
    running = click.get_current_context(silent=True)
    if running is not None:
        # Connections end with the command, whichever way it ends.
        running.call_on_close(made.close)
    return made
