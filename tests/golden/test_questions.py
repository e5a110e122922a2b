"""One question with all that is known of it: each figure is the one of its artifact, whichever way it is read."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from support.forging import mend
from support.golden import change
from support.project import grade_of, make_project

from raggs import load_config
from raggs import run as run_config
from raggs.base.artifacts import (
    EmbedRecord,
    JudgeRecord,
    MergeRecord,
    PruneRecord,
    RankingRecord,
    RankRecord,
    RetrieveRecord,
)
from raggs.base.errors import DataError, NotFoundError
from raggs.base.jsonl import read_records
from raggs.evaluation.diff_sets import read_side
from raggs.golden.base import CONFIDENCE_FIELDS, FUSION_NAME
from raggs.golden.formats.tables import JsonlExporter
from raggs.golden.questions import GoldenQuestions
from raggs.golden.sources import open_golden, open_systems
from raggs.golden.views import ReturnedHits
from raggs.parts.reviews import GradeReview, fold_reviews, key_of
from raggs.runs.manifests.open_run import ArtifactByQuery


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("views"), queries=3, corpus=20, rank={"top": 3, "max_calls": 3})
    return run_config(load_config(project.config)).store.folder


@pytest.fixture
def copy(made, tmp_path):
    return shutil.copytree(made, tmp_path / "copy")


def lines(run, artifact, model, qid):
    return [record for record in read_records(run / f"{artifact}.jsonl", model) if record.qid == qid]


def test_a_question_says_what_its_artifacts_say(made):
    questions = GoldenQuestions(open_golden(made))
    assert (questions.ids, len(questions), questions.top) == (("q00", "q01", "q02"), 3, 3)
    for found in questions:
        qid = found.qid
        pooled, judged = lines(made, "merge", MergeRecord, qid), lines(made, "judge", JudgeRecord, qid)
        assert [(each.doc_id, each.pooled, each.title, each.text) for each in found.passages] == [
            (each.doc_id, each.rank, each.title, each.text) for each in pooled
        ]
        assert [each.sources for each in found.passages] == [each.sources for each in pooled]
        assert [each.grade for each in found.passages] == [each.grade for each in judged]
        assert {each.judged.judge for each in found.passages} == {each.judge for each in judged}
        ranked = lines(made, "rank", RankRecord, qid)
        assert [(each.doc_id, each.place.rank, each.place.confidence, each.place.sigma) for each in found.order] == [
            (each.doc_id, each.rank, each.confidence, each.sigma) for each in ranked
        ]
        assert [(each.place.locks_out, each.place.locks_in) for each in found.order] == [
            (each.locks_out, each.locks_in) for each in ranked
        ]
        assert {each.doc_id: each.cut for each in found.passages if each.cut} == {
            each.doc_id: each.why for each in lines(made, "prune", PruneRecord, qid) if not each.kept
        }
        (course,) = lines(made, "rank.queries", RankingRecord, qid)
        assert (found.course.calls, found.course.stop_reason) == (course.calls, course.stop_reason)
        (embedded,) = lines(made, "embed", EmbedRecord, qid)
        assert (found.text, found.rewrite, found.language) == (embedded.text, "", embedded.language)


def test_what_each_retriever_returned_stands_with_its_grades(made):
    found = GoldenQuestions(open_golden(made)).view("q01")
    grades = {record.doc_id: record.grade for record in lines(made, "judge", JudgeRecord, "q01")}
    hits = lines(made, "retrieve", RetrieveRecord, "q01")
    for returned in found.systems[:2]:
        own = [hit for hit in hits if hit.retriever == returned.system]
        assert [(hit.rank, hit.doc_id, hit.score, hit.grade) for hit in returned.hits] == [
            (hit.rank, hit.doc_id, hit.score, grades[hit.doc_id]) for hit in own
        ]
    assert [returned.system for returned in found.systems] == ["bm25", "dense", FUSION_NAME]
    assert [hit.doc_id for hit in found.systems[2].hits] == [passage.doc_id for passage in found.passages]


def test_a_retriever_that_found_nothing_for_a_question_is_shown_beside_the_fusion(copy):
    path = copy / "retrieve.jsonl"
    rows = path.read_text().splitlines(keepends=True)
    path.write_text("".join(row for row in rows if '"qid":"q01"' not in row or '"retriever":"bm25"' not in row))
    mend(copy)
    bm25, dense, fused = GoldenQuestions(open_golden(copy), depth=4).view("q01").systems
    assert bm25 == ReturnedHits("bm25", (), 0)
    assert (dense.system, fused.system, len(dense.hits), len(fused.hits)) == ("dense", FUSION_NAME, 4, 4)


def test_lists_of_others_keep_the_order_of_trec_eval_and_say_what_nobody_judged(made, tmp_path):
    pooled = [record.doc_id for record in lines(made, "merge", MergeRecord, "q00")][:2]
    path = tmp_path / "mine.trec"
    rows = [("far", 3.0), (min(pooled), 2.0), (max(pooled), 2.0)]
    path.write_text("".join(f"q00 Q0 {doc} 1 {score} mine\n" for doc, score in rows))
    questions = GoldenQuestions(open_golden(made), [*open_systems([str(path)])])
    (mine,) = questions.view("q00").systems
    assert [(hit.rank, hit.doc_id) for hit in mine.hits] == [(1, "far"), (2, max(pooled)), (3, min(pooled))]
    grades = {record.doc_id: record.grade for record in lines(made, "judge", JudgeRecord, "q00")}
    assert [hit.grade for hit in mine.hits] == [None, grades[max(pooled)], grades[min(pooled)]]
    assert questions.view("q01").systems == (ReturnedHits("mine", (), 0),)  # it found nothing, which is to be seen


def test_lists_may_be_cut_short(made, tmp_path):
    short, whole = (GoldenQuestions(open_golden(made), depth=depth).view("q01") for depth in (4, None))
    assert [each.hits for each in short.systems] == [each.hits[:4] for each in whole.systems]
    assert short.passages == whole.passages
    path = tmp_path / "mine.trec"
    path.write_text("".join(f"q01 Q0 d{rank} {rank} {9 - rank} mine\n" for rank in range(1, 9)))
    (mine,) = GoldenQuestions(open_golden(made), [*open_systems([str(path)])], depth=4).view("q01").systems
    assert [hit.doc_id for hit in mine.hits] == ["d1", "d2", "d3", "d4"]


def test_equal_scores_at_the_end_of_a_short_list_stand_as_in_the_whole(made, tmp_path):
    path = tmp_path / "mine.trec"
    path.write_text("".join(f"q01 Q0 d{number} 1 {number % 3} mine\n" for number in range(9)))
    systems = [*open_systems([str(path)])]
    (whole,) = GoldenQuestions(open_golden(made), systems).view("q01").systems
    for depth in range(1, 10):
        (short,) = GoldenQuestions(open_golden(made), systems, depth=depth).view("q01").systems
        assert (short.hits, short.found) == (whole.hits[:depth], 9)


def test_a_rewrite_shows_and_near_duplicates_know_each_other(copy):
    change(copy, "embed", EmbedRecord, lambda record: record.model_copy(update={"rewrite": "amber flint"}))
    first, second, *_ = (record.doc_id for record in lines(copy, "merge", MergeRecord, "q00"))

    def twin(record):
        return record.model_copy(update={"duplicate_of": first}) if record.doc_id in (first, second) else record

    change(copy, "merge", MergeRecord, twin)
    found = GoldenQuestions(open_golden(copy)).view("q00")
    assert found.rewrite == "amber flint"
    assert [each.doc_id for each in found.twins(found.passage(first))] == [second]
    assert [each.doc_id for each in found.twins(found.passage(second))] == [first]


def said(run, qid, place, who, grade, **more):
    found = GoldenQuestions(open_golden(run)).view(qid)
    query = next(each for each in open_golden(run).queries() if each.qid == qid)
    pooled = lines(run, "merge", MergeRecord, qid)[place]
    question, passage = key_of(query, pooled.passage)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    ids = {"qid": qid, "query": question, "doc_id": found.passages[place].doc_id, "passage": passage}
    return GradeReview(who=who, at=at, grade=grade, **ids, **more)


def test_people_speak_beside_the_judge_the_decision_last(made):
    held = fold_reviews([
        said(made, "q00", 1, "ada", 4, note="half of it"),
        said(made, "q00", 1, "cy", 3, settles=True),
        said(made, "q00", 1, "bo", None),
    ])  # fmt: skip
    found = GoldenQuestions(open_golden(made), reviews=held).view("q00")
    assert [(word.who, word.grade, word.note, word.settles) for word in found.passages[1].words] == [
        ("ada", 4, "half of it", False), ("bo", None, "", False), ("cy", 3, "", True),
    ]  # fmt: skip
    assert not any(each.words for each in found.passages if each != found.passages[1])


def test_without_texts_nothing_is_left_that_a_passage_says(copy):
    change(copy, "judge", JudgeRecord, lambda record: record.model_copy(update={"reason": "says secret"}))
    change(copy, "merge", MergeRecord, lambda record: record.model_copy(update={"text": "secret", "title": "secret"}))
    held = fold_reviews([said(copy, "q00", 0, "ada", 4, note="secret")])
    golden = open_golden(copy)
    assert "secret" in repr(list(GoldenQuestions(golden, reviews=held)))
    silent = list(GoldenQuestions(golden, reviews=held, texts=False))
    assert "secret" not in repr(silent)
    assert [each.grades for each in silent] == [each.grades for each in GoldenQuestions(golden)]


def test_an_unknown_question_names_the_nearest(made):
    with pytest.raises(NotFoundError, match=r"unknown query 'q0'.*did you mean 'q0"):
        GoldenQuestions(open_golden(made)).view("q0")


def test_what_is_not_there_yet_is_empty(copy):
    for name in ("rank", "rank.queries", "prune", "judge", "retrieve"):
        (copy / f"{name}.jsonl").unlink()
    found = GoldenQuestions(open_golden(copy)).view("q00")
    assert (found.order, found.course, found.systems) == ((), None, ())
    assert found.passages and not any(each.judged or each.place or each.cut for each in found.passages)


def test_labels_of_others_are_questions_too(made):
    questions = GoldenQuestions(open_golden(made.parents[1] / "qrels.txt"))
    found = questions.view("q02")
    assert found.grades == {f"p{number:03}": grade_of("q02", f"p{number:03}") for number in range(20)}
    assert (found.text, found.order, found.systems) == ("", (), ())


def test_one_question_reads_its_own_lines_alone(copy):
    broken = (copy / "merge.jsonl").read_bytes().replace(b'"qid":"q02","rank":1,', b'"qid":"q02","rank":0,')
    (copy / "merge.jsonl").write_bytes(broken)
    mend(copy)
    questions = GoldenQuestions(open_golden(copy))
    assert questions.view("q01").passages
    with pytest.raises(DataError, match=r"merge.jsonl, query q02: rank: .*expected a MergeRecord"):
        questions.view("q02")


def test_a_file_that_changes_meanwhile_never_gives_another_question(copy):
    from raggs.runs.manifests.open_run import open_run

    lines_of = ArtifactByQuery(open_run(copy), "rank.queries")
    path = copy / "rank.queries.jsonl"
    first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(second.ljust(len(first))[: len(first) - 1] + b"\n" + first + third)
    with pytest.raises(DataError):
        lines_of.of("q00", RankingRecord)
    path.write_bytes(b'no "qid" here\n')
    mend(copy)
    with pytest.raises(DataError, match=r"rank.queries.jsonl:1: has no query id"):
        ArtifactByQuery(open_run(copy), "rank.queries")


def test_ids_are_found_as_json_writes_them(copy):
    odd = 'q"\\u00e9\\'
    for name in ("queries", "merge"):
        path = copy / f"{name}.jsonl"
        path.write_bytes(path.read_bytes().replace(b'"qid":"q02"', b'"qid":"q\\"\\\\u00e9\\\\"'))
    mend(copy)
    found = GoldenQuestions(open_golden(copy)).view(odd)
    assert found.qid == odd and found.passages
    assert replace(found, passages=()).text == "Where is the cedar near the heron?"


def test_an_export_of_json_lines_shows_what_its_run_shows(made, tmp_path):
    run = open_golden(made)
    JsonlExporter().write(run, tmp_path / "out")
    export = open_golden(tmp_path / "out")
    assert export.top == run.top
    for one, other in zip(GoldenQuestions(run, []), GoldenQuestions(export), strict=True):
        ours, theirs = ({each.doc_id: each for each in view.passages} for view in (one, other))
        assert other.text == one.text
        assert [each.doc_id for each in other.order] == [each.doc_id for each in one.order]
        assert ours.keys() == theirs.keys()
        for doc_id, passage in theirs.items():
            known = ("title", "text", "span", "grade", "place", "duplicate_of")
            assert [getattr(passage, name) for name in known] == [getattr(ours[doc_id], name) for name in known]


def test_an_order_that_says_not_how_sure_it_is_has_no_figures_of_that(made, tmp_path):
    JsonlExporter().write(open_golden(made), tmp_path / "out")
    order = tmp_path / "out" / "order.jsonl"
    rows = [json.loads(line) for line in order.read_text().splitlines()]
    order.write_text(
        "".join(f"{json.dumps({k: v for k, v in row.items() if k not in CONFIDENCE_FIELDS})}\n" for row in rows)
    )
    export = open_golden(tmp_path / "out")
    assert export.sure is False and any(query.order for query in export.by_query("order"))
    assert not any(passage.place for view in GoldenQuestions(export) for passage in view.passages)
    order.write_text(order.read_text().replace('"rank": 1,', '"rank": 0,', 1))
    with pytest.raises(DataError, match=r"order.jsonl:1: rank"):
        list(export.by_query("order"))


def test_an_export_of_json_lines_differs_in_nothing_from_its_run(made, tmp_path):
    JsonlExporter().write(open_golden(made), tmp_path / "out")
    run, export = read_side(made), read_side(tmp_path / "out")
    assert (export.texts, export.top, export.grades) == (run.texts, run.top, run.grades)
    assert export.orders.keys() == run.orders.keys()
    for qid, order in run.orders.items():
        theirs = export.orders[qid]
        assert theirs.docs == order.docs
        assert theirs.score.tolist() == order.score.tolist() and theirs.sigma.tolist() == order.sigma.tolist()
