"""Compare one ranking budget for all queries with the same number of calls for each query.

    python benchmarks/setbudget.py --data FOLDER --out benchmarks/results/setbudget.md     twenty minutes on one core
    python benchmarks/setbudget.py --quick                                                synthetic queries, a minute
    python benchmarks/setbudget.py --data FOLDER --parity even --sets 2 --ceiling         upper bound of the gain

Pools, true utilities and judges are those of `ranking.py` (ranking_worlds.py). A set consists of all queries in two
worlds. In a *mixed* set, each query has a random judge: sharp, medium or noisy. In *mixed, all sizes*, its pool also
has a random size from 4 to 60. `raggs.ranking.bayes` chooses the query for the next round, as in the rank stage. A
ranking does not depend on the time of its rounds. So each query is ranked once, for both budgets.

Lists have five passages, and a round has four lists. A ranking ends only at its maximum number of calls. The figure
after +- is the standard error of the paired difference over sets.

Upper bound (`--ceiling`): each query is ranked several times, with new random errors of the same judge. The choice of
the next query then uses the results of the other repetitions in addition to the expected inversions.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy

import numpy as np
from ranking_worlds import JUDGES, POOL, Query, load_queries, make_judge, make_world, measures, synthetic_queries

from raggs.base.hashing import generator
from raggs.ranking import make_ranker
from raggs.ranking.bayes import NextRound, expected_loss_reduction, next_wave

TOP, ROUND, MOST = 20, 4, 240
CALLS = (20, 40, 80)
SIZES = (4, 6, 10, 20, 40, 60)
DRAWN = ("sharp", "medium", "noisy")
SETTINGS = ("medium", "noisy", "mixed", "mixed, all sizes")
PLAYS, FOLLOWED = 3, 40  # repetitions per query for the upper bound, and rounds per repetition
POWERS = (1, 2, 3, 4, 6)  # of the expected inversions: a higher power gives more calls to the worst queries
LEVEL = 1.0  # standard errors that the mean may fall


class State(NamedTuple):
    """A ranking after some rounds.

    Attributes:
        inversions: expected inversions in the top.
        benefit: expected loss reduction by the next round; None if the ranking has ended.
    """

    calls: int
    tau20: float
    ov10: float
    inversions: float
    benefit: float | None


class Track:
    """The ranking of a query, computed as far as needed."""

    def __init__(self, query: Query, seed: int, judge: str, pool: int, play: int = 0) -> None:
        self._states: list[State] = []
        self._course = self._play(query, seed, judge, pool, play)

    def at(self, rounds: int) -> State:
        """Return the state after so many rounds, or the last state."""
        while len(self._states) <= rounds and (state := next(self._course, None)) is not None:
            self._states.append(state)
        return self._states[min(rounds, len(self._states) - 1)]

    def _play(self, query: Query, seed: int, judge: str, pool: int, play: int) -> Iterator[State]:
        world = make_world(query, seed, pool)
        place = {name: number for number, name in enumerate(world.ids)}
        ask = make_judge(JUDGES[judge], world, seed, "set", pool, *([play] if play else []))
        grades, size = world.grades.tolist(), len(world.ids)
        ranker = make_ranker("bayes", world.ids, grades, top=TOP, seed=seed + 1000 * play, max_calls=MOST, saving=0.0)
        while True:
            found = ranker.ranking()
            value = measures(world, np.array([place[name] for name in found.order]), TOP)
            batches = ranker.next_batches(ROUND)
            inversions = found.expected_inversions
            next_round = expected_loss_reduction(inversions, found.calls, size, TOP) if batches else None
            yield State(found.calls, value["tau20"], value["ov10"], inversions, next_round)
            if not batches:
                return
            for batch in batches:
                order = ask(np.array([place[name] for name in batch]))
                ranker.skip(batch) if order is None else ranker.observe([world.ids[item] for item in order])


def equal(tracks: Sequence[Track], calls: int) -> list[State]:
    """Return the states with equal calls per query; calls that small pools cannot use go to the others equally."""
    most = calls // ROUND
    while True:
        found = [track.at(most) for track in tracks]
        left = calls * len(tracks) - sum(state.calls for state in found)
        if left < ROUND * sum(state.benefit is not None for state in found) or most * ROUND >= MOST:
            return found
        most += 1


Gain = Callable[[int, int], float | None]
"""Expected loss reduction by the next round of a query after so many rounds; None if its ranking has ended."""


def shared(tracks: Sequence[Track], calls: int, gain: Gain | None = None) -> list[State]:
    """Return the states with a shared budget; `gain` replaces the rank stage's expected benefit of a round."""
    rounds, left = [0] * len(tracks), float(calls * len(tracks))
    benefit = gain or (lambda number, count: tracks[number].at(count).benefit)
    while taken := next_wave(_offers(benefit, rounds), left, len(tracks)):
        for offer in taken:
            rounds[int(offer.name)] += 1
        left -= sum(offer.price for offer in taken)
    return [track.at(count) for track, count in zip(tracks, rounds, strict=True)]


def _offers(benefit: Gain, rounds: Sequence[int]) -> Iterator[NextRound]:
    for number, count in enumerate(rounds):
        if (gain := benefit(number, count)) is not None:
            yield NextRound(f"{number:04}", gain, float(ROUND), asked=count > 0)


def values(states: Sequence[State]) -> tuple[float, ...]:
    """Return mean tau20, tau20 of the worst tenth of the queries, mean ov10, and fewest and most calls of a query."""
    line, calls = sorted(state.tau20 for state in states), [state.calls for state in states]
    worst = line[: max(1, round(len(line) / 10))]
    found = (np.mean(line), np.mean(worst), np.mean([state.ov10 for state in states]), min(calls), max(calls))
    return tuple(map(float, found))


class Sets:
    """Sets of queries; each ranking is computed once."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self._queries = queries
        self._tracks: dict[tuple[object, ...], Track] = {}

    def of(self, setting: str, worlds: Sequence[int], play: int = 0) -> list[Track]:
        """Return the rankings of one set."""
        return [self._track(setting, query, seed, play) for seed in worlds for query in self._queries]

    def _track(self, setting: str, query: Query, seed: int, play: int) -> Track:
        draw = generator(seed, "set", query.qid)
        judge, size = DRAWN[int(draw.integers(len(DRAWN)))], SIZES[int(draw.integers(len(SIZES)))]
        key = (query.qid, seed, judge if "mixed" in setting else setting, size if "sizes" in setting else POOL, play)
        if key not in self._tracks:
            self._tracks[key] = Track(query, *key[1:])
        return self._tracks[key]


def rows(sets: Sets, worlds: Sequence[Sequence[int]]) -> Iterator[str]:
    """Yield a row for each setting and number of calls."""
    for setting in SETTINGS:
        found = [sets.of(setting, each) for each in worlds]
        for calls in CALLS:
            same = np.array([values(equal(tracks, calls)) for tracks in found])
            best = np.array([values(shared(tracks, calls)) for tracks in found])
            cells = [f"{same[:, column].mean():.3f} | {gain(best[:, column] - same[:, column])}" for column in range(3)]
            span = f"{best[:, 3].mean():.0f} to {best[:, 4].mean():.0f}"
            yield f"| {setting} | {calls} | " + " | ".join(cells) + f" | {span} |"


def gain(differences: np.ndarray) -> str:
    """Return mean and standard error of paired differences."""
    error = differences.std(ddof=1) / np.sqrt(differences.size) if differences.size > 1 else np.nan
    return f"{differences.mean():+.3f} ± {error:.3f}"


class Known:
    """Predicted loss of the queries of sets that were ranked several times.

    Attributes:
        explained: share of the variance of the loss over queries at equal calls, explained by the other repetitions,
            by the expected inversions, and by both.
    """

    def __init__(self, sets: Sequence[Sequence[Sequence[Track]]]) -> None:
        states = [[[[track.at(at) for at in range(FOLLOWED + 1)] for track in play] for play in each] for each in sets]
        lost = np.array([[[[1 - state.tau20 for state in line] for line in play] for play in each] for each in states])
        inversions = [[[[state.inversions for state in line] for line in play] for play in each] for each in states]
        doubt = np.array(inversions)
        self._usual = lost.mean(axis=(0, 1, 2))
        lost, doubt = lost / self._usual, doubt / doubt.mean(axis=(0, 1, 2))
        others = (lost.sum(axis=1, keepdims=True) - lost) / (lost.shape[1] - 1)
        parts = np.stack([np.ones_like(lost), self._smooth(others), doubt], axis=-1)[..., 5:, :].reshape(-1, 3)
        wanted = lost[..., 5:].ravel()
        self.explained = tuple(_explained(parts[:, columns], wanted) for columns in ([0, 1], [0, 2], [0, 1, 2]))
        one, course, own = np.linalg.lstsq(parts, wanted, rcond=None)[0]
        self._expected = np.maximum(one + course * self._smooth(others) + own * doubt, 1e-3)

    def _smooth(self, lines: np.ndarray) -> np.ndarray:
        """Return each line as a straight line over the logarithm of the rounds."""
        at = np.log(np.arange(1, lines.shape[-1] + 1))
        flat = lines.reshape(-1, at.size)
        slope, base = np.polyfit(at, flat.T, 1)
        return np.asarray(base[:, None] + slope[:, None] * at).reshape(lines.shape)

    def gain(self, number: int, play: int, power: int) -> Gain:
        """Return the gain of rounds of a set in one of its repetitions."""
        lost = (self._expected[number, play] * self._usual) ** power
        return lambda query, count: None if count == FOLLOWED else lost[query, count] / (ROUND * count + 10)


def _explained(parts: np.ndarray, wanted: np.ndarray) -> float:
    found = parts @ np.linalg.lstsq(parts, wanted, rcond=None)[0]
    return float(1 - ((wanted - found) ** 2).mean() / wanted.var())


def ceilings(sets: Sets, worlds: Sequence[Sequence[int]]) -> Iterator[str]:
    """Yield a row for each setting and number of calls: the gain, and the upper bound of the gain."""
    for setting in SETTINGS[:3]:
        plays = [[sets.of(setting, each, play) for play in range(PLAYS)] for each in worlds]
        known, every = Known(plays), [(number, play) for number in range(len(plays)) for play in range(PLAYS)]
        explained = " | ".join(f"{share:.0%}" for share in known.explained)
        for calls in CALLS:
            same = np.array([values(equal(plays[at][play], calls)) for at, play in every])[:, :2]
            now = np.array([values(shared(plays[at][play], calls)) for at, play in every])[:, :2] - same
            best = [
                np.array([values(shared(plays[at][play], calls, known.gain(at, play, power))) for at, play in every])
                for power in POWERS
            ]
            level = [each[:, :2] - same for each in best if _level(each[:, 0] - same[:, 0])]
            most = max(level, key=lambda each: float(each[:, 1].mean()), default=now)
            cells = [gain(each[:, column]) for each in (now, most) for column in (0, 1)]
            yield f"| {setting} | {calls} | " + " | ".join(cells) + f" | {explained} |"


def _level(differences: np.ndarray) -> bool:
    return bool(differences.mean() >= -LEVEL * differences.std(ddof=1) / np.sqrt(differences.size))


HEAD = (
    *("tau20, equal calls", "gain, shared budget", "tau20 of the worst tenth, equal calls", "gain, shared budget"),
    *("ov10, equal calls", "gain, shared budget", "calls per query, fewest to most"),
)
CEILING = (
    *("gain in tau20", "gain of the worst tenth", "bound: gain in tau20", "bound: gain of the worst tenth"),
    *("variance explained by the repetitions", "by the expected inversions", "by both"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with corpus.jsonl, queries.jsonl and qrels.trec")
    parser.add_argument("--quick", action="store_true", help="use 8 synthetic queries and two sets")
    parser.add_argument("--parity", choices=("odd", "even"), default="odd", help="half of the queries [default: odd]")
    parser.add_argument("--sets", type=int, default=4, help="number of sets [default: 4]")
    parser.add_argument("--ceiling", action="store_true", help="print the upper bound of the gain instead")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    given = parser.parse_args()
    queries = synthetic_queries(8, 1) if given.quick or given.data is None else load_queries(given.data)
    if given.data is not None and not given.quick:
        queries = [query for query in queries if query.number % 2 == (given.parity == "odd")]
    worlds = [(2 * number + 1, 2 * number + 2) for number in range(2 if given.quick else given.sets)]
    head = ("judge", "calls per query", *(CEILING if given.ceiling else HEAD))
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    print("\n".join(lines), flush=True)
    for row in (ceilings if given.ceiling else rows)(Sets(queries), worlds):
        print(row, flush=True)
        lines.append(row)
    if given.out:
        times = f", each ranked {PLAYS} times" if given.ceiling else ""
        made = f"{len(queries)} {given.parity} queries in two worlds"
        note = f"{len(worlds)} sets of {2 * len(queries)} queries ({made}{times})."
        write_region(given.out, f"ceiling, {given.parity}" if given.ceiling else "tables", [note, "", *lines])
    return 0


def write_region(page: Path, name: str, lines: Sequence[str]) -> None:
    """Replace the region between the markers of this name."""
    text = page.read_text() if page.exists() else ""
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    before, _, rest = text.partition(begin)
    page.write_text(before + "\n".join([begin, "", *lines, "", end]) + rest.partition(end)[2])


if __name__ == "__main__":
    sys.exit(main())
