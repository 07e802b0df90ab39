"""The process that serves the HTTP API and the token issuer until it is told to stop.

Started by `local.stack` as `python -m local.serve --state=FOLDER`, with the stack's environment.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path

from local.environment import issuer_url
from local.gateway import Gateway
from local.http_server import LoopbackServer
from local.issuer import LocalIssuer, ensure_signing_key
from local.paths import Layout
from local.state import read_state


def main() -> int:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description="Serve the local HTTP API and the token issuer.")
    parser.add_argument("--state", type=Path, required=True, help="the stack's state folder")
    layout = replace(Layout.of(), state=parser.parse_args().state)
    state = read_state(layout.state_file)
    if state is None:
        print(f"there is no state in {layout.state_file}; run: ki up", file=sys.stderr)
        return 3
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    issuer = LocalIssuer(issuer_url(state), ensure_signing_key(layout.signing_key))
    with (
        LoopbackServer(state.ports.issuer, issuer.answer) as published,
        LoopbackServer(state.ports.http, Gateway().handle) as api,
    ):
        for server in (published, api):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        stop.wait()
        for server in (api, published):
            server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
