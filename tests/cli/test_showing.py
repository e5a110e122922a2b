"""`raggs show`: one question in the terminal, its order as the run has it, and nothing that a narrow screen cuts."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from support.cli import call, invoke
from support.golden import change
from support.project import make_project

from raggs import load_config, run
from raggs.base.artifacts import JudgeRecord, MergeRecord, RankRecord, RetrieveRecord
from raggs.base.jsonl import read_records
from raggs.cli import screen, show


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = make_project(tmp_path_factory.mktemp("shown"), queries=3, corpus=20, rank={"top": 3, "max_calls": 3})
    return run(load_config(project.config)).store.folder


def shown(*arguments: object, code: int = 0) -> str:
    return call("show", *arguments, code=code).output


def of(folder: Path, artifact: str, model: type, qid: str = "q01") -> list:
    return [record for record in read_records(folder / f"{artifact}.jsonl", model) if record.qid == qid]


def test_the_order_and_its_passages(made: Path) -> None:
    out = shown(made, "q01", "--details")
    ranked, pooled = of(made, "rank", RankRecord), {each.doc_id: each for each in of(made, "merge", MergeRecord)}
    rows = [line.split() for line in out.splitlines() if re.match(r" *\d+ +\d+-\d+ ", line)]
    assert [(row[0], row[2], row[-3]) for row in rows] == [
        (str(each.rank), str(each.grade), each.doc_id) for each in ranked
    ]
    for each in ranked[:3]:
        assert f"[#{each.rank}, grade {each.grade}] {each.doc_id}" in out
        assert pooled[each.doc_id].text in out
    assert pooled[ranked[3].doc_id].text not in out
    assert pooled[ranked[3].doc_id].text in shown(made, "q01", "--passages", 4)
    brief = shown(made, "q01")
    assert f"next: raggs why {made} --query q01" in brief and pooled[ranked[0].doc_id].text not in brief


def test_what_a_system_returned(made: Path, tmp_path: Path) -> None:
    grades = {each.doc_id: each.grade for each in of(made, "judge", JudgeRecord)}
    best = of(made, "rank", RankRecord)[0]
    path = tmp_path / "mine.trec"
    path.write_text(f"q01 Q0 {best.doc_id} 1 2 mine\nq01 Q0 nowhere 2 1 mine\n")
    assert f"mine        2         1  {grades[best.doc_id]} ·" in shown(made, "q01", "--run", path, "--details")
    out = shown(made, "q01", "--run", path, "--system", "mine", "--details")
    assert "nowhere" in out and "not judged" in out and f"[#1, grade {best.grade}] {best.doc_id}" in out
    assert "did you mean 'mine'" in shown(made, "q01", "--run", path, "--system", "min", code=4)
    shutil.copy(path, tmp_path / "bm25.trec")
    assert "two systems have the name bm25" in shown(made, "q01", "--run", tmp_path / "bm25.trec", code=2)


def test_long_tables_are_cut_unless_all_is_asked_for(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranked = of(made, "rank", RankRecord)
    monkeypatch.setattr(show, "MAX_ROWS", 2)
    short, whole = shown(made, "q01", "-p", 0), shown(made, "q01", "-p", 0, "--all")
    assert f"{len(ranked) - 2} more with --all" in short
    third = f" {ranked[2].doc_id} "
    assert third not in short
    assert third in whole and "--all" not in whole
    found = [hit for hit in of(made, "retrieve", RetrieveRecord) if hit.retriever == "bm25"]
    assert f"{len(found) - 2} more with --all" in shown(made, "q01", "-s", "bm25", "-p", 0)


def test_all_questions_in_a_table_and_an_unknown_one(made: Path) -> None:
    assert [line.split()[0] for line in shown(made).splitlines()[3:6]] == ["q00", "q01", "q02"]
    assert [line["qid"] for line in json.loads(shown(made, "--json"))] == ["q00", "q01", "q02"]
    assert "unknown query 'q1'" in shown(made, "q1", code=4)


def test_pools_are_counted_before_anything_is_judged_and_commands_can_be_pasted(made: Path, tmp_path: Path) -> None:
    copy = tmp_path / "my run"
    shutil.copytree(made, copy)
    assert f"raggs why '{copy}' --query q01" in shown(copy, "q01")
    before = [line["pooled"] for line in json.loads(shown(copy, "--json"))]
    (copy / "judge.jsonl").unlink()
    assert [line["pooled"] for line in json.loads(shown(copy, "--json"))] == before


def test_json_holds_what_the_screen_cuts(made: Path) -> None:
    found = json.loads(shown(made, "q01", "--json"))
    assert [each["doc_id"] for each in found["passages"]] == [each.doc_id for each in of(made, "merge", MergeRecord)]
    assert {each["system"] for each in found["systems"]} == {"bm25", "dense", "fused"}
    silent = shown(made, "q01", "--json", "--no-text")
    assert not any(each.text in silent or each.title in silent for each in of(made, "merge", MergeRecord))
    assert "\n[#1" not in shown(made, "q01", "--no-text")


def test_people_and_reasons_stand_with_the_passage(made: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(made, tmp_path / "runs" / "copy")
    change(copy, "judge", JudgeRecord, lambda record: record.model_copy(update={"reason": "names the limit"}))
    best = of(made, "rank", RankRecord)[0].doc_id
    for who, grade, more in (("ada", "2", ["--note", "half of it"]), ("bo", "?", [])):
        said = ["review", "set", str(copy), "q01", best, grade, "--annotator", who, *more]
        assert invoke(*said).exit_code == 0
    out = shown(copy, "q01", "-p", 1)
    assert "names the limit" in out
    assert "  ada: grade 2, half of it\n  bo: cannot tell" in out
    assert "half of it" not in shown(copy, "q01", "--no-text", "--json")


def test_a_narrow_screen_cuts_no_number(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "PIPE_WIDTH", 60)
    out = shown(made, "q01", "-p", 0)
    for each in of(made, "rank", RankRecord)[:-1]:
        assert f"{each.rank_low}-{each.rank_high}" in out and f"{each.confidence:.0%}" in out


def test_labels_alone_have_questions_too(made: Path) -> None:
    out = shown(made.parents[1] / "qrels.txt", "q01", "--details")
    grades = re.findall(r"^ +(\d)  p\d+", out, re.MULTILINE)
    assert len(grades) == 20
    assert grades == sorted(grades, reverse=True)


def test_a_passage_names_its_source(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=8, rank={"top": 3, "max_calls": 3})
    corpus = project.folder / "corpus.jsonl"
    lines = [json.loads(line) for line in corpus.read_text().splitlines()]
    for line in lines:
        line["metadata"] = {"source": f"https://example.org/{line['_id']}"}
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines))
    folder = run(load_config(project.config)).store.folder
    best = next(iter(read_records(folder / "rank.jsonl", RankRecord)))
    (qid,) = {each.qid for each in read_records(folder / "rank.jsonl", RankRecord)}
    assert f", https://example.org/{best.doc_id}" in shown(folder, qid, "--details")
    passages = json.loads(shown(folder, qid, "--json"))["passages"]
    assert {each["doc_id"]: each["source"] for each in passages} == {
        each["doc_id"]: f"https://example.org/{each['doc_id']}" for each in passages
    }
