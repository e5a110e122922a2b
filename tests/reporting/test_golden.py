from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.reports import facts
from support.studies import golden

from raggs.base.artifacts import JudgeRecord, MergeRecord, Placement, QueryRecord
from raggs.base.document import ReportDocument, Section
from raggs.base.jsonl import write_records
from raggs.golden.sources import open_golden
from raggs.reporting.base import JudgeValidation
from raggs.reporting.sections.provenance import GoldenSection
from raggs.reporting.sections.questions import QuestionsSection
from raggs.reporting.surveying import labels_of
from raggs.runs.manifests.models import RunManifest, utc_now
from raggs.runs.manifests.open_run import OpenedRun, open_run
from raggs.runs.manifests.store import RunStore
from raggs.stats.judge_agreement import JudgeValidity

FOUND = {"q1": {"a": "bd", "b": "b", "c": "d"}, "q2": {"a": "d", "e": "bd"}}  # by whom: bm25, dense
GRADES = {"q1": {"a": 5, "b": 4, "c": 1}, "q2": {"a": 2, "e": 3}}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> OpenedRun:
    folder = tmp_path_factory.mktemp("run") / "demo"
    folder.mkdir()
    names = {"b": "bm25", "d": "dense"}
    write_records(folder / "queries.jsonl", [QueryRecord(qid=qid, text=f"{qid}?") for qid in FOUND])
    pool = [
        MergeRecord(
            qid=qid,
            rank=rank,
            doc_id=doc,
            score=1 / rank,
            sources={names[letter]: Placement(rank=rank, score=1.0) for letter in by},
            duplicate_of="a" if doc == "c" else None,
            text=f"passage {doc}",
        )
        for qid, docs in FOUND.items()
        for rank, (doc, by) in enumerate(docs.items(), 1)
    ]
    write_records(folder / "merge.jsonl", pool)
    judged = [
        JudgeRecord(qid=each.qid, rank=each.rank, doc_id=each.doc_id, grade=GRADES[each.qid][each.doc_id], judge="ada")
        for each in pool
    ]
    write_records(folder / "judge.jsonl", judged)
    RunStore(folder).save(RunManifest(name="demo", created=utc_now(), config={}))
    return open_run(folder)


def test_the_label_mix_is_told_over_queries_with_its_prevalence() -> None:
    found = labels_of(golden())
    assert found.grades == {5: 2, 4: 2, 3: 0, 2: 0, 1: 1}
    five, four, relevant, judged = found.spreads
    assert (five.median, five.mean, four.mean) == (1, pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert (relevant.name, relevant.mean, judged.most) == ("relevant (grade 4 or more)", pytest.approx(4 / 3), 2)
    assert (found.prevalence.median, found.prevalence.least, found.without) == (1.0, 0.5, 0)


def test_pools_say_who_found_what_and_what_they_share(run: OpenedRun) -> None:
    given = replace(facts(), golden=open_golden(run.folder), run=run)
    found = given.pools
    assert found is not None
    assert (found.passages, found.distinct, found.duplicates, found.depth.mean) == (5, 4, 1, 2.5)
    bm25, dense = found.sources
    assert (bm25.passages, bm25.alone, bm25.relevant, bm25.relevant_alone) == (3, 1, 2, 1)
    assert (dense.passages, dense.alone, dense.relevant, dense.relevant_alone) == (4, 2, 1, 0)
    assert found.overlap == {("bm25", "dense"): 2 / 5}
    assert found.sampled == 4 and found.tokens is not None


@pytest.mark.parametrize("texts", [True, False])
def test_pools_are_counted_while_the_questions_are_shown_and_not_read_again(
    run: OpenedRun, texts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = replace(facts(), golden=open_golden(run.folder), run=run, texts=texts)
    shown = list(given.views(depth=1))
    assert {bool(passage.text) for view in shown for passage in view.passages} == {texts}
    monkeypatch.setattr("raggs.golden.questions.GoldenQuestions.__iter__", lambda _: pytest.fail("read again"))
    alone = replace(facts(), golden=given.golden, run=run)
    assert given.pools is not None
    monkeypatch.undo()
    assert given.pools == alone.pools, "with their tokens, whether texts are shown or not"


def test_the_section_has_a_bar_of_grades_and_every_table(run: OpenedRun) -> None:
    people = JudgeValidation(
        said=("The judge agrees.",), document=ReportDocument("The judge against people", Section("Agreement"), (), ())
    )
    part = GoldenSection().data(replace(facts(), golden=open_golden(run.folder), run=run, people=people))
    assert part is not None
    assert [piece.text for piece in part.mix] == [f"{n} ({n / 5:.0%})" for n in (1, 1, 1, 1, 1)]
    titles = [section.title for section in part.sections]
    assert titles == ["Labels per query", "Pool sizes", "Contributions of retrievers", "Overlap of retrievers"]
    assert [section.title for section in part.agreement] == ["Is the judge valid?"]
    assert part.headline == "2 queries with 2 labels each on average; 40% of labels are relevant (4 or 5)."
    assert part.answer == ""
    assert part.unchecked == "The judge was not compared with human labels."
    assert "1 query without a relevant passage: their recall is always 0" in " ".join(part.sections[0].sentences)


@pytest.mark.parametrize(
    ("answer", "more", "said"),
    [("yes", None, "You can use"), ("no", None, "Do not use"), ("not yet", 18, "about 18 more human labels needed")],
)
def test_the_answer_comes_first(run: OpenedRun, answer: str, more: int | None, said: str) -> None:
    people = JudgeValidation(trust=(JudgeValidity("comparing systems", answer, "", more),))
    part = GoldenSection().data(replace(facts(), golden=open_golden(run.folder), run=run, people=people))
    assert part is not None and said in part.answer


def test_of_labels_alone_the_mix_is_told_and_of_questions_alone_nothing(tmp_path: Path) -> None:
    part = GoldenSection().data(facts())
    assert part is not None and [section.title for section in part.sections] == ["Labels per query"]


def test_where_nothing_is_graded_yet_nothing_is_said_to_be_relevant(run: OpenedRun) -> None:
    (run.folder / "judge.jsonl").unlink()
    given = replace(facts(), golden=open_golden(run.folder), run=run, report=None, missing="no grades")
    sources = next(each for each in GoldenSection().data(given).sections if each.title == "Contributions of retrievers")
    assert [[cell.value for cell in row[3:]] for row in sources.table.rows] == [[None, None]] * 2
    assert {line.good for line in QuestionsSection().data(given).lines} == {None}


def test_the_grades_of_judge_and_annotators_are_a_coloured_matrix(run: OpenedRun) -> None:
    counts = ((8, 1, 0, 0, 2), (0, 1, 0, 0, 0), (0, 0, 0, 0, 0), (0, 0, 0, 0, 0), (0, 0, 0, 0, 0))
    people = JudgeValidation(grades=counts)
    part = GoldenSection().data(replace(facts(), golden=open_golden(run.folder), run=run, people=people))
    assert part is not None
    assert [[count for count, _ in row] for row in part.matrix] == [list(row) for row in counts]
    shades = [[shade for _, shade in row] for row in part.matrix]
    assert shades[0] == ["same2", "near1", "zero", "zero", "far1"] and shades[1][1] == "same1"
    assert part.distances == "Same grade: 9 of 12 labels (75%). One grade apart: 1. Further apart: 2."
    without = GoldenSection().data(replace(facts(), golden=open_golden(run.folder), run=run))
    assert without is not None and without.matrix == ()
