"""Print report documents on the screen: scores and findings of evaluations, or every section with its table.

If a table is too wide, its last columns are hidden first, because they are the least important. Then long names are
broken into lines. Numbers are never truncated. The titles of hidden columns are printed. The table of scores that
`raggs eval --details` prints hides no column: it loses its intervals, or is printed in parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from raggs.base.document import (
    GLOSSARY,
    Cell,
    Legend,
    ReportDocument,
    Section,
    Summary,
    Table,
    round_document,
    round_table,
    without_intervals,
)
from raggs.base.text import escape_controls
from raggs.cli.plain_text import say
from raggs.cli.screen import hanging

if TYPE_CHECKING:
    from raggs.evaluation.models import EvalReport

GAP = 2  # number of spaces between two columns of a table
SUMMARY_WIDTH = 80
MIN_WRAPPED_WIDTH = 24  # minimum width for wrapping the text of the last column
MIN_COLUMN_WIDTH = 8  # minimum width of a column with wrapped text; on a narrower screen, the text is truncated


def show(report: EvalReport, screen: Console, digits: int | None = None) -> None:
    """Print the full document of an evaluation.

    Args:
        digits: decimals of scores and intervals in tables; None: four for scores and three for intervals.
    """
    from raggs.evaluation.layout import lay_out  # imported lazily: raggs run prints summaries only

    document = lay_out(report)
    show_document(document if digits is None else round_document(document, digits), screen)


DIGITS = 3  # default number of decimals of scores (see --precision)


def show_summary(summary: Summary, screen: Console, digits: int = DIGITS) -> None:
    """Print the default output of a command: headline, table, reliability and the next command.

    Text is wrapped at 80 columns, also in a pipe. Commands and paths are not wrapped.
    """
    width = min(screen.width, SUMMARY_WIDTH)
    count = len(summary.warnings)
    for warning in summary.warnings[:1]:
        which = f"warning (1 of {count}, all with --details)" if count > 1 else "warning"
        _wrapped(f"{which}: {warning}", screen, width, "bold yellow")
    show_headline(summary, screen)
    if summary.table is not None:
        screen.print()
        shown, hidden = _drop_columns(_wrap_last_column(round_table(summary.table, digits), width), width)
        screen.print(grid(shown, " "))
        notes = (summary.legend, f"not shown: {', '.join(hidden)}" if hidden else "")
        _wrapped("; ".join(filter(None, notes)), screen, width, "dim")
        screen.print()
    for sentence in summary.trust:
        _wrapped(sentence, screen, width)
    if summary.next:
        screen.print(Text(f"next: {escape_controls(summary.next)}"), soft_wrap=True)
    _wrapped(summary.details, screen, width, "dim")


def show_headline(summary: Summary, screen: Console) -> None:
    """Print the decision or result of a command."""
    for sentence in summary.headline:
        _wrapped(sentence, screen, min(screen.width, SUMMARY_WIDTH), "bold")


INTERVAL_SPACE = re.compile(r"(?<=[\d,]) (?=[^\[]*\])")  # finds spaces inside an interval, where a line must not break


def _wrapped(text: str, screen: Console, width: int, style: str = "") -> None:
    if text:
        whole = INTERVAL_SPACE.sub("\u00a0", escape_controls(text))
        lines = wrap(whole, width, break_long_words=False, break_on_hyphens=False)
        screen.print(Text("\n".join(lines).replace("\u00a0", " "), style=style), soft_wrap=True)


def _drop_columns(table: Table, width: int) -> tuple[Table, tuple[str, ...]]:
    """Return the table without the last columns that do not fit, and their titles. At least two columns stay."""
    for count in range(len(table.head), 1, -1):
        part = columns_of(table, list(range(count)))
        if width_of(part, " ") <= width:
            return part, table.head[count:]
    return _narrowed(columns_of(table, [0, 1]), width), table.head[2:]


def show_details(
    summary: Summary, screen: Console, details: bool = False, rest: Callable[[], None] | None = None
) -> None:
    """Print a summary. With `details`, also call `rest`, which prints everything else, and print the next command
    last.
    """
    if not details:
        show_summary(summary, screen)
        return
    show_summary(replace(summary, next="", details=""), screen)
    if rest is not None:
        screen.print()
        rest()
    show_summary(Summary((), next=summary.next), screen)


def show_document(document: ReportDocument, screen: Console) -> None:
    """Print the scores as a table, and the findings of the analyses as sentences without their tables."""
    _say([f"warning: {warning}" for warning in document.warnings], screen, "bold yellow")
    _say(document.scores.sentences, screen)
    if document.scores.table is not None:
        drawn, between = _layout(document.scores.table, screen.width)
        show_parts(drawn, screen, between)
        legend = [each for each in document.scores.legend if each.sign != "[ ]" or _ranged(drawn)]
        _say_legend(legend, screen)
        show_terms(document.scores.terms, screen)
        _say([GLOSSARY], screen, "dim")
    for section in document.sections:
        _say(section.sentences, screen)
    _say([f"note: {note}" for note in document.notes], screen)


def show_sweep(document: ReportDocument, screen: Console) -> None:
    """Print every section under its title, with tables that fit the screen."""
    _section(document.scores, screen)
    for place, section in enumerate(document.sections):
        screen.print()
        screen.print(Text(escape_controls(section.title), style="bold"), soft_wrap=True)
        _section(section, screen, "bold green" if place == 0 and section.table is None else "")
    if document.notes:
        screen.print()
    _say([f"note: {note}" for note in document.notes], screen)
    _say([GLOSSARY], screen, "dim")


def _section(section: Section, screen: Console, style: str = "") -> None:
    _say(section.sentences, screen, style)
    if section.table is None:
        return
    shown, hidden = _fit_columns(section.table, screen.width)
    show_parts(shown, screen)
    _say_legend(section.legend, screen)
    if hidden:
        _say([f"not shown (screen too narrow): {', '.join(hidden)}"], screen, "dim")
    named, gone = ({*titles, *(title.partition("@")[0] for title in titles)} for titles in (shown.head, hidden))
    terms = [each for each in section.terms if each.sign in named or each.sign not in gone]
    show_terms([each for each in terms if _ranged(shown) or each.sign != "[ ]"], screen)


def _ranged(table: Table) -> bool:
    return any(each.brackets == "[]" for row in table.rows for cell in row for each in cell.ranges)


def _say(sentences: Sequence[str], screen: Console, style: str = "") -> None:
    """Print one sentence per line; on a terminal, long lines are wrapped between words."""
    for sentence in sentences:
        screen.print(Text(hanging("", escape_controls(sentence), screen), style=style), soft_wrap=True)


def _say_legend(legend: Sequence[Legend], screen: Console) -> None:
    _say(["; ".join(each.line for each in legend)] if legend else [], screen, "dim")


def show_parts(table: Table, screen: Console, between: str = " ") -> None:
    """Print a table, split into parts if it is wider than the screen."""
    for part in _parts(table, screen.width, between):
        screen.print(grid(_fold_last_column(part, screen.width, between), between))


def show_terms(terms: Sequence[Legend], screen: Console) -> None:
    """Print one term per line, with the names aligned in the first column."""
    longest = max((len(term.sign) for term in terms), default=0)
    for term in terms:
        begin = f"{escape_controls(term.sign):<{longest}}  "
        text = hanging(begin, escape_controls(term.text), screen)
        screen.print(Text(text, style="dim"), soft_wrap=True)


def _layout(table: Table, width: int) -> tuple[Table, str]:
    """Return the first layout that fits: intervals next to their scores, then below them, then no intervals.

    If no layout fits, return the table with intervals below the scores, to be printed in parts. The second value of the
    result is the text between a score and its interval.
    """
    below = (table, "\n")
    layouts = ((table, " "), below, (without_intervals(table), "\n"))
    return next((layout for layout in layouts if width_of(*layout) <= width), below)


def _parts(table: Table, width: int, between: str) -> Sequence[Table]:
    """Return the table in parts that fit the width. Each part starts with the first column."""
    columns = _widths(table, between)
    taken: list[list[int]] = [[]]
    for place in range(1, len(columns)):
        if taken[-1] and sum(columns[one] for one in [0, *taken[-1], place]) + GAP * (len(taken[-1]) + 1) > width:
            taken.append([])
        taken[-1].append(place)
    return [columns_of(table, [0, *places]) for places in taken]


def _fold_last_column(table: Table, width: int, between: str) -> Table:
    """Return the table with long texts in its last column broken into lines. Numbers are not broken."""
    columns = _widths(table, between)
    room = width - sum(columns[:-1]) - GAP * (len(columns) - 1)
    if columns[-1] <= room or room < MIN_COLUMN_WIDTH:
        return table
    rows = (
        (*row[:-1], replace(row[-1], value=_break_text(row[-1].text, room)) if row[-1].form == "text" else row[-1])
        for row in table.rows
    )
    return Table((*table.head[:-1], _break_text(table.head[-1], room)), tuple(rows))


def _wrap_last_column(table: Table, width: int) -> Table:
    """Return the table with the text of its last column wrapped to the remaining width."""
    columns = _widths(table, " ")
    room = width - sum(columns[:-1]) - GAP * (len(columns) - 1)
    if columns[-1] <= room or room < MIN_WRAPPED_WIDTH:
        return table
    rows = ((*row[:-1], replace(row[-1], value="\n".join(wrap(row[-1].text, room)))) for row in table.rows)
    return replace(table, rows=tuple(rows))


def _break_text(text: str, room: int) -> str:
    return "\n".join(text[start : start + room] for start in range(0, len(text), room)) or text


def columns_of(table: Table, places: Sequence[int]) -> Table:
    """Return a table with only these columns."""
    rows = tuple(tuple(row[place] for place in places) for row in table.rows)
    return Table(tuple(table.head[place] for place in places), rows)


def width_of(table: Table, between: str) -> int:
    """Return the width of a table in characters, with the string `between` between values and intervals."""
    columns = _widths(table, between)
    return sum(columns) + GAP * (len(columns) - 1)


def _widths(table: Table, between: str) -> list[int]:
    """Return the width of each column in characters, including the title."""
    head = [escape_controls(title) for title in table.head]
    columns = zip(head, *([_cell(cell, between).plain for cell in row] for row in table.rows), strict=True)
    return [max(Text(line).cell_len for text in column for line in text.split("\n")) for column in columns]


def grid(table: Table, between: str) -> Grid:
    """Return the table as a rich table."""
    made = Grid(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for place, title in enumerate(table.head):
        right = place and all(row[place].form == "text" for row in table.rows) and not _is_text_column(table, place)
        made.add_column(Text(escape_controls(title)), no_wrap=True, justify="right" if right else "left")
    for row in table.rows:
        made.add_row(*(_cell(cell, between) for cell in row))
    return made


def _is_text_column(table: Table, place: int) -> bool:
    """Return whether a column contains words. A column with figures and units does not count."""
    return any(row[place].text[:1].isalpha() for row in table.rows)


def _cell(cell: Cell, between: str) -> Text:
    text = Text(escape_controls(cell.text), style="bold" if cell.best else "")
    text.append(cell.mark or (" " if cell.ranges else ""))
    for each in cell.ranges:
        text.append(between + each.text.replace(",", ""), style="not bold dim")
    return text


def show_per_query(report: EvalReport) -> None:
    """Print one line per system and query, with the values separated by tabs."""
    from raggs.evaluation.layout import per_query_head, per_query_rows

    say("\t".join(per_query_head(report)))
    for name, qid, values in per_query_rows(report):
        say("\t".join([name, qid, *("" if value is None else f"{value:.4f}" for value in values)]))


# The first columns are always shown (of a sweep: system, score, latency, price). If necessary, names are broken and
# intervals omitted.
MIN_COLUMNS = 4
MAX_TEXT_SHARE = 0.42  # maximum share of the screen's width for a name; longer names are broken into lines
PIECE = re.compile(r"[^+ ]*[+ ]?")


def _fit_columns(table: Table, width: int) -> tuple[Table, tuple[str, ...]]:
    """Return the columns of the table that fit the width, and the titles of the hidden ones."""
    for form in _narrower_tables(table, width):
        for count in range(len(table.head), min(MIN_COLUMNS, len(table.head)) - 1, -1):
            part = columns_of(form, list(range(count)))
            if width_of(part, " ") <= width:
                return part, table.head[count:]
    return without_intervals(_narrowed(table, width)), ()


def _narrower_tables(table: Table, width: int) -> Iterator[Table]:
    yield table
    yield (broken := _narrowed(table, width))
    yield without_intervals(broken)


def _narrowed(table: Table, width: int) -> Table:
    room = max(16, int(width * MAX_TEXT_SHARE))
    rows = (tuple(_in_lines(cell, room) if cell.form == "text" else cell for cell in row) for row in table.rows)
    return replace(table, rows=tuple(rows))


def _in_lines(cell: Cell, room: int) -> Cell:
    """Return the cell with a long text broken into lines, if possible after a plus sign or a space."""
    if cell.value is None or len(cell.text) <= room:
        return cell
    lines = [""]
    for piece in PIECE.findall(cell.text):
        for start in range(0, len(piece), room):
            part = piece[start : start + room]
            if lines[-1].strip() and len(lines[-1]) + len(part) > room:
                lines.append("   ")
            lines[-1] += part
    return replace(cell, value="\n".join(lines))
