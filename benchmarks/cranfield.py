"""Make a golden set of a labelled collection, and compare its order with the human labels.

    python benchmarks/cranfield.py FOLDER             FOLDER has corpus.jsonl, queries.jsonl, qrels.trec

The judge returns the human labels with noise (Plackett-Luce, beta 3; a grade is off by one with probability 0.25). So
the figures show the effect of an imperfect judge. nDCG@10 has linear gains (ir_measures).
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import ir_measures
from ir_measures import nDCG

from raggs import load_config, open_run, run
from raggs.app.export import export_run
from raggs.base.artifacts import MergeRecord, RetrieveRecord
from raggs.runs.manifests.audit import audit

CONFIG = """
name: cranfield
workspace: {workspace}
corpus: {{type: jsonl, path: {folder}/corpus.jsonl}}
queries: {{type: jsonl, path: {folder}/queries.jsonl}}
judge: {{judge: {{type: qrels, path: {folder}/qrels.trec, beta: 3, grade_noise: 0.25, seed: 1}}}}
rank: {{max_calls: {calls}}}
"""

Run = dict[str, dict[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--calls", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        config = Path(name) / "raggs.yaml"
        config.write_text(CONFIG.format(workspace=name, folder=options.folder.resolve(), calls=options.calls))
        began = time.perf_counter()
        result = run(load_config(config))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"run: {time.perf_counter() - began:.1f} s, peak {peak:.0f} MiB")
        opened = open_run(result.store.folder)
        for stage, lock in opened.manifest.stages.items():
            seconds = (lock.ended - lock.started).total_seconds()
            rows = next(iter(lock.outputs.values())).rows
            print(f"  {stage:<9} {rows:>7,} records  {seconds:>4.0f} s  failed {lock.failed}")
        began = time.perf_counter()
        findings = list(audit(opened))
        print(f"audit: {len(findings)} findings, {time.perf_counter() - began:.1f} s")
        export_run(opened, "trec", Path(name) / "trec")
        qrels = list(ir_measures.read_trec_qrels(str(options.folder / "qrels.trec")))
        exported = list(ir_measures.read_trec_qrels(str(Path(name) / "trec" / "qrels.txt")))
        runs: dict[str, Run] = defaultdict(lambda: defaultdict(dict))
        for hit in opened.typed("retrieve", RetrieveRecord):
            runs[hit.retriever][hit.qid][hit.doc_id] = hit.score
        for item in opened.typed("merge", MergeRecord):
            runs["fused"][item.qid][item.doc_id] = item.score
        golden = list(ir_measures.read_trec_run(str(Path(name) / "trec" / "run.trec")))
        print(f"exported qrels: {len(exported):,} labels")
        print("nDCG@10 by the human labels:")
        for system, ranked in {"golden": golden, **runs}.items():
            print(f"  {system:<6} {ir_measures.calc_aggregate([nDCG @ 10], qrels, ranked)[nDCG @ 10]:.4f}")


if __name__ == "__main__":
    main()
