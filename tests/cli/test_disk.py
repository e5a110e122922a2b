"""Disks that are full, folders that cannot be written, files that change while they are read."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from support.cli import invoke
from support.project import environment, make_project, raggs
from support.scoring import QRELS, RUN, write


def call(*arguments: object) -> tuple[int, str]:
    result = invoke(*arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stderr.strip()


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("nth", [1, 5, 9, 14])
def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int) -> None:
    calm = make_project(tmp_path / "calm", queries=2, corpus=12)
    assert call("run", "--config", calm.config, "--quiet")[0] == 0

    project = make_project(tmp_path / "own", queries=2, corpus=12)
    sync, count = os.fsync, 0

    def full(handle: int) -> None:
        nonlocal count
        count += 1
        if count == nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        code, sentence = call("run", "--config", project.config, "--quiet")
    assert code == 6
    assert "No space left on device" in sentence
    assert "free some space" in sentence
    assert len(sentence.splitlines()) == 1
    assert call("run", "--config", project.config, "--quiet")[0] == 0
    assert project.artifacts() == calm.artifacts()


def test_a_workspace_that_cannot_be_made(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=2, corpus=12, workspace="qrels.txt/runs")
    code, sentence = call("run", "--config", project.config, "--quiet")
    assert code in (3, 6)
    assert "qrels.txt" in sentence
    assert "choose another workspace" in sentence


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    write(tmp_path, qrels=QRELS, run=RUN)
    code, sentence = call(
        "eval", "--golden", tmp_path / "qrels", "--run", tmp_path / "run", "--out", tmp_path / "run" / "report"
    )
    assert code == 6
    assert "run/report: cannot be written" in sentence
    assert "choose another --out" in sentence


def test_a_corpus_that_grows_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from raggs.parts.corpora.jsonl import JsonlCorpus

    project = make_project(tmp_path, queries=2, corpus=12)
    read = JsonlCorpus.passages

    def growing(self):
        yield from read(self)
        with (project.folder / "corpus.jsonl").open("a") as file:
            file.write('{"_id": "late", "text": "too late"}\n')

    with monkeypatch.context() as patch:
        patch.setattr(JsonlCorpus, "passages", growing)
        code, sentence = call("run", "--config", project.config, "--quiet")
    assert code == 5
    assert "changed while it was read" in sentence
    assert call("run", "--config", project.config, "--quiet")[0] == 0


def test_passages_without_text_are_left_out_and_named(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=2, corpus=12)
    with (project.folder / "corpus.jsonl").open("a") as file:
        file.write('{"_id": "void", "title": "", "text": " "}\n')
    code, sentences = call("run", "--config", project.config)
    assert code == 0
    assert "1 passage without text skipped: void (line 13)" in sentences


def test_a_terminal_that_knows_only_ascii_still_sees_the_results(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=7, corpus=12)
    done = raggs("run", "--config", project.config, env=environment(PYTHONIOENCODING="ascii"))
    assert done.returncode == 0, done.stderr
    assert "next: raggs eval" in done.stdout
