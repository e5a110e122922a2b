"""The screen: stdout as tables are printed on it.

A number is never cut: columns of text give way, and what is still too wide for the terminal is printed in parts.
Whatever is printed here is plain text: brackets are no markup, and what would command the terminal is shown as an
escape (`raggs.base.text.escape_controls`); keys are masked. Colour and weight are given on purpose, by `rich.text.Text`
and styles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, HighlighterType, JustifyMethod, OverflowMethod, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

from raggs.base.secrets import mask
from raggs.base.text import escape_controls
from raggs.cli.plain_text import is_quiet

PIPE_WIDTH = 160
GAP = 2
LEAST_TEXT = 20  # columns; narrower is left to the terminal
# The columns of text, and the width down to which each may be brought; all others keep theirs.
MIN_WIDTHS = {"query": 16, "passage": 20, "state": 20, "by": 12, "model": 20}
SHORTENED_COLUMNS = {"query"}  # the text that may end in an ellipsis; the rest goes on in the next line
NUMBER_COLUMNS = {
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


class Screen(Console):
    """A console without markup, on which no text can act."""

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(
            stderr=stderr, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False, quiet=is_quiet()
        )

    def render_str(
        self,
        text: str,
        *,
        style: str | Style = "",
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        emoji: bool | None = None,
        markup: bool | None = None,
        highlight: bool | None = None,
        highlighter: HighlighterType | None = None,
    ) -> Text:
        """See `Console.render_str`; the length of an escape counts where columns are measured."""
        return Text(escape_controls(mask(text)), style=style, justify=justify, overflow=overflow)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See `Console.render`: everything that is printed passes through here."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=escape_controls(mask(segment.text)))


def open_console() -> Console:
    """Stdout; where it is no terminal, wide enough that no table is cut."""
    screen = Screen()
    return screen if screen.is_terminal else Screen(width=PIPE_WIDTH)


def hanging(head: str, text: str, screen: Console | None = None) -> str:
    """`text` after `head`; on a terminal its further lines stand below its first."""
    console = screen or open_console()
    room = console.width - len(head)
    if not console.is_terminal or room < LEAST_TEXT:
        return head + text
    lines = wrap(text, room, break_long_words=False, break_on_hyphens=False)
    return head + f"\n{' ' * len(head)}".join(lines)


def table(*columns: str) -> Table:
    """A table without rows; numbers stand to the right, texts to the left."""
    made = _FittingTable(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for column in columns:
        wraps = column in MIN_WIDTHS and column not in SHORTENED_COLUMNS
        made.add_column(
            column,
            justify="right" if column in NUMBER_COLUMNS else "left",
            no_wrap=not wraps,
            overflow="fold" if wraps else "ellipsis",
        )
    return made


class _Shape(NamedTuple):
    """How wide a column is, and how narrow it may become."""

    column: Column
    natural: int
    least: int


class _FittingTable(Table):
    """A table as wide as the screen allows, in parts that begin with the first column where that is too little."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table | str]:
        shapes = [_shape(console, column) for column in self.columns]
        for number, part in enumerate(_parts(shapes, options.max_width)):
            if number:
                yield ""
            yield _part(part, options.max_width)


def _shape(console: Console, column: Column) -> _Shape:
    natural = max(console.measure(cell).maximum for cell in (column.header, *column.cells))
    return _Shape(column, natural, min(natural, MIN_WIDTHS.get(str(column.header), natural)))


def _parts(shapes: Sequence[_Shape], width: int) -> Iterator[list[_Shape]]:
    """The columns of each part: as many as fit beside the first one, and at least one."""
    first, *others = shapes
    part = [first]
    for shape in others:
        if len(part) > 1 and sum(each.least + GAP for each in part) + shape.least > width:
            yield part
            part = [first]
        part.append(shape)
    yield part


def _part(shapes: Sequence[_Shape], width: int) -> Table:
    """Some columns as a table of their own; what is left of the width goes to the texts, to the last one first."""
    made = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    spare = width - GAP * (len(shapes) - 1) - sum(shape.least for shape in shapes)
    widths: list[int] = []
    for _, natural, least in reversed(shapes):
        wider = max(0, min(spare, natural - least))
        spare -= wider
        widths.insert(0, least + wider)
    for (column, _, _), chosen in zip(shapes, widths, strict=True):
        made.add_column(
            column.header, justify=column.justify, no_wrap=column.no_wrap, overflow=column.overflow, width=chosen
        )
    for row in zip(*(shape.column.cells for shape in shapes), strict=True):
        made.add_row(*row)
    return made
