"""TREC files: qrels (``qid 0 docid grade``) and runs (``qid Q0 docid rank score tag``).

Columns are separated by white space; lines that begin with ``#`` are comments, save those that read as a row: whether
such a query counts is nothing to be guessed. A ``.gz`` file is read as it is.
Reading is one pass; what stays in memory is each (qid, docid) seen, to find what stands twice.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from raggs.base.errors import DataError
from raggs.base.jsonl import raw_lines

INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
FEW_SWAPS = 0.05  # of neighbouring pairs whose ranks and scores may disagree without a word
UPSIDE_DOWN = (
    "higher scores must be better. Negate distances: awk '{$5 = -$5; print}'. If the scores are right, set the ranks "
    "to 0: awk '{$4 = 0; print}'"
)


class Label(NamedTuple):
    """A judged passage; a negative grade means pooled but unjudged."""

    line: int
    qid: str
    doc_id: str
    grade: int


class ScoredPassage(NamedTuple):
    """A retrieved passage."""

    line: int
    qid: str
    doc_id: str
    score: float


class SeenPairs:
    """The line of each (qid, docid) of a file.

    Two ids that look the same are refused too: they differ by their Unicode form alone, or by characters without width.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._forms: dict[str, tuple[str, int]] = {}  # of ids that are not plain ASCII

    def note(self, qid: str, doc_id: str, number: int) -> None:
        """Take in one pair.

        Raises:
            DataError: the pair occurs twice, or an id looks the same as another one.
        """
        for name in (qid, doc_id):
            if not name.isascii():
                self.note_form(name, number)
        first = self._lines[qid].setdefault(doc_id, number)
        if first != number:
            message = f"query {qid} and passage {doc_id} stand twice (first in line {first})"
            raise DataError(message, where=self._path, line=number, remedy="keep one")

    def note_form(self, name: str, number: int) -> None:
        """Take in one id that is not plain ASCII; line 0 where the file has no lines.

        Raises:
            DataError: it looks the same as another one.
        """
        known, first = self._forms.setdefault(same_looks(name), (name, number))
        if known != name:
            place = f" (line {first})" if first else ""
            said = f"ids {known!a}{place} and {name!a} look the same"
            remedy = "write both in the same Unicode form (NFC)"
            raise DataError(said, where=self._path, line=number or None, remedy=remedy)


def same_looks(name: str) -> str:
    """A form that ids share if they differ by their Unicode form alone, or by characters without width."""
    plain = unicodedata.normalize("NFC", name)
    return "".join(each for each in plain if unicodedata.category(each) != "Cf")


class RankOrder:
    """Whether the ranks of a run agree with its scores, of which the higher one must be the better one.

    Each two neighbouring rows of a query count, unless their ranks or scores are equal. A few that disagree are normal,
    as scores are rounded. Where most disagree, the scores are distances or the ranks are of another order; either way
    the result would be upside down, so that the file is refused.
    """

    def __init__(self) -> None:
        self.agree = self.disagree = 0
        self._last: tuple[str, float, float] = ("", math.nan, math.nan)

    def note(self, qid: str, rank: str, score: float) -> None:
        """Take in one row."""
        place = as_number(rank)
        before, above, better = self._last
        self._last = (qid, place, score)
        if before == qid:
            self.disagree += (place - above) * (score - better) > 0
            self.agree += (place - above) * (score - better) < 0

    def checked(self, path: Path) -> str:
        """A sentence about ranks that disagree here and there; empty if the ranks agree.

        Raises:
            DataError: most disagree.
        """
        pairs = self.agree + self.disagree
        if self.disagree > self.agree:
            said = (
                f"the scores rise with the rank: in {self.disagree:,} of {pairs:,} pairs the worse rank has the higher"
            )
            raise DataError(f"{said} score", where=path, remedy=UPSIDE_DOWN)
        if self.disagree > FEW_SWAPS * pairs:
            share = f"{self.disagree / pairs:.0%}"
            return f"{path}: ranks and scores disagree in {share} of the neighbouring pairs; the scores count"
        return ""


def read_qrels(path: Path) -> Iterator[Label]:
    """The labels of a qrels file, in its order.

    Raises:
        NotFoundError: the file is missing or unreadable.
        DataError: not UTF-8, not 4 columns, a NUL, a grade that is no integer, a (qid, docid) twice, or a comment that
            reads as a label; with file and line.
    """
    seen = SeenPairs(path)
    for number, (qid, _, doc_id, grade) in _read_columns(path, "qid 0 docid grade", lambda row: _is_grade(row[3])):
        if not _is_grade(grade):
            message = f"grade {grade!r} is not an integer"
            raise DataError(message, where=path, line=number, remedy="grades are whole numbers")
        seen.note(qid, doc_id, number)
        yield Label(number, qid, doc_id, int(grade))


def read_scored(path: Path, order: RankOrder | None = None) -> Iterator[ScoredPassage]:
    """The hits of a run file, in its order; its rank column is only compared with the scores.

    Args:
        path: the file.
        order: takes in ranks and scores, for a caller who asks it afterwards; else most must agree.

    Raises:
        NotFoundError: the file is missing or unreadable.
        DataError: not UTF-8, not 6 columns, a NUL, a score that is no finite number, a (qid, docid) twice, or a comment
            that reads as a hit, with file and line; scores that rise with the rank.
    """
    seen, ranks = SeenPairs(path), order or RankOrder()
    form = "qid Q0 docid rank score tag"
    for number, (qid, _, doc_id, rank, text, _) in _read_columns(
        path, form, lambda row: math.isfinite(as_number(row[4]))
    ):
        score = as_number(text)
        if not math.isfinite(score):
            message = f"score {text!r} is not a finite number"
            raise DataError(message, where=path, line=number, remedy="remove or repair the line")
        seen.note(qid, doc_id, number)
        ranks.note(qid, rank, score)
        yield ScoredPassage(number, qid, doc_id, score)
    if order is None:
        ranks.checked(path)


def as_number(text: str) -> float:
    """The value of `text`, or NaN where it is none; digits of other scripts, which other tools read as 0, are none."""
    try:
        return math.nan if "_" in text or not text.isascii() else float(text)
    except ValueError:
        return math.nan


def _is_grade(text: str) -> bool:
    return INTEGER.fullmatch(text) is not None


def _read_columns(path: Path, form: str, counts: Callable[[list[str]], bool]) -> Iterator[tuple[int, list[str]]]:
    """The lines of a file in columns as `form` names them; `counts`: whether such columns hold the number they need."""
    count = len(form.split())
    for number, text in raw_lines(path):
        columns = text.split()
        if text.startswith("#"):
            if columns[0] != "#" and len(columns) == count and counts(columns):
                message = f"begins with # as a comment does, and reads as a row of query {columns[0]!r}"
                remedy = "rename the query, or write a space after the # of a comment"
                raise DataError(message, where=path, line=number, remedy=remedy)
            continue
        if "\0" in text:
            raise DataError("holds NUL, which is no part of an id", where=path, line=number, remedy="remove it")
        if len(columns) != count:
            message = f"{len(columns)} columns instead of {count}"
            raise DataError(message, where=path, line=number, remedy=f"expected: {form}; ids hold no spaces")
        yield number, columns
