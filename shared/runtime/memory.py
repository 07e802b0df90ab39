"""The garbage collector of a process that answers requests: it looks at what a request left, not at the product."""

from __future__ import annotations

import gc
from typing import Final

# A search of the largest pool makes some 30,000 containers, and lets go of nearly all of them by itself.
_YOUNG: Final = 50_000
_MIDDLE: Final = 20
_OLD: Final = 50


def settle() -> None:
    """Spare the collector what lives as long as the process. Call once the first request is answered.

    A full collection looks at every module and statement: tens of milliseconds in the middle of some request.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
