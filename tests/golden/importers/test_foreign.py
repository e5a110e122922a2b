"""Sets that other tools wrote: read as they stand, without a scale that nobody stated."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from support.cli import invoke

from raggs import open_golden
from raggs.app.export import import_set
from raggs.base.errors import DataError, NotFoundError, RaggsError, UsageError
from raggs.golden import formats

LABELS = {"q1": {"a": 3, "b": 0}, "q2": {"a": 1}}
ROWS = [(qid, doc, grade) for qid, found in LABELS.items() for doc, grade in found.items()]


def lines(path: Path, rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def trec(folder: Path) -> None:
    (folder / "mine.qrels").write_text("".join(f"{qid} 0 {doc} {grade}\n" for qid, doc, grade in ROWS) + "q2 0 b -1\n")
    (folder / "bm25.run").write_text("q1 Q0 b 1 2.0 x\nq1 Q0 a 2 1.0 x\n")


def beir(folder: Path) -> None:
    lines(folder / "corpus.jsonl", [{"_id": name, "title": "", "text": f"Text {name}"} for name in "abc"])
    lines(folder / "queries.jsonl", [{"_id": qid, "text": f"What of {qid}?"} for qid in ("q1", "q2", "q3")])
    (folder / "qrels").mkdir()
    table = "query-id\tcorpus-id\tscore\n" + "".join(f"{qid}\t{doc}\t{grade}\n" for qid, doc, grade in ROWS)
    (folder / "qrels" / "dev.tsv").write_text(table)


def hf(folder: Path) -> None:
    """Numbers for ids, several files for a configuration, a head that names them."""
    lines(folder / "c" / "1.jsonl", [{"id": "a", "text": "Text a"}])
    lines(folder / "c" / "2.jsonl", [{"id": "b", "text": "Text b"}])
    lines(folder / "q.jsonl", [{"_id": qid, "text": "?" + qid} for qid in LABELS])
    lines(folder / "labels.jsonl", [{"query-id": q, "corpus-id": d, "score": s} for q, d, s in ROWS])
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: corpus\n  data_files: 'c/*.jsonl'\n- config_name: queries\n  data_files:\n"
        "  - {split: queries, path: q.jsonl}\n- config_name: default\n  data_files:\n  - {split: train, path: ../x}\n"
        "  - {split: test, path: [labels.jsonl]}\n---\n# Mine\n"
    )


def ranx(folder: Path) -> None:
    (folder / "qrels.json").write_text(json.dumps(LABELS))
    (folder / "run.json").write_text(json.dumps({"q1": {"b": 2.0, "a": 1.0}}))


FORMATS = {"trec": trec, "beir": beir, "hf": hf, "ranx": ranx}


@pytest.mark.parametrize("name", FORMATS)
def test_labels_of_others_keep_their_numbers(name: str, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    FORMATS[name](tmp_path / "theirs")
    done = import_set(tmp_path / "theirs", name, tmp_path / "out")
    assert {each.came for each in done.through} == {"read"}
    counts = {each.part: each.count for each in done.through}
    assert counts["grades"] == 3
    assert counts.get("questions", 0) == {"beir": 3, "hf": 2}.get(name, 0)
    assert counts.get("texts", 0) == {"beir": 2, "hf": 2}.get(name, 0)
    assert counts.get("lists", 0) == {"trec": 2, "ranx": 2}.get(name, 0)
    assert counts.get("unjudged", 0) == (1 if name == "trec" else 0)
    golden = open_golden(tmp_path / "out")
    qrels = golden.judgments().qrels
    assert (sorted(qrels.grade.tolist()), qrels.scale.low, qrels.scale.high) == ([0, 1, 3], 0, 4)
    assert "grades" not in json.loads((tmp_path / "out" / "golden.jsonl.meta.json").read_text())
    assert "gain" not in (tmp_path / "out" / "judgments.jsonl").read_text()
    corpus = (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()
    assert len(corpus) == {"beir": 3, "hf": 2}.get(name, 0), "all passages come, judged or not"


TABLES = {
    "test.jsonl": '{"query-id": 1, "corpus-id": 7, "score": 1.0}\n{"query-id": 1, "corpus-id": 8, "score": 0.0}\n',
    "test.csv": "query-id,corpus-id,score\n1,7,1.0\n1,8,0\n",
    "test.tsv": "query-id\tcorpus-id\tscore\n1\t7\t1\n1\t8\t0\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_ids_that_are_numbers_become_texts_and_whole_scores_whole_numbers(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    lines(folder / "corpus.jsonl", [{"_id": 7, "text": "Seven"}])
    lines(folder / "queries.jsonl", [{"_id": 1, "text": "Which?"}])
    (folder / "qrels").mkdir()
    (folder / "qrels" / name).write_text(TABLES[name])
    import_set(folder, "hf", tmp_path / "out")
    (query,) = open_golden(tmp_path / "out").by_query()
    assert (query.qid, [(each.doc_id, each.grade) for each in query.grades]) == ("1", [("7", 1), ("8", 0)])


def test_parquet_is_read_where_pyarrow_is(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is 150 MB")
    from pyarrow import parquet

    folder = tmp_path / "theirs"
    for name, rows in {
        "corpus/corpus-0.parquet": [{"_id": "a", "text": "Text a"}],
        "queries/queries-0.parquet": [{"_id": qid, "text": "?"} for qid in LABELS],
        "qrels/test-0.parquet": [{"query-id": q, "corpus-id": d, "score": s} for q, d, s in ROWS],
    }.items():
        (folder / name).parent.mkdir(parents=True)
        parquet.write_table(pyarrow.Table.from_pylist(rows), folder / name)
    done = import_set(folder, "hf", tmp_path / "out")
    assert {each.part: each.count for each in done.through} == {"grades": 3, "questions": 2, "texts": 1}
    (folder / "qrels" / "test-0.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match="not valid parquet"):
        import_set(folder, "hf", tmp_path / "other")


PASSAGES, QUERIES = [{"_id": "a", "text": "Text a"}, {"_id": "b", "text": "Text b"}], [{"_id": "q", "text": "One?"}]
GRADES = [{"query-id": "q", "corpus-id": "a", "score": 1}, {"query-id": "q", "corpus-id": "b", "score": 0}]
CASES = [{"qid": "q", "query": "One?", "retrieval_gt": [["a"]], "generation_gt": ["yes"]}]
TEXTS = [{"doc_id": "a", "contents": "Text a", "metadata": {"x": {"y": [1, 2]}}}]
FOREIGN = {
    "hf": {"corpus/0.parquet": PASSAGES, "queries/0.parquet": QUERIES, "qrels/test.parquet": GRADES},
    "autorag": {"qa.parquet": CASES, "corpus.parquet": TEXTS},
}


def in_parquet(folder: Path, form: str, more: dict[str, list[dict[str, object]]]) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is 150 MB")
    from pyarrow import parquet

    for name, rows in FOREIGN[form].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pyarrow.Table.from_pylist([*rows, *more.get(name, [])]), folder / name)


@pytest.mark.parametrize(
    ("form", "name", "row", "line", "said"),
    [
        ("hf", "corpus/0.parquet", {"_id": "a", "text": "Other"}, 3, "passage id a occurs twice"),
        ("hf", "corpus/0.parquet", {"_id": None, "text": "x"}, 3, "_id is missing"),
        ("hf", "queries/0.parquet", {"_id": "q", "text": "Two?"}, 2, "query id q occurs twice"),
        ("hf", "queries/0.parquet", {"_id": None, "text": "Two?"}, 2, "missing, empty, or not a string"),
        ("hf", "qrels/test.parquet", {**GRADES[0], "score": 0}, 3, "query q and passage a occur twice"),
        ("hf", "qrels/test.parquet", {**GRADES[0], "corpus-id": None}, 3, "an id is None"),
        ("autorag", "qa.parquet", {**CASES[0], "query": "Two?"}, 2, "query q has another text"),
        ("autorag", "qa.parquet", {**CASES[0], "generation_gt": ["no"]}, 2, "query q has another answer"),
        ("autorag", "qa.parquet", {**CASES[0], "qid": "q2", "retrieval_gt": [["a", None]]}, 2, "an id is None"),
        ("autorag", "corpus.parquet", {**TEXTS[0], "contents": "Other"}, 2, "passage id a occurs twice"),
        ("autorag", "corpus.parquet", {**TEXTS[0], "doc_id": None}, 2, "an id is None"),
    ],
)
def test_parquet_that_contradicts_itself_is_refused_with_file_and_row(
    tmp_path: Path, form: str, name: str, row: dict[str, object], line: int, said: str
) -> None:
    in_parquet(tmp_path / "theirs", form, {name: [row]})
    with pytest.raises(DataError, match=said) as error:
        import_set(tmp_path / "theirs", form, tmp_path / "out")
    assert (error.value.where, error.value.line) == (str(tmp_path / "theirs" / name), line)


def test_nested_columns_of_parquet_come_through(tmp_path: Path) -> None:
    in_parquet(tmp_path / "theirs", "autorag", {})
    import_set(tmp_path / "theirs", "autorag", tmp_path / "out")
    (passage,) = [json.loads(line) for line in (tmp_path / "out" / "corpus.jsonl").read_text().splitlines()]
    assert passage["metadata"] == {"x": {"y": [1, 2]}}


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize("name", sorted(formats.IMPORTERS))
def test_a_folder_of_something_else_is_one_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("?")
    with pytest.raises(NotFoundError, match=f"no set in the format {name}.*it must contain"):
        import_set(tmp_path, name, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_splits_that_there_are_are_named(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    beir(tmp_path / "theirs")
    table = tmp_path / "theirs" / "qrels" / "train.tsv"
    table.write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    with pytest.raises(NotFoundError, match="--split names one of dev, train"):
        import_set(tmp_path / "theirs", "beir", tmp_path / "out")
    done = import_set(tmp_path / "theirs", "beir", tmp_path / "out", split="dev")
    assert done.through[0].count == 3


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere", "--format", "trec"], 4, "no such file or folder"),
        (["theirs", "--format", "bear"], 2, "did you mean 'beir'?"),
        (["theirs"], 2, "pass --format: autorag, "),
        (["empty.qrels", "--format", "trec"], 5, "contains no grades"),
        (["spaced.json", "--format", "ranx"], 5, "white space"),
        (["torn.json", "--format", "ranx"], 5, "not valid JSON"),
        (["theirs", "--format", "beir", "--split", "dev", "--out", "theirs"], 2, "exists and contains something other"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], code: int, said: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "theirs").mkdir()
    beir(tmp_path / "theirs")
    Path("empty.qrels").write_text("\n")
    Path("spaced.json").write_text('{"q 1": {"a": 1}}')
    Path("torn.json").write_text('{"q1": {"a": 1')
    found = invoke("import", "--out", "out", *arguments)
    assert (found.exit_code, "Traceback" in found.output) == (code, False), found.output
    assert said in " ".join(found.output.split())
    assert not Path("out").exists()


@pytest.mark.nightly(keep=14)
@pytest.mark.parametrize(
    "garbage", [b"", b"\xff\xfe\x00", b"{}\n", b"[1]\n", b"a,b\n1\n", b'{"qid": 1}\n', b"\x1f\x8b\x00"]
)
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("trec", "qrels.txt"),
        ("beir", "qrels/test.tsv"),
        ("beir", "corpus.jsonl"),
        ("hf", "README.md"),
        ("hf", "qrels/test.csv"),
        ("hf", "queries.jsonl"),
        ("jsonl", "judgments.jsonl"),
        ("jsonl", "order.jsonl"),
        ("ranx", "qrels.json"),
        ("ragas", "ragas.jsonl"),
        ("deepeval", "goldens.json"),
        ("langsmith", "examples.jsonl"),
        ("csv", "golden.csv"),
        ("autorag", "qa.jsonl"),
    ],
)
def test_garbage_is_refused_by_a_sentence(name: str, file: str, garbage: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    lines(folder / "qrels" / "test.jsonl", [{"query-id": "q", "corpus-id": "d", "score": 1}])
    lines(folder / "judgments.jsonl", [{"qid": "q", "doc_id": "d", "grade": 1}])
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    (folder / file).write_bytes(garbage)
    with suppress(RaggsError):  # an empty file may be none
        import_set(folder, name, tmp_path / "out")


def test_no_file_outside_of_the_folder_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    hf(folder)
    lines(tmp_path / "secret.jsonl", [{"_id": "s", "text": "secret"}])
    os.symlink(tmp_path / "secret.jsonl", folder / "c" / "3.jsonl")
    card = folder / "README.md"
    card.write_text(card.read_text().replace("path: q.jsonl", "path: ../secret.jsonl"))
    golden = formats.IMPORTERS.load("hf")().read(folder)
    assert not list(golden.queries())
    assert golden.corpus is not None and {one.doc_id for one in golden.corpus()} == {"a", "b"}


def test_a_set_by_itself_says_nothing_of_whence(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        import_set(tmp_path, None, tmp_path / "out")


def test_judged_queries_without_a_text_are_noted_once(tmp_path: Path) -> None:
    beir(tmp_path)
    lines(tmp_path / "queries.jsonl", [{"_id": "q1", "text": "What of q1?"}])
    notes = formats.IMPORTERS.load("beir")().read(tmp_path).notes
    assert [note for note in notes if "judged queries" in note] == [
        "1 of 2 judged queries are not in queries.jsonl: q2"
    ]
