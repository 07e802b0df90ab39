"""The options `--as` and `--group` of every command that acts in somebody's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def persona_options(command: F) -> F:
    """Return the command with `--as EMAIL` (`email`) and repeatable `--group NAME` (`groups`)."""
    in_name_of = click.option(
        "--as", "email", required=True, metavar="WHO", help="In whose name, such as anna@kanzlei.example."
    )
    in_group = click.option(
        "--group", "groups", multiple=True, metavar="G", help="A further group of theirs; repeatable."
    )
    return in_name_of(in_group(command))
