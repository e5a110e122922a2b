"""What noise costs a golden set's questions and what rewriting brings back, on measures and on the lists themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.artifacts import Query
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.noise.asking import Condition, Questions
from raggs.diagnosis.noise.cosines import of_share
from raggs.diagnosis.noise.models import NONE, EndPart, NoiseDiagnosisConfig, ShufflePart
from raggs.diagnosis.noise.searching import Lists, Searched
from raggs.diagnosis.noise.texts import language_of, usual_language
from raggs.diagnosis.parts import MeanPart
from raggs.metrics.columns import Scale
from raggs.metrics.evaluate import evaluate
from raggs.metrics.stats import bootstrap_mean
from raggs.stats.probes.noise import change, overlaps, regained, taus

NOTHING = MeanPart()


@dataclass(frozen=True)
class Asking:
    """The golden set's questions that are searched, with their languages, and how many are in another one."""

    questions: tuple[tuple[Query, str], ...]
    strange: int


def questions_of(bench: Bench, languages: Sequence[str]) -> Asking:
    """Its judged questions in languages that noise is drawn for, sorted by id."""
    judged = set(bench.judgments.qrels.qids)
    found = [
        (query, language_of(query, usual_language(bench))) for qid, query in bench.queries.items() if qid in judged
    ]
    kept = tuple(each for each in found if each[1] in languages)
    return Asking(kept, len(found) - len(kept))


def measures_of(scale: Scale, cutoffs: Sequence[int]) -> tuple[str, ...]:
    """What is looked at: the paper's measures on the scale 1 to 5, else recall and nDCG."""
    names = ("n_recall4", "ra_nwg") if scale.golden else ("recall", "ndcg")
    return tuple(f"{name}@{k}" for name in names for k in cutoffs)


class Losses:
    """Values and lists of all systems under all conditions, and what they differ in."""

    def __init__(self, bench: Bench, questions: Questions, config: NoiseDiagnosisConfig, asking: Asking) -> None:
        self._bench, self._config = bench, config
        self._qids = [query.qid for query, _ in asking.questions]
        self._measures = measures_of(bench.judgments.qrels.scale, config.cutoffs)
        self._found: dict[tuple[str, int, str], Lists] = {}
        self._values: dict[tuple[str, int, str], dict[str, Floats]] = {}
        searched = Searched(bench, questions, asking.questions, config.depth)
        for condition in conditions(config):
            for system, lists in searched.systems(condition):
                at = system, condition.level, condition.name
                self._found[at], self._values[at] = lists, self._measured(lists)

    def ends(self) -> Iterator[EndPart]:
        """By system, measure, level and rewriter."""
        seed = self._bench.seed
        for (system, level, rewriter), values in self._values.items():
            plain, noisy = self._values[system, 0, NONE], self._values[system, level, NONE]
            for measure, column in values.items():
                interval, base, before = bootstrap_mean(column, seed=seed), plain[measure], noisy[measure]
                own = rewriter != NONE
                yield EndPart(
                    system=system,
                    level=level,
                    rewriter=rewriter,
                    measure=measure,
                    questions=interval.count,
                    mean=MeanPart.of(interval),
                    change=MeanPart.of(change(base, column, seed)),
                    gained=MeanPart.of(change(before, column, seed)) if own else NOTHING,
                    regained=of_share(regained(base, before, column, seed)) if own else NOTHING,
                )

    def shuffles(self) -> Iterator[ShufflePart]:
        """By system, level, rewriter and cutoff; the questions as they are stand beside themselves nowhere."""
        for (system, level, rewriter), lists in self._found.items():
            plain = self._found[system, 0, NONE]
            first, second = ([found[qid] for qid in self._qids] for found in (plain, lists))
            for k in () if (level, rewriter) == (0, NONE) else self._config.cutoffs:
                yield ShufflePart(
                    system=system,
                    level=level,
                    rewriter=rewriter,
                    k=k,
                    overlap=MeanPart.of(bootstrap_mean(overlaps(first, second, k), seed=self._bench.seed)),
                    tau=MeanPart.of(bootstrap_mean(taus(first, second, k), seed=self._bench.seed)),
                )

    def _measured(self, lists: Lists) -> dict[str, Floats]:
        """By measure, shape (questions,)."""
        found = evaluate(self._bench.judgments.qrels, {qid: list(docs) for qid, docs in lists.items()}, self._measures)
        rows = np.searchsorted(np.array(found.qids), np.array(self._qids))
        return {measure: found.column(measure)[rows] for measure in self._measures}


def conditions(config: NoiseDiagnosisConfig) -> list[Condition]:
    """All levels by all rewriters; the questions as they are come first."""
    return [Condition(level, spec) for level in config.searched for spec in config.rewriters]
