"""Measure judges without a language model on a labelled collection: `raggs judge bench` as a table.

    python benchmarks/judgebench.py FOLDER        FOLDER has corpus.jsonl, queries.jsonl, qrels.trec

Five judges grade the same sample of 400 labelled pairs:

- simulated 0.1, 0.3, 0.5: the labels, with this probability of an error by one grade (judge `qrels`, orders with beta
  3)
- reference: the share of the query's words that the passage contains (judge `reference` with the query as its own
  reference and runs of one word)
- nuggets: the share of the query's content words that the passage contains (judge `nuggets`, one pattern per word)

The last two use neither labels nor grades. They show the agreement that word overlap reaches.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from pathlib import Path

from raggs.app.judge_bench import JudgeBenchRequest, bench_judges
from raggs.app.leaderboard import Leaderboard
from raggs.app.leaderboard_layout import bounded_text

NOISES = (0.1, 0.3, 0.5)
WORD = re.compile(r"[a-z]{4,}")
CONFIG = """
judges:
{simulated}
  - name: reference
    judge: {{type: reference, min_run: 1}}
  - name: nuggets
    judge: {{type: nuggets}}
"""
SIMULATED = (
    "  - {{name: simulated {noise}, judge: {{type: qrels, path: {labels}, grade_noise: {noise}, beta: 3, seed: 1}}}}"
)


def with_facts(queries: Path, target: Path) -> None:
    """Write the queries with their text as a reference, and with a nugget for each of their content words."""
    lines = []
    for line in queries.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        words = dict.fromkeys(WORD.findall(row["text"].lower()))
        nuggets = [{"any": [rf"\b{word}"]} for word in words]
        lines.append(json.dumps({**row, "references": [row["text"]], "nuggets": nuggets}))
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


def table(found: Leaderboard) -> list[str]:
    """Return the rows of the result."""
    lines = [
        "| judge | kappa | alpha | exact | bias | mean grade for labels 2, 3, 4, 5 | retest | pairs changed "
        "| first wins |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for each in found.entries:
        part = each.shown
        means = ", ".join("–" if mean.mean is None else f"{mean.mean:.2f}" for mean in part.by_grade[1:])
        cells = [each.judge, bounded_text(part.kappa), bounded_text(part.alpha), bounded_text(part.exact)]
        cells += [bounded_text(part.bias, "+z.2f"), means, bounded_text(part.retest)]
        cells += [bounded_text(part.changed), bounded_text(part.first_shown)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    labels = options.folder.resolve() / "qrels.trec"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with_facts(options.folder / "queries.jsonl", folder / "queries.jsonl")
        simulated = "\n".join(SIMULATED.format(noise=noise, labels=labels) for noise in NOISES)
        (folder / "judges.yaml").write_text(CONFIG.format(simulated=simulated))
        request = JudgeBenchRequest(labels, config=folder / "judges.yaml", queries=folder / "queries.jsonl")
        began = time.perf_counter()
        found = bench_judges(request, folder / "bench").leaderboard
        seconds = time.perf_counter() - began
    sample = found.sample
    print(f"{len(sample.labels)} of {sample.available:,} labelled pairs, {sample.queries} queries, {seconds:.1f} s")
    print(f"labelled set {sample.set_hash[:12]}, sample {sample.sample_hash[:12]}\n")
    print("\n".join(table(found)))
    print("\n| judge | compared with | kappa difference | p (Holm) | verdict |\n|---|---|---|---|---|")
    for each in found.pairs:
        p = "–" if each.corrected is None else f"{each.corrected:.4f}"
        print(f"| {each.first} | {each.second} | {bounded_text(each.kappa, '+z.3f')} | {p} | {each.verdict} |")


if __name__ == "__main__":
    main()
