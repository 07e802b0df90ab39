"""Free TCP ports on the loopback address."""

from __future__ import annotations

import socket
from collections.abc import Collection

LOOPBACK = "127.0.0.1"


def is_free(port: int) -> bool:
    """Tell whether a server could listen on this loopback port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def answers(port: int, *, timeout_s: float = 0.5) -> bool:
    """Tell whether something accepts connections on this loopback port."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=timeout_s):
            return True
    except OSError:
        return False


def choose_port(preferred: int | None = None, *, taken: Collection[int] = ()) -> int:
    """Return `preferred` if it is free and not `taken`, else a free port the system picks."""
    if preferred is not None and preferred not in taken and is_free(preferred):
        return preferred
    while True:
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port
