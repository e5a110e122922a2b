"""What samples tell of company: nought of a judge that has no eye for it, its slope of one that has, after any walk."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pytest
from support.judging import query
from support.pooled import pool

from raggs.base.hashing import generator
from raggs.base.judge_health import GradeShift, JudgeHealth
from raggs.parts.judges import Judgment
from raggs.runs.manifests.messages import CONTEXT_EFFECTS, health_lines
from raggs.stages.base import StageWork
from raggs.stages.judge import STAGE, JudgeConfig

MODEL = {"type": "litellm", "model": "openai/judge"}


class Leaky:
    """Sees the grade in the text with a new error each time, drawn by `leak` of the way to the mean of the others."""

    name = "leaky"
    alone = frozenset[str]()

    def __init__(self, leak: float, first: float) -> None:
        self.leak, self.first = leak, first

    def calls(self, task: str) -> dict[str, Any]:
        return {}

    def apart(self, question: Any, one: Any, other: Any) -> bool:
        return False

    async def grades(self, question: Any, passages: Sequence[Any], *, sample: int = 0) -> Sequence[Judgment]:
        seen = [
            float(each.text) + float(generator(1, question.qid, each.doc_id, sample).normal(0, 0.4))
            for each in passages
        ]
        found = []
        for place, own in enumerate(seen):
            others = seen[:place] + seen[place + 1 :]
            moved = own + self.leak * (fmean(others) - own) if others else own
            moved += self.first * (place == 0)
            found.append(Judgment(min(5, max(1, round(moved)))))
        return found


def health_of(leak: float, questions: int = 60, first: float = 0.0, **config: Any) -> JudgeHealth:
    pools = [
        pool(f"q{number}", [str(int(generator(2, number, place).integers(1, 6))) for place in range(13)], [0] * 13)
        for number in range(questions)
    ]
    records = [record for each in pools for record in each]
    settings = JudgeConfig(**{"judge": MODEL, "samples": 3, "group": 4, **config})
    statistics = STAGE.statistics(settings)
    with asyncio.Runner() as loop:
        queries = {record.qid: query(record.qid) for record in records}
        services: Any = SimpleNamespace(
            workspace=SimpleNamespace(loop=loop, concurrency=8, affords=lambda: math.inf),
            judge=Leaky(leak, first),
            queries=queries,
        )
        for record in STAGE.run(StageWork({"merge": lambda: iter(records)}), settings, services):
            statistics.see(record)
    health = statistics.health()
    assert isinstance(health, JudgeHealth)
    return health


def measured(leak: float, questions: int = 60, **config: Any) -> tuple[GradeShift | None, list[str]]:
    health = health_of(leak, questions, **config)
    lines = [
        line.text
        for line in health_lines(health.model_copy(update={"place": None}))
        if "group context" in line.text or line.warning
    ]
    return health.samples.company if health.samples else None, lines


@pytest.mark.parametrize("config", [{}, {"stop_after": 4}])
def test_a_leak_is_measured_and_no_leak_is_none(config: dict[str, Any]) -> None:
    none, lines = measured(0.0, **config)
    assert none is not None and none.grades is not None and none.interval is not None
    assert none.interval[0] <= 0 <= none.interval[1] and abs(none.grades) < 0.05
    assert none.questions == 60 and len(lines) == 1
    for leak in (0.4, -0.4):
        found, lines = measured(leak, **config)
        assert found is not None and found.grades is not None and found.interval is not None
        assert abs(found.grades) > 0.1 and found.grades * leak > 0
        assert found.interval[0] <= found.grades <= found.interval[1]
        assert CONTEXT_EFFECTS["samples"] in lines[0]
        assert "depend on the other passages of the call" in lines[1]


def test_what_a_place_in_a_call_does_is_told_without_samples() -> None:
    fair, favoured = health_of(0.0, samples=1).place, health_of(0.0, first=0.8, samples=1).place
    assert fair is not None and fair.interval is not None and fair.interval[0] <= 0 <= fair.interval[1]
    assert favoured is not None and favoured.grades is not None and favoured.interval is not None
    assert favoured.grades > 0.4 and favoured.interval[0] > fair.interval[1] - 0.3
    told = [line.text for line in health_lines(JudgeHealth(place=favoured))]
    assert "if it is shown first in a call rather than last (60 queries)" in told[0]
    assert told[1].startswith("warning: ")


def test_who_grades_one_by_one_or_once_has_nothing_to_tell() -> None:
    assert measured(0.2, questions=2, judge={"type": "nuggets"})[0] is None
    assert STAGE.statistics(JudgeConfig(judge=MODEL, group=4)).health() is None
