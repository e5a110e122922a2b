"""Grades that moved: the table of old against new, agreement beyond chance, and by question."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Ints
from raggs.base.jsontypes import number
from raggs.evaluation.diffs.models import EstimatePart, GradesPart
from raggs.evaluation.diffs.pairing import Pairing
from raggs.evaluation.diffs.sides import Side
from raggs.stats.agreement import check_labels, cohen_kappa, count_pairs
from raggs.stats.agreement.labels import GRADES


@dataclass(frozen=True)
class Moved:
    """Grades of the same passages for the same questions.

    Attributes:
        old, new: shape (pairs,).
        qids: shape (pairs,), the question of each, by its old id.
        added, removed: how many passages of these questions one set alone judged.
    """

    old: Ints
    new: Ints
    qids: tuple[str, ...]
    added: int
    removed: int

    def of(self, places: range) -> tuple[int, int, float]:
        """How many grades there are at some places, how many moved, and the mean move."""
        steps = self.new[places.start : places.stop] - self.old[places.start : places.stop]
        return len(steps), int((steps != 0).sum()), float(steps.mean()) if len(steps) else float("nan")

    def places(self) -> dict[str, range]:
        """Where each question's grades are: they stand together."""
        found: dict[str, range] = {}
        for place, qid in enumerate(self.qids):
            begin = found[qid].start if qid in found else place
            found[qid] = range(begin, place + 1)
        return found


def comparable(old: Side, new: Side) -> bool:
    """Whether grades of both are on the same scale."""
    scales = [(side.part.lowest, side.part.highest) for side in (old, new)]
    return scales[0] == scales[1]


def moved(old: Side, new: Side, pairing: Pairing) -> Moved:
    """The grades of both sets, question by question."""
    pairs: list[tuple[str, int, int]] = []
    added = removed = 0
    for qid, there in pairing.shared(old, new).items():
        before, after = old.grades[qid], pairing.grades(new, there)
        both = [doc for doc in before if doc in after]
        pairs += [(qid, before[doc], after[doc]) for doc in both]
        added += len(after) - len(both)
        removed += len(before) - len(both)
    columns = [np.array([pair[place] for pair in pairs], dtype=np.int64) for place in (1, 2)]
    return Moved(columns[0], columns[1], tuple(pair[0] for pair in pairs), added, removed)


def grades_part(found: Moved, side: Side, *, confidence: float, seed: int) -> GradesPart | None:
    """What moved; None where nothing can be compared.

    Args:
        side: one of the sets, whose scale both have.
    """
    if not len(found.old):
        return None
    labels = tuple(range(side.part.lowest, side.part.highest + 1))
    pairs, counts = np.unique(np.stack([found.old, found.new]), axis=1, return_counts=True)
    known: dict[tuple[float | None, float | None], int] = {
        (int(one), int(other)): int(count) for (one, other), count in zip(pairs.T, counts, strict=True)
    }
    steps, relevant = found.new - found.old, side.part.relevant
    was, is_ = found.old >= relevant, found.new >= relevant
    return GradesPart(
        compared=len(steps),
        up=int((steps > 0).sum()),
        down=int((steps < 0).sum()),
        far=int((np.abs(steps) > 1).sum()),
        to_relevant=int((~was & is_).sum()),
        from_relevant=int((was & ~is_).sum()),
        added=found.added,
        removed=found.removed,
        labels=labels,
        table=count_pairs(known, labels=labels).counts,
        kappa=_kappa(found, labels, confidence, seed),
    )


def _kappa(found: Moved, labels: tuple[int, ...], confidence: float, seed: int) -> EstimatePart:
    """Over questions where there are as many grades as most sets have; else over passages."""
    if len(labels) <= len(GRADES):
        shift = GRADES[0] - labels[0]
        checked = check_labels(found.old + shift, found.new + shift, found.qids, confidence=confidence, seed=seed).kappa
        return EstimatePart(value=number(checked.value), low=number(checked.low), high=number(checked.high))
    kappa = cohen_kappa(found.old, found.new, weights="quadratic", labels=labels, confidence=confidence, seed=seed)
    return EstimatePart(value=number(kappa.value), low=number(kappa.low), high=number(kappa.high))
