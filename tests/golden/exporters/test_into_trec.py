"""ir_measures and pytrec_eval load a TREC export and get the numbers of `raggs eval`."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.snippets import run_snippet

NAMES = ("nDCG@10", "P@5", "R@10", "RR", "AP")


def test_ir_measures_gets_the_numbers_of_eval(consumed, tmp_path: Path, monkeypatch) -> None:
    consumed.export(tmp_path, "trec")
    monkeypatch.chdir(tmp_path)
    scores = run_snippet("trec")["scores"]
    theirs = {str(measure): value for measure, value in scores.items()}
    ours = consumed.means(consumed.run, "bm25", *NAMES)
    assert list(theirs) and [theirs[name] for name in ("nDCG@10", "P(rel=3)@5", "R(rel=3)@10")] == pytest.approx(
        ours[:3], abs=1e-9
    )
    assert [theirs["RR(rel=3)"], theirs["AP(rel=3)"]] == pytest.approx(ours[3:], abs=1e-9)


def test_pytrec_eval_gets_the_numbers_of_eval(consumed, tmp_path: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="comes with ir-measures on most platforms only")
    out = consumed.export(tmp_path, "trec")
    with (out / "qrels.txt").open() as file:
        qrels = pytrec_eval.parse_qrel(file)
    graded = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
    binary = pytrec_eval.RelevanceEvaluator(qrels, {"P.5", "recall.10", "recip_rank", "map"}, relevance_level=3)
    for system in ("bm25", "dense", "fused"):
        with (out / "runs" / f"{system}.trec").open() as file:
            lists = pytrec_eval.parse_run(file)
        found = {**graded.evaluate(lists)}
        found = {qid: {**one, **binary.evaluate(lists)[qid]} for qid, one in found.items()}
        theirs = [
            sum(one[name] for one in found.values()) / len(found)
            for name in ("ndcg_cut_10", "P_5", "recall_10", "recip_rank", "map")
        ]
        assert theirs == pytest.approx(consumed.means(consumed.run, system, *NAMES), abs=1e-9), system
