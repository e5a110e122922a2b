"""A whole golden set from outside: Cranfield's human labels, runs that raggs made, scores as ir_measures gives them."""

from __future__ import annotations

import json
from pathlib import Path

import ir_measures
import pytest
import yaml
from support.cli import invoke
from support.scoring import scored

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "cranfield"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the Cranfield collection is not on this machine")

# Those that trec_eval computes for ir_measures; other providers break ties in ways of their own.
MEASURES = ("nDCG@10", "nDCG@100", "P@10", "P(rel=4)@5", "R@100", "RR", "AP", "AP@100", "Success@5")


def test_retrievers_of_a_run_score_as_ir_measures_says(tmp_path):
    settings = {
        "name": "cranfield",
        "corpus": {"type": "jsonl", "path": str(DATA / "corpus.jsonl")},
        "queries": {"type": "jsonl", "path": str(DATA / "queries.jsonl")},
        "judge": {"judge": {"type": "qrels", "path": str(DATA / "qrels.trec")}},
    }
    (tmp_path / "raggs.yaml").write_text(yaml.safe_dump(settings))
    arguments = ["run", "--config", str(tmp_path / "raggs.yaml"), "--to", "merge", "--quiet"]
    done = invoke(*arguments)
    assert done.exit_code == 0, done.stderr
    run = tmp_path / "runs" / "cranfield"
    report = scored("-g", DATA / "qrels.trec", "-r", run, "-m", ",".join(MEASURES), "-b", "bm25", "--scale", "0-5")
    assert report["golden"]["queries"] == 150
    assert [system["name"] for system in report["systems"]] == ["bm25", "dense", "fused"]

    qrels = list(ir_measures.read_trec_qrels(str(DATA / "qrels.trec")))
    asked = [ir_measures.parse_measure(name) for name in MEASURES]
    for system in report["systems"]:
        expected = ir_measures.calc_aggregate(asked, qrels, lists(run, system["name"]))
        for name, ours in zip(MEASURES, report["measures"][: len(MEASURES)], strict=True):
            theirs = expected[ir_measures.parse_measure(name)]
            assert system["scores"][ours]["mean"] == pytest.approx(theirs, abs=1e-9), (system["name"], name)
    verdicts = {(part["system"], part["measure"]): part["verdict"] for part in report["comparisons"]}
    assert verdicts["dense", "ndcg@10"] == "worse"


def lists(run: Path, name: str) -> dict[str, dict[str, float]]:
    """A system's lists, read without raggs."""
    found: dict[str, dict[str, float]] = {}
    file = "merge.jsonl" if name == "fused" else "retrieve.jsonl"
    for line in (run / file).read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record.get("retriever", name) == name:
            found.setdefault(record["qid"], {})[record["doc_id"]] = record["score"]
    return found
