"""What CI servers are given: the page's workflow as it stands, summaries, annotations and JUnit XML."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import Result
from support.cli import invoke
from support.project import make_project
from support.scoring import BETTER, QRELS, RUN, raggs_eval, write
from support.sweeping import make_sweep

from raggs import load_config
from raggs import run as run_config
from raggs.cli import plain_text

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "start" / "ci-gate.md"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    write(tmp_path, qrels=QRELS, a=RUN, b=BETTER)
    return tmp_path


def call(command: str) -> Result:
    return invoke(*shlex.split(command)[1:])


def test_the_commands_of_the_page_and_its_workflow_do_what_it_says(here: Path) -> None:
    make_project(here, queries=4, corpus=20, retrieve={"retrievers": [{"type": "bm25", "k": 15}]})
    run_config(load_config(here / "raggs.yaml"))
    once, last = re.findall(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for line in once.splitlines():
        assert call(line).exit_code == 0, line
    shutil.rmtree(here / "runs")  # a pull request is checked out without it
    (block, *_) = re.findall(r"```\n(raggs run.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    steps = block.replace("\\\n", " ").splitlines()
    assert [step.split()[:2] for step in steps] == [["raggs", "run"], ["raggs", "eval"]]
    for step in steps:
        done = call(step)
        assert done.exit_code == 0, (step, done.output)
    cases = ElementTree.parse(here / "eval" / "junit.xml").getroot()
    assert {suite.attrib["name"] for suite in cases} == {"gates", "bm25"}
    assert cases.attrib["failures"] == "0"
    summary = (here / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith("## Gates\n\nall met\n\n- ✅ ndcg@10 of bm25 is ")
    assert "# Evaluation" in summary
    assert call(last.strip()).exit_code == 4  # the run of the page is one that has judged
    run_config(load_config(here / "raggs.yaml"))
    assert call(last.strip()).exit_code == 0
    assert "# Golden sets: OLD and NEW" in (here / "summary.md").read_text(encoding="utf-8")
    (test,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    rows = [line.split() for line in (here / "golden" / "runs" / "bm25.trec").read_text("utf-8").splitlines()]
    texts = map(json.loads, (here / "golden" / "queries.jsonl").read_text("utf-8").splitlines())
    lists = {each["text"]: [row[2] for row in rows if row[0] == each["_id"]] for each in texts}
    search = f"def my_search(query, k):\n    return {lists!r}[query][:k]\n"
    (here / "test_search.py").write_text(f"{search}\n\n{test}", encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--raggs-golden", "golden", "test_search.py"],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_gates_that_fail_are_in_the_summary_the_xml_and_annotations(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raggs_eval("-g", "qrels", "-r", "b", "-m", "mrr", "-o", "before")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    asked = ("-g", "qrels", "-r", "a", "-m", "mrr,map", "--fail-under", "mrr=0.7", "--fail-under", "map=0.1")
    result = raggs_eval(
        *asked, "--fail-on-regression", "before/eval.json", "--summary", "--junit", "deep/j.xml", "--json"
    )
    assert result.exit_code == 7
    json.loads(result.stdout)  # annotations stand aside
    annotations = [line for line in result.stderr.splitlines() if line.startswith("::")]
    assert annotations[0].startswith("::error file=qrels,title=raggs::mrr of a is 0.6667, below 0.7")
    assert "mrr of a went from 1.0000 to 0.6667 on 3 queries; inconclusive: 47%25 of the top 10 of a" in annotations[1]
    summary = (here / "summary.md").read_text()
    assert summary.startswith("## Gates\n\n2 of 3 not met, 2 inconclusive\n\n- ❔ mrr of a is 0.6667, below 0.7; ")
    assert "\n- ✅ map of a is" in summary
    assert "\n- ❔ mrr of a went from 1.0000 to 0.6667 on 3 queries; inconclusive: " in summary
    root = ElementTree.parse(here / "deep" / "j.xml").getroot()
    assert (root.attrib["tests"], root.attrib["failures"]) == ("6", "2")  # three gates, three scores
    assert len(root.findall("./testsuite[@name='gates']/testcase/failure")) == 2


def test_a_gate_that_cannot_look_is_written_before_it_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raggs_eval("-g", "qrels", "-r", "a", "-m", "mrr", "-o", "before")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    write(here, other=QRELS.replace("doc-9 4", "doc-9 5"))
    result = raggs_eval(
        "-g", "other", "-r", "a", "-m", "mrr", "--fail-on-regression", "before/eval.json", "--junit", "j.xml"
    )
    assert result.exit_code == 5
    assert "::error file=before/eval.json,title=raggs::was measured on other judgments" in result.stderr
    failure = ElementTree.parse(here / "j.xml").getroot().find("./testsuite[@name='gates']/testcase/failure")
    assert failure is not None and "other judgments" in failure.attrib["message"]


def test_names_cannot_make_commands_of_github_s_runner(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "x\n::set-env name=A::1,b:c%"
    (here / name).write_text("q1 0 doc-3 nan\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = raggs_eval("-g", name, "-r", "a")
    (annotation,) = [line for line in result.stderr.splitlines() if line.startswith("::error")]
    assert "file=x%0A%3A%3Aset-env name=A%3A%3A1%2Cb%3Ac%25,line=1,title=raggs::" in annotation
    monkeypatch.setenv("GITHUB_ACTIONS", "false")
    assert "::error" not in raggs_eval("-g", "none", "-r", "a").stderr


def test_a_summary_has_a_limit_and_a_place(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_text, "MAX_SUMMARY_BYTES", 250)
    assert raggs_eval("-g", "qrels", "-r", "a", "-m", "mrr", "--summary").exit_code == 0
    text = (here / "summary.md").read_text()
    assert len(text.encode()) <= 250
    assert text.endswith("truncated: the summary has reached its size limit\n")
    assert raggs_eval("-g", "qrels", "-r", "a", "-m", "mrr", "--summary").exit_code == 0
    assert len((here / "summary.md").read_bytes()) <= 250
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here))
    assert "GITHUB_STEP_SUMMARY" in raggs_eval("-g", "qrels", "-r", "a", "--summary").stderr
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    refused = raggs_eval("-g", "qrels", "-r", "a", "--summary")
    assert (refused.exit_code, "set the variable, or omit --summary" in refused.stderr) == (2, True)


def test_a_sweep_is_summarised(here: Path) -> None:
    project = make_sweep(here / "sweep", axes={"mode": ["lexical"], "k": [10]})
    assert call(f"raggs sweep --config {project.config} --quiet --summary").exit_code == 0
    assert (here / "summary.md").read_text(encoding="utf-8").startswith("# ")
