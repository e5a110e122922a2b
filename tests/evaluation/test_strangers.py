"""Lists that are about other passages than the judgments: refused where it is known, told where it shows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.cli import invoke
from support.project import make_project
from support.scoring import QRELS, raggs_eval, scored, write
from support.studies import GOOD, LABELS, SYSTEMS, golden, reported, scoring, study

from raggs import load_config
from raggs import run as run_config
from raggs.base.errors import DataError
from raggs.evaluation.analyses.losses import BottleneckAnalysis
from raggs.evaluation.report import make_report
from raggs.evaluation.study import doubt_of
from raggs.golden.judgments import DataOrigin, Judgments
from raggs.golden.sources import NamedSystem, open_golden, open_systems
from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.spans.scores import RetrievedSpans

FOREIGN = {qid: [f"other-{number}" for number in range(4)] for qid in LABELS}


def made(folder: Path, corpus: int) -> Path:
    project = make_project(folder, queries=2, corpus=corpus, rank={"top": 3, "max_calls": 3})
    return run_config(load_config(project.config)).store.folder


def test_a_run_on_another_corpus_is_refused_with_both_hashes(tmp_path: Path) -> None:
    one, other = (made(tmp_path / name, corpus) for name, corpus in (("one", 20), ("other", 21)))
    assert raggs_eval("-g", one, "-r", one).exit_code == 0
    result = raggs_eval("-g", one, "-r", other)
    hashes = [open_golden(run).judgments().origin.corpus[:12] for run in (one, other)]
    assert result.exit_code == 5
    assert "was retrieved from another corpus" in result.stderr
    assert all(found in result.stderr for found in hashes)


def test_an_export_says_of_which_corpus_it_is(tmp_path: Path) -> None:
    one, other = (made(tmp_path / name, corpus) for name, corpus in (("one", 20), ("other", 21)))
    from raggs.app.export import export_run
    from raggs.runs.manifests.open_run import open_run

    for form, labels in (("trec", "qrels.txt"), ("beir", "qrels/test.tsv")):
        export_run(open_run(one), form, tmp_path / form)
        read = open_golden(tmp_path / form / labels).judgments()
        assert read.origin == open_golden(one).judgments().origin
        assert raggs_eval("-g", tmp_path / form / labels, "-r", other).exit_code == 5
        assert raggs_eval("-g", tmp_path / form / labels, "-r", one).exit_code == 0


def test_only_known_corpora_are_compared() -> None:
    (system, _) = SYSTEMS
    known, other = (replace(golden(), origin=DataOrigin(name)) for name in ("a", "b"))
    make_report(known, [system], scoring())
    make_report(known, [replace(system, origin=DataOrigin("a"))], scoring())
    make_report(golden(), [replace(system, origin=DataOrigin("a"))], scoring())
    with pytest.raises(DataError, match="content a, there b"):
        make_report(other, [replace(system, origin=DataOrigin("a"))], scoring())


def test_ids_that_never_meet_are_a_warning_and_no_advice() -> None:
    systems = (SYSTEMS[0], NamedSystem("foreign", "f", Run.of(FOREIGN)))
    report = reported(BottleneckAnalysis(), systems=systems)
    (warning,) = report.warnings
    assert warning.startswith("foreign: its lists hardly contain judged passages of qrels (0% of the queries)")
    assert report.systems[0].bottleneck
    assert report.systems[1].bottleneck == ()


def test_many_holes_are_a_warning_and_no_advice() -> None:
    mixed = {qid: ["x", "y", *docs] for qid, docs in GOOD.items()}
    report = reported(BottleneckAnalysis(), systems=(NamedSystem("mixed", "m", Run.of(mixed)),))
    (warning,) = report.warnings
    assert warning.startswith("mixed: 100% of its top 2 is unjudged and counts as not relevant")
    assert report.systems[0].bottleneck == ()


def test_labels_that_are_all_relevant_say_nothing_by_their_holes() -> None:
    labels = Judgments(
        "q", Qrels.of({qid: dict.fromkeys(docs[:1], 5) for qid, docs in GOOD.items()}, GradeScale.of(1, 5))
    )
    mixed = {qid: ["x", "y", *docs] for qid, docs in GOOD.items()}
    assert make_report(labels, [NamedSystem("mixed", "m", Run.of(mixed))], scoring()).warnings == ()


def test_warnings_stand_above_the_scores_and_in_all_files(tmp_path: Path) -> None:
    write(tmp_path, qrels=QRELS, run="q1 Q0 foreign 1 2 t\nq2 Q0 foreign 1 2 t\n")
    result = raggs_eval("-g", tmp_path / "qrels", "-r", tmp_path / "run", "-o", tmp_path / "out")
    assert result.stdout.startswith("warning: run: its lists hardly contain")
    assert "retrieve better" not in result.stdout
    assert json.loads((tmp_path / "out" / "eval.json").read_text())["warnings"]
    assert "> **Warning:** run: its lists hardly contain" in (tmp_path / "out" / "eval.md").read_text()


def test_harm_beside_holes_says_what_it_leaves_out(tmp_path: Path) -> None:
    write(tmp_path, qrels=QRELS, run="q1 Q0 doc-3 1 2 t\nq1 Q0 x 2 1 t\nq2 Q0 doc-2 1 2 t\nq3 Q0 doc-5 1 1 t\n")
    files = ("-g", tmp_path / "qrels", "-r", tmp_path / "run")
    found = "harm@2 counts unjudged passages as harmless, but 17% of the passages of run are unjudged"
    assert any(note.startswith(found) for note in scored(*files, "-m", "harm@2")["notes"])
    assert not any("harm" in note for note in scored(*files, "-m", "mrr")["notes"])
    assert not any("harm" in note for note in scored(*files, "-m", "harm@1")["notes"])


def edit(run: Path, file: str) -> None:
    path = run / file
    path.write_text(path.read_text() + "\n")


@pytest.mark.parametrize("file", ["judge.jsonl", "rank.jsonl", "merge.jsonl", "retrieve.jsonl"])
def test_an_artifact_that_was_edited_is_refused_by_eval(tmp_path: Path, file: str) -> None:
    run = made(tmp_path, 20)
    assert scored("-g", run, "-r", run)["warnings"] == []
    edit(run, file)
    refused = invoke("eval", "-g", run, "-r", run)
    line = len((run / file).read_text().splitlines())
    assert (refused.exit_code, f"{file}:{line}: was edited manually" in refused.stderr) == (5, True)


@pytest.mark.parametrize("file", ["judge.jsonl", "rank.jsonl", "merge.jsonl"])
def test_an_artifact_that_was_edited_is_refused_by_export(tmp_path: Path, file: str) -> None:
    run = made(tmp_path, 20)
    edit(run, file)
    result = invoke("export", run, "--out", tmp_path / "out")
    assert (result.exit_code, f"{file}:" in result.stderr) == (5, True)


def test_a_run_knows_its_own_systems(tmp_path: Path) -> None:
    run = made(tmp_path, 20)
    systems = {system.name: system for system in open_systems([str(run)])}
    assert {name: system.derived for name, system in systems.items()} == {"bm25": False, "dense": False, "fused": True}
    assert len({system.origin for system in systems.values()}) == 1
    assert next(iter(systems.values())).origin == open_golden(run).judgments().origin


def test_grades_that_were_carried_over_are_no_stranger_s_but_may_not_reach_a_list() -> None:
    nothing = np.empty(0, dtype=np.int64)
    reading = RetrievedSpans(nothing, nothing, nothing, nothing, nothing, np.zeros(len(LABELS), dtype=np.int64))
    made = study((NamedSystem("far", "far", Run.of(FOREIGN)),))
    carried = replace(made, hits={"far": replace(made.hits["far"], reading=reading)})
    assert "hardly contain" in doubt_of(made, "far")
    assert "contains too little judged text" in doubt_of(carried, "far")
    assert not doubt_of(replace(carried, hits={"far": replace(study().hits["good"], reading=reading)}), "far")
