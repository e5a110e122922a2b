"""Scores of bundles by embedders and rerankers: each different text is read once.

What is kept is the scores of a scorer in one language under one perturber, so that a kill costs that much. Hygiene is
that of questions and passages anywhere in raggs, unless texts are asked for as they stand.

From scores to findings: margins, their changes, and whether these are within their limits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats, Ints, Vectors
from raggs.base.artifacts import Passage
from raggs.base.errors import DataError, ProviderError
from raggs.base.settings import Causes
from raggs.base.text import clean_passage, clean_unicode, shorten
from raggs.base.types import Building, Number, number
from raggs.diagnosis.bench import Bench, reranking
from raggs.diagnosis.names.models import AblationPart, MarginPart
from raggs.evaluation.models import Part
from raggs.parts.embedders.base import Embedder
from raggs.parts.perturbers.base import Bundle, Family
from raggs.parts.rerankers.base import Reranker, Reranking
from raggs.runs.manifests.models import Estimate
from raggs.stages.ordered import run_ordered
from raggs.stats.probes.names import LEAST_BASE, ROLES, Change, Margins, Mean, ratio

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


class _Reader:
    """Vectors of texts: each different one is embedded once, those of the first reading once for all.

    Args:
        clean: hygiene, before texts are compared.
        embed: gives vectors.
        tell: hears how many of how many texts are embedded.
    """

    def __init__(
        self, clean: Callable[[str], str], embed: Callable[[Sequence[str]], Vectors], tell: Callable[[int, int], None]
    ) -> None:
        self._clean, self._embed, self._tell = clean, embed, tell
        self._known: dict[str, int] = {}
        self._vectors: list[Vectors] = []

    def read(self, texts: Sequence[Sequence[Sequence[str]]]) -> tuple[Ints, Vectors]:
        """The row of each text, in the shape in which they came, and the vectors in these rows."""
        place = dict(self._known)
        rows = [[[place.setdefault(self._clean(text), len(place)) for text in each] for each in run] for run in texts]
        fresh, parts = list(place)[len(self._known) :], list(self._vectors)
        for at in range(0, len(fresh), STEP):
            parts.append(self._embed(fresh[at : at + STEP]))
            self._tell(min(at + STEP, len(fresh)), len(fresh))
        found = np.concatenate(parts)
        if not self._known:
            self._known, self._vectors = place, [found]
        return np.array(rows, dtype=np.int64), found


class ByEmbedder(Scorer):
    """Cosine of the vectors of question and candidate."""

    def __init__(self, name: str, embedder: Embedder, runs: int, hygiene: Hygiene, bench: Bench) -> None:
        self.name, self.runs = name, runs
        self._embedder, self._hygiene, self._bench = embedder, hygiene, bench
        self._language, self._readers = "", self._new_readers()

    @property
    def paid(self) -> bool:
        """Whether somebody is paid for vectors."""
        return bool(self._embedder.models)

    def causes(self) -> Causes:
        return self._embedder.causes()

    def score(self, runs: Runs) -> Floats:
        if runs[0][0].language != self._language:
            self._language, self._readers = runs[0][0].language, self._new_readers()
        texts = [[each.texts for each in run] for run in runs]
        asked, questions = self._readers[0].read([[each[:1] for each in run] for run in texts])
        shown, candidates = self._readers[1].read([[each[1:] for each in run] for run in texts])
        self._require_known(questions, runs)
        found = np.empty((len(runs), len(runs[0]), len(ROLES)))
        for run in range(len(runs)):  # a run at a time: long vectors of all would fill the memory
            ours = questions[asked[run, :, 0]].astype(np.float64)
            found[run] = np.einsum("qd,qcd->qc", ours, candidates[shown[run]].astype(np.float64))
        return found

    def _new_readers(self) -> tuple[_Reader, _Reader]:
        """Of questions and of candidates."""
        hygiene, embedder = self._hygiene, self._embedder
        asked = _Reader(hygiene.question, embedder.embed_queries, self._tell)
        return asked, _Reader(hygiene.passage, embedder.embed, self._tell)

    def _tell(self, done: int, total: int) -> None:
        self._bench.hear(Building(f"texts embedded by {self.name}", done, total))

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

    def outlays(self, runs: Runs, conditions: int) -> Iterator[Estimate]:
        """What scoring these bundles takes at most, by model.

        Args:
            conditions: how many times each is scored, changed or not.
        """
        bundles = [bundle for run in runs for bundle in run]
        asked = [bundle.question.text for bundle in bundles]
        read = [piece.text for bundle in bundles for piece in bundle.candidates]
        for each in reranking(self._reranker, len(bundles) * conditions, len(ROLES), asked, read):
            yield each.model_copy(update={"exact": True})

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
        return self._checked(await self._reranker.rerank(question, bundle.language, shown), bundle)

    def _checked(self, told: Reranking, bundle: Bundle) -> list[float]:
        if told.problems:
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


MOSTLY = 0.5  # share of bundles with a margin too small for percentages from which these say nothing


def mean_part(found: Mean) -> MarginPart:
    """A mean as it is written down."""
    return MarginPart(
        value=number(found.value),
        sd=number(found.spread),
        run_low=number(found.by_runs.low),
        run_high=number(found.by_runs.high),
        low=number(found.by_questions.low),
        high=number(found.by_questions.high),
        count=found.count,
    )


def ablation_part(perturber: str, family: Family, found: Change, limits: tuple[float, float]) -> AblationPart:
    """A change as it is written down; `limits`: least loss of an identity, most of anything else, in percent."""
    percent = mean_part(found.percent)
    return AblationPart(
        perturber=perturber,
        family=family,
        percent=percent,
        of_means=number(found.of_means),
        of_means_low=number(found.of_means_bounds.low),
        of_means_high=number(found.of_means_bounds.high),
        absolute=mean_part(found.absolute),
        left_out=found.left_out,
        holds=holds(percent, family, *limits),
    )


def holds(percent: MarginPart, family: Family, least: float, most: float) -> bool | None:
    """Whether a change is within its limit: None where its interval over questions holds the limit."""
    low, high = percent.low, percent.high
    if low is None or high is None:
        return None
    if family == "identity":
        return True if high <= -least else False if low > -least else None
    return True if low >= -most else False if high < -most else None


def small_share(margins: Margins) -> float:
    """Share of bundles whose name margin is too small for a percentage, or negative."""
    return float((margins.name < LEAST_BASE).mean())


def name_by_topic(margins: Margins, seed: int) -> Mapping[str, Number]:
    """The ratio of both margins, with its interval, as fields of a `SubjectPart`."""
    value, bounds = ratio(margins.name, margins.topic, seed=seed)
    return {"ratio": number(value), "ratio_low": number(bounds.low), "ratio_high": number(bounds.high)}
