"""Findings by rule: a condition on what was measured of each question, the evidence beside, and what to turn.

A rule is a row of a table. It speaks where every quantity that it names lies beyond its limit with its whole interval,
so that nothing is found that chance makes; the intervals of all systems, or pairs of them, that are looked at together
hold together (Bonferroni). Whoever measures gives an array with a value a question; this only decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics.stats import bootstrap_mean, least_queries

Quantities = Mapping[str, Floats]
"""By name, shape (questions,), NaN where a quantity is not defined for a question."""


@dataclass(frozen=True)
class Rule:
    """A finding that may be made.

    Attributes:
        name: of the rule.
        sentence: what it says of a system; without its name.
        knob: what to turn.
        above, below: by quantity, what its mean must lie above, or below, with its whole interval.
        beside: quantities that are shown with the evidence and decide nothing.
    """

    name: str
    sentence: str
    knob: str
    above: Mapping[str, float] = field(default_factory=dict)
    below: Mapping[str, float] = field(default_factory=dict)
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """A mean over questions, with its interval at the confidence of the family; `count`: the questions."""

    quantity: str
    mean: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Finding:
    """What a rule found of a system, or of a pair: the evidence that decided first, then what is shown beside."""

    rule: Rule
    about: str
    evidence: tuple[Evidence, ...]


def findings(
    rules: Sequence[Rule], measured: Mapping[str, Quantities], *, seed: int, confidence: float = 0.95
) -> tuple[Finding, ...]:
    """All that the rules find, by system in the order of the rules.

    Args:
        measured: by system, or by pair, its quantities; a rule that names one that is missing is silent.
        confidence: of all intervals together that one rule looks at.
    """
    each = 1.0 - (1.0 - confidence) / max(1, len(measured))
    found: list[Finding] = []
    for about, quantities in measured.items():
        held = {name: _evidence(name, values, seed, each) for name, values in quantities.items()}
        told = {name: one for name, one in held.items() if one.count >= least_queries(1.0 - each)}
        found.extend(Finding(rule, about, shown) for rule in rules if (shown := tuple(_applied(rule, told))))
    return tuple(found)


def _evidence(name: str, values: Floats, seed: int, confidence: float) -> Evidence:
    found = bootstrap_mean(np.asarray(values, dtype=np.float64), confidence=confidence, seed=seed)
    return Evidence(name, found.mean, found.low, found.high, found.count)


def _applied(rule: Rule, held: Mapping[str, Evidence]) -> Iterator[Evidence]:
    """The rule's evidence; nothing where it does not speak. `held`: of enough questions for any test to tell."""
    needed = [*rule.above, *rule.below]
    if not all(name in held for name in needed):
        return
    over = all(held[name].low > limit for name, limit in rule.above.items())
    under = all(held[name].high < limit for name, limit in rule.below.items())
    if over and under:
        yield from (held[name] for name in needed)
        yield from (held[name] for name in rule.beside if name in held)
