"""The screen: stdout as tables are printed on it."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

PIPE_WIDTH = 160


def open_console() -> Console:
    """Stdout; where it is no terminal, wide enough that no table is cut."""
    console = Console(highlight=False, soft_wrap=False)
    return console if console.is_terminal else Console(highlight=False, soft_wrap=False, width=PIPE_WIDTH)


def table(*columns: str) -> Table:
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        number = column in {
            "grade",
            "score",
            "conf.",
            "records",
            "calls",
            "cached",
            "failed",
            "USD",
            "tokens in",
            "tokens out",
            "mean s",
            "saved USD",
            "est. calls",
            "est. USD",
            "#",
        }
        made.add_column(column, justify="right" if number else "left", no_wrap=column != "passage", overflow="ellipsis")
    return made
