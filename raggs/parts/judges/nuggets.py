"""A judge without a language model: grades by the facts of the answer that a passage contains.

Each query lists nuggets: facts, each with alternative patterns (Voorhees, TREC 2003: vital and okay nuggets). A nugget
matches if any of its patterns is found in the passage (title and text). Case is ignored, and each run of white space
counts as one blank, so that a line break matches a blank in a pattern. Coverage is the weight of the matching nuggets
divided by the weight of all nuggets. Vital nuggets weigh 1, others 0.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Nugget, Passage, Query
from raggs.base.errors import DataError
from raggs.base.hashing import hash_bytes
from raggs.base.settings import Causes, Pattern, SlowPatternError
from raggs.base.text import one_line, shorten
from raggs.parts.judges import Judge, JudgeContext, Judgment, Ordering, Thresholds, grade_of

VITAL, OKAY = 1.0, 0.5
Patterns = tuple[tuple[float, tuple[Pattern, ...]], ...]
MAX_REMEMBERED_PASSAGES = 2_000  # maximum number of cached passages; the rank stage shows each passage in many batches


class _NuggetMatches(NamedTuple):
    """Matches in one passage: each nugget's weight and whether it matches, and the number of matching patterns."""

    nuggets: tuple[tuple[float, bool], ...]
    matches: int
    digest: str

    @property
    def total(self) -> float:
        """Weight of all nuggets."""
        return sum(weight for weight, _ in self.nuggets) or VITAL

    @property
    def weight(self) -> float:
        """Weight of the matching nuggets."""
        return sum(weight for weight, found in self.nuggets if found)


class NuggetsConfig(AdapterConfig):
    type: Literal["nuggets"] = "nuggets"
    thresholds: Thresholds = Field(
        (0.25, 0.5, 0.8), description="minimum coverage for grades 3, 4 and 5; any lower coverage above 0 is grade 2"
    )


class NuggetJudge(Judge):
    """Judge without a language model: grades by the facts (patterns) of the query that a passage contains."""

    PACKAGES = ("regex",)
    Config = NuggetsConfig
    config: NuggetsConfig

    def __init__(self, config: NuggetsConfig, context: JudgeContext) -> None:
        super().__init__(config, context)
        self._patterns: dict[str, Patterns] = {}
        self._slow: dict[str, str] = {}
        self._known: dict[tuple[str, str, str], _NuggetMatches] = {}

    @classmethod
    def exact(cls, causes: Causes) -> bool:  # noqa: ARG003 - whatever its thresholds
        """Return True (see `Judge.exact`): the same text always gets the same grade."""
        return True

    @property
    def name(self) -> str:
        return "nuggets"

    def check(self, queries: Iterable[Query]) -> None:
        for query in queries:
            if not query.nuggets:
                message = f"query {query.qid} has no nuggets, but judge nuggets needs nuggets"
                raise DataError(message, remedy="add nuggets to the query, or choose another judge")

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        try:
            held = self._held(query, passage)
        except SlowPatternError as error:
            return Judgment(None, error=str(error))
        count = sum(found for _, found in held.nuggets)
        reason = f"holds {count} of {len(held.nuggets)} nuggets, weight {held.weight:g} of {held.total:g}"
        return Judgment(grade_of(held.weight / held.total, self.config.thresholds), reason)

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        try:
            return Ordering(tuple(sorted(range(len(passages)), key=lambda place: self._key(query, passages[place]))))
        except SlowPatternError as error:
            return Ordering(None, str(error))

    def _key(self, query: Query, passage: Passage) -> tuple[float, float, str, str]:
        """Return the sort key, best first: coverage, then matching patterns per word of the text without its title.

        Ties are ordered by a hash of title and text, so that the order of presentation has no effect. Identical texts
        are ordered by id.
        """
        held = self._held(query, passage)
        density = held.matches / max(1, len(passage.text.split()))
        return -held.weight / held.total, -density, held.digest, passage.doc_id

    def _held(self, query: Query, passage: Passage) -> _NuggetMatches:
        key = query.qid, passage.title, passage.text
        if key not in self._known:
            if len(self._known) == MAX_REMEMBERED_PASSAGES:
                self._known.clear()
            self._known[key] = self._search(query, passage)
        return self._known[key]

    def _search(self, query: Query, passage: Passage) -> _NuggetMatches:
        if query.qid not in self._patterns:
            self._patterns[query.qid] = tuple(
                (VITAL if nugget.vital else OKAY, _compiled(nugget)) for nugget in query.nuggets
            )
        content, held, matches = passage.content, [], 0
        # a pattern may be written for the cleaned or for the raw text
        texts = {one_line(content), one_line(passage.raw)}
        for weight, patterns in self._patterns[query.qid]:
            found = sum(any(self._within(pattern, text) for text in texts) for pattern in patterns)
            held.append((weight, found > 0))
            matches += found
        return _NuggetMatches(tuple(held), matches, hash_bytes(content.encode()))

    def _within(self, pattern: Pattern, text: str) -> bool:
        """Return whether a pattern is found; a pattern that timed out is not tried again."""
        if pattern.text in self._slow:
            raise SlowPatternError(self._slow[pattern.text])
        try:
            return pattern.within(text)
        except SlowPatternError as error:
            told = f"nugget {shorten(pattern.text, 60)!r}: {error}; rewrite it without nested repetition"
            self._slow[pattern.text] = told
            raise SlowPatternError(told) from error


def _compiled(nugget: Nugget) -> tuple[Pattern, ...]:
    return tuple(map(Pattern, nugget.any))
