"""Ranking methods that `ranking.py` compares, each as a generator of snapshots at given numbers of calls.

A method receives a world, a judge, the numbers of calls for its snapshots, and a generator of random numbers. It uses
the grades of the world, but not the utilities. Seconds are the time of the method, without that of the judge.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import choix
import numpy as np
from openskill.models import PlackettLuce
from ranking_worlds import Ask, Floats, Ints, World

from raggs.ranking import Ranking, make_ranker

BATCH = 5
WINDOW_STEP = 3
SHOTS = 4
ALPHA = 0.02  # regularisation of choix; like the next two values, chosen on the even half of the queries
MU_PER_GRADE, SIGMA = 4.0, 25.0 / 3.0  # OpenSkill: its default sigma; its default mean of 25 is that of grade 3


@dataclass(frozen=True)
class Snapshot:
    """An order after `calls` answers.

    Attributes:
        budget: requested number of calls.
        calls: number of calls, including invalid answers.
    """

    budget: int
    calls: int
    order: Ints
    seconds: float
    ranking: Ranking | None = None


Method = Callable[[World, Ask, Sequence[int], np.random.Generator], Iterator[Snapshot]]


class Clock:
    """Adds up the seconds spent inside its `with` blocks."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._began


def by_grades(world: World, rng: np.random.Generator) -> Ints:
    """Sort passages by grade, with ties in random order."""
    return np.lexsort((rng.random(world.grades.size), -world.grades))


def grades_only(world: World, _ask: Ask, _budgets: Sequence[int], rng: np.random.Generator) -> Iterator[Snapshot]:
    """Yield the order by grades, without calls."""
    yield Snapshot(0, 0, by_grades(world, rng), 0.0)


def shots(count: int) -> Method:
    """Return a method that shows the whole pool `count` times in random order, and adds Borda counts; ties by grade."""

    def play(world: World, ask: Ask, _budgets: Sequence[int], rng: np.random.Generator) -> Iterator[Snapshot]:
        start = by_grades(world, rng)
        points = np.zeros(start.size)
        for _ in range(count):
            answer = ask(rng.permutation(start))
            if answer is not None:
                points[answer] += np.arange(start.size, 0, -1)
        yield Snapshot(count, count, start[np.argsort(-points[start], kind="stable")], 0.0)

    return play


def sliding_windows(world: World, ask: Ask, budgets: Sequence[int], rng: np.random.Generator) -> Iterator[Snapshot]:
    """Order windows of five, which move up from the bottom by three, in several passes."""
    order = by_grades(world, rng)
    starts = [*range(order.size - BATCH, 0, -WINDOW_STEP), 0]
    for call in range(1, max(budgets) + 1):
        window = slice(start := starts[(call - 1) % len(starts)], start + BATCH)
        answer = ask(order[window])
        if answer is not None:
            order[window] = answer
        if call in budgets:
            yield Snapshot(call, call, order.copy(), 0.0)


def balanced_batches(size: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield random batches of five, and show each passage once before any is shown again."""
    while True:
        line = rng.permutation(size)
        yield from line[: size - size % BATCH].reshape(-1, BATCH)


def choix_scores(world: World, orders: Sequence[Ints]) -> Floats:
    """Compute regularised maximum-likelihood utilities of Plackett-Luce with choix (iterative Luce spectral ranking).

    The Newton method of choix gives the same quality, but takes forty times as long.
    """
    if not orders:
        return world.grades
    found = choix.ilsr_rankings(world.grades.size, [order.tolist() for order in orders], alpha=ALPHA, max_iter=1000)
    return np.asarray(found)


def random_choix(world: World, ask: Ask, budgets: Sequence[int], rng: np.random.Generator) -> Iterator[Snapshot]:
    """Order balanced random batches, and fit them for each snapshot."""
    batches, orders = balanced_batches(world.grades.size, rng), []
    for call in range(1, max(budgets) + 1):
        if (answer := ask(next(batches))) is not None:
            orders.append(answer)
        if call in budgets:
            clock = Clock()
            with clock:
                scores = choix_scores(world, orders)
            yield Snapshot(call, call, np.argsort(-scores, kind="stable"), clock.seconds)


def random_openskill(world: World, ask: Ask, budgets: Sequence[int], rng: np.random.Generator) -> Iterator[Snapshot]:
    """Order balanced random batches, and update OpenSkill's Plackett-Luce ratings, which start from the grades."""
    model, clock = PlackettLuce(), Clock()
    players = [model.rating(mu=25.0 + MU_PER_GRADE * (grade - 3.0), sigma=SIGMA) for grade in world.grades]
    batches = balanced_batches(world.grades.size, rng)
    for call in range(1, max(budgets) + 1):
        answer = ask(next(batches))
        with clock:
            if answer is not None:
                rated = model.rate([[players[item]] for item in answer])
                for item, (player,) in zip(answer, rated, strict=True):
                    players[item] = player
        if call in budgets:
            order = np.argsort([-player.mu for player in players], kind="stable")
            yield Snapshot(call, call, order, clock.seconds)


def engine(name: str, *, batch_size: int = BATCH, parallel: int = 4, **options: Any) -> Method:
    """Return a method that runs an engine of `raggs.ranking` in rounds of `parallel` batches."""

    def play(world: World, ask: Ask, budgets: Sequence[int], rng: np.random.Generator) -> Iterator[Snapshot]:
        number, clock = {name: index for index, name in enumerate(world.ids)}, Clock()
        left, seed = sorted(budgets), int(rng.integers(2**31))
        ranker = make_ranker(
            name, world.ids, world.grades.tolist(), batch_size=batch_size, seed=seed, max_calls=left[-1], **options
        )
        calls = 0

        def snapshot(budget: int) -> Snapshot:
            ranking = ranker.ranking()
            order = np.array([number[name] for name in ranking.order])
            return Snapshot(budget, calls, order, clock.seconds, ranking)

        while not ranker.done:
            with clock:
                batches = ranker.next_batches(parallel)
            for batch in batches:
                answer = ask(np.array([number[name] for name in batch]))
                with clock:
                    if answer is None:
                        ranker.skip(batch)
                    else:
                        ranker.observe([world.ids[item] for item in answer])
                calls += 1
                if calls == left[0]:
                    yield snapshot(left.pop(0))
        yield from map(snapshot, left)

    return play


NEVER = 10**9
LONG_LISTS = ("single shot", f"{SHOTS} shots + Borda")
METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "grades only": grades_only,
        LONG_LISTS[0]: shots(1),
        LONG_LISTS[1]: shots(SHOTS),
        "sliding windows": sliding_windows,
        "random + choix": random_choix,
        "random + OpenSkill": random_openskill,
        "online": engine("online", stability=NEVER),
        "bayes": engine("bayes", saving=0.0),
    }
)
