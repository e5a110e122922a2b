"""Human labels replayed as a judge, if you like with a judge's noise: for studies of the pipeline itself.

The noise depends on the seed and on what is judged, never on when: a resumed or parallel run meets the same judge. A
passage's utility is its label plus a fixed normal deviate, so that passages of equal grade have a true order too; an
order is drawn from Plackett-Luce with weights exp(beta * utility).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Literal

from pydantic import Field

from raggs.adapter import AdapterConfig
from raggs.artifacts import MAX_GRADE, MIN_GRADE, Passage, Query
from raggs.errors import DataError
from raggs.judges.base import Judge, JudgeContext, Judgment, Ordering, Task
from raggs.seeds import generator
from raggs.settings import Causes, InputPath
from raggs.trec import read_qrels

# Settings that do not matter for the task.
OTHERS: dict[Task, tuple[str, ...]] = {
    "grade": ("beta", "spread"),
    "grades": ("beta", "spread"),
    "order": ("grade_noise",),
}

UTILITIES = 10_000  # kept: more than the queries that are ranked at once show


class QrelsConfig(AdapterConfig):
    type: Literal["qrels"] = "qrels"
    path: InputPath = Field(description="labels as in trec_eval: qid 0 docid label; may be .gz")
    default_grade: int = Field(1, ge=MIN_GRADE, le=MAX_GRADE, description="for passages without a label")
    beta: float | None = Field(None, gt=0, description="sharpness of a Plackett-Luce judge; null: never errs")
    grade_noise: float = Field(0.0, ge=0, le=1, description="probability that a grade slips by one, within 1..5")
    spread: float = Field(0.35, ge=0, description="standard deviation of utility within a grade")
    seed: int = Field(0, description="of the noise")


class QrelsJudge(Judge):
    """Replays human labels from a TREC file, with simulated noise on request."""

    Config = QrelsConfig
    config: QrelsConfig

    def __init__(self, config: QrelsConfig, context: JudgeContext) -> None:
        super().__init__(config, context)
        self._utility = lru_cache(UTILITIES)(self._draw_utility)

    @classmethod
    def exact(cls, causes: Causes) -> bool:
        """See `Judge.exact`: unless noise is asked for."""
        return not causes.get("grade_noise") and causes.get("beta") is None

    def labels(self) -> Mapping[str, Mapping[str, int]]:
        """See `Judge.labels`."""
        found: dict[str, dict[str, int]] = {}
        for (qid, doc_id), grade in self._labels.items():
            found.setdefault(qid, {})[doc_id] = grade
        return found

    @property
    def name(self) -> str:
        return f"qrels {self.config.path.name}"

    def causes(self, task: Task) -> Causes:
        found = self.own_causes()
        return {name: value for name, value in found.items() if name not in OTHERS[task]}

    @cached_property
    def _labels(self) -> dict[tuple[str, str], int]:
        found = {}
        for label in read_qrels(self.config.path):
            if label.grade < 0:
                continue
            if not MIN_GRADE <= label.grade <= MAX_GRADE:
                message = f"grade {label.grade} is outside 1..5"
                raise DataError(message, where=self.config.path, line=label.line, remedy="map the labels to 1..5")
            found[label.qid, label.doc_id] = label.grade
        return found

    def check(self, queries: Iterable[Query]) -> None:
        known = {qid for qid, _ in self._labels}
        wanted = [query.qid for query in queries]
        if not known.intersection(wanted):
            message = f"labels no query of this run (it has {_some(sorted(known))}; the run has {_some(wanted)})"
            raise DataError(message, where=self.config.path, remedy="check that both use the same query ids")

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        grade = self._labels.get((query.qid, passage.doc_id), self.config.default_grade)
        if self.config.grade_noise:
            rng = generator(self.config.seed, "grade", query.qid, passage.doc_id, sample)
            if rng.random() < self.config.grade_noise:
                grade = min(MAX_GRADE, max(MIN_GRADE, grade + (1 if rng.random() < 0.5 else -1)))
        return Judgment(grade)

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        return await self.reorder(query, passages, sample=0)

    async def reorder(self, query: Query, passages: Sequence[Passage], *, sample: int) -> Ordering:
        """See `Judge.reorder`: a simulated judge errs anew, one without `beta` says the same."""
        ids = [passage.doc_id for passage in passages]
        worth = [self._utility(query.qid, doc_id) for doc_id in ids]
        if self.config.beta is not None:
            # Adding Gumbel noise and sorting draws from Plackett-Luce (Yellott, 1977).
            again = (sample,) if sample else ()
            noise = generator(self.config.seed, "order", query.qid, *ids, *again).gumbel(size=len(ids))
            worth = [self.config.beta * value + float(extra) for value, extra in zip(worth, noise, strict=True)]
        return Ordering(tuple(sorted(range(len(ids)), key=lambda place: (-worth[place], ids[place]))))

    def _draw_utility(self, qid: str, doc_id: str) -> float:
        grade = self._labels.get((qid, doc_id), self.config.default_grade)
        return grade + float(generator(self.config.seed, "utility", qid, doc_id).normal(0, self.config.spread))


def _some(qids: list[str]) -> str:
    return ", ".join(qids[:3]) or "none"
