"""A report as it is shown, before anyone has decided where: sections of sentences, typed tables and a legend.

Built once from a `EvalReport` (`layout.py`, with the sections of the analyses); the screen, Markdown and every other
page are thin renderers of it. Nothing here computes, and nothing knows of a terminal or a file.

A document as a fragment of HTML, for notebooks. Everything that comes from outside is text in it, never markup.

Rows as a pandas frame, where pandas is installed; raggs itself does not need it.

The words that explain numbers: one wording for the screen, for files, and for whoever builds a page of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

from raggs.base.errors import PrerequisiteError
from raggs.base.text import visible
from raggs.base.types import Number
from raggs.evaluation.models import ComparisonPart, EvalReport, GoldenPart, UnjudgedPart, UnjudgedTopPart, Verdict

if TYPE_CHECKING:
    from pandas import DataFrame

Value = float | str | None
Form = Literal["text", "score", "signed", "percent", "points", "share"]
FORMS: dict[Form, str] = {
    "text": "",
    "score": "z.4f",
    "signed": "+z.4f",
    "percent": "+z.1f",
    "points": "z.2f",
    "share": "z.0%",
}
BOUNDS: dict[Form, str] = {**FORMS, "text": "z.3f", "score": "z.3f", "signed": "z.3f"}  # of an interval
UNDEFINED = "–"


@dataclass(frozen=True)
class ScoreRange:
    """Two values that enclose a score.

    Attributes:
        low, high: the ends, inclusive.
        brackets: "[]" for an interval of the mean, "{}" for what unjudged passages could make of it.
        form: of the value between them.
    """

    low: float
    high: float
    brackets: Literal["[]", "{}"]
    form: Form = "score"

    @property
    def text(self) -> str:
        """``[0.661, 0.851]``."""
        return f"{self.brackets[0]}{self.low:{BOUNDS[self.form]}}, {self.high:{BOUNDS[self.form]}}{self.brackets[1]}"


def formatted(value: Value, form: str) -> str:
    """A number by a format of Python's; what stands for none where it is not defined."""
    return UNDEFINED if value is None else format(value, form)


@dataclass(frozen=True)
class Cell:
    """One value of a table.

    Attributes:
        value: a number, a text, or None where the number is not defined.
        form: how a number is written: as it is, with four decimals, with four and its sign, in percent with one, or
            in points with two, or as a share in whole percent.
        mark: a sign behind it, such as a verdict's.
        ranges: what encloses it.
        best: whether it is the best of its row.
    """

    value: Value
    form: Form = "text"
    mark: str = ""
    ranges: tuple[ScoreRange, ...] = ()
    best: bool = False

    @property
    def text(self) -> str:
        """The value as it is written, without mark and ranges."""
        return formatted(self.value, FORMS[self.form])


Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """Rows of as many cells as `head` has titles."""

    head: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Legend:
    """What a sign in a table says; several of them are named in the text itself."""

    sign: str
    text: str

    @property
    def line(self) -> str:
        """Sign and text."""
        return f"{self.sign} {self.text}".strip()


@dataclass(frozen=True)
class Section:
    """One subject: what is to be known of it in sentences, the numbers in a table, and the table's signs explained.

    Where there is little room the sentences stand for the table; a section without sentences is then left out. `terms`
    say what the names in the table mean, a line each.
    """

    title: str
    sentences: tuple[str, ...] = ()
    table: Table | None = None
    legend: tuple[Legend, ...] = ()
    terms: tuple[Legend, ...] = ()


@dataclass(frozen=True)
class ReportDocument:
    """A whole report.

    Attributes:
        title: of the document.
        scores: the measures of the systems, what everything else is about.
        sections: of the analyses that found something.
        notes: what a reader must know before believing a number.
        warnings: why the numbers may say nothing of the systems; they stand above all others.
    """

    title: str
    scores: Section
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def cells(*values: Value, form: Form = "score") -> Row:
    """Cells of numbers that are written alike; texts stay as they are."""
    return tuple(Cell(value, "text" if isinstance(value, str) else form) for value in values)


def interval(low: float | None, high: float | None, form: Form = "score") -> tuple[ScoreRange, ...]:
    """The 95% interval of a value of this form; none where it is not defined."""
    return () if low is None or high is None else (ScoreRange(low, high, "[]", form),)


def bounded(value: float | None, low: float | None, high: float | None, form: Form = "score", mark: str = "") -> Cell:
    """A number with its 95% interval."""
    return Cell(value, form, mark, interval(low, high, form))


def fragment(document: ReportDocument) -> str:
    """The document without a page around it; the notebook's own style holds."""
    parts = [
        f"<h3>{_text(document.title)}</h3>",
        *(f"<p><strong>warning: {_text(warning)}</strong></p>" for warning in document.warnings),
        *_section(document.scores),
    ]
    for section in document.sections:
        parts += [f"<h4>{_text(section.title)}</h4>", *_section(section)]
    parts += _list("note: " + note for note in document.notes)
    return "<div>" + "\n".join(parts) + "</div>"


def _section(section: Section) -> Iterator[str]:
    yield from (f"<p>{_text(sentence)}</p>" for sentence in section.sentences)
    if section.table is not None:
        yield from _table(section.table)
    if section.legend:
        yield f"<p><small>{_text('; '.join(each.line for each in section.legend))}</small></p>"
    if section.terms:
        yield "<details><summary>what the names mean</summary>"
        yield from _list(f"{term.sign}: {term.text}" for term in section.terms)
        yield "</details>"


def _table(table: Table) -> Iterator[str]:
    yield "<table><thead><tr>" + "".join(f"<th>{_text(title)}</th>" for title in table.head) + "</tr></thead><tbody>"
    for row in table.rows:
        yield "<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>"
    yield "</tbody></table>"


def _cell(cell: Cell) -> str:
    text = _text(cell.text + cell.mark)
    ranges = "".join(f" <small>{_text(each.text)}</small>" for each in cell.ranges)
    return (f"<strong>{text}</strong>" if cell.best else text) + ranges


def _list(sentences: Iterable[str]) -> list[str]:
    items = [f"<li>{_text(sentence)}</li>" for sentence in sentences]
    return ["<ul>", *items, "</ul>"] if items else []


def _text(text: str) -> str:
    return escape(visible(text))


def frame_of(head: Sequence[str], rows: Iterable[Sequence[object]]) -> DataFrame:
    """A frame of rows with as many cells as `head` has titles.

    Raises:
        PrerequisiteError: pandas is not installed.
    """
    try:
        from pandas import DataFrame
    except ImportError as error:
        raise PrerequisiteError("a frame needs pandas", remedy="pip install pandas") from error
    return DataFrame([list(row) for row in rows], columns=list(head))


Kind = Literal["retrieval", "ordering", "none"]

MARKS: dict[Verdict, str] = {"win": "▲", "loss": "▼", "tie": "=", "unresolvable": "?", "unjudged": "!"}
VERDICTS: dict[Verdict, str] = {
    "win": "better",
    "loss": "worse",
    "tie": "no difference that matters",
    "unresolvable": "open",
    "unjudged": "inconclusive",
}
BOTTLENECKS: dict[Kind, str] = {
    "retrieval": "retrieve better, more of what is useful must enter its pool: dense and BM25 fused (RRF), a more "
    "exact index (ef, nprobe), questions rewritten",
    "ordering": "order better, the pool holds what the top lacks: a reranker, near-duplicates left out, cleaner "
    "metadata, shorter chunks",
    "none": "neither retrieval nor ordering loses much",
}
LOSSES = ("what nobody found", "candidates", "order", "unjudged")  # from a perfect list down to a system's own
KNOBS = (
    "look elsewhere, no system found it: another kind of retriever beside these, questions rewritten, other chunks",
    "find more: dense and BM25 fused (RRF), a more exact index (ef, nprobe), more candidates, questions rewritten",
    "order better: a stronger reranker, near-duplicates left out, cleaner titles and metadata, shorter chunks",
    "have judged what it shows: pool its lists (retriever runs), or raggs sweep --judge-holes",
)
GLOSSARY = "words: raggs explain WORD"  # below tables
LEAST_SHARE = 0.01  # below it, a share needs more than whole percent
OWN_CUTOFFS = "each sample is scored at its own metadata.k, where it has one"


def score(value: Number) -> str:
    """A score in a sentence: four decimals, a dash where it is not defined, never a negative zero."""
    return "–" if value is None else f"{value:z.4f}"


def judgments(golden: GoldenPart) -> str:
    """What was scored against."""
    return (
        f"{golden.source}: {golden.judgments:,} labels for {golden.queries:,} queries, grades {golden.lowest} to "
        f"{golden.highest}, relevant from {golden.relevant}"
    )


def interval_words(report: EvalReport) -> str:
    """What an interval of a mean is about."""
    over = "queries and labels" if report.label_uncertainty else "queries"
    return f"{100 * report.confidence:g}% interval over {over} (bootstrap)"


def told(part: ComparisonPart) -> str:
    """A difference with all that a verdict rests on."""
    p = part.corrected.get("randomisation")
    tested = "" if p is None else f", p {score(p)} after Holm's correction"
    return (
        f"{part.system} against {part.baseline}: {part.measure} {signed(part.difference)} "
        f"[{signed(part.low)}, {signed(part.high)}]{tested}; better on {part.wins}, equal on {part.ties}, "
        f"worse on {part.losses} queries"
    )


def percent(value: Number) -> str:
    """A share in a sentence, with one decimal."""
    return "–" if value is None else f"{value:.1%}"


def signed(value: Number) -> str:
    """A change in a sentence: four decimals and its sign."""
    return "–" if value is None else f"{value:+z.4f}"


def would_tell(part: ComparisonPart) -> str:
    """How many queries would resolve an open difference; empty where it is not open, or nothing would."""
    open_ = part.verdict == "unresolvable" and part.queries_needed
    return f"{part.queries_needed:,} queries would tell" if open_ else ""


def inconclusive(part: UnjudgedPart) -> str:
    """Why a verdict is none: ``inconclusive: 20% of the top 10 of new is unjudged``."""
    return f"{VERDICTS['unjudged']}: {unjudged_tops(part.tops)}"


def unjudged_tops(parts: Sequence[UnjudgedTopPart]) -> str:
    """How much of the tops is unjudged, in a clause."""
    shares = [f"{_share(part.share)} of the top {part.cutoff} of {part.system}" for part in parts]
    return f"{' and '.join(shares)} {'is' if len(shares) == 1 else 'are'} unjudged"


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= LEAST_SHARE else f"{100 * share:.2g}%"
