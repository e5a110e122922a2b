"""A judge without a language model: grades by how much of the query's reference excerpts a passage contains.

If both the excerpt and the passage have offsets (`span`, as in chunking benchmarks), the shared characters are counted.
The same words elsewhere do not count, neither in another document nor in the same one. Near-duplicates are therefore
graded separately if they cover different numbers of characters. Without offsets, excerpt and passage are compared by
words, without case and punctuation. Words count as covered if the passage contains them within a run of at least
`min_run` consecutive words of the excerpt. Scattered common words therefore do not count. The position of the run
within the passage is irrelevant.

The grade depends on the excerpt with the highest coverage. Orders are by the number of covered characters over all
excerpts, then by the share of the passage that these characters make up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from pydantic import Field

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Passage, Query, Reference, Span, names_of
from raggs.base.errors import DataError
from raggs.base.hashing import hash_bytes
from raggs.base.settings import Causes
from raggs.base.text import clean_unicode, plural, shorten
from raggs.parts.judges import Judge, JudgeContext, Judgment, Ordering, Thresholds, grade_of

WORD_PATTERN = re.compile(r"\w+")
MAX_LISTED_REFERENCES = 3


class ReferenceConfig(AdapterConfig):
    type: Literal["reference"] = "reference"
    thresholds: Thresholds = Field(
        (0.25, 0.5, 0.8), description="minimum covered share for grades 3, 4 and 5; any lower share above 0 is grade 2"
    )
    min_run: int = Field(
        5, ge=1, description="minimum number of consecutive matching words; a shorter excerpt must occur in full"
    )


class ReferenceJudge(Judge):
    """Grades by how much of the best matching reference excerpt a passage covers; no language model."""

    VERSION = 3
    Config = ReferenceConfig
    config: ReferenceConfig

    def __init__(self, config: ReferenceConfig, context: JudgeContext) -> None:
        super().__init__(config, context)
        self._covered: dict[tuple[str, str], list[tuple[int, int]]] = {}
        # ids of passages that contain a whole excerpt without offsets, by query and excerpt
        self._held: dict[tuple[str, str], set[str]] = {}

    @classmethod
    def exact(cls, causes: Causes) -> bool:  # noqa: ARG003 - whatever its thresholds
        """Return True (see `Judge.exact`): the same passage always gets the same grade."""
        return True

    @property
    def by_place(self) -> bool:
        return True

    @property
    def name(self) -> str:
        return "reference"

    def check(self, queries: Iterable[Query]) -> None:
        """Raise an error if a query has no reference excerpt to compare with.

        Raises:
            DataError: a query has no reference excerpt that contains a word.
        """
        for query in queries:
            if not any(WORD_PATTERN.search(reference.text) for reference in query.references):
                message = f"query {query.qid} has no reference excerpt, but judge reference needs one"
                raise DataError(message, remedy="add references to the query, or choose another judge")

    def apart(self, query: Query, one: Passage, other: Passage) -> bool:
        """Return whether a reference and both passages have offsets, and the passages cover different numbers of
        characters.
        """
        placed = one.span is not None and other.span is not None and any(each.span for each in query.references)
        return self._coverage(query, other) != self._coverage(query, one) if placed else False

    def remarks(self) -> Iterator[str]:
        """Yield remarks on excerpts without offsets that several passages contain; raggs cannot know which one is
        meant.

        Each of the first `MAX_LISTED_REFERENCES` excerpts has a remark; the others are only counted.
        """
        several = [(qid, text, len(found)) for (qid, text), found in sorted(self._held.items()) if len(found) > 1]
        for qid, text, count in several[:MAX_LISTED_REFERENCES]:
            yield (
                f"query {qid}: {count} passages of its pool contain the excerpt {shorten(text, 60)!r}, which has no "
                "offsets; all of them count"
            )
        if len(several) > MAX_LISTED_REFERENCES:
            yield f"and {plural(len(several) - MAX_LISTED_REFERENCES, 'more excerpt')} that several passages contain"

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        shares = [covered / total for covered, total in self._coverage(query, passage)]
        best = max(shares, default=0.0)
        return Judgment(grade_of(best, self.config.thresholds), f"covers {best:.0%} of the best matching reference")

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        return Ordering(tuple(sorted(range(len(passages)), key=lambda place: self._key(query, passages[place]))))

    def _key(self, query: Query, passage: Passage) -> tuple[int, float, str, str]:
        """Return the sort key, best first; ties are ordered by a hash of the text, and identical texts by id."""
        covered = sum(found for found, _ in self._coverage(query, passage))
        return -covered, -covered / len(passage.content), hash_bytes(passage.content.encode()), passage.doc_id

    def _covers(self, reference: Reference, passage: Passage, words: Sequence[str]) -> tuple[int, int] | None:
        """Return the numbers of covered and of all characters of a reference; None if it contains no word."""
        wanted = _split_words(reference.text)
        if not wanted:
            return None
        if reference.span is not None and passage.span is not None:
            return _shared_characters(reference.span, passage.span)
        return _compare(wanted, words, self.config.min_run)

    def _coverage(self, query: Query, passage: Passage) -> list[tuple[int, int]]:
        """Return the numbers of covered and of all characters of each reference that contains a word."""
        key = (query.qid, passage.doc_id)
        if key not in self._covered:
            words = _split_words(passage.content)
            found = [self._covers(reference, passage, words) for reference in query.references]
            for reference, each in zip(query.references, found, strict=True):
                if reference.span is None and each is not None and each[0] == each[1]:
                    self._held.setdefault((query.qid, reference.text), set()).add(passage.doc_id)
            self._covered[key] = [each for each in found if each is not None]
        return self._covered[key]


def _shared_characters(reference: Span, passage: Span) -> tuple[int, int]:
    """Return how many of the reference's characters are within the passage's span, and how many it has."""
    inside = min(reference.end, passage.end) - max(reference.start, passage.start)
    same = reference.source in names_of(passage.source)
    return max(0, inside) if same else 0, reference.end - reference.start


def _compare(reference: Sequence[str], passage: Sequence[str], min_run: int) -> tuple[int, int]:
    """Return how many characters of `reference` are in runs of `min_run` words shared with `passage`, and how many it
    has.

    A reference shorter than a run must occur in full.
    """
    size = min(min_run, len(reference))
    runs = set(_runs(passage, size))
    held = {place + step for place, run in enumerate(_runs(reference, size)) if run in runs for step in range(size)}
    return sum(len(reference[place]) for place in held), sum(map(len, reference))


def _runs(words: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[step:] for step in range(size)), strict=False)


def _split_words(text: str) -> list[str]:
    return WORD_PATTERN.findall(clean_unicode(text).casefold())
