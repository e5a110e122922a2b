"""Near-equal systems: whom the data show to be as good as the best is chosen by cost, wait and size, not by chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from raggs.base.arrays import Floats
from raggs.evaluation.models import ScorePart
from raggs.stats.choice import choose
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.deciding import EquivalentSystems, SweepDecision, candidate, decide
from raggs.sweeps.models import CostPart, LatencyPart, LatencySpread, SystemRow

MEASURES = ("ra_nwg@10", "ra_nwg@30")
QUERIES = 200
BASE = np.random.default_rng(5).uniform(0.2, 0.9, QUERIES)


@dataclass(frozen=True)
class Made:
    """One system of a made-up world: by how much it is better than `BASE`, and the spread of that over queries."""

    better: float = 0.0
    spread: float = 0.01
    deep: float = 0.0
    k: int = 50
    usd: float | None = 1.0
    ms: float | None = 300.0
    tokens: float = 5000.0

    def values(self, seed: int) -> dict[str, Floats]:
        noise = np.random.default_rng(seed).normal(0, self.spread, QUERIES)
        noise -= noise.mean()
        return {MEASURES[0]: BASE + self.better + noise, MEASURES[1]: BASE + self.deep + noise}

    def row(self, name: str, values: Mapping[str, Floats]) -> SystemRow:
        wait = None if self.ms is None else spread(self.ms)
        return SystemRow(
            name=name,
            levels={"k": str(self.k), "mode": name},
            fingerprint="",
            file=f"runs/{name}.trec",
            k=self.k,
            questions=QUERIES,
            scores={
                measure: ScorePart(mean=float(column.mean()), low=None, high=None, valid=QUERIES)
                for measure, column in values.items()
            },
            latency=LatencyPart(total=wait),
            cost=CostPart(
                embed=0.0,
                rerank=self.usd,
                generate=0.0,
                total=self.usd,
                question_tokens=10,
                candidate_tokens=None,
                candidate_tokens_sd=None,
                context_tokens=self.tokens,
            ),
        )


def spread(ms: float) -> LatencySpread:
    return LatencySpread(p50=ms, p95=ms * 1.5, low=None, high=None, searches=150, p95_of_medians=ms * 1.2, calls=150)


def decided(worlds: Mapping[str, Made], **settings: object) -> SweepDecision:
    values = {name: made.values(seed) for seed, (name, made) in enumerate(worlds.items())}
    rows = [made.row(name, values[name]) for name, made in worlds.items()]
    return decide(SweepConfig.model_validate({"name": "s", "golden": ".", **settings}), MEASURES, rows, values)


def by_means(worlds: Mapping[str, Made]) -> str:
    """The choice if only equal means are tied."""
    values = {name: made.values(seed) for seed, (name, made) in enumerate(worlds.items())}
    rows = [made.row(name, values[name]) for name, made in worlds.items()]
    found = choose([each for row in rows if (each := candidate(row, MEASURES))]).winner
    assert found is not None
    return found.name


NEAR = {
    "fewer candidates": ({"large": Made(0.002, k=200), "small": Made(k=50)}, "small"),
    "cheaper": ({"dear": Made(0.002, usd=5.0), "cheap": Made(usd=0.5)}, "cheap"),
    "faster": ({"slow": Made(0.002, ms=900.0), "fast": Made(ms=300.0)}, "fast"),
    "a shorter prompt": ({"long": Made(0.002, tokens=9000.0), "short": Made(tokens=3000.0)}, "short"),
    "cheaper, for as many candidates more": (
        {"free": Made(0.0, k=50, usd=0.0), "paid": Made(0.002, k=20, usd=3.0, ms=600.0)},
        "free",
    ),
    "of three, the cheapest of the two that are tied": (
        {"best": Made(0.004, usd=5.0), "tied": Made(0.001, usd=1.0), "worse": Made(-0.2, usd=0.1)},
        "tied",
    ),
}


@pytest.mark.parametrize("world", NEAR)
def test_among_systems_that_are_equivalent_to_the_best_cost_wait_and_size_decide(world: str) -> None:
    worlds, wanted = NEAR[world]
    found = decided(worlds).choice
    best = max(worlds, key=lambda name: worlds[name].better)
    assert by_means(worlds) == best != wanted
    assert (found.winner, found.best) == (wanted, best)
    assert wanted in found.tied and best in found.tied
    assert f"equivalent to {best}" in found.sentence
    assert found.excluded[best]
    assert decided(worlds, margin=0).choice.winner == best


FAR = {
    "the difference is greater than the margin": ({"best": Made(0.05, usd=5.0), "other": Made(usd=0.1)}, 0.01),
    "the interval is wider than the margin": ({"best": Made(0.002, spread=0.3, usd=5.0), "other": Made(usd=0.1)}, 0.01),
    "it is worse by another measure that decides": (
        {"best": Made(0.002, usd=5.0), "other": Made(usd=0.1, deep=-0.1)},
        0.01,
    ),
}


@pytest.mark.parametrize("world", FAR)
def test_where_the_data_do_not_show_equivalence_the_better_mean_wins(world: str) -> None:
    worlds, margin = FAR[world]
    found = decided(worlds, margin=margin).choice
    assert found.winner == found.best == "best"
    assert found.tied == ("best",)
    assert "tied" not in found.sentence


def test_it_may_be_better_by_another_measure_and_is_tied_still() -> None:
    found = decided({"best": Made(0.002, usd=5.0), "other": Made(usd=0.1, deep=0.2)}).choice
    assert found.winner == "other"


def test_too_few_queries_show_nothing() -> None:
    worlds = {"best": Made(0.002, usd=5.0), "other": Made(usd=0.1)}
    values = {
        name: {measure: column[:5] for measure, column in made.values(seed).items()}
        for seed, (name, made) in enumerate(worlds.items())
    }
    rows = [made.row(name, values[name]) for name, made in worlds.items()]
    found = decide(SweepConfig.model_validate({"name": "s", "golden": "."}), MEASURES, rows, values).choice
    assert found.winner == max(worlds, key=lambda name: values[name][MEASURES[0]].mean())


def test_draws_of_queries_and_other_limits_choose_by_the_same_rule() -> None:
    worlds, _ = NEAR["of three, the cheapest of the two that are tied"]
    found = decided(worlds)
    assert {each.system: each.share for each in found.wins} == {"tied": 1.0}
    assert not [line for line in found.choice.changes if line.endswith(": best")]
    limited = decided(worlds, limits={"usd_per_1k": 0.5})
    assert limited.choice.winner == "worse"


def test_unknown_costs_and_waits_put_no_tied_system_aside(tmp_path: Path) -> None:
    found = decided({"best": Made(0.002, usd=None, ms=None), "other": Made(usd=0.1)}).choice
    assert found.winner == "other", "it is as good, and nobody knows what the best one takes"
    assert decided({"best": Made(0.002, usd=None, ms=None), "other": Made(usd=None, ms=None)}).choice.winner == "best"


def test_a_system_that_may_be_better_by_more_than_the_margin_is_no_equivalent() -> None:
    """The difference has a mean within the margin, an interval that leaves it above, and none that leaves it below."""
    better = np.where(np.arange(QUERIES) % 50 == 0, 0.9, 0.0)
    assert better.mean() < 0.02
    values = {"one": {MEASURES[0]: BASE}, "other": {MEASURES[0]: BASE + better}}
    assert EquivalentSystems(MEASURES[:1], values, margin=0.02, confidence=0.95, seed=0)("one") == {"one"}
    assert EquivalentSystems(MEASURES[:1], values, margin=0.05, confidence=0.95, seed=0)("one") == {"one", "other"}
