"""What `judge.group` saves and costs: passages graded one by one, and three, five and ten in one call.

    python benchmarks/grouping.py --data FOLDER --out benchmarks/results/grouping.md    minutes; FOLDER as of ranking.py
    python benchmarks/grouping.py --quick                                               made-up queries, seconds

Pools and true grades are those of `ranking.py` (ranking_worlds.py); companies are drawn by the judge stage's own code.
A judge sees the true grade with an error that it repeats (`own`) and one that is new in each call (`fresh`), rounds to
a grade, and leaks: before it rounds, a passage is drawn by `leak` of the way towards the mean of what it sees beside it
(assimilation), or pushed away from it (contrast). Some have less care for each of many: their fresh error grows with
the group. The canary's shift is what `judge.canaries` would tell of such a judge: the last of a pool's first passages
among those before it, less the same one among strangers. What samples tell is the slope that the manifest has of a run
with three samples of these questions: by how much a grade moves for each grade that its company is better.

nDCG@10 is that of eight systems of known quality, by the judge's grades and by the true ones: the error is the mean of
their absolute differences for a question. The favour is by how much more the fused rank itself gains by the judge's
grades than a system as good whose errors are its own. The questions needed are those that tell two of the eight apart,
(sd / mean)^2 of their differences, as a geometric mean over pairs; a way pays where its price for so many questions is
below that of passages alone. +- is the standard error, by resampling queries; differences are paired, and the errors of
a sample are the same ones in every way. Tokens are counted from the prompts as they are sent.
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
from ranking_worlds import POOL, Floats, Ints, Query, World, load_queries, make_world, synthetic_queries

from raggs.base.artifacts import JudgeRecord
from raggs.base.hashing import generator
from raggs.prompts import load_prompt
from raggs.stages.judge import GroupContextMoves, groups

SIZES = (1, 3, 5, 10)
LENGTHS = (60, 120, 250, 500, 1000)  # tokens of a passage
SYSTEMS = np.linspace(0.6, 2.0, 8)  # noise of each around the true utility
FUSED = 1.0  # noise of the fused rank around the true utility
APART = 3  # places between the systems of a pair
CUT, DRAWS = 10, 400
BYTES = 4.5  # a token
MARKS, QUESTION, ANSWER, LABEL = 26, 16, 34, 6  # tokens of marks, a question, a grade with its reason, a label
OUT = 8.0  # what a token of an answer costs, in tokens sent


@dataclass(frozen=True)
class Judge:
    """A judge: see the module. `care`: by how much of itself the fresh variance grows with each passage more."""

    own: float = 0.45
    fresh: float = 0.45
    leak: float = 0.0
    care: float = 0.0


JUDGES: Mapping[str, Judge] = MappingProxyType(
    {
        "no leak": Judge(),
        "assimilates a little": Judge(leak=0.1),
        "assimilates much": Judge(leak=0.25),
        "contrasts a little": Judge(leak=-0.1),
        "contrasts much": Judge(leak=-0.25),
        "less care for each of many": Judge(care=0.15),
        "noisy, no leak": Judge(own=0.6, fresh=0.9),
    }
)


@dataclass(frozen=True)
class Way:
    """How grades are asked for. `lot`: companies are drawn by lot, else neighbours in the pool are shown together."""

    size: int
    samples: int = 1
    lot: bool = True

    def __str__(self) -> str:
        company = "" if self.lot or self.size == 1 else ", neighbours in the pool"
        return f"{self.size}{f', {self.samples} samples' if self.samples > 1 else ''}{company}"


WAYS = (
    *(Way(size) for size in SIZES),
    Way(5, lot=False),
    Way(1, samples=2),
    Way(5, samples=3),
)


@dataclass(frozen=True)
class Bench:
    """A pool in the order of its fused rank. `seen`: what the judge sees of each passage whenever it is shown."""

    world: World
    seen: Floats
    seed: int

    @classmethod
    def of(cls, query: Query, judge: Judge, seed: int) -> Bench:
        """The pool of a query."""
        world = make_world(query, seed)
        rng = generator(seed, "grouping", query.qid)
        order = np.argsort(-(world.utility + rng.normal(0, FUSED, world.human.size)), kind="stable")
        ids = tuple(world.ids[place] for place in order)
        world = World(world.qid, ids, world.human[order], world.utility[order], world.grades[order])
        return cls(world, world.human + rng.normal(0, judge.own, world.human.size), seed)


def graded(bench: Bench, judge: Judge, way: Way) -> Ints:
    """The grade of each passage of the pool: the lower median of its samples."""
    found = [samples(bench, judge, way, number) for number in range(way.samples)]
    ordered = np.sort(np.stack(found), axis=0)
    return ordered[(way.samples - 1) // 2].astype(np.int64)


def samples(bench: Bench, judge: Judge, way: Way, sample: int) -> Floats:
    """The grades of one sample."""
    count = bench.seen.size
    given, noise = np.empty(count), generator(bench.seed, "call", bench.world.qid, sample).normal(0, 1, count)
    cut = groups(bench.world.qid, 0, count, way.size, sample)
    if not way.lot:
        places = np.cumsum([0, *map(len, cut)])
        cut = [list(range(start, end)) for start, end in pairwise(places)]
    for group in cut:
        given[group] = said(bench.seen[group], judge, noise[group])
    return given


def said(seen: Floats, judge: Judge, noise: Floats) -> Ints:
    """The grades of passages that are shown together; `noise`: of this call, in standard deviations."""
    size = seen.size
    fresh = seen + noise * judge.fresh * (1 + judge.care * (size - 1)) ** 0.5
    if size > 1 and judge.leak:
        beside = (fresh.sum() - fresh) / (size - 1)
        fresh = fresh + judge.leak * (beside - fresh)
    return np.clip(np.rint(fresh), 1, 5).astype(np.int64)


def told(benches: Sequence[Bench], judge: Judge, way: Way) -> str:
    """What three samples of a set of so many questions tell of company, by the stage's own measure."""
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


def canary(benches: Sequence[Bench], judge: Judge, size: int) -> float:
    """The shift that canaries tell of, in grades; 0 for a judge that is shown one passage."""
    if size == 1:
        return 0.0
    moves = []
    for bench in benches:
        strangers = 1 + generator(bench.seed, "strangers", bench.world.qid).normal(0, judge.own, size - 1)
        target = bench.seen[size - 1]
        among = [
            said(np.array([target, *others]), judge, generator(bench.seed, name, bench.world.qid).normal(0, 1, size))[0]
            for name, others in (("good", bench.seen[: size - 1]), ("bad", strangers))
        ]
        moves.append(int(among[0]) - int(among[1]))
    return float(np.mean(moves))


# --- measures -------------------------------------------------------------------------------------------------


def ndcg(grades: Ints | Floats, order: Ints) -> float:
    """nDCG@10 with gain grade - 1."""
    gains, discount = np.asarray(grades, dtype=np.float64) - 1, 1 / np.log2(np.arange(2, CUT + 2))
    best = np.sort(gains)[::-1][:CUT]
    ideal = float(best @ discount[: best.size])
    return float(gains[order[:CUT]] @ discount[: order[:CUT].size]) / ideal if ideal else 1.0


def played(bench: Bench, judge: Judge, way: Way) -> Floats:
    """One pool graded one way, as sums: counts of true and given grades (25), error, favour, differences, squares."""
    world, given = bench.world, graded(bench, judge, way)
    counts = np.zeros((5, 5))
    np.add.at(counts, (world.human.astype(int) - 1, given - 1), 1)
    rng = generator(bench.seed, "systems", world.qid)
    orders = [np.argsort(-(world.utility + rng.normal(0, noise, given.size)), kind="stable") for noise in SYSTEMS]
    alike = np.argsort(-(world.utility + rng.normal(0, FUSED, given.size)), kind="stable")  # as good as the fused rank
    orders += [np.arange(given.size), alike]
    true, said_ = (np.array([ndcg(grades, order) for order in orders]) for grades in (world.human, given))
    gap, systems = said_ - true, said_[: SYSTEMS.size]
    differences = systems[:-APART] - systems[APART:]
    error, favour = np.abs(gap[: SYSTEMS.size]).mean(), gap[-2] - gap[-1]
    return np.array([*counts.ravel(), error, favour, *differences, *differences**2])


def figures(sums: Floats, pools: Floats) -> dict[str, Floats]:
    """All figures of one way. `sums`: shape (draws, sums of a pool), over so many `pools` each."""
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
        "favour": rest[:, 1],
        "need": np.exp(np.log((squares - means**2) / means**2).mean(axis=1)),
    }


Found = dict[str, tuple[float, float]]


def compared(found: Floats, base: Floats) -> tuple[Found, Found]:
    """Each figure with its standard error over queries; and kappa less that of `base`, questions needed beside its.

    Args:
        found, base: shape (queries, worlds, sums of a pool).
    """
    rng = generator(0, "resampled")
    drawn = rng.multinomial(len(found), np.full(len(found), 1 / len(found)), size=DRAWS)
    weights = np.vstack([np.ones(len(found)), drawn])  # the first row: as it is
    pools = weights.sum(axis=1) * found.shape[1]
    own, other = (figures(weights @ each.sum(axis=1), pools) for each in (found, base))
    beside = {"kappa": own["kappa"] - other["kappa"], "need": own["need"] / other["need"]}
    told = [{name: (float(each[0]), float(each[1:].std())) for name, each in part.items()} for part in (own, beside)]
    return told[0], told[1]


# --- tokens ---------------------------------------------------------------------------------------------------


def tokens(size: int, length: float) -> tuple[float, float]:
    """Tokens sent and tokens of answers for a grade, where `size` passages of so many tokens are shown in a call."""
    prompt = load_prompt("grade@1" if size == 1 else "grades@1", "grade" if size == 1 else "grades")
    fixed = len(prompt.text().encode()) / BYTES + QUESTION + MARKS
    label = 0 if size == 1 else LABEL
    return fixed / size + length + MARKS + label, ANSWER + label


def price(way: Way, length: float) -> float:
    """What a passage's grade costs, in tokens sent."""
    sent, said_ = tokens(way.size, length)
    return way.samples * (sent + OUT * said_)


def pays(way: Way, need: float) -> str:
    """At which passage lengths, in tokens, the same certainty costs less than by passages alone.

    Args:
        need: questions needed, beside those needed by passages alone.
    """
    lengths = np.arange(0, 4001, 10)
    cheaper = [need * price(way, length) < price(WAYS[0], length) for length in lengths]
    if all(cheaper):
        return "any"
    return f"below {lengths[cheaper.index(False)]:,}" if cheaper[0] else "none"


# --- pages ----------------------------------------------------------------------------------------------------


def quality(queries: Sequence[Query], seeds: Sequence[int]) -> Iterator[str]:
    """The table of what grouping does to grades."""
    yield (
        "| judge | group | exact | kappa | kappa less group 1 | nDCG error | favour of the fused rank |"
        " questions needed beside group 1 | pays at tokens a passage | canary's shift | what samples tell |"
    )
    yield "|---" * 11 + "|"
    for name, judge in JUDGES.items():
        benches = [[Bench.of(query, judge, seed) for seed in seeds] for query in queries]
        every = [bench for part in benches for bench in part]
        base = np.array([])
        for way in WAYS:
            found = np.array([[played(bench, judge, way) for bench in part] for part in benches])
            base = base if base.size else found
            own, beside = compared(found, base)
            cells = [shown(own[key]) for key in ("exact", "kappa")]
            cells.append("" if found is base else shown(beside["kappa"], "+.3f"))
            cells += [shown(own["error"]), shown(own["favour"], "+.3f")]
            cells += ["", ""] if found is base else [shown(beside["need"], ".2f"), pays(way, beside["need"][0])]
            plain = way.samples == 1 and way.size > 1 and way.lot
            cells.append(f"{canary(every, judge, way.size):+.2f}" if plain else "")
            cells.append(told([part[0] for part in benches], judge, way) if way.samples > 1 and way.size > 1 else "")
            yield f"| {name} | {way} | {' | '.join(cells)} |"


def shown(found: tuple[float, float], form: str = ".3f") -> str:
    """A figure with its standard error."""
    return f"{found[0]:{form}} ±{found[1]:{form.lstrip('+')}}"


def money() -> Iterator[str]:
    """The table of what a grade costs."""
    heads = [f"group {size}: sent, answer" for size in SIZES]
    yield f"| passage, tokens | {' | '.join(heads)} | saved by 5: tokens sent | saved by 5: money |"
    yield "|---|" + "---|" * (len(SIZES) + 2)
    for length in LENGTHS:
        cells = ["{:,.0f}, {:.0f}".format(*tokens(size, length)) for size in SIZES]
        sent = 1 - tokens(5, length)[0] / tokens(1, length)[0]
        paid = 1 - price(Way(5), length) / price(Way(1), length)
        yield f"| {length:,} | {' | '.join(cells)} | {sent:.0%} | {paid:.0%} |"


def questions() -> Iterator[str]:
    """The table of what all grades of a pool take."""
    yield f"| passage, tokens | {' | '.join(f'group {size}' for size in SIZES)} |"
    yield "|---|" + "---|" * len(SIZES)
    for length in LENGTHS:
        cells = ["{:,.0f}, {:,.0f}".format(*(POOL * each for each in tokens(size, length))) for size in SIZES]
        yield f"| {length:,} | {' | '.join(cells)} |"


def page(queries: Sequence[Query], seeds: Sequence[int], command: str) -> Iterator[str]:
    """The results as Markdown."""
    yield "# Passages graded together: what is saved, and what it does to the grades\n"
    yield f"`{command}`: {len(queries)} queries, {len(seeds)} worlds of each, pools of 40. The judges are simulated.\n"
    yield "## Tokens of one grade\n"
    yield from money()
    yield f"\nMoney counts a token of an answer as {OUT:g} tokens sent; nothing is taken from a prefix cache.\n"
    yield f"## Tokens of a question with a pool of {POOL}: sent, answers\n"
    yield from questions()
    yield "\n## Grades\n"
    yield from quality(queries, seeds)


def main() -> int:
    """Read the arguments, simulate, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder with corpus.jsonl, queries.jsonl and qrels.trec")
    parser.add_argument("--parity", choices=("even", "odd"), help="one half of the queries")
    parser.add_argument("--worlds", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="made-up queries, two worlds")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    queries = load_queries(given.data) if given.data else synthetic_queries(12, 1)
    if given.parity:
        queries = [query for query in queries if query.number % 2 == (given.parity == "odd")]
    seeds = range(1, 1 + (2 if given.quick else given.worlds))
    flags = (" --data FOLDER" if given.data else "") + (f" --parity {given.parity}" if given.parity else "")
    command = f"python benchmarks/grouping.py{flags}"
    text = "\n".join(page(queries, list(seeds), command)) + "\n"
    sys.stdout.write(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
