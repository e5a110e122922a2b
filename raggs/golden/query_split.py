"""Split of queries into the sides `train` and `test`, so that training data contains no evaluation query.

The side depends only on the words of a query. Queries that differ in case, punctuation, or the order of their words
are therefore on the same side. With a file of evaluation queries, the test side consists of these queries and of all
queries with the same words.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from raggs.base.errors import DataError, UsageError
from raggs.base.files import read_whole
from raggs.base.hashing import derive_seed, hash_value
from raggs.golden.base import GoldenSet

TRAIN, TEST = "train", "test"
WORD = re.compile(r"\w+")
RANGE = 2.0**64


def words_key(text: str) -> str:
    """Return a hash of the set of words of a text, without case, punctuation, order and repetitions."""
    words = WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return hash_value(sorted(set(words)) or [text])


class QuerySplit:
    """The side of each query: `train` or `test`.

    Args:
        share: share of the test side, 0 to 1, if no evaluation queries are named.
        named: keys of the evaluation queries (see `words_key`); None to split by a hash.
    """

    def __init__(self, share: float, named: frozenset[str] | None = None) -> None:
        self._share, self._named = share, named

    def side(self, text: str) -> str:
        """Return the side of a query."""
        key = words_key(text)
        if self._named is not None:
            return TEST if key in self._named else TRAIN
        return TEST if derive_seed(0, "training", key) < self._share * RANGE else TRAIN

    @classmethod
    def of(cls, golden: GoldenSet, share: float, evaluation: Path | None) -> QuerySplit:
        """Return the split of a set.

        Args:
            evaluation: file with one id of an evaluation query per line; None to split by a hash.

        Raises:
            UsageError: the share is not in 0..1.
            NotFoundError: the file is missing.
            DataError: the file names a query that the set does not contain, or no query at all.
        """
        if not 0 <= share <= 1:
            raise UsageError(f"--test-share {share:g} is not in 0..1", remedy="use e.g. 0.2")
        if evaluation is None:
            return cls(share)
        lines = read_whole(evaluation).decode("utf-8", "replace").splitlines()
        wanted = {line.strip(): number for number, line in reversed(list(enumerate(lines, start=1))) if line.strip()}
        if not wanted:
            raise DataError("names no query", where=evaluation, remedy="write one query id per line")
        found = {query.qid: words_key(query.text) for query in golden.queries() if query.qid in wanted}
        if missing := [qid for qid in wanted if qid not in found]:
            first = min(missing, key=lambda qid: wanted[qid])
            remedy = "correct the id, or remove the line"
            raise DataError(f"the set has no query {first!r}", where=evaluation, line=wanted[first], remedy=remedy)
        return cls(share, frozenset(found.values()))
