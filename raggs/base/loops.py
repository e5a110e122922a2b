"""Event loops, opened where there is room for one: it needs files of its own, and what is left of half a loop complains
on everybody's screen when it is thrown away. Nothing is awaited here.
"""

from __future__ import annotations

import asyncio

from raggs.base.errors import ProviderError
from raggs.base.files import MORE_HANDLES, lacks_handles


def open_loop() -> asyncio.Runner:
    """A runner whose loop is open already, so that no coroutine is made for a loop that cannot be.

    Raises:
        ProviderError: this process may open no more files.
    """
    if lacks_handles():
        raise ProviderError("too many files are open", remedy=MORE_HANDLES)
    runner = asyncio.Runner()
    runner.get_loop()
    return runner
