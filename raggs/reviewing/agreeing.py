"""How far people agree: with each other, and with themselves where a passage came twice. Aggregates, no single word."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np

from raggs.agreement import Agreement, cohen_kappa, count_pairs, krippendorff_alpha
from raggs.frozen import Frozen
from raggs.reviewing.pool import Pool
from raggs.reviews.folding import Reviewed, fold, standing
from raggs.reviews.models import GradeReview, Key, Review

SEED = 0


class Figure(Frozen):
    """A coefficient with its interval of 95%; null where it is not defined."""

    value: float | None
    low: float | None
    high: float | None
    cases: int


class Standing(Frozen):
    """One reviewer.

    Attributes:
        graded, unsure: words that hold, with a grade and without.
        mean: of the grades.
        lenient: mean of the grades less those of others on the same passages; null where nobody else spoke.
        again, same: passages that came twice, and those of them with the same grade.
        drift: mean of the second grades less the first; null where none came twice.
    """

    who: str
    graded: int
    unsure: int
    mean: float | None
    lenient: float | None
    again: int
    same: int
    drift: float | None


class Pair(Frozen):
    """Two reviewers: Cohen's kappa with quadratic weights, and the table of their grades on the same passages."""

    one: str
    other: str
    kappa: Figure
    table: tuple[tuple[int, ...], ...]


class Agreed(Frozen):
    """All of it.

    Attributes:
        alpha: Krippendorff's, ordinal, over everybody.
        stale: words on passages, or for questions, whose text is another one now; they count nowhere.
    """

    alpha: Figure
    stale: int
    people: tuple[Standing, ...]
    pairs: tuple[Pair, ...]


def agreed(pool: Pool, lines: Sequence[Review]) -> Agreed:
    """How far people agree on the passages of a pool."""
    held = fold(lines)
    names = sorted({who for key, words in held.grades.items() if key in pool.numbers for who in words})
    grades = {who: _grades(pool, held, who) for who in names}
    keys = [key for key in held.grades if key in pool.numbers]
    ratings = np.array([[grades[who].get(key, math.nan) for key in keys] for who in names], np.float64)
    alpha = None if len(names) < 2 else krippendorff_alpha(ratings, seed=SEED)
    holding = [*standing(lines)]
    return Agreed(
        alpha=_figure(alpha),
        stale=len(held.stale({(item.qid, item.doc_id): item.key for item in pool.items})),
        people=tuple(_standing(pool, held, holding, who, grades) for who in names),
        pairs=tuple(_pairs(grades)),
    )


def _grades(pool: Pool, held: Reviewed, who: str) -> dict[Key, int]:
    words = ((key, words[who]) for key, words in held.grades.items() if who in words and key in pool.numbers)
    said = ((key, held.blind.get(key, {}).get(who, word)) for key, word in words)
    return {key: word.grade for key, word in said if word.grade is not None}


def _standing(
    pool: Pool, held: Reviewed, holding: Sequence[Review], who: str, grades: dict[str, dict[Key, int]]
) -> Standing:
    mine = grades[who]
    spoken = sum(who in words for key, words in held.grades.items() if key in pool.numbers)
    apart = [mine[key] - grades[other][key] for other in grades if other != who for key in mine.keys() & grades[other]]
    twice = [*_repeated(pool, holding, who)]
    return Standing(
        who=who,
        graded=len(mine),
        unsure=spoken - len(mine),
        mean=_mean([*mine.values()]),
        lenient=_mean(apart),
        again=len(twice),
        same=sum(one == other for one, other in twice),
        drift=_mean([other - one for one, other in twice]),
    )


def _repeated(pool: Pool, lines: Sequence[Review], who: str) -> Iterator[tuple[int, int]]:
    """First and next grade of one's passages that came again; what was taken back or replaced is none."""
    said: dict[Key, list[int]] = {}
    for line in lines:
        if not isinstance(line, GradeReview) or line.who != who or line.settles or not line.blind:
            continue
        if line.grade is not None and line.key in pool.numbers:
            said.setdefault(line.key, []).append(line.grade)
    for row in said.values():
        yield from pairwise(row)


def _pairs(grades: dict[str, dict[Key, int]]) -> Iterator[Pair]:
    for one, other in combinations(grades, 2):
        both = sorted(grades[one].keys() & grades[other].keys())
        first, second = ([float(grades[who][key]) for key in both] for who in (one, other))
        if both:
            table = count_pairs(Counter(zip(first, second, strict=True))).counts
            yield Pair(
                one=one,
                other=other,
                kappa=_figure(cohen_kappa(first, second, weights="quadratic", seed=SEED)),
                table=tuple(map(tuple, table)),
            )


def _figure(found: Agreement | None) -> Figure:
    if found is None:
        return Figure(value=None, low=None, high=None, cases=0)
    value, low, high = (None if math.isnan(each) else round(each, 3) for each in (found.value, found.low, found.high))
    return Figure(value=value, low=low, high=high, cases=found.units)


def _mean(values: Sequence[int]) -> float | None:
    return round(sum(values) / len(values), 2) if values else None
