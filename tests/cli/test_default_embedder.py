"""The default embedder: wordllama where its package is installed, otherwise lsa, and never another one in silence."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.cli import invoke
from support.project import Project, make_project
from support.sweeping import make_sweep

from raggs.parts import embedders
from raggs.parts.embedders import wordllama

LSA = {"embedder": {"type": "lsa", "dims": 16}}


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without the package wordllama."""
    for module in (embedders, wordllama):
        monkeypatch.setattr(module, "installed", lambda name: None if name == "wordllama" else "1.0")


def run(project: Project, *more: str, code: int = 0) -> str:
    result = invoke("run", "--config", str(project.config), *more)
    assert result.exit_code == code, result.output
    return " ".join((result.stdout + result.stderr).split())


def test_with_the_package_it_is_wordllama_and_the_run_says_why(tmp_path: Path) -> None:
    project = make_project(tmp_path / "demo")
    assert "embedder wordllama: the default, because its package is installed" in run(project)
    assert project.manifest()["stages"]["embed"]["params"]["embedder"]["type"] == "wordllama"
    assert "embedder wordllama" not in run(project), "nothing is embedded again"


def test_without_the_package_it_is_lsa_and_the_run_says_why(tmp_path: Path, without: None) -> None:
    project = make_project(tmp_path / "demo")
    assert "embedder lsa, fitted on the corpus: the default, because the package wordllama is not" in run(project)
    lock = project.manifest()["stages"]["embed"]
    assert lock["params"]["embedder"]["type"] == "lsa" and lock["components"]["embedder"]["fitted on"]
    assert "Nothing to do" in run(project)
    assert invoke("audit", str(project.run)).exit_code == 0


def test_an_embedder_that_is_set_is_no_default(tmp_path: Path) -> None:
    project = make_project(tmp_path / "demo", embed={"embedder": {"type": "wordllama"}})
    assert "the default" not in run(project)


def test_a_run_is_not_continued_with_another_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(tmp_path / "demo")
    run(project)
    before = project.artifacts()
    for module in (embedders, wordllama):
        monkeypatch.setattr(module, "installed", lambda name: None)
    said = run(project, code=3)
    assert "made with the default embedder wordllama, but the default is lsa in this environment" in said
    assert "install wordllama; to use lsa, set embed.embedder to {type: lsa}" in said
    assert run(project, "--dry-run", code=3)
    assert project.artifacts() == before
    assert "config.embedder.type changed (wordllama -> lsa)" in run(project, "--set", "embed.embedder.type=lsa")
    monkeypatch.undo()
    said = run(project, code=3)
    assert "made with the default embedder lsa, but the default is wordllama in this environment" in said
    assert "Nothing to do" in run(project, "--set", "embed.embedder.type=lsa")


def test_wordllama_without_its_package_is_an_error_with_a_remedy(tmp_path: Path, without: None) -> None:
    project = make_project(tmp_path / "demo", embed={"embedder": {"type": "wordllama"}})
    said = run(project, code=3)
    assert "needs the package wordllama, which is not installed" in said and "needs no package: {type: lsa}" in said


def test_lsa_runs_again_when_the_corpus_changes_and_gives_the_same_bytes_elsewhere(tmp_path: Path) -> None:
    first, second = (make_project(tmp_path / name, embed=LSA) for name in ("one", "two"))
    run(first)
    run(second)
    assert first.artifacts() == second.artifacts()
    corpus = first.folder / "corpus.jsonl"
    corpus.write_text(corpus.read_text() + json.dumps({"_id": "new", "title": "", "text": "An amber heron."}) + "\n")
    assert "fitted on changed" in run(first)
    assert invoke("audit", str(first.run)).exit_code == 0
    embeds = (first.run / "embed.jsonl").read_bytes(), (second.run / "embed.jsonl").read_bytes()
    assert embeds[0] != embeds[1]


def test_sweeps_diagnoses_and_chunk_comparisons_take_lsa(tmp_path: Path, without: None) -> None:
    sweep = make_sweep(tmp_path / "sweep", axes={"mode": ["dense", "lexical"]})
    result = invoke("sweep", str(sweep.config))
    assert result.exit_code == 0 and "dense+lsa" in result.stdout, result.output
    for words in (["names", "--runs", "2", "--questions", "4"], ["noise", "--language", "en", "--draws", "1"]):
        result = invoke("diagnose", *words, "--out", str(tmp_path / "d"))
        assert result.exit_code == 0 and "lsa" in result.stdout, result.output
    docs = tmp_path / "docs"
    docs.mkdir()
    text = "Cats sleep all day long. They purr.\n\nDogs bark at night. They run.\n\nBirds sing in spring."
    (docs / "pets.md").write_text(text)
    (tmp_path / "q.jsonl").write_text(
        json.dumps({"_id": "a", "text": "When do dogs bark?", "references": [{"text": "Dogs bark at night."}]}) + "\n"
    )
    chunkers = "paragraphs:20,semantic,cluster:20:piece=10"
    words = ["--corpus", str(docs), "--questions", str(tmp_path / "q.jsonl"), "--chunkers", chunkers]
    result = invoke("chunks", "eval", *words, "--out", str(tmp_path / "c"))
    assert result.exit_code == 0, result.output
    assert all(name in result.stdout for name in ("paragraphs:20", "semantic", "cluster:20")), result.output
    again = invoke("chunks", "eval", *words, "--out", str(tmp_path / "c"))
    assert _without_times(again.stdout) == _without_times(result.stdout)


def _without_times(text: str) -> str:
    return re.sub(r"[\d.]+ m?s\b", "", text)


def test_doctor_says_which_embedder_is_the_default(without: None) -> None:
    result = invoke("doctor")
    assert "the default, because the package wordllama is not installed" in " ".join(result.stdout.split())
