"""Alignment of edited passages with judged passages, and the labels that edited passages keep.

A passage of a new corpus is aligned with passages of an earlier version by their words. The common stretches are
positions of judged text in the new passage, so the rules of projection apply (`raggs.metrics.spans.projection`). The
new passage keeps a label in two cases:

- It contains a judged passage completely, and projection gives it the grade of this passage. A grade of 4 or 5 is kept.
  A lower grade is kept only if partly contained passages have grade 1, and the other text has no word of the query.
- Projection gives it grade 1, all judged text in it has grade 1, and the other text has no word of the query.

In every other case, the passage must be judged, because its grade may differ.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from raggs.base.artifacts import MIN_GRADE, CarryReason, Query
from raggs.base.languages import detect_language
from raggs.metrics.spans import DocumentOffsets, JudgedSpans, ProjectionRule, Spans, project
from raggs.parts.indexes.lexical import words_of

WORD_PATTERN = re.compile(r"\S+")
MIN_STRETCH = 4  # words of the shortest stretch that counts as common text
SHINGLE = 5  # consecutive words whose hash shows that two passages share text
SAMPLED = 4  # about one in this many hashes of a judged passage is indexed
MIN_SAMPLED = 8  # passages with fewer sampled hashes are indexed by all their hashes
MIN_VOTES = 2  # passages with at least so many common hashes are aligned; fewer suffice for very short passages
MAX_WORDS = 2_000  # longer passages are only tested for containment
MAX_CANDIDATES = 20  # judged passages that a new passage is aligned with: those with the most common hashes
RULE = ProjectionRule()


def single_spaced(text: str) -> str:
    """Return a text with single spaces, so that line breaks do not matter."""
    return " ".join(text.split())


@dataclass(frozen=True)
class Alignment:
    """Text of a judged passage in a new passage.

    Attributes:
        stretches: start and end of each common stretch, in characters of the plain text of the new passage; ascending,
            without overlap.
        whole: whether the new passage contains the judged passage completely, as one stretch.
    """

    stretches: tuple[tuple[int, int], ...]
    whole: bool


def align(old: str, new: str) -> Alignment:
    """Return the common stretches of two plain texts (`single_spaced`).

    If one text contains the other, there is one stretch. Otherwise, stretches have at least `MIN_STRETCH` words, and
    there are none if a text has more than `MAX_WORDS` words.
    """
    if (start := _find_whole(old, new)) is not None:
        return Alignment(((start, start + len(old)),), True)
    places = [match.span() for match in WORD_PATTERN.finditer(new)]
    before, after = old.split(), new.split()
    if (start := _find_whole(new, old)) is not None:
        return Alignment(((0, len(new)),), False)
    if max(len(before), len(after)) > MAX_WORDS:
        return Alignment((), False)
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    found = [(block.b, block.b + block.size) for block in blocks if block.size >= MIN_STRETCH]
    return Alignment(tuple((places[low][0], places[high - 1][1]) for low, high in found), False)


def _find_whole(part: str, text: str) -> int | None:
    """Return the position of `part` in `text` between word borders, or None."""
    start = f" {text} ".find(f" {part} ")
    return None if start < 0 or not part else start


def shingles(text: str) -> list[int]:
    """Return a hash of each `SHINGLE` consecutive words; one hash for a shorter text."""
    words = text.split()
    if len(words) < SHINGLE:
        return [zlib.crc32(text.encode())] if words else []
    return [zlib.crc32(" ".join(words[at : at + SHINGLE]).encode()) for at in range(len(words) - SHINGLE + 1)]


class SharedText:
    """Finds the judged passages that share text with a new passage.

    Args:
        texts: plain text of each judged passage, by id.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._index: dict[int, list[str]] = {}
        for doc_id, text in texts.items():
            every = set(shingles(text))
            sampled = {each for each in every if each % SAMPLED == 0}
            for each in sampled if len(sampled) >= MIN_SAMPLED else every:
                self._index.setdefault(each, []).append(doc_id)

    def candidates(self, doc_id: str, text: str) -> list[str]:
        """Return the ids of at most `MAX_CANDIDATES` judged passages with common text, most common text first.

        A judged passage with the id of the new passage is added at the front.
        """
        votes = Counter(each for shingle in set(shingles(text)) for each in self._index.get(shingle, ()))
        wanted = min(MIN_VOTES, max(1, len(text.split()) - SHINGLE + 1))
        found = sorted((-count, each) for each, count in votes.items() if count >= wanted)[:MAX_CANDIDATES]
        own = [doc_id] if doc_id in self._texts else []
        return list(dict.fromkeys([*own, *(each for _, each in found)]))

    def aligned(self, doc_id: str, text: str) -> EditedPassage | None:
        """Return a new passage with its judged text, or None if no judged text is found. `text` is plain."""
        found = {each: align(self._texts[each], text) for each in self.candidates(doc_id, text)}
        kept = {each: alignment for each, alignment in found.items() if alignment.stretches}
        return EditedPassage(doc_id, text, kept) if kept else None


class QueryWords:
    """Search words of queries: those of the text and of the expected answer."""

    def __init__(self, queries: Mapping[str, Query]) -> None:
        self._queries = queries
        self._words: dict[str, tuple[str, frozenset[str]]] = {}

    def met(self, qid: str, texts: Iterable[str]) -> bool:
        """Return whether one of the texts contains a search word of the query or of its expected answer."""
        if qid not in self._words:
            query = self._queries[qid]
            language = query.language or detect_language(query.text)
            said = f"{query.text} {query.answer or ''}"
            self._words[qid] = language, frozenset(words_of(said, language))
        language, words = self._words[qid]
        return any(not words.isdisjoint(words_of(text, language)) for text in texts)


@dataclass(frozen=True)
class KeptLabel:
    """A label that an edited passage keeps.

    Attributes:
        grade: the grade.
        doc_ids: judged passages that share text with the passage; the first one has this grade.
        how: why the label is kept.
    """

    grade: int
    doc_ids: tuple[str, ...]
    how: CarryReason


@dataclass(frozen=True)
class EditedPassage:
    """A new passage with text of judged passages.

    Attributes:
        doc_id: id in the new corpus.
        text: its plain text.
        alignments: common text by id of the judged passage.
    """

    doc_id: str
    text: str
    alignments: Mapping[str, Alignment]

    def label(self, qid: str, grades: Mapping[str, int], words: QueryWords) -> KeptLabel | None:
        """Return the label of the passage for a query; None if the passage must be judged.

        Args:
            grades: grades of the judged passages for the query, by id.
        """
        judged = {doc_id: each for doc_id, each in self.alignments.items() if doc_id in grades}
        if not judged:
            return None
        grade = self._projected(judged, grades)
        if grade < MIN_GRADE:
            return None
        whole = [doc_id for doc_id, each in judged.items() if each.whole and grades[doc_id] == grade]
        if whole and grade >= RULE.proof:
            return self._kept(grade, whole, judged, "kept")
        low = all(grades[doc_id] == MIN_GRADE for doc_id, each in judged.items() if not each.whole)
        if not low or words.met(qid, self._other_texts(judged)):
            return None
        if whole:
            return self._kept(grade, whole, judged, "kept")
        lowest = [doc_id for doc_id in judged if grades[doc_id] == MIN_GRADE]
        return self._kept(grade, lowest, judged, "irrelevant") if grade == MIN_GRADE else None

    @staticmethod
    def _kept(grade: int, first: Sequence[str], judged: Iterable[str], how: CarryReason) -> KeptLabel:
        return KeptLabel(grade, tuple(dict.fromkeys([first[0], *judged])), how)

    def _projected(self, judged: Mapping[str, Alignment], grades: Mapping[str, int]) -> int:
        """Return the grade by `RULE`; negative if the passage stays unjudged (see `ProjectionRule.known`)."""
        rows = [(0, *place) for each in judged.values() for place in each.stretches]
        marks = [grades[doc_id] for doc_id, each in judged.items() for _ in each.stretches]
        spans, grade = Spans.of(rows), np.array(marks, dtype=np.int64)
        lengths = DocumentOffsets.of([len(self.text)])
        painted = JudgedSpans(1, spans, np.zeros(len(rows), dtype=np.int64), grade, lengths)
        found = project(painted, Spans.of([(0, 0, len(self.text))]), RULE)
        return int(found.grade[0])

    def _other_texts(self, judged: Mapping[str, Alignment]) -> list[str]:
        """Return the stretches of the passage that no judged passage contains."""
        return list(self._gaps(sorted(place for each in judged.values() for place in each.stretches)))

    def _gaps(self, places: Sequence[tuple[int, int]]) -> Iterator[str]:
        ends = [0]
        for _, end in places:
            ends.append(max(ends[-1], end))
        starts = [*(start for start, _ in places), len(self.text)]
        yield from (self.text[end:start] for end, start in zip(ends, starts, strict=True) if start > end)
