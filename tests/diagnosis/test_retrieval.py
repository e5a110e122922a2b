"""Worlds with one fault each: what is planted is found with its evidence, and nothing where nothing is."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raggs.app.diagnose import DiagnoseRequest, run_diagnosis
from raggs.app.eval_request import EvalRequest, JudgedFiles, MeasureRequest
from raggs.app.evaluate import evaluate
from raggs.base.errors import DataError, NotFoundError, RaggsError, UsageError
from raggs.diagnosis.retrieval.measuring import RetrievalFindings

QUESTIONS, RELEVANT, DEPTH = 60, 3, 50
SUBJECTS = ("wing", "cone", "plate", "shock", "nozzle", "blade")


@cache
def _texts() -> dict[str, str]:
    rng = np.random.default_rng(4)
    return {
        f"q{number:02}": f"what is known of the {rng.choice(SUBJECTS)}"
        + (f" at mach {number}" if number % 3 == 0 else "")
        for number in range(QUESTIONS)
    }


def relevant(qid: str) -> list[str]:
    return [f"{qid}-{number}" for number in range(RELEVANT)]


def listed(qid: str, places: list[int]) -> list[str]:
    """A list of 50 with the relevant passages at some places, from 1; beyond 50 they are not found."""
    found = [f"{qid}-x{place}" for place in range(1, DEPTH + 1)]
    for name, place in zip(relevant(qid), places, strict=True):
        if place <= DEPTH:
            found[place - 1] = name
    return found


def world(folder: Path) -> Path:
    """A golden set in the layout of BEIR: 60 questions, a third with a number; all that is shown is judged."""
    folder.mkdir(parents=True, exist_ok=True)
    asked = [{"_id": qid, "text": text} for qid, text in _texts().items()]
    docs = {name: text for qid, text in _texts().items() for name in [*relevant(qid), *listed(qid, [99] * RELEVANT)]}
    held = [{"_id": name, "title": "", "text": f"{name}: {text}"} for name, text in docs.items()]
    for name, rows in (("queries", asked), ("corpus", held)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels").mkdir(exist_ok=True)
    rows = [
        f"{qid}\t{doc}\t{int(doc in relevant(qid))}"
        for qid in _texts()
        for doc in [*relevant(qid), *listed(qid, [99] * RELEVANT)]
    ]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n")
    return folder


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One set for all tests: its corpus is read once."""
    return world(tmp_path_factory.mktemp("golden"))


def system(folder: Path, name: str, places: Any) -> str:
    """A run file; `places`: by question number, where the relevant passages stand."""
    lines = []
    for number, qid in enumerate(_texts()):
        docs = listed(qid, list(places(number)))
        lines += [f"{qid} Q0 {doc} {rank} {DEPTH - rank} {name}" for rank, doc in enumerate(docs, start=1)]
    path = folder / f"{name}.trec"
    path.write_text("\n".join(lines) + "\n")
    return f"{name}={path}"


def drawn(seed: int, most: int) -> Any:
    rng = np.random.default_rng(seed)
    table = [rng.choice(np.arange(1, most + 1), RELEVANT, replace=False).tolist() for _ in range(QUESTIONS)]
    return lambda number: table[number]


def found(golden: Path, runs: list[str], out: Path | None = None, **settings: Any) -> RetrievalFindings:
    request = DiagnoseRequest("retrieval", None, {"runs": runs, **settings}, golden=golden, out=out or golden / "out")
    part = run_diagnosis(request).found
    assert isinstance(part, RetrievalFindings)
    return part


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Two systems over a set in files."""
    world(folder)
    runs = [system(folder, "good", drawn(1, 10)), system(folder, "poor", drawn(2, 60))]
    return {"golden": folder, "settings": {"runs": runs}}


def test_questions_with_numbers_that_fail_are_found_with_examples_and_a_knob(golden: Path) -> None:
    easy, hard = drawn(1, 8), drawn(2, 40)
    part = found(golden, [system(golden, "dense", lambda number: hard(number) if number % 3 == 0 else easy(number))])
    clear = [trait for trait in part.traits if trait.clear and trait.difference < 0]
    assert clear[0].kind == "numbers"
    assert (clear[0].having, clear[0].lacking) == (20, 40)
    assert clear[0].high < 0 and "BM25" in clear[0].knob and clear[0].knob.startswith("for purely dense search")
    assert {int(qid[1:]) % 3 for qid in clear[0].examples} == {0}
    assert "contain a number" in part.verdict
    assert part.worst and all("numbers" in each.traits for each in part.worst[:10])


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_found_to_be_shared_where_places_are_drawn_by_lot(golden: Path, seed: int) -> None:
    part = found(golden, [system(golden, "lot", drawn(seed, 30))])
    assert not [trait for trait in part.traits if trait.clear]
    assert "no common property is significant" in part.verdict


def test_lists_of_another_corpus_are_told_and_no_advice_is_drawn_of_them(golden: Path) -> None:
    known = system(golden, "known", drawn(3, 30))
    far = golden / "far.trec"
    lines = Path(known.partition("=")[2]).read_text(encoding="utf-8").splitlines()
    far.write_text("".join(line.replace(" Q0 ", " Q0 zz", 1) + "\n" for line in lines), encoding="utf-8")
    part = found(golden, [known, f"far={far}"])
    assert [note for note in part.notes if note.startswith("far: its lists hardly contain")]
    assert not [finding for finding in part.findings if "far" in finding.about]
    alone = found(golden, [f"far={far}"]).verdict
    assert alone.startswith("far: its lists hardly contain") and alone.endswith(
        "First pass run files over the golden set's corpus: --run NAME=FILE."
    )


def test_a_worse_order_of_the_same_passages_is_the_rerankers_fault(golden: Path) -> None:
    runs = [
        system(golden, "before", drawn(1, 4)),
        system(golden, "after", drawn(2, 10)),
        system(golden, "sunk", drawn(3, 50)),
        system(golden, "blind", drawn(4, 100)),
    ]
    part = found(golden, runs, baseline="before")
    ruled = {(each.about, each.rule): each for each in part.findings}
    fault = ruled["after against before", "reranker"]
    assert "check the reranker" in fault.knob
    recall, ndcg = fault.evidence[:2]
    assert (recall.quantity, recall.mean, recall.low) == ("change of recall", 0, 0)
    assert ndcg.quantity == "change of nDCG" and ndcg.high < 0
    assert ("sunk against before", "reranker past the cutoff") in ruled
    assert ("blind against before", "coverage") in ruled
    assert not [rule for about, rule in ruled if about == "blind against before" and "reranker" in rule]
    assert ("sunk", "order") in ruled and ("blind", "candidates") in ruled
    assert ("blind beside after", "hybridise") in ruled and ("after beside blind", "hybridise") not in ruled


def test_equal_systems_differ_in_no_rule(golden: Path) -> None:
    part = found(golden, [system(golden, "one", drawn(1, 3)), system(golden, "two", drawn(1, 3))])
    assert not [each for each in part.findings if "against" in each.about or "beside" in each.about]


def test_an_earlier_evaluation_says_the_same_of_traits_and_changes(golden: Path, tmp_path: Path) -> None:
    runs = [system(golden, "before", drawn(1, 4)), system(golden, "after", drawn(2, 10))]
    measures = MeasureRequest(("ndcg@10", "recall@10", "recall@50"))
    evaluate(EvalRequest(JudgedFiles(golden, tuple(runs)), measures)).write(tmp_path / "eval")
    lists, values = found(golden, runs), found(golden, [], values=str(tmp_path / "eval" / "eval.json"))
    assert values.traits == lists.traits
    assert values.systems == lists.systems
    assert values.findings == tuple(each for each in lists.findings if "against" in each.about)
    assert "pass the run files" in values.notes[0]


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({}, UsageError, "contains labels but no ranked lists"),
        ({"runs": ["none.trec"]}, NotFoundError, "none.trec"),
        ({"measure": "holes@10"}, UsageError, "lower values of this metric are better"),
        ({"measure": "ndgc@10"}, UsageError, "ndcg"),
        ({"baseline": "befor"}, UsageError, "no system has the name befor"),
        ({"values": "out.json"}, NotFoundError, "out.json"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    golden: Path, settings: dict[str, Any], error: type[RaggsError], said: str
) -> None:
    runs = [] if settings == {} or "values" in settings else [system(golden, "before", drawn(1, 4))]
    with pytest.raises(error) as caught:
        found(golden, **{"runs": runs, **settings})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_values_of_other_judgments_are_refused(golden: Path, tmp_path: Path) -> None:
    evaluate(EvalRequest(JudgedFiles(golden, (system(golden, "one", drawn(1, 4)),)))).write(tmp_path)
    labels = tmp_path / "labels.tsv"
    labels.write_text((golden / "qrels" / "test.tsv").read_text().replace("q01-0\t1", "q01-0\t0"))
    with pytest.raises(DataError, match="another golden set"):
        found(labels, [], out=tmp_path / "out", values=str(tmp_path / "eval.json"))


def test_the_threshold_of_relevance_can_be_set(tmp_path: Path) -> None:
    rows = [f"{qid} 0 {doc} {grade}" for qid in _texts() for doc, grade in ((f"{qid}-0", 5), (f"{qid}-1", 2))]
    (tmp_path / "labels").write_text("\n".join(rows) + "\n")
    runs = [system(tmp_path, "bm25", lambda number: (1, 50, 51))]
    means = [found(tmp_path / "labels", runs, tmp_path / "out", measure="recall@5", **more).systems[0].mean
             for more in ({}, {"relevant_from": 2})]  # fmt: skip
    assert means == [1.0, 0.5]
    with pytest.raises(DataError, match="grade 9 cannot be the lowest relevant grade"):
        found(tmp_path / "labels", runs, tmp_path / "out", relevant_from=9)


def test_passages_without_a_label_cause_no_finding_if_all_labels_are_relevant(tmp_path: Path) -> None:
    rows = [f"{qid} 0 {doc} {grade}" for qid in _texts() for doc, grade in ((f"{qid}-0", 5), (f"{qid}-1", 2))]
    (tmp_path / "labels").write_text("\n".join(rows) + "\n")
    runs = [system(tmp_path, "bm25", lambda number: (4, 5, 51))]
    for more, expected in (({}, True), ({"relevant_from": 2}, False)):
        measured = found(tmp_path / "labels", runs, tmp_path / "out", measure="ndcg@10", **more)
        rules = {each.rule for each in measured.findings}
        assert ("holes" in rules) is expected
