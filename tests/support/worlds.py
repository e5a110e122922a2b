"""Simulated pools and judges, for anything that ranks.

A world has true utilities and the grades that a first judge gave; orders come from Plackett-Luce noise around
beta times the utility.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from raggs.base.hashing import generator
from raggs.ranking import Ranker, Ranking

Order = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True)
class World:
    utility: dict[str, float]
    grades: dict[str, float]

    @property
    def ids(self) -> list[str]:
        return list(self.utility)

    @property
    def truth(self) -> list[str]:
        return sorted(self.utility, key=lambda name: -self.utility[name])

    def judge(self, beta: float, seed: int = 0) -> Order:
        rng = generator(seed, "judge", beta)

        def order(batch: Sequence[str]) -> list[str]:
            keys = {name: beta * self.utility[name] + rng.gumbel() for name in batch}
            return sorted(batch, key=lambda name: -keys[name])

        return order


def make_world(seed: int, size: int = 40, spread: float = 0.35) -> World:
    """Two thirds of the pool are irrelevant, as in pools of human judgments; a quarter of the grades are off by one."""
    rng = generator(seed, "world")
    true_grades = rng.choice([1, 2, 3, 4, 5], p=[0.67, 0.07, 0.13, 0.07, 0.06], size=size)
    slips = rng.choice([-1, 0, 1], p=[0.125, 0.75, 0.125], size=size)
    names = [f"d{number:03d}" for number in rng.permutation(size)]
    utility = true_grades + rng.normal(0, spread, size)
    grades = np.clip(true_grades + slips, 1, 5)
    return World(dict(zip(names, utility.tolist(), strict=True)), dict(zip(names, grades.tolist(), strict=True)))


def play(ranker: Ranker, order: Order, parallel: int = 4) -> Ranking:
    """Run a ranker to its end."""
    while not ranker.done:
        for batch in ranker.next_batches(parallel):
            ranker.observe(order(batch))
    return ranker.ranking()


def tau(order: Sequence[str], truth: Sequence[str]) -> float:
    """Kendall's tau between two orders of the same items."""
    place = {name: position for position, name in enumerate(truth)}
    positions = np.array([place[name] for name in order])
    rising = np.sign(positions[None, :] - positions[:, None])
    return float(rising[np.triu_indices(len(order), k=1)].mean())


def check(ranking: Ranking, size: int, top: int = 20) -> None:
    """What must hold of any ranking at any moment."""
    assert len(set(ranking.order)) == len(ranking.order) == size
    chances = (*ranking.position_confidence, *ranking.membership)
    numbers = (*ranking.scores, *ranking.sigma, *chances, *(lock.z for lock in (*ranking.locks, *ranking.released)))
    assert all(math.isfinite(number) for number in numbers)
    assert min(ranking.sigma) > 0
    assert all(0 <= chance <= 1 for chance in chances)
    head = min(top, size)
    assert abs(sum(ranking.membership) - head) < 1e-6
    assert 0 <= ranking.expected_inversions <= math.comb(head, 2)
    place = {name: position for position, name in enumerate(ranking.order, start=1)}
    for name, low, high in zip(ranking.order, ranking.rank_low, ranking.rank_high, strict=True):
        assert 1 <= low <= place[name] <= high <= size
    edges = [(lock.winner, lock.loser) for lock in ranking.locks]
    assert nx.is_directed_acyclic_graph(nx.DiGraph(edges))
    assert all(place[winner] < place[loser] for winner, loser in edges)
