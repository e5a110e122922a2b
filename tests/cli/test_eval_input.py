"""Whatever is wrong with what is scored: one sentence with the place and the remedy, the right exit code, no bug."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from support.scoring import OUTPUTS, QRELS, RUN, SAMPLES, raggs_eval, write

Files = dict[str, str | bytes]

# What is wrong: the files that differ from good ones, the exit code, and parts of the sentence.
RUNS: dict[str, tuple[Files, int, tuple[str, ...]]] = {
    # TREC qrels
    "qrels of three columns": ({"qrels": "q1 0 doc-3 5\nq1 doc-9 4\n"}, 5, ("qrels:2", "3 columns", "qid 0 docid")),
    "qrels of five columns": ({"qrels": "q1 0 doc-3 5 x\n"}, 5, ("qrels:1", "5 columns instead of 4")),
    "a passage id with a space": ({"qrels": "q1 0 doc 3 5\n"}, 5, ("qrels:1", "must not contain spaces")),
    "a grade that is a word": ({"qrels": "q1 0 doc-3 high\n"}, 5, ("qrels:1", "'high'", "whole numbers")),
    "a grade of 2.5": ({"qrels": "q1 0 doc-3 5\nq1 0 doc-9 2.5\n"}, 5, ("qrels:2", "'2.5'")),
    "a grade of 2.0": ({"qrels": "q1 0 doc-3 2.0\n"}, 5, ("qrels:1", "'2.0'")),
    "a grade of 1e1": ({"qrels": "q1 0 doc-3 1e1\n"}, 5, ("qrels:1", "'1e1'")),
    "a grade of ten digits": ({"qrels": "q1 0 doc-3 1234567890\n"}, 5, ("qrels:1", "1234567890")),
    "a grade of NaN": ({"qrels": "q1 0 doc-3 nan\n"}, 5, ("qrels:1", "'nan'")),
    "a grade of 7": ({"qrels": QRELS + "q3 0 doc-6 7\n"}, 5, ("qrels:7", "grade 7", "1 to 5", "--scale")),
    "a grade of 6 among zeros": ({"qrels": "q1 0 doc-3 0\nq1 0 doc-4 6\n"}, 5, ("qrels:2", "grade 6", "0 to 4")),
    "a label twice": ({"qrels": QRELS + "q1 0 doc-3 4\n"}, 5, ("qrels:7", "doc-3", "first in line 1")),
    "a label twice, alike": ({"qrels": QRELS + "q1 0 doc-3 5\n"}, 5, ("qrels:7", "twice")),
    "grades that stop at 2": ({"qrels": "q1 0 doc-3 2\nq1 0 doc-9 1\n"}, 5, ("qrels", "--scale 0-2")),
    "qrels not UTF-8": ({"qrels": b"q1 0 doc-3 5\nq1 0 doc-\xff 4\n"}, 5, ("qrels:2", "UTF-8")),
    "qrels in UTF-16": ({"qrels": QRELS.encode("utf-16")}, 5, ("qrels:1", "UTF-8")),
    "qrels empty": ({"qrels": ""}, 5, ("qrels", "no labels")),
    "qrels of comments": ({"qrels": "# nothing\n\n"}, 5, ("qrels", "no labels")),
    "qrels that are an image": ({"qrels": b"\x89PNG\r\n\x1a\n\x00\x00"}, 5, ("qrels:1", "UTF-8")),
    "a grade after a comment": ({"qrels": "# made by hand\nq1 0 doc-3 five\n"}, 5, ("qrels:2", "'five'")),
    # TREC runs
    "a run of five columns": ({"run": "q1 Q0 doc-3 1 2.0\n"}, 5, ("run:1", "5 columns instead of 6")),
    "a run of seven columns": (
        {"run": RUN + "q1 Q0 doc 3 1 2.0 a\n"},
        5,
        ("run:10", "7 columns", "must not contain spaces"),
    ),
    "a score that is a word": ({"run": "q1 Q0 doc-3 1 high a\n"}, 5, ("run:1", "'high'", "finite")),
    "a score of NaN": ({"run": RUN + "q1 Q0 doc-6 9 nan a\n"}, 5, ("run:10", "'nan'")),
    "an infinite score": ({"run": "q1 Q0 doc-3 1 -inf a\n"}, 5, ("run:1", "'-inf'")),
    "a score beyond all numbers": ({"run": "q1 Q0 doc-3 1 1e999 a\n"}, 5, ("run:1", "1e999")),
    "a score with an underscore": ({"run": "q1 Q0 doc-3 1 1_0 a\n"}, 5, ("run:1", "1_0")),
    "a passage twice": ({"run": RUN + "q2 Q0 doc-8 3 7.0 a\n"}, 5, ("run:10", "doc-8", "first in line 7")),
    "a run not UTF-8": ({"run": b"q1 Q0 doc-\xe9 1 2.0 a\n"}, 5, ("run:1", "UTF-8")),
    "a run without rows": ({"run": "\n\n"}, 5, ("run", "no rows")),
    "a run of other queries": (
        {"run": "".join(f"other-{number} Q0 doc-3 1 2.0 a\n" for number in range(5))},
        5,
        ("run: ", "other-0, other-1, other-2, …", "q1, q2, q3", "the same query ids"),
    ),
    "qrels instead of a run": ({"run": QRELS}, 5, ("run:1", "4 columns instead of 6")),
    "a run instead of qrels": ({"qrels": RUN}, 5, ("qrels:1", "6 columns instead of 4")),
    "a run that is a JSON list": ({"run": "[1, 2]\n"}, 5, ("run:1", "2 columns")),
    # compressed
    "a .gz that is none": ({"qrels__gz": QRELS.encode()}, 4, ("qrels.gz", "gzip")),
    "a .gz cut short": ({"run__gz": gzip.compress(RUN.encode() * 99)[:40]}, 4, ("run.gz", "cannot be read")),
    "a damaged .gz": ({"run__gz": gzip.compress(RUN.encode())[:-8] + bytes(8)}, 4, ("run.gz", "cannot be read")),
    "a wrong line in a .gz": ({"qrels__gz": "q1 0 doc-3\n"}, 5, ("qrels.gz:1", "3 columns")),
    # tables
    "a table without scores": ({"run": "qid,doc_id,rank\nq1,doc-3,1\n"}, 5, ("run:1", "no column score", "rank")),
    "a table without grades": ({"qrels": "query-id\tcorpus-id\tx\nq1\td\t1\n"}, 5, ("qrels:1", "no column grade")),
    "a table with an unknown header": ({"qrels": "a,b,c\nq1,doc-3,5\n"}, 5, ("qrels:1", "1 columns instead of 4")),
    "a short row": ({"qrels": "query-id\tcorpus-id\tscore\nq1\tdoc-3\n"}, 5, ("qrels:2", "2 columns")),
    "a long row": ({"run": "qid,doc_id,score\nq1,doc-3,2,9\n"}, 5, ("run:2", "4 columns, the header has 3")),
    "a table's id with a space": ({"run": "qid,doc_id,score\nq1,doc 3,2\n"}, 5, ("run:2", "white space")),
    "a table's empty id": ({"run": "qid,doc_id,score\nq1,,2\n"}, 5, ("run:2", "empty")),
    "a table's score is a word": ({"run": "qid,doc_id,score\nq1,doc-3,high\n"}, 5, ("run:2", "'high'")),
    "a table's grade of 2.5": ({"qrels": "qid,doc_id,grade\nq1,doc-3,2.5\n"}, 5, ("qrels:2", "'2.5'")),
    "a table's row twice": ({"run": "qid,doc_id,score\nq1,doc-3,1\nq1,doc-3,2\n"}, 5, ("run:3", "line 2")),
    "a table's header alone": ({"qrels": "qid,doc_id,grade\n"}, 5, ("qrels", "no labels")),
    "a cell without an end": ({"run": 'qid,doc_id,score\nq1,"' + "x" * 200_000 + ",1\n"}, 5, ("run:2", "end of data")),
    "a carriage return in a row": ({"run": "qid,doc_id,score\nq1,a\rb,1\n"}, 5, ("run:2",)),
    # JSON
    "JSON cut short": ({"run": '{"q1": {"doc-3": 1.0}\n'}, 5, ("run:", "JSON")),
    "JSON with NaN": ({"run": '{"q1": {"doc-3": NaN}}'}, 5, ("run", "nan", "finite")),
    "JSON with a word": ({"run": '{"q1": {"doc-3": "1.0"}}'}, 5, ("run", '"1.0"', "not a number")),
    "JSON with true": ({"qrels": '{"q1": {"doc-3": true}}'}, 5, ("qrels", "true", "not a number")),
    "JSON with lists": ({"run": '{"q1": ["doc-3"]}'}, 5, ("run", "q1", "{qid: {doc_id: number}}")),
    "JSON with a passage twice": ({"qrels": '{"q1": {"doc-3": 5, "doc-3": 4}}'}, 5, ("qrels", "doc-3", "duplicate")),
    "JSON with a query twice": ({"qrels": '{"q1": {"d-1": 5}, "q1": {"d-2": 4}}'}, 5, ("qrels", "q1", "duplicate")),
    "JSON with a grade of 4.5": ({"qrels": '{"q1": {"doc-3": 4.5}}'}, 5, ("qrels", "4.5", "not an integer")),
    "JSON with a grade of 7": ({"qrels": '{"q1": {"doc-3": 5, "doc-4": 7}}'}, 5, ("qrels", "grade 7", "1 to 5")),
    "JSON with a huge number": ({"run": '{"q1": {"doc-3": 1' + "0" * 400 + "}}"}, 5, ("run", "finite")),
    "JSON with a number without end": ({"run": '{"q1": {"doc-3": ' + "1" * 9999 + "}}"}, 5, ("run", "JSON")),
    "JSON nested without end": ({"run": '{"q1":' * 100_000}, 5, ("run", "JSON")),
    "JSON with half a character": ({"run": '{"q1": {"doc-\\ud800": 1}}'}, 5, ("run", "\\ud800", "not valid")),
    "JSON with NUL": ({"qrels": '{"q1\\u0000": {"doc-3": 5}}'}, 5, ("qrels", "\\x00", "not valid")),
    "JSON without queries": ({"qrels": "{}"}, 5, ("qrels", "no labels")),
    "JSON without rows": ({"run": "{}"}, 5, ("run", "no rows")),
}


@pytest.mark.parametrize("case", RUNS)
def test_golden_and_run(case: str, tmp_path: Path) -> None:
    files, code, parts = RUNS[case]
    write(tmp_path, **({"qrels": QRELS, "run": RUN} | files))
    golden, run = (tmp_path / (f"{name}.gz" if f"{name}__gz" in files else name) for name in ("qrels", "run"))
    refused(["--golden", golden, "--run", run], code, parts)


SAMPLE_FILES: dict[str, tuple[Files, int, tuple[str, ...]]] = {
    "samples not YAML": ({"samples": "samples:\n- id: [s1\n- x: }\n"}, 5, ("samples:3", "YAML")),
    "samples empty": ({"samples": ""}, 5, ("samples", "list of samples")),
    "samples are a word": ({"samples": "hello"}, 5, ("samples", "list of samples")),
    "samples are an empty list": ({"samples": "samples: []"}, 5, ("samples", "no samples")),
    "samples not UTF-8": ({"samples": b"samples:\n- id: \xff\n"}, 5, ("samples", "UTF-8")),
    "samples with control characters": ({"samples": "samples: \x07"}, 5, ("samples", "YAML")),
    "samples nested without end": ({"samples": "[" * 100_000}, 5, ("samples", "nested")),
    "samples with a tag": ({"samples": "samples: !!python/object/apply:os.getcwd []"}, 5, ("samples:1", "YAML")),
    "a sample without id": ({"samples": "- expected_output: [doc-3]"}, 5, ("sample 1 has no id",)),
    "a sample that is a word": ({"samples": "- s1"}, 5, ("sample 1 has no id",)),
    "a sample whose id is true": ({"samples": "- id: yes\n  expected_output: [doc-3]"}, 5, ("sample 1",)),
    "a sample's id with a space": ({"samples": "- id: s 1\n  expected_output: [a]"}, 5, ("'s 1'", "white space")),
    "a sample twice": (
        {"samples": "- {id: s1, expected_output: [a]}\n- {id: s1, expected_output: [b]}"},
        5,
        ("s1 occurs twice",),
    ),
    "a sample without passages": ({"samples": "- id: s1"}, 5, ("s1 expects no passage",)),
    "a sample of an empty list": ({"samples": "- {id: s1, expected_output: []}"}, 5, ("s1 expects no passage",)),
    "a sample of one word": ({"samples": "- {id: s1, expected_output: doc-3}"}, 5, ("s1 expects no passage",)),
    "an expected passage twice": ({"samples": "- {id: s1, expected_output: [a, a]}"}, 5, ("expects a twice",)),
    "an expected passage is a list": ({"samples": "- {id: s1, expected_output: [[a]]}"}, 5, ("s1", "not a passage id")),
    "a gain below 0": ({"samples": "- {id: s1, expected_output: {a: -1}}"}, 5, ("gain -1 of a",)),
    "a gain that is a word": ({"samples": "- {id: s1, expected_output: {a: much}}"}, 5, ("gain 'much' of a",)),
    "a gain of NaN": ({"samples": "- {id: s1, expected_output: {a: .nan}}"}, 5, ("gain nan of a",)),
    "an endless gain": ({"samples": "- {id: s1, expected_output: {a: .inf}}"}, 5, ("gain inf of a",)),
    "k is 0": ({"samples": "- {id: s1, expected_output: [a], metadata: {k: 0}}"}, 5, ("s1: k is 0",)),
    "k is a word": ({"samples": "- {id: s1, expected_output: [a], metadata: {k: all}}"}, 5, ("k is 'all'",)),
    "metadata is a list": ({"samples": "- {id: s1, expected_output: [a], metadata: [k]}"}, 5, ("not a mapping",)),
    "an empty answer": (
        {"samples": "- {id: s1, expected_output: [a], metadata: {answer: ' '}}"},
        5,
        ("s1", "answer is empty"),
    ),
    "an answer that is a list": (
        {"samples": "- {id: s1, expected_output: [a], metadata: {answer: [b]}}"},
        5,
        ("s1", "not text"),
    ),
    "outputs not JSON": ({"outputs": OUTPUTS + "{oops\n"}, 5, ("outputs:3", "JSON")),
    "an output is a list": ({"outputs": "[1]\n"}, 5, ("outputs:1", "object")),
    "an output without id": ({"outputs": '{"output": []}\n'}, 5, ("outputs:1", "no id")),
    "an output without list": ({"outputs": '{"id": "s1"}\n'}, 5, ("outputs:1", "no retrieved list")),
    "an output in broken JSON": ({"outputs": '{"id": "s1", "output": "[doc"}\n'}, 5, ("outputs:1", "JSON")),
    "an output twice": ({"outputs": OUTPUTS + '{"id": "s1", "output": []}\n'}, 5, ("outputs:3", "twice")),
    "an output of no sample": ({"outputs": '{"id": "s9", "output": []}\n'}, 5, ("outputs:1", "no sample s9")),
    "a passage returned twice": ({"outputs": '{"id": "s1", "output": ["a", "a"]}\n'}, 5, ("outputs:1", "twice")),
    "a passage that is a number": ({"outputs": '{"id": "s1", "output": [1.5]}\n'}, 5, ("outputs:1", "1.5")),
    "a passage without id": ({"outputs": '{"id": "s1", "output": [{"text": "x"}]}\n'}, 5, ("outputs:1", "text")),
    "a passage's id with a space": ({"outputs": '{"id": "s1", "output": ["a b"]}\n'}, 5, ("outputs:1", "'a b'")),
    "outputs not UTF-8": ({"outputs": b'{"id": "\xff"}\n'}, 5, ("outputs:1", "UTF-8")),
    "outputs empty": ({"outputs": ""}, 5, ("no query in common", "it has none", "s1, s2")),
    "outputs nested without end": ({"outputs": '{"id":' * 100_000 + "\n"}, 5, ("outputs:1", "JSON")),
}


@pytest.mark.parametrize("case", SAMPLE_FILES)
def test_samples_and_outputs(case: str, tmp_path: Path) -> None:
    files, code, parts = SAMPLE_FILES[case]
    write(tmp_path, **({"samples": SAMPLES, "outputs": OUTPUTS} | files))
    refused(["--samples", tmp_path / "samples", "--outputs", tmp_path / "outputs"], code, parts)


OPTIONS: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "a missing file": (("-g", "none.txt", "-r", "run"), 4, ("none.txt", "no such file")),
    "a missing run": (("-g", "qrels", "-r", "none.trec"), 4, ("none.trec", "no such file")),
    "a missing named run": (("-g", "qrels", "-r", "a=none.trec"), 4, ("none.trec",)),
    "a folder that is no run": (("-g", ".", "-r", "run"), 4, ("no run here",)),
    "nothing to score": (("-g", "qrels"), 2, ("--golden RUN|QRELS --run FILE",)),
    "nothing to score against": (("-r", "run"), 2, ("--golden",)),
    "two systems of one name": (("-g", "qrels", "-r", "run", "-r", "run"), 2, ("have the name run", "--run NAME=")),
    "an unknown measure": (("-g", "qrels", "-r", "run", "-m", "recal@10"), 2, ("recal", "did you mean 'recall'")),
    "a measure without cutoff": (("-g", "qrels", "-r", "run", "-m", "bogus("), 2, ("bogus(",)),
    "a cutoff of 0": (("-g", "qrels", "-r", "run", "-k", "5,0"), 2, ("--k 0",)),
    "a cutoff that is a word": (("-g", "qrels", "-r", "run", "-k", "ten"), 2, ("--k ten", "5,10,20")),
    "a cutoff without end": (("-g", "qrels", "-r", "run", "-k", "9" * 9999), 2, ("--k 999",)),
    "unknown ties": (("-g", "qrels", "-r", "run", "--ties", "random"), 2, ("--ties random", "trec or file")),
    "a scale of one": (("-g", "qrels", "-r", "run", "--scale", "5"), 2, ("--scale 5", "1-5")),
    "a scale upside down": (("-g", "qrels", "-r", "run", "--scale", "5-1"), 5, ("5 to 1",)),
    "a scale that is too small": (("-g", "qrels", "-r", "run", "--scale", "1-4"), 5, ("qrels:1", "grade 5")),
    "a scale without end": (("-g", "qrels", "-r", "run", "--scale", "0-999999999"), 2, ("--scale 0-999999999",)),
    "relevant from 0": (
        ("-g", "qrels", "-r", "run", "--binary-at", "0"),
        5,
        ("grade 0 cannot be the lowest relevant grade", "2 to 5"),
    ),
    "relevant from 9": (("-g", "qrels", "-r", "run", "--binary-at", "9"), 5, ("grade 9 cannot be",)),
    "a gain of no grade": (("-g", "qrels", "-r", "run", "--gains", "9=4"), 2, ("9 is not a grade", "1 to 5")),
    "a gain that is no number": (("-g", "qrels", "-r", "run", "--gains", "5=much"), 2, ("'5=much'",)),
    "gains below 0": (("-g", "qrels", "-r", "run", "--gains", "1=-1"), 5, ("is not in 0 to 1000",)),
    "a gain of NaN": (("-g", "qrels", "-r", "run", "--gains", "1=nan"), 5, ("gains",)),
    "a pool of 0": (("-g", "qrels", "-r", "run", "--pool", "0"), 2, ("--pool",)),
    "an unknown baseline": (("-g", "qrels", "-r", "run", "-b", "bm25"), 2, ("called bm25", "known: run")),
    "doubt of a file": (("-g", "qrels", "-r", "run", "--uncertainty"), 2, ("omit --uncertainty",)),
    "a limit without number": (("-g", "qrels", "-r", "run", "--fail-under", "ndcg@10"), 2, ("ndcg@10=0.55",)),
    "a limit of a parameter": (("-g", "qrels", "-r", "run", "--fail-under", "P(rel=2)@10"), 2, ("no number",)),
    "a limit of NaN": (("-g", "qrels", "-r", "run", "--fail-under", "ndcg@10=nan"), 2, ("no number",)),
    "a limit of no measure": (("-g", "qrels", "-r", "run", "--fail-under", "x@10=1"), 2, ("unknown measure 'x'",)),
    "an earlier result missing": (("-g", "qrels", "-r", "run", "--fail-on-regression", "e.json"), 4, ("e.json",)),
    "an earlier result of another kind": (
        ("-g", "qrels", "-r", "run", "--fail-on-regression", "other.json"),
        5,
        ("other.json", "eval.json"),
    ),
    "a confidence of 2": (("-g", "qrels", "-r", "run", "--confidence", "2"), 2, ("--confidence",)),
    "a confidence of NaN": (("-g", "qrels", "-r", "run", "--confidence", "nan"), 2, ("--confidence",)),
    "a drop of NaN": (("-g", "qrels", "-r", "run", "--max-drop", "nan"), 2, ("--max-drop",)),
    "a seed that is a word": (("-g", "qrels", "-r", "run", "--seed", "one"), 2, ("--seed",)),
    "facets missing": (("-g", "qrels", "-r", "run", "--facets", "none.tsv"), 4, ("none.tsv",)),
    "facets of one column": (("-g", "qrels", "-r", "run", "--facets", "one.tsv"), 5, ("one.tsv:2", "facet")),
    "facets twice": (("-g", "qrels", "-r", "run", "--facets", "twice.tsv"), 5, ("twice.tsv:2", "doc-3")),
    "answers neither right nor wrong": (("-g", "qrels", "-r", "run", "--correct", "maybe.tsv"), 5, ("maybe.tsv:2",)),
    "answers of other queries": (("-g", "qrels", "-r", "run", "--correct", "twice.tsv"), 5, ("twice.tsv:",)),
    "no answer that is known": (("-g", "qrels", "-r", "run", "--correct", "others.tsv"), 5, ("known answer",)),
    "containment without texts": (("-g", "qrels", "-r", "run", "-m", "containment@5"), 5, ("--samples",)),
    "samples without outputs": (("--samples", "samples"), 2, ("--samples needs --outputs",)),
    "samples and golden": (("--samples", "samples", "--outputs", "o", "-g", "qrels"), 2, ("only one of them",)),
    "samples missing": (("--samples", "none.yaml", "--outputs", "outputs"), 4, ("none.yaml",)),
    "samples are a folder": (("--samples", ".", "--outputs", "outputs"), 4, ("cannot be read",)),
    "outputs missing": (("--samples", "samples", "--outputs", "none.jsonl"), 4, ("none.jsonl",)),
    "out is a file": (("-g", "qrels", "-r", "run", "--out", "qrels"), 6, ("qrels", "--out")),
    "graded measures on other labels": (
        ("-g", "zeros", "-r", "run", "-m", "ra_nwg@10"),
        5,
        ("ra_nwg", "1 to 5", "0 to 4"),
    ),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, code, parts = OPTIONS[case]
    monkeypatch.chdir(tmp_path)
    write(tmp_path, qrels=QRELS, run=RUN, samples=SAMPLES, outputs=OUTPUTS, zeros="q1 0 doc-3 1\nq1 0 doc-9 0\n")
    write(tmp_path, one__tsv="doc-3\tA\ndoc-9\n", twice__tsv="doc-3\t1\ndoc-3\t0\n", maybe__tsv="q1\t1\nq2\tmaybe\n")
    write(tmp_path, others__tsv="x1\t1\n", other__json=json.dumps({"v": 1}))
    refused(arguments, code, parts)


def refused(arguments: object, code: int, parts: tuple[str, ...]) -> None:
    result = raggs_eval(*arguments)  # type: ignore[misc]
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    sentence = result.stderr.strip()
    for part in parts:
        assert part in sentence, sentence
    assert "Traceback" not in sentence
    if sentence.startswith("raggs: "):
        assert len(sentence.splitlines()) == 1, sentence
    else:
        assert sentence.startswith("Usage: ")
        assert code == 2
