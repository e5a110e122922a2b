"""A judge whose sharpness and favour are known, and one behind a server that counts: figures, money, kills."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.llm_server import KEY, LLMServer
from support.paying import MODEL
from support.project import Project, make_project

from raggs.app.diagnose import DiagnoseRequest, DiagnosisResult, forecast_diagnosis, run_diagnosis
from raggs.app.run import run
from raggs.base.errors import PrerequisiteError, SnapshotError, UsageError
from raggs.diagnosis.base import kind_of
from raggs.diagnosis.judge import verdict
from raggs.diagnosis.judge.measuring import JudgeFindings, PoolsPart
from raggs.llm.cache import AnswerCache

NUMBERS = itertools.count()
SMALL = {"pools": 2, "size": 8, "rankings": 2}
# Functions of a user: they know the texts alone, and order by Plackett-Luce over grades that come of these.
MODULE = """
import hashlib, math, random

RNG = random.Random(1)

def _hash(text):
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % 10_000 / 10_000

def grade(query, passage):
    return int(_hash(query + passage) * 5) + 1

def ordered(sharpness, favour):  # favour: the log-odds that being shown first rather than last adds
    def order(query, passages):
        def key(place):
            utility = grade(query, passages[place]) + _hash(passages[place] + query) - 0.5
            shown = 0.5 - place / max(1, len(passages) - 1)
            return sharpness * utility + favour * shown - math.log(-math.log(RNG.random()))
        return sorted(range(len(passages)), key=key, reverse=True)
    return order

fair, early, sharp, coin = ordered(3.0, 0.0), ordered(3.0, 2.0), ordered(12.0, 0.0), ordered(0.0, 0.0)

def refuses(query, passages):
    raise ValueError("not today")
"""


def project(folder: Path, order: str, **rank: Any) -> Project:
    """24 passages and 10 questions; the judge is a function of `MODULE`."""
    made = make_project(folder, queries=10, corpus=24)
    name = f"judge_{folder.name.replace('-', '_')}_{next(NUMBERS)}"  # no module is imported twice
    (folder / f"{name}.py").write_text(MODULE)
    judge = {"type": "python", "callable": f"{name}:grade", "order": f"{name}:{order}"}
    made.change(judge={"judge": judge}, rank={"max_calls": 16, **rank})
    return made


def found(made: Project, **settings: Any) -> JudgeFindings:
    part = diagnosed(made, **settings).found
    assert isinstance(part, JudgeFindings)
    return part


def diagnosed(made: Project, **settings: Any) -> DiagnosisResult:
    return run_diagnosis(DiagnoseRequest("judge", made.config, settings, out=made.folder / "out"))


def holds(part: PoolsPart, value: float) -> bool:
    assert part.low is not None
    assert part.high is not None
    return part.low <= value <= part.high


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """A judge that answers by rule."""
    made = make_project(folder, queries=3, corpus=16)
    return {"config": made.config, "settings": SMALL}


def test_a_favour_and_what_the_rank_stage_buys_are_found(tmp_path: Path) -> None:
    part = found(project(tmp_path / "early", "early", options={"saving": 0}), size=24)  # every call that is allowed
    for favour in (part.favour.single, part.favour.ranked):  # intervals of ten pools are a little too short
        assert 0 < (favour.low or 0) < 2.0 / 3.0
        assert 0.5 * 2.0 / 3.0 < (favour.mean or 0) < 1.5 * 2.0 / 3.0
    assert (part.favour.toward.low or 0) > 0.5
    assert (part.gain.low or 0) > 0
    gain = " ".join(f"{100 * (value or 0):.1f}" for value in (part.gain.mean, part.gain.low, part.gain.high))
    mean, low, high = gain.split()
    change = f"it reverses {mean} [{low}, {high}] percentage points fewer pairs than one prompt with the grades"
    assert f"Ranking is worthwhile: {change}" in part.verdict
    assert "early passages are preferred" in str(part_sections(part))
    worse = part.model_copy(update={"gain": PoolsPart(mean=-0.02, low=-0.031, high=-0.01, pools=10)})
    assert "not worthwhile: it reverses 2.0 [1.0, 3.1] percentage points more pairs than" in verdict(worse)
    unsure = part.model_copy(update={"gain": PoolsPart(mean=-0.004, low=-0.01, high=0.003, pools=10)})
    assert "ranking reverses 0.4 [-0.3, 1.0] percentage points more pairs than" in verdict(unsure)
    assert part.single.calls == part.informed.calls == 1
    assert (part.informed.otherwise.mean or 0) < (part.single.otherwise.mean or 0)
    assert part.ranked.calls == 16
    assert part.single.asked == 10 * 2 * 2


def part_sections(part: JudgeFindings) -> list[str]:
    return [sentence for section in kind_of("judge").sections(part) for sentence in section.sentences]


def test_a_fair_judge_has_no_favour_and_a_sharper_one_turns_less(tmp_path: Path) -> None:
    parts = {name: found(project(tmp_path / name, name), size=24, rankings=1) for name in ("fair", "sharp", "coin")}
    assert holds(parts["fair"].favour.toward, 0.5)
    assert holds(parts["fair"].favour.single, 0.0)
    assert holds(parts["coin"].single.again, 0.5)
    assert holds(parts["coin"].sharpness, 0.0)
    turns = [parts[name].single.again.mean or 0 for name in ("sharp", "fair", "coin")]
    assert turns == sorted(turns)
    assert (parts["sharp"].sharpness.low or 0) > (parts["fair"].sharpness.high or 0)
    assert parts["fair"].ranked.otherwise.mean is None, "one ranking has nothing to be compared with"
    kept = parts["sharp"].places[0]
    assert (kept.first, parts["sharp"].places[-1].last) == (1, parts["sharp"].size - 1)


def test_the_simulated_judge_of_the_house_errs_anew_when_it_is_asked_again(tmp_path: Path) -> None:
    made = make_project(tmp_path, queries=10, corpus=24)
    judge = made.settings()["judge"]["judge"]
    parts = {}
    for beta in (1.5, 6.0):
        made.change(judge={"judge": {**judge, "beta": beta, "spread": 0.35}}, rank={"max_calls": 16})
        parts[beta] = found(made, size=20, rankings=1)
    blunt, sharp = parts[1.5], parts[6.0]
    assert (blunt.single.again.low or 0) > (sharp.single.again.high or 0) > 0
    assert (blunt.sharpness.high or 0) < (sharp.sharpness.low or 0)
    assert holds(blunt.favour.toward, 0.5)


def test_a_judge_that_refuses_is_said_to_and_nothing_is_made_up(tmp_path: Path) -> None:
    part = found(project(tmp_path, "refuses", max_calls=4), **SMALL)
    assert part.single.failed == part.single.asked == 8
    assert part.ranked.failed == part.ranked.asked == 16
    assert part.single.again.mean is part.gain.mean is part.sharpness.mean is None
    assert "were not a valid order" in part.verdict
    assert "not today" in next(iter(part.errors))


def test_a_judge_that_answers_by_rule_turns_nothing_and_has_no_sharpness_to_tell(tmp_path: Path) -> None:
    made = project(tmp_path, "fair", max_calls=4)
    made.change(judge={"judge": {**made.settings()["judge"]["judge"], "order": None}})  # by its grades
    part = found(made, **SMALL)
    assert part.single.otherwise.mean == part.ranked.otherwise.mean == 0
    assert part.sharpness.mean is part.favour.single.mean is None
    alone = found(made, **SMALL | {"pools": 1})  # one pool has no interval
    assert all("passages every time, so repeated ranking adds nothing" in each.verdict for each in (part, alone))


def test_pools_are_those_of_the_run_where_it_judged_and_searched_for_before(tmp_path: Path) -> None:
    made = project(tmp_path, "fair", max_calls=3)
    before = found(made, **SMALL)
    assert before.grading["calls"] == 2 * 8
    run(made.config)
    after = found(made, **SMALL)
    assert after.grading["calls"] == 0
    assert after.pools == 2
    made.change(rank={"floor": 3})
    assert any("of at least grade 3" in line for line in forecast_diagnosis(DiagnoseRequest("judge", made.config)).what)
    assert found(made, **{**SMALL, "size": 20}).size < 20 - 5
    made.change(rank={"floor": 5})
    with pytest.raises(PrerequisiteError, match=r"grade 5 \(rank\.floor\).*rank\.floor=1 to order"):
        found(made, **SMALL)
    made.change(rank=None)
    assert found(made, **SMALL).batch == 5, "ranking is left out: what its defaults would buy"


def paid(folder: Path, server: LLMServer, **llm: Any) -> Project:
    made = make_project(folder, queries=4, corpus=16)
    prices = {MODEL: {"input": 1.0, "output": 2.0}}
    settings = {"api_base": server.url, "backoff_s": 0.01, "prices": prices, **llm}
    made.change(judge={"judge": {"type": "litellm", "model": MODEL}}, llm=settings, rank={"max_calls": 6})
    made.change(rank={"min_best_grade": 1})  # every pool is ordered, whatever its grades
    return made


def ledger(made: Project) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (made.folder / "out" / "llm.ledger.jsonl").read_text().splitlines()]


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.mark.usefixtures("key")
def test_calls_at_the_server_are_those_of_the_ledger_and_no_more_than_the_dry_run_said(tmp_path: Path) -> None:
    with LLMServer() as server:
        made = paid(tmp_path, server)
        said = forecast_diagnosis(DiagnoseRequest("judge", made.config, SMALL, out=made.folder / "out"))
        assert server.count == 0
        part = found(made, **SMALL)
        lines = ledger(made)
        assert server.count == sum(line["attempts"] for line in lines)
        by_part = {line.stage: line for line in said.estimates}
        assert (by_part["grades"].calls, by_part["one prompt"].calls) == (16, 8)
        assert server.count <= sum(line.calls for line in said.estimates)
        assert sum(line["usd"] for line in lines) <= sum(line.usd or 0 for line in said.estimates)
        shares = part.single.usd * 8 + part.ranked.usd * 4 + part.grading["usd"]
        assert shares == pytest.approx(sum(line["usd"] for line in lines))
        bodies = Counter(json.dumps(body, sort_keys=True) for body in server.requests)
        whole = [count for body, count in bodies.items() if "Passage H:" in body]
        assert whole == [2, 2, 2, 2], "each of two showings of two pools was asked twice, by itself"
        again = found(made, **{**SMALL, "top": 3})
        assert again.single.usd == part.single.usd
        assert server.count == sum(bodies.values()), "what was paid for is not paid again"
        later = forecast_diagnosis(DiagnoseRequest("judge", made.config, {**SMALL, "top": 4}, out=tmp_path / "o"))
        assert [line.calls for line in later.estimates] == [0, 0, 0]


@pytest.mark.usefixtures("key")
def test_a_resumed_diagnosis_stops_at_another_snapshot(tmp_path: Path) -> None:
    with LLMServer() as server:
        made = paid(tmp_path, server, concurrency=1)
        server.states = {"model": "old-1"}
        found(made, **SMALL)
        server.states = {"model": "new-2"}
        request = DiagnoseRequest("judge", made.config, {**SMALL, "size": 6}, out=made.folder / "out")
        with pytest.raises(SnapshotError, match="answers as new-2, but earlier answers of this run are from old-1"):
            run_diagnosis(request)
        run_diagnosis(replace(request, allow_mixed=True))


@pytest.mark.usefixtures("key")
def test_a_server_that_misbehaves_costs_attempts_that_are_booked_and_refusals_are_counted(tmp_path: Path) -> None:
    faults = ["500", None, "garbage", *["wrong type"] * 3, None, "cut body"]
    with LLMServer(faults=faults) as server:
        made = paid(tmp_path, server, concurrency=1)
        part = found(made, **SMALL)
        assert server.count == sum(line["attempts"] for line in ledger(made))
        assert part.single.again.pools == 2


def _killed_after(config: str, out: str, answers: int) -> None:
    put, done = AnswerCache.put, Counter[str]()

    def counted(self: AnswerCache, *given: Any) -> None:
        put(self, *given)
        done["put"] += 1
        if done["put"] == answers:
            os.kill(os.getpid(), signal.SIGKILL)

    AnswerCache.put = counted  # type: ignore[method-assign]
    run_diagnosis(DiagnoseRequest("judge", Path(config), SMALL, out=Path(out)))


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("answers", [18, 30])
def test_a_kill_pays_nothing_twice_and_changes_no_byte(tmp_path: Path, answers: int) -> None:
    """In the orders of one prompt, and in the rankings; one call at a time, so that none is on its way."""
    with LLMServer() as server:
        whole = paid(tmp_path / "whole", server, concurrency=1)
        first = diagnosed(whole, **SMALL)
        undisturbed = server.count
        made = paid(tmp_path / "killed", server, concurrency=1)
        child = multiprocessing.get_context("fork").Process(
            target=_killed_after, args=(str(made.config), str(made.folder / "out"), answers)
        )
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
        assert server.count - undisturbed == answers
        second = diagnosed(made, **SMALL)
        assert server.count == 2 * undisturbed
        assert second.files[0].read_bytes() == first.files[0].read_bytes()


@pytest.mark.parametrize(
    ("settings", "config", "error", "said"),
    [
        ({"size": 4}, True, UsageError, "size"),
        ({}, False, PrerequisiteError, "--config raggs.yaml"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    tmp_path: Path, settings: dict[str, Any], config: bool, error: type[Exception], said: str
) -> None:
    made = project(tmp_path, "fair")
    with pytest.raises(error, match=said):
        run_diagnosis(DiagnoseRequest("judge", made.config if config else None, settings, out=tmp_path / "out"))


def test_without_a_price_a_capped_judge_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with LLMServer() as server:
        made = paid(tmp_path, server)
        made.change(llm={"prices": {}}, budget={"max_usd": 1.0})
        with pytest.raises(Exception, match="price"):
            found(made, **SMALL)
        assert server.count == 0
