"""`raggs diagnose` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from support.cli import invoke
from support.diagnosing import NAME, TARGET, Tiny
from support.llm_server import LLMServer

from raggs.base.errors import DataError
from raggs.diagnosis import REGISTRY


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The tiny kind alone, as a package would add it, in a folder of its own."""
    monkeypatch.setattr(REGISTRY, "_entries", {NAME: TARGET})
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> Result:
    return invoke("diagnose", *words)


def test_without_a_kind_all_are_listed_with_what_they_need() -> None:
    shown = run().stdout
    assert "tiny  ready  seconds   free  What do vectors add up to?" in shown
    assert "needs embedder; optional: golden set" in shown
    assert json.loads(run("--json").stdout)["tiny"]["ready"] is True


def test_a_kind_that_cannot_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tiny, "NEEDS", ("reranker",))
    shown = run().stdout
    assert "tiny  lacks" in shown
    assert "this diagnosis needs a reranker — pass a reranker, e.g. --reranker" in shown
    assert "not run   this diagnosis needs a reranker" in run("all").stdout


def test_a_result_is_shown_written_and_then_read(tmp_path: Path) -> None:
    first = run(NAME, "--out", "d")
    assert first.exit_code == 0, first.output
    assert "Vectors add up." in first.stdout
    assert "a dog" in first.stdout
    assert "d/tiny.md" in first.stdout
    assert "unchanged: d/tiny.json" in run(NAME, "--out", "d", "--details").stdout
    assert run(NAME, "--out", "d", "--quiet").stdout == ""
    assert json.loads(run(NAME, "--out", "d", "--json").stdout)["found"]["verdict"] == "Vectors add up."


def test_a_dry_run_writes_nothing_and_says_what_would_be_done(tmp_path: Path) -> None:
    assert run(NAME, "--out", "d", "--dry-run").stdout.startswith("4 texts embedded\n")
    assert run("all", "--out", "d", "--dry-run").stdout == "would run: tiny\n"
    assert not (tmp_path / "d").exists()


def test_all_runs_what_is_free_and_leaves_out_what_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: LLMServer
) -> None:
    assert "Vectors add up." in run("all", "--out", "d").stdout
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    paid = run("all", "--out", "d", "--embedder", "litellm:openai/text-embedding-3-small")
    assert (
        "tiny  not run   calls paid models (openai/text-embedding-3-small); to run it: raggs diagnose tiny"
        in paid.stdout
    )
    assert not server.requests
    monkeypatch.setattr(Tiny, "TIME", "minutes")
    assert "tiny  not run   takes minutes; to run it: raggs diagnose tiny" in run("all", "--quick", "--out", "e").stdout


def test_a_budget_that_is_used_up_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch, server: LLMServer) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    words = [NAME, "--out", "d", "--embedder", "litellm:openai/text-embedding-3-small:dims=8", "--max-usd"]
    found = run(*words, "0")
    assert found.exit_code == 7
    assert "to continue, run the same command with --max-usd 0.01" in found.stderr
    again = run(*words, "0.01")
    assert again.exit_code == 0, again.output


def test_a_kind_that_fails_stops_no_other_and_ends_with_7(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Tiny, bench: object) -> None:
        raise DataError("is wrong", remedy="mend it")

    monkeypatch.setattr(Tiny, "measure", fails)
    found = run("all", "--out", "d")
    assert found.exit_code == 7
    assert "raggs: tiny: is wrong — mend it" in found.stderr
    assert found.stdout.startswith("0 diagnoses ran; 1 stopped by an error\n")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["tinny"], 2, "did you mean 'tiny'?"),
        ([NAME, "--config", "none.yaml"], 4, "none.yaml"),
        ([NAME, "--golden", "none"], 4, "none: no such file"),
        ([NAME, "--embedder", "onnx:none"], 4, "none"),
        ([NAME, "--embedder", "wordllama,wordllama"], 2, "twice"),
        ([NAME, "--reranker", "bert"], 2, "unknown reranker"),
        ([NAME, "--set", "budget.max_usd=1"], 2, "--set changes a configuration, and none is given"),
    ],
)
def test_what_is_wrong_is_a_sentence(words: list[str], code: int, said: str) -> None:
    found = run(*words)
    assert (found.exit_code, len(found.stderr.strip().splitlines())) == (code, 1), found.output
    assert said in found.stderr


def test_the_schema_has_the_findings_of_every_kind() -> None:
    schema = json.loads(invoke("schema", "diagnose").stdout)
    assert schema["properties"]["found"] == {"oneOf": [{"$ref": "#/$defs/TinyFound"}]}
    assert {"TinyFound", "Row"} <= set(schema["$defs"])
