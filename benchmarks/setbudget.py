"""What one budget for the set buys: the same calls in all, the same for each question or where they promise most.

    python benchmarks/setbudget.py --data FOLDER --out benchmarks/results/setbudget.md     some twenty minutes, one core
    python benchmarks/setbudget.py --quick                                                made-up queries, a minute

Pools, truth and judges are those of `ranking.py` (ranking_worlds.py). A set is all queries in two worlds; in a
*mixed* one each question has a judge of its own, drawn among sharp, medium and noisy, and in *all sizes* a pool of 4 to
60 besides. Whose turn it is comes from `raggs.ranking.allocation`, as in the rank stage. The course of a ranking does
not hang on when its turn comes, so each question is followed once, as far as anybody asks, and both ways read it.

Lists of five, four at a time, nothing ends by itself but by its cap. +- is the standard error of the paired difference
over sets.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy

import numpy as np
from ranking_worlds import JUDGES, POOL, Query, load_queries, make_judge, make_world, measures, synthetic_queries

from raggs.ranking import make_ranker
from raggs.ranking.allocation import Offer, next_wave, promise
from raggs.seeds import generator

TOP, ROUND, MOST = 20, 4, 240
CALLS = (20, 40, 80)
SIZES = (4, 6, 10, 20, 40, 60)
DRAWN = ("sharp", "medium", "noisy")
SETTINGS = ("medium", "noisy", "mixed", "mixed, all sizes")


class State(NamedTuple):
    """A ranking after some rounds. `promise`: of the next round; None where there is none."""

    calls: int
    tau20: float
    ov10: float
    promise: float | None


class Track:
    """A question's ranking, followed as far as it is asked for."""

    def __init__(self, query: Query, seed: int, judge: str, pool: int) -> None:
        self._states: list[State] = []
        self._course = self._play(query, seed, judge, pool)

    def at(self, rounds: int) -> State:
        """After so many rounds, or at its end."""
        while len(self._states) <= rounds and (state := next(self._course, None)) is not None:
            self._states.append(state)
        return self._states[min(rounds, len(self._states) - 1)]

    def _play(self, query: Query, seed: int, judge: str, pool: int) -> Iterator[State]:
        world = make_world(query, seed, pool)
        place = {name: number for number, name in enumerate(world.ids)}
        ask = make_judge(JUDGES[judge], world, seed, "set", pool)
        grades, size = world.grades.tolist(), len(world.ids)
        ranker = make_ranker("bayes", world.ids, grades, top=TOP, seed=seed, max_calls=MOST, inversions=0.0)
        while True:
            found = ranker.ranking()
            value = measures(world, np.array([place[name] for name in found.order]), TOP)
            batches = ranker.next_batches(ROUND)
            next_round = promise(found.expected_inversions, found.calls, size, TOP) if batches else None
            yield State(found.calls, value["tau20"], value["ov10"], next_round)
            if not batches:
                return
            for batch in batches:
                said = ask(np.array([place[name] for name in batch]))
                ranker.skip(batch) if said is None else ranker.observe([world.ids[item] for item in said])


def alike(tracks: Sequence[Track], calls: int) -> list[State]:
    """Each question asked as often as the others; what small pools cannot use goes to all others alike."""
    most = calls // ROUND
    while True:
        found = [track.at(most) for track in tracks]
        left = calls * len(tracks) - sum(state.calls for state in found)
        if left < ROUND * sum(state.promise is not None for state in found) or most * ROUND >= MOST:
            return found
        most += 1


def shared(tracks: Sequence[Track], calls: int) -> list[State]:
    """One budget for all."""
    rounds, left = [0] * len(tracks), float(calls * len(tracks))
    while taken := next_wave(_offers(tracks, rounds), left, len(tracks)):
        for offer in taken:
            rounds[int(offer.name)] += 1
        left -= sum(offer.price for offer in taken)
    return [track.at(count) for track, count in zip(tracks, rounds, strict=True)]


def _offers(tracks: Sequence[Track], rounds: Sequence[int]) -> Iterator[Offer]:
    for number, (track, count) in enumerate(zip(tracks, rounds, strict=True)):
        if (gain := track.at(count).promise) is not None:
            yield Offer(f"{number:04}", gain, float(ROUND), asked=count > 0)


def values(states: Sequence[State]) -> tuple[float, ...]:
    """Mean tau20, that of the worst tenth of the questions, mean ov10; the least and the most calls of a question."""
    line, calls = sorted(state.tau20 for state in states), [state.calls for state in states]
    worst = line[: max(1, round(len(line) / 10))]
    found = (np.mean(line), np.mean(worst), np.mean([state.ov10 for state in states]), min(calls), max(calls))
    return tuple(map(float, found))


class Sets:
    """Sets of questions; tracks are made once."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self._queries = queries
        self._tracks: dict[tuple[object, ...], Track] = {}

    def of(self, setting: str, worlds: Sequence[int]) -> list[Track]:
        """One set."""
        return [self._track(setting, query, seed) for seed in worlds for query in self._queries]

    def _track(self, setting: str, query: Query, seed: int) -> Track:
        draw = generator(seed, "set", query.qid)
        judge, size = DRAWN[int(draw.integers(len(DRAWN)))], SIZES[int(draw.integers(len(SIZES)))]
        key = (query.qid, seed, judge if "mixed" in setting else setting, size if "sizes" in setting else POOL)
        if key not in self._tracks:
            self._tracks[key] = Track(query, *key[1:])
        return self._tracks[key]


def rows(sets: Sets, worlds: Sequence[Sequence[int]]) -> Iterator[str]:
    """A row for each setting and number of calls."""
    for setting in SETTINGS:
        found = [sets.of(setting, each) for each in worlds]
        for calls in CALLS:
            same = np.array([values(alike(tracks, calls)) for tracks in found])
            best = np.array([values(shared(tracks, calls)) for tracks in found])
            cells = [f"{same[:, column].mean():.3f} | {gain(best[:, column] - same[:, column])}" for column in range(3)]
            span = f"{best[:, 3].mean():.0f} to {best[:, 4].mean():.0f}"
            yield f"| {setting} | {calls} | " + " | ".join(cells) + f" | {span} |"


def gain(differences: np.ndarray) -> str:
    """Mean and standard error of paired differences."""
    error = differences.std(ddof=1) / np.sqrt(differences.size) if differences.size > 1 else np.nan
    return f"{differences.mean():+.3f} ±{error:.3f}"


HEAD = ("judge", "calls a question", "tau20, alike", "shared", "worst tenth, alike", "shared", "ov10, alike", "shared")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with corpus.jsonl, queries.jsonl and qrels.trec")
    parser.add_argument("--quick", action="store_true", help="8 made-up queries, two sets")
    parser.add_argument("--parity", choices=("odd", "even"), default="odd", help="which half of the queries")
    parser.add_argument("--sets", type=int, default=4)
    parser.add_argument("--out", type=Path, help="where the table goes, too")
    given = parser.parse_args()
    queries = synthetic_queries(8, 1) if given.quick or given.data is None else load_queries(given.data)
    if given.data is not None and not given.quick:
        queries = [query for query in queries if query.number % 2 == (given.parity == "odd")]
    worlds = [(2 * number + 1, 2 * number + 2) for number in range(2 if given.quick else given.sets)]
    lines = ["| " + " | ".join((*HEAD, "calls of one")) + " |", "|" + "---|" * (len(HEAD) + 1)]
    print("\n".join(lines), flush=True)
    for row in rows(Sets(queries), worlds):
        print(row, flush=True)
        lines.append(row)
    if given.out:
        text = given.out.read_text() if given.out.exists() else ""
        begin, end = "<!-- begin: tables -->", "<!-- end: tables -->"
        note = (
            f"{len(worlds)} sets of {2 * len(queries)} questions ({len(queries)} {given.parity} queries, two worlds)."
        )
        before, _, rest = text.partition(begin)
        given.out.write_text(before + "\n".join([begin, "", note, "", *lines, "", end]) + rest.partition(end)[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
