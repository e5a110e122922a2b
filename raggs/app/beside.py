"""Work that needs an event loop of its own where one runs already, as in a notebook: in a thread beside it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from raggs.runs.pipeline.events import Event, Listener

T = TypeVar("T")


def in_loop() -> bool:
    """Whether an event loop runs in this thread, so that no other one can."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def beside(work: Callable[[Listener], T], listen: Listener) -> T:
    """Do work in a thread and wait for it; an interrupt stops it at the next event that it tells.

    Args:
        work: is given the listener that it must tell its events.
        listen: hears them, in that thread.
    """
    stopped = threading.Event()

    def hear(event: Event) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        listen(event)

    with ThreadPoolExecutor(1, "raggs") as threads:
        result = threads.submit(work, hear)
        try:
            return result.result()
        except KeyboardInterrupt:
            stopped.set()
            raise
