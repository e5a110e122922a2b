"""Event loops, created only if enough file handles are available. A partly created loop prints errors when it is
deleted.
"""

from __future__ import annotations

import asyncio

from raggs.base.errors import ProviderError
from raggs.base.files import MORE_HANDLES, lacks_handles


def open_loop() -> asyncio.Runner:
    """Return a runner with an open event loop, so that no coroutine is created for a loop that cannot open.

    Raises:
        ProviderError: this process cannot open more files.
    """
    if lacks_handles():
        raise ProviderError("too many files are open", remedy=MORE_HANDLES)
    runner = asyncio.Runner()
    runner.get_loop()
    return runner
