"""A cascade of two models through the command line: who is asked, paid and told; what kills and failures leave."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from support.cli import call
from support.llm_server import FENCED, LLMServer
from support.project import Project, make_project

pytestmark = pytest.mark.usefixtures("provider_key")

PRICES = {"openai/small": {"input": 1.0, "output": 2.0}, "openai/big": {"input": 10.0, "output": 20.0}}
MODELS = [{"type": "litellm", "model": name} for name in PRICES]
CASCADE: dict[str, Any] = {"type": "cascade", "judges": MODELS, "ask_from": 4, "audit": 0.3}


class TwoModels(LLMServer):
    """The small model gives some passages a grade too much."""

    def _truthful(self, body: dict[str, Any], fault: str = "") -> dict[str, Any]:
        found = super()._truthful(body, fault)
        if body["model"] == "small" and "grade" in found:
            shown = FENCED.findall(body["messages"][-1]["content"])[-1][-1]
            found["grade"] = min(5, found["grade"] + crc32(shown.encode()) % 2)
        return found


@pytest.fixture
def server() -> Iterator[TwoModels]:
    with TwoModels() as running:
        yield running


def rows(project: Project) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (project.run / "judge.jsonl").read_text().splitlines()]
    return [row for row in found if not row["duplicate_of"]]


def paid(folder: Path, url: str, **sections: object) -> Project:
    project = make_project(folder, queries=3, corpus=24)
    llm = {"api_base": url, "prices": PRICES, "backoff_s": 0.02, "concurrency": 8}
    project.change(judge={"judge": CASCADE}, rank={"max_calls": 2}, llm=llm)
    project.change(**sections)
    return project


def asked(server: LLMServer, form: str = "grade") -> Counter[str]:
    """By model, how often it was asked for grades."""
    return Counter(body["model"] for body in server.requests if body["response_format"]["json_schema"]["name"] == form)


def dry(project: Project, *flags: str) -> dict[tuple[str, str], dict[str, Any]]:
    lines = json.loads(call("run", "--config", project.config, "--dry-run", "--json", *flags).output)["estimates"]
    return {(line["stage"], line["who"]): line for line in lines}


def test_the_big_model_is_asked_where_it_matters_and_every_page_says_so(server: TwoModels, tmp_path: Path) -> None:
    project = paid(tmp_path, server.url)
    before = dry(project)
    most = before["judge", "openai/small"]["calls"]
    big = before["judge", "openai/big"]
    assert (big["calls"], big["least"], big["exact"], "expected" in big) == (most, round(0.3 * most), False, False)
    assert ("rank", "openai/small") not in before
    assert (
        "grades only passages that the cascade passes on" in call("run", "--config", project.config, "--dry-run").output
    )
    call("run", "--config", project.config, "--quiet", "--to", "merge")
    assert dry(project)["judge", "openai/small"]["exact"]

    call("run", "--config", project.config)
    found = rows(project)
    by_big = [row for row in found if row["judge"] == "litellm openai/big"]
    assert 0 < len(by_big) < len(found)
    for row in found:
        votes = {name: grades[0] for name, grades in row["votes"].items()}
        small, big_one = votes["litellm openai/small"], votes.get("litellm openai/big")
        assert row["grade"] == (small if big_one is None else big_one)
        assert small < 4 or big_one is not None
    assert asked(server) == {"small": len(found), "big": len(by_big)}
    assert set(asked(server, "order")) == {"big"}
    health = project.manifest()["stages"]["judge"]["health"]
    assert health["panel"] is None
    assert (health["cascade"]["asked"]["count"], health["cascade"]["asked"]["total"]) == (len(by_big), len(found))
    told = f"cascade: the good judge graded {len(by_big)} of {len(found)} passages"
    assert told in call("status", project.run, "--details").output
    assert 0 < health["cascade"]["overruled"]["count"] < len(by_big)
    call("audit", project.run)
    cost = json.loads(call("cost", project.run, "--json").output)
    assert cost["model"]["openai/small"]["calls"] == len(found)
    assert cost["stage"]["judge"]["calls"] == len(found) + len(by_big)


def test_a_cascade_that_costs_more_than_its_good_judge_alone_is_told(tmp_path: Path) -> None:
    project = paid(tmp_path, "http://127.0.0.1:9/v1")
    assert "the cascade saves nothing" not in call("run", "--config", project.config, "--dry-run").output
    project.change(llm={"prices": dict.fromkeys(PRICES, PRICES["openai/big"])})
    assert (
        "the cascade saves nothing: openai/big alone would cost $"
        in call("run", "--config", project.config, "--dry-run").output
    )


def test_the_share_that_was_sent_for_is_expected_of_the_next_run(server: TwoModels, tmp_path: Path) -> None:
    project = paid(tmp_path, server.url)
    call("run", "--config", project.config, "--quiet")
    share = project.manifest()["stages"]["judge"]["health"]["cascade"]["asked"]["rate"]
    assert all(line["calls"] == 0 and line["exact"] for line in dry(project, "--force", "--only", "judge").values())
    call("cache", "clear", "--workspace", project.folder / "runs", "--what", "llm", "--yes")
    line = dry(project, "--force", "--only", "judge")["judge", "openai/big"]
    assert line["least"] < line["expected"] == round(share * line["calls"]) < line["calls"]
    assert "at the share of the last run" in call("run", "--config", project.config, "--dry-run", "--force").output


def test_a_run_stopped_by_its_budget_goes_on_to_the_bytes_of_a_calm_one(server: TwoModels, tmp_path: Path) -> None:
    calm, stormy = paid(tmp_path / "calm", server.url), paid(tmp_path / "stormy", server.url)
    call("run", "--config", calm.config, "--quiet")
    needed, server.requests = Counter(map(json.dumps, server.requests)), []
    server._answered.clear()
    for calls in (5, 30, 50):
        stormy.change(budget={"max_calls": calls})
        call("run", "--config", stormy.config, "--quiet", code=7)
    stormy.change(budget={"max_calls": 5000})
    call("run", "--config", stormy.config, "--quiet")
    assert stormy.artifacts() == calm.artifacts()
    assert sum(needed.values()) == server.count
    assert server.paid_twice == []


def test_a_good_judge_that_fails_leaves_failures_which_the_next_run_asks_again(tmp_path: Path) -> None:
    sick = True
    with TwoModels(
        fault_for=lambda number, body: "refusal" if sick and "big" in body["model"] and number % 2 else None
    ) as server:
        project = paid(tmp_path, server.url, rank={"max_calls": 0})
        call("run", "--config", project.config, "--quiet", code=7)
        failed = [row for row in rows(project) if row["grade"] is None]
        assert failed
        assert all(row["error"].startswith("litellm openai/big: ") for row in failed)
        assert project.manifest()["stages"]["judge"]["health"]["cascade"]["lost"] == len(failed)
        sick, server.requests = False, []
        call("run", "--config", project.config, "--quiet")
        assert asked(server) == {"big": len(failed)}
        assert all(row["grade"] for row in rows(project))
        call("audit", project.run)


def test_another_who_orders_changes_no_grade_and_asks_for_new_orders_alone(server: TwoModels, tmp_path: Path) -> None:
    project = paid(tmp_path, server.url)
    call("run", "--config", project.config, "--quiet")
    graded, server.requests = project.artifacts()["judge"], []
    project.change(judge={"judge": {**CASCADE, "order": "cheap"}})
    plan = json.loads(call("run", "--config", project.config, "--dry-run", "--json").output)["plan"]
    assert [stage for stage, reasons in plan.items() if reasons] == ["rank"]
    call("run", "--config", project.config, "--quiet", "--yes")
    assert project.artifacts()["judge"] == graded
    assert asked(server) == {}
    assert set(asked(server, "order")) == {"small"}


def test_prices_of_both_are_looked_at_first(tmp_path: Path) -> None:
    strange = {**CASCADE, "judges": [MODELS[0], {"type": "litellm", "model": "no-such-model-of-mine"}]}
    project = make_project(tmp_path, judge={"judge": strange}, budget={"max_usd": 1}, llm={"prices": PRICES})
    assert "no-such-model-of-mine" in call("run", "--config", project.config, "--quiet", code=5).output


def test_the_small_model_sees_passages_together_and_the_big_one_each_alone(server: TwoModels, tmp_path: Path) -> None:
    project = paid(tmp_path, server.url, judge={"judge": CASCADE, "group": 4})
    before = dry(project)
    small, big = before["judge", "openai/small"], before["judge", "openai/big"]
    assert (small["calls"], big["calls"], big["least"]) == (3 * 6, 3 * 24, round(0.3 * 3 * 24))
    assert big["input_tokens"] > 2 * small["input_tokens"]
    call("run", "--config", project.config, "--quiet", "--to", "merge")
    known = dry(project)
    assert known["judge", "openai/small"]["exact"]
    call("run", "--config", project.config, "--quiet")
    found = rows(project)
    by_big = [row for row in found if row["judge"] == "litellm openai/big"]
    assert 0 < len(by_big) < len(found) == known["judge", "openai/big"]["calls"]
    assert asked(server, "grades") == {"small": known["judge", "openai/small"]["calls"]}
    assert asked(server) == {"big": len(by_big)}
    assert all(row["votes"]["litellm openai/small"][0] < 4 or row in by_big for row in found)
    call("audit", project.run)


def test_behind_people_and_with_samples_the_audit_finds_nothing(tmp_path: Path) -> None:
    noisy = {"type": "qrels", "path": "qrels.txt", "grade_noise": 0.3}
    inner = {"type": "cascade", "judges": [noisy, {"type": "qrels", "path": "qrels.txt"}], "samples": 2, "audit": 0.2}
    people = {"type": "panel", "rule": "first", "judges": [{"type": "human"}, inner]}
    project = make_project(tmp_path, queries=3, judge={"judge": people, "samples": 2}, rank={"max_calls": 2})
    assert "cascade: agreement by cheap grade:" in call("run", "--config", project.config, "--details").output
    assert set(rows(project)[0]["votes"]) >= {"qrels qrels.txt", "qrels qrels.txt #sample 2"}
    assert {row["judge"] for row in rows(project)} == {"qrels qrels.txt", "qrels qrels.txt #2"}
    call("audit", project.run)
    read = rows(project)[1]
    call("review", "set", project.run, read["qid"], read["doc_id"], 5, "--annotator", "ada")
    call("run", "--config", project.config, "--quiet", "--yes")
    spoken = next(row for row in rows(project) if row["doc_id"] == read["doc_id"] and row["qid"] == read["qid"])
    assert (spoken["judge"], spoken["grades"], spoken["votes"]) == ("human: ada", [5], {"human": [5]})
    call("audit", project.run)
