"""A judge that states probabilities, through the command line: counted, resumed, audited."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from support import llm_decisions
from support.cli import call, invoke
from support.forks import Child
from support.llm_server import LLMServer
from support.project import Project, begin, environment, make_project, raggs

pytestmark = pytest.mark.usefixtures("provider_key")

KEY = {"OPENAI_API_KEY": "sk-test-0123456789abcdefghijklmnop"}
MODEL = "openai/judge"


def stating(folder: Path, url: str, answers: str, **sections: Any) -> Project:
    """A project whose judge is a model that states probabilities."""
    project = make_project(folder, queries=3, corpus=24)
    llm = {"api_base": url, "prices": {MODEL: {"input": 1.0, "output": 2.0}}, "backoff_s": 0.02, "concurrency": 4}
    project.change(judge={"judge": {"type": "litellm", "model": MODEL, "answers": answers}}, llm=llm)
    project.change(rank={"max_calls": 6}, **sections)
    return project


def rows(project: Project, artifact: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.run / f"{artifact}.jsonl").read_text().splitlines()]


def graded_bytes(project: Project) -> bytes:
    return (project.run / "judge.jsonl").read_bytes()


def ledger_calls(project: Project) -> int:
    """The requests of all invocations, as the ledger has them."""
    return sum(line.get("attempts", 0) for line in rows(project, "llm.ledger"))


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("answers", ["decision", "logprobs", "auto"])
def test_probabilities_are_recorded_audited_and_counted(tmp_path: Path, answers: str) -> None:
    with LLMServer() as server:
        project = stating(tmp_path, server.url, answers)
        call("run", "--config", project.config)
        source = "decision" if answers == "decision" else "logprobs"
        for row in rows(project, "judge"):
            assert sum(round(10_000 * share) for share in row["distribution"]) == 10_000
            below = [sum(row["distribution"][:grade]) for grade in range(6)]
            assert below[row["grade"] - 1] < 0.5 <= below[row["grade"]] + 1e-9
            assert row["distribution_source"] == source
        stated = {(row["qid"], row["doc_id"]): row["distribution"] for row in rows(project, "judge")}
        assert all(row["distribution"] == stated[row["qid"], row["doc_id"]] for row in rows(project, "prune"))
        journal = rows(project, "rank.journal")
        assert journal
        assert all(("best" in row) == (answers == "decision") for row in journal)
        for row in journal if answers == "decision" else ():
            assert row["best"] == sorted(row["best"], reverse=True)
            assert sum(round(10_000 * share) for share in row["best"]) == 10_000
        assert ledger_calls(project) == server.count
        call("audit", project.run)
        call("run", "--config", project.config)
        assert ledger_calls(project) == server.count, "nothing is paid again"


def test_an_audit_finds_a_grade_that_contradicts_its_probabilities(tmp_path: Path) -> None:
    with LLMServer() as server:
        project = stating(tmp_path, server.url, "decision")
        call("run", "--config", project.config, "--to", "judge")
    path = project.run / "judge.jsonl"
    row = rows(project, "judge")[0]
    other = row["grade"] % 5 + 1
    text = path.read_text()
    changed = text.replace(
        f'"grade":{row["grade"]},"grades":[{row["grade"]}]', f'"grade":{other},"grades":[{other}]', 1
    )
    assert changed != text
    path.write_text(changed)
    assert "judge.jsonl:1" in call("audit", project.run, code=5).output


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("answers", ["decision", "logprobs"])
def test_a_killed_run_resumes_to_the_same_bytes(tmp_path: Path, answers: str) -> None:
    with LLMServer(delay_s=0.05) as server:
        project = stating(tmp_path / "own", server.url, answers, budget={"max_usd": None})
        for calls in (10, 50):
            process: Child = begin("run", "--config", project.config, "--quiet", env=environment(**KEY))
            assert process.wait(until=lambda calls=calls: server.count >= calls) is None
            process.send_signal(signal.SIGKILL)
            process.end()
        server.delay_s = 0
        again = raggs("run", "--config", project.config, "--quiet", env=environment(**KEY))
        assert again.returncode == 0, again.stderr
        calm = stating(tmp_path / "calm", server.url, answers, budget={"max_usd": None})
        assert raggs("run", "--config", calm.config, "--quiet", env=environment(**KEY)).returncode == 0
        assert project.artifacts() == calm.artifacts()


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("answers", ["decision", "logprobs"])
def test_a_dry_run_counts_the_calls_of_the_judge(tmp_path: Path, answers: str) -> None:
    with LLMServer() as server:
        project = stating(tmp_path, server.url, answers)
        call("run", "--config", project.config, "--to", "merge")
        shown = json.loads(call("run", "--config", project.config, "--dry-run", "--json").stdout)
        assert server.count == 0
        lines = [line for line in shown["estimates"] if line["stage"] == "judge"]
        call("run", "--config", project.config, "--to", "judge")
        assert [line["calls"] for line in lines] == [server.count]
        assert [line["output_tokens"] for line in lines] == [0 if answers == "decision" else 2 * server.count]


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("rule", ["median", "first"])
def test_a_panel_has_a_distribution_only_if_all_members_have_one(tmp_path: Path, rule: str) -> None:
    with LLMServer() as server:
        project = stating(tmp_path, server.url, "decision")
        members = [{"type": "litellm", "model": MODEL, "answers": answers} for answers in ("decision", "logprobs")]
        whole = {"type": "panel", "judges": members, "rule": rule}
        project.change(judge={"judge": whole})
        call("run", "--config", project.config)
        assert all(len(row["distribution"]) == 5 for row in rows(project, "judge"))
        assert all(("distribution_source" in row) == (rule == "first") for row in rows(project, "judge"))
        call("audit", project.run)
        members[1]["answers"] = "text"
        project.change(judge={"judge": whole})
        call("run", "--config", project.config, "--yes")
        assert all(("distribution" in row) == (rule == "first") for row in rows(project, "judge"))
        call("audit", project.run)


def test_samples_are_averaged(tmp_path: Path) -> None:
    faults = {1: "labels win", 2: "truncated list"}
    with LLMServer(fault_for=lambda number, body: faults.get(number)) as server:
        project = stating(tmp_path, server.url, "decision")
        project.change(judge={"samples": 2})
        call("run", "--config", project.config)
        assert all(len(row["grades"]) == 2 and row["distribution"] for row in rows(project, "judge"))
        call("audit", project.run)


def test_the_doctor_tests_the_form_of_answers_by_one_call(tmp_path: Path) -> None:
    with LLMServer() as server:
        text = stating(tmp_path / "text", server.url, "text")
        assert "confirmed" not in call("doctor", "--config", text.config).output
        assert server.count == 0
        auto = stating(tmp_path / "auto", server.url, "auto")
        shown = " ".join(call("doctor", "--config", auto.config).output.split())
        assert "answers: logprobs, confirmed by one call" in shown
        assert server.count == 1
        server.faults = ["refused"] * 3
        decided = stating(tmp_path / "decided", server.url, "decision")
        assert "answers: decision is not usable" in " ".join(
            invoke("doctor", "--config", decided.config).output.split()
        )


AGAIN = {"samples": 2, "samples_if_below": 0.9}


def surer_of_twos(grade: int) -> list[float]:
    """Probabilities with 0.96 on grade 2, and 0.6 on every other grade."""
    weights = [0.25 ** abs(each - grade) for each in range(1, 6)]
    own = 0.96 if grade == 2 else 0.6
    return [own if weight == 1 else round((1 - own) * weight / (sum(weights) - 1), 6) for weight in weights]


@pytest.fixture
def certain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_decisions, "peaked", surer_of_twos)


def judge_lines(project: Project) -> list[dict[str, Any]]:
    shown = json.loads(call("run", "--config", project.config, "--dry-run", "--json", "--to", "judge").stdout)
    return [line for line in shown["estimates"] if line["stage"] == "judge"]


@pytest.mark.nightly(keep=1)
@pytest.mark.usefixtures("certain")
@pytest.mark.parametrize("answers", ["decision", "logprobs"])
def test_only_uncertain_passages_are_graded_again(tmp_path: Path, answers: str) -> None:
    with LLMServer() as server:
        project = stating(tmp_path, server.url, answers)
        project.change(judge=AGAIN)
        [unknown] = judge_lines(project)
        assert (unknown["least"] * 2, unknown["exact"], unknown["again"]) == (unknown["calls"], False, True)
        call("run", "--config", project.config, "--quiet", "--to", "merge")
        [before] = judge_lines(project)
        text = call("run", "--config", project.config, "--dry-run", "--to", "judge").output
        assert "grades again only passages with an uncertain grade" in " ".join(text.split())
        call("run", "--config", project.config, "--quiet", "--to", "judge")
        found = [row for row in rows(project, "judge") if not row["duplicate_of"]]
        unsure = [row for row in found if row["grade"] != 2]
        assert 0 < len(unsure) < len(found)
        assert (before["least"], before["calls"]) == (len(found), 2 * len(found))
        for row in found:
            assert len(row["grades"]) == (1 if row["grade"] == 2 else 2)
            assert len(row.get("sample_distributions", ())) == (0 if row["grade"] == 2 else 2)
        assert server.count == ledger_calls(project) == len(found) + len(unsure)
        told = call("status", project.run, "--details").output
        assert f"samples: 2 for {len(unsure)} of {len(found)} passages, the uncertain ones" in " ".join(told.split())
        assert "the rest matches" in call("audit", project.run, code=7).output
        call("run", "--config", project.config, "--quiet", "--to", "judge")
        assert server.count == len(found) + len(unsure), "nothing is paid again"
        # the share of the last run is expected of the next
        call("cache", "clear", "--workspace", project.folder / "runs", "--what", "llm", "--yes")
        shown = json.loads(
            call("run", "--config", project.config, "--dry-run", "--json", "--force", "--only", "judge").stdout
        )
        [after] = [line for line in shown["estimates"] if line["stage"] == "judge"]
        assert after["expected"] == len(found) + len(unsure)
        assert after["least"] == len(found) < after["expected"] < after["calls"] == 2 * len(found)


@pytest.mark.usefixtures("certain")
def test_known_first_grades_make_the_dry_run_of_further_samples_exact(tmp_path: Path) -> None:
    with LLMServer() as server:
        project = stating(tmp_path, server.url, "decision")
        call("run", "--config", project.config, "--quiet", "--to", "judge")
        once, plain = server.count, graded_bytes(project)
        project.change(judge=AGAIN)
        [line] = judge_lines(project)
        assert line["exact"]
        assert "least" not in line
        call("run", "--config", project.config, "--quiet", "--to", "judge", "--yes")
        assert server.count == once + line["calls"]
        assert line["calls"] == sum(
            len(row["grades"]) == 2 and not row["duplicate_of"] for row in rows(project, "judge")
        )
        project.change(judge={"samples": 1, "samples_if_below": None})
        call("run", "--config", project.config, "--quiet", "--to", "judge", "--yes")
        assert graded_bytes(project) == plain


@pytest.mark.usefixtures("certain")
@pytest.mark.parametrize("change", ["first sample", "dropped sample"])
def test_an_audit_makes_the_decision_about_further_samples_again(tmp_path: Path, change: str) -> None:
    with LLMServer() as server:
        project = stating(tmp_path, server.url, "decision")
        project.change(judge=AGAIN)
        call("run", "--config", project.config, "--quiet", "--to", "judge")
    found = rows(project, "judge")
    row = next(row for row in found if "sample_distributions" in row and not row["duplicate_of"])
    if change == "first sample":
        row["sample_distributions"][0] = [0.01 if grade != row["grade"] else 0.96 for grade in range(1, 6)]
    else:
        row["grades"] = row["grades"][:1]
        row["distribution"] = row.pop("sample_distributions")[0]
    lines = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in found]
    (project.run / "judge.jsonl").write_text("\n".join(lines) + "\n")
    assert f"judge.jsonl:{found.index(row) + 1}" in call("audit", project.run, code=5).output


@pytest.mark.usefixtures("certain")
def test_a_killed_run_with_further_samples_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    with LLMServer(delay_s=0.05) as server:
        project = stating(tmp_path / "own", server.url, "logprobs", budget={"max_usd": None})
        project.change(judge=AGAIN)
        for calls in (10, 40, 70):
            process: Child = begin("run", "--config", project.config, "--quiet", env=environment(**KEY))
            assert process.wait(until=lambda calls=calls: server.count >= calls) is None
            process.send_signal(signal.SIGKILL)
            process.end()
        server.delay_s = 0
        again = raggs("run", "--config", project.config, "--quiet", env=environment(**KEY))
        assert again.returncode == 0, again.stderr
        call("audit", project.run)
        calm = stating(tmp_path / "calm", server.url, "logprobs", budget={"max_usd": None})
        calm.change(judge=AGAIN)
        assert raggs("run", "--config", calm.config, "--quiet", env=environment(**KEY)).returncode == 0
        assert project.artifacts() == calm.artifacts()


def test_passages_without_probabilities_get_all_samples(tmp_path: Path) -> None:
    with LLMServer() as server:
        project = stating(tmp_path, server.url, "text")
        project.change(judge=AGAIN)
        call("run", "--config", project.config, "--quiet", "--to", "judge")
        adaptive = graded_bytes(project)
        assert all(len(row["grades"]) == 2 for row in rows(project, "judge"))
        project.change(judge={"samples_if_below": None})
        call("run", "--config", project.config, "--quiet", "--to", "judge", "--yes")
        assert graded_bytes(project) == adaptive


@pytest.mark.usefixtures("certain")
def test_a_cascade_and_a_panel_repeat_only_uncertain_passages(tmp_path: Path) -> None:
    members = [{"type": "litellm", "model": MODEL, "answers": answers} for answers in ("logprobs", "decision")]
    with LLMServer() as server:
        for kind in ("cascade", "panel"):
            project = stating(tmp_path / kind, server.url, "decision")
            project.change(judge={"judge": {"type": kind, "judges": members}, **AGAIN})
            call("run", "--config", project.config, "--quiet", "--to", "judge")
            found = [row for row in rows(project, "judge") if not row["duplicate_of"]]
            assert {len(row["grades"]) for row in found} == {1, 2}
            assert all(len(row["grades"]) == (1 if row["grade"] == 2 else 2) for row in found)
            assert "the rest matches" in call("audit", project.run, code=7).output


@pytest.mark.usefixtures("certain")
def test_batches_repeat_only_uncertain_passages(tmp_path: Path) -> None:
    with LLMServer() as server:
        direct, batched = (stating(tmp_path / name, server.url, "logprobs") for name in ("direct", "batched"))
        direct.change(judge=AGAIN)
        batched.change(judge={**AGAIN, "mode": "batch", "batch": {"poll_s": 0.05}})
        for project in (direct, batched):
            call("run", "--config", project.config, "--quiet", "--to", "judge")
        assert graded_bytes(direct) == graded_bytes(batched)
        found = [row for row in rows(direct, "judge") if not row["duplicate_of"]]
        asked = [len(batch) for batch in server.batches.submitted]
        assert asked == [len(found), sum(len(row["grades"]) == 2 for row in found)]
