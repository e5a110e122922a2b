"""A sweep's document on the screen: every section under its title, with tables that fit.

A table that is too wide is first read without its last columns, which are the least needed, then with long names broken
into lines; a number is never cut, and what is not shown is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from raggs.base.text import visible
from raggs.cli.evalviews import columns_of, grid, show_parts, show_terms, width_of, without_intervals
from raggs.cli.screen import hanging
from raggs.evaluation.document import Cell, Document, Section, Table
from raggs.evaluation.words import GLOSSARY

LEAST = 4  # columns for which long names are broken, and then intervals left out: system, score, wait, price
NARROW = 0.42  # of the width, to which long names are broken
PIECE = re.compile(r"[^+ ]*[+ ]?")


def show_sweep(document: Document, screen: Console) -> None:
    """Print a sweep's report, or its plan."""
    _section(document.scores, screen)
    for place, section in enumerate(document.sections):
        screen.print()
        screen.print(Text(visible(section.title), style="bold"), soft_wrap=True)
        _section(section, screen, "bold green" if place == 0 and section.table is None else "")
    if document.notes:
        screen.print()
    _say([f"note: {note}" for note in document.notes], screen)
    _say([GLOSSARY], screen, "dim")


def _section(section: Section, screen: Console, style: str = "") -> None:
    _say(section.sentences, screen, style)
    if section.table is None:
        return
    shown, hidden = _fitted(section.table, screen.width)
    if width_of(shown, " ") <= screen.width:
        screen.print(grid(shown, " "))
    else:
        show_parts(shown, screen)
    if section.legend:
        _say(["; ".join(each.line for each in section.legend)], screen, "dim")
    if hidden:
        _say([f"not shown here, for want of room: {', '.join(hidden)}"], screen, "dim")
    ranged = any(cell.ranges for row in shown.rows for cell in row)
    named = {title.partition("@")[0] for title in shown.head} | set(shown.head)
    gone = {title.partition("@")[0] for title in hidden} | set(hidden)
    terms = [each for each in section.terms if each.sign in named or each.sign not in gone]
    show_terms([each for each in terms if ranged or each.sign != "[ ]"], screen)


def _say(sentences: Sequence[str], screen: Console, style: str = "") -> None:
    """A line each; on a terminal broken between words."""
    for sentence in sentences:
        screen.print(Text(hanging("", visible(sentence), screen), style=style), soft_wrap=True)


def _fitted(table: Table, width: int) -> tuple[Table, tuple[str, ...]]:
    """The table, or what of it fits, and the titles of the columns that do not."""
    for form in _forms(table, width):
        for count in range(len(table.head), min(LEAST, len(table.head)) - 1, -1):
            part = columns_of(form, list(range(count)))
            if width_of(part, " ") <= width:
                return part, table.head[count:]
    return without_intervals(_broken(table, width)), ()


def _forms(table: Table, width: int) -> Iterator[Table]:
    yield table
    yield (broken := _broken(table, width))
    yield without_intervals(broken)


def _broken(table: Table, width: int) -> Table:
    room = max(16, int(width * NARROW))
    rows = (tuple(_folded(cell, room) if cell.form == "text" else cell for cell in row) for row in table.rows)
    return replace(table, rows=tuple(rows))


def _folded(cell: Cell, room: int) -> Cell:
    """A long text in lines, broken after a plus sign or a blank where there is one."""
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
