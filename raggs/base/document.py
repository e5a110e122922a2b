"""Report documents: tables of findings, and sections rendered as Markdown, HTML, CSV and pandas frames.

A finding is an object of a result. The object's class declares a table column for a field or property in the type
annotation, as in ``difference: Annotated[Number, Column("difference", "signed")]``. `table_of` builds a table of
findings. Callers choose the findings, the columns, and the sentences around the table. This module computes no results.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from inspect import getattr_static
from math import ceil, sqrt
from typing import TYPE_CHECKING, Literal, get_type_hints

from pydantic import BaseModel

from raggs.base.errors import PrerequisiteError
from raggs.base.text import escape_controls, spreadsheet_cell
from raggs.base.types import Number

if TYPE_CHECKING:
    from pandas import DataFrame
Value = float | str | None
NumberForm = Literal["text", "score", "signed", "percent", "points", "share"]
NUMBER_FORMATS: dict[NumberForm, str] = {
    "text": "",
    "score": "z.4f",
    "signed": "+z.4f",
    "percent": "+z.1f",
    "points": "z.2f",
    "share": "z.0%",
}
INTERVAL_FORMATS: dict[NumberForm, str] = {
    **NUMBER_FORMATS,
    "text": "z.3f",
    "score": "z.3f",
    "signed": "z.3f",
}  # formats of the bounds of an interval
UNDEFINED = "–"


@dataclass(frozen=True)
class ScoreRange:
    """Two values that enclose a score.

    Attributes:
        low, high: the bounds, inclusive.
        brackets: "[]" for a confidence interval of the mean, "{}" for the possible range given unjudged passages.
        form: number format of the enclosed value.
    """

    low: float
    high: float
    brackets: Literal["[]", "{}"]
    form: NumberForm = "score"

    @property
    def text(self) -> str:
        """The range as text, for example ``[0.661, 0.851]``."""
        return (
            f"{self.brackets[0]}{self.low:{INTERVAL_FORMATS[self.form]}}, "
            f"{self.high:{INTERVAL_FORMATS[self.form]}}{self.brackets[1]}"
        )


def formatted(value: Value, form: str) -> str:
    """Return the number in a Python format, or a dash if it is None."""
    return UNDEFINED if value is None else format(value, form)


def p_value(value: float) -> str:
    """Return a p-value with three decimals; a smaller one as ``< 0.001``."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


@dataclass(frozen=True)
class Cell:
    """One value of a table.

    Attributes:
        value: a number or a text; None if the number is not defined.
        form: number format. "text" is unchanged, "score" has four decimals, "signed" has a sign and four decimals.
            "percent" has a sign and one decimal, "points" has two decimals, and "share" is in whole percent.
        mark: a sign after the value, such as that of a verdict.
        ranges: ranges that enclose the value.
        best: whether the value is emphasised, because it is the best one or that of the chosen system.
    """

    value: Value
    form: NumberForm = "text"
    mark: str = ""
    ranges: tuple[ScoreRange, ...] = ()
    best: bool = False

    @property
    def text(self) -> str:
        """The formatted value, without mark and ranges."""
        return formatted(self.value, NUMBER_FORMATS[self.form])


Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """Table whose rows have one cell per title in `head`."""

    head: tuple[str, ...]
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, head: Sequence[str], rows: Iterable[Iterable[object]]) -> Table | None:
        """Return a table of cells and plain values; None if there are no rows."""
        found = tuple(
            tuple(each if isinstance(each, Cell) else Cell(_plain_value(each)) for each in row) for row in rows
        )
        return cls(tuple(head), found) if found else None


@dataclass(frozen=True)
class Legend:
    """Explanation of a sign or a column title of a table; `sign` is empty if the text names its signs itself."""

    sign: str
    text: str

    @property
    def line(self) -> str:
        """Sign and text, separated by a space."""
        return f"{self.sign} {self.text}".strip()


@dataclass(frozen=True)
class Section:
    """One topic of a report: findings in sentences, a table with the numbers, and a legend for its signs.

    Short renderings show the sentences instead of the table, and omit sections without sentences. `terms` explain the
    column titles of the table, one line each.
    """

    title: str
    sentences: tuple[str, ...] = ()
    table: Table | None = None
    legend: tuple[Legend, ...] = ()
    terms: tuple[Legend, ...] = ()


@dataclass(frozen=True)
class ReportDocument:
    """A complete report.

    Attributes:
        title: title of the report.
        scores: section with the scores of the systems.
        sections: one section per analysis with findings.
        notes: limitations of the numbers that a reader must know.
        warnings: reasons why the numbers may be meaningless, shown above everything else.
    """

    title: str
    scores: Section
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Summary:
    """The default output of a command: at most 25 lines of 80 columns, and 200 words.

    Attributes:
        headline: the decision or result; at most four sentences.
        table: at most 80 columns wide.
        legend: explanation of the titles and signs of the table; one line.
        trust: limitations of the result, such as unjudged passages, pooling or a judge that fails its check.
        next: the one command to run next; empty if there is none.
        details: how to see more, such as "--details: intervals of all measures"; empty if there is nothing more.
        warnings: reasons why the result may be meaningless. The first one is printed above the headline, and the others
            are counted.
    """

    headline: tuple[str, ...]
    table: Table | None = None
    legend: str = ""
    trust: tuple[str, ...] = ()
    next: str = ""
    details: str = ""
    warnings: tuple[str, ...] = ()


def round_document(document: ReportDocument, digits: int) -> ReportDocument:
    """Return the document with the scores, differences and intervals of its tables rounded to `digits` decimals."""

    def rounded(section: Section) -> Section:
        return section if section.table is None else replace(section, table=round_table(section.table, digits))

    return replace(document, scores=rounded(document.scores), sections=tuple(map(rounded, document.sections)))


def round_table(table: Table, digits: int) -> Table:
    """Return the table with scores, differences and intervals at `digits` decimals, as text."""
    return replace(table, rows=tuple(tuple(_round_cell(cell, digits) for cell in row) for row in table.rows))


def _round_cell(cell: Cell, digits: int) -> Cell:
    if cell.form not in ("score", "signed") or not isinstance(cell.value, int | float):
        return cell
    sign = "+" if cell.form == "signed" else ""
    ranges = (
        f" {each.brackets[0]}{each.low:z.{digits}f}, {each.high:z.{digits}f}{each.brackets[1]}" for each in cell.ranges
    )
    return Cell(f"{cell.value:{sign}z.{digits}f}{cell.mark}{''.join(ranges)}", best=cell.best)


def without_intervals(table: Table) -> Table:
    """Return the table without confidence intervals. Ranges that unjudged passages allow stay."""
    rows = (
        tuple(replace(cell, ranges=tuple(each for each in cell.ranges if each.brackets != "[]")) for cell in row)
        for row in table.rows
    )
    return replace(table, rows=tuple(rows))


def shade_pairs(counts: Sequence[Sequence[int]]) -> tuple[tuple[str, ...], ...]:
    """Return the class in matrix.css of each cell of a square table of pairs of grades.

    The colour shows whether both grades are the same, one apart, or further apart. More pairs have a stronger colour.
    """
    most = max(map(max, counts))
    kinds = ("same", "near", "far")

    def shade(row: int, column: int, count: int) -> str:
        return f"{kinds[min(2, abs(row - column))]}{ceil(2 * sqrt(count / most))}" if count else "zero"

    return tuple(tuple(shade(at, to, count) for to, count in enumerate(row)) for at, row in enumerate(counts))


def interval(low: float | None, high: float | None, form: NumberForm = "score") -> tuple[ScoreRange, ...]:
    """Return the interval from `low` to `high` in this number format; empty if a bound is None."""
    return () if low is None or high is None else (ScoreRange(low, high, "[]", form),)


def bounded(
    value: float | None, low: float | None, high: float | None, form: NumberForm = "score", mark: str = ""
) -> Cell:
    """Return the cell of a number with its interval, which is omitted if a bound is None."""
    return Cell(value, form, mark, interval(low, high, form))


# --- findings as tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """Table column for a field or property of a finding, declared in the `Annotated` of its type.

    Attributes:
        title: column title. Words in braces are replaced by arguments of `table_of`. For an entry of a mapping,
            ``{key}`` is its key.
        form: number format; see `Cell`.
        text: a format such as ``"{:,.1f} s"``, or a function that returns the text; replaces `form`.
        none: text that is shown for None; by default, a dash.
        bounds: names of the finding's two fields with the lower and the upper bound of the value.
        scale: factor for the number and its bounds.
        mark: name of the finding's property with the sign that is shown after the value.
        legend: explanation of the title; words in braces are replaced as in `title`.
    """

    title: str
    form: NumberForm = "text"
    text: str | Callable[..., str | None] | None = None
    none: str | None = None
    bounds: tuple[str, str] | None = None
    scale: float = 1
    mark: str | None = None
    legend: str = ""

    def cell(self, value: object, finding: object) -> Cell:
        """Return the cell of a value of this finding.

        A `Cell` is returned unchanged. If a value has a method `cell(form)`, this method makes the cell.
        """
        if value is None:
            return Cell(self.none, self.form if self.none is None else "text")
        if isinstance(value, Cell):
            return value
        mark = getattr(finding, self.mark) if self.mark else ""
        if own := getattr(value, "cell", None):
            found: Cell = own(self.form)
            return replace(found, mark=mark) if mark else found
        if self.text is not None:
            value = (self.text.format(value) if isinstance(self.text, str) else self.text(value)) or None
        low, high = (getattr(finding, name) for name in self.bounds) if self.bounds else (None, None)
        if isinstance(value, int | float) and self.scale != 1:
            value, low, high = (None if each is None else self.scale * each for each in (value, low, high))
        return Cell(_plain_value(value), self.form, mark, interval(low, high, self.form))


def _plain_value(value: object) -> Value:
    return value if isinstance(value, int | float | str | None) else str(value)


# A column: its declared name, the name of a mapping with a key, or a column with a function that returns its values.
ColumnSpec = str | tuple[str, str | int] | tuple[Column, Callable[..., object]]


def table_of(findings: Iterable[object], *shown: ColumnSpec, **words: str) -> Table | None:
    """Return a table with one row per finding and one column per entry of `shown`; None if there are no findings.

    Args:
        findings: objects of one class. If each row shows several findings, tuples: a name is looked up in each finding,
            in order.
        shown: declared names, ``(name, key)`` for an entry of a mapping, or a column and a function. The function
            receives the finding, or all findings of a row, and returns the value.
        words: texts for the words in braces in the titles.

    Raises:
        KeyError: no finding declares a column of this name.
    """
    rows = [_findings_of_row(row) for row in findings]
    if not rows:
        return None
    head = [_fill_title(_find_column(rows[0], each)[0].title, each, words) for each in shown]
    return Table(tuple(head), tuple(tuple(_cell(row, each) for each in shown) for row in rows))


def terms_of(findings: Sequence[object], *shown: ColumnSpec, **words: str) -> tuple[Legend, ...]:
    """Return the explanations of the column titles, as far as declared; arguments as in `table_of`."""
    columns = [(each, _find_column(_findings_of_row(findings[0]), each)[0]) for each in shown if findings]
    return tuple(
        Legend(_fill_title(column.title, each, words), _fill_title(column.legend, each, words))
        for each, column in columns
        if column.legend
    )


def _findings_of_row(row: object) -> tuple[object, ...]:
    """Return the findings of a row; a named tuple is a single finding."""
    return row if isinstance(row, tuple) and not hasattr(row, "_fields") else (row,)


def _fill_title(text: str, shown: ColumnSpec, words: Mapping[str, str]) -> str:
    key = shown[1] if isinstance(shown, tuple) else ""
    return text.format_map({"key": key, **words})


def _cell(row: tuple[object, ...], shown: ColumnSpec) -> Cell:
    column, value, finding = _find_column(row, shown)
    return column.cell(value, finding)


def _find_column(row: tuple[object, ...], shown: ColumnSpec) -> tuple[Column, object, object]:
    """Return the column, the value, and the finding that has the value.

    Raises:
        KeyError: no finding of the row declares a column of this name.
    """
    name, key = (shown, None) if isinstance(shown, str) else shown
    if isinstance(name, Column):
        return name, key(*row) if callable(key) else None, row[0]
    for finding in row:
        if column := _declared(type(finding), name):
            value = getattr(finding, name)
            return column, value if key is None else value.get(key), finding
    raise KeyError(f"{' and '.join(type(each).__name__ for each in row)}: no column is declared for {name}")


_COLUMNS: dict[tuple[type, str], Column | None] = {}


def _declared(kind: type, name: str) -> Column | None:
    """Return the column that a class declares on a field or property; None if it declares none."""
    if (kind, name) not in _COLUMNS:
        place = getattr_static(kind, name, None)
        if computed := getattr(place, "fget", getattr(place, "func", None)):
            said = getattr(get_type_hints(computed, include_extras=True).get("return"), "__metadata__", ())
        elif issubclass(kind, BaseModel):
            said = kind.model_fields[name].metadata if name in kind.model_fields else ()
        else:
            said = getattr(get_type_hints(kind, include_extras=True).get(name), "__metadata__", ())
        _COLUMNS[kind, name] = next((each for each in said if isinstance(each, Column)), None)
    return _COLUMNS[kind, name]


# --- renderings -----------------------------------------------------------------------------------------------


def fragment(document: ReportDocument) -> str:
    """Return the document as HTML without a page around it, so that a notebook's own style applies."""
    parts = [
        f"<h3>{_html_text(document.title)}</h3>",
        *(f"<p><strong>warning: {_html_text(warning)}</strong></p>" for warning in document.warnings),
        *_html_section(document.scores),
    ]
    for section in document.sections:
        parts += [f"<h4>{_html_text(section.title)}</h4>", *_html_section(section)]
    parts += _html_list("note: " + note for note in document.notes)
    return "<div>" + "\n".join(parts) + "</div>"


def summary_fragment(summary: Summary, details: ReportDocument, digits: int = 3) -> str:
    """Return a summary as HTML for a notebook: headline, table and limitations, then the details, folded."""
    parts = [
        *(f"<p><strong>warning: {_html_text(warning)}</strong></p>" for warning in summary.warnings),
        *(f"<p><strong>{_html_text(sentence)}</strong></p>" for sentence in summary.headline),
    ]
    if summary.table is not None:
        parts += _html_table(round_table(summary.table, digits))
    parts += [f"<p><small>{_html_text(summary.legend)}</small></p>"] if summary.legend else []
    parts += [f"<p>{_html_text(sentence)}</p>" for sentence in summary.trust]
    folded = f"<details><summary>all measures and definitions</summary>{fragment(details)}</details>"
    return "<div>" + "\n".join([*parts, folded]) + "</div>"


def _html_section(section: Section) -> Iterator[str]:
    yield from (f"<p>{_html_text(sentence)}</p>" for sentence in section.sentences)
    if section.table is not None:
        yield from _html_table(section.table)
    if section.legend:
        yield f"<p><small>{_html_text('; '.join(each.line for each in section.legend))}</small></p>"
    if section.terms:
        yield "<details><summary>Definitions</summary>"
        yield from _html_list(f"{term.sign}: {term.text}" for term in section.terms)
        yield "</details>"


def _html_table(table: Table) -> Iterator[str]:
    yield (
        "<table><thead><tr>" + "".join(f"<th>{_html_text(title)}</th>" for title in table.head) + "</tr></thead><tbody>"
    )
    for row in table.rows:
        yield "<tr>" + "".join(f"<td>{_html_cell(cell)}</td>" for cell in row) + "</tr>"
    yield "</tbody></table>"


def _html_cell(cell: Cell) -> str:
    text = _html_text(cell.text + cell.mark)
    ranges = "".join(f" <small>{_html_text(each.text)}</small>" for each in cell.ranges)
    return (f"<strong>{text}</strong>" if cell.best else text) + ranges


def _html_list(sentences: Iterable[str]) -> list[str]:
    items = [f"<li>{_html_text(sentence)}</li>" for sentence in sentences]
    return ["<ul>", *items, "</ul>"] if items else []


def _html_text(text: str) -> str:
    return escape(escape_controls(text))


def frame_of(head: Sequence[str], rows: Iterable[Sequence[object]]) -> DataFrame:
    """Return a pandas frame; each row has one cell per title in `head`.

    Raises:
        PrerequisiteError: pandas is not installed.
    """
    try:
        from pandas import DataFrame
    except ImportError as error:
        raise PrerequisiteError("a frame needs pandas", remedy="pip install pandas") from error
    return DataFrame([list(row) for row in rows], columns=list(head))


GLOSSARY = "words: raggs explain WORD"  # below tables


def csv_text(head: Iterable[str], rows: Iterable[Iterable[str | Number]]) -> str:
    """Return a table as CSV for spreadsheets. Booleans are 0 or 1; an undefined value is an empty cell.

    Cells are escaped so that a spreadsheet runs no formula. `raggs.base.text.of_spreadsheet_cell` restores the texts.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(map(_csv_cell, row) for row in rows)
    return text.getvalue()


def _csv_cell(value: str | Number) -> str:
    if isinstance(value, str):
        return spreadsheet_cell(value)
    return "" if value is None else repr(int(value) if isinstance(value, bool) else value)


def score(value: Number) -> str:
    """Return a score for a sentence: four decimals, a dash if it is not defined, never a negative zero."""
    return "–" if value is None else f"{value:z.4f}"


def percent(value: Number) -> str:
    """Return a share for a sentence, in percent with one decimal; a dash if it is not defined."""
    return "–" if value is None else f"{value:.1%}"


def signed(value: Number) -> str:
    """Return a change for a sentence: four decimals and a sign; a dash if it is not defined."""
    return "–" if value is None else f"{value:+z.4f}"


def markdown(document: ReportDocument, *, glossary: bool = True) -> str:
    """Return the document as Markdown.

    Args:
        glossary: whether the last line refers to the glossary. Pages that an audit renders again and compares have no
            such line, so that they do not depend on its wording.
    """
    lines = [f"# {document.title}", ""]
    for warning in document.warnings:
        lines += [f"> **Warning:** {warning}", ""]
    lines += _section(document.scores)
    for section in document.sections:
        lines += ["", f"## {section.title}", "", *_section(section)]
    if document.notes:
        lines += ["", "## Notes", "", *_items(document.notes)]
    return "\n".join([*lines, *(["", f"{GLOSSARY}, or docs/reference/glossary.md"] if glossary else [])]) + "\n"


def _section(section: Section) -> Iterator[str]:
    """Yield the lines of a section, with an empty line between blocks."""
    said = section.sentences
    blocks = [
        list(said) if len(said) == 1 else _items(said),
        [] if section.table is None else list(_table(section.table)),
        ["; ".join(each.line for each in section.legend)] if section.legend else [],
        [f"- `{term.sign}`: {term.text}" for term in section.terms],
    ]
    for number, block in enumerate(filter(None, blocks)):
        yield from ([""] if number else [])
        yield from block


def _items(sentences: Iterable[str]) -> list[str]:
    return [f"- {sentence}" for sentence in sentences]


def _table(table: Table) -> Iterator[str]:
    yield _line(table.head)
    yield "|" + "---|" * len(table.head)
    for row in table.rows:
        yield _line([_writers_cell(cell) for cell in row])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _writers_cell(cell: Cell) -> str:
    text = f"**{cell.text}**" if cell.best else cell.text
    return " ".join([text + cell.mark, *(each.text for each in cell.ranges)])
