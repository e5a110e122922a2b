"""Read TREC files: qrels (``qid 0 docid grade``) and runs (``qid Q0 docid rank score tag``).

Columns are separated by white space. Lines that start with ``#`` are comments. A comment that could also be a row is an
error, because it is unclear whether its query counts. Files that end in ``.gz`` are decompressed.
A file is read in one pass. Each (qid, docid) pair is kept in memory, to detect duplicates.
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
STEP_COLUMNS = 7  # of a line with a step, whose place no tool defines
FEW_SWAPS = 0.05  # maximum share of neighbouring pairs whose ranks and scores disagree without a warning
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
    """Line number of each (qid, docid) pair of a file.

    Two ids that look the same are an error, too. They differ only in their Unicode form or in zero-width characters.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._forms: dict[str, tuple[str, int]] = {}  # first id and line by visible form, for ids that are not ASCII

    def note(self, qid: str, doc_id: str, number: int) -> None:
        """Record one pair.

        Raises:
            DataError: the pair is a duplicate, or an id looks the same as another one.
        """
        for name in (qid, doc_id):
            if not name.isascii():
                self.note_form(name, number)
        first = self._lines[qid].setdefault(doc_id, number)
        if first != number:
            message = f"query {qid} and passage {doc_id} occur twice (first in line {first})"
            raise DataError(message, where=self._path, line=number, remedy="keep one")

    def note_form(self, name: str, number: int) -> None:
        """Record one id that is not ASCII. The line is 0 if the file has no lines.

        Raises:
            DataError: the id looks the same as another one.
        """
        known, first = self._forms.setdefault(same_looks(name), (name, number))
        if known != name:
            place = f" (line {first})" if first else ""
            said = f"ids {known!a}{place} and {name!a} look the same"
            remedy = "write both in the same Unicode form (NFC)"
            raise DataError(said, where=self._path, line=number or None, remedy=remedy)


def same_looks(name: str) -> str:
    """Return a form that is the same for ids that differ only in their Unicode form or in zero-width characters."""
    plain = unicodedata.normalize("NFC", name)
    return "".join(each for each in plain if unicodedata.category(each) != "Cf")


class RankOrder:
    """Agreement between the ranks and the scores of a run; higher scores must be better.

    Every two neighbouring rows of a query count, unless their ranks or scores are equal. A few disagreements are
    normal, because scores are rounded. If most pairs disagree, the scores are distances or the ranks belong to another
    order. raggs cannot know which column is wrong, so such a file is an error.
    """

    def __init__(self) -> None:
        self.agree = self.disagree = 0
        self._last: tuple[str, float, float] = ("", math.nan, math.nan)

    def note(self, qid: str, rank: str, score: float) -> None:
        """Record one row."""
        place = as_number(rank)
        before, above, better = self._last
        self._last = (qid, place, score)
        if before == qid:
            self.disagree += (place - above) * (score - better) > 0
            self.agree += (place - above) * (score - better) < 0

    def checked(self, path: Path) -> str:
        """Return a warning if some ranks and scores disagree, else an empty text.

        Raises:
            DataError: most pairs disagree.
        """
        pairs = self.agree + self.disagree
        if self.disagree > self.agree:
            said = (
                f"the scores rise with the rank: in {self.disagree:,} of {pairs:,} pairs the worse rank has the higher"
            )
            raise DataError(f"{said} score", where=path, remedy=UPSIDE_DOWN)
        if self.disagree > FEW_SWAPS * pairs:
            share = f"{self.disagree / pairs:.0%}"
            return f"{path}: ranks and scores disagree in {share} of the neighbouring pairs; raggs uses the scores"
        return ""


def read_qrels(path: Path) -> Iterator[Label]:
    """Yield the labels of a qrels file in file order.

    Raises:
        NotFoundError: the file is missing or unreadable.
        DataError: the file is not UTF-8, or a line is invalid: not 4 columns, a NUL character, a grade that is not an
            integer of at most nine digits, a duplicate (qid, docid), an id that looks the same as another one, or a
            comment that could be a row. The error names file and line.
    """
    seen = SeenPairs(path)
    for number, (qid, _, doc_id, grade) in _read_columns(path, "qid 0 docid grade", lambda row: _is_grade(row[3])):
        if not _is_grade(grade):
            message = f"grade {grade!r} is not an integer"
            raise DataError(message, where=path, line=number, remedy="write grades as whole numbers")
        seen.note(qid, doc_id, number)
        yield Label(number, qid, doc_id, int(grade))


def read_scored(path: Path, order: RankOrder | None = None) -> Iterator[ScoredPassage]:
    """Yield the hits of a run file in file order. Ranks are only compared with the scores.

    Args:
        path: the run file.
        order: records ranks and scores, and the caller evaluates it. By default, raise an error if most pairs disagree.

    Raises:
        NotFoundError: the file is missing or unreadable.
        DataError: the file is not UTF-8, its scores rise with the rank, or a line is invalid: not 6 columns, a NUL
            character, a score that is not a finite number, a duplicate (qid, docid), an id that looks the same as
            another one, or a comment that could be a row. The error for a line names file and line.
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
    """Return `text` as a number, or NaN if it is not one. Digits of other scripts count as NaN: other tools read
    them as 0.
    """
    try:
        return math.nan if "_" in text or not text.isascii() else float(text)
    except ValueError:
        return math.nan


def _is_grade(text: str) -> bool:
    return INTEGER.fullmatch(text) is not None


def _read_columns(path: Path, form: str, counts: Callable[[list[str]], bool]) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the columns of each row.

    Args:
        path: the file.
        form: names of the columns, separated by spaces.
        counts: returns whether the columns contain a valid number, to find comments that could be rows.
    """
    count = len(form.split())
    for number, text in raw_lines(path):
        columns = text.split()
        if text.startswith("#"):
            if columns[0] != "#" and len(columns) == count and counts(columns):
                message = f"starts with # like a comment, but could be a row of query {columns[0]!r}"
                remedy = "rename the query, or write a space after the # of a comment"
                raise DataError(message, where=path, line=number, remedy=remedy)
            continue
        if "\0" in text:
            raise DataError("contains a NUL character", where=path, line=number, remedy="remove it")
        if len(columns) != count:
            message = f"{len(columns)} columns instead of {count}"
            steps = "; for several searches per task, write a table with the header qid,step,docno,rank,score"
            remedy = f"expected: {form}; ids must not contain spaces{steps if len(columns) == STEP_COLUMNS else ''}"
            raise DataError(message, where=path, line=number, remedy=remedy)
        yield number, columns
