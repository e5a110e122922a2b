"""The use case from Python: typed values in, a report and its gates out."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.scoring import OUTPUTS, QRELS, RUN, SAMPLES, write

from raggs.app.eval_request import AnalysisRequest, EvalRequest, JudgedFiles, MeasureRequest, SampleFiles, ScaleRequest
from raggs.app.evaluate import evaluate
from raggs.app.gates import GateRequest
from raggs.base.errors import NotFoundError, PartialError, UsageError


@pytest.fixture
def files(tmp_path: Path) -> JudgedFiles:
    write(tmp_path, qrels=QRELS, a=RUN, samples=SAMPLES, outputs=OUTPUTS)
    return JudgedFiles(tmp_path / "qrels", (str(tmp_path / "a"),))


def test_the_usual_measures_at_the_usual_cutoff(files):
    report = evaluate(EvalRequest(files)).report
    assert report.measures[0] == "ra_nwg@10"
    assert report.measures[-1] == "holes@10"
    assert report.systems[0].bottleneck
    assert report.systems[0].scores["ra_nwg@10"].lowest is None


def test_values_reach_what_they_are_about(files):
    request = EvalRequest(
        files,
        MeasureRequest(("recall", "mrr"), cutoffs=(1, 2), condensed=True),
        ScaleRequest(relevant=2, gains={5: 8.0}),
        AnalysisRequest(frozenset({"bounds", "robustness"}), pool=3),
        GateRequest({"map": 0.5}),
        confidence=0.8,
        seed=7,
    )
    report = evaluate(request).report
    assert report.measures == ("recall@1", "recall@2", "mrr@1", "mrr@2", "map", "holes@1", "holes@2")
    assert (report.condensed, report.confidence, report.seed) == (True, 0.8, 7)
    assert (report.golden.relevant, report.golden.gains) == (2, (0.0, 1.0, 2.0, 3.0, 8.0))
    system = report.systems[0]
    assert [part.measure for part in system.robustness] == ["recall@1", "recall@2"]
    assert system.bottleneck[0].pool == 3
    assert system.scores["mrr@1"].lowest is not None


def test_gates_are_judged_by_whoever_asked(files):
    result = evaluate(EvalRequest(files, MeasureRequest(("mrr",)), gates=GateRequest({"mrr": 0.9})))
    with pytest.raises(PartialError, match=r"mrr of a is 0\.6667, below 0\.9"):
        result.gates.judge(result.report)


def test_a_wrong_path_of_a_gate_is_told_first(tmp_path):
    nothing = JudgedFiles(tmp_path / "none", ("none",))
    with pytest.raises(NotFoundError, match=r"before\.json"):
        evaluate(EvalRequest(nothing, gates=GateRequest(before=tmp_path / "before.json")))


def test_samples_bring_their_own_cutoff_and_know_no_doubt(files, tmp_path):
    samples = SampleFiles(tmp_path / "samples", tmp_path / "outputs")
    assert evaluate(EvalRequest(samples)).report.measures[0] == "hit@5"
    with pytest.raises(UsageError, match="does not record the uncertainty"):
        evaluate(EvalRequest(samples, analyses=AnalysisRequest(frozenset({"uncertainty"}))))


def test_the_reciprocal_rank_of_samples_has_no_cutoff_unless_one_is_named(tmp_path):
    retrieved = ", ".join(f'"x{place}"' for place in range(6))
    write(
        tmp_path,
        samples="samples: [{id: s, expected_output: [a], metadata: {k: 5}}]",
        plain="samples: [{id: s, expected_output: [a]}]",
    )
    write(tmp_path, outputs=f'{{"id": "s", "output": [{retrieved}, "a"]}}')
    asked = MeasureRequest(("mrr", "retrieval-mrr", "mrr@5", "retrieval-hit-at-k"))
    for name, hit in (("plain", "hit@5"), ("samples", "hit@k")):
        report = evaluate(EvalRequest(SampleFiles(tmp_path / name, tmp_path / "outputs"), asked)).report
        scores = {measure: part.mean for measure, part in report.systems[0].scores.items()}
        assert (scores["mrr"], scores[hit.replace("hit", "mrr")], scores[hit]) == (pytest.approx(1 / 7), 0.0, 0.0)
    usual = evaluate(EvalRequest(SampleFiles(tmp_path / "plain", tmp_path / "outputs"), MeasureRequest(cutoffs=(3,))))
    assert usual.report.measures == ("hit@3", "recall@3", "precision@3", "mrr", "mrr@3", "ndcg@3", "holes@3")


def test_the_default_cutoff_gives_way_to_every_other(files, tmp_path):
    by_name = evaluate(EvalRequest(files, MeasureRequest(("ra_nwg", "recall@2"), default_k=3))).report.measures
    assert by_name[:2] == ("ra_nwg@3", "recall@2")
    assert evaluate(EvalRequest(files, MeasureRequest(cutoffs=(1,), default_k=3))).report.measures[0] == "ra_nwg@1"
    samples = SampleFiles(tmp_path / "samples", tmp_path / "outputs")
    assert evaluate(EvalRequest(samples, MeasureRequest(default_k=2))).report.measures[0] == "hit@2"


def test_a_gain_of_no_grade_is_refused(files):
    with pytest.raises(UsageError, match="9 is not a grade"):
        evaluate(EvalRequest(files, scale=ScaleRequest(gains={9: 1.0})))
