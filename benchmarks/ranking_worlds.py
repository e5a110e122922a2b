"""Simulated pools and judges around graded queries, and the measures of a ranking: what `ranking.py` plays on.

A world is one query's pool with what only the simulation knows: the latent utility of each passage, which is the human
grade plus normal noise, and what the engines are given: a stage grade that is off by one now and then. Items are
numbers 0..size-1; everything is drawn from (seed, names), so a world does not depend on what ran before it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from raggs.base.hashing import generator
from raggs.base.trec import read_qrels

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Ask = Callable[[Ints], Ints | None]
"""Shows a batch in its order of presentation; answers it best first, or None where the answer was invalid."""

POOL = 40
MIN_JUDGED = 8
SPREAD = 0.35  # of the utility around the human grade
SLIP = 0.25  # chance that the stage grade is off by one
LEAST, MOST = 1, 5
SYNTHETIC_GRADES = ((2, 3, 4, 5), (0.2, 0.38, 0.22, 0.2))  # of judged passages; the rest of the pool has grade 1


@dataclass(frozen=True)
class Query:
    """Human grades, 1 to 5, of the judged passages, and ids to fill the pool with."""

    qid: str
    grades: Mapping[str, int]
    others: Sequence[str]

    @property
    def number(self) -> int:
        """The digits of the id."""
        return int("".join(filter(str.isdigit, self.qid)) or 0)


@dataclass(frozen=True)
class World:
    """A pool; arrays are aligned with `ids`, which are sorted."""

    qid: str
    ids: tuple[str, ...]
    human: Floats
    utility: Floats
    grades: Floats


@dataclass(frozen=True)
class Judge:
    """How a simulated judge orders a batch.

    Attributes:
        beta: sharpness: Plackett-Luce over beta times the utility.
        position: what the first of a list gains over the last, as a utility; spread evenly over the list.
        fixed: whether each pair has one outcome, drawn once by Bradley-Terry; a batch is then ordered by its number
            of wins inside the batch, ties by a number drawn once for each item. Asking again changes nothing.
        invalid: chance that an answer is of no use.
    """

    beta: float
    position: float = 0.0
    fixed: bool = False
    invalid: float = 0.0


JUDGES: Mapping[str, Judge] = MappingProxyType(
    {
        "sharp": Judge(6.0),
        "medium": Judge(3.0),
        "noisy": Judge(1.5),
        "position-biased": Judge(3.0, position=1.2),  # 0.3 a step in a list of five
        "self-consistent": Judge(3.0, fixed=True),
        "invalid 2 %": Judge(3.0, invalid=0.02),
        "invalid 10 %": Judge(3.0, invalid=0.1),
    }
)


def load_queries(folder: Path) -> list[Query]:
    """The queries of a labelled collection that have enough judged passages.

    Raises:
        raggs.base.errors.RaggsError: a file of the folder cannot be read.
        ValueError: a grade above 5.
    """
    grades: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for label in read_qrels(folder / "qrels.trec"):
        if label.grade > MOST:
            raise ValueError(f"qrels.trec, line {label.line}: grade {label.grade} is above {MOST}")
        if label.grade >= LEAST:
            grades[label.qid][label.doc_id] = label.grade
    corpus, asked = ([json.loads(line)["_id"] for line in (folder / name).open()] for name in FILES)
    return [
        Query(qid, grades[qid], [name for name in corpus if name not in grades[qid]])
        for qid in asked
        if len(grades[qid]) >= MIN_JUDGED
    ]


FILES = ("corpus.jsonl", "queries.jsonl")


def synthetic_queries(count: int, seed: int) -> list[Query]:
    """Made-up queries q1..q`count` with 8 to 24 judged passages, graded about as often as in human labels."""
    queries = []
    for number in range(1, count + 1):
        rng = generator(seed, "synthetic", number)
        judged = int(rng.integers(MIN_JUDGED, 25))
        values = rng.choice(SYNTHETIC_GRADES[0], p=SYNTHETIC_GRADES[1], size=judged).tolist()
        names = [f"q{number}-p{index}" for index in range(judged + POOL)]
        queries.append(Query(f"q{number}", dict(zip(names, values, strict=False)), names[judged:]))
    return queries


def scarce_queries(count: int, seed: int) -> list[Query]:
    """Made-up queries with 1 to 5 passages of a grade above 1; the rest of the pool is of no use."""
    queries = []
    for number in range(1, count + 1):
        rng = generator(seed, "scarce", number)
        judged = int(rng.integers(1, 6))
        values = rng.choice(SYNTHETIC_GRADES[0], p=SYNTHETIC_GRADES[1], size=judged).tolist()
        names = [f"q{number}-p{index}" for index in range(judged + POOL)]
        queries.append(Query(f"q{number}", dict(zip(names, values, strict=False)), names[judged:]))
    return queries


def make_world(query: Query, seed: int, pool: int = POOL) -> World:
    """The judged passages and random others up to `pool`; utilities and stage grades drawn for (seed, query)."""
    rng = generator(seed, "world", query.qid)
    judged = sorted(query.grades)
    names = [judged[index] for index in rng.permutation(len(judged))[:pool]]
    names += [query.others[index] for index in rng.permutation(len(query.others))[: pool - len(names)]]
    ids = tuple(sorted(names))
    human = np.array([float(query.grades.get(name, LEAST)) for name in ids])
    utility = human + rng.normal(0.0, SPREAD, human.size)
    slips = np.where(rng.random(human.size) < SLIP, rng.choice([-1.0, 1.0], human.size), 0.0)
    return World(query.qid, ids, human, utility, np.clip(human + slips, LEAST, MOST))


def make_judge(judge: Judge, world: World, seed: int, *names: object) -> Ask:
    """A judge of `world`. Noise comes from (seed, query, names); fixed outcomes from (seed, query) alone."""
    rng = generator(seed, "judge", world.qid, *names)
    wins, ties = _fixed_outcomes(judge, world, seed)

    def ask(shown: Ints) -> Ints | None:
        if judge.invalid and rng.random() < judge.invalid:
            return None
        if judge.fixed:
            return np.asarray(shown[np.lexsort((ties[shown], -wins[np.ix_(shown, shown)].sum(axis=1)))])
        bonus = judge.position * np.linspace(1.0, 0.0, shown.size)
        keys = judge.beta * (world.utility[shown] + bonus) + rng.gumbel(size=shown.size)
        return np.asarray(shown[np.argsort(-keys, kind="stable")])

    return ask


def _fixed_outcomes(judge: Judge, world: World, seed: int) -> tuple[Ints, Floats]:
    rng = generator(seed, "pairs", world.qid)
    gaps = judge.beta * (world.utility[:, None] - world.utility[None, :])
    upper = np.triu(rng.random(gaps.shape) < 1.0 / (1.0 + np.exp(-gaps)), k=1)
    lower = np.tril(~upper.T, k=-1)
    return (upper | lower).astype(np.int64), rng.random(world.utility.size)


def tau(places: Ints) -> float:
    """Kendall's tau of an order against the truth; `places` are the distinct true places in the order's sequence."""
    rising = np.sign(places[None, :] - places[:, None])
    return float(rising[np.triu_indices(places.size, k=1)].mean())


def true_places(world: World) -> Ints:
    """The true place of each item, from 0 for the highest utility."""
    return np.argsort(np.argsort(-world.utility, kind="stable"), kind="stable")


def overlap(places: Ints, top: int) -> float:
    """The share of the first `top` of an order that truly belongs there."""
    return float((places[:top] < top).mean())


def ndcg(gains: Floats, top: int) -> float:
    """nDCG@`top` for `gains` in the order's sequence; linear gains, discounts log2(1 + rank). 1 where nothing gains."""
    discounts = 1.0 / np.log2(np.arange(2, 2 + min(top, gains.size)))
    ideal = float(np.sort(gains)[::-1][: discounts.size] @ discounts)
    return float(gains[: discounts.size] @ discounts) / ideal if ideal else 1.0


def measures(world: World, order: Ints, top: int = 20) -> dict[str, float]:
    """tau over the pool, tau20 inside the true top, ov20 and ov10 of the top, ndcg by the human grades less 1."""
    places = true_places(world)[order]
    return {
        "tau": tau(places),
        "tau20": tau(places[places < top]),
        "ov20": overlap(places, top),
        "ov10": overlap(places, top // 2),
        "ndcg": ndcg(world.human[order] - LEAST, top),
    }
