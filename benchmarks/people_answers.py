"""Measure whether the mean of a judge's answers predicts human grades better than their median.

A world has 75 queries of the collection. A simulated judge answers three or five times per passage. Some of its
answers are off by one grade, and its grade is the median. Both maps are fitted to the human grades of random
passages. The errors are those on other queries (cross-fitting).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from people_impact import GRADES, labelled, world_of

from raggs.base.hashing import generator
from raggs.stats.correction import calibrate

JUDGES = {"a quarter off by one": (0.25, 0.5), "two in five off by one": (0.4, 0.5), "half a grade up": (0.5, 1.0)}


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="people.py answers")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--worlds", type=int, default=30)
    options = parser.parse_args(arguments)
    collection = labelled(options.folder)
    print("| judge | answers | labels | median | median, mapped | mean, mapped | gain | better |\n" + "|---" * 8 + "|")
    for name, (noise, lean) in JUDGES.items():
        for answers, read in ((3, 200), (3, 600), (5, 200), (5, 600)):
            found = []
            for seed in range(options.worlds):
                some = collection.some(seed)
                world = world_of(some, seed, answers, noise, lean)
                rows = generator(seed, "read").permutation(len(world.truth))[:read]
                means = world.heard.voices[rows] @ np.arange(1, GRADES + 1) / answers
                clusters = [some.qrels.qids[query] for query in some.qrels.query[rows].tolist()]
                each = calibrate(world.machine[rows] + 1, world.truth[rows] + 1, clusters, seed=1, means=means)
                found.append((each.error, each.error_mapped, each.error_by_mean))
            columns = np.array(found)
            gain = columns[:, 1] - columns[:, 2]
            error = gain.std(ddof=1) / len(gain) ** 0.5
            cells = " | ".join(f"{value:.3f}" for value in columns.mean(axis=0))
            print(
                f"| {name} | {answers} | {read} | {cells} | {gain.mean():.3f} ± {error:.3f} | "
                f"{(gain > 0).sum()} of {len(gain)} |",
                flush=True,
            )
