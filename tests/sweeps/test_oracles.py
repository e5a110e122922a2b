"""What a sweep says, by others' programs and by hand: scores, fused lists, effects, money."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import ir_measures
import pytest
from ir_measures import P, R, nDCG
from support.onnx_models import write_cross_encoder
from support.sweeping import SweepProject, make_sweep

from raggs.app.eval_request import EvalRequest, JudgedFiles, MeasureRequest
from raggs.app.evaluate import evaluate
from raggs.metrics.names import parse_measure
from raggs.sweeps.models import SweepReport

PRICES = {"generator": {"input": 0.25}}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[SweepProject, SweepReport]:
    axes = {
        "embedder": [{"type": "wordllama", "dims": [64, 256]}],
        "index": ["flat", {"type": "hnsw", "quantize": "int8"}],
        "mode": ["dense", "lexical", "hybrid"],
        "k": [12, 20],
    }
    project = make_sweep(tmp_path_factory.mktemp("oracles"), axes=axes, prices=PRICES, measures=["precision", "recall"])
    return project, project.sweep().report


def lists(project: SweepProject, name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (project.out / "runs" / f"{name}.trec").read_text().splitlines():
        qid, _, doc, _, _, _ = line.split()
        found.setdefault(qid, []).append(doc)
    return found


def test_scores_are_those_of_ir_measures(swept: tuple[SweepProject, SweepReport]) -> None:
    project, report = swept
    assert len(report.systems) == 18
    qrels = list(ir_measures.read_trec_qrels(str(project.folder / "qrels.txt")))
    gains = [ir_measures.Qrel(each.query_id, each.doc_id, max(0, each.relevance - 1)) for each in qrels]
    for row in report.systems:
        run = list(ir_measures.read_trec_run(str(project.out / str(row.file))))
        for k in (5, 10):
            ndcg = ir_measures.calc_aggregate([nDCG @ k], gains, run)[nDCG @ k]
            assert row.scores[f"ndcg@{k}"].mean == pytest.approx(ndcg, abs=1e-9), row.name
            found = ir_measures.calc_aggregate([P(rel=4) @ k, R(rel=4) @ k], qrels, run)
            assert row.scores[f"precision@{k}"].mean == pytest.approx(found[P(rel=4) @ k], abs=1e-9), row.name
            if row.scores[f"recall@{k}"].valid == report.questions:
                assert row.scores[f"recall@{k}"].mean == pytest.approx(found[R(rel=4) @ k], abs=1e-9), row.name


def test_ceilings_are_those_of_raggs_eval_at_the_systems_own_k(swept: tuple[SweepProject, SweepReport]) -> None:
    project, report = swept
    for k in (12, 20):
        rows = [row for row in report.systems if row.k == k]
        files = tuple(f"{row.name}={project.out / str(row.file)}" for row in rows)
        names = (f"proc_ra_nwg({k})", f"pct_proc_ra_nwg({k})")
        wanted = MeasureRequest(names, (5, 10))
        found = evaluate(EvalRequest(JudgedFiles(project.folder / "qrels.txt", files), wanted)).report
        for row, part in zip(rows, found.systems, strict=True):
            assert row.name == part.name
            for form, cutoff in product(("proc_ra_nwg", "pct_proc_ra_nwg"), (5, 10)):
                assert row.scores[f"{form}@{cutoff}"] == part.scores[parse_measure(f"{form}({k})@{cutoff}").name]


def test_fused_lists_are_reciprocal_rank_fusion(tmp_path: Path) -> None:
    """Both lists are as deep as the corpus only where k covers them, so the first places alone are compared."""
    project = make_sweep(tmp_path, hybrid={"depth": 20})
    project.sweep()
    dense, lexical = lists(project, "dense+wordllama+k20"), lists(project, "lexical+k20")
    fused = lists(project, "hybrid+wordllama+k20")
    assert len(fused) == 6
    for qid, docs in fused.items():
        scores: dict[str, float] = {}
        for each in (dense[qid], lexical[qid]):
            for rank, doc in enumerate(each, start=1):
                scores[doc] = scores.get(doc, 0.0) + 1 / (60 + rank)
        assert [round(scores[doc], 12) for doc in docs] == [
            round(score, 12) for score in sorted(scores.values(), reverse=True)[:20]
        ]


def test_effects_are_mean_differences_of_matched_systems(swept: tuple[SweepProject, SweepReport]) -> None:
    _, report = swept
    first = report.quality[0]
    assert {effect.axis for effect in report.effects} == {"embedder", "index", "mode", "k"}
    for effect in report.effects:
        pairs = [
            (one, other)
            for one, other in product(report.systems, repeat=2)
            if one.levels.get(effect.axis) == effect.level
            and other.levels.get(effect.axis) == effect.against
            and {**one.levels, effect.axis: ""} == {**other.levels, effect.axis: ""}
        ]
        if effect.axis == "mode" and "lexical" in (effect.level, effect.against):
            continue  # a lexical search lacks axes: who is matched to it is tested with the effects
        gaps = [(one.scores[first].mean or 0) - (other.scores[first].mean or 0) for one, other in pairs]
        assert effect.pairs == len(pairs)
        assert effect.quality == pytest.approx(sum(gaps) / len(gaps), abs=1e-9)


def test_money_is_tokens_times_prices(tmp_path: Path, swept: tuple[SweepProject, SweepReport]) -> None:
    _, report = swept
    for row in report.systems:
        assert row.cost is not None
        assert row.cost.context_tokens is not None
        assert row.cost.generate == pytest.approx(1000 * row.cost.context_tokens * 0.25 / 1e6)
        assert row.cost.total == pytest.approx(row.cost.generate)


def test_an_own_cross_encoder_among_rewrites_indexes_and_modes(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path / "model")
    axes = {
        "rewrite": ["none", "clean"],
        "embedder": [{"type": "wordllama", "dims": 64}],
        "index": ["flat", "hnsw"],
        "mode": ["dense", "lexical", "hybrid"],
        "k": [5, 10],
        "reranker": ["none", {"type": "onnx", "path": "model"}],
    }
    project = make_sweep(tmp_path, axes=axes, count=3, **{"except": [{"mode": "lexical", "k": 5}]})
    report = project.sweep().report
    assert not [row.failed for row in report.systems if row.failed]
    assert len(report.systems) == 2 * 2 * (2 * 2 * 2) + 2 * 2
    assert len(report.left_out) == 2
    reranked = [row for row in report.systems if row.levels["reranker"] != "none"]
    assert all(row.latency.rerank is not None and row.cost is not None and row.cost.rerank == 0 for row in reranked)
    before = project.files()
    assert project.sweep().unchanged
    for path in project.out.rglob("*.json*"):
        path.unlink()
    project.sweep()
    assert project.files() == before
