"""The plugin as a project uses it: its own tests, run by pytest, with the fixture `golden`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from support.scoring import BETTER, QRELS, RUN, raggs_eval, write

import raggs.testing.fixture  # noqa: F401 - as `made` says
from raggs.app.report import ReportRequest, write_report_page

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parents[2]
INSTALLED = any(each.name == "raggs" for each in entry_points(group="pytest11"))
PLUGIN = () if INSTALLED else ("-p", "raggs.testing.plugin")
QUERIES = "".join(f'{{"_id": "q{number}", "text": "what is <b>{number}</b>?"}}\n' for number in (1, 2, 3))
LISTS = {
    f"what is <b>{number}</b>?": [line.split()[2] for line in RUN.splitlines() if line.startswith(f"q{number} ")]
    for number in (1, 2, 3)
}
HEAD = f"LISTS = {LISTS!r}\n\n\ndef mine(question, k):\n    return LISTS[question][:k]\n\n\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A golden set in the layout of BEIR, and three earlier results, one of another set.

    What this loads stays loaded: a run of pytest inside of another forgets what it loads itself, and numpy does not
    load twice.
    """
    folder = tmp_path_factory.mktemp("made")
    (folder / "set" / "qrels").mkdir(parents=True)
    table = QRELS.replace(" 0 ", "\t").replace(" ", "\t")
    write(folder / "set", queries__jsonl=QUERIES)
    (folder / "set" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + table)
    write(folder, run=RUN, better=BETTER, other=QRELS.replace("doc-1 2", "doc-1 3"))
    for out, labels, run in (("same", "set", "run"), ("before", "set", "better"), ("strange", "other", "run")):
        done = raggs_eval("-g", folder / labels, "-r", folder / run, "-m", "mrr,ndcg@10", "--out", folder / out)
        assert done.exit_code == 0, done.output
    write_report_page(ReportRequest(folder / "set", (str(folder / "run"),), out=folder / "warm.html"))
    return folder


@pytest.fixture
def project(made, pytester):
    """A project with these files."""
    shutil.copytree(made, pytester.path, dirs_exist_ok=True)
    pytester.makeini("[pytest]\nraggs_golden = set\naddopts = --strict-markers\n")
    return pytester


def ran(project, body: str, *options: str):
    project.makepyfile(HEAD + body)
    return project.runpytest_inprocess(*PLUGIN, *options)


def test_what_holds_passes_and_writes_nothing(project):
    body = """
        def test_it(golden):
            found = golden.check(mine, "mrr", "ndcg@10", at_least={"mrr": .5}, not_worse_than="same/eval.json")
            assert found.report.per_query["mine"]["mrr"] == {"q1": .5, "q2": 1.0, "q3": .5}
            assert not golden.out.exists()
    """
    ran(project, body.replace("\n        ", "\n")).assert_outcomes(passed=1)
    ran(project, "def test_it(golden):\n    golden.check(mine, 'mrr')\n", "--raggs-out", "out").assert_outcomes(
        passed=1
    )
    assert [path.name for path in (project.path / "out").glob("*/eval.json")] == ["eval.json"]


def test_what_unjudged_passages_could_reverse_may_pass_with_a_warning(project):
    body = """
def test_it(golden):
    golden.check(mine, "mrr", "ndcg@10", not_worse_than="before/eval.json", if_inconclusive="pass")
"""
    found = ran(project, body, "-W", "default")
    found.assert_outcomes(passed=1, warnings=3)
    found.stdout.fnmatch_lines(["*inconclusive: 47% of the top 10 of mine*"])


def test_it_works_without_pytests_cache(project):
    body = "def test_it(golden):\n    golden.check(mine, 'mrr')\n    assert golden.out\n"
    ran(project, body, "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_a_check_never_writes_over_what_it_is_held_against(project):
    name = "test_a_check_never_writes_over_what_it_is_held_against.py-test_it"
    body = f"""
def test_it(golden):
    golden.check(mine, "mrr", at_least=.1, not_worse_than="out/{name}/eval.json")
"""
    (project.path / "out").mkdir()
    shutil.copytree(project.path / "before", project.path / "out" / name)
    before = (project.path / "out" / name / "eval.json").read_bytes()
    found = ran(project, body, "--raggs-out", "out")
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(["*is the earlier result of the comparison*"])
    assert (project.path / "out" / name / "eval.json").read_bytes() == before


def test_what_fails_shows_the_scores_and_the_worst_questions_and_where_the_report_lies(project):
    body = """
def test_it(golden):
    golden.check(mine, "mrr", "ndcg@10", at_least=.7, not_worse_than="before/eval.json", max_drop=.05)
"""
    found = ran(project, body, "--raggs-out", "out")
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(
        [
            "*mrr of mine is 0.6667, below 0.7*",
            "*mrr of mine went from 1.0000 to 0.6667 on 3 queries; inconclusive: 47% of the top 10 of mine and *",
            "*measure * mine*",
            "*mrr * 0.6667*",
            "*worst questions by mrr:*",
            "*q1 * 0.5000 * was 1.0000 * what is <b>1</b>?*",
            "*q2 * 1.0000 * was 1.0000*",
            "*report: */report.html*",
        ]
    )
    page = next((project.path / "out").glob("*/report.html"))
    assert "what is <b>1" not in page.read_text(encoding="utf-8")
    assert "doc-7" in page.read_text(encoding="utf-8")  # what the function returned
    assert (page.parent / "eval.md").is_file()


def test_a_result_of_another_set_is_refused(project):
    found = ran(project, "def test_it(golden):\n    golden.check(mine, 'mrr', not_worse_than='strange/eval.json')\n")
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(["*was measured on other judgments*raggs diff OLD NEW*", "*report: *.pytest_cache*"])


def test_a_set_is_named_by_marker_or_option_or_not_at_all(project):
    body = """
import pytest


def test_plain(golden):
    assert golden.path.name == {plain!r}


@pytest.mark.raggs_golden("other")
def test_marked(golden):
    assert golden.path.name == "other"
"""
    ran(project, body.format(plain="set")).assert_outcomes(passed=2)
    ran(project, body.format(plain="mine.txt"), "--raggs-golden", "mine.txt").assert_outcomes(passed=2)
    project.makeini("[pytest]")
    found = ran(project, "def test_it(golden):\n    golden.check(mine)\n")
    found.stdout.fnmatch_lines(["*UsageError: no golden set is configured*--raggs-golden PATH*"])


def test_lists_and_limits_of_measures_where_lower_is_better(project):
    body = """
import pytest

from raggs.base.errors import UsageError


def test_it(golden):
    golden.check({"q1": ["doc-3"], "q2": ["doc-2"], "q3": ["doc-5"]}, "harm@10", at_most=0.5)
    golden.check({"a": mine, "b": mine}, "mrr", at_least=.5)
    with pytest.raises(UsageError, match="lower is better"):
        golden.check(mine, "harm@10", at_least=0.5)
"""
    ran(project, body).assert_outcomes(passed=1)


def test_a_start_of_pytest_loads_no_more_of_raggs_than_the_plugin():
    code = (
        "import sys, pytest\nbefore = set(sys.modules)\nimport raggs.testing.plugin\n"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = "['raggs', 'raggs.base', 'raggs.testing', 'raggs.testing.plugin']"
    assert done.stdout.strip() == loaded
