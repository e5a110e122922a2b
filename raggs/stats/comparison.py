"""Comparison of a system with a baseline: interval, tests and verdict.

A verdict "better" or "worse" needs two conditions: the interval of the mean difference excludes 0, and the p value,
corrected over all systems compared, is below alpha. If not, "equivalent" means that the interval is within a margin of
negligible differences, and that there are enough queries for a significant result. In other cases, the verdict is
"inconclusive". It comes with the number of queries that would make the observed difference significant with a
probability of 80% if it were the true difference. If unjudged passages could reverse one of the first three verdicts
(`could_reverse`), the verdict is "unjudged": inconclusive until these passages are judged.

Tests use paired differences, one per query. Effect size, power and Holm's correction complete the tests. The
randomisation test comes first. It assumes only that, under the null hypothesis, each of the two scores could have come
from either system (Smucker, Allan and Carterette, "A comparison of statistical significance tests for information
retrieval evaluation", CIKM 2007). Student's t-test and Wilcoxon's test are provided because readers expect them.

`wilcoxon_test` enumerates all sign flips for up to 20 differences, and calls `signed_rank_test` for more.
`signed_rank_test` returns the same p as `scipy.stats.wilcoxon` (tested).

`contrasts` compares two groups of questions: do questions with a property score differently from the others? Many
groupings are tested on the same values, so p values are corrected over them (Holm). A difference counts as significant
only if its corrected p is below alpha and its interval excludes 0. The test permutes the values over the questions
(Fisher 1935; Phipson and Smyth 2010 for drawn permutations). It assumes only that, under the null hypothesis, each
question could have had any of the values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Flags, Floats
from raggs.base.hashing import derive_seed, generator
from raggs.stats.distributions import noncentral_t_tail, normal_quantile, student_cdf, student_quantile
from raggs.stats.intervals import BOOTSTRAP_DRAWS, Interval, Method, bootstrap_means, resampled_means

# up to this number of differences without ties, p is exact; for more, it comes from the normal approximation
ALL_SUMS = 50


def mean_ranks(values: Floats) -> tuple[Floats, Floats]:
    """Return the rank of each value, shape (n,), and how often each distinct value occurs.

    Ranks start at 1, and equal values share their mean rank.
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place], count.astype(np.float64)


def signed_rank_test(differences: Floats) -> float:
    """Return the two-sided p of Wilcoxon's signed-rank test.

    Exact for up to 50 differences without ties; otherwise by the normal approximation, corrected for ties.

    Args:
        differences: shape (n,), at least one, none equal to 0.

    Source: Wilcoxon, "Individual comparisons by ranking methods", 1945.
    """
    ranks, ties = mean_ranks(np.abs(differences))
    positive = float(ranks[differences > 0].sum())
    if differences.size <= ALL_SUMS and (ties == 1).all():
        return _signedranks_exact(positive, differences.size)
    return _normal(positive, differences.size, ties)


def _signedranks_exact(positive: float, n: int) -> float:
    """Return the exact two-sided p for a sum of positive ranks.

    Under the null hypothesis, each of the ranks 1 to n is positive with probability 0.5.
    """
    chances = np.ones(1)
    for rank in range(1, n + 1):
        more = np.zeros(chances.size + rank)
        more[: chances.size] = chances * 0.5
        more[-chances.size :] += chances * 0.5
        chances = more
    lesser = int(min(positive, n * (n + 1) // 2 - positive))
    return min(1.0, 2 * float(chances[: lesser + 1].sum()))


def _normal(positive: float, n: int, ties: Floats) -> float:
    variance = (n * (n + 1.0) * (2.0 * n + 1.0) - (ties**3 - ties).sum() / 2) / 24
    z = (positive - n * (n + 1.0) * 0.25) / math.sqrt(variance)
    return math.erfc(abs(z) / math.sqrt(2))


EXACT = 20  # up to this number of non-zero differences, all sign flips are enumerated: at most a million sums
FLIPS = 10_000  # number of drawn sign flips if there are more differences; the smallest possible p is then about 1e-4
GROUP = 12  # number of differences whose sign flips share a table, so that one random number gives twelve signs
# relative to the sum of absolute differences: sums whose distance is below this count as equal
RELATIVE_TOLERANCE = 1e-10
POWER = 0.8
NO_EFFECT = 1e-6  # smaller effects are 0 up to rounding, and would need more than 10^12 queries
NORMAL_FROM_QUERIES = 1_000_000  # from this number of queries on, the normal distribution replaces Student's t


def randomisation_test(differences: Floats, *, seed: int, draws: int = FLIPS, exact: int = EXACT) -> float:
    """Return the two-sided p of the mean difference under random flips of the signs.

    With up to `exact` non-zero differences, all 2^n flips are enumerated. With more, flips are drawn at random. Then p
    is (b + 1) / (draws + 1), where b counts the flips with a mean at least as extreme (Phipson and Smyth, 2010). Zeros
    do not affect p and are dropped. The result is 1 if all differences are 0, and NaN if there are no differences.

    Args:
        differences: shape (queries,), finite.
        seed: random seed.
        draws: number of drawn flips if not all flips are enumerated; at least 1.
        exact: number of non-zero differences up to which all flips are enumerated; the memory is 16 bytes times
            2^exact.
    """
    if not differences.size:
        return math.nan
    nonzero = differences[differences != 0]
    if nonzero.size <= exact:
        return _exact(nonzero)
    rng, sums = generator(seed, "randomisation", nonzero.size), np.zeros(draws)
    for start in range(0, nonzero.size, GROUP):
        table = _sign_sums(nonzero[start : start + GROUP])
        sums += table[rng.integers(table.size, size=draws)]
    return float((_extreme(sums, nonzero).sum() + 1) / (draws + 1))


def _exact(values: Floats) -> float:
    return float(_extreme(_sign_sums(values), values).mean())


def _extreme(sums: Floats, values: Floats) -> Flags:
    """Return which sums are at least as far from 0 as the sum of `values`."""
    return np.asarray(np.abs(sums) >= abs(values.sum()) - RELATIVE_TOLERANCE * np.abs(values).sum())


def _sign_sums(values: Floats) -> Floats:
    """Return the sums of `values` under all 2^n choices of signs."""
    sums, size = np.zeros(2**values.size), 1
    for value in values:
        np.subtract(sums[:size], value, out=sums[size : 2 * size])
        sums[:size] += value
        size *= 2
    return sums


def t_test(differences: Floats) -> float:
    """Return the two-sided p of Student's paired t-test.

    The result is 1 if all differences are 0. It is NaN if all are equal but not 0, or if there are no differences.
    """
    if not differences.any():
        return 1.0 if differences.size else math.nan
    if _constant(differences):
        return math.nan
    count, mean = differences.size, differences.mean()
    variance = ((differences - mean) ** 2).mean() * (count / (count - 1))
    return 2 * student_cdf(count - 1, -abs(float(mean / np.sqrt(variance / count))))


def wilcoxon_test(differences: Floats) -> float:
    """Return the two-sided p of Wilcoxon's signed-rank test on the non-zero differences.

    The result is 1 if all differences are 0, and NaN if there are no differences. With up to 20 non-zero differences,
    the test is exact even with ties: all sign flips of the ranks are enumerated.
    """
    nonzero = differences[differences != 0]
    if not nonzero.size:
        return 1.0 if differences.size else math.nan
    # Equal differences between different scores may vary by rounding, but must share a rank.
    rounded = np.round(nonzero / np.abs(nonzero).max(), 12)
    if nonzero.size <= EXACT:
        return _exact(np.sign(nonzero) * mean_ranks(np.abs(rounded))[0])
    return signed_rank_test(rounded)


TESTS: dict[str, Callable[[Floats, int], float]] = {
    "randomisation": lambda differences, seed: randomisation_test(differences, seed=seed),
    "t": lambda differences, _: t_test(differences),
    "wilcoxon": lambda differences, _: wilcoxon_test(differences),
}


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return Holm's corrected p values in the given order (Holm, 1979).

    NaN (an undefined test) stays NaN, but counts in the number of tests.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")  # NaN is sorted last
    corrected = np.empty(p.size)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1)
    return tuple(corrected.tolist())


def effect_size(differences: Floats) -> float:
    """Return Cohen's d_z: the mean difference in standard deviations of the differences.

    The result is 0 if all differences are 0, infinite if all are equal but not 0, and NaN for fewer than two
    differences.
    """
    if differences.size < 2:
        return math.nan
    if not differences.any():
        return 0.0
    if _constant(differences):
        return math.copysign(math.inf, differences[0])
    return float(differences.mean() / differences.std(ddof=1))


def _constant(differences: Floats) -> bool:
    return bool(np.ptp(differences) <= RELATIVE_TOLERANCE * np.abs(differences).max())


def least_queries(alpha: float) -> int:
    """Return the fewest queries with which flips of the signs can reach p < `alpha`: 2 / 2^n < alpha (6 queries for
    0.05).
    """
    return math.floor(1 - math.log2(alpha)) + 1


def queries_needed(effect: float, *, alpha: float = 0.05, power: float = POWER) -> int | None:
    """Return the fewest queries with which a paired t-test detects a true `effect` with probability `power`. From a
    million queries on, the normal distribution replaces Student's t.

    Args:
        effect: Cohen's d_z, positive or negative.
        alpha: two-sided level, strictly between 0 and 1.
        power: strictly between 0 and 1, above `alpha`.

    Returns:
        At least `least_queries(alpha)`. None if the absolute effect is below 1e-6 or NaN, because no realistic number
        is enough.
    """
    if not abs(effect) >= NO_EFFECT:
        return None
    # Student's t has heavier tails, so the normal approximation is a lower bound, from which the search starts.
    normal = math.ceil(((normal_quantile(1 - alpha / 2) + normal_quantile(power)) / abs(effect)) ** 2)
    count = max(normal, least_queries(alpha))
    while count < NORMAL_FROM_QUERIES and _power(count, abs(effect), alpha) < power:
        count += 1
    return count


def _power(count: int, effect: float, alpha: float) -> float:
    """Return the power of a paired t-test with `count` queries for an `effect` > 0, by the noncentral t distribution.

    The probability of a significant result in the wrong direction is ignored. At a power of 80%, it is below 1e-6 for
    alpha up to 0.05, and below 2e-5 for alpha 0.1.
    """
    if math.isinf(effect):
        return 1.0
    least = -student_quantile(count - 1, alpha / 2)
    return noncentral_t_tail(count - 1, effect * math.sqrt(count), least)


Verdict = Literal["better", "worse", "equivalent", "inconclusive", "unjudged"]

MARGIN = 0.01
SCORE_TOLERANCE = 1e-12  # scores whose distance is below this differ only by rounding


class DifferenceBounds(NamedTuple):
    """Smallest and largest possible difference of each query, shape (queries,); NaN if no labels make it defined."""

    low: Floats
    high: Floats

    def __neg__(self) -> DifferenceBounds:
        """Return the bounds of the negated difference."""
        return DifferenceBounds(-self.high, -self.low)


def could_reverse(says: Callable[[Floats], object], differences: Floats, ends: DifferenceBounds | None) -> bool:
    """Return whether labels of unjudged passages could change a statement about differences.

    The statement is evaluated again with every difference at its smallest, and with every difference at its largest. A
    query whose difference is undefined now, but could become defined, is included only if it pulls in the evaluated
    direction: below or at 0 for the smallest, above or at 0 for the largest. A difference without a finite bound can
    change every statement.

    Args:
        says: the statement, as a function of the differences per query (NaN if undefined).
        differences: differences with the current labels.
        ends: range of each difference; None if no passage is unjudged.
    """
    if ends is None:
        return False
    stands = says(differences)
    unknown = np.isnan(differences)
    rows = (
        np.where(unknown & ~(ends.low <= 0), np.nan, ends.low),
        np.where(unknown & ~(ends.high >= 0), np.nan, ends.high),
    )
    return any(np.isinf(row).any() or says(row) != stands for row in rows if not _same_values(row, differences))


def could_cross(values: Floats, limit: float, ends: DifferenceBounds | None) -> bool:
    """Return whether labels of unjudged passages could move a mean across a limit; see `could_reverse`.

    Args:
        values: values by query, NaN if undefined; higher is better.
        limit: the limit that the mean must reach.
        ends: smallest and largest value of each query that unjudged passages allow; None if no passage is unjudged.
    """

    def below(row: Floats) -> bool | None:
        known = row[~np.isnan(row)]
        return bool(known.mean() < -SCORE_TOLERANCE) if len(known) else None

    return ends is not None and could_reverse(
        below, values - limit, DifferenceBounds(ends.low - limit, ends.high - limit)
    )


def _same_values(row: Floats, differences: Floats) -> bool:
    return bool(np.isclose(row, differences, rtol=SCORE_TOLERANCE, atol=SCORE_TOLERANCE, equal_nan=True).all())


@dataclass(frozen=True)
class Comparison:
    """Comparison of a system with a baseline on one measure, over the queries for which both have a value.

    Attributes:
        difference: mean of system minus baseline, its interval with confidence 1 - alpha, and the numbers of valid and
            missing pairs.
        p_values: two-sided p by test; NaN if the test is undefined.
        corrected: p values after Holm's correction over all systems compared.
        effect_size: Cohen's d_z; infinite if all differences are equal but not 0, NaN for fewer than two pairs.
        wins, ties, losses: number of queries on which the system is better than, equal to or worse than the baseline.
        verdict: verdict for the system, not the baseline.
        negligible: whether the interval is within the margin; a significant difference may also be negligible.
        queries_needed: number of queries that would detect the observed difference with a power of 80%, at the level
            alpha divided by the number of systems. None for an absolute effect size below 1e-6 or NaN, or if it was not
            requested. If the verdict is "inconclusive", this number exceeds the number of queries compared.
        stands: the verdict on the values as given, with unjudged passages ignored. It differs from `verdict` only if
            that is "unjudged".
    """

    difference: Interval
    p_values: dict[str, float]
    corrected: dict[str, float]
    effect_size: float
    wins: int
    ties: int
    losses: int
    verdict: Verdict
    negligible: bool
    queries_needed: int | None
    stands: Verdict


def outcomes(system: npt.ArrayLike, baseline: npt.ArrayLike) -> Floats:
    """Return, for each query, 1 if the system is better, 0 if equal, -1 if worse; NaN if a value is missing.

    Raises:
        ValueError: the shapes differ or are not one-dimensional.
    """
    return np.sign(_differences(system, baseline))


def compare(
    system: npt.ArrayLike,
    baseline: npt.ArrayLike,
    *,
    seed: int,
    alpha: float = 0.05,
    margin: float = MARGIN,
    tests: Sequence[str] = tuple(TESTS),
    method: Method = "bca",
    draws: int = BOOTSTRAP_DRAWS,
    ends: DifferenceBounds | None = None,
) -> Comparison:
    """Compare one system with a baseline; as `compare_many`, but p values need no correction."""
    several = compare_many(
        baseline,
        {"": system},
        seed=seed,
        alpha=alpha,
        margin=margin,
        tests=tests,
        method=method,
        draws=draws,
        ends=None if ends is None else {"": ends},
    )
    return several[""]


def compare_many(
    baseline: npt.ArrayLike,
    systems: Mapping[str, npt.ArrayLike],
    *,
    seed: int,
    alpha: float = 0.05,
    margin: float = MARGIN,
    tests: Sequence[str] = tuple(TESTS),
    method: Method = "bca",
    draws: int = BOOTSTRAP_DRAWS,
    ends: Mapping[str, DifferenceBounds] | None = None,
    plan: bool = True,
) -> dict[str, Comparison]:
    """Compare each system with one baseline, with Holm's correction over the systems.

    Args:
        baseline: shape (queries,); NaN if the measure is undefined.
        systems: values by system name, for the same queries in the same order.
        seed: random seed; the resamples depend only on the seed and the number of pairs.
        alpha: level of the tests; intervals have the confidence 1 - alpha.
        margin: largest negligible mean difference, in the unit of the measure; 0 or more.
        tests: names in `TESTS`; the first one decides the verdict.
        method, draws: parameters of the bootstrap, see `bootstrap_means`.
        ends: by system, the range of differences from the baseline that unjudged passages allow; a missing system has
            no unjudged passages.
        plan: whether to compute `queries_needed`; if not, it is None.

    Returns:
        Comparisons by system name, in the given order. "better" means that the system is better than the baseline.

    Raises:
        ValueError: lengths differ, a value is infinite, no test or an unknown test is given, or alpha or margin is out
            of range.
    """
    if not tests or any(name not in TESTS for name in tests):
        raise ValueError(f"tests must be one or more of {', '.join(TESTS)}, got {', '.join(tests) or 'none'}")
    if not (0 < alpha < 1 and margin >= 0):
        raise ValueError(f"0 < alpha < 1 and margin >= 0 do not hold for alpha={alpha}, margin={margin}")
    if not systems:
        return {}
    rows = np.stack([_differences(values, baseline) for values in systems.values()])
    intervals = bootstrap_means(rows, method=method, confidence=1 - alpha, draws=draws, seed=seed)
    pairs = [row[~np.isnan(row)] for row in rows]
    raw = {name: [TESTS[name](differences, seed) for differences in pairs] for name in tests}
    corrected = {name: holm(values) for name, values in raw.items()}

    def interval_of(row: Floats) -> Interval:
        return bootstrap_means(row[None, :], method=method, confidence=1 - alpha, draws=draws, seed=seed)[0]

    return {
        system: _comparison(
            pairs[place],
            intervals[place],
            {name: values[place] for name, values in raw.items()},
            {name: values[place] for name, values in corrected.items()},
            _VerdictRule(tests[0], alpha, margin, len(pairs), plan),
            partial(_reversible, interval_of, rows[place], (ends or {}).get(system), margin),
        )
        for place, system in enumerate(systems)
    }


@dataclass(frozen=True)
class _VerdictRule:
    test: str
    alpha: float
    margin: float
    systems: int
    plan: bool


def _differences(system: npt.ArrayLike, baseline: npt.ArrayLike) -> Floats:
    """Return system minus baseline; exactly 0 if they differ only by rounding."""
    ours, theirs = np.asarray(system, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    if ours.ndim != 1 or ours.shape != theirs.shape:
        raise ValueError(f"expected two arrays of values for the same queries, got shapes {ours.shape}, {theirs.shape}")
    if np.isinf(ours).any() or np.isinf(theirs).any():
        raise ValueError("a value is infinite; use NaN if a measure is undefined")
    return np.where(np.isclose(ours, theirs, rtol=SCORE_TOLERANCE, atol=SCORE_TOLERANCE), 0.0, ours - theirs)


def _comparison(
    differences: Floats,
    interval: Interval,
    p_values: dict[str, float],
    corrected: dict[str, float],
    rule: _VerdictRule,
    reversible: Callable[[Verdict], bool],
) -> Comparison:
    effect = effect_size(differences)
    negligible = _within_margin(interval, rule.margin)
    verdict = _verdict(interval, corrected[rule.test], negligible, rule.alpha)
    # Holm compares the smallest p with alpha / systems. A plan for that level is enough for every other p value.
    needed = queries_needed(effect, alpha=rule.alpha / rule.systems) if rule.plan else None
    if verdict == "inconclusive" and needed is not None:
        needed = max(needed, differences.size + 1)
    return Comparison(
        difference=interval,
        p_values=p_values,
        corrected=corrected,
        effect_size=effect,
        wins=int((differences > 0).sum()),
        ties=int((differences == 0).sum()),
        losses=int((differences < 0).sum()),
        verdict="unjudged" if reversible(verdict) else verdict,
        negligible=negligible,
        queries_needed=needed,
        stands=verdict,
    )


def _reversible(
    interval_of: Callable[[Floats], Interval],
    differences: Floats,
    ends: DifferenceBounds | None,
    margin: float,
    verdict: Verdict,
) -> bool:
    """Return whether unjudged passages could move a verdict's interval across 0, or out of the margin."""
    if verdict not in ("better", "worse", "equivalent"):
        return False

    def says(row: Floats) -> bool:
        found = interval_of(row)
        sides = {"better": found.low > 0, "worse": found.high < 0, "equivalent": _within_margin(found, margin)}
        return bool(sides[verdict])

    return could_reverse(says, differences, ends)


def _within_margin(interval: Interval, margin: float) -> bool:
    return bool(-margin <= interval.low and interval.high <= margin)


def _verdict(interval: Interval, p: float, negligible: bool, alpha: float) -> Verdict:
    if p < alpha and interval.low > 0:
        return "better"
    if p < alpha and interval.high < 0:
        return "worse"
    # A few equal differences have an interval of width 0, but this is not evidence of equivalence.
    return "equivalent" if negligible and interval.count >= least_queries(alpha) else "inconclusive"


PERMUTATIONS = 10_000
MAX_PERMUTED_VALUES = 2_000_000  # permuted values held at a time: 16 MB


@dataclass(frozen=True)
class Contrast:
    """Comparison of one group of questions with the others.

    Attributes:
        having, lacking: number of questions in the first group, and in the other.
        having_mean, lacking_mean: mean value of each group.
        difference, low, high: `having_mean` minus `lacking_mean`, with its interval (bootstrap within each group).
        effect, effect_low, effect_high: the difference divided by the pooled standard deviation (Cohen's d); NaN
            if all values within the groups are equal.
        p: two-sided p of the permutation test; 1 if all values are equal.
        corrected: p after Holm's correction over all groupings, times the `family` of `contrasts`; at most 1.
        clear: whether the difference is significant: the interval excludes 0, and the corrected p is low enough.
    """

    having: int
    lacking: int
    having_mean: float
    lacking_mean: float
    difference: float
    low: float
    high: float
    effect: float
    effect_low: float
    effect_high: float
    p: float
    corrected: float
    clear: bool


def contrasts(
    values: Floats,
    groups: Floats,
    *,
    seed: int,
    confidence: float = 0.95,
    draws: int = PERMUTATIONS,
    family: int = 1,
) -> tuple[Contrast, ...]:
    """Compare the two groups of each grouping of the questions, on the same values.

    Args:
        values: shape (questions,); NaN if a question has no value.
        groups: shape (groupings, questions): 1 for the first group, 0 for the other, NaN if unknown.
        seed: random seed.
        confidence: confidence level of the intervals; the tests use the level 1 - confidence.
        draws: number of permutations, at least 1.
        family: number of arrays of values that are analysed together; p is also corrected for this number.

    Returns:
        One contrast per grouping, in the given order.

    Raises:
        ValueError: the shapes differ, or one side of a grouping has fewer than two questions with a value.
    """
    if groups.ndim != 2 or groups.shape[1:] != values.shape:
        raise ValueError(f"groups need one column per question, got shapes {groups.shape} and {values.shape}")
    defined = np.isfinite(values)
    known, own = groups[:, defined], values[defined]
    sides = [(own[row == 1], own[row == 0]) for row in known]
    if any(min(map(len, pair)) < 2 for pair in sides):
        raise ValueError("each side of a grouping needs at least two questions with a value")
    p_values = permutation_tests(own, known, seed=seed, draws=draws).tolist()
    corrected = [min(1.0, family * p) for p in holm(p_values)]
    return tuple(
        _contrast(*pair, p, told, seed, confidence) for pair, p, told in zip(sides, p_values, corrected, strict=True)
    )


def permutation_tests(values: Floats, groups: Floats, *, seed: int, draws: int = PERMUTATIONS) -> Floats:
    """Return the two-sided p of the difference of means of each grouping, shape (groupings,).

    All groupings use the same permutations. The arguments are those of `contrasts`, but `values` must not contain NaN.
    """
    if not len(groups):
        return np.zeros(0)
    weights = np.stack([_weights(row == 1, row == 0) for row in groups])
    seen = np.abs(weights @ values)
    fuzz = RELATIVE_TOLERANCE * np.abs(weights) @ np.abs(values) + np.finfo(float).tiny
    rng, extreme = generator(seed, "permutation", values.size), np.zeros(len(groups))
    step = max(1, MAX_PERMUTED_VALUES // values.size)
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        shuffled = rng.permuted(np.broadcast_to(values, (rows, values.size)), axis=1)
        extreme += (np.abs(shuffled @ weights.T) >= seen - fuzz).sum(axis=0)
    return np.asarray((extreme + 1) / (draws + 1))


def _weights(having: Flags, lacking: Flags) -> Floats:
    """Return the weight of each value in the difference of means."""
    found: Floats = having / having.sum() - lacking / lacking.sum()
    return found


def _contrast(having: Floats, lacking: Floats, p: float, corrected: float, seed: int, confidence: float) -> Contrast:
    ours, our_spreads = _resampled_moments(having, seed, "in")
    theirs, their_spreads = _resampled_moments(lacking, seed, "out")
    sizes = having.size, lacking.size
    moved, scales = ours - theirs, _pooled_deviation(our_spreads, their_spreads, *sizes)
    low, high = _percentile_interval(moved, confidence)
    difference, scale = float(having.mean() - lacking.mean()), _pooled_deviation(having.var(), lacking.var(), *sizes)
    least = RELATIVE_TOLERANCE * max(np.abs(having).max(), np.abs(lacking).max())
    varied, sure = bool(scale > least), scales > least
    effect_low, effect_high = (
        _percentile_interval(moved[sure] / scales[sure], confidence) if varied else (math.nan, math.nan)
    )
    return Contrast(
        having=having.size,
        lacking=lacking.size,
        having_mean=float(having.mean()),
        lacking_mean=float(lacking.mean()),
        difference=difference,
        low=low,
        high=high,
        effect=difference / float(scale) if varied else math.nan,
        effect_low=effect_low,
        effect_high=effect_high,
        p=p,
        corrected=corrected,
        clear=corrected < 1 - confidence and (low > 0 or high < 0),
    )


def _percentile_interval(drawn: Floats, confidence: float) -> tuple[float, float]:
    if not drawn.size:
        return math.nan, math.nan
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail]).tolist()
    return float(low), float(high)


def _resampled_moments(side: Floats, seed: int, name: str) -> tuple[Floats, Floats]:
    """Return the means and variances of resamples of one side.

    Each side has a separate seed, because groups of equal size would otherwise share their resamples.
    """
    means, squares = resampled_means([side, side**2], BOOTSTRAP_DRAWS, derive_seed(seed, "contrast", name))
    return means, np.maximum(squares - means**2, 0.0)


def _pooled_deviation(ours: Floats | float, theirs: Floats | float, having: int, lacking: int) -> Floats:
    """Return the standard deviation within both groups, from their variances (sums of squares divided by n)."""
    return np.asarray(np.sqrt((having * np.asarray(ours) + lacking * np.asarray(theirs)) / (having + lacking - 2)))
