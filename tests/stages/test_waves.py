"""A budget that all questions share: whose turn it is hangs on the answers alone, and never costs more."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.forging import edit_file, edit_manifest
from support.llm_server import KEY, LLMServer
from support.paying import MODEL, paying
from support.project import Project, files_copied, make_project, raggs
from support.stopping import stop_at
from support.worlds import World, make_world

from raggs.app.audit import audit
from raggs.base.artifacts import JournalRecord
from raggs.base.errors import ConfigError
from raggs.base.judge_health import STOP_BUDGET, STOP_NO_ORDER
from raggs.base.judge_health import STOP_SHARED_BUDGET as SHARED_OUT
from raggs.base.settings import causes_of
from raggs.runs.manifests.rank_messages import STOPS
from raggs.stages.rank_config import DEFAULT_SHARED_MAX_CALLS, RankConfig
from raggs.stages.replay import Batch, JournalAnswers, KeptPool, Replay, replay
from raggs.stages.waves import SetBudget, SharedBudget, Waves, known_prices

SHARED = {"top": 5, "max_calls": 40, "parallel": 2, "budget": {"calls": 30}}
WORLDS = {f"q{seed}": make_world(seed, 4 + 6 * seed) for seed in range(5)}


def shares(project: Project) -> Counter[str]:
    lines = (project.run / "rank.journal.jsonl").read_text().splitlines()
    return Counter(json.loads(line)["qid"] for line in lines)


def reasons(project: Project, artifact: str = "rank.queries") -> dict[str, str]:
    lines = map(json.loads, (project.run / f"{artifact}.jsonl").read_text().splitlines())
    return {line["qid"]: line["stop_reason"] for line in lines}


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("set"), queries=5, corpus=30, rank=SHARED)
    done = raggs("run", "--config", project.config, "-q")
    assert done.returncode == 0, done.stderr
    return project


def test_the_budget_is_spent_where_it_promises_most_and_everybody_tells(ranked: Project) -> None:
    calls = shares(ranked)
    assert calls.total() == 30 and len(calls) == 5 and len(set(calls.values())) > 1
    assert SHARED_OUT in reasons(ranked).values()
    counts = ranked.manifest()["stages"]["rank"]["counts"]
    assert (counts["calls of all"], counts["least"], counts["most"]) == (30, min(calls.values()), max(calls.values()))
    assert raggs("audit", ranked.run).returncode == 0
    assert "budget: 30 calls over 5 queries" in raggs("status", ranked.run, "--details").stdout
    most = max(calls, key=lambda qid: (calls[qid], qid))
    why = raggs("why", ranked.run, "--query", most, "--details").stdout
    fewer = sum(count < calls[most] for count in calls.values())
    shared = f"5 queries share 30 calls; this query got {calls[most]}, the mean is 6.0: {fewer} got fewer, 0 got more"
    assert shared in why
    assert "this query had the most uncertain top" in why and "a higher value reduces the uncertainty" in why


def test_a_greater_budget_goes_on_where_the_smaller_one_ended(ranked: Project, tmp_path: Path) -> None:
    project = make_project(tmp_path / "more", queries=5, corpus=30, rank=SHARED)
    assert raggs("run", "--config", project.config, "-q").returncode == 0
    assert project.artifacts() == ranked.artifacts()
    before = set((project.run / "rank.journal.jsonl").read_text().splitlines())
    more = ("--set", "rank.budget.calls=40")
    assert raggs("run", "--config", project.config, "-q", *more).returncode == 0
    assert before < set((project.run / "rank.journal.jsonl").read_text().splitlines())
    assert shares(project).total() == 40 and raggs("audit", project.run).returncode == 0
    assert raggs("run", "--config", project.config, "-q").returncode == 0
    assert project.artifacts() == ranked.artifacts()


def test_an_audit_finds_rounds_that_were_nobodys_turn(ranked: Project, tmp_path: Path) -> None:
    copy = files_copied(ranked.run, tmp_path / "copy")

    def edit(content: dict[str, Any]) -> None:
        content["stages"]["rank"]["params"]["budget"]["calls"] = 24

    edit_manifest(copy, edit, reseal=True)
    done = raggs("audit", copy)
    assert done.returncode != 0 and "entries after the end" in done.stdout + done.stderr
    copy = files_copied(ranked.run, tmp_path / "torn")
    edit_file(copy, "rank.journal.jsonl", lambda data: data[: data[:-1].rindex(b"\n") + 1], reseal=True)
    done = raggs("audit", copy)
    assert done.returncode != 0 and "slot 1 is missing" in done.stdout + done.stderr


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize(
    ("rank", "at"),
    [({"budget": {"usd": 0.03}}, 15), ({**SHARED, "batch_size": "auto"}, 21)],
)
def test_neither_kills_nor_concurrency_change_a_byte(
    tmp_path: Path, rank: dict[str, Any], at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with LLMServer() as server:
        calm, killed = (paying(tmp_path / name, server, queries=4) for name in ("calm", "killed"))
        calm.change(rank={**SHARED, "budget": None, **rank}, llm={"concurrency": 1})
        killed.change(rank={**SHARED, "budget": None, **rank}, llm={"concurrency": 7})
        for project in (calm, killed):
            assert raggs("run", "--config", project.config, "-q", "--yes", "--to", "prune").returncode in (0, 7)
        assert raggs("run", "--config", calm.config, "-q", "--yes").returncode == 0
        stop_at(server, killed, server.count + at)
        assert raggs("run", "--config", killed.config, "-q", "--yes").returncode == 0
        assert killed.artifacts() == calm.artifacts()
        assert SHARED_OUT in reasons(calm).values() and raggs("audit", calm.run).returncode == 0


def test_money_that_ends_in_a_wave_leaves_all_rankings_with_what_is_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with LLMServer() as server:
        calm, short = (paying(tmp_path / name, server, queries=4) for name in ("calm", "short"))
        for project in (calm, short):
            project.change(rank={**SHARED, "budget": {"calls": 20}}, llm={"concurrency": 4})
        assert raggs("run", "--config", calm.config, "-q", "--to", "judge").returncode == 0
        grades = server.count
        assert raggs("run", "--config", calm.config, "-q").returncode == 0
        whole = server.count
        capped = ("run", "--config", short.config, "--json", "--max-calls", grades + 12)
        told = json.loads((first := raggs(*capped)).stdout)
        assert first.returncode == 7 and server.count == whole + grades + 12
        assert told["bought"]["ranked"] == 4 and told["bought"]["short"] > 0
        assert not audit(short.run).findings
        cut = next(qid for qid, reason in reasons(short, "rank.queries.partial").items() if reason == STOP_BUDGET)
        why = raggs("why", short.run, "--query", cut, "--details").stdout
        assert "this query got" in why and f"\n  {STOPS[STOP_BUDGET]}\n" in why
        part = (short.run / "rank.partial.jsonl").read_bytes()
        assert json.loads(raggs(*capped).stdout) == told and (short.run / "rank.partial.jsonl").read_bytes() == part
        assert raggs("run", "--config", short.config, "-q").returncode == 0
        assert short.artifacts() == calm.artifacts() and server.count == 2 * whole, "nothing is paid for twice"


def test_a_price_that_means_nothing_is_refused_before_anything_is_paid(tmp_path: Path) -> None:
    project = make_project(tmp_path, rank={"budget": {"usd": 1}})
    done = raggs("run", "--config", project.config, "-q")
    assert done.returncode == 5 and "this judge is free" in done.stderr and "rank.budget.calls" in done.stderr
    with pytest.raises(ConfigError, match=r"the price of m is unknown, so raggs cannot enforce rank.budget.usd"):
        known_prices({"prompt": 200, "models": {"m": None}})


def test_a_dry_run_is_bounded_by_the_budget(tmp_path: Path) -> None:
    with LLMServer() as server:
        project = paying(tmp_path, server, queries=4)
        for budget, line in (({"calls": 34}, "≤ 34"), ({"usd": 0.02}, "≤ ")):
            project.change(rank={"budget": budget, "max_calls": 100})
            shown = raggs("run", "--config", project.config, "--dry-run").stdout
            told = next(each for each in shown.splitlines() if each.startswith("rank ") and MODEL in each)
            assert line in told, shown
            assert "usd" not in budget or 0.015 < float(told.split()[5]) <= 0.02, told


# --- the fold -------------------------------------------------------------------------------------------------


def pool_of(qid: str, world: World) -> KeptPool:
    return KeptPool(qid, tuple(world.ids), tuple(int(grade) for grade in world.grades.values()), {})


def played(config: RankConfig, calls: int, mute: str = "") -> tuple[dict[str, Any], dict[str, list[JournalRecord]]]:
    """All rankings to the end of a budget, by judges of whom one may say nothing; and their journals."""
    courses = {qid: course for qid, world in WORLDS.items() if (course := config.course(pool_of(qid, world)))}
    judges, journals = {qid: world.judge(2.0) for qid, world in WORLDS.items()}, dict[str, list[JournalRecord]]()
    waves = Waves(courses, SharedBudget(SetBudget(calls=calls), 5, None, ()), {})
    while wave := waves.next():
        for qid, batches in wave.items():
            said = [entry_of(qid, batch, None if qid == mute else tuple(judges[qid](batch.shown))) for batch in batches]
            courses[qid].learn(said)
            journals[qid] = journals.get(qid, []) + said
    assert waves.spent <= calls
    return {qid: course.ranking() for qid, course in courses.items()}, journals


def entry_of(qid: str, batch: Batch, order: tuple[str, ...] | None) -> JournalRecord:
    silent = None if order else "has not read it"
    return JournalRecord(qid=qid, state="s", engine="e", **batch._asdict(), order=order, silent=silent)


@pytest.mark.parametrize(
    ("calls", "floor", "mute", "engine"),
    [
        (3, 1, "", "bayes"),
        (50, 1, "q3", "bayes"),
        (70, 3, "", "bayes"),
        (2000, 1, "q2", "bayes"),
        (90, 1, "", "online"),
    ],
)
def test_each_question_replays_by_itself_what_its_turns_led_to(calls: int, floor: int, mute: str, engine: str) -> None:
    config = RankConfig(engine=engine, top=5, budget=SetBudget(calls=calls), max_calls=60, floor=floor)
    rankings, journals = played(config, calls, mute)
    assert sum(map(len, journals.values())) <= calls
    for qid, ranking in rankings.items():
        course = config.course(pool_of(qid, WORLDS[qid]))
        assert replay(course, JournalAnswers(journals.get(qid, [])), shared=True) == Replay(ranking)
        assert ranking.stop_reason == STOP_NO_ORDER if qid == mute else ranking.stop_reason
        assert calls < 2000 or ranking.stop_reason != SHARED_OUT


def test_a_budget_is_a_cause_only_where_it_is_set_and_leaves_room_to_hard_questions() -> None:
    assert "budget" not in causes_of(RankConfig()) and RankConfig().max_calls == 80
    shared = RankConfig.model_validate({"budget": {"calls": 9}})
    assert causes_of(shared)["budget"] == {"calls": 9, "usd": None} and shared.max_calls == DEFAULT_SHARED_MAX_CALLS
    assert RankConfig.model_validate({"budget": {"calls": 9}, "max_calls": 7}).max_calls == 7
    assert shared.alone == RankConfig() == RankConfig().alone, "by itself a question has calls of its own"
    with pytest.raises(ValueError, match="set exactly one of calls and usd"):
        SetBudget(calls=9, usd=1)
