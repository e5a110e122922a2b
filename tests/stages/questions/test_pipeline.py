"""From documents to questions, and from these to a golden set and to scores of chunkers."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from support.asking import document, make_config, make_documents, misplaced, read_questions, rows
from support.cli import call
from support.forging import edit_file
from support.project import environment
from support.project import raggs as process


def refused(*words: object, code: int = 2) -> str:
    return " ".join(call(*words, code=code).output.split())


def test_documents_become_questions_without_a_file_of_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_documents(tmp_path / "docs")
    shown = call("questions", "docs", "--n", 10, "--set", "questions.filter.excerpt=0").output
    assert "made by rule, not by a model or user" in shown
    assert "next: raggs run --config raggs.yaml" in shown
    found = read_questions(tmp_path / "questions.jsonl")
    assert found and not misplaced(found, tmp_path / "docs")
    assert all("made by rule" in str(query.metadata["made"]) for query in found)
    call("run", "--config", "raggs.yaml", "--set", "rank.max_calls=4")
    top = {row["qid"]: row["grade"] for row in reversed(rows(tmp_path / "runs" / "docs" / "rank.jsonl"))}
    assert top == dict.fromkeys((query.qid for query in found), 5)  # each question finds what answers it
    call(
        "chunks",
        "eval",
        "--corpus",
        "docs",
        "--questions",
        "questions.jsonl",
        "--chunkers",
        "recursive:200",
        "--out",
        "o",
    )
    assert json.loads((tmp_path / "o" / "chunks.json").read_text())["systems"][0]["chunker"]


def test_what_has_not_changed_is_not_done_again_and_more_questions_keep_the_first(tmp_path: Path) -> None:
    config = make_config(tmp_path)
    call("questions", "--config", config, "--n", 8)
    run = tmp_path / "runs" / "demo.questions"
    first = {name: (run / f"{name}.jsonl").read_bytes() for name in ("sample", "ask", "verify", "filter")}
    shown = call("questions", "--config", config, "--n", 8).output
    assert "unchanged: sample, ask, verify, filter" in shown
    call("questions", "--config", config, "--n", 20)
    for name in ("sample", "ask", "verify"):
        assert (run / f"{name}.jsonl").read_bytes().startswith(first[name]), name


def test_a_file_that_somebody_wrote_is_not_replaced(tmp_path: Path) -> None:
    config = make_config(tmp_path)
    target = tmp_path / "questions.jsonl"
    target.write_text('{"_id": "mine", "text": "Mine?"}\n')
    assert "exists, and was not written by this run" in refused("questions", "--config", config)
    call("questions", "--config", config, "--force")
    call("questions", "--config", config, "--n", 5)  # its own file it may write again
    target.write_text(target.read_text().replace("What", "What exactly"))
    assert "pass --force" in refused("questions", "--config", config, "--n", 6)


def test_status_why_cost_and_audit_read_the_run(tmp_path: Path) -> None:
    config = make_config(tmp_path)
    call("questions", "--config", config)
    run = tmp_path / "runs" / "demo.questions"
    assert f"next: raggs run --config {config}" in call("status", run, "--config", config).output.replace("\n", " ")
    assert (
        "would run: config.n changed (20 -> 9)"
        in call("status", run, "--config", config, "--set", "questions.sample.n=9").output
    )
    assert "filter is up to date" in call("why", run, "filter").output
    assert "unknown stage 'judge'" in refused("why", run, "judge")
    assert "No language model was called" in call("cost", run).output
    for command in (("export", run, "--out", tmp_path / "o"), ("eval", "--golden", run, "--run", run)):
        assert "not a golden set" in refused(*command, code=5)
    assert "kept" in json.loads(call("schema", "filter").output)["properties"]
    assert "verify and filter recomputed" in " ".join(call("audit", run).output.split())


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("filter.jsonl", b'"kept":false,"rejected":"duplicate"', b'"kept":true,"rejected":null', "filter.jsonl"),
        ("filter.jsonl", b"What ", b"Who ", "filter.jsonl"),
        ("filter.jsonl", b'"part":"dev"', b'"part":"test"', "part is 'test', but 'dev' when recomputed"),
        ("verify.jsonl", b'"start":', b'"start":1', "verify.jsonl"),
        ("ask.jsonl", b"What ", b"Who ", "verify.jsonl"),
    ],
)
def test_an_audit_finds_what_was_put_in(tmp_path: Path, file: str, old: bytes, new: bytes, told: str) -> None:
    config = make_config(tmp_path)
    call("questions", "--config", config, "--n", 60)
    run = tmp_path / "runs" / "demo.questions"
    edit_file(run, file, lambda data: data.replace(old, new, 1), reseal=True)
    assert told in refused("audit", run, code=5)


def test_every_report_over_questions_made_by_rule_says_so(tmp_path: Path) -> None:
    config = make_config(tmp_path)
    call("questions", "--config", config)
    count = len(read_questions(tmp_path / "questions.jsonl"))
    told = f"{count} questions made by rule, not by a model or user"
    call("run", "--config", config)
    run = tmp_path / "runs" / "demo"
    report = json.loads(call("eval", "--golden", run, "--run", run, "--json").output)
    assert any(note.startswith(told) for note in report["notes"])
    chunks = ("--corpus", tmp_path / "docs", "--chunkers", "recursive:200", "--out", tmp_path / "chunks")
    call("chunks", "eval", "--questions", tmp_path / "questions.jsonl", *chunks)
    assert any(note.startswith(told) for note in json.loads((tmp_path / "chunks" / "chunks.json").read_text())["notes"])


def test_documents_too_small_for_so_many_questions_are_told(tmp_path: Path) -> None:
    config = make_config(tmp_path, count=1)
    shown = call("questions", "--config", config, "--n", 90, "--set", "questions.sample.window=4000").output
    assert "10 questions instead of 90: the documents have 1 window of 4,000 characters" in " ".join(shown.split())


def test_a_corpus_of_passages_is_asked_about_passage_by_passage(tmp_path: Path) -> None:
    config = make_config(tmp_path, corpus={"type": "jsonl", "path": "corpus.jsonl", "extra": None})
    text = config.read_text().replace("  extra: null\n", "")
    config.write_text(text)
    lines = [{"_id": f"p{number}", "text": document(number)} for number in range(3)]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    call("questions", "--config", config, "--n", 6)
    for query in read_questions(tmp_path / "questions.jsonl"):
        (reference,) = query.references
        assert reference.span is None and reference.doc_id is not None
        assert reference.text in document(int(reference.doc_id[1:]))
    call("run", "--config", config)


@pytest.mark.parametrize("ending", ["yaml", "csv"])
def test_other_formats_hold_the_same(tmp_path: Path, ending: str) -> None:
    config = make_config(tmp_path)
    call("questions", "--config", config, "--n", 5)
    call("questions", "--config", config, "--n", 5, "--out", tmp_path / f"other.{ending}")
    found = read_questions(tmp_path / f"other.{ending}")
    before = read_questions(tmp_path / "questions.jsonl")
    assert [(query.text, query.references) for query in found] == [(query.text, query.references) for query in before]


def test_bad_input_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = make_config(tmp_path)
    found = refused("questions", "--config", config, "--set", "questions.sample.types={fakt: 1}", code=5)
    assert "did you mean 'fact'" in found
    found = refused("questions", "--config", config, "--set", "questions.sample.types={unanswerable: 1}")
    assert "does not generate questions of the type unanswerable" in found
    assert "no such folder" in refused("questions", "nowhere")
    assert "unknown asker 'litelm'" in refused("questions", "--config", config, "--asker", "litelm:m")
    assert "cannot be combined" in refused("questions", "docs", "--config", config)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "a.txt").write_text(" \n")
    assert "contains no" in refused("questions", "empty", "--out", "there/questions.jsonl", code=5)


def test_a_configuration_that_was_made_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_documents(tmp_path / "docs")
    call("questions", "docs", "--n", 4, "--out", "set/questions.csv")
    written = (tmp_path / "set" / "raggs.yaml").read_text()
    assert 'path: "../docs"' in written and "type: csv" in written
    (tmp_path / "set" / "raggs.yaml").write_text(written.replace("n: 4", "n: 5"))
    shown = call("questions", "docs", "--out", "set/questions.csv").output
    assert " of 5 kept" in shown and "configuration:" not in shown
    make_documents(tmp_path / "other")
    assert "its corpus is not other" in refused("questions", "other", "--out", "set/questions.csv")


def test_a_configuration_that_is_made_says_what_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Going on by the file alone does nothing again and throws nothing away."""
    monkeypatch.chdir(tmp_path)
    make_documents(tmp_path / "docs")
    words = ("--set", 'questions.sample.personas=["a ${USER} $$ #1", "no"]', "--set", "questions.filter.excerpt=0")
    refused("questions", "docs", "-n", 10**9, code=5)
    assert not (tmp_path / "raggs.yaml").exists()  # nothing is left of what could not be asked
    call("questions", "docs", "-n", 12, "--asker", "extractive", *words, "--max-usd", 3)
    written, questions = (tmp_path / "raggs.yaml").read_text(), (tmp_path / "questions.jsonl").read_bytes()
    assert "sample: {n: 12, personas:" in written and "# raggs questions --config" in written
    again = call("questions", "--config", "raggs.yaml").output
    assert "unchanged: sample, ask, verify, filter" in again and "says otherwise" not in again
    assert (tmp_path / "questions.jsonl").read_bytes() == questions
    assert "#   max_usd: 1" in written  # what a call may spend is its own


def test_settings_that_no_file_can_say_so_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that lies there is not rewritten, and a list's entry has no key of its own."""
    monkeypatch.chdir(tmp_path)
    make_documents(tmp_path / "docs")
    call("questions", "docs", "-n", 4, "--set", "retrieve.retrievers.bm25.k=7", "--set", "questions.filter.excerpt=0")
    assert "n: 100" in (tmp_path / "raggs.yaml").read_text()
    more = ("-n", 5, "--set", "questions.filter.excerpt=0")
    assert "raggs.yaml has other settings" in call("questions", "docs", *more).output
    assert (
        "set in this file: questions.filter.excerpt: 0, questions.sample.n: 5"
        in call("questions", "docs", *more).output
    )


def test_where_nothing_is_left_nothing_is_written(tmp_path: Path) -> None:
    config = make_config(tmp_path)
    told = refused("questions", "--config", config, "--set", "questions.filter.excerpt=1", code=7)
    assert "no question remains" in told and "20 off the question (cosine below 1)" in told
    assert not (tmp_path / "questions.jsonl").exists()


def test_a_key_goes_to_no_new_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    config = make_config(tmp_path, llm={"api_base": "http://asker.example/v1"})
    asked = ("questions", "--config", config, "--asker", "litellm:openai/gpt-5-mini")
    assert "OPENAI_API_KEY would be sent to http://asker.example/v1" in refused(*asked, code=3)
    call(*asked, "--dry-run")


def test_a_program_makes_questions_while_an_event_loop_runs(tmp_path: Path) -> None:
    from raggs.app.questions import questions

    async def notebook() -> int:
        return questions(make_config(tmp_path)).kept

    assert asyncio.run(notebook()) == len(read_questions(tmp_path / "questions.jsonl")) > 0


def test_a_program_approves_a_new_address_while_an_event_loop_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from raggs.app.questions import questions
    from raggs.base.errors import PrerequisiteError

    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    asker = {"type": "litellm", "model": "openai/gpt-5-mini"}
    config = make_config(tmp_path, llm={"api_base": "http://asker.example/v1"}, questions={"ask": {"asker": asker}})
    shown: list[str] = []

    async def notebook() -> None:
        questions(config, approve=lambda new: bool(shown.extend(each.host for each in new)))

    with pytest.raises(PrerequisiteError, match="OPENAI_API_KEY would be sent"):
        asyncio.run(notebook())
    assert shown == ["asker.example"]


def test_the_dry_run_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_documents(tmp_path / "docs")
    (tmp_path / "tmp").mkdir()
    asked = ("questions", "docs", "--dry-run", "--json", "--asker", "litellm:openai/gpt-5-mini", "--n", 12)
    done = process(
        *asked, cwd=tmp_path, env=environment(TMPDIR=str(tmp_path / "tmp"), PYTHONPATH=os.pathsep.join(sys.path))
    )
    assert json.loads(done.stdout)["estimates"][0]["calls"] == 12, done.stderr
    assert sorted(path.name for path in tmp_path.rglob("*") if path.suffix != ".md") == ["deep", "docs", "tmp"]
