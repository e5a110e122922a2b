"""Simulated pools and judges around graded queries, and measures of a ranking, for `ranking.py` and others.

A world is the pool of one query with values that only the simulation knows. These are the latent utilities: the human
grade plus normal noise. The engines see a grade that is sometimes off by one. Items are numbers 0..size-1. All random
values depend on (seed, names) only, so a world does not depend on earlier runs.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
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
"""Takes a batch in its order of presentation; returns it best first, or None if the answer is invalid."""

POOL = 40
MIN_JUDGED = 8
SPREAD = 0.35  # standard deviation of the utility around the human grade
SLIP = 0.25  # probability that a grade is off by one
LEAST, MOST = 1, 5
SYNTHETIC_GRADES = ((2, 3, 4, 5), (0.2, 0.38, 0.22, 0.2))  # of labelled passages; the rest of the pool has grade 1


@dataclass(frozen=True)
class Query:
    """Human grades, 1 to 5, of the labelled passages, and ids of other passages for the pool."""

    qid: str
    grades: Mapping[str, int]
    others: Sequence[str]

    @property
    def number(self) -> int:
        """The number in the id."""
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
    """Parameters of a simulated judge.

    Attributes:
        beta: sharpness: orders follow Plackett-Luce with beta times the utility.
        position: advantage of the first passage of a list over the last, as a utility; it decreases evenly.
        fixed: whether each pair has a fixed outcome, drawn by Bradley-Terry. The judge then sorts by wins within
            the batch, and ties by a fixed random number. A repeated batch has the same answer.
        invalid: probability of an invalid answer.
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
        "position-biased": Judge(3.0, position=1.2),  # 0.3 per position in a list of five
        "self-consistent": Judge(3.0, fixed=True),
        "invalid 2 %": Judge(3.0, invalid=0.02),
        "invalid 10 %": Judge(3.0, invalid=0.1),
    }
)


def load_queries(folder: Path) -> list[Query]:
    """Return the queries of a labelled collection that have enough labelled passages.

    Raises:
        raggs.base.errors.RaggsError: a file of the folder is not readable.
        ValueError: a grade above 5.
    """
    grades: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for label in read_qrels(folder / "qrels.trec"):
        if label.grade > MOST:
            raise ValueError(f"qrels.trec, line {label.line}: grade {label.grade} is above {MOST}")
        if label.grade >= LEAST:
            grades[label.qid][label.doc_id] = label.grade
    corpus, qids = ([json.loads(line)["_id"] for line in (folder / name).open()] for name in FILES)
    return [
        Query(qid, grades[qid], [name for name in corpus if name not in grades[qid]])
        for qid in qids
        if len(grades[qid]) >= MIN_JUDGED
    ]


FILES = ("corpus.jsonl", "queries.jsonl")


def synthetic_queries(count: int, seed: int) -> list[Query]:
    """Make queries q1..q`count` with 8 to 24 labelled passages, with about the same grades as human labels."""
    queries = []
    for number in range(1, count + 1):
        rng = generator(seed, "synthetic", number)
        judged = int(rng.integers(MIN_JUDGED, 25))
        values = rng.choice(SYNTHETIC_GRADES[0], p=SYNTHETIC_GRADES[1], size=judged).tolist()
        names = [f"q{number}-p{index}" for index in range(judged + POOL)]
        queries.append(Query(f"q{number}", dict(zip(names, values, strict=False)), names[judged:]))
    return queries


def scarce_queries(count: int, seed: int) -> list[Query]:
    """Make queries with 1 to 5 passages of a grade above 1; the rest of the pool is irrelevant."""
    queries = []
    for number in range(1, count + 1):
        rng = generator(seed, "scarce", number)
        judged = int(rng.integers(1, 6))
        values = rng.choice(SYNTHETIC_GRADES[0], p=SYNTHETIC_GRADES[1], size=judged).tolist()
        names = [f"q{number}-p{index}" for index in range(judged + POOL)]
        queries.append(Query(f"q{number}", dict(zip(names, values, strict=False)), names[judged:]))
    return queries


def world_options(description: str | None, quick: str, worlds: int = 2) -> ArgumentParser:
    """Return a parser with the options for the data, the half of the queries and the number of worlds.

    Args:
        description: text of ``--help``.
        quick: queries that ``--quick`` uses.
        worlds: default number of worlds per query.
    """
    parser = ArgumentParser(description=description, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with corpus.jsonl, queries.jsonl and qrels.trec")
    parser.add_argument("--quick", action="store_true", help=f"use {quick} and one world")
    parser.add_argument("--parity", choices=("odd", "even"), default="odd", help="half of the queries [default: odd]")
    parser.add_argument("--worlds", type=int, default=worlds, help=f"worlds per query [default: {worlds}]")
    return parser


def half_of_queries(given: Namespace, synthetic: int) -> list[Query]:
    """Return the chosen half of the queries. With ``--quick`` or without data, return `synthetic` synthetic queries."""
    if given.quick or given.data is None:
        return synthetic_queries(synthetic, 1)
    return [query for query in load_queries(given.data) if query.number % 2 == (given.parity == "odd")]


def worlds_of(given: Namespace) -> range:
    """Return the numbers of the worlds of each query: one with ``--quick``."""
    return range(1, 2 if given.quick else given.worlds + 1)


def make_world(query: Query, seed: int, pool: int = POOL) -> World:
    """Return a pool of the labelled passages and random others; utilities and grades depend on (seed, query)."""
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
    """Return a judge of `world`. Its errors depend on (seed, query, names), fixed outcomes on (seed, query)."""
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
    """Compute Kendall's tau with the true order; `places` are the distinct true places in the sequence of the order."""
    rising = np.sign(places[None, :] - places[:, None])
    return float(rising[np.triu_indices(places.size, k=1)].mean())


def true_places(world: World) -> Ints:
    """Return the true place of each item, from 0 for the highest utility."""
    return np.argsort(np.argsort(-world.utility, kind="stable"), kind="stable")


def overlap(places: Ints, top: int) -> float:
    """Return the share of the true top `top` that the order has in its top `top`."""
    return float((places[:top] < top).mean())


def ndcg(gains: Floats, top: int) -> float:
    """Compute nDCG@`top` for `gains` in the sequence of the order, with discounts log2(1 + rank); 1 without gains."""
    discounts = 1.0 / np.log2(np.arange(2, 2 + min(top, gains.size)))
    ideal = float(np.sort(gains)[::-1][: discounts.size] @ discounts)
    return float(gains[: discounts.size] @ discounts) / ideal if ideal else 1.0


def measures(world: World, order: Ints, top: int = 20) -> dict[str, float]:
    """Compute tau over the pool, tau20 among the true top, overlaps ov20 and ov10, and ndcg with gains grade - 1."""
    places = true_places(world)[order]
    return {
        "tau": tau(places),
        "tau20": tau(places[places < top]),
        "ov20": overlap(places, top),
        "ov10": overlap(places, top // 2),
        "ndcg": ndcg(world.human[order] - LEAST, top),
    }
