"""Console on stdout or stderr that prints tables as plain text.

Numbers are never truncated. Columns of text become narrower, and a table that is still too wide is printed in parts.
Output is plain text: brackets are not interpreted as markup, terminal control sequences are escaped
(`raggs.base.text.escape_controls`), and keys are masked. Colours and weights come only from `rich.text.Text` and
styles.
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
LEAST_TEXT = 20  # minimum width for wrapped text; below it, the terminal wraps
# Columns of text and their minimum widths. All other columns keep their full width.
MIN_WIDTHS = {"query": 16, "passage": 20, "state": 20, "by": 12, "model": 20}
SHORTENED_COLUMNS = {"query"}  # truncated with an ellipsis; other texts continue on the next line
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
    "#",
}


class Screen(Console):
    """Console without markup, which escapes terminal control sequences."""

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
        """See `Console.render_str`. Escapes first, so that column widths include the escapes."""
        return Text(escape_controls(mask(text)), style=style, justify=justify, overflow=overflow)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See `Console.render`. All output passes through this method."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=escape_controls(mask(segment.text)))


def open_console() -> Console:
    """Return a console for stdout. If stdout is not a terminal, its width is `PIPE_WIDTH`."""
    screen = Screen()
    return screen if screen.is_terminal else Screen(width=PIPE_WIDTH)


def hanging(head: str, text: str, screen: Console | None = None) -> str:
    """Return `head` and `text`; on a terminal, wrapped lines are indented to the start of `text`."""
    console = screen or open_console()
    room = console.width - len(head)
    if not console.is_terminal or room < LEAST_TEXT:
        return head + text
    lines = wrap(text, room, break_long_words=False, break_on_hyphens=False)
    return head + f"\n{' ' * len(head)}".join(lines)


def table(*columns: str) -> Table:
    """Return an empty table. Columns of numbers are right-aligned, columns of text left-aligned."""
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
    """A column with its natural and its minimum width."""

    column: Column
    natural: int
    least: int


class _FittingTable(Table):
    """Table that fits the screen. If it is too wide, it is printed in parts, each with the first column."""

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
    """Yield the columns of each part: the first column, and as many others as fit, at least one."""
    first, *others = shapes
    part = [first]
    for shape in others:
        if len(part) > 1 and sum(each.least + GAP for each in part) + shape.least > width:
            yield part
            part = [first]
        part.append(shape)
    yield part


def _part(shapes: Sequence[_Shape], width: int) -> Table:
    """Return a table of some columns. Spare width goes to columns of text, from the last one to the first."""
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
