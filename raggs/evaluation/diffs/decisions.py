"""What two sets say of the same systems: the verdict on each pair under both, and which of them differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.types import number
from raggs.evaluation.diffs.models import DecisionsPart, EstimatePart, MovePart, ScorePart, VerdictPart
from raggs.stats.comparison import Comparison, Ends, Verdict, compare_many

MOST = 5  # questions named for a flip
OPPOSITE: Mapping[Verdict, Verdict] = {"win": "loss", "loss": "win"}


@dataclass(frozen=True)
class Column:
    """Values of the systems under one set on one measure.

    Attributes:
        qids: of the queries.
        values: by system, shape (queries,), NaN where the measure is not defined.
        higher: whether more is better.
        ends: by pair of systems that show unjudged passages, how far these could move the first minus the second, with
            more being better.
        why: by the same pairs, how much of the tops is unjudged.
    """

    qids: tuple[str, ...]
    values: Mapping[str, Floats]
    higher: bool
    ends: Mapping[tuple[str, str], Ends] = field(default_factory=dict)
    why: Mapping[tuple[str, str], str] = field(default_factory=dict)


def decisions_part(
    old: Mapping[str, Column],
    new: Mapping[str, Column],
    *,
    confidence: float,
    seed: int,
    notes: Sequence[str] = (),
) -> DecisionsPart:
    """Every pair of systems on every measure; both sides hold the same measures and systems.

    The p values of a measure are corrected over its pairs (Holm).
    """
    systems = tuple(next(iter(old.values())).values) if old else ()
    verdicts = [each for measure in old for each in _verdicts(measure, old[measure], new[measure], confidence, seed)]
    return DecisionsPart(
        measures=tuple(old),
        systems=systems,
        scores=tuple(_score(name, measure, old[measure], new[measure]) for measure in old for name in systems),
        verdicts=tuple(sorted(verdicts, key=lambda each: (not each.reversed, not each.flipped))),
        confidence=confidence,
        notes=tuple(notes),
    )


def _verdicts(measure: str, old: Column, new: Column, confidence: float, seed: int) -> list[VerdictPart]:
    before, after = (compared(side, confidence=confidence, seed=seed) for side in (old, new))
    parts = [_verdict(pair, measure, (before[pair], after[pair]), (old, new)) for pair in before]
    return [
        part.model_copy(update={"moved_by": _movers(old, new, part.first, part.second)}) if part.flipped else part
        for part in parts
    ]


def _movers(old: Column, new: Column, first: str, second: str) -> tuple[MovePart, ...]:
    """The questions that moved the difference most, in the way in which its mean over them moved."""
    sides = [
        dict(zip(side.qids, (side.values[first] - side.values[second]).tolist(), strict=True)) for side in (old, new)
    ]
    both = [qid for qid in sides[0] if np.isfinite(sides[0][qid]) and np.isfinite(sides[1].get(qid, np.nan))]
    moves = {qid: sides[1][qid] - sides[0][qid] for qid in both}
    way = np.sign(sum(moves.values()))
    most = sorted((qid for qid in both if moves[qid] * way > 0), key=lambda qid: -abs(moves[qid]))[:MOST]
    return tuple(MovePart(qid=qid, old=sides[0][qid], new=sides[1][qid]) for qid in most)


def compared(column: Column, *, confidence: float, seed: int) -> dict[tuple[str, str], Comparison]:
    """Every pair of systems, with Holm's correction over all of them; more is better in what comes of it."""
    sign = 1.0 if column.higher else -1.0
    pairs = list(combinations(column.values, 2))
    if not pairs:
        return {}
    rows = {str(place): sign * (column.values[one] - column.values[two]) for place, (one, two) in enumerate(pairs)}
    none = np.zeros(len(next(iter(rows.values()))))
    ends = {str(place): column.ends[pair] for place, pair in enumerate(pairs) if pair in column.ends}
    found = compare_many(none, rows, seed=seed, alpha=1.0 - confidence, tests=("randomisation",), ends=ends)
    return {pair: found[str(place)] for place, pair in enumerate(pairs)}


def _verdict(
    pair: tuple[str, str], measure: str, compared_: tuple[Comparison, Comparison], sides: tuple[Column, Column]
) -> VerdictPart:
    (before, after), sign = compared_, 1.0 if sides[0].higher else -1.0
    whys = [column.why.get(pair) if each.verdict == "unjudged" else None
            for each, column in zip(compared_, sides, strict=True)]  # fmt: skip
    return VerdictPart(
        first=pair[0],
        second=pair[1],
        measure=measure,
        old=before.verdict,
        new=after.verdict,
        old_difference=_difference(before, sign),
        new_difference=_difference(after, sign),
        flipped=before.verdict != after.verdict,
        reversed=OPPOSITE.get(before.verdict) == after.verdict,
        old_unjudged=whys[0],
        new_unjudged=whys[1],
    )


def _difference(found: Comparison, sign: float) -> EstimatePart:
    low, high = sorted((sign * found.difference.low, sign * found.difference.high))
    return EstimatePart(value=number(sign * found.difference.mean), low=number(low), high=number(high))


def _score(name: str, measure: str, old: Column, new: Column) -> ScorePart:
    sides = [column.values[name] for column in (old, new)]
    counts = [int(np.isfinite(values).sum()) for values in sides]
    means = [number(float(np.nanmean(values))) if count else None for values, count in zip(sides, counts, strict=True)]
    return ScorePart(
        system=name, measure=measure, old=means[0], new=means[1], old_queries=counts[0], new_queries=counts[1]
    )
