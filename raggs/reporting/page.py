"""Renders sections to one self-contained HTML file: no network access, and no scripts other than the page's own.

The content policy lists the hashes of the only style and the only script, so that injected scripts do not run. Equal
facts yield equal bytes.

Query sheets are packed, because a page may contain thousands: each text is stored once, and rows refer to it by number.
The size is limited: the texts of all passages together take about `MAX_TEXT_BYTES` bytes at most. If there are too
many, the longest texts are truncated. Each query is a separate JSON text, which the page's script parses when the query
is opened.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape, unescape
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import quote

from raggs.base import __version__
from raggs.base.document import Table
from raggs.base.text import COMMANDS, escape_controls, plural
from raggs.evaluation.models import ReportPart
from raggs.golden.views import QuestionSheet, SheetPassage
from raggs.reporting import REGISTRY
from raggs.reporting.base import ReportFacts, ReportSection

if TYPE_CHECKING:
    from jinja2 import Environment

SUMMARIES = frozenset(("decision", "losses", "systems"))  # first sections, printed on two pages before an appendix
MAX_TEXT_BYTES = 1_600_000  # total of all passage texts
MAX_PASSAGE_CHARS = 4_000  # per passage
MAX_REASON_CHARS = 300  # per reason of a judge
MAX_BYTES_PER_CHAR = 3  # upper bound for nearly all scripts

SHEET_DIGITS = 2  # decimals of the numbers in a sheet

PackedRow = list[object]


def safe_json(value: object) -> str:
    """Return JSON in which control characters, also those of the text direction, remain escaped after parsing."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return COMMANDS.sub(lambda match: f"\\\\u{ord(match[0]):04x}", text)


class SheetPacking:
    """Passages and names to which packed sheets refer by number.

    Args:
        texts: whether to include reasons and notes, which may quote passages. Texts of passages are always included.
    """

    def __init__(self, *, texts: bool) -> None:
        self._texts = texts
        self._passages: dict[str, tuple[int, SheetPassage]] = {}
        self._names: dict[str, int] = {"": 0}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of judges and systems, and reasons why a ranking stopped, by number."""
        return tuple(map(escape_controls, self._names))

    def passages(self) -> Iterator[tuple[str, str, str, str, int]]:
        """Yield each passage by number: id, title, position, truncated text, and the number of omitted characters."""
        most = self._most()
        for row in (row for _, row in self._passages.values()):
            text = row.text[:most]
            yield (
                escape_controls(row.id),
                escape_controls(row.title),
                escape_controls(row.where),
                escape_controls(text),
                len(row.text) - len(text),
            )

    def _most(self) -> int:
        """Return the maximum length of a text with which all texts fit into the limit."""
        lengths = sorted(len(row.text) for _, row in self._passages.values())
        left, most = MAX_TEXT_BYTES // MAX_BYTES_PER_CHAR if self._wide() else MAX_TEXT_BYTES, MAX_PASSAGE_CHARS
        for number, length in enumerate(lengths):
            most = left // (len(lengths) - number)  # space that short texts do not need is available to longer ones
            if length > most:
                return min(most, MAX_PASSAGE_CHARS)
            left -= length
        return MAX_PASSAGE_CHARS

    def _wide(self) -> bool:
        """Return whether the first 100 texts take more than 1.5 bytes per character."""
        some = "".join(row.text for _, row in [*self._passages.values()][:100])
        return len(some.encode()) > 1.5 * len(some)

    def pack(self, sheet: QuestionSheet) -> str:
        """Return the sheet in the format that `questions.js` unpacks."""
        head: PackedRow = [sheet.rewrite, sheet.answer, sheet.facts, sheet.top, self._name(sheet.stopped), sheet.pool]
        places = {row.id: place for place, row in enumerate(sheet.rows)}
        rows = [_without_empty_end(self._row(row, places)) for row in sheet.rows]
        lists = [[self._name(each.system), each.found or 0, [*map(self._hit, each.hits)]] for each in sheet.lists]
        return safe_json([*head, rows, lists])

    def _row(self, row: SheetPassage, places: Mapping[str, int]) -> PackedRow:
        said = row.said[:MAX_REASON_CHARS] if self._texts else ""
        words = [[word.who, word.grade or 0, word.note if self._texts else "", int(word.decided)] for word in row.words]
        twin = 0 if row.twin is None else self._number(SheetPassage(row.twin)) + 1
        sure = -1 if row.sure is None else round(row.sure, SHEET_DIGITS)
        place = [row.rank or 0, row.low or 0, row.high or 0, sure, int(row.locked), *_rounded(row.score, row.sigma)]
        below = [places[doc_id] for doc_id in row.below if doc_id in places]
        grade = 0 if row.grade is None else row.grade + 1
        # an unranked passage has its fused rank in place of the lowest plausible one
        of_rank: PackedRow = [*place] if row.rank else [0, row.pooled or 0, 0, 0, 0, 0, 0]
        return [self._number(row), grade, self._name(row.by), *of_rank, twin, said, row.cut, words, below, row.votes]

    def _hit(self, hit: int | str) -> int:
        """Return the number of a row; -1 minus the passage number for a passage without a row."""
        return hit if isinstance(hit, int) else -1 - self._number(SheetPassage(hit))

    def _number(self, row: SheetPassage) -> int:
        number, known = self._passages.get(row.id, (len(self._passages), row))
        self._passages[row.id] = (number, row if not known.text and row.text else known)
        return number

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))


def _rounded(*values: float | None) -> list[float]:
    """Return the values as the page shows them."""
    return [compact(value or 0, SHEET_DIGITS) for value in values]


def compact(value: float, digits: int) -> float:
    """Return the rounded value; a whole number as an int, which is shorter in JSON."""
    found = round(value, digits)
    return int(found) if found == int(found) else found


def _without_empty_end(row: PackedRow) -> PackedRow:
    """Return the row without empty values at its end."""
    end = len(row)
    while end and not row[end - 1]:
        end -= 1
    return row[:end]


MARKUP = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}  # JSON escapes of characters with a meaning in HTML


@dataclass(frozen=True)
class RenderedSection:
    """A rendered section."""

    name: str
    title: str
    html: str
    json: str


def report_page(facts: ReportFacts) -> str:
    """Return the page.

    Raises:
        DataError: a file of the run is invalid.
        PrerequisiteError: a section of another package cannot be loaded.
    """
    kinds, linking = [REGISTRY.load(name) for name in REGISTRY], TermLinks(facts.terms)
    found = [(kind, part) for kind in kinds if (part := kind().data(facts)) is not None]
    shown = [kind for kind, _ in found]
    style, script = (_joined_resources(shown, ending) for ending in ("css", "js"))
    allowed = f"style-src {_digest(style)}; script-src {_digest(script)}"
    page = _templates().get_template("page.html")
    return page.render(
        policy=f"default-src 'none'; {allowed}; img-src data:; base-uri 'none'; form-action 'none'",
        title=facts.golden.name,
        place=facts.place,
        raggs=__version__,
        style=style,
        script=script,
        extent=_extent(facts),
        sections=[_render_section(kind, part, linking) for kind, part in found],
        summaries=sum(kind.NAME in SUMMARIES for kind in shown),
        terms=linking.used,
        texts=facts.texts,
    )


def _extent(facts: ReportFacts) -> str:
    """Return size and date of the golden set: ``150 queries · 2,071 labels · created 2026-05-01``."""
    report, run = facts.report, facts.run
    sizes = [] if report is None else [plural(report.golden.queries, "query"), plural(report.golden.judgments, "label")]
    return " · ".join([*sizes, *([] if run is None else [f"created {run.manifest.created:%Y-%m-%d}"])])


class TermLinks:
    """Links the first use of each term in a section to its definition at the end of the page, with a tooltip.

    Args:
        terms: definitions by term. Terms are found in upper and lower case, also with a plural s.
    """

    SILENT = frozenset(("a", "button", "code", "option", "pre", "script", "small", "style", "summary", "svg", "bdi"))

    def __init__(self, terms: Mapping[str, str]) -> None:
        self._terms = {name.lower(): (name, _definition(text)) for name, text in terms.items()}
        names = "|".join(re.escape(escape(name)) for name in sorted(self._terms, key=lambda name: (-len(name), name)))
        self._pattern = re.compile(rf"(?<![\w@-])({names})(s?)(?![\w-]|\.\w)", re.IGNORECASE) if names else None
        self._used: set[str] = set()

    @property
    def used(self) -> list[tuple[str, str]]:
        """Terms linked so far with their definitions, sorted."""
        return [self._terms[key] for key in sorted(self._used)]

    def link(self, html: str) -> str:
        """Return rendered HTML with links; text in commands, links, drawings and texts of users stays as it is."""
        if self._pattern is None:
            return html
        linked: set[str] = set()
        silent: list[str] = []
        pieces = []
        for piece in re.split(r"(<[^>]*>)", html):
            if tag := re.match(r"<(/?)([a-z0-9]+)([^>]*)>", piece):
                closing, name, rest = tag.groups()
                if closing and silent and silent[-1] == name:
                    silent.pop()
                elif not closing and (name in self.SILENT or "dir=" in rest or silent[-1:] == [name]):
                    silent.append(name)
            elif not silent:
                piece = self._pattern.sub(lambda found: self._anchor(found, linked), piece)
            pieces.append(piece)
        return "".join(pieces)

    def _anchor(self, found: re.Match[str], linked: set[str]) -> str:
        key = unescape(found[1]).lower()
        if key in linked:
            return found[0]
        linked.add(key)
        self._used.add(key)
        name, text = self._terms[key]
        return f'<a class="term" href="#term-{quote(name)}" title="{escape(text)}">{found[0]}</a>'


def _definition(text: str) -> str:
    """Return a definition for the page, which has no other pages to refer to: a sentence without code marks."""
    said = re.sub(r"\s*See docs/\S+\.md\.", "", text.replace("`", "")).rstrip(".")
    return f"{said[:1].upper()}{said[1:]}."


def _render_section(kind: type[ReportSection], part: ReportPart, linking: TermLinks) -> RenderedSection:
    template = _templates().from_string(kind.resource("html"))
    data = embedded(part.model_dump(mode="json")) if kind.SCRIPTED else ""
    html = linking.link(template.render(data=part, name=kind.NAME))
    return RenderedSection(kind.NAME, kind.TITLE, html, data)


def embedded(value: object) -> str:
    """Return JSON for embedding in HTML: without markup, and with escaped control characters."""
    text = safe_json(value)
    for char, code in MARKUP.items():
        text = text.replace(char, code)
    return text


def _joined_resources(kinds: Sequence[type[ReportSection]], ending: str) -> str:
    """Return the page's own style or script, followed by those of its sections."""
    own = (files("raggs.reporting") / "page" / f"page.{ending}").read_text(encoding="utf-8")
    shared = ("theme.css", "figure.css", "matrix.css") if ending == "css" else ()
    basis = [(files("raggs.base") / name).read_text(encoding="utf-8") for name in shared]
    return "\n".join(filter(None, [*basis, own, *(kind.resource(ending) for kind in kinds)]))


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("raggs.reporting", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_safe_text,
    )
    found.globals["column_kinds"] = column_kinds
    found.globals["split_measures"] = split_measures
    return found


FIGURE_TEXT = re.compile(
    r"(?:< )?[+\-−]?[$≤≥]?\d[\d.,]*%?(?![\w@]).{0,12}|[+\-−]?[$]?[\d.]+\S* ?\[.*\]|\[.*\]", re.DOTALL
)
NO_FIGURE = re.compile(r"[–·]?|too few.*")  # a missing figure, which does not decide


def column_kinds(table: Table) -> list[str]:
    """Return by column "figure" if most of its cells are figures, else an empty text; the first column names rows."""
    kinds = [""]
    for column in [*zip(*table.rows, strict=True)][1:]:
        known = [each for each in column if not NO_FIGURE.fullmatch(each.text)]
        count = sum(not isinstance(each.value, str) or bool(FIGURE_TEXT.fullmatch(each.text)) for each in known)
        kinds.append("figure" if 2 * count > len(known) or not known else "")
    return kinds if table.rows else [""] * len(table.head)


MAX_OPEN_ROWS = 16  # of a table that compares systems by several measures


def split_measures(table: Table) -> tuple[Table, Table | None]:
    """Return the rows of the first measure and the other rows, if a table is long; else all rows and None."""
    if len(table.rows) <= MAX_OPEN_ROWS or "measure" not in table.head:
        return table, None
    place = table.head.index("measure")
    first = [row for row in table.rows if row[place].text == table.rows[0][place].text]
    rest = [row for row in table.rows if row[place].text != table.rows[0][place].text]
    return replace(table, rows=tuple(first)), replace(table, rows=tuple(rest)) if rest else None


def _safe_text(value: object) -> object:
    """Return strings with escaped control characters; markup of the page is unchanged."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else escape_controls(value)
