"""Runs that were made elsewhere: scored where they lie and as `raggs eval` scores them, without any passage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sweeping import SweepProject, make_sweep

from raggs.app.eval_request import EvalRequest, JudgedFiles, MeasureRequest, ScaleRequest
from raggs.app.evaluate import evaluate
from raggs.app.sweep import choose_again, load_sweep, plan_sweep
from raggs.base.errors import NotFoundError
from raggs.metrics.columns import Run
from raggs.sweeps.audit import findings
from raggs.sweeps.world import first_hits, lists_of


def made(folder: Path, runs: int = 3, **keys: object) -> SweepProject:
    """A sweep over runs with ties, in a folder that has no corpus."""
    mode = [{"type": "runfile", "path": f"r{run}.trec"} for run in range(runs)]
    project = make_sweep(folder, golden="qrels.txt", axes={"mode": mode, "k": [20]}, **keys)
    judged: dict[str, list[str]] = {}
    for line in (folder / "qrels.txt").read_text().splitlines():
        judged.setdefault(line.split()[0], []).append(line.split()[2])
    for run in range(runs):
        lines = [
            f"{qid} Q0 {doc} 0 {-(place // 2)} r\n"
            for qid, docs in judged.items()
            for place, doc in enumerate((docs[5 * run :] + docs[: 5 * run])[::-1])
        ]
        (folder / f"r{run}.trec").write_text("".join(lines))
    (folder / "corpus.jsonl").unlink()
    (folder / "queries.jsonl").unlink()
    return project


def test_they_need_neither_corpus_nor_questions_and_score_as_raggs_eval_does(tmp_path: Path) -> None:
    project = made(tmp_path)
    assert plan_sweep(load_sweep(project.config)).passages == 0
    report = project.sweep().report
    files = tuple(f"runfile-r{run}={tmp_path / f'r{run}.trec'}" for run in range(3))
    wanted = MeasureRequest(("ra_nwg", "n_recall4", "ndcg", "holes"), (5, 10))
    for part in evaluate(EvalRequest(JudgedFiles(tmp_path / "qrels.txt", files), wanted)).report.systems:
        ours = report.system(part.name).scores
        assert {measure: ours[measure] for measure in part.scores} == part.scores
    assert not (project.out / "runs").exists()
    assert [row.file for row in report.systems] == [str(tmp_path / f"r{run}.trec") for run in range(3)]
    assert project.sweep().unchanged
    assert findings(project.out)[0] == []


def test_another_file_is_told_by_the_audit_and_read_again_by_the_sweep(tmp_path: Path) -> None:
    project = made(tmp_path)
    project.sweep()
    path = tmp_path / "r1.trec"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[::2]))
    assert any(finding.file == str(path) for finding in findings(project.out)[0])
    again = choose_again(load_sweep(project.config)).report.system("runfile-r1")
    assert "is not the run that the sweep read" in str(again.failed)
    assert not project.sweep().unchanged
    assert findings(project.out)[0] == []


def test_a_file_of_other_questions_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    project = made(tmp_path)
    (tmp_path / "r1.trec").write_text("other Q0 d1 1 1 r\n")
    report = project.sweep().report
    assert [bool(row.failed) for row in report.systems] == [False, True, False]
    (tmp_path / "r1.trec").unlink()
    with pytest.raises(NotFoundError, match=r"r1\.trec"):
        project.sweep()


def test_questions_rewritten_are_no_other_system(tmp_path: Path) -> None:
    project = made(tmp_path, runs=1)
    project.change(axes={**project.settings()["axes"], "rewrite": ["none", "clean"]})
    report = project.sweep().report
    assert [row.name for row in report.systems] == ["runfile-r0"]
    assert report.left_out == (
        "1 combination omitted: an external run is not searched, so it is the same with all embedders, indexes and "
        "rewriters",
    )


def test_beside_a_grid_their_passages_must_be_known(tmp_path: Path) -> None:
    project = make_sweep(tmp_path, axes={"mode": ["lexical", {"type": "runfile", "path": "r.trec"}], "k": [10]})
    (tmp_path / "r.trec").write_text("q00 Q0 strange 1 1 r\n")
    row = project.sweep().report.systems[1]
    assert "no passage 'strange'" in str(row.failed)


lists = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]),
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3), min_size=1),
    min_size=1,
)


@given(lists, st.integers(1, 6))
def test_the_first_k_are_those_of_trec_eval(found: dict[str, dict[str, int]], k: int) -> None:
    run = Run.of({qid: {doc: float(score) for doc, score in docs.items()} for qid, docs in found.items()})
    best = {qid: sorted(sorted(docs, reverse=True), key=lambda doc: -docs[doc])[:k] for qid, docs in found.items()}
    assert {qid: [doc for doc, _ in hits] for qid, hits in lists_of(run, k).items()} == best
    cut = first_hits(run, k)
    assert {qid: [doc for doc, _ in hits] for qid, hits in lists_of(cut, k).items()} == best
    assert len(cut.query) == sum(map(len, best.values()))


def test_labels_that_may_mean_two_things_are_swept_on_the_scale_that_is_named(tmp_path: Path) -> None:
    project = made(tmp_path, runs=2)
    labels = tmp_path / "qrels.txt"
    rows = [line.split() for line in labels.read_text().splitlines()]
    labels.write_text("".join(f"{qid} 0 {doc} {min(int(grade), 2)}\n" for qid, _, doc, grade in rows))
    assert "--scale 0-2" in project.said(code=5)
    project.call("--scale", "0-2")
    files = tuple(f"runfile-r{run}={tmp_path / f'r{run}.trec'}" for run in range(2))
    wanted = MeasureRequest(("ndcg",), (5,))
    ours = evaluate(EvalRequest(JudgedFiles(labels, files), wanted, ScaleRequest((0, 2)))).report
    project.change(scale="0-2")
    swept = project.sweep()
    assert swept.unchanged
    for part in ours.systems:
        theirs = swept.report.system(part.name).scores
        assert theirs["ndcg@5"] == part.scores["ndcg@5"]
    assert findings(project.out)[0] == []
    assert "--scale" in project.said("--scale", "two", code=2)
