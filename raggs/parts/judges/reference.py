"""A judge without a language model: how much of the question's reference excerpts does a passage hold?

Where both say where they stand (`span`; offsets of chunking benchmarks are such), the characters that they share are
counted: in another document, or elsewhere in the same one, the same words count for nothing, and near-duplicates have
grades of their own. Else excerpt and passage are compared by words, case and punctuation dropped. An excerpt's
covered characters are those of its words that stand in the passage within a run of at least `min_run` words of the
excerpt, so scattered common words do not count; where in the passage the run stands does not matter. The grade comes
from the best-covered excerpt; orders go by characters covered over all excerpts, then by their share of the passage.
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
        (0.25, 0.5, 0.8), description="covered share from which a grade is 3, 4, 5; any at all is 2"
    )
    min_run: int = Field(5, ge=1, description="words that must match in a row to count")


class ReferenceJudge(Judge):
    """No language model: grades by how much of the question's reference excerpts a passage covers."""

    VERSION = 3
    Config = ReferenceConfig
    config: ReferenceConfig

    def __init__(self, config: ReferenceConfig, context: JudgeContext) -> None:
        super().__init__(config, context)
        self._covered: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self._held: dict[tuple[str, str], set[str]] = {}  # by question and excerpt without a place, who holds all of it

    @classmethod
    def exact(cls, causes: Causes) -> bool:  # noqa: ARG003 - whatever its thresholds
        """See `Judge.exact`: the same words give the same grade."""
        return True

    @property
    def by_place(self) -> bool:
        return True

    @property
    def name(self) -> str:
        """See `Judge.name`."""
        return "reference"

    def check(self, queries: Iterable[Query]) -> None:
        """Find questions without words to look for.

        Raises:
            DataError: a question has no reference excerpt, or only such without a word.
        """
        for query in queries:
            if not any(WORD_PATTERN.search(reference.text) for reference in query.references):
                message = f"query {query.qid} has no reference excerpt, which judge reference needs"
                raise DataError(message, remedy="give it some, or choose another judge")

    def apart(self, query: Query, one: Passage, other: Passage) -> bool:
        """Whether both have places, and these cover other parts of the references."""
        placed = one.span is not None and other.span is not None and any(each.span for each in query.references)
        return self._coverage(query, other) != self._coverage(query, one) if placed else False

    def remarks(self) -> Iterator[str]:
        """Excerpts without a place that stand in several passages: which of them was meant, nobody knows."""
        several = [(qid, text, len(found)) for (qid, text), found in sorted(self._held.items()) if len(found) > 1]
        for qid, text, count in several[:MAX_LISTED_REFERENCES]:
            yield (
                f"question {qid}: {count} passages of its pool hold the excerpt {shorten(text, 60)!r}, which has no "
                "offsets; each of them counts"
            )
        if len(several) > MAX_LISTED_REFERENCES:
            yield f"and {plural(len(several) - MAX_LISTED_REFERENCES, 'more excerpt')} that several passages hold"

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        shares = [covered / total for covered, total in self._coverage(query, passage)]
        best = max(shares, default=0.0)
        return Judgment(grade_of(best, self.config.thresholds), f"covers {best:.0%} of its best reference")

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        return Ordering(tuple(sorted(range(len(passages)), key=lambda place: self._key(query, passages[place]))))

    def _key(self, query: Query, passage: Passage) -> tuple[int, float, str, str]:
        """Best first; equals go by a hash that no order of showing can bend, twins by their ids."""
        covered = sum(found for found, _ in self._coverage(query, passage))
        return -covered, -covered / len(passage.content), hash_bytes(passage.content.encode()), passage.doc_id

    def _covers(self, reference: Reference, passage: Passage, words: Sequence[str]) -> tuple[int, int] | None:
        """Characters covered and characters in all; None for a reference without words."""
        wanted = _split_words(reference.text)
        if not wanted:
            return None
        if reference.span is not None and passage.span is not None:
            return _shared_characters(reference.span, passage.span)
        return _compare(wanted, words, self.config.min_run)

    def _coverage(self, query: Query, passage: Passage) -> list[tuple[int, int]]:
        """Characters covered and characters in all, for each reference with words."""
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
    """Characters of a reference within a passage's place, and all of them."""
    inside = min(reference.end, passage.end) - max(reference.start, passage.start)
    same = reference.source in names_of(passage.source)
    return max(0, inside) if same else 0, reference.end - reference.start


def _compare(reference: Sequence[str], passage: Sequence[str], min_run: int) -> tuple[int, int]:
    """Characters of `reference` within runs of `min_run` words that `passage` has too; characters of `reference`.

    A reference shorter than a run must be there as a whole.
    """
    size = min(min_run, len(reference))
    runs = set(_runs(passage, size))
    held = {place + step for place, run in enumerate(_runs(reference, size)) if run in runs for step in range(size)}
    return sum(len(reference[place]) for place in held), sum(map(len, reference))


def _runs(words: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[step:] for step in range(size)), strict=False)


def _split_words(text: str) -> list[str]:
    return WORD_PATTERN.findall(clean_unicode(text).casefold())
