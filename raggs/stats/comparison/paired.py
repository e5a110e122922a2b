"""Tests of paired differences, one a query, and what surrounds them: effect size, power, and Holm's correction.

The randomisation test leads: it supposes nothing but that, under the null hypothesis, either system could have had
either score (Smucker, Allan and Carterette, "A comparison of statistical significance tests for information
retrieval evaluation", CIKM 2007). The others are there because readers ask for them.

Wilcoxon's signed-rank test, for 21 differences or more: fewer flip their signs (`stats.paired`).

The same p as `scipy.stats.wilcoxon`, which the tests hold it to. It is here because importing
`scipy.stats` takes half a second, and neither the ranks nor their distribution need it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from raggs.base.arrays import Flags, Floats
from raggs.base.light import distributions
from raggs.base.seeds import generator

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
    return float(2 * distributions().ndtr(-abs(z)))


EXACT = 20  # differences up to which all sign flips are tried: a million sums
FLIPS = 10_000  # drawn beyond; the smallest p is then about 1e-4
GROUP = 12  # differences whose sign flips are tabulated together, to draw twelve signs at once
FUZZ = 1e-10  # relative to the sum of all differences: sums closer than that are equal
POWER = 0.8
NO_EFFECT = 1e-6  # what rounding leaves of a mean of 0; it would take millions of millions of queries
MANY = 1_000_000  # queries from which the normal distribution serves as Student's


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
    return np.asarray(np.abs(sums) >= abs(values.sum()) - FUZZ * np.abs(values).sum())


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
    return float(2 * distributions().stdtr(count - 1, -abs(mean / np.sqrt(variance / count))))


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
    return bool(np.ptp(differences) <= FUZZ * np.abs(differences).max())


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
    ndtri = distributions().ndtri
    # Student's tails are the heavier ones, so the normal approximation is where the search starts.
    normal = math.ceil((float(ndtri(1 - alpha / 2) + ndtri(power)) / abs(effect)) ** 2)
    count = max(normal, least_queries(alpha))
    while count < MANY and _power(count, abs(effect), alpha) < power:
        count += 1
    return count


def _power(count: int, effect: float, alpha: float) -> float:
    """The chance that a paired t-test over `count` queries finds `effect` > 0, its t being noncentral.

    Without the chance of finding the opposite: where the power is worth having, that is below one in a million.
    """
    if math.isinf(effect):
        return 1.0
    special = distributions()
    least = -special.stdtrit(count - 1, alpha / 2)
    return float(1 - special.nctdtr(count - 1, effect * math.sqrt(count), least))
