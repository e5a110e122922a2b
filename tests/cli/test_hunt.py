"""Attacks that once ended in a traceback, or could: each is one sentence, or does no harm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import invoke
from support.project import environment, make_project

from raggs.base.errors import ConfigError
from raggs.config.load import load_config

FIRST = b'{"_id": "p000", "text": "amber brook"}\n'
CORPORA = {
    "utf-16": '{"_id": "a", "text": "x"}'.encode("utf-16"),
    "an id of a megabyte": FIRST + json.dumps({"_id": "a" * 1_000_000, "text": "x"}).encode(),
    "a span beyond 64 bits": FIRST
    + b'{"_id":"a","text":"x","span":{"source":"s","start":1,"end":99999999999999999999}}',
    "half of a pair in a key": FIRST + b'{"_id": "a", "text": "x", "\\udc00": 1}',
    "an id of a number": FIRST + b'{"_id": 99999999999999999999, "text": "x"}',
    "a title of a list": FIRST + b'{"_id": "a", "text": "x", "title": ["a"]}',
}


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("corpus.path", "~nosuchuser/x", "~nosuchuser is not the home folder of a user of this machine"),
        ("workspace", '"a\\0b"', "a path must not contain a NUL character"),
        ("corpus.path", '"a\\0b"', "a path must not contain a NUL character"),
        ("workspace", "~nosuchuser", "~nosuchuser is not the home folder of a user of this machine"),
    ],
)
def test_a_path_that_cannot_be(key: str, text: str, said: str, tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=3)
    with pytest.raises(ConfigError, match=f"--set {key}: {key}: {said}"):
        load_config(project.config, [f"{key}={text}"], {})


@pytest.mark.parametrize("attack", CORPORA)
def test_a_corpus(attack: str, tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=3)
    (tmp_path / "corpus.jsonl").write_bytes(CORPORA[attack])
    result = invoke("validate", "--config", project.config)
    assert result.exit_code in (0, 5), result.stderr
    assert "bug in raggs" not in result.stderr
    assert len(result.stderr) < 1000


def test_a_dotenv_that_is_no_text(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=3)
    (tmp_path / ".env").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"\.env: not UTF-8"):
        load_config(project.config)


def test_more_queries_to_show_than_there_are_numbers(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=5)
    result = invoke("run", "--config", project.config, "--show", "9" * 30)
    assert result.exit_code == 0, result.stderr


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&-", "<&- >&- 2>&-"])
def test_streams_that_a_shell_has_closed_are_no_fault(closed: str, tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=5)
    command = f"{sys.executable} -m raggs run --config {project.config} --to merge {closed}"
    found = subprocess.run(["bash", "-c", command], env=environment(), capture_output=True, timeout=120, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert (project.run / "merge.jsonl").is_file()


@pytest.mark.parametrize("option", ["--lock", "--verify", "--sign"])
def test_a_pipe_in_place_of_a_lock_or_a_key_is_refused(option: str, tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=5)
    assert invoke("run", "--config", project.config, "--quiet").exit_code == 0
    os.mkfifo(tmp_path / "pipe")
    found = invoke("audit", project.run, option, tmp_path / "pipe")
    assert (found.exit_code, "is a pipe, not a file" in found.output) == (5, True), found.output


def test_a_pipe_in_place_of_a_manifest_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "manifest.json")
    for command in ("status", "audit", "cost"):
        found = invoke(command, tmp_path)
        assert found.exit_code in (4, 5) and "Traceback" not in found.output, found.output


@pytest.mark.parametrize(("format_", "code"), [("trec", 0), ("jsonl", 0)])
def test_a_ranking_that_is_gone_is_no_empty_ranking(format_: str, code: int, tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=5)
    assert invoke("run", "--config", project.config, "--quiet").exit_code == 0
    (project.run / "rank.jsonl").unlink()
    found = invoke("export", project.run, "--format", format_, "--out", tmp_path / "out")
    assert found.exit_code == code
    assert "missing, although the rank stage has run" in found.output


def test_a_pipe_in_place_of_the_ledger_is_refused(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=5)
    assert invoke("run", "--config", project.config, "--quiet").exit_code == 0
    (project.run / "llm.ledger.jsonl").unlink(missing_ok=True)
    os.mkfifo(project.run / "llm.ledger.jsonl")
    for command in ("status", "cost", "audit"):
        found = invoke(command, project.run)
        assert found.exit_code == 5, found.output
