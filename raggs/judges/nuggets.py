"""A judge without a language model: which facts of the answer does a passage hold?

Each question lists nuggets: facts, each with alternative patterns (Voorhees, TREC 2003: vital and okay nuggets). A
nugget is held when any of its patterns is found in the passage (title and text, case ignored, each run of white space
read as one blank, so that patterns need not care where lines break). Coverage is the weight of the nuggets
held over the weight of all; vital nuggets weigh 1, others 0.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic import Field

from raggs.adapter import AdapterConfig
from raggs.artifacts import Nugget, Passage, Query
from raggs.errors import DataError
from raggs.hashing import hash_bytes
from raggs.judges.base import Judge, JudgeContext, Judgment, Ordering
from raggs.judges.thresholds import Thresholds, grade_of
from raggs.patterns import Pattern, SlowPatternError
from raggs.settings import Causes
from raggs.text import one_line, shorten

VITAL, OKAY = 1.0, 0.5
Patterns = tuple[tuple[float, tuple[Pattern, ...]], ...]


class NuggetsConfig(AdapterConfig):
    type: Literal["nuggets"] = "nuggets"
    thresholds: Thresholds = Field(
        (0.25, 0.5, 0.8), description="coverage from which a grade is 3, 4, 5; any at all is 2"
    )


class NuggetJudge(Judge):
    """No language model: grades by the facts (patterns) of the question that a passage holds."""

    PACKAGES = ("regex",)
    Config = NuggetsConfig
    config: NuggetsConfig

    def __init__(self, config: NuggetsConfig, context: JudgeContext) -> None:
        super().__init__(config, context)
        self._patterns: dict[str, Patterns] = {}
        self._slow: dict[str, str] = {}

    @classmethod
    def exact(cls, causes: Causes) -> bool:  # noqa: ARG003 - whatever its thresholds
        """See `Judge.exact`: the same words give the same grade."""
        return True

    @property
    def name(self) -> str:
        return "nuggets"

    def check(self, queries: Iterable[Query]) -> None:
        for query in queries:
            if not query.nuggets:
                message = f"query {query.qid} has no nuggets, which judge nuggets needs"
                raise DataError(message, remedy="give it some, or choose another judge")

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        try:
            held, total, _ = self._held(query, passage)
        except SlowPatternError as error:
            return Judgment(None, error=str(error))
        weight = sum(nugget for nugget, found in held if found)
        reason = f"holds {sum(found for _, found in held)} of {len(held)} nuggets, weight {weight:g} of {total:g}"
        return Judgment(grade_of(weight / total, self.config.thresholds), reason)

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        try:
            return Ordering(tuple(sorted(range(len(passages)), key=lambda place: self._key(query, passages[place]))))
        except SlowPatternError as error:
            return Ordering(None, str(error))

    def _key(self, query: Query, passage: Passage) -> tuple[float, float, str, str]:
        """Best first: coverage, then matches in proportion to length.

        Equals go by a hash that no order of showing can bend, twins by their ids.
        """
        held, total, matches = self._held(query, passage)
        coverage = sum(weight for weight, found in held if found) / total
        return (
            -coverage,
            -matches / max(1, len(passage.text.split())),
            hash_bytes(passage.content.encode()),
            passage.doc_id,
        )

    def _held(self, query: Query, passage: Passage) -> tuple[list[tuple[float, bool]], float, int]:
        """For each nugget its weight and whether it is held; the total weight; how many patterns were found."""
        if query.qid not in self._patterns:
            self._patterns[query.qid] = tuple(
                (VITAL if nugget.vital else OKAY, _compiled(nugget)) for nugget in query.nuggets
            )
        texts = {one_line(passage.content), one_line(passage.raw)}  # patterns may be written for either
        held, matches = [], 0
        for weight, patterns in self._patterns[query.qid]:
            found = sum(any(self._within(pattern, text) for text in texts) for pattern in patterns)
            held.append((weight, found > 0))
            matches += found
        return held, sum(weight for weight, _ in held) or VITAL, matches

    def _within(self, pattern: Pattern, text: str) -> bool:
        """Whether a pattern is found; one that took too long is not tried again."""
        if pattern.text in self._slow:
            raise SlowPatternError(self._slow[pattern.text])
        try:
            return pattern.within(text)
        except SlowPatternError as error:
            told = f"nugget {shorten(pattern.text, 60)!r}: {error}; write it without repeats inside of repeats"
            self._slow[pattern.text] = told
            raise SlowPatternError(told) from error


def _compiled(nugget: Nugget) -> tuple[Pattern, ...]:
    return tuple(map(Pattern, nugget.any))
