"""The screen: stdout as tables are printed on it."""

from __future__ import annotations

from rich.console import Console

PIPE_WIDTH = 160


def open_console() -> Console:
    """Stdout; where it is no terminal, wide enough that no table is cut."""
    console = Console(highlight=False, soft_wrap=False)
    return console if console.is_terminal else Console(highlight=False, soft_wrap=False, width=PIPE_WIDTH)
