"""Is one system better than another? One verdict, and everything it rests on.

A verdict asks for two witnesses: an interval of the mean difference that leaves 0 out and, over all systems compared,
a corrected p below alpha. "tie" is a finding too: the interval lies within what nobody would care about. All else is
"unresolvable", with the number of queries that would settle it if the difference seen were the true one.

Where unjudged passages could move differences, a win, loss or tie stands only if they could not reverse it
(`could_reverse`); it is "unjudged" otherwise: inconclusive until they are judged.

Tests of paired differences, one a query, and what surrounds them: effect size, power, and Holm's correction.

The randomisation test leads: it supposes nothing but that, under the null hypothesis, either system could have had
either score (Smucker, Allan and Carterette, "A comparison of statistical significance tests for information
retrieval evaluation", CIKM 2007). The others are there because readers ask for them.

Wilcoxon's signed-rank test, for 21 differences or more: fewer flip their signs (`randomisation_test`).

The same p as `scipy.stats.wilcoxon`, which the tests hold it to. It is here because importing
`scipy.stats` takes half a second, and neither the ranks nor their distribution need it.

Two groups of questions: do those that have something in common score otherwise than the rest?

Many groupings of the same values are looked at together, so p values are corrected over them (Holm), and a grouping
counts as found only where its corrected p is below alpha and its interval leaves 0 out. The test permutes the values
over the questions (Fisher 1935; Phipson and Smyth 2010 for drawn permutations), which supposes nothing but that, under
the null hypothesis, each question could have had any of the values.
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
from raggs.stats.intervals import BOOTSTRAP_DRAWS, Interval, Method, bootstrap_means, resampled_means

ALL_SUMS = 50  # untied differences up to which the distribution of the rank sum is counted; beyond, it is normal


def mean_ranks(values: Floats) -> tuple[Floats, Floats]:
    """Shape (n,): the rank of each value from 1, equal ones sharing their mean; and how often each value is there."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place], count.astype(np.float64)


def signed_rank_test(differences: Floats) -> float:
    """Two-sided p: exact up to 50 differences without ties, otherwise of the normal distribution, ties corrected for.

    Args:
        differences: shape (n,), none 0; at least one.

    Source: Wilcoxon, "Individual comparisons by ranking methods", 1945.
    """
    ranks, ties = mean_ranks(np.abs(differences))
    positive = float(ranks[differences > 0].sum())
    if differences.size <= ALL_SUMS and (ties == 1).all():
        return _signedranks_exact(positive, differences.size)
    return _normal(positive, differences.size, ties)


def _signedranks_exact(positive: float, n: int) -> float:
    """Of the sum of the positive ranks, each of 1 to n being positive or not with the same chance."""
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


EXACT = 20  # differences up to which all sign flips are tried: a million sums
FLIPS = 10_000  # drawn beyond; the smallest p is then about 1e-4
GROUP = 12  # differences whose sign flips are tabulated together, to draw twelve signs at once
RELATIVE_TOLERANCE = 1e-10  # relative to the sum of all differences: sums closer than that are equal
POWER = 0.8
NO_EFFECT = 1e-6  # what rounding leaves of a mean of 0; it would take millions of millions of queries
NORMAL_FROM_QUERIES = 1_000_000  # queries from which the normal distribution serves as Student's


def randomisation_test(differences: Floats, *, seed: int, draws: int = FLIPS, exact: int = EXACT) -> float:
    """Two-sided p of the mean difference under random flips of the signs.

    Exact over all 2^n flips for up to `exact` non-zero differences; beyond, (b + 1) / (draws + 1), where b is the
    number of drawn flips with a mean at least as extreme (Phipson and Smyth, 2010). Zeros change nothing and are left
    out; 1 where nothing is left, NaN where nothing was given.

    Args:
        differences: shape (queries,), finite.
        seed: of the run.
        draws: flips drawn where not all are tried; at least 1.
        exact: non-zero differences up to which all flips are tried; memory is 16 bytes times 2^exact.
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
    """Which sums lie at least as far from 0 as that of `values`."""
    return np.asarray(np.abs(sums) >= abs(values.sum()) - RELATIVE_TOLERANCE * np.abs(values).sum())


def _sign_sums(values: Floats) -> Floats:
    """The sums of `values` under all 2^n choices of signs."""
    sums, size = np.zeros(2**values.size), 1
    for value in values:
        np.subtract(sums[:size], value, out=sums[size : 2 * size])
        sums[:size] += value
        size *= 2
    return sums


def t_test(differences: Floats) -> float:
    """Two-sided p of Student's paired t-test; 1 where all differences are 0, NaN where all are equal otherwise."""
    if not differences.any():
        return 1.0 if differences.size else math.nan
    if _constant(differences):
        return math.nan
    count, mean = differences.size, differences.mean()
    variance = ((differences - mean) ** 2).mean() * (count / (count - 1))
    from scipy.special import stdtr  # late: scipy takes longer to import than most commands take

    return float(2 * stdtr(count - 1, -abs(mean / np.sqrt(variance / count))))


def wilcoxon_test(differences: Floats) -> float:
    """Two-sided p of Wilcoxon's signed-rank test on the non-zero differences; 1 where there is none.

    Up to 20 of them it is exact, ties or not: the sign flips of the ranks. (scipy takes most of a second for ties.)
    """
    nonzero = differences[differences != 0]
    if not nonzero.size:
        return 1.0 if differences.size else math.nan
    # Equal differences must share their rank, although they were computed from different scores.
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
    """Holm's corrected p-values, in the order given (Holm, 1979). A NaN stays NaN and counts as one of the tests."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")  # NaN comes last
    corrected = np.empty(p.size)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1)
    return tuple(corrected.tolist())


def effect_size(differences: Floats) -> float:
    """Cohen's d_z: the mean difference in standard deviations of the differences.

    0 where all are 0, infinite where all are equal otherwise, NaN below two differences.
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
    """The fewest queries with which sign flips can reach p < `alpha` at all: 2 / 2^n < alpha. 6 for 0.05."""
    return math.floor(1 - math.log2(alpha)) + 1


def queries_needed(effect: float, *, alpha: float = 0.05, power: float = POWER) -> int | None:
    """The fewest queries with which a paired t-test finds a true `effect` with probability `power`.

    Args:
        effect: Cohen's d_z, of either sign.
        alpha: two-sided level, inside 0..1.
        power: inside 0..1, above `alpha`.

    Returns:
        At least `least_queries(alpha)`; None where the effect is NaN or below 1e-6: no number would do.
    """
    if not abs(effect) >= NO_EFFECT:
        return None
    from scipy.special import ndtri  # late: scipy takes longer to import than most commands take

    # Student's tails are the heavier ones, so the normal approximation is where the search starts.
    normal = math.ceil((float(ndtri(1 - alpha / 2) + ndtri(power)) / abs(effect)) ** 2)
    count = max(normal, least_queries(alpha))
    while count < NORMAL_FROM_QUERIES and _power(count, abs(effect), alpha) < power:
        count += 1
    return count


def _power(count: int, effect: float, alpha: float) -> float:
    """The chance that a paired t-test over `count` queries finds `effect` > 0, its t being noncentral.

    Without the chance of finding the opposite: where the power is worth having, that is below one in a million.
    """
    if math.isinf(effect):
        return 1.0
    from scipy.special import nctdtr, stdtrit  # late: scipy takes longer to import than most commands take

    least = -stdtrit(count - 1, alpha / 2)
    return float(1 - nctdtr(count - 1, effect * math.sqrt(count), least))


Verdict = Literal["win", "loss", "tie", "unresolvable", "unjudged"]

MARGIN = 0.01
SCORE_TOLERANCE = 1e-12  # scores closer than that differ by rounding only


class DifferenceBounds(NamedTuple):
    """The least and the most that each query's difference can be, shape (queries,); NaN where it is never defined."""

    low: Floats
    high: Floats

    def __neg__(self) -> DifferenceBounds:
        """Of the difference the other way round."""
        return DifferenceBounds(-self.high, -self.low)


def could_reverse(says: Callable[[Floats], object], differences: Floats, ends: DifferenceBounds | None) -> bool:
    """Whether unjudged passages could change what is said of differences: the one rule of all verdicts and gates.

    It is asked again with every difference at its least, and at its most. A query on which the difference is not
    defined, and could be, counts where that is less favourable.

    Args:
        says: what is said of differences by query, NaN where not defined.
        differences: as labels stand.
        ends: None where no passage is unjudged.
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
    """Whether unjudged passages could move the mean of values across a limit: the same rule for a single system.

    Args:
        values: by query, NaN where not defined; more is better.
        limit: that the mean must reach.
        ends: how far unjudged passages could move each value; None where there are none.
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
    """A system against a baseline on one measure, over the queries where both have a value.

    Attributes:
        difference: mean of system minus baseline with its interval at 1 - alpha, valid and missing pairs.
        p_values: two-sided, by test; NaN where a test is undefined.
        corrected: the same after Holm's correction over all systems compared.
        effect_size: Cohen's d_z; infinite where all differences are equal, NaN below two pairs.
        wins, ties, losses: queries on which the system is better, equal, worse.
        verdict: of the system.
        negligible: the interval lies within the margin, whatever the verdict: a win may be too small to matter.
        queries_needed: how many queries would resolve the observed difference with a power of 80%; None where there
            is no difference to resolve. More than were compared where the verdict is "unresolvable".
        stands: the verdict as labels stand, with unjudged passages as not relevant; differs where `verdict` is
            "unjudged".
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
    """By query: 1 where the system is better, 0 where equal, -1 where worse, NaN where one of both has no value.

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
    """One system against a baseline: `compare_many` without a correction. Arguments and errors as there."""
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
    """Each system against one baseline, with Holm's correction over the systems.

    Args:
        baseline: shape (queries,); NaN where the measure is undefined.
        systems: by name, values of the same queries in the same order.
        seed: of the run; draws depend on nothing else but the number of pairs.
        alpha: level of the tests; the intervals are at 1 - alpha.
        margin: a mean difference within -margin..margin is none, in the unit of the measure; 0 or more.
        tests: names in `TESTS`; the first one decides.
        method, draws: of the bootstrap, see `bootstrap_means`.
        ends: by system, how far unjudged passages could move the differences from the baseline; a system that is not
            named has none.
        plan: whether to compute `queries_needed`, which imports scipy; else it is None.

    Returns:
        By name, in the order given; a win means that the system is better than the baseline.

    Raises:
        ValueError: lengths differ, a value is infinite, an unknown or no test, alpha or margin out of range.
    """
    if not tests or any(name not in TESTS for name in tests):
        raise ValueError(f"tests are one or more of {', '.join(TESTS)}, got {', '.join(tests) or 'none'}")
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
    """System minus baseline; exactly 0 where they differ by rounding only."""
    ours, theirs = np.asarray(system, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    if ours.ndim != 1 or ours.shape != theirs.shape:
        raise ValueError(f"paired values of the same queries are needed, got the shapes {ours.shape}, {theirs.shape}")
    if np.isinf(ours).any() or np.isinf(theirs).any():
        raise ValueError("a value is infinite; use NaN where a measure is undefined")
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
    # Holm asks the smallest p for alpha / systems: whoever plans for that is safe at any place.
    needed = queries_needed(effect, alpha=rule.alpha / rule.systems) if rule.plan else None
    if verdict == "unresolvable" and needed is not None:
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
    """Whether unjudged passages could take a verdict's interval away from its side of 0, or out of the margin."""
    if verdict not in ("win", "loss", "tie"):
        return False

    def says(row: Floats) -> bool:
        found = interval_of(row)
        sides = {"win": found.low > 0, "loss": found.high < 0, "tie": _within_margin(found, margin)}
        return bool(sides[verdict])

    return could_reverse(says, differences, ends)


def _within_margin(interval: Interval, margin: float) -> bool:
    return bool(-margin <= interval.low and interval.high <= margin)


def _verdict(interval: Interval, p: float, negligible: bool, alpha: float) -> Verdict:
    if p < alpha and interval.low > 0:
        return "win"
    if p < alpha and interval.high < 0:
        return "loss"
    # A few equal differences make an interval of no width; that is no evidence yet.
    return "tie" if negligible and interval.count >= least_queries(alpha) else "unresolvable"


PERMUTATIONS = 10_000
MAX_PERMUTED_VALUES = 2_000_000  # of permuted values at a time: 16 MB


@dataclass(frozen=True)
class Contrast:
    """One group of questions against another.

    Attributes:
        having, lacking: how many questions are in the group, and in the other.
        having_mean, lacking_mean: of their values.
        difference, low, high: the first mean less the second with its interval (bootstrap within each group).
        effect, effect_low, effect_high: the same in standard deviations within the groups (Cohen's d, pooled); NaN
            where the values within the groups are all equal.
        p: two-sided, of the permutation test; 1 where all values are equal.
        corrected: the same after Holm's correction over all groupings.
        clear: whether both witnesses, interval and corrected p, tell the difference from chance.
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
    """Each grouping of the questions on the same values, in the order given.

    Args:
        values: shape (questions,); NaN where a question has none.
        groups: shape (groupings, questions): 1 in the group, 0 in the other, NaN where that is not known.
        seed: of the run.
        confidence: of intervals; 1 - confidence is the level of the tests.
        draws: permutations, at least 1.
        family: how many arrays of values are looked at together: p is corrected over all of them.

    Raises:
        ValueError: the shapes differ, or a grouping has fewer than two questions with a value on a side.
    """
    if groups.ndim != 2 or groups.shape[1:] != values.shape:
        raise ValueError(f"groups need a column a question: shapes {groups.shape} and {values.shape}")
    defined = np.isfinite(values)
    known, own = groups[:, defined], values[defined]
    sides = [(own[row == 1], own[row == 0]) for row in known]
    if any(min(map(len, pair)) < 2 for pair in sides):
        raise ValueError("a group needs two questions with a value on each side")
    p_values = permutation_tests(own, known, seed=seed, draws=draws).tolist()
    corrected = [min(1.0, family * p) for p in holm(p_values)]
    return tuple(
        _contrast(*pair, p, told, seed, confidence) for pair, p, told in zip(sides, p_values, corrected, strict=True)
    )


def permutation_tests(values: Floats, groups: Floats, *, seed: int, draws: int = PERMUTATIONS) -> Floats:
    """Two-sided p of the difference of means of each grouping, shape (groupings,): (b + 1) / (draws + 1).

    All groupings see the same permutations. Arguments as in `contrasts`, values without NaN.
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
    """What each value counts in the difference of means."""
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
    """Means and variances of resamples; a seed for each side, since groups of equal size would share their draws."""
    means, squares = resampled_means([side, side**2], BOOTSTRAP_DRAWS, derive_seed(seed, "contrast", name))
    return means, np.maximum(squares - means**2, 0.0)


def _pooled_deviation(ours: Floats | float, theirs: Floats | float, having: int, lacking: int) -> Floats:
    """The standard deviation within both groups, from their variances (sums divided by n)."""
    return np.asarray(np.sqrt((having * np.asarray(ours) + lacking * np.asarray(theirs)) / (having + lacking - 2)))
