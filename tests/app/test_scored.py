"""Evaluating from Python: functions and what is in memory get the numbers of `raggs eval` on files."""

from __future__ import annotations

import asyncio

import pytest
from support.scoring import BETTER, QRELS, RUN, write

from raggs.app.eval_request import EvalRequest, JudgedFiles
from raggs.app.evaluate import evaluate as evaluate_files
from raggs.app.evaluate_functions import evaluate
from raggs.base.errors import DataError, ProviderError, RaggsError, UsageError

TEXTS = {"q1": "one?", "q2": "two?", "q3": "three?"}
ASKED = {text: qid for qid, text in TEXTS.items()}


def columns(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


LABELS = {qid: {doc: int(grade) for each, _, doc, grade in columns(QRELS) if each == qid} for qid, *_ in columns(QRELS)}
LISTS = {
    qid: {doc: float(score) for each, _, doc, _, score, _ in columns(RUN) if each == qid} for qid, *_ in columns(RUN)
}


class Frame:
    """A table with the one method that raggs uses."""

    def __init__(self, rows: list[dict[str, object]]) -> None:
        self.rows, self.columns = rows, list(rows[0])

    def to_dict(self, orient: str) -> list[dict[str, object]]:
        assert orient == "records"
        return self.rows


def pairs(question: str, k: int) -> list[tuple[str, float]]:
    return list(LISTS[ASKED[question]].items())[:k]


def ids(question: str, k: int) -> list[str]:
    return [doc for doc, _ in pairs(question, k)]


async def later(question: str, k: int) -> list[str]:
    await asyncio.sleep(0)
    return ids(question, k)


@pytest.fixture(scope="module")
def by_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write(folder, qrels=QRELS, a=RUN)
    return evaluate_files(EvalRequest(JudgedFiles(folder / "qrels", (str(folder / "a"),)))).report


def scores(report):
    return [part.scores for part in report.systems], list(report.per_query.values()), report.golden.digest


@pytest.mark.parametrize("search", [pairs, ids, later, lambda q, k: dict(pairs(q, k)), lambda q, k: iter(ids(q, k))])
def test_a_function_has_the_numbers_of_a_file_with_the_same_lists(search, by_files):
    found = evaluate(LABELS, search, queries=TEXTS).report
    assert scores(found) == scores(by_files)
    assert found.systems[0].bottleneck == by_files.systems[0].bottleneck


@pytest.mark.parametrize("form", ["rows", "table", "triples", "mapping", "lists"])
def test_judgments_and_lists_in_memory_have_them_too(form, by_files):
    graded = [(qid, doc, grade) for qid, judged in LABELS.items() for doc, grade in judged.items()]
    listed = [(qid, doc, score) for qid, found in LISTS.items() for doc, score in found.items()]
    rows = [{"query_id": q, "doc_id": d, "grade": g} for q, d, g in graded]
    run_rows = [{"qid": q, "docno": d, "score": s} for q, d, s in listed]
    golden, run = {
        "rows": (iter(rows), iter(run_rows)),
        "table": (Frame(rows), Frame(run_rows)),
        "triples": (graded, listed),
        "mapping": (LABELS, LISTS),
        "lists": (LABELS, {qid: list(found) for qid, found in LISTS.items()}),
    }[form]
    assert scores(evaluate(golden, runs={"a": run}).report) == scores(by_files)


def test_several_systems_by_name_against_a_baseline_and_a_file(tmp_path):
    write(tmp_path, qrels=QRELS, better=BETTER)
    found = evaluate(
        tmp_path / "qrels",
        {"now": ids, "again": later},
        runs={"better": tmp_path / "better"},
        queries=[{"id": qid, "text": text} for qid, text in TEXTS.items()],
        measures=["mrr"],
        baseline="now",
    ).report
    assert [part.name for part in found.systems] == ["better", "now", "again"]
    assert {(part.system, part.baseline) for part in found.comparisons} == {("better", "now"), ("again", "now")}


def test_an_async_function_is_awaited_where_a_loop_runs_already(by_files):
    async def cell():
        return evaluate(LABELS, later, queries=TEXTS).report

    assert scores(asyncio.run(cell())) == scores(by_files)


def test_a_function_is_asked_as_deep_as_it_is_measured():
    asked = []
    evaluate(LABELS, lambda q, k: asked.append(k) or ids(q, k), queries=TEXTS, measures=["recall@300"])
    evaluate(LABELS, lambda q, k: asked.append(k) or ids(q, k), queries=TEXTS, depth=20)
    assert asked == [300] * 3 + [20] * 3


def _raises(question: str, k: int) -> list[str]:
    if question == "two?":
        raise KeyError("index")
    return []


@pytest.mark.parametrize(
    ("search", "kind", "said"),
    [
        (_raises, ProviderError, r"test_scored\.py:\d+: _raises raised KeyError on question q2: 'index'"),
        (lambda q, k: ["d", "d"], DataError, "search, question q1: the function returned passage d twice"),
        (lambda q, k: None, DataError, r"the function returned None \(NoneType\), not a list"),
        (lambda q, k: {"doc-1", "doc-2"}, DataError, r"\(set\), not a list"),
        (lambda q, k: later(q, k), DataError, "the function returned a coroutine"),
        (lambda q, k: [("d", 10**400)], DataError, "is not a finite number"),
        (lambda q, k: "doc-1", DataError, "not a list"),
        (lambda q, k: ["d", ("e", 1.0)], DataError, "only some ids have scores"),
        (lambda q, k: [("d", 0.1), ("e", 0.2)], DataError, "return higher scores for better passages"),
        (lambda q, k: [("d", float("nan"))], DataError, "nan .* is not a finite number"),
        (lambda q, k: [{"id": "d"}], DataError, "is not an id"),
        ({"x": "bm25"}, UsageError, "system 'x' is 'bm25' .*, not a function"),
    ],
)
def test_what_a_function_does_wrong_is_told_with_its_question(search, kind, said):
    with pytest.raises(kind, match=said):
        evaluate(LABELS, search, queries=TEXTS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"golden": LABELS, "search": ids}, ": no text of 3 judged questions, such as q1"),
        ({"golden": LABELS}, "no system to evaluate"),
        ({"golden": 7, "runs": {"a": LISTS}}, r"7 \(int\) does not contain rows"),
        ({"golden": {"q": {"d": 2.5}}, "runs": {"a": LISTS}}, "grade 2.5 is not a whole number"),
        ({"golden": {"q": {"d": "4"}}, "runs": {"a": LISTS}}, "'4' .str. is not a finite number"),
        ({"golden": [{"qid": "q", "doc": "d"}], "runs": {"a": LISTS}}, "row 0: no column grade"),
        ({"golden": LABELS, "runs": {"a": [{"qid": "q1", "doc": None, "score": 1}]}}, "None .* is not an id"),
        ({"golden": LABELS, "search": ids, "queries": [{"id": "q1", "text": "a"}] * 2}, "q1 occurs twice"),
        ({"golden": LABELS, "runs": {"a": LISTS}, "measures": ["ndgc@10"]}, "ndgc"),
    ],
)
def test_what_cannot_be_right_is_told(arguments, said):
    with pytest.raises(RaggsError, match=said):
        evaluate(**arguments)


def test_whole_numbers_are_ids_as_tables_make_them_of_digits():
    found = evaluate({7: {1: 5, 2: 1}}, lambda q, k: [1], queries={7: "a"}, measures="mrr").report
    assert found.per_query["search"]["mrr"] == {"7": 1.0}
