"""What one budget for the set buys: the same calls in all, the same for each question or where they promise most.

    python benchmarks/setbudget.py --data FOLDER --out benchmarks/results/setbudget.md     some twenty minutes, one core
    python benchmarks/setbudget.py --quick                                                made-up queries, a minute
    python benchmarks/setbudget.py --data FOLDER --parity even --sets 2 --ceiling         what could be gained at most

Pools, truth and judges are those of `ranking.py` (ranking_worlds.py). A set is all queries in two worlds; in a
*mixed* one each question has a judge of its own, drawn among sharp, medium and noisy, and in *all sizes* a pool of 4 to
60 besides. Whose turn it is comes from `raggs.ranking.bayes`, as in the rank stage. The course of a ranking does
not hang on when its turn comes, so each question is followed once, as far as anybody asks, and both ways read it.

Lists of five, four at a time, nothing ends by itself but by its cap. +- is the standard error of the paired difference
over sets.

The ceiling: each question is ranked several times, by other slips of the same judge. Who chooses whose turn it is knows
of each question how it went in the other times, besides its doubt; nobody can know more but the luck of this time.
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
PLAYS, FOLLOWED = 3, 40  # times that a question is ranked for the ceiling, and rounds in each of them
POWERS = (1, 2, 3, 4, 6)  # of the wrong pairs that are expected: the higher, the more goes to the worst
LEVEL = 1.0  # standard errors that a mean may fall and is still called level


class State(NamedTuple):
    """A ranking after some rounds. `promise`: of the next round; None where there is none."""

    calls: int
    tau20: float
    ov10: float
    doubt: float
    promise: float | None


class Track:
    """A question's ranking, followed as far as it is asked for."""

    def __init__(self, query: Query, seed: int, judge: str, pool: int, play: int = 0) -> None:
        self._states: list[State] = []
        self._course = self._play(query, seed, judge, pool, play)

    def at(self, rounds: int) -> State:
        """After so many rounds, or at its end."""
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
            doubt = found.expected_inversions
            next_round = expected_loss_reduction(doubt, found.calls, size, TOP) if batches else None
            yield State(found.calls, value["tau20"], value["ov10"], doubt, next_round)
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


Gain = Callable[[int, int], float | None]
"""What the next round of a question after so many is expected to remove; None where there is none."""


def shared(tracks: Sequence[Track], calls: int, gain: Gain | None = None) -> list[State]:
    """One budget for all; `gain`: of a round, if not what the rank stage takes for it."""
    rounds, left = [0] * len(tracks), float(calls * len(tracks))
    told = gain or (lambda number, count: tracks[number].at(count).promise)
    while taken := next_wave(_offers(told, rounds), left, len(tracks)):
        for offer in taken:
            rounds[int(offer.name)] += 1
        left -= sum(offer.price for offer in taken)
    return [track.at(count) for track, count in zip(tracks, rounds, strict=True)]


def _offers(told: Gain, rounds: Sequence[int]) -> Iterator[NextRound]:
    for number, count in enumerate(rounds):
        if (gain := told(number, count)) is not None:
            yield NextRound(f"{number:04}", gain, float(ROUND), asked=count > 0)


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

    def of(self, setting: str, worlds: Sequence[int], play: int = 0) -> list[Track]:
        """One set."""
        return [self._track(setting, query, seed, play) for seed in worlds for query in self._queries]

    def _track(self, setting: str, query: Query, seed: int, play: int) -> Track:
        draw = generator(seed, "set", query.qid)
        judge, size = DRAWN[int(draw.integers(len(DRAWN)))], SIZES[int(draw.integers(len(SIZES)))]
        key = (query.qid, seed, judge if "mixed" in setting else setting, size if "sizes" in setting else POOL, play)
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


class Known:
    """What is known of the questions of some sets that were ranked several times.

    Attributes:
        told: share of what is lost, over questions at equal calls, that is explained by how it went in the other
            times, by the doubt, and by both.
    """

    def __init__(self, sets: Sequence[Sequence[Sequence[Track]]]) -> None:
        states = [[[[track.at(at) for at in range(FOLLOWED + 1)] for track in play] for play in each] for each in sets]
        lost = np.array([[[[1 - state.tau20 for state in line] for line in play] for play in each] for each in states])
        doubt = np.array([[[[state.doubt for state in line] for line in play] for play in each] for each in states])
        self._usual = lost.mean(axis=(0, 1, 2))
        lost, doubt = lost / self._usual, doubt / doubt.mean(axis=(0, 1, 2))
        others = (lost.sum(axis=1, keepdims=True) - lost) / (lost.shape[1] - 1)
        parts = np.stack([np.ones_like(lost), self._smooth(others), doubt], axis=-1)[..., 5:, :].reshape(-1, 3)
        wanted = lost[..., 5:].ravel()
        self.told = tuple(_explained(parts[:, columns], wanted) for columns in ([0, 1], [0, 2], [0, 1, 2]))
        one, course, own = np.linalg.lstsq(parts, wanted, rcond=None)[0]
        self._expected = np.maximum(one + course * self._smooth(others) + own * doubt, 1e-3)

    def _smooth(self, lines: np.ndarray) -> np.ndarray:
        """Each as a straight line over the logarithm of the rounds."""
        at = np.log(np.arange(1, lines.shape[-1] + 1))
        flat = lines.reshape(-1, at.size)
        slope, base = np.polyfit(at, flat.T, 1)
        return np.asarray(base[:, None] + slope[:, None] * at).reshape(lines.shape)

    def gain(self, number: int, play: int, power: int) -> Gain:
        """Of rounds of a set in one of its times."""
        lost = (self._expected[number, play] * self._usual) ** power
        return lambda question, count: None if count == FOLLOWED else lost[question, count] / (ROUND * count + 10)


def _explained(parts: np.ndarray, wanted: np.ndarray) -> float:
    found = parts @ np.linalg.lstsq(parts, wanted, rcond=None)[0]
    return float(1 - ((wanted - found) ** 2).mean() / wanted.var())


def ceilings(sets: Sets, worlds: Sequence[Sequence[int]]) -> Iterator[str]:
    """A row for each setting and number of calls: what is gained now, and by who knows more."""
    for setting in SETTINGS[:3]:
        plays = [[sets.of(setting, each, play) for play in range(PLAYS)] for each in worlds]
        known, every = Known(plays), [(number, play) for number in range(len(plays)) for play in range(PLAYS)]
        told = " | ".join(f"{share:.0%}" for share in known.told)
        for calls in CALLS:
            same = np.array([values(alike(plays[at][play], calls)) for at, play in every])[:, :2]
            now = np.array([values(shared(plays[at][play], calls)) for at, play in every])[:, :2] - same
            best = [
                np.array([values(shared(plays[at][play], calls, known.gain(at, play, power))) for at, play in every])
                for power in POWERS
            ]
            level = [each[:, :2] - same for each in best if _level(each[:, 0] - same[:, 0])]
            most = max(level, key=lambda each: float(each[:, 1].mean()), default=now)
            cells = [gain(each[:, column]) for each in (now, most) for column in (0, 1)]
            yield f"| {setting} | {calls} | " + " | ".join(cells) + f" | {told} |"


def _level(differences: np.ndarray) -> bool:
    return bool(differences.mean() >= -LEVEL * differences.std(ddof=1) / np.sqrt(differences.size))


HEAD = ("tau20, alike", "shared", "worst tenth, alike", "shared", "ov10, alike", "shared", "calls of one")
CEILING = (
    *("today: tau20", "worst tenth", "with the other times: tau20", "worst tenth"),
    *("told by the other times", "by the doubt", "by both"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with corpus.jsonl, queries.jsonl and qrels.trec")
    parser.add_argument("--quick", action="store_true", help="8 made-up queries, two sets")
    parser.add_argument("--parity", choices=("odd", "even"), default="odd", help="which half of the queries")
    parser.add_argument("--sets", type=int, default=4)
    parser.add_argument("--ceiling", action="store_true", help="what could be gained at most, instead")
    parser.add_argument("--out", type=Path, help="where the table goes, too")
    given = parser.parse_args()
    queries = synthetic_queries(8, 1) if given.quick or given.data is None else load_queries(given.data)
    if given.data is not None and not given.quick:
        queries = [query for query in queries if query.number % 2 == (given.parity == "odd")]
    worlds = [(2 * number + 1, 2 * number + 2) for number in range(2 if given.quick else given.sets)]
    head = ("judge", "calls a question", *(CEILING if given.ceiling else HEAD))
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    print("\n".join(lines), flush=True)
    for row in (ceilings if given.ceiling else rows)(Sets(queries), worlds):
        print(row, flush=True)
        lines.append(row)
    if given.out:
        times = f", each ranked {PLAYS} times" if given.ceiling else ""
        made = f"{len(queries)} {given.parity} queries, two worlds"
        note = f"{len(worlds)} sets of {2 * len(queries)} questions ({made}{times})."
        kept(given.out, f"ceiling, {given.parity}" if given.ceiling else "tables", [note, "", *lines])
    return 0


def kept(page: Path, name: str, lines: Sequence[str]) -> None:
    """Put lines between the marks of their name."""
    text = page.read_text() if page.exists() else ""
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    before, _, rest = text.partition(begin)
    page.write_text(before + "\n".join([begin, "", *lines, "", end]) + rest.partition(end)[2])


if __name__ == "__main__":
    sys.exit(main())
