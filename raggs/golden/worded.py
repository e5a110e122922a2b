"""A golden set whose questions get their texts from elsewhere: labels of the field come without them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from raggs.base.artifacts import Query, RetrieveRecord
from raggs.golden.base import GoldenQuery, GoldenSet, SetPart
from raggs.golden.judgments import Judgments
from raggs.metrics.columns import Scale


class Worded(GoldenSet):
    """The same set with other questions.

    Args:
        golden: the set.
        questions: by id; those that it does not hold keep their texts.
    """

    def __init__(self, golden: GoldenSet, questions: Mapping[str, Query]) -> None:
        self._golden, self._questions = golden, questions
        self.name, self.source, self.top, self.provenance = golden.name, golden.source, golden.top, golden.provenance
        self.lacks, self.form, self.sure, self.partial = golden.lacks, golden.form, golden.sure, golden.partial
        self.by_grade = golden.by_grade

    @property
    def made(self) -> tuple[str, ...]:
        """See `GoldenSet.made`."""
        return self._golden.made

    def queries(self) -> Iterator[Query]:
        """See `GoldenSet.queries`."""
        known = {query.qid: query for query in self._golden.queries()} | dict(self._questions)
        return iter(known[qid] for qid in sorted(known))

    def by_query(self, *parts: SetPart) -> Iterator[GoldenQuery]:
        """See `GoldenSet.by_query`."""
        for each in self._golden.by_query(*parts):
            yield replace(each, query=self._questions.get(each.qid, each.query))

    def hits(self) -> Iterator[RetrieveRecord]:
        """See `GoldenSet.hits`."""
        return self._golden.hits()

    def judgments(self, scale: Scale | None = None) -> Judgments:
        """See `GoldenSet.judgments`."""
        return self._golden.judgments(scale)
