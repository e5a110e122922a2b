"""Human labels from a file, replayed as a judge, optionally with simulated noise: for studies of the pipeline.

The noise depends on the seed and on the judged items, not on time, so a resumed or parallel run gets the same answers.
A passage's utility is its grade plus a normal deviate, drawn once per query and passage, so that passages of equal
grade have a true order, too. An order is drawn from a Plackett-Luce model with weights exp(beta * utility). Without
`beta`, it is the true order.

`mapping` converts labels to grades. If it is not set, gains that `raggs export` wrote are converted back to the
original grades (gain + 1), if the sidecar of the file states this format. Binary labels of `raggs export` then raise an
error. All other labels must be grades from 1 to 5. Negative labels are ignored, unless `mapping` contains them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Literal

from pydantic import Field, field_validator

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, Passage, Query
from raggs.base.errors import DataError
from raggs.base.hashing import generator
from raggs.base.settings import AddedLater, Causes, InputPath
from raggs.parts.file_shapes import stated_scale
from raggs.parts.judges import Judge, JudgeContext, Judgment, Ordering, Task

# Settings without effect on the task.
IRRELEVANT_SETTINGS: dict[Task, tuple[str, ...]] = {
    "grade": ("beta", "spread"),
    "grades": ("beta", "spread"),
    "order": ("grade_noise",),
}

UTILITIES = 10_000  # cache size; usually above the number of passages of the queries that are ranked at the same time


class QrelsConfig(AdapterConfig):
    type: Literal["qrels"] = "qrels"
    path: InputPath = Field(description="labels: TREC qrels or any format that raggs eval reads; may be gzipped")
    mapping: AddedLater[dict[int, int] | None] = Field(
        None,
        description="grade of each label, e.g. {0: 1, 1: 4}; null: grade according to the export, or the label itself",
    )
    default_grade: int = Field(1, ge=MIN_GRADE, le=MAX_GRADE, description="grade of passages without a label")
    beta: float | None = Field(
        None, gt=0, description="precision of orders (Plackett-Luce); null: orders without noise"
    )
    grade_noise: float = Field(
        0.0,
        ge=0,
        le=1,
        description="probability that a grade shifts by one, up or down; a shift beyond 1..5 has no effect",
    )
    spread: float = Field(0.35, ge=0, description="standard deviation of utility within a grade")
    seed: int = Field(0, description="random seed of the noise")

    @field_validator("mapping")
    @classmethod
    def _to_grades(cls, found: dict[int, int] | None) -> dict[int, int] | None:
        for label, grade in (found or {}).items():
            if not MIN_GRADE <= grade <= MAX_GRADE:
                raise ValueError(f"label {label} maps to {grade}, which is not a grade from {MIN_GRADE} to {MAX_GRADE}")
        return found


class QrelsJudge(Judge):
    """Replays human labels from a file, optionally with simulated noise."""

    Config = QrelsConfig
    config: QrelsConfig

    def __init__(self, config: QrelsConfig, context: JudgeContext) -> None:
        super().__init__(config, context)
        self._utility = lru_cache(UTILITIES)(self._draw_utility)

    @classmethod
    def exact(cls, causes: Causes) -> bool:
        """Return whether the settings add no noise (see `Judge.exact`)."""
        return not causes.get("grade_noise") and causes.get("beta") is None

    def labels(self) -> Mapping[str, Mapping[str, int]]:
        """Return all labels as grades (see `Judge.labels`)."""
        found: dict[str, dict[str, int]] = {}
        for (qid, doc_id), grade in self._labels.items():
            found.setdefault(qid, {})[doc_id] = grade
        return found

    def without_noise(self, qid: str, doc_id: str) -> int | None:
        """Return the grade of the label if `grade_noise` is above 0 (see `Judge.without_noise`)."""
        return self._label(qid, doc_id) if self.config.grade_noise else None

    def _label(self, qid: str, doc_id: str) -> int:
        return self._labels.get((qid, doc_id), self.config.default_grade)

    @property
    def name(self) -> str:
        return f"qrels {self.config.path.name}"

    def causes(self, task: Task) -> Causes:
        found = self.own_causes()
        if self.config.mapping is None and (stated := stated_scale(self.config.path)) and stated.form != "raw":
            found["labels"] = stated.form
        if any(label < 0 for label in self.config.mapping or ()):
            found["negative_labels"] = "mapped"  # earlier versions omitted them even if they were mapped
        return {name: value for name, value in found.items() if name not in IRRELEVANT_SETTINGS[task]}

    @cached_property
    def _labels(self) -> dict[tuple[str, str], int]:
        from raggs.parts.run_files import read_labels  # imported lazily: it needs numpy

        found, known = {}, self._grade_of
        for label in read_labels(self.config.path):
            if label.grade not in known:
                if label.grade < 0:
                    continue  # TREC's mark of an unjudged passage
                message = f"label {label.grade} has no grade; known labels: {', '.join(map(str, known))}"
                remedy = f"set the grade of each label, e.g. mapping: {{{label.grade}: {MIN_GRADE}, ...}}"
                raise DataError(message, where=self.config.path, line=label.line or None, remedy=remedy)
            found[label.qid, label.doc_id] = known[label.grade]
        return found

    @cached_property
    def _grade_of(self) -> Mapping[int, int]:
        """Grade of each label value.

        Raises:
            DataError: the labels are binary, which does not determine a grade.
        """
        if self.config.mapping is not None:
            return self.config.mapping
        stated = stated_scale(self.config.path)
        if stated is not None and stated.form == "binary":
            message = f"labels are binary (1: grade {stated.binary_at} or higher), so grades are unknown"
            remedy = "export with --grades gain, or set the grade of each label, e.g. mapping: {0: 1, 1: 4}"
            raise DataError(message, where=self.config.path, remedy=remedy)
        offset = 0 if stated is None else stated.offset
        return {grade - offset: grade for grade in range(MIN_GRADE, MAX_GRADE + 1)}

    def check(self, queries: Iterable[Query]) -> None:
        known = {qid for qid, _ in self._labels}
        wanted = [query.qid for query in queries]
        if not known.intersection(wanted):
            message = (
                f"no label for a query of this run (labels: {_first_ids(sorted(known))}; run: {_first_ids(wanted)})"
            )
            raise DataError(message, where=self.config.path, remedy="use the query ids of the run in the labels")

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        grade = self._label(query.qid, passage.doc_id)
        if self.config.grade_noise:
            rng = generator(self.config.seed, "grade", query.qid, passage.doc_id, sample)
            if rng.random() < self.config.grade_noise:
                grade = min(MAX_GRADE, max(MIN_GRADE, grade + (1 if rng.random() < 0.5 else -1)))
        return Judgment(grade)

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        return await self.reorder(query, passages, sample=0)

    async def reorder(self, query: Query, passages: Sequence[Passage], *, sample: int) -> Ordering:
        """Return an order (see `Judge.reorder`); if `beta` is set, each sample has independent noise."""
        ids = [passage.doc_id for passage in passages]
        worth = [self._utility(query.qid, doc_id) for doc_id in ids]
        if self.config.beta is not None:
            # Adding Gumbel noise and sorting draws from Plackett-Luce (Yellott, 1977).
            again = (sample,) if sample else ()
            noise = generator(self.config.seed, "order", query.qid, *ids, *again).gumbel(size=len(ids))
            worth = [self.config.beta * value + float(extra) for value, extra in zip(worth, noise, strict=True)]
        return Ordering(tuple(sorted(range(len(ids)), key=lambda place: (-worth[place], ids[place]))))

    def _draw_utility(self, qid: str, doc_id: str) -> float:
        return self._label(qid, doc_id) + float(
            generator(self.config.seed, "utility", qid, doc_id).normal(0, self.config.spread)
        )


def _first_ids(qids: list[str]) -> str:
    return ", ".join(qids[:3]) or "none"
