"""Measure how many ranking calls a judge saves that states a probability for each grade.

    python benchmarks/distributions.py --data FOLDER --out benchmarks/results/distributions.md     half an hour
    python benchmarks/distributions.py --quick                                                     synthetic queries

FOLDER, pools, utilities and judges of orders are those of ranking.py (ranking_worlds.py). The signal of the judge of
grades is the human grade plus normal noise of 0.6. Its probabilities are the posterior of the grade, given the signal
and the shares of the grades in the even queries. They are calibrated: 16% of their lower medians are wrong, as many
as of the grades of ranking.py. The signal of a second judge is the utility plus noise of the same total size, so its
probabilities also order passages of equal grade.

Distortions: over-confident (T = 1/2: probabilities are squared), under-confident (T = 2: square roots), and useless
(the lower median stays, the rest is random). `raggs.stats.calibration` corrects them by labels of random passages of
the even queries. Only the odd queries are ranked. "Grades only" uses the lower median of the same probabilities.

The share of calls is a number of calls divided by 20, 40 or 60. It is the number with the mean quality that grades
only have after 20, 40 or 60 calls, divided by that number. Curves over 10 to 80 calls are linear in the logarithm of
calls. ± is the standard error over worlds. Each world draws utilities, signals, labels, calibration and orders again.

The same orders are also answered as probabilities of the best passage (`Ranker.observe(order, best)`).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: the processes share the cores

import numpy as np
from gainloss import gain_loss
from ranking_tables import BEGIN, END, put_between_markers
from ranking_worlds import (
    JUDGES,
    SPREAD,
    Floats,
    Ints,
    Query,
    World,
    load_queries,
    make_judge,
    make_world,
    measures,
    synthetic_queries,
)

from raggs.base.hashing import generator
from raggs.ranking import make_ranker
from raggs.stats.calibration import (
    DistributionCalibration,
    apply_calibration,
    calibration_error,
    fit_calibration,
    log_score,
    lower_median,
    reliability,
)

TOP = 20
LEVELS = np.arange(1, 6)
NOISE = 0.6  # standard deviation of the signal around the human grade
BUDGETS = (10, 15, 20, 30, 40, 60, 80)
TARGETS = (20, 40, 60)  # calls of grades only, whose quality is the target
LABELS = 200
Rows = Floats | None
Curve = list[tuple[float, ...]]  # by budget: calls, tau, tau within the top, gain-weighted loss
NAMES = ("calls", "tau", "tau20", "loss")


class Setting(NamedTuple):
    """Input of the ranking engine.

    Attributes:
        name: row of the table.
        sees: "grade" or "utility", the signal of the judge of grades.
        kind: distortion of its probabilities.
        labels: number of labels of the calibration. 0: the probabilities as stated. None: only grades.
    """

    name: str
    sees: str
    kind: str
    labels: int | None


SETTINGS = (
    Setting("grades only", "grade", "calibrated", None),
    Setting("exact grades (bound)", "grade", "exact", 0),
    Setting("calibrated, as stated", "grade", "calibrated", 0),
    Setting("calibrated, 50 labels", "grade", "calibrated", 50),
    Setting("calibrated, 200 labels", "grade", "calibrated", 200),
    Setting("over-confident, grades only", "grade", "over-confident", None),
    Setting("over-confident, as stated", "grade", "over-confident", 0),
    Setting("over-confident, 200 labels", "grade", "over-confident", 200),
    Setting("under-confident, grades only", "grade", "under-confident", None),
    Setting("under-confident, 200 labels", "grade", "under-confident", 200),
    Setting("useless, as stated", "grade", "useless", 0),
    Setting("useless, 50 labels", "grade", "useless", 50),
    Setting("useless, 200 labels", "grade", "useless", 200),
    Setting("utility, grades only", "utility", "calibrated", None),
    Setting("utility, 200 labels", "utility", "calibrated", 200),
)


def base_of(setting: Setting) -> Setting:
    """Return the setting with grades only of the same judge. The useless judge has the grades of the calibrated one."""
    kind = setting.kind if setting.kind in ("over-confident", "under-confident") else "calibrated"
    return next(each for each in SETTINGS if (each.sees, each.kind, each.labels) == (setting.sees, kind, None))


def grade_shares(queries: Sequence[Query], seed: int) -> Floats:
    """Return the share of each grade in the pools of these queries."""
    human = np.concatenate([make_world(query, seed).human for query in queries]).astype(np.int64)
    return np.asarray(np.bincount(human, minlength=6)[1:] / human.size)


def stated(world: World, seed: int, shares: Floats, setting: Setting) -> Floats:
    """Return the probabilities that the judge states, shape (size, 5)."""
    rng = generator(seed, "stated", world.qid, setting.sees)
    if setting.kind == "exact":
        return np.asarray(np.eye(5)[world.human.astype(np.int64) - 1])
    if setting.sees == "grade":
        signal = world.human + rng.normal(0.0, NOISE, world.human.size)
    else:
        signal = world.utility + rng.normal(0.0, np.sqrt(NOISE**2 - SPREAD**2), world.human.size)
    rows = softmax(np.log(shares) - (signal[:, None] - LEVELS) ** 2 / (2 * NOISE**2))
    if setting.kind == "useless":
        return useless_rows(rows, generator(seed, "useless", world.qid))
    power = {"calibrated": 1.0, "over-confident": 2.0, "under-confident": 0.5}[setting.kind]
    return softmax(power * np.log(np.maximum(rows, 1e-300)))


def useless_rows(rows: Floats, chance: np.random.Generator) -> Floats:
    """Return random probabilities with the same lower medians, shape (size, 5)."""
    sure = chance.uniform(0.5, 0.9, rows.shape[0])[:, None]
    own = np.eye(5)[grades_of(rows).astype(np.int64) - 1]
    return np.asarray(sure * own + (1.0 - sure) * chance.dirichlet(np.ones(5), rows.shape[0]))


def softmax(logs: Floats) -> Floats:
    strengths = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(strengths / strengths.sum(axis=1, keepdims=True))


def grades_of(rows: Floats) -> Floats:
    return np.array([float(lower_median(row)) for row in rows.tolist()])


def calibration_of(setting: Setting, seed: int, queries: Sequence[Query], shares: Floats) -> DistributionCalibration:
    """Fit the calibration to labels of random passages of these queries."""
    rows, labels = cases(queries, seed, shares, setting)
    chosen = generator(seed, "labels").permutation(len(labels))[: setting.labels]
    return fit_calibration([rows[at] for at in chosen], [labels[at] for at in chosen])


def cases(queries: Sequence[Query], seed: int, shares: Floats, setting: Setting) -> tuple[list[list[float]], list[int]]:
    """Return the stated probabilities and human grades of all passages of the pools."""
    worlds = [make_world(query, seed) for query in queries]
    rows = [row for world in worlds for row in stated(world, seed, shares, setting).tolist()]
    return rows, [int(grade) for world in worlds for grade in world.human]


class Task(NamedTuple):
    """One ranking of one world by one setting."""

    query: Query
    seed: int
    setting: Setting
    shares: Floats
    calibration: DistributionCalibration | None


def curves(task: Task, judge: str) -> tuple[Curve, tuple[float, ...]]:
    """Return the quality at each budget, and at the default stopping rule."""
    world = make_world(task.query, task.seed)
    rows = stated(world, task.seed, task.shares, task.setting)
    given = None if task.setting.labels is None else rows.tolist()
    if given is not None and task.calibration is not None:
        given = [apply_calibration(row, task.calibration) for row in given]
    ask = make_judge(JUDGES[judge], world, task.seed, "distributions")

    def answer(shown: Ints) -> tuple[Ints, None]:
        order = ask(shown)
        if order is None:
            raise ValueError("a judge of this benchmark always answers")
        return order, None

    return played(world, grades_of(rows), given, task.seed, answer)


Answer = Callable[[Ints], tuple[Ints, Floats | None]]
"""Returns the order of a batch, and by probabilities of the best passage."""


def played(
    world: World, grades: Floats, given: list[Sequence[float]] | None, seed: int, answer: Answer
) -> tuple[Curve, tuple[float, ...]]:
    number = {name: at for at, name in enumerate(world.ids)}
    ranker = make_ranker(
        "bayes", world.ids, grades.tolist(), top=TOP, seed=seed, max_calls=BUDGETS[-1], distributions=given
    )
    usual, curve, calls, end = ranker.saving, Curve(), 0, None

    def now() -> tuple[float, ...]:
        order = np.array([number[name] for name in ranker.ranking().order])
        by_name = measures(world, order, TOP)
        return float(calls), by_name["tau"], by_name["tau20"], gain_loss(world.utility[order], TOP)

    while len(curve) < len(BUDGETS):
        ranker.saving = 0.0  # the stopping rule does not change the choice of batches
        if ranker.done:
            curve.append(now())
            continue
        for batch in ranker.next_batches(5):
            order, best = answer(np.array([number[name] for name in batch]))
            ranker.observe([world.ids[at] for at in order], None if best is None else best.tolist())
            calls += 1
            if calls == BUDGETS[len(curve)]:
                curve.append(now())
        ranker.saving = usual
        if end is None and ranker.done:
            end = now()
    return curve, end or curve[-1]


BEST_NOISE = (0.0, 1.0, 2.0)


def best_curves(task: tuple[Query, int, float, bool], sharpness: float = 3.0) -> Curve:
    """Return the quality of a judge that answers by orders, or by probabilities of the best passage.

    The judge perceives scores: sharpness times utility plus normal noise, drawn again for each list. An order is drawn
    by Plackett-Luce from these scores. The probabilities of the best are their softmax.
    """
    query, seed, noise, soft = task
    world, rng = make_world(query, seed), generator(seed, "best", query.qid)

    def answer(shown: Ints) -> tuple[Ints, Floats | None]:
        scores = sharpness * world.utility[shown] + noise * rng.normal(size=shown.size)
        order = np.argsort(-(scores + rng.gumbel(size=shown.size)), kind="stable")
        if not soft:
            return shown[order], None
        order = np.argsort(-scores, kind="stable")
        return shown[order], softmax(scores[order][None])[0]

    return played(world, world.grades, None, seed, answer)[0]


def calls_for(quality: Floats, target: float) -> float:
    """Return the calls at which a curve over `BUDGETS` first reaches the target; the last budget if it does not."""
    rising = np.maximum.accumulate(quality)
    if rising[-1] < target:
        return float(BUDGETS[-1])
    at = int(np.argmax(rising >= target))
    if at == 0:
        return float(BUDGETS[0])
    return float(np.exp(np.interp(target, rising[at - 1 : at + 1], np.log(BUDGETS[at - 1 : at + 1]))))


def shares_of_calls(curve: Floats, base: Floats, measure: int, target: int) -> Floats:
    """Return the share of calls that a setting needs, for each world. Curves have the shape (worlds, budgets, 4)."""
    sign = -1.0 if NAMES[measure] == "loss" else 1.0
    wanted = sign * base[:, BUDGETS.index(target), measure]
    return np.array([calls_for(sign * own[:, measure], goal) / target for own, goal in zip(curve, wanted, strict=True)])


def spread(found: Floats, digits: int = 2) -> str:
    """Return a mean over worlds and its standard error."""
    error = found.std(ddof=1) / np.sqrt(found.size) if found.size > 1 else 0.0
    return f"{found.mean():.{digits}f} ±{error:.{digits}f}"


def table_of_shares(found: Mapping[Setting, Floats]) -> Iterator[str]:
    names = [f"{name}, {target}" for name in ("loss", "tau20") for target in TARGETS]
    yield "| judge of grades | " + " | ".join(names) + " |"
    yield "|" + "---|" * (len(names) + 1)
    for setting, curve in found.items():
        base = found.get(base_of(setting))
        if setting.labels is None or base is None:
            continue
        cells = [
            spread(shares_of_calls(curve, base, NAMES.index(name), target))
            for name in ("loss", "tau20")
            for target in TARGETS
        ]
        yield f"| {setting.name} | " + " | ".join(cells) + " |"


def table_of_values(found: Mapping[Setting, Floats]) -> Iterator[str]:
    yield "| judge of grades | " + " | ".join(f"{name}, {calls}" for name in NAMES[1:] for calls in TARGETS) + " |"
    yield "|" + "---|" * (3 * len(TARGETS) + 1)
    for setting, curve in found.items():
        cells = [
            spread(curve[:, BUDGETS.index(calls), measure], 3 if measure < 3 else 2)
            for measure in (1, 2, 3)
            for calls in TARGETS
        ]
        yield f"| {setting.name} | " + " | ".join(cells) + " |"


def table_of_ends(found: Mapping[Setting, Floats]) -> Iterator[str]:
    names = ["calls", "calls / grades only", "loss", "loss - grades only", "tau20", "tau20 - grades only"]
    yield f"| judge of grades | {' | '.join(names)} |"
    yield "|" + "---|" * 7
    for setting, ends in found.items():
        base = found.get(base_of(setting), ends)
        calls, loss, tau = ends[:, 0], ends[:, 3], ends[:, 2]
        cells = [spread(calls, 1), spread(calls / base[:, 0]), spread(loss), spread(loss - base[:, 3])]
        yield f"| {setting.name} | " + " | ".join([*cells, spread(tau, 3), spread(tau - base[:, 2], 3)]) + " |"


def table_of_calibration(
    odd: Sequence[Query], fits: Mapping[tuple[Setting, int], DistributionCalibration], shares: Mapping[int, Floats]
) -> Iterator[str]:
    names = ["T", "w", "log score, as stated", "log score, calibrated", "ECE, as stated", "ECE, calibrated"]
    yield f"| judge of grades | {' | '.join(names)} |"
    yield "|" + "---|" * 7
    for setting in dict.fromkeys(setting for setting, _ in fits):
        each = []
        for (own, seed), fit in fits.items():
            if own == setting:
                rows, labels = cases(odd, seed, shares[seed], setting)
                after = [apply_calibration(row, fit) for row in rows]
                scores = [log_score(rows, labels), log_score(after, labels)]
                errors = [calibration_error(reliability(found, labels)) for found in (rows, after)]
                each.append([fit.temperature, fit.weight, *scores, *errors])
        columns = np.array(each).T
        yield f"| {setting.name} | " + " | ".join(spread(column, 3) for column in columns) + " |"


def table_of_best(found: Mapping[tuple[float, bool], Floats]) -> Iterator[str]:
    shown = (10, 20, 40, 60)
    yield "| noise | answer | " + " | ".join(f"{name}, {calls}" for name in ("loss", "tau20") for calls in shown) + " |"
    yield "|" + "---|" * (2 + 2 * len(shown))
    for (noise, soft), curve in found.items():
        cells = [spread(curve[:, BUDGETS.index(calls), 3]) for calls in shown]
        cells += [spread(curve[:, BUDGETS.index(calls), 2], 3) for calls in shown]
        yield f"| {noise:g} | {'probabilities' if soft else 'orders'} | " + " | ".join(cells) + " |"


def by_world(found: Sequence[Sequence[object]], worlds: Sequence[int], tasks: Sequence[tuple[object, ...]]) -> Floats:
    """Return the means over the queries of each world."""
    pairs = list(zip(found, tasks, strict=True))
    return np.array([np.mean([each for each, task in pairs if task[1] == world], axis=0) for world in worlds])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with corpus.jsonl, queries.jsonl and qrels.trec")
    parser.add_argument("--quick", action="store_true", help="6 synthetic queries, two worlds")
    parser.add_argument("--worlds", type=int, default=10)
    parser.add_argument("--stride", type=int, default=1, help="each world ranks every so many of the queries")
    parser.add_argument("--judge", default="medium", choices=list(JUDGES), help="judge of orders")
    parser.add_argument("--out", type=Path, help=f"write the tables there, between {BEGIN} and {END} if it exists")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    given = parser.parse_args()
    whole = synthetic_queries(12, 1) if given.quick or given.data is None else load_queries(given.data)
    odd, even = ([query for query in whole if query.number % 2 == rest] for rest in (1, 0))
    worlds = range(1, (2 if given.quick else given.worlds) + 1)
    shares = {seed: grade_shares(even, seed) for seed in worlds}
    fits = {
        (setting, seed): calibration_of(setting, seed, even, shares[seed])
        for setting in SETTINGS
        if setting.labels
        for seed in worlds
    }
    asked = [(query, seed) for seed in worlds for query in odd[seed % given.stride :: given.stride]]
    began = time.perf_counter()
    found: dict[Setting, Floats] = {}
    ends: dict[Setting, Floats] = {}
    best: dict[tuple[float, bool], Floats] = {}
    with ProcessPoolExecutor(given.processes) as pool:
        for setting in SETTINGS:
            tasks = [Task(*each, setting, shares[each[1]], fits.get((setting, each[1]))) for each in asked]
            each = list(pool.map(partial(curves, judge=given.judge), tasks, chunksize=4))
            found[setting] = by_world([curve for curve, _ in each], worlds, asked)
            ends[setting] = by_world([end for _, end in each], worlds, asked)
            print(f"{time.perf_counter() - began:.0f} s: {setting.name}", file=sys.stderr, flush=True)
        for noise in BEST_NOISE:
            for soft in (False, True):
                curve = list(pool.map(best_curves, [(*each, noise, soft) for each in asked[::2]], chunksize=4))
                best[noise, soft] = by_world(curve, worlds, asked[::2])
    about = (
        f"{len(odd)} odd queries, {len(worlds)} worlds, {len(asked)} rankings per row, judge of orders: {given.judge}."
        " ± is the standard error over worlds."
    )
    parts = {
        "Share of calls for the same quality": table_of_shares(found),
        "Quality at fixed budgets": table_of_values(found),
        "At the default stopping rule": table_of_ends(ends),
        "Calibration on the odd queries": table_of_calibration(odd, fits, shares),
        "Probabilities of the best passage": table_of_best(best),
    }
    text = "\n\n".join([about, *(f"### {title}\n\n" + "\n".join(lines) for title, lines in parts.items())])
    print(text)
    if given.out:
        page = given.out.read_text(encoding="utf-8") if given.out.exists() else f"{BEGIN}\n{END}\n"
        given.out.write_text(put_between_markers(page, text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
