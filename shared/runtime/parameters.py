"""Query parameters as the models of requests take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def listed(parameters: Mapping[str, str], name: str) -> dict[str, Any]:
    """Return the parameters with `name` as a list: API Gateway joins repeated ones by commas."""
    if name not in parameters:
        return dict(parameters)
    return {**parameters, name: [part.strip() for part in parameters[name].split(",")]}
