"""What a stopped stage has done is audited too, though no lock describes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.cli import call, invoke
from support.llm_server import KEY, LLMServer
from support.project import Project, make_project

from raggs.app.audit import audit


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Stopped in judge, gone on with in part; ranked with two settings."""
    with pytest.MonkeyPatch.context() as patch, LLMServer() as server:
        patch.setenv("OPENAI_API_KEY", KEY)
        made = make_project(tmp_path_factory.mktemp("parted"), queries=6, corpus=24)
        llm = {"api_base": server.url, "concurrency": 4, "prices": {"openai/judge": {"input": 1.0, "output": 2.0}}}
        made.change(judge={"judge": {"type": "litellm", "model": "openai/judge"}}, llm=llm)
        call("run", "--config", made.config, "--quiet", "--set", "budget.max_calls=70", code=7)
        call("run", "--config", made.config, "--quiet", "--partial", "--set", "rank.seed=3")
        call("run", "--config", made.config, "--quiet", "--partial")
    return made


@pytest.fixture
def project(parted: Project, tmp_path: Path) -> Project:
    return parted.copied(tmp_path / "project")


@pytest.fixture
def cascade(server: LLMServer, tmp_path: Path) -> Project:
    """Stopped in judge, where two models are a cascade."""
    prices = {f"openai/{name}": {"input": 1.0, "output": 2.0} for name in ("small", "big")}
    judges = [{"type": "litellm", "model": model} for model in prices]
    made = make_project(tmp_path, queries=4, corpus=24)
    made.change(judge={"judge": {"type": "cascade", "judges": judges, "ask_from": 4, "audit": 0}})
    made.change(llm={"api_base": server.url, "concurrency": 4, "prices": prices})
    call("run", "--config", made.config, "--quiet", "--set", "budget.max_calls=60", code=7)
    return made


def told(project: Project) -> list[str]:
    return [str(finding) for finding in audit(project.run).findings]


def test_a_sound_part_has_no_findings_and_is_not_called_whole(project: Project) -> None:
    found = audit(project.run)
    assert not found.findings and not found.ok
    assert found.unfinished == ("judge", "prune", "rank")
    result = invoke("audit", project.run, "--write-lock", project.run.parent / "golden.lock")
    assert result.exit_code == 7
    assert "judge, prune, rank not finished; the rest matches the manifest" in result.stderr
    assert not (project.run.parent / "golden.lock").exists()


def grade(line: bytes) -> bytes:
    """The line of judge.jsonl with another grade, whose sample says something else."""
    record = json.loads(line)
    return line.replace(f'"grade":{record["grade"]},'.encode(), f'"grade":{record["grade"] % 5 + 1},'.encode())


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize(
    ("artifact", "change", "finding"),
    [
        (
            "judge",
            lambda lines: [grade(lines[0]), *lines[1:]],
            "judge.partial.jsonl:1: differs from the record that the earlier artifacts imply",
        ),
        ("judge", lambda lines: [lines[1], lines[0], *lines[2:]], "judge.partial.jsonl:2: is not sorted by"),
        ("judge", lambda lines: [lines[0][:-1] + b" \n", *lines[1:]], "judge.partial.jsonl:1: its bytes differ"),
        (
            "prune",
            lambda lines: lines[1:],
            "prune.partial.jsonl:1: differs from the record that the earlier artifacts imply",
        ),
        (
            "rank",
            lambda lines: lines[1:],
            "rank.partial.jsonl: query q00: its ranking differs from the one that the journal implies",
        ),
        ("rank", lambda lines: [b"no\n", *lines], "rank.partial.jsonl:1: "),
        (
            "rank.queries",
            lambda lines: [lines[0].replace(b'"skipped":0', b'"skipped":1'), *lines[1:]],
            "rank.queries.partial.jsonl: query q00: differs from the record that the journal implies",
        ),
    ],
    ids=["grade", "order", "bytes", "pool", "ranking", "form", "why it ended"],
)
def test_a_changed_part_is_found(
    project: Project, artifact: str, change: Callable[[list[bytes]], list[bytes]], finding: str
) -> None:
    path = project.run / f"{artifact}.partial.jsonl"
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    assert any(each.startswith(finding) for each in told(project)), told(project)


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize(
    ("asked", "said"),
    [(True, ("small", "another")), (True, ("small",)), (False, ("small", "big")), (False, ("another",))],
    ids=["another word", "not asked", "not sent for", "another grade"],
)
def test_a_grade_of_a_part_is_what_the_votes_of_a_cascade_come_to(
    cascade: Project, asked: bool, said: tuple[str, ...]
) -> None:
    assert not told(cascade)
    part = cascade.run / "judge.partial.jsonl"
    lines = [json.loads(line) for line in part.read_bytes().splitlines()]
    place, line = next(item for item in enumerate(lines) if len(item[1]["votes"]) == 1 + asked)
    line["votes"] = {name: [line["grade"] % 3 + 1 if name == "another" else line["grade"]] for name in said}
    part.write_text("".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines))
    assert told(cascade)[0].startswith(
        f"judge.partial.jsonl:{place + 1}: differs from the record that the earlier artifacts imply"
    )


def test_a_journal_in_progress_is_read(project: Project) -> None:
    path = project.run / "rank.journal.jsonl"
    path.write_bytes(b"{}\n" + path.read_bytes())
    assert any(each.startswith("rank.journal.jsonl:1: ") for each in told(project)), told(project)


def test_later_settings_are_not_those_of_results_that_did_not_run_again(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=2, corpus=12)
    call("run", "--config", project.config, "--quiet")
    project.change(rank={"max_calls": 3}, prune={"max_keep": 9}, retrieve={"retrievers": [{"type": "bm25", "k": 9}]})
    call("run", "--config", project.config, "--quiet", "--to", "embed")
    assert not audit(project.run).findings
    assert project.manifest()["config"]["rank"]["max_calls"] == 8
    call("run", "--config", project.config, "--quiet", "--to", "merge")
    assert not [each for each in audit(project.run).findings if each.message.startswith("config")]
    call("run", "--config", project.config, "--quiet")
    assert not audit(project.run).findings
    assert project.manifest()["config"]["rank"]["max_calls"] == 3


def test_a_result_whose_stage_was_begun_anew_is_no_lie(server: LLMServer, tmp_path: Path) -> None:
    """What it asked since stands in the journal, behind what its lock knows; the result is the one before."""
    made = make_project(tmp_path, queries=4, corpus=24)
    llm = {"api_base": server.url, "concurrency": 4, "prices": {"openai/judge": {"input": 1.0, "output": 2.0}}}
    made.change(judge={"judge": {"type": "litellm", "model": "openai/judge"}}, llm=llm)
    call("run", "--config", made.config, "--quiet")
    journal = made.run / "rank.journal.jsonl"
    whole = journal.read_bytes()
    calls = len((made.run / "llm.ledger.jsonl").read_text().splitlines())
    anew = ("run", "--config", made.config, "--quiet", "--yes", "--set", "rank.seed=3")
    call(*anew, "--set", f"budget.max_calls={calls + 7}", code=7)
    assert journal.read_bytes().startswith(whole) and len(journal.read_bytes()) > len(whole)
    found = audit(made.run)
    assert not found.findings
    assert any("stage rank was restarted and has not finished" in note for note in found.notes)
    behind = journal.read_bytes()[len(whole) :]
    journal.write_bytes(whole[: whole.rindex(b"{")] + behind)  # the last line that the lock knows is gone
    assert any("rank.journal.jsonl" in lie for lie in told(made))
    journal.write_bytes(whole + behind)
    call(*anew)
    assert not audit(made.run).findings and not list(audit(made.run).notes)
