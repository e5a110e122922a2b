"""golden.lock of a set in files: written, held against the set in other formats, and told to CI where it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.cli import invoke

LABELS = "q1 0 d1 5\nq1 0 d2 1\nq2 0 d3 4\n"
RUN = "q1 Q0 d1 1 2.0 x\nq2 Q0 d2 1 2.0 x\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.txt").write_text(LABELS)
    (tmp_path / "a.trec").write_text(RUN)
    assert call("audit", "qrels.txt", "--write-lock", "golden.lock") == (
        0,
        "Audit passed: 3 judgments in qrels.txt can be read.",
    )
    return tmp_path


def call(*words: str) -> tuple[int, str]:
    done = invoke(*words)
    return done.exit_code, done.output.splitlines()[0] if done.output else ""


def test_the_lock_means_the_judgments_in_any_format_and_no_others(folder: Path) -> None:
    lock = json.loads((folder / "golden.lock").read_text())
    assert (lock["name"], lock["manifest"], lock["files"], lock["queries"]) == ("qrels.txt", "", {}, 2)
    rows = "".join(f"{qid}\t{doc}\t{grade}\n" for qid, _, doc, grade in map(str.split, LABELS.splitlines()))
    (folder / "same.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    assert call("audit", "same.tsv", "--lock", "golden.lock")[0] == 0
    (folder / "other.txt").write_text(LABELS.replace("d3 4", "d3 5"))
    other = invoke("audit", "other.txt", "--lock", "golden.lock")
    assert other.exit_code == 5 and "golden.lock:" in other.stdout and "digest" in other.stdout
    assert call("eval", "-g", "same.tsv", "-r", "a.trec", "--lock", "golden.lock")[0] == 0


def test_files_are_not_signed(folder: Path) -> None:
    assert call("audit", "qrels.txt", "--sign", "key")[0] == call("audit", "qrels.txt", "--verify", "key.pub")[0] == 2


def test_a_lock_that_refuses_is_a_case_of_junit_and_a_line_of_the_summary(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    (folder / "other.txt").write_text(LABELS.replace("d3 4", "d3 5"))
    told = ("--lock", "golden.lock", "--junit", "out/junit.xml", "--summary")
    assert call("eval", "-g", "other.txt", "-r", "a.trec", *told)[0] == 5
    (case,) = ElementTree.parse(folder / "out" / "junit.xml").getroot().iter("testcase")
    assert "golden.lock" in case.get("name", "")
    failure = case.find("failure")
    assert failure is not None and "is the lock of another golden set" in failure.get("message", "")
    summary = (folder / "summary.md").read_text()
    assert "no system was scored, because of an error" in summary and "is the lock of another golden set" in summary
    assert call("eval", "-g", "qrels.txt", "-r", "a.trec", *told)[0] == 0
    cases = list(ElementTree.parse(folder / "out" / "junit.xml").getroot().iter("testcase"))
    assert cases and not any(case.find("failure") is not None for case in cases)
