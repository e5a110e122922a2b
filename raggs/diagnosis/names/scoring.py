"""Scores of bundles by embedders and rerankers: each different text is read once.

What is kept is the scores of a scorer in one language under one perturber, so that a kill costs that much. Hygiene is
that of questions and passages anywhere in raggs, unless texts are asked for as they stand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.arrays import Floats, Vectors
from raggs.artifacts import Passage
from raggs.diagnosis.bench import Bench
from raggs.embedders.base import Embedder
from raggs.errors import DataError, ProviderError
from raggs.evaluation.models import Part
from raggs.perturbers.bundles import Bundle
from raggs.probes.margins import ROLES
from raggs.progress import Building
from raggs.rerankers.base import Reranker, Reranking
from raggs.settings import Causes
from raggs.stages.ordered import run_ordered
from raggs.text import clean_passage, clean_unicode, shorten

STEP = 1024  # texts embedded before whoever watches hears of it
Runs = Sequence[Sequence[Bundle]]


class ScoreRow(Part):
    """The scores of one run, as they are kept: for each question those of its five candidates."""

    scores: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Hygiene:
    """How texts are read."""

    raw: bool

    def question(self, text: str) -> str:
        """A question as it is embedded."""
        return text if self.raw else clean_unicode(text)

    def passage(self, text: str) -> str:
        """A passage as it is embedded."""
        return text if self.raw else clean_passage(text)


class Scorer(ABC):
    """Who scores.

    Attributes:
        name: as tables have it.
        runs: how many of the runs it scores.
    """

    name: str
    runs: int

    @abstractmethod
    def causes(self) -> Causes:
        """All that can change a score."""

    @abstractmethod
    def score(self, runs: Runs) -> Floats:
        """Shape (runs, questions, 5), higher is better.

        Raises:
            RaggsError: the model failed, or does not know the language.
        """


class ByEmbedder(Scorer):
    """Cosine of the vectors of question and candidate."""

    def __init__(self, name: str, embedder: Embedder, runs: int, hygiene: Hygiene, bench: Bench) -> None:
        self.name, self.runs = name, runs
        self._embedder, self._hygiene, self._bench = embedder, hygiene, bench
        self._known: tuple[dict[str, int], Vectors] = {}, np.zeros((0, 0), dtype=np.float32)

    def causes(self) -> Causes:
        return self._embedder.causes()

    def score(self, runs: Runs) -> Floats:
        asked, questions = self._read(runs, 0, 1, self._hygiene.question, self._embedder.embed_queries)
        shown, candidates = self._read(runs, 1, None, self._hygiene.passage, self._embedder.embed)
        self._require_known(questions, runs)
        found = np.empty((len(runs), len(runs[0]), len(ROLES)))
        for run in range(len(runs)):  # a run at a time: long vectors of all would fill the memory
            ours = questions[asked[run, :, 0]].astype(np.float64)
            found[run] = np.einsum("qd,qcd->qc", ours, candidates[shown[run]].astype(np.float64))
        return found

    def _read(
        self,
        runs: Runs,
        start: int,
        stop: int | None,
        clean: Callable[[str], str],
        embed: Callable[[Sequence[str]], Vectors],
    ) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], Vectors]:
        """For each bundle the rows of some of its texts, and the vectors in these rows."""
        place: dict[str, int] = {}
        rows = [
            [[place.setdefault(clean(text), len(place)) for text in each.texts[start:stop]] for each in run]
            for run in runs
        ]
        texts, parts = list(place), []
        for at in range(0, len(texts), STEP):
            parts.append(embed(texts[at : at + STEP]))
            self._bench.hear(Building(f"texts embedded by {self.name}", min(at + STEP, len(texts)), len(texts)))
        return np.array(rows, dtype=np.int64), np.concatenate(parts)

    def _require_known(self, questions: Vectors, runs: Runs) -> None:
        """Refuse a language of which the embedder knows no word.

        Raises:
            DataError: it gives questions no vector.
        """
        if self._bench.rehearsal is None and not questions.any(axis=1).all():
            bundle = runs[0][0]
            raise DataError(
                f"{self.name} gives no vector to questions in {bundle.language!r}, such as "
                f"{shorten(bundle.question.text, 60)!r}",
                remedy="name the languages that it knows: --language en",
            )


class ByReranker(Scorer):
    """What a reranker gives each of the five."""

    def __init__(self, name: str, reranker: Reranker, runs: int, hygiene: Hygiene, bench: Bench) -> None:
        self.name, self.runs = name, runs
        self._reranker, self._hygiene, self._bench = reranker, hygiene, bench

    def causes(self) -> Causes:
        return self._reranker.causes()

    def score(self, runs: Runs) -> Floats:
        bundles, found = [bundle for run in runs for bundle in run], []
        for scores in run_ordered(self._bench.workshop, bundles, self._scores):
            found.append(scores)
            if len(found) % 100 == 0 or len(found) == len(bundles):
                self._bench.hear(Building(f"questions scored by {self.name}", len(found), len(bundles)))
        return np.array(found).reshape(len(runs), len(runs[0]), len(ROLES))

    async def _scores(self, bundle: Bundle) -> list[float]:
        question = self._hygiene.question(bundle.question.text)
        shown = [
            Passage(doc_id=role, text=self._hygiene.passage(piece.text))
            for role, piece in zip(ROLES, bundle.candidates, strict=True)
        ]
        try:
            told = await self._reranker.rerank(question, bundle.language, shown)
        except ProviderError:
            if self._bench.rehearsal is None:
                raise
            return [0.0] * len(ROLES)  # not paid for yet: counted, which is what a rehearsal is for
        return self._checked(told, bundle)

    def _checked(self, told: Reranking, bundle: Bundle) -> list[float]:
        if told.problems and self._bench.rehearsal is None:
            raise ProviderError(
                f"{self.name} left a question without scores ({told.problems[0]}): "
                f"{shorten(bundle.question.text, 60)!r}",
                remedy="run again: what was paid is cached",
            )
        by_role = {each.doc_id: each.score for each in told.ranked}
        return [by_role[role] for role in ROLES]


def kept_scores(bench: Bench, scorer: Scorer, causes: object, runs: Runs) -> Floats:
    """The scores of bundles, as they were kept, or as they are made now.

    Args:
        causes: all that the bundles depend on.
    """

    def make() -> list[ScoreRow]:
        return [ScoreRow(scores=tuple(map(tuple, run))) for run in scorer.score(runs).tolist()]

    rows = bench.kept(["names", scorer.causes(), causes], ScoreRow, make)
    return np.array([row.scores for row in rows], dtype=np.float64)
