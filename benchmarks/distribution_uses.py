"""Measure further uses of probabilities of grades: corrected scores, intervals, plans, stopping, cascades, samples.

    python benchmarks/distribution_uses.py --data FOLDER --out benchmarks/results/distribution-uses.md   two minutes
    python benchmarks/distribution_uses.py --quick                                               synthetic queries

FOLDER, pools, judges of grades and distortions are those of distributions.py. All queries of a world are used. Two
simulated systems rank each pool by the utility plus normal noise of 1.0 and 1.4. The fused order of a pool is that of
the first system. Each world draws everything again. ± is the standard error over worlds. `NOTES` explains the tables.

- Corrected scores: the judge predicts the worth of its grade (precision: 4 or more), or the expected worth.
- Second, two and three samples: noise of 0.45 is the same in all samples of a signal. Noise of 0.4 is new
  in each sample. Useless probabilities are random in each sample.
- Control items: half of the 60 easy items have the signal 0 and grade 1, half have 6 and grade 5, before noise.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from distributions import LEVELS, NOISE, Setting, grade_shares, grades_of, softmax, spread, stated, useless_rows
from ranking_tables import BEGIN, END, put_between_markers
from ranking_worlds import Floats, Query, World, load_queries, make_world, synthetic_queries

from raggs.base.hashing import generator
from raggs.metrics.columns import GradeScale, Qrels, Run, UtilityEstimates
from raggs.metrics.hits import Hits, find_hits
from raggs.metrics.names import parse_measure
from raggs.metrics.unjudged import LabelUncertainty
from raggs.stats.annotation_value import KnownGrades, believe
from raggs.stats.calibration import apply_calibration, fit_calibration, log_score
from raggs.stats.correction import correct, totals_of

KINDS = ("calibrated", "over-confident", "under-confident", "useless")
SYSTEM_NOISE = (1.0, 1.4)
DRAWN, LEARNED, CONTROLS = 250, 60, 60
DRAWS = 200
RUNS = (5, 10, 20)  # low grades in a row that end the grading
REPEATED, FRESH = 0.45, 0.4  # noise of a signal that repeats in each sample, and noise that is new


class Collection:
    """All pools of one world, with the stated probabilities of one kind of judge."""

    def __init__(self, queries: Sequence[Query], seed: int, kind: str) -> None:
        self.worlds: list[World] = [make_world(query, seed) for query in sorted(queries, key=lambda each: each.qid)]
        shares = grade_shares(queries, seed)
        setting = Setting("", "grade", kind, 0)
        self.rows = np.concatenate([stated(world, seed, shares, setting) for world in self.worlds])
        self.human = np.concatenate([world.human for world in self.worlds]).astype(np.int64)
        self.grade = grades_of(self.rows).astype(np.int64)
        self.query = np.repeat(np.arange(len(self.worlds)), [world.human.size for world in self.worlds])
        self.shares, self.seed = shares, seed

    def orders(self, noise: float) -> list[Floats]:
        """Return the passages of each pool, best first, as one system ranks them."""
        rng = generator(self.seed, "system", noise)
        return [np.argsort(-(world.utility + rng.normal(0.0, noise, world.utility.size))) for world in self.worlds]

    def hits(self, noise: float, grade: Floats) -> Hits:
        labels = {
            world.qid: dict(zip(world.ids, own.tolist(), strict=True))
            for world, own in zip(self.worlds, self.by_query(grade), strict=True)
        }
        lists = {
            world.qid: [world.ids[place] for place in order]
            for world, order in zip(self.worlds, self.orders(noise), strict=True)
        }
        return find_hits(Qrels.of(labels, GradeScale.of(1, 5)), Run.of(lists), "file")

    def by_query(self, values: Floats) -> list[Floats]:
        return [values[self.query == number] for number in range(len(self.worlds))]


def corrected(found: Collection) -> dict[str, float]:
    rng, result = generator(found.seed, "drawn"), defaultdict(list)
    drawn = np.zeros(len(found.human), dtype=bool)
    drawn[rng.permutation(len(drawn))[:DRAWN]] = True
    chance = np.full(len(drawn), DRAWN / len(drawn))
    starts = np.searchsorted(found.query, np.arange(len(found.worlds)))
    true = (found.human >= 4).astype(float)
    for noise in SYSTEM_NOISE:
        top = np.concatenate([start + order[:10] for start, order in zip(starts, found.orders(noise), strict=True)])
        human = np.where(drawn[top], true[top], np.nan)
        ends = []
        for worth in ((found.grade >= 4).astype(float), found.rows[:, 3:].sum(axis=1)):
            sums = totals_of(
                found.query[top], np.full(len(top), 0.1), worth[top], human, chance[top], queries=len(found.worlds)
            )
            ends.append(correct(sums))
        truth = true[top].mean()
        result["width"].append((ends[1].high - ends[1].low) / (ends[0].high - ends[0].low))
        result["covered, grades"].append(ends[0].low <= truth <= ends[0].high)
        result["covered, expected"].append(ends[1].low <= truth <= ends[1].high)
    return {name: float(np.mean(values)) for name, values in result.items()}


def uncertain(found: Collection) -> dict[str, float]:
    measure, utility, result = parse_measure("ndcg@10"), parse_measure("ndcg[utility]@10"), defaultdict(list)
    differences = list[list[float]]()
    for noise in SYSTEM_NOISE:
        hits = found.hits(noise, found.grade)
        truth = float(np.nanmean(measure.values(found.hits(noise, found.human))))
        plain = float(np.nanmean(measure.values(hits)))
        uncertainty = LabelUncertainty(np.zeros(len(found.grade)), ((),) * len(found.grade), found.rows)
        rng = generator(found.seed, "draws")
        means = [float(np.nanmean(measure.values(_relabelled(hits, uncertainty, rng)))) for _ in range(DRAWS)]
        low, high = np.quantile(means, [0.025, 0.975])
        shift = plain - float(np.mean(means))
        result["error, grades"].append(abs(plain - truth))
        result["error, expected"].append(abs(float(np.mean(means)) - truth))
        mean = (found.rows * LEVELS).sum(axis=1)  # gains are linear in the grade, so the mean grade has the mean gain
        gains = replace(hits, qrels=replace(hits.qrels, belief=UtilityEstimates(mean, np.zeros(len(mean)))))
        expected = float(np.nanmean(utility.values(gains)))
        result["error, expected gains"].append(abs(expected - truth))
        differences.append([plain - truth, float(np.mean(means)) - truth, expected - truth])
        result["covered"].append(low <= truth <= high)
        result["covered, moved to the grades"].append(low + shift <= truth <= high + shift)
    for name, one, two in zip(("grades", "expected", "expected gains"), *differences, strict=True):
        result[f"error of the difference, {name}"].append(abs(one - two))
    return {name: float(np.mean(values)) for name, values in result.items()}


def _relabelled(hits: Hits, uncertainty: LabelUncertainty, rng: np.random.Generator) -> Hits:
    return replace(hits, qrels=uncertainty.drawn(hits.qrels, rng))


def planned(found: Collection) -> dict[str, float]:
    voices, result = np.eye(5, dtype=np.int64)[found.grade - 1], {}
    read = generator(found.seed, "learned").permutation(len(found.grade))[:LEARNED]
    for labels in (0, LEARNED):
        for name, rows in (("grades", None), ("probabilities", found.rows)):
            known = KnownGrades(found.grade - 1, voices, np.zeros(len(found.grade)), rows)
            beliefs = believe(known, read[:labels], found.human[read[:labels]] - 1)
            result[f"{name}, {labels} labels"] = log_score(beliefs.tolist(), found.human.tolist())
    return result


def stopped(found: Collection) -> dict[str, float]:
    orders, result = found.orders(SYSTEM_NOISE[0]), {}
    above = found.rows[:, 2:].sum(axis=1)
    curves = {}
    for name, low in (("grade", found.grade <= 2), ("probability", (found.grade <= 2) & (above < 0.2))):
        points = []
        for limit in range(2, 60):
            calls = missed = 0
            pools = zip(orders, *map(found.by_query, (found.grade, low, found.human)), strict=True)
            for order, grade, own, human in pools:
                row, done = 0, len(order)
                for place, item in enumerate(order, start=1):
                    row = row + 1 if own[item] else 0 if grade[item] > 2 else row
                    if row >= limit:
                        done = place
                        break
                calls, missed = calls + done, missed + int((human[order[done:]] >= 3).sum())
            points.append((calls / len(orders), missed / max((found.human >= 3).sum(), 1)))
        curves[name] = np.array(points)
    for limit in RUNS:
        calls, missed = curves["grade"][limit - 2]
        same = float(np.interp(calls, *curves["probability"].T))
        result[f"missed, grade, {limit}"], result[f"missed, probability, {limit}"] = float(missed), same
    return result


def cascaded(found: Collection) -> dict[str, float]:
    ruled = found.grade >= 3
    above = found.rows[:, 2:].sum(axis=1) + 1e-9 * generator(found.seed, "ties").random(len(ruled))
    by_chance = above >= np.sort(above)[-int(ruled.sum())]
    uncertainty = 1.0 - found.rows.max(axis=1) + 1e-9 * generator(found.seed, "ties").random(len(ruled))
    by_uncertainty = uncertainty >= np.sort(uncertainty)[-int(ruled.sum())]
    best = found.human >= 4
    order = np.argsort(-above, kind="stable")
    seen = np.cumsum(best[order])
    same = int(np.searchsorted(seen, (best & ruled).sum())) + 1
    return {
        "share of calls": float(ruled.mean()),
        "share of calls, equal miss": same / len(order),
        "missed, grade": float((best & ~ruled).sum() / best.sum()),
        "missed, probability": float((best & ~by_chance).sum() / best.sum()),
        "exact, grade": float(np.where(ruled, True, found.grade == found.human).mean()),
        "exact, probability": float(np.where(by_chance, True, found.grade == found.human).mean()),
        "missed, uncertain": float((best & ~by_uncertainty).sum() / best.sum()),
        "exact, uncertain": float(np.where(by_uncertainty, True, found.grade == found.human).mean()),
    }


def gain_errors(grade: Floats, human: Floats) -> Floats:
    return np.abs(2.0**grade - 2.0**human) / (2.0**human).mean()


def cascaded_by_fixed_rules(found: Collection) -> dict[str, float]:
    ruled, above = found.grade >= 3, np.round(found.rows[:, 2:].sum(axis=1), 4)
    own = found.rows[np.arange(len(found.grade)), found.grade - 1]
    result = {}
    for name, sent in (
        ("grade 3", ruled),
        ("grade 2", found.grade >= 2),
        ("0.3", above >= 0.3),
        ("0.6", above >= 0.6),
    ):
        final = np.where(sent, found.human, found.grade)
        result[f"calls, {name}"] = float(sent.mean())
        result[f"exact, {name}"] = float((final == found.human).mean())
        result[f"gain error, {name}"] = float(gain_errors(final, found.human).mean())
    ties = 1e-9 * generator(found.seed, "ties").random(len(ruled))
    for title, errors in (
        ("equal exact", (found.grade != found.human).astype(float)),
        ("equal gains", gain_errors(found.grade, found.human)),
    ):
        for name, score in (("probability", above), ("uncertainty", 1.0 - own)):
            order = np.argsort(-(score + ties))
            left = errors.sum() - np.concatenate([[0.0], np.cumsum(errors[order])])
            calls = int(np.argmax(left <= errors[~ruled].sum() + 1e-9))
            result[f"{title}, {name}"] = calls / float(ruled.sum())
    return result


def sampled_again(found: Collection, kind: str, samples: int) -> dict[str, float]:
    rng = generator(found.seed, "samples")
    signal = found.human + rng.normal(0.0, REPEATED, len(found.human))
    answers = []
    for number in range(samples):
        seen = signal + rng.normal(0.0, FRESH, len(signal))
        logs = np.log(found.shares) - (seen[:, None] - LEVELS) ** 2 / (2 * NOISE**2)
        rows = softmax(POWER.get(kind, 1.0) * logs)
        answers.append(useless_rows(rows, generator(found.seed, "useless", number)) if kind == "useless" else rows)
    one, every = answers[0], np.mean(answers, axis=0)
    own = one[np.arange(len(one)), grades_of(one).astype(np.int64) - 1]
    random = np.zeros(len(own), dtype=bool)
    random[rng.permutation(len(own))[: int((own < 0.9).sum())]] = True
    choices = {"one": own < 0, "0.8": own < 0.8, "0.9": own < 0.9, "random": random, "all": own >= 0}
    final = {name: np.where(again[:, None], every, one) for name, again in choices.items()}
    result = {f"sampled again, {name}": float(choices[name].mean()) for name in ("0.8", "0.9")}
    for name, rows in final.items():
        result[f"log score, {name}"] = log_score(rows.tolist(), found.human.tolist())
    for name, rows in final.items():
        result[f"exact, {name}"] = float((grades_of(rows) == found.human).mean())
    return result


def sampled(found: Collection, power: float) -> dict[str, float]:
    rng = generator(found.seed, "samples")
    signal = found.human + rng.normal(0.0, REPEATED, len(found.human))
    both = []
    for _ in range(2):
        seen = signal + rng.normal(0.0, FRESH, len(signal))
        logs = np.log(found.shares) - (seen[:, None] - LEVELS) ** 2 / (2 * NOISE**2)
        both.append(softmax(power * logs))
    one, two = both[0], (both[0] + both[1]) / 2
    unsure = one.max(axis=1) <= np.quantile(one.max(axis=1), 0.2)
    chance = rng.random(len(unsure)) < 0.2
    result = {}
    for name, rows in (
        ("one", one),
        ("two for 20%, uncertain", np.where(unsure[:, None], two, one)),
        ("two for 20%, random", np.where(chance[:, None], two, one)),
        ("two for all", two),
    ):
        result[name] = log_score(rows.tolist(), found.human.tolist())
    return result


def controlled(found: Collection, power: float) -> dict[str, float]:
    rng = generator(found.seed, "controls")
    known = np.repeat([1, 5], CONTROLS // 2)
    signal = np.where(known == 1, 0.0, 6.0) + rng.normal(0.0, NOISE, len(known))
    easy = softmax(power * (np.log(found.shares) - (signal[:, None] - LEVELS) ** 2 / (2 * NOISE**2)))
    some = rng.permutation(len(found.human))[:CONTROLS]
    result = {"as stated": log_score(found.rows.tolist(), found.human.tolist())}
    for name, rows, labels in (
        ("60 control items", easy, known),
        ("60 labels", found.rows[some], found.human[some]),
    ):
        fit = fit_calibration(rows.tolist(), labels.tolist())
        result[name] = log_score([apply_calibration(row, fit) for row in found.rows.tolist()], found.human.tolist())
    return result


NOTES = {
    "Corrected scores": (
        "Human labels of 250 random passages correct precision@10. *width* is that of the interval by expected worth, "
        "divided by that by grades. *covered* is the share of intervals that contain the true mean."
    ),
    "Label uncertainty": (
        "nDCG@10 by the grades, by the mean of 200 draws of all grades (*expected*), and by expected gains. *covered* "
        "is the share of intervals over draws that contain the true mean, also if they are moved to the mean by "
        "grades."
    ),
    "Review plan": "Log score of the human grades of all passages.",
    "Early stop": (
        "Share of missed passages of grade 3 or more at equal numbers of judgments. Grading stops after 5, 10 or 20 "
        "low grades in a row. A grade up to 2 is low, or it is low only if the probability of grade 3 or more is "
        "below 0.2."
    ),
    "Cascade": (
        "The good judge grades passages from grade 3. Or it grades as many by the probability of grade 3 or more, or "
        "by the uncertainty of the grade. *missed* is the share of passages of grade 4 or more that it does not "
        "grade. *share of calls, equal miss* is the share by probability that misses as many as grades do. Each world "
        "has its own threshold for that, which a user cannot know."
    ),
    "Cascade, fixed rules": (
        "The good judge grades passages from grade 3 or 2, or from a probability of grade 3 or more of 0.3 or 0.6. "
        "*gain error* is the mean error of 2^grade over the mean of 2^grade. *equal exact* and *equal gains* are the "
        "calls for as many exact grades, or the same gain error, relative to the calls with grade 3. *uncertainty* "
        "orders passages by the probability of their grade."
    ),
    "Second sample": (
        "Log score with one sample, with the mean of two for the 20% least certain passages, for random 20%, and for "
        "all."
    ),
    "Two samples": (
        "Further samples only for passages whose grade has a probability below 0.8 or 0.9, for as many random "
        "passages as below 0.9, or for all. *sampled again* is the share of passages with further samples."
    ),
    "Control items": "Log score on all passages after a fit on 60 control items or 60 labels.",
}
POWER = {"calibrated": 1.0, "over-confident": 2.0, "under-confident": 0.5}
TABLES = {
    "Corrected scores": corrected,
    "Label uncertainty": uncertain,
    "Review plan": planned,
    "Early stop": stopped,
    "Cascade": cascaded,
    "Cascade, fixed rules": cascaded_by_fixed_rules,
    "Second sample": lambda found, kind: sampled(found, POWER[kind]),
    "Two samples": lambda found, kind: sampled_again(found, kind, 2),
    "Three samples": lambda found, kind: sampled_again(found, kind, 3),
    "Control items": lambda found, kind: controlled(found, POWER[kind]),
}


def table(title: str, worlds: Sequence[dict[str, Collection]]) -> Iterator[str]:
    measure = TABLES[title]
    powered = title in ("Second sample", "Control items")
    by_kind = powered or title in ("Two samples", "Three samples")
    kinds = [kind for kind in KINDS if not powered or kind in POWER]
    rows = {
        kind: [measure(world[kind], kind) if by_kind else measure(world[kind]) for world in worlds] for kind in kinds
    }
    names = list(rows[kinds[0]][0])
    yield "| judge | " + " | ".join(names) + " |"
    yield "|" + "---|" * (1 + len(names))
    for kind, found in rows.items():
        cells = [spread(np.array([each[name] for each in found], dtype=np.float64), 3) for name in names]
        yield f"| {kind} | " + " | ".join(cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with corpus.jsonl, queries.jsonl and qrels.trec")
    parser.add_argument("--quick", action="store_true", help="12 synthetic queries, two worlds")
    parser.add_argument("--worlds", type=int, default=10)
    parser.add_argument("--out", type=Path, help=f"write the tables there, between {BEGIN} and {END} if it exists")
    given = parser.parse_args()
    quick = given.quick or given.data is None
    queries = synthetic_queries(12, 1) if quick else [each for each in load_queries(given.data) if each.number % 2]
    seeds = range(1, (2 if given.quick else given.worlds) + 1)
    worlds = [{kind: Collection(queries, seed, kind) for kind in KINDS} for seed in seeds]
    about = f"{len(queries)} queries, {len(seeds)} worlds. ± is the standard error over worlds."
    parts = [about]
    for title in TABLES:
        parts += [f"### {title}", *([NOTES[title]] if title in NOTES else []), "\n".join(table(title, worlds))]
    text = "\n\n".join(parts)
    print(text)
    if given.out:
        page = given.out.read_text(encoding="utf-8") if given.out.exists() else f"{BEGIN}\n{END}\n"
        given.out.write_text(put_between_markers(page, text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
