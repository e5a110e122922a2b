"""Is one system better than another? One verdict, and everything it rests on.

A verdict asks for two witnesses: an interval of the mean difference that leaves 0 out and, over all systems compared,
a corrected p below alpha. "tie" is a finding too: the interval lies within what nobody would care about. All else is
"unresolvable", with the number of queries that would settle it if the difference seen were the true one.

Where unjudged passages could move differences, a win, loss or tie stands only if they could not reverse it
(`could_reverse`); it is "unjudged" otherwise: inconclusive until they are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Floats
from raggs.stats.comparison.intervals import DRAWS, Interval, Method, bootstrap_means
from raggs.stats.comparison.paired import TESTS, effect_size, holm, least_queries, queries_needed

Verdict = Literal["win", "loss", "tie", "unresolvable", "unjudged"]

MARGIN = 0.01
SAME = 1e-12  # scores closer than that differ by rounding only


class Ends(NamedTuple):
    """The least and the most that each query's difference can be, shape (queries,); NaN where it is never defined."""

    low: Floats
    high: Floats

    def __neg__(self) -> Ends:
        """Of the difference the other way round."""
        return Ends(-self.high, -self.low)


def could_reverse(says: Callable[[Floats], object], differences: Floats, ends: Ends | None) -> bool:
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
    return any(np.isinf(row).any() or says(row) != stands for row in rows if not _same(row, differences))


def could_cross(values: Floats, limit: float, ends: Ends | None) -> bool:
    """Whether unjudged passages could move the mean of values across a limit: the same rule for a single system.

    Args:
        values: by query, NaN where not defined; more is better.
        limit: that the mean must reach.
        ends: how far unjudged passages could move each value; None where there are none.
    """

    def below(row: Floats) -> bool | None:
        known = row[~np.isnan(row)]
        return bool(known.mean() < -SAME) if len(known) else None

    return ends is not None and could_reverse(below, values - limit, Ends(ends.low - limit, ends.high - limit))


def _same(row: Floats, differences: Floats) -> bool:
    return bool(np.isclose(row, differences, rtol=SAME, atol=SAME, equal_nan=True).all())


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
    draws: int = DRAWS,
    ends: Ends | None = None,
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
    draws: int = DRAWS,
    ends: Mapping[str, Ends] | None = None,
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
            _Rule(tests[0], alpha, margin, len(pairs)),
            partial(_reversible, interval_of, rows[place], (ends or {}).get(system), margin),
        )
        for place, system in enumerate(systems)
    }


@dataclass(frozen=True)
class _Rule:
    test: str
    alpha: float
    margin: float
    systems: int


def _differences(system: npt.ArrayLike, baseline: npt.ArrayLike) -> Floats:
    """System minus baseline; exactly 0 where they differ by rounding only."""
    ours, theirs = np.asarray(system, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    if ours.ndim != 1 or ours.shape != theirs.shape:
        raise ValueError(f"paired values of the same queries are needed, got the shapes {ours.shape}, {theirs.shape}")
    if np.isinf(ours).any() or np.isinf(theirs).any():
        raise ValueError("a value is infinite; use NaN where a measure is undefined")
    return np.where(np.isclose(ours, theirs, rtol=SAME, atol=SAME), 0.0, ours - theirs)


def _comparison(
    differences: Floats,
    interval: Interval,
    p_values: dict[str, float],
    corrected: dict[str, float],
    rule: _Rule,
    reversible: Callable[[Verdict], bool],
) -> Comparison:
    effect = effect_size(differences)
    negligible = _within(interval, rule.margin)
    verdict = _verdict(interval, corrected[rule.test], negligible, rule.alpha)
    # Holm asks the smallest p for alpha / systems: whoever plans for that is safe at any place.
    needed = queries_needed(effect, alpha=rule.alpha / rule.systems)
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
    interval_of: Callable[[Floats], Interval], differences: Floats, ends: Ends | None, margin: float, verdict: Verdict
) -> bool:
    """Whether unjudged passages could take a verdict's interval away from its side of 0, or out of the margin."""
    if verdict not in ("win", "loss", "tie"):
        return False

    def says(row: Floats) -> bool:
        found = interval_of(row)
        sides = {"win": found.low > 0, "loss": found.high < 0, "tie": _within(found, margin)}
        return bool(sides[verdict])

    return could_reverse(says, differences, ends)


def _within(interval: Interval, margin: float) -> bool:
    return bool(-margin <= interval.low and interval.high <= margin)


def _verdict(interval: Interval, p: float, negligible: bool, alpha: float) -> Verdict:
    if p < alpha and interval.low > 0:
        return "win"
    if p < alpha and interval.high < 0:
        return "loss"
    # A few equal differences make an interval of no width; that is no evidence yet.
    return "tie" if negligible and interval.count >= least_queries(alpha) else "unresolvable"
