"""Training data: no evaluation query in it, and no negative that may be useful."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cli import call
from support.golden import GivenGolden
from support.project import Project, make_project

from raggs.base.artifacts import Passage, Query, RankRecord
from raggs.base.errors import DataError, NotFoundError
from raggs.golden.base import GoldenQuery, LabelRecord
from raggs.golden.formats import ExportOptions
from raggs.golden.formats.training import (
    MAX_NEGATIVES,
    MIN_CONFIDENCE,
    PairsExporter,
    QuerySplit,
    SentenceTransformersExporter,
    confidence,
    judged_passages,
    triplets_of,
    words_key,
)

WORDS = st.lists(st.sampled_from(["amber", "brook", "cedar", "delta", "Ember", "flint"]), min_size=1, max_size=5)
LABEL = st.tuples(
    st.sampled_from([None, 1, 2, 3, 4, 5]),  # grade
    st.sampled_from([None, 0, 1, 2]),  # near-duplicate of this passage
    st.integers(0, 6),  # text
    st.one_of(st.none(), st.tuples(st.floats(0.5, 5.5), st.floats(0.01, 1.0))),  # score and its error
)


def golden_query(qid: str, text: str, labels: list[Any]) -> GoldenQuery:
    pool, grades, order = [], [], []
    for number, (grade, copy_of, body, posterior) in enumerate(labels):
        doc_id = f"{qid}-d{number}"
        leader = None if copy_of is None or copy_of >= number else f"{qid}-d{copy_of}"
        pool.append(Passage(doc_id=doc_id, text=f"text {body}"))
        error = "failed" if grade is None else None
        grades.append(LabelRecord(qid=qid, doc_id=doc_id, grade=grade, judge="j", duplicate_of=leader, error=error))
        if posterior is not None and grade is not None:
            order.append(
                RankRecord(
                    qid=qid,
                    rank=number + 1,
                    doc_id=doc_id,
                    grade=grade,
                    score=posterior[0],
                    sigma=posterior[1],
                    confidence=0.5,
                    rank_low=1,
                    rank_high=9,
                    membership=1,
                    exposures=2,
                )
            )
    return GoldenQuery(qid, Query(qid=qid, text=text), tuple(pool), tuple(grades), tuple(order))


@given(st.lists(LABEL, min_size=1, max_size=12), st.integers(2, 5))
@settings(max_examples=100)
def test_no_negative_may_be_useful(labels: list[Any], least: int) -> None:
    query = golden_query("q", "what", labels)
    passages = judged_passages(query)
    records = {each.doc_id: each for each in query.grades}
    useful = {each.doc_id for each in query.grades if each.grade is not None and each.grade >= least}
    copies = useful | {leader for doc in useful if (leader := records[doc].duplicate_of) is not None}
    texts = {each.doc_id: each.text for each in query.pool}
    found = list(triplets_of(passages, least))
    for each in found:
        positive, negative = each.positive, each.negative
        doc_id = negative.passage.doc_id
        assert positive.grade >= least > negative.grade and negative.grade < positive.grade
        assert records[doc_id].grade is not None and not records[doc_id].failed
        assert doc_id not in copies and records[doc_id].duplicate_of not in copies
        assert texts[doc_id] not in {texts[doc] for doc in useful}
        assert 0 < each.margin <= 1 and each.margin == pytest.approx(positive.utility - negative.utility, abs=5e-5)
        assert each.sure == confidence(positive, negative)
        assert each.sure >= MIN_CONFIDENCE if each.sure is not None else positive.grade - negative.grade >= 2
    by_positive = [each.positive.passage.doc_id for each in found]
    assert all(by_positive.count(doc) <= MAX_NEGATIVES for doc in by_positive)


@given(WORDS, st.randoms(use_true_random=False), st.floats(0, 1))
def test_near_duplicate_queries_are_on_the_same_side(words: list[str], chance: random.Random, share: float) -> None:
    other = [word.upper() for word in words] + words[:1]
    chance.shuffle(other)
    split = QuerySplit(share)
    assert split.side(" ".join(words)) == split.side("  ".join(other) + "?!")


@given(st.lists(WORDS, min_size=1, max_size=12), st.floats(0, 1))
def test_no_query_is_on_both_sides_and_equal_input_gives_equal_bytes(texts: list[list[str]], share: float) -> None:
    labels = [(5, None, 0, None), (1, None, 1, None), (2, None, 2, None)]
    queries = [golden_query(f"q{number:02}", " ".join(words), labels) for number, words in enumerate(texts)]
    golden = GivenGolden("set", 3, queries)
    anchors: dict[str, set[str]] = {}
    for exporter in (SentenceTransformersExporter, PairsExporter):
        for side in ("train", "test"):
            with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
                for folder in (one, other):
                    exporter(ExportOptions(side_of=QuerySplit(share).side, side=side)).write(golden, Path(folder))
                files = {path.name: path.read_bytes() for path in Path(one).iterdir()}
                assert files == {path.name: path.read_bytes() for path in Path(other).iterdir()}
                rows = [json.loads(line) for line in files["pairs.jsonl"].splitlines()]
                found = {words_key(row.get("anchor") or row["query"]) for row in rows}
                anchors[side] = anchors.get(side, set()) | found
    assert not anchors["train"] & anchors["test"]
    assert anchors["train"] | anchors["test"] == {words_key(" ".join(words)) for words in texts}


def test_probabilities_of_grades_decide_without_a_posterior() -> None:
    query = golden_query("q", "what", [(4, None, 0, None), (3, None, 1, None), (3, None, 2, None)])
    stated = [(0.0, 0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.5, 0.5, 0.0)]
    grades = tuple(
        each.model_copy(update={"distribution": shares, "distribution_source": "logprobs"})
        for each, shares in zip(query.grades, stated, strict=True)
    )
    found = list(triplets_of(judged_passages(GoldenQuery("q", query.query, query.pool, grades)), 4))
    assert [(each.negative.passage.doc_id, each.sure, each.margin) for each in found] == [("q-d1", 1.0, 0.25)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = make_project(tmp_path_factory.mktemp("training"), queries=12, corpus=24, rank={"max_calls": 2})
    call("run", "--config", made.config, "--quiet")
    return made


def rows_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def export(project: Project, folder: Path, *options: object, code: int = 0) -> str:
    done = call(
        "export", project.run, "--format", "sentence-transformers", "--out", folder, *options, "--force", code=code
    )
    return done.stdout + done.stderr


def test_the_command_writes_the_documented_columns(project: Project, tmp_path: Path) -> None:
    export(project, tmp_path / "train")
    triplets, pairs = (rows_of(tmp_path / "train" / f"{name}.jsonl") for name in ("triplets", "pairs"))
    assert triplets and {tuple(row) for row in triplets} == {("anchor", "positive", "negative", "score")}
    assert pairs and {tuple(row) for row in pairs} == {("anchor", "positive", "score")}
    assert all(0 < row["score"] <= 1 and row["positive"] != row["negative"] for row in triplets)
    call("export", project.run, "--format", "pairs-jsonl", "--out", tmp_path / "pairs")
    first = rows_of(tmp_path / "pairs" / "pairs.jsonl")[0]
    assert list(first) == ["qid", "query", "doc_id", "passage", "grade", "utility", "sigma"]


def test_test_queries_are_refused_and_never_in_the_train_side(project: Project, tmp_path: Path) -> None:
    said = export(project, tmp_path / "test", "--split", "test", code=2)
    assert "pass --allow-test to export them anyway" in said and not (tmp_path / "test").exists()
    assert "no split dev" in export(project, tmp_path / "dev", "--split", "dev", code=2)
    (tmp_path / "eval.txt").write_text("q03\n\nq07\n")
    named = ("--eval-queries", tmp_path / "eval.txt")
    export(project, tmp_path / "train", *named)
    export(project, tmp_path / "test", *named, "--split", "test", "--allow-test")
    texts = {row["_id"]: row["text"] for row in rows_of(project.folder / "queries.jsonl")}
    asked = {side: {row["anchor"] for row in rows_of(tmp_path / side / "pairs.jsonl")} for side in ("train", "test")}
    assert asked["test"] == {texts["q03"], texts["q07"]}
    assert asked["train"] == set(texts.values()) - asked["test"]


def test_a_wrong_file_of_evaluation_queries_is_an_error(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "eval.txt"
    file.write_text("q03\nq99\n")
    assert f"{file}:2: the set has no query 'q99'" in export(project, tmp_path / "x", "--eval-queries", file, code=5)
    golden = GivenGolden("set", 3, [])
    file.write_text("\n")
    with pytest.raises(DataError, match="names no query"):
        QuerySplit.of(golden, 0.2, file)
    with pytest.raises(NotFoundError):
        QuerySplit.of(golden, 0.2, tmp_path / "none.txt")
