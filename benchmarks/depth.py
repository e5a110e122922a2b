"""Measure the judgments that `judge.stop_after` saves, and the passages that it misses, on a labelled collection.

    python benchmarks/depth.py FOLDER             FOLDER has corpus.jsonl, queries.jsonl, qrels.trec

The judge returns the human labels. Passages without a label get grade 1. Each depth is a separate run up to the judge
stage. The table has the judgments, their saved share, the missed passages of grade 4 or more, the queries that miss
any, and the loss of N-Recall4+@20. N-Recall4+@20 is the share of min(20, n) that is found, where n is the number of
passages of grade 4 or more in the pool. It is the mean over the queries with n > 0.

With --noise, a grade is off by one with that probability. Missed passages are still counted by the labels.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from pathlib import Path

from raggs import load_config, open_run, run
from raggs.base.artifacts import JudgeRecord
from raggs.base.trec import read_qrels

CONFIG = """
name: depth
workspace: {workspace}
corpus: {{type: jsonl, path: {folder}/corpus.jsonl}}
queries: {{type: jsonl, path: {folder}/queries.jsonl}}
judge: {{judge: {{type: qrels, path: {folder}/qrels.trec, grade_noise: {noise}}}}}
"""
DEPTHS = ("5", "10", "15", "20", "30", "off")
GOOD, TOP = 4, 20
HEAD = (
    "| stop_after | judgments | judgments saved | passages of grade 4+ missed | queries that miss any "
    "| loss of N-Recall4+@20 |"
)


def walk(config: Path, depth: str) -> list[JudgeRecord]:
    """Return the judged pools at one depth, without near-duplicates."""
    result = run(load_config(config, [f"judge.stop_after={'null' if depth == 'off' else depth}"]), stop="judge")
    records = open_run(result.store.folder).typed("judge", JudgeRecord)
    return [record for record in records if record.duplicate_of is None]


def row(depth: str, records: list[JudgeRecord], good: set[tuple[str, str]]) -> str:
    """Return a row of the table."""
    wanted: dict[str, int] = defaultdict(int)
    lost: dict[str, int] = defaultdict(int)
    for record in records:
        if (record.qid, record.doc_id) in good:
            wanted[record.qid] += 1
            lost[record.qid] += record.skipped is not None
    judged = sum(record.skipped is None for record in records)
    missed = sum(lost.values())
    recalls = [min(TOP, count - lost[qid]) / min(TOP, count) for qid, count in wanted.items()]
    losses = sum(count > 0 for count in lost.values())
    return (
        f"| {depth} | {judged:,} | {1 - judged / len(records):.1%} | {missed} of {sum(wanted.values())} "
        f"| {losses} of {len(wanted)} | {1 - sum(recalls) / len(recalls):.4f} |"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--depths", default=",".join(DEPTHS), help="comma-separated numbers, or off")
    parser.add_argument("--noise", type=float, default=0.0, help="probability that a grade is off by one")
    options = parser.parse_args(arguments)
    folder = options.folder.resolve()
    good = {(label.qid, label.doc_id) for label in read_qrels(folder / "qrels.trec") if label.grade >= GOOD}
    print(HEAD)
    print("|---" * HEAD.count(" | ") + "|---|")
    with tempfile.TemporaryDirectory() as name:
        config = Path(name) / "raggs.yaml"
        config.write_text(CONFIG.format(workspace=name, folder=folder, noise=options.noise))
        for depth in options.depths.split(","):
            print(row(depth, walk(config, depth), good), flush=True)


if __name__ == "__main__":
    main()
