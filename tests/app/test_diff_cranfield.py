"""Two judges of different noise on Cranfield: the verdicts that `raggs diff` says flip are those that flip by hand.

By hand: values by query from two separate evaluations, and tests and intervals of scipy.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import yaml
from scipy import stats
from support.cranfield import DATA, needs_cranfield
from support.scoring import scored

from raggs import load_config
from raggs import run as run_config
from raggs.app.diff import DiffRequest, diff

MEASURES = ("ndcg@10", "ra_nwg@10", "recall@10", "mrr@10")
ALPHA, MARGIN = 0.05, 0.01


@needs_cranfield
def test_verdicts_that_flip_are_those_counted_by_hand(tmp_path: Path) -> None:
    old, new = judged(tmp_path, 0.25, 1), judged(tmp_path, 0.9, 3)
    found = diff(DiffRequest(old, new, measures=MEASURES)).decisions
    assert found is not None
    sides = [scored("-g", run, "-r", new, "-m", ",".join(MEASURES))["per_query"] for run in (old, new)]
    expected = {}
    for measure in MEASURES:
        before, after = (by_hand({name: values[measure] for name, values in side.items()}) for side in sides)
        expected |= {(*pair, measure): (before[pair], after[pair]) for pair in before}
    assert {(each.first, each.second, each.measure): (each.old, each.new) for each in found.verdicts} == expected
    flips = {name for name, (one, other) in expected.items() if one != other}
    assert {(each.first, each.second, each.measure) for each in found.flips} == flips
    assert len(flips) >= 2


def judged(folder: Path, noise: float, seed: int) -> Path:
    """A run over forty questions, as far as the judge."""
    questions = (DATA / "queries.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)[:40]
    (folder / "queries.jsonl").write_text("".join(questions), encoding="utf-8")
    judge = {"type": "qrels", "path": str(DATA / "qrels.trec"), "grade_noise": noise, "seed": seed}
    settings = {
        "name": f"judge-{seed}",
        "corpus": {"type": "jsonl", "path": str(DATA / "corpus.jsonl")},
        "queries": {"type": "jsonl", "path": "queries.jsonl"},
        "judge": {"judge": judge},
    }
    (folder / "raggs.yaml").write_text(yaml.safe_dump(settings))
    return run_config(load_config(folder / "raggs.yaml"), stop="judge").store.folder


def by_hand(systems: dict[str, dict[str, float]]) -> dict[tuple[str, str], str]:
    """The verdict on each pair: Holm over the pairs, and the interval of the mean difference."""
    pairs = list(combinations(systems, 2))
    rows = [
        np.array(
            [systems[one][qid] - systems[other][qid] for qid in sorted(systems[one].keys() & systems[other].keys())]
        )
        for one, other in pairs
    ]
    raw = [stats.permutation_test((row,), np.mean, permutation_type="samples", rng=3).pvalue for row in rows]
    corrected, worst = {}, 0.0
    for rank, place in enumerate(np.argsort(raw)):
        worst = max(worst, min(1.0, raw[place] * (len(raw) - rank)))
        corrected[pairs[place]] = worst
    return {pair: verdict(row, corrected[pair]) for pair, row in zip(pairs, rows, strict=True)}


def verdict(row: np.ndarray, p: float) -> str:
    low, high = stats.bootstrap((row,), np.mean, method="BCa", rng=3).confidence_interval
    if p < ALPHA and low > 0:
        return "better"
    if p < ALPHA and high < 0:
        return "worse"
    return "equivalent" if low >= -MARGIN and high <= MARGIN else "inconclusive"
