"""Default outputs have at most 25 lines of 80 columns and 200 words, with the answer first; --details adds the rest."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path

import pytest
from support.cli import call, invoke
from support.project import Project, make_project
from support.reviewing import speak

MAX_LINES, WIDTH, MAX_WORDS = 25, 80, 200


def assert_short(text: str) -> None:
    """Assert that a text fits 25 lines of 80 columns, with long lines wrapped, and 200 words."""
    lines = sum(-(-len(line.rstrip()) // WIDTH) or 1 for line in text.rstrip().splitlines())
    assert lines <= MAX_LINES, text
    assert len(text.split()) <= MAX_WORDS, text


def first(text: str) -> str:
    return text.splitlines()[0]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("done"), queries=12)
    with chdir(project.folder):
        said = call("run").output
    assert_short(said)
    assert "Golden set ready: 12 queries, " in said and said.count("next: ") == 1
    return project


@pytest.fixture
def labelled(done: Project, tmp_path: Path) -> Project:
    project = done.copied(tmp_path / "labelled")
    speak(project.run, project.folder / "reviews", lambda _, grade: grade, reads=lambda each: each.rank <= 5)
    return project


def test_a_run_with_nothing_to_do_says_so(done: Project) -> None:
    said = call("run", "--config", done.config).stdout
    assert_short(said)
    assert first(said).startswith("Nothing to do: ")


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("status", "RUN"), "Golden set complete: 12 queries, "),
        (("cost", "RUN"), "No language model was called: $0.00."),
        (("audit", "RUN"), "Audit passed: "),
        (("why", "RUN", "rank"), "rank is up to date"),
        (("why", "RUN", "--query", "q01"), "Order of q01 after "),
        (("show", "RUN"), "12 queries"),
        (("show", "RUN", "q01"), "q01: "),
        (("show", "RUN", "q01", "--system", "bm25"), "q01: "),
        (("review", "status", "RUN"), "0 of "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_the_answer_comes_first_and_details_say_more(done: Project, words: tuple[str, ...], answer: str) -> None:
    typed = [str(done.run) if word == "RUN" else word for word in words]
    said = call(*typed).stdout
    assert_short(said)
    assert first(said).startswith(answer)
    assert len(call(*typed, "--details").stdout) >= len(said) - len(said.splitlines()[-1]) - 1


def test_a_judge_that_agrees_with_labels_passes_its_checks(labelled: Project) -> None:
    said = call("judge", "check", labelled.run).stdout
    assert_short(said)
    assert first(said).startswith("Judge agrees with human labels: kappa 1.00")
    assert [line.split()[0] for line in said.splitlines() if line.startswith("  ")] == ["pass", "pass"]
    assert "Grades: judge in rows" in call("judge", "check", labelled.run, "--details").stdout
    said = call("review", "status", labelled.run).stdout
    assert_short(said)
    assert "have a human label (" in first(said) and f"next: raggs judge check {labelled.run}" in said


def test_a_judge_that_disagrees_fails_its_checks_and_the_next_command_inspects_it(
    done: Project, tmp_path: Path
) -> None:
    project = done.copied(tmp_path / "own")
    speak(project.run, project.folder / "reviews", lambda _, grade: 6 - grade, reads=lambda each: each.rank <= 9)
    said = call("judge", "check", project.run).stdout
    assert_short(said)
    assert first(said).startswith("Judge disagrees with human labels: kappa -")
    assert [line.split()[0] for line in said.splitlines() if line.startswith("  ")] == ["fail", "fail"]
    project.change(judge={**project.settings()["judge"], "gate": {"kappa": 0.5}})
    for words in (("run", "--config", project.config), ("status", project.run)):
        held = invoke(*words)
        assert_short(held.output)
        assert first(held.stdout).startswith("The judge fails its check: kappa with human labels is -")
        assert f"next: raggs judge check {project.run}" in held.stdout and "raggs eval" not in held.stdout


def test_a_diagnosis_of_a_run_ends_with_the_report(done: Project) -> None:
    said = invoke("diagnose", "retrieval", "-g", str(done.run)).stdout
    assert f"next: raggs report {done.run}" in said.splitlines()


def test_without_labels_the_next_command_collects_some(done: Project, tmp_path: Path) -> None:
    project = done.copied(tmp_path / "own")
    project.change(judge={**project.settings()["judge"], "gate": {"kappa": 0.5}})
    said = invoke("run", "--config", project.config).stdout
    assert_short(said)
    assert f"next: raggs review serve {project.run}" in said
    refused = invoke("judge", "check", project.run)
    assert refused.exit_code == 5 and f"raggs review serve {project.run}" in refused.stderr
    assert_short(refused.output)


def test_two_judges_are_compared_in_one_table(labelled: Project) -> None:
    label = labelled.settings()["judge"]["judge"]
    judge = json.dumps({**label, "grade_noise": 0.4})
    call(
        "run", "--config", labelled.config, "--run-id", "other", "--to", "judge", "--set", f"judge.judge={judge}", "-q"
    )
    said = call("judge", "compare", labelled.run, labelled.run.with_name("other")).stdout
    assert_short(said)
    assert first(said).startswith(("A is closer", "It is inconclusive"))


def test_an_edited_run_lists_findings_with_file_line_and_remedy(done: Project, tmp_path: Path) -> None:
    project = done.copied(tmp_path / "own")
    for name in ("judge", "prune", "rank"):
        file = project.run / f"{name}.jsonl"
        file.write_text(file.read_text().replace('"v":1', '"v":1 '))
    failed = call("audit", project.run, code=5)
    assert_short(failed.output)
    assert first(failed.stdout).startswith("Audit failed: ")
    assert "run again" in failed.stdout and "raggs run --config" in failed.stderr
    assert "--details" in failed.stdout
    assert "judge.jsonl:1: " in call("audit", project.run, "--details", code=5).stdout


def test_a_void_signature_is_to_be_signed_again(done: Project, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    project, key = done.copied(tmp_path / "own"), tmp_path / "team.key"
    call("keygen", key)
    call("audit", project.run, "--sign", key)
    call("run", "--config", project.config, "-q", "--max-usd", "3")
    public = tmp_path / "team.key.pub"
    assert first(call("audit", project.run, "--verify", public).stdout).startswith("Audit passed"), (
        "nothing was written"
    )
    call("run", "--config", project.config, "-q", "--set", "rank.top=3")
    failed = call("audit", project.run, "--verify", public, code=5)
    assert "sign again" in failed.stdout
    assert f"sign it again: raggs audit {project.run} --sign KEYFILE" in failed.stderr


def test_failures_come_first_and_are_retried_next(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=3, corpus=24)
    busy = [{"qid": "q00", "doc_id": f"p{number:03}", "fail": "busy"} for number in range(24)]
    (tmp_path / "busy.jsonl").write_text("".join(json.dumps(row) + "\n" for row in busy))
    scripted = {"type": "scripted", "path": "busy.jsonl"}
    project.change(judge={"judge": scripted})
    failed = invoke("run", "--config", project.config)
    assert failed.exit_code == 7
    assert_short(failed.output)
    assert first(failed.stdout).startswith(("Golden set incomplete: ", "No golden set: "))
    assert f"next: raggs run --config {project.config}" in failed.stdout
    said = call("status", project.run).stdout
    assert_short(said)
    assert "failed; the next run retries them." in said
