"""Compare a cascade of two judges with the cheap judge, the good judge and panels: quality of the grades, and cost.

    python benchmarks/cascade.py --data FOLDER --out benchmarks/results/cascade.md    two minutes
    python benchmarks/cascade.py --quick                                              synthetic queries, seconds

Pools are those of `ranking.py` (ranking_worlds.py): 40 passages with human grades. Unlabelled passages have a true
value of 0.6, so that grade 1 is easy. A judge sees the grade with four errors:

- an ambiguity that all judges share (SD 0.25)
- an error that it repeats
- an error that is new in each call
- an error of its kind: a lenient judge raises low grades; a misled judge confuses some irrelevant and relevant passages

The good judge makes few errors. A table shows how often each judge is right.

The rule of raggs decides which passages the good judge grades. A grade of the good judge costs 0.17 cents: 1,000 input
tokens at 1.1 USD and 60 output tokens at 10 USD per million. The cheap judge costs a fifth or a fifteenth of it.

nDCG@10 belongs to six simulated systems. Its error is the mean absolute difference between the judge's grades and the
human grades. A false grade of 5 is a 5 for a passage of grade 3 or less. A miss is a 1 or 2 for a passage of grade 4 or
more. Both are counted per 100 queries. The figure after +- is the standard error over queries, and each query is the
mean of its worlds. Differences are paired.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from types import MappingProxyType

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy

import numpy as np
from ranking_methods import engine
from ranking_tables import BEGIN, END, put_between_markers
from ranking_worlds import (
    LEAST,
    MOST,
    POOL,
    Floats,
    Ints,
    Judge,
    Query,
    World,
    load_queries,
    make_judge,
    make_world,
    measures,
    ndcg,
    synthetic_queries,
)

from raggs.base.artifacts import JudgeRecord
from raggs.base.hashing import generator
from raggs.base.judge_health import CascadeHealth
from raggs.parts.judges.composite import CascadeConfig
from raggs.stages.judge_health import CascadeStatistics
from raggs.stats.agreement import count_pairs

TOP, SYSTEMS, UNSEEN, SHARED = 10, 6, 0.6, 0.25
GOOD_USD = 0.0017
RATIOS = (5, 15)
NEAR = 0.005  # largest accepted increase of the nDCG@10 error
SET = 50  # queries of a golden set, for the random sample


@dataclass(frozen=True)
class Kind:
    """Errors of a judge.

    Attributes:
        own: standard deviation of the error that it repeats.
        new: standard deviation of the error that is new in each call.
        lifts: how far it raises the lowest grade.
        misled: share of passages that it confuses.
    """

    own: float
    new: float
    lifts: float = 0.0
    misled: float = 0.0


GOOD = Kind(0.25, 0.1, misled=0.002)
KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "careful": Kind(0.35, 0.2),
        "noisy": Kind(0.6, 0.3),
        "wavering": Kind(0.35, 0.6),
        "lenient": Kind(0.45, 0.3, lifts=0.7),
        "misled": Kind(0.45, 0.3, misled=0.05),
    }
)


class Voice:
    """A judge of one world."""

    def __init__(self, kind: Kind, world: World, seed: int, name: str) -> None:
        rng = generator(seed, "voice", world.qid, name)
        shared = generator(seed, "shared", world.qid).normal(0, SHARED, world.human.size)
        self._kind, self._rng = kind, generator(seed, "voice", world.qid, name, "new")
        base = np.where(world.human > LEAST, world.human, UNSEEN)
        lift = kind.lifts * (MOST - world.human) / (MOST - LEAST)
        wrong = rng.random(world.human.size) < kind.misled
        jump = np.where(wrong, np.where(world.human <= 2, rng.uniform(2, 4, wrong.size), -2.0), 0.0)
        self.sees: Floats = base + lift + jump + shared + rng.normal(0, kind.own, world.human.size)

    def grades(self) -> Ints:
        """Return one sample of the grade of each passage."""
        seen = self.sees + self._rng.normal(0, self._kind.new, self.sees.size)
        return np.clip(np.rint(seen), LEAST, MOST).astype(np.int64)


@dataclass(frozen=True)
class Graded:
    """Grades of a pool, and the numbers of grades from each judge."""

    grades: Ints
    cheap: int
    good: int


Way = Callable[["Bench"], Graded]


class Bench:
    """All grades of one world, shared by all methods."""

    def __init__(self, world: World, kind: Kind, seed: int) -> None:
        cheap, self.good = Voice(kind, world, seed, "cheap"), Voice(GOOD, world, seed, "good").grades()
        self.samples = [cheap.grades() for _ in range(3)]
        self.others = [Voice(kind, world, seed, f"other {number}").grades() for number in range(2)]
        self.drawn = generator(seed, "drawn", world.qid).random(world.human.size)
        self.size = world.human.size


def median(given: Sequence[Ints]) -> Ints:
    """Return the lower median of the grades of each passage."""
    return np.sort(np.array(given), axis=0)[(len(given) - 1) // 2]


def config(samples: int, ask_from: int | None, audit: float) -> CascadeConfig:
    members = [{"type": "nuggets"}, {"type": "reference"}]
    return CascadeConfig.model_validate({"judges": members, "samples": samples, "ask_from": ask_from, "audit": audit})


def cascade(samples: int, ask_from: int | None, audit: float, *, others: int = 0) -> Way:
    """Return a cascade with the rule of raggs: samples of one cheap judge, and one sample each of others."""
    rule = config(samples, ask_from, audit)

    def grade(bench: Bench) -> Graded:
        given = [*bench.samples[:samples], *bench.others[:others]]
        ruled = np.array([rule.asks_good(column) for column in np.array(given).T.tolist()])
        asked = ruled | (bench.drawn < audit)
        return Graded(np.where(asked, bench.good, median(given)), len(given) * bench.size, int(asked.sum()))

    return grade


def ways() -> dict[str, Way]:
    found: dict[str, Way] = {
        "cheap judge": lambda bench: Graded(bench.samples[0], bench.size, 0),
        "cheap judge, 3 samples": lambda bench: Graded(median(bench.samples), 3 * bench.size, 0),
        "panel of 3 cheap judges": lambda bench: Graded(median([bench.samples[0], *bench.others]), 3 * bench.size, 0),
        "good judge": lambda bench: Graded(bench.good, 0, bench.size),
    }
    for samples in (1, 2, 3):
        for ask_from in (2, 3, 4, None):
            if samples > 1 or ask_from:
                name = f"cascade, {samples} sample{'s' if samples > 1 else ''}, `ask_from: {ask_from or 'null'}`"
                found[name] = cascade(samples, ask_from, 0.05)
    for audit in (0.0, 0.1, 0.2):
        found[f"cascade, 1 sample, `ask_from: 3`, `audit: {audit:g}`"] = cascade(1, 3, audit)
    for ask_from in (3, 4):
        found[f"cascade, 2 cheap judges, `ask_from: {ask_from}`"] = cascade(1, ask_from, 0.05, others=1)
    return found


Row = dict[str, float]


def scored(world: World, found: Graded, systems: Sequence[Ints]) -> Row:
    truth, grades = world.human.astype(np.int64), found.grades
    errors = [ndcg(grades[order] - LEAST, TOP) - ndcg(world.human[order] - LEAST, TOP) for order in systems]
    return {
        "exact": float((grades == truth).mean()),
        "ndcg": float(np.abs(errors).mean()),
        "false": 100.0 * int(((grades == MOST) & (truth <= 3)).sum()),
        "missed": 100.0 * int(((grades <= 2) & (truth >= 4)).sum()),
        "asked": found.good / truth.size,
        **{f"usd{ratio}": GOOD_USD * (found.good + found.cheap / ratio) for ratio in RATIOS},
    }


def orders_of(world: World, seed: int) -> list[Ints]:
    rng = generator(seed, "systems", world.qid)
    return [
        np.argsort(-(world.human + spread * rng.normal(size=world.human.size)))
        for spread in np.linspace(0.4, 1.4, SYSTEMS)
    ]


@dataclass(frozen=True)
class Played:
    """Means of each figure over the worlds of a query, and the pairs of true and given grades."""

    rows: Mapping[str, Floats]
    pairs: Sequence[Mapping[tuple[float | None, float | None], int]]

    def mean(self, figure: str) -> tuple[float, float]:
        return mean(self.rows[figure])

    def kappa(self) -> float:
        total: dict[tuple[float | None, float | None], int] = {}
        for pairs in self.pairs:
            for pair, count in pairs.items():
                total[pair] = total.get(pair, 0) + count
        return count_pairs(total).kappa("quadratic")


def mean(values: Floats) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


def play(queries: Sequence[Query], kind: Kind, seeds: int) -> dict[str, Played]:
    every = ways()
    rows: dict[str, list[Row]] = {name: [] for name in every}
    pairs: dict[str, list[dict[tuple[float | None, float | None], int]]] = {name: [] for name in every}
    for query in queries:
        mine: dict[str, list[Row]] = {name: [] for name in every}
        table: dict[str, dict[tuple[float | None, float | None], int]] = {name: {} for name in every}
        for seed in range(seeds):
            world = make_world(query, seed)
            bench, systems = Bench(world, kind, seed), orders_of(world, seed)
            for name, way in every.items():
                found = way(bench)
                mine[name].append(scored(world, found, systems))
                for pair in zip(world.human.tolist(), found.grades.tolist(), strict=True):
                    table[name][pair] = table[name].get(pair, 0) + 1
        for name in every:
            rows[name].append({key: float(np.mean([row[key] for row in mine[name]])) for key in mine[name][0]})
            pairs[name].append(table[name])
    return {
        name: Played({key: np.array([row[key] for row in rows[name]]) for key in rows[name][0]}, pairs[name])
        for name in every
    }


# --- tables ---------------------------------------------------------------------------------------------------

HEAD = (
    "| grades by | graded by the good judge | cents per query, 1:5 | 1:15 | exact grades | kappa | nDCG@10 error "
    "| minus that of the good judge | false grades of 5 | misses |\n|---|---|---|---|---|---|---|---|---|---|"
)


def table(found: Mapping[str, Played]) -> Iterator[str]:
    yield HEAD
    good = found["good judge"].rows["ndcg"]
    for name, played in found.items():
        exact, error, less = played.mean("exact"), played.mean("ndcg"), mean(played.rows["ndcg"] - good)
        false, missed = (f"{value:.0f} ± {spread:.0f}" for value, spread in map(played.mean, ("false", "missed")))
        apart = "" if name == "good judge" else f"{less[0]:+.4f} ± {less[1]:.4f}"
        yield (
            f"| {name} | {played.mean('asked')[0]:.0%} | {100 * played.mean('usd5')[0]:.2f} "
            f"| {100 * played.mean('usd15')[0]:.2f} | {exact[0]:.3f} ± {exact[1]:.3f} | {played.kappa():.3f} "
            f"| {error[0]:.4f} ± {error[1]:.4f} | {apart} | {false} | {missed} |"
        )


def chosen(even: Mapping[str, Played], odd: Mapping[str, Played]) -> Iterator[str]:
    """Yield the cheapest method with a small enough nDCG@10 error on the even half, and its result on the odd half."""
    for ratio in RATIOS:
        price, base = f"usd{ratio}", even["good judge"].rows["ndcg"]
        near = [name for name, each in even.items() if mean(each.rows["ndcg"] - base)[0] <= NEAR]
        name = min(near, key=lambda name: even[name].mean(price)[0])
        error = mean(odd[name].rows["ndcg"] - odd["good judge"].rows["ndcg"])
        saved = 1 - odd[name].mean(price)[0] / odd["good judge"].mean(price)[0]
        yield (
            f"- Prices 1:{ratio}: {name}. On the odd half, it saves {saved:.0%}, and its nDCG@10 error minus that of "
            f"the good judge is {error[0]:+.4f} ± {error[1]:.4f}."
        )


def pooled(parts: Sequence[Mapping[str, Played]]) -> dict[str, Played]:
    """Return the mean over kinds of judges, by query."""
    return {
        name: Played(
            {key: np.mean([part[name].rows[key] for part in parts], axis=0) for key in parts[0][name].rows},
            [pairs for part in parts for pairs in part[name].pairs],
        )
        for name in parts[0]
    }


def confused(queries: Sequence[Query], seeds: int) -> Iterator[str]:
    """Yield how often each judge is right, by true grade."""
    yield "| judge | " + " | ".join(f"exact on grade {grade}" for grade in range(1, 6)) + " | repeats its grade |"
    yield "|---" * 7 + "|"
    for name, kind in {"good judge": GOOD, **KINDS}.items():
        right, count, same = np.zeros(6), np.zeros(6), list[float]()
        for query in queries:
            for seed in range(seeds):
                world = make_world(query, seed)
                voice = Voice(kind, world, seed, "cheap")
                once, again = voice.grades(), voice.grades()
                truth = world.human.astype(int)
                np.add.at(count, truth, 1)
                np.add.at(right, truth, once == truth)
                same.append(float((once == again).mean()))
        yield (
            f"| {name} | " + " | ".join(f"{right[g] / count[g]:.0%}" for g in range(1, 6)) + f" | {np.mean(same):.0%} |"
        )


def random_sample(queries: Sequence[Query], seeds: int) -> Iterator[str]:
    """Yield the estimates from the random sample of 50 queries: width, coverage and warnings."""
    yield (
        "| cheap judge | `ask_from` | `audit` | passages in the sample | missed share | its 95% interval "
        "| coverage | runs with a warning |"
    )
    yield "|---" * 8 + "|"
    for (name, kind), least in product(KINDS.items(), (2, 3)):
        for audit in (0.02, 0.05, 0.1):
            runs = [one_set(queries, kind, (least, audit), seed) for seed in range(seeds)]
            low, high = (np.mean([run.health.unseen.interval[end] for run in runs]) for end in (0, 1))
            holds = np.mean(
                [run.health.unseen.interval[0] <= run.unseen <= run.health.unseen.interval[1] for run in runs]
            )
            yield (
                f"| {name} | {least} | {audit:g} | {np.mean([run.health.by_chance for run in runs]):.0f} "
                f"| {np.mean([run.unseen for run in runs]):.1%} | {low:.1%} to {high:.1%} | {holds:.0%} "
                f"| {np.mean([bool(run.health.warnings) for run in runs]):.0%} |"
            )


@dataclass(frozen=True)
class OneSet:
    """Statistics of the records of a set, and the share of relevant passages that the good judge never saw."""

    health: CascadeHealth
    unseen: float


def one_set(queries: Sequence[Query], kind: Kind, setting: tuple[int, float], seed: int) -> OneSet:
    """Return the statistics of a random set of queries, each in another world."""
    (least, audit), rng = setting, generator(seed, "sets")
    rule, seen, unseen = config(1, least, audit), 0, 0
    statistics = CascadeStatistics(rule)
    for number, at in enumerate(rng.integers(len(queries), size=SET)):
        bench = Bench(make_world(queries[at], 1000 * seed + number), kind, 1000 * seed + number)
        for cheap, good, drawn in zip(bench.samples[0].tolist(), bench.good.tolist(), bench.drawn, strict=True):
            asked = rule.asks_good([cheap]) or drawn < audit
            seen, unseen = seen + (asked and good >= least), unseen + (not asked and good >= least)
            votes = {"cheap": (cheap,), "good": (good,)} if asked else {"cheap": (cheap,)}
            record = JudgeRecord.model_construct(
                qid="q", doc_id="d", judge="cascade", grades=(good if asked else cheap,), votes=votes
            )
            statistics.see(record)
    health = statistics.health()
    assert health is not None
    return OneSet(health, unseen / (seen + unseen))


ORDERS = {"good judge": (GOOD, 5.0, "the good one"), "cheap judge": (KINDS["noisy"], 2.0, "the cheap one")}
CALLS = (8, 16, 40, 80)


def ordered(queries: Sequence[Query], seeds: int) -> Iterator[str]:
    """Yield the quality of orders by each judge, which start from the grades of a cascade.

    A judge repeats its errors in all batches.
    """
    yield "| orders by | calls of five | cost, 1:5 | 1:15 | tau20 | ov10 |\n|---|---|---|---|---|---|"
    grade = cascade(1, 3, 0.05)
    for name, (kind, beta, seed_name) in ORDERS.items():
        found: dict[int, list[list[dict[str, float]]]] = {calls: [] for calls in CALLS}
        for query in queries:
            mine: dict[int, list[dict[str, float]]] = {calls: [] for calls in CALLS}
            for seed in range(seeds):
                world = make_world(query, seed)
                given = grade(Bench(world, KINDS["noisy"], seed)).grades.astype(float)
                error = Voice(kind, world, seed, f"orders {seed_name}").sees - np.where(
                    world.human > LEAST, world.human, UNSEEN
                )
                asked = replace(world, grades=given)
                ask = make_judge(Judge(beta), replace(world, utility=world.utility + error), seed, seed_name)
                for shot in engine("bayes", saving=0.0)(asked, ask, CALLS, generator(seed, seed_name, world.qid)):
                    if shot.budget in mine:
                        mine[shot.budget].append(measures(world, shot.order))
            for calls in CALLS:
                found[calls].append(mine[calls])
        for calls in CALLS:
            tau20, ov10 = (
                mean(np.array([np.mean([each[key] for each in worlds]) for worlds in found[calls]]))
                for key in ("tau20", "ov10")
            )
            price = [calls if name == "good judge" else calls / ratio for ratio in RATIOS]
            yield (
                f"| {name} | {calls} | {price[0]:.1f} | {price[1]:.1f} "
                f"| {tau20[0]:.3f} ± {tau20[1]:.3f} | {ov10[0]:.3f} ± {ov10[1]:.3f} |"
            )


def page(queries: Sequence[Query], seeds: int, order_seeds: int) -> Iterator[str]:
    halves = {"even": [q for q in queries if q.number % 2 == 0], "odd": [q for q in queries if q.number % 2]}
    counted = ", ".join(f"{len(part)} {name}" for name, part in halves.items())
    yield f"{counted} queries, pools of {POOL}, {seeds} worlds per query.\n"
    played = {name: {kind: play(part, KINDS[kind], seeds) for kind in KINDS} for name, part in halves.items()}
    whole = {name: pooled(list(found.values())) for name, found in played.items()}
    yield "## Cheapest method with an nDCG@10 error near that of the good judge\n"
    yield from chosen(whole["even"], whole["odd"])
    yield "\n## Accuracy of the judges\n"
    yield from confused(halves["odd"], min(seeds, 2))
    for name, found in whole.items():
        yield f"\n## Mean over the five cheap judges, {name} half\n"
        yield from table(found)
    for kind, found in played["odd"].items():
        yield f"\n### Cheap judge: {kind}, odd half\n"
        yield from table(found)
    yield "\n## Estimate of missed passages from the random sample\n"
    yield from random_sample(queries, 5 * seeds)
    yield "\n## Ranking by the good or the cheap judge\n"
    yield from ordered(halves["odd"], order_seeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with corpus.jsonl, queries.jsonl and qrels.trec")
    parser.add_argument("--out", type=Path, help="write the tables to this file instead of the screen")
    parser.add_argument("--quick", action="store_true", help="use 12 synthetic queries and one world")
    options = parser.parse_args()
    queries = load_queries(options.data) if options.data else synthetic_queries(12 if options.quick else 60, 0)
    text = "\n".join(page(queries, *((1, 1) if options.quick else (4, 2))))
    if options.out:
        old = options.out.read_text(encoding="utf-8") if options.out.exists() else f"{BEGIN}\n{END}\n"
        options.out.write_text(put_between_markers(old, text), encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
