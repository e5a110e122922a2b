"""Measure cost and quality of `judge.group`: one, three, five and ten passages per grading call.

    python benchmarks/grouping.py --data FOLDER --out benchmarks/results/grouping.md    minutes; FOLDER as in ranking.py
    python benchmarks/grouping.py --quick                                               synthetic queries, seconds

Pools and true grades are those of `ranking.py` (ranking_worlds.py). The code of the judge stage draws the groups. A
judge sees the true grade with an error that it repeats (`own`) and an error that is new in each call (`fresh`). Then it
rounds. With a group context effect, each passage first moves by the share `context` towards the mean of the
other passages, or away from it. With less attention per passage, the new error grows with the group.

The shift by canaries corresponds to `judge.canaries`. It is the grade of a passage among the first passages of its
pool, minus its grade among irrelevant passages. The shift by samples is the one that the manifest of a run with
three samples reports: the change of a grade if the mean of the other passages is one grade higher.

nDCG@10 belongs to eight systems of known quality. Its error is the mean absolute difference between the judge's grades
and the true grades. The bias towards the fused rank is its advantage by the judge's grades over an equally good system
with independent errors. The required number of queries is (sd / mean)^2 of the differences between two systems, as a
geometric mean over pairs of systems. A setting is cheaper if this number of queries costs less than with single calls.
The figure after +- is the standard error, by resampling queries. Differences are paired. The errors of a sample are the
same in all settings. Tokens are counted from the prompts.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy

import numpy as np
from ranking_tables import BEGIN, END, put_between_markers
from ranking_worlds import POOL, Floats, Ints, Query, World, load_queries, make_world, synthetic_queries

from raggs.base.artifacts import JudgeRecord
from raggs.base.hashing import generator
from raggs.prompts import load_prompt
from raggs.stages.judge import GroupContextMoves, groups

SIZES = (1, 3, 5, 10)
LENGTHS = (60, 120, 250, 500, 1000)  # tokens of a passage
SYSTEMS = np.linspace(0.6, 2.0, 8)  # noise of each system around the true utility
FUSED = 1.0  # noise of the fused rank around the true utility
APART = 3  # distance between the two systems of a pair
CUTOFF, DRAWS = 10, 400
BYTES = 4.5  # per token
MARKS, QUERY, ANSWER, LABEL = 26, 16, 34, 6  # tokens of delimiters, a query, a grade with its reason, a label
OUT = 8.0  # cost of an output token, in input tokens


@dataclass(frozen=True)
class Judge:
    """Errors of a judge (see the module).

    Attributes:
        crowding: relative growth of the variance of the new error per additional passage.
    """

    own: float = 0.45
    fresh: float = 0.45
    context: float = 0.0
    crowding: float = 0.0


JUDGES: Mapping[str, Judge] = MappingProxyType(
    {
        "no context effect": Judge(),
        "slightly towards the group": Judge(context=0.1),
        "strongly towards the group": Judge(context=0.25),
        "slightly away from the group": Judge(context=-0.1),
        "strongly away from the group": Judge(context=-0.25),
        "less attention per passage": Judge(crowding=0.15),
        "noisy, no context effect": Judge(own=0.6, fresh=0.9),
    }
)


@dataclass(frozen=True)
class Way:
    """Settings of the grading calls.

    Attributes:
        shuffled: whether groups are random; otherwise, neighbours in the pool are in one group.
    """

    size: int
    samples: int = 1
    shuffled: bool = True

    def __str__(self) -> str:
        drawn = "" if self.shuffled or self.size == 1 else ", neighbours in the pool"
        return f"{self.size}{f', {self.samples} samples' if self.samples > 1 else ''}{drawn}"


WAYS = (
    *(Way(size) for size in SIZES),
    Way(5, shuffled=False),
    Way(1, samples=2),
    Way(5, samples=3),
)


@dataclass(frozen=True)
class Bench:
    """A pool in the order of its fused rank.

    Attributes:
        seen: true grades with the errors that the judge repeats.
    """

    world: World
    seen: Floats
    seed: int

    @classmethod
    def of(cls, query: Query, judge: Judge, seed: int) -> Bench:
        """Return the pool of a query."""
        world = make_world(query, seed)
        rng = generator(seed, "grouping", query.qid)
        order = np.argsort(-(world.utility + rng.normal(0, FUSED, world.human.size)), kind="stable")
        ids = tuple(world.ids[place] for place in order)
        world = World(world.qid, ids, world.human[order], world.utility[order], world.grades[order])
        return cls(world, world.human + rng.normal(0, judge.own, world.human.size), seed)


def graded(bench: Bench, judge: Judge, way: Way) -> Ints:
    """Return the grade of each passage of the pool: the lower median of its samples."""
    found = [samples(bench, judge, way, number) for number in range(way.samples)]
    ordered = np.sort(np.stack(found), axis=0)
    return ordered[(way.samples - 1) // 2].astype(np.int64)


def samples(bench: Bench, judge: Judge, way: Way, sample: int) -> Floats:
    """Return the grades of one sample."""
    count = bench.seen.size
    given, noise = np.empty(count), generator(bench.seed, "call", bench.world.qid, sample).normal(0, 1, count)
    drawn = groups(bench.world.qid, 0, count, way.size, sample)
    if not way.shuffled:
        places = np.cumsum([0, *map(len, drawn)])
        drawn = [list(range(start, end)) for start, end in pairwise(places)]
    for group in drawn:
        given[group] = grades_of(bench.seen[group], judge, noise[group])
    return given


def grades_of(seen: Floats, judge: Judge, noise: Floats) -> Ints:
    """Return the grades of the passages of one call.

    Args:
        noise: new errors of this call, in standard deviations.
    """
    size = seen.size
    fresh = seen + noise * judge.fresh * (1 + judge.crowding * (size - 1)) ** 0.5
    if size > 1 and judge.context:
        others = (fresh.sum() - fresh) / (size - 1)
        fresh = fresh + judge.context * (others - fresh)
    return np.clip(np.rint(fresh), 1, 5).astype(np.int64)


def shift_by_samples(benches: Sequence[Bench], judge: Judge, way: Way) -> str:
    """Return the context effect that the judge stage measures from samples, with its interval."""
    moves = GroupContextMoves(way.samples, None, way.size, 2)
    for bench in benches:
        given = [samples(bench, judge, way, number) for number in range(way.samples)]
        for place, grades in enumerate(zip(*given, strict=True)):
            found = tuple(int(grade) for grade in grades)
            moves.see(
                JudgeRecord(qid=bench.world.qid, rank=place + 1, doc_id=str(place), grade=3, grades=found, judge="x")
            )
    shift = moves.company()
    if shift is None or shift.grades is None or shift.interval is None:
        return ""
    return f"{shift.grades:+.2f} [{shift.interval[0]:+.2f}, {shift.interval[1]:+.2f}]"


def shift_by_canaries(benches: Sequence[Bench], judge: Judge, size: int) -> float:
    """Return the shift that canaries measure, in grades; 0 for single calls."""
    if size == 1:
        return 0.0
    moves = []
    for bench in benches:
        strangers = 1 + generator(bench.seed, "strangers", bench.world.qid).normal(0, judge.own, size - 1)
        target = bench.seen[size - 1]
        among = [
            grades_of(
                np.array([target, *others]), judge, generator(bench.seed, name, bench.world.qid).normal(0, 1, size)
            )[0]
            for name, others in (("good", bench.seen[: size - 1]), ("bad", strangers))
        ]
        moves.append(int(among[0]) - int(among[1]))
    return float(np.mean(moves))


# --- measures -------------------------------------------------------------------------------------------------


def ndcg(grades: Ints | Floats, order: Ints) -> float:
    """Return nDCG@10 with gain grade - 1."""
    gains, discount = np.asarray(grades, dtype=np.float64) - 1, 1 / np.log2(np.arange(2, CUTOFF + 2))
    best = np.sort(gains)[::-1][:CUTOFF]
    ideal = float(best @ discount[: best.size])
    return float(gains[order[:CUTOFF]] @ discount[: order[:CUTOFF].size]) / ideal if ideal else 1.0


def played(bench: Bench, judge: Judge, way: Way) -> Floats:
    """Return sums of one pool: counts of true and given grades (25), error, bias, differences, squares."""
    world, given = bench.world, graded(bench, judge, way)
    counts = np.zeros((5, 5))
    np.add.at(counts, (world.human.astype(int) - 1, given - 1), 1)
    rng = generator(bench.seed, "systems", world.qid)
    orders = [np.argsort(-(world.utility + rng.normal(0, noise, given.size)), kind="stable") for noise in SYSTEMS]
    alike = np.argsort(
        -(world.utility + rng.normal(0, FUSED, given.size)), kind="stable"
    )  # equally good, with independent errors
    orders += [np.arange(given.size), alike]
    true, judged = (np.array([ndcg(grades, order) for order in orders]) for grades in (world.human, given))
    gap, systems = judged - true, judged[: SYSTEMS.size]
    differences = systems[:-APART] - systems[APART:]
    error, bias = np.abs(gap[: SYSTEMS.size]).mean(), gap[-2] - gap[-1]
    return np.array([*counts.ravel(), error, bias, *differences, *differences**2])


def figures(sums: Floats, pools: Floats) -> dict[str, Floats]:
    """Return all figures of one setting.

    Args:
        sums: shape (draws, sums of a pool).
        pools: number of pools in each sum.
    """
    counts = sums[:, :25].reshape(-1, 5, 5)
    total = counts.sum(axis=(1, 2))
    weights = np.subtract.outer(np.arange(5), np.arange(5)) ** 2
    expected = counts.sum(axis=2)[:, :, None] * counts.sum(axis=1)[:, None, :] / total[:, None, None]
    rest = sums[:, 25:] / pools[:, None]
    means, squares = np.split(rest[:, 2:], 2, axis=1)
    return {
        "exact": np.trace(counts, axis1=1, axis2=2) / total,
        "kappa": 1 - (weights * counts).sum(axis=(1, 2)) / (weights * expected).sum(axis=(1, 2)),
        "error": rest[:, 0],
        "bias": rest[:, 1],
        "need": np.exp(np.log((squares - means**2) / means**2).mean(axis=1)),
    }


Found = dict[str, tuple[float, float]]


def compared(found: Floats, base: Floats) -> tuple[Found, Found]:
    """Return each figure with its standard error; and the difference in kappa and the ratio of queries to `base`.

    Args:
        found, base: shape (queries, worlds, sums of a pool).
    """
    rng = generator(0, "resampled")
    drawn = rng.multinomial(len(found), np.full(len(found), 1 / len(found)), size=DRAWS)
    weights = np.vstack([np.ones(len(found)), drawn])  # the first row: all queries once
    pools = weights.sum(axis=1) * found.shape[1]
    own, other = (figures(weights @ each.sum(axis=1), pools) for each in (found, base))
    relative = {"kappa": own["kappa"] - other["kappa"], "need": own["need"] / other["need"]}
    both = [{name: (float(each[0]), float(each[1:].std())) for name, each in part.items()} for part in (own, relative)]
    return both[0], both[1]


# --- tokens ---------------------------------------------------------------------------------------------------


def tokens(size: int, length: float) -> tuple[float, float]:
    """Return input and output tokens per grade, with `size` passages of so many tokens per call."""
    prompt = load_prompt("grade@1" if size == 1 else "grades@1", "grade" if size == 1 else "grades")
    fixed = len(prompt.text().encode()) / BYTES + QUERY + MARKS
    label = 0 if size == 1 else LABEL
    return fixed / size + length + MARKS + label, ANSWER + label


def price(way: Way, length: float) -> float:
    """Return the cost of the grade of a passage, in input tokens."""
    sent, received = tokens(way.size, length)
    return way.samples * (sent + OUT * received)


def pays(way: Way, need: float) -> str:
    """Return the passage lengths, in tokens, for which equal precision costs less than with single calls.

    Args:
        need: required number of queries, relative to single calls.
    """
    lengths = np.arange(0, 4001, 10)
    cheaper = [need * price(way, length) < price(WAYS[0], length) for length in lengths]
    if all(cheaper):
        return "any"
    return f"below {lengths[cheaper.index(False)]:,}" if cheaper[0] else "none"


# --- pages ----------------------------------------------------------------------------------------------------


def quality(queries: Sequence[Query], seeds: Sequence[int]) -> Iterator[str]:
    """Yield the table of the quality of the grades."""
    yield (
        "| judge | group | exact grades | kappa | kappa minus group 1 | nDCG@10 error | bias towards the fused rank |"
        " queries relative to group 1 | cheaper for passage tokens | shift by canaries | shift by samples |"
    )
    yield "|---" * 11 + "|"
    for name, judge in JUDGES.items():
        benches = [[Bench.of(query, judge, seed) for seed in seeds] for query in queries]
        every = [bench for part in benches for bench in part]
        base = np.array([])
        for way in WAYS:
            found = np.array([[played(bench, judge, way) for bench in part] for part in benches])
            base = base if base.size else found
            own, relative = compared(found, base)
            cells = [shown(own[key]) for key in ("exact", "kappa")]
            cells.append("" if found is base else shown(relative["kappa"], "+.3f"))
            cells += [shown(own["error"]), shown(own["bias"], "+.3f")]
            cells += ["", ""] if found is base else [shown(relative["need"], ".2f"), pays(way, relative["need"][0])]
            plain = way.samples == 1 and way.size > 1 and way.shuffled
            cells.append(f"{shift_by_canaries(every, judge, way.size):+.2f}" if plain else "")
            cells.append(
                shift_by_samples([part[0] for part in benches], judge, way) if way.samples > 1 and way.size > 1 else ""
            )
            yield f"| {name} | {way} | {' | '.join(cells)} |"


def shown(found: tuple[float, float], form: str = ".3f") -> str:
    """Return a figure with its standard error as text."""
    return f"{found[0]:{form}} ± {found[1]:{form.lstrip('+')}}"


def money() -> Iterator[str]:
    """Yield the table of the tokens per grade."""
    heads = [f"group {size}: input, output" for size in SIZES]
    yield f"| passage tokens | {' | '.join(heads)} | saving with 5: input tokens | saving with 5: cost |"
    yield "|---|" + "---|" * (len(SIZES) + 2)
    for length in LENGTHS:
        cells = ["{:,.0f}, {:.0f}".format(*tokens(size, length)) for size in SIZES]
        sent = 1 - tokens(5, length)[0] / tokens(1, length)[0]
        paid = 1 - price(Way(5), length) / price(Way(1), length)
        yield f"| {length:,} | {' | '.join(cells)} | {sent:.0%} | {paid:.0%} |"


def per_query() -> Iterator[str]:
    """Yield the table of the tokens per query."""
    yield f"| passage tokens | {' | '.join(f'group {size}' for size in SIZES)} |"
    yield "|---|" + "---|" * len(SIZES)
    for length in LENGTHS:
        cells = ["{:,.0f}, {:,.0f}".format(*(POOL * each for each in tokens(size, length))) for size in SIZES]
        yield f"| {length:,} | {' | '.join(cells)} |"


def page(queries: Sequence[Query], seeds: Sequence[int]) -> Iterator[str]:
    """Yield the results as Markdown."""
    yield f"{len(queries)} queries, {len(seeds)} worlds per query, pools of {POOL}.\n"
    yield "## Tokens per grade\n"
    yield from money()
    yield f"\nThe cost counts an output token as {OUT:g} input tokens, without prompt caching.\n"
    yield f"## Tokens per query with a pool of {POOL}: input, output\n"
    yield from per_query()
    yield "\n## Grades\n"
    yield from quality(queries, seeds)


def main() -> int:
    """Simulate and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder with corpus.jsonl, queries.jsonl and qrels.trec")
    parser.add_argument("--parity", choices=("even", "odd"), help="half of the queries [default: all]")
    parser.add_argument("--worlds", type=int, default=4, help="worlds per query [default: 4]")
    parser.add_argument("--quick", action="store_true", help="use two worlds")
    parser.add_argument("--out", type=Path, help="also write the tables to this file")
    given = parser.parse_args()
    queries = load_queries(given.data) if given.data else synthetic_queries(12, 1)
    if given.parity:
        queries = [query for query in queries if query.number % 2 == (given.parity == "odd")]
    seeds = range(1, 1 + (2 if given.quick else given.worlds))
    text = "\n".join(page(queries, list(seeds)))
    print(text)
    if given.out:
        old = given.out.read_text(encoding="utf-8") if given.out.exists() else f"{BEGIN}\n{END}\n"
        given.out.write_text(put_between_markers(old, text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
