"""Sections to one HTML file that needs nothing else: no address is asked, and no script runs but the page's own.

The policy names the hashes of the one style and the one script; whatever a passage may smuggle in would not run. The
same facts give the same bytes.

Sheets of questions as a page holds thousands of them: each text once, and rows of numbers that point to it.

What a page may weigh is stated: all texts of passages together take at most `MAX_TEXT_BYTES` bytes, so that many
passages are shown by their beginnings and few are whole. A question is a JSON text of its own, which the page's script
reads when the question is opened.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from raggs.base import __version__
from raggs.base.document import GLOSSARY
from raggs.base.text import COMMANDS, escape_controls
from raggs.evaluation.models import ReportPart
from raggs.golden.views import QuestionSheet, SheetPassage
from raggs.reporting import REGISTRY
from raggs.reporting.base import ReportFacts, ReportSection

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_TEXT_BYTES = 6_000_000  # bytes of all passages' texts
MAX_PASSAGE_CHARS = 4_000  # characters of one
MAX_REASON_CHARS = 300  # of a judge's reason
MAX_BYTES_PER_CHAR = 3  # bytes of a character, at most, of nearly all scripts

PackedRow = list[object]


def safe_json(value: object) -> str:
    """JSON in which what would turn the order of letters is an escape that stays one when it is read."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return COMMANDS.sub(lambda match: f"\\\\u{ord(match[0]):04x}", text)


class SheetPacking:
    """The passages and names that packed sheets point to.

    Args:
        texts: whether passages are shown.
    """

    def __init__(self, *, texts: bool) -> None:
        self._texts = texts
        self._passages: dict[str, tuple[int, SheetPassage]] = {}
        self._names: dict[str, int] = {"": 0}

    @property
    def names(self) -> tuple[str, ...]:
        """Who gave grades, and systems, by number."""
        return tuple(map(escape_controls, self._names))

    def passages(self) -> Iterator[tuple[str, str, str, str, int]]:
        """Each passage by number: id, title, place, beginning of its text, and how many characters were left out."""
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
        """Characters of each text, so that all of them fit."""
        lengths = sorted(len(row.text) for _, row in self._passages.values())
        left, most = MAX_TEXT_BYTES // MAX_BYTES_PER_CHAR if self._wide() else MAX_TEXT_BYTES, MAX_PASSAGE_CHARS
        for number, length in enumerate(lengths):
            most = left // (len(lengths) - number)  # what short texts leave is for the long ones
            if length > most:
                return min(most, MAX_PASSAGE_CHARS)
            left -= length
        return MAX_PASSAGE_CHARS

    def _wide(self) -> bool:
        """Whether many characters take more than a byte."""
        some = "".join(row.text for _, row in [*self._passages.values()][:100])
        return len(some.encode()) > 1.5 * len(some)

    def pack(self, sheet: QuestionSheet) -> str:
        """The sheet as `questions.js` unpacks it."""
        head: PackedRow = [sheet.rewrite, sheet.answer, sheet.facts, sheet.top, sheet.stopped, sheet.pool]
        places = {row.id: place for place, row in enumerate(sheet.rows)}
        rows = [_without_empty_end(self._row(row, places)) for row in sheet.rows]
        lists = [[self._name(each.system), each.found or 0, [*map(self._hit, each.hits)]] for each in sheet.lists]
        return safe_json([*head, rows, lists])

    def _row(self, row: SheetPassage, places: Mapping[str, int]) -> PackedRow:
        said = row.said[:MAX_REASON_CHARS] if self._texts else ""
        words = [[word.who, word.grade or 0, word.note if self._texts else "", int(word.decided)] for word in row.words]
        twin = 0 if row.twin is None else self._number(SheetPassage(row.twin)) + 1
        sure = -1 if row.sure is None else row.sure
        place = [row.rank or 0, row.low or 0, row.high or 0, sure, int(row.locked), row.score or 0, row.sigma or 0]
        of_rank: PackedRow = (
            [*place] if row.rank else [0, row.pooled or 0, 0, 0, 0, 0, 0]
        )  # the fused rank, of what has none
        below = [places[doc_id] for doc_id in row.below if doc_id in places]
        return [
            self._number(row),
            row.grade or 0,
            self._name(row.by),
            *of_rank,
            twin,
            said,
            row.cut,
            words,
            below,
            row.votes,
        ]

    def _hit(self, hit: int | str) -> int:
        """A row by its number; a passage that has none by -1 less its number."""
        return hit if isinstance(hit, int) else -1 - self._number(SheetPassage(hit))

    def _number(self, row: SheetPassage) -> int:
        number, known = self._passages.get(row.id, (len(self._passages), row))
        self._passages[row.id] = (number, row if not known.text and row.text else known)
        return number

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))


def _without_empty_end(row: PackedRow) -> PackedRow:
    """Without what is empty at its end."""
    end = len(row)
    while end and not row[end - 1]:
        end -= 1
    return row[:end]


MARKUP = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}  # as JSON writes what HTML would read


@dataclass(frozen=True)
class RenderedSection:
    """A section as it stands in the page."""

    name: str
    title: str
    html: str
    json: str


def report_page(facts: ReportFacts) -> str:
    """The page.

    Raises:
        DataError: a file of the run cannot be right.
        PrerequisiteError: a section of a package cannot be loaded.
    """
    kinds = [REGISTRY.load(name) for name in REGISTRY]
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
        sections=[_render_section(kind, part) for kind, part in found],
        texts=facts.texts,
        glossary=GLOSSARY,
    )


def _render_section(kind: type[ReportSection], part: ReportPart) -> RenderedSection:
    template = _templates().from_string(kind.resource("html"))
    data = embedded(part.model_dump(mode="json")) if kind.SCRIPTED else ""
    return RenderedSection(kind.NAME, kind.TITLE, template.render(data=part, name=kind.NAME), data)


def embedded(value: object) -> str:
    """JSON that may stand in a page: nothing in it is markup, and what turns the order of letters is an escape."""
    text = safe_json(value)
    for char, escape in MARKUP.items():
        text = text.replace(char, escape)
    return text


def _joined_resources(kinds: Sequence[type[ReportSection]], ending: str) -> str:
    """The page's own style or script, then those of its sections."""
    own = (files("raggs.reporting") / "page" / f"page.{ending}").read_text(encoding="utf-8")
    return "\n".join(filter(None, [own, *(kind.resource(ending) for kind in kinds)]))


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("raggs.reporting", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_safe_text,
    )


def _safe_text(value: object) -> object:
    """Texts without what would turn the order of letters; markup of the page's own as it is."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else escape_controls(value)
