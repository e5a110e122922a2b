"""What judging less deep saves, and what it misses, on a labelled collection.

    python benchmarks/depth.py FOLDER             FOLDER holds corpus.jsonl, queries.jsonl, qrels.trec

The judge replays the human labels; passages without one get grade 1. Each depth is a run of its own to the judge
stage. Against the whole pool: judgments, the share of them saved, passages of grade 4 or more that were not judged, the
queries that lost any, and what that costs N-Recall4+@20. The latter is the share of min(20, n) found, n being the
pool's passages of grade 4 or more, as the mean over the queries that have any.

With --noise a grade is off by one with that probability; what was missed is still told by the labels.
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
HEAD = "| stop_after | judgments | saved | grade 4+ missed | queries that miss any | N-Recall4+@20 lost |"


def walk(config: Path, depth: str) -> list[JudgeRecord]:
    """The judged pools at one depth, without near-duplicates."""
    result = run(load_config(config, [f"judge.stop_after={'null' if depth == 'off' else depth}"]), stop="judge")
    records = open_run(result.store.folder).typed("judge", JudgeRecord)
    return [record for record in records if record.duplicate_of is None]


def row(depth: str, records: list[JudgeRecord], good: set[tuple[str, str]]) -> str:
    """A line of the table."""
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
