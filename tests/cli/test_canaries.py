"""Canaries of a paid judge: counted beforehand, paid once, told by status, and in no golden set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.llm_server import LLMServer
from support.paying import paying
from support.project import Project, make_project, raggs
from support.stopping import stop_at

from raggs.stages.canaries import ORDER


def truth(query: str, passage: str) -> int:
    """Obeys whatever stands in a passage."""
    return 5 if ORDER in passage else 1


def expected(project: Project) -> dict[str, int]:
    found = json.loads(raggs("run", "--config", project.config, "--dry-run", "--json").stdout)
    return next(line for line in found["estimates"] if line["stage"] == "judge")


def judged(project: Project) -> None:
    done = raggs("run", "--config", project.config, "--to", "judge", "-q", "--yes")
    assert done.returncode == 0, done.stderr


def test_a_judge_that_obeys_is_seen_and_nothing_is_paid_twice(server: LLMServer, project: Project) -> None:
    server.truth = truth
    judged(project)
    before, grades = project.manifest()["stages"]["judge"], (project.run / "judge.jsonl").read_bytes()
    assert before["health"] is None
    assert "canaries" not in json.dumps(before["components"]), "a run without them need not run again"
    asked = server.count

    section = project.settings()["judge"]
    project.change(judge={**section, "canaries": 0.1})
    count = expected(project)
    assert (count["calls"], count["cached"]) == (6, asked)
    judged(project)
    lock = project.manifest()["stages"]["judge"]
    assert server.count - asked == 6 == lock["cost"]["calls"], "the pool's own passages are not paid again"
    assert (project.run / "judge.jsonl").read_bytes() == grades
    found = lock["health"]["canaries"]
    assert found["kinds"]["injected"]["count"] == 0
    assert found["kinds"]["unrelated"]["rate"] == 1.0

    told = raggs("status", project.run, "--details").stdout
    line = next(line for line in told.splitlines() if "canaries:" in line)
    assert " pass" in line
    assert "injected 0 of" in line
    assert "the rest matches the manifest" in raggs("audit", project.run).stderr

    done = raggs("run", "--config", project.config, "--from", "judge", "--to", "judge", "--force", "-q", "--yes")
    assert done.returncode == 0, done.stderr
    assert server.count == asked + 6, "their answers are kept as any"
    assert project.manifest()["stages"]["judge"]["health"]["canaries"] == found


@pytest.mark.nightly
def test_a_kill_among_canaries_or_after_changes_no_byte_and_no_figure(
    server: LLMServer, project: Project, tmp_path: Path
) -> None:
    """Killed while canaries are asked, then while the pools are judged."""
    other = paying(tmp_path / "killed", server)
    for each in (project, other):
        each.change(judge={**each.settings()["judge"], "canaries": 0.1}, llm={"concurrency": 2})
    judged(project)
    asked = server.count
    for number in (3, 20):
        stop_at(server, other, server.count + number)
    assert not (other.run / "judge.jsonl").exists()
    judged(other)
    assert (other.run / "judge.jsonl").read_bytes() == (project.run / "judge.jsonl").read_bytes()
    healths = [each.manifest()["stages"]["judge"]["health"]["canaries"] for each in (project, other)]
    assert healths[0] == healths[1]
    assert healths[0]["passed"]["total"] == 6
    assert server.count - 2 * asked <= 8, "paid again is what was on its way at most"


@pytest.mark.parametrize("share", ["-0.1", "1.5", "much"])
def test_a_share_that_is_none(project: Project, share: str) -> None:
    done = raggs("run", "--config", project.config, "--set", f"judge.canaries={share}", "--dry-run")
    assert done.returncode == 5
    assert "judge.canaries" in done.stderr


def test_a_judge_that_reads_nothing_has_none(tmp_path_factory: pytest.TempPathFactory) -> None:
    project = make_project(tmp_path_factory.mktemp("labels"))
    project.change(judge={**project.settings()["judge"], "canaries": 0.1})
    assert raggs("run", "--config", project.config, "--to", "judge", "-q").returncode == 0
    assert "does not read passages" in raggs("status", project.run, "--details").stdout


def test_a_judge_below_its_gate_ends_the_run_with_7_and_everybody_says_so(server: LLMServer, project: Project) -> None:
    server.truth = truth
    section = {**project.settings()["judge"], "canaries": 0.1}
    project.change(judge={**section, "gate": {"canaries": 0.95, "position_bias": 5}})
    done = raggs("run", "--config", project.config, "-q", "--yes")
    assert done.returncode == 7
    said = "judge fails its check"
    assert said in done.stderr
    assert "of the canaries pass, less than the required 95%" in done.stderr
    assert "position bias" not in done.stderr, "what holds is not named"
    assert said in raggs("status", project.run).stdout
    exported = raggs("export", project.run, "--format", "trec", "--out", project.folder / "out")
    assert exported.returncode == 0, exported.stderr
    meta = json.loads((project.folder / "out" / "qrels.txt.meta.json").read_text())
    assert "canaries" in meta["provenance"]["gate"][0]
    scored = raggs("eval", "--golden", project.run, "--run", project.run)
    assert "no passage is relevant" in scored.stderr, "this judge gives the lowest grade alone, so there is no score"
    asked = server.count
    project.change(judge={**section, "gate": {"canaries": 0.1}})
    assert raggs("run", "--config", project.config, "-q", "--yes").returncode == 0, "a limit is no cause to run again"
    assert server.count == asked
    assert said not in raggs("status", project.run, "--details").stdout


def test_a_gate_without_canaries_is_told_before_anything_is_paid(server: LLMServer, project: Project) -> None:
    done = raggs("run", "--config", project.config, "--set", "judge.gate.canaries=0.95", "-q", "--yes")
    assert done.returncode == 5
    assert "gate.canaries needs canaries" in done.stderr
    assert server.count == 0
