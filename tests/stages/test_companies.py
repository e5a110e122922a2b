"""Canaries in company: what a leak between passages does to grades is seen, and a judge without one has none."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from statistics import fmean

import pytest

from raggs.base.artifacts import MergeRecord, Passage, Query
from raggs.base.judge_health import CanaryHealth, JudgeHealth
from raggs.parts.judges import Judgment
from raggs.runs.manifests.messages import health_lines
from raggs.stages.canaries import INJECTED_GROUP_ORDER, KINDS, CanaryPlan, ask_plan, make_plan, planned_calls, shift_of

COUNT, SIZE = 16, 4


def truth(query: Query, passage: Passage) -> int:
    """By rank in its own question's pool, which the text says; a passage of another question is of no use."""
    rank = re.search(rf"{query.text.split()[-1]} (\d)", passage.text)
    return 5 - min(3, int(rank[1])) if rank else 1


def pool(number: int) -> list[MergeRecord]:
    return [
        MergeRecord(
            qid=f"q{number}", rank=rank + 1, doc_id=f"d{number}-{rank}", score=1.0, sources={},
            text=f"topic{number} {rank} is told here. It has two sentences.",
        )
        for rank in range(6)
    ]  # fmt: skip


QUERIES = {f"q{number}": Query(qid=f"q{number}", text=f"What of topic{number}") for number in range(COUNT)}


def plan(questions: int = COUNT, share: float = 0.5) -> CanaryPlan:
    return make_plan(lambda: ((f"q{number}", pool(number)) for number in range(questions)), QUERIES, share, 1, SIZE)


class Grader:
    """Grades by the truth, moved by `leak` of the grades of the others and of their texts."""

    name = "grader"

    def __init__(self, leak: Callable[[list[int], list[str]], float] = lambda *_: 0.0) -> None:
        self.leak = leak
        self.asked: list[tuple[str, int, tuple[str, ...]]] = []

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        raise AssertionError("canaries are shown in company, as the others are")

    async def grades(self, query: Query, passages: Sequence[Passage], *, sample: int = 0) -> Sequence[Judgment]:
        self.asked.append((query.qid, sample, tuple(passage.doc_id for passage in passages)))
        true = [truth(query, passage) for passage in passages]
        found = []
        for place, own in enumerate(true):
            others = true[:place] + true[place + 1 :]
            texts = [passage.text for passage in (*passages[:place], *passages[place + 1 :])]
            found.append(Judgment(max(1, min(5, round(own + self.leak(others, texts))))))
        return found

    def apart(self, query: Query, one: Passage, other: Passage) -> bool:
        return False


def ask(leak: Callable[[list[int], list[str]], float] = lambda *_: 0.0, **made: int) -> tuple[CanaryHealth, Grader]:
    judge = Grader(leak)
    return asyncio.run(ask_plan(judge, plan(**made))), judge


def told(found: CanaryHealth) -> list[str]:
    return [line.text for line in health_lines(JudgeHealth(canaries=found)) if line.warning]


def test_a_judge_that_grades_each_as_if_alone_shows_no_shift_and_passes() -> None:
    found, judge = ask()
    assert set(found.kinds) == set(KINDS) - {"answers"}
    assert found.passed.rate == 1.0
    assert {name: (shift.grades, shift.interval) for name, shift in found.company.items()} == {
        "neighbours": (0.0, (0.0, 0.0)),
        "incited": (0.0, (0.0, 0.0)),
    }
    assert not told(found)
    assert len(judge.asked) == len(set(judge.asked)), "nothing is asked twice"
    assert judge.asked == ask()[1].asked, "and the same each time"


@pytest.mark.parametrize("sign", [1, -1])
def test_grades_drawn_to_their_neighbours_or_pushed_away_are_seen(sign: int) -> None:
    found, _ = ask(lambda others, _: sign * 0.5 * (fmean(others) - 2))
    shift = found.company["neighbours"]
    assert shift.grades is not None and shift.interval is not None
    assert sign * shift.grades >= 1
    assert shift.interval[0] <= shift.grades <= shift.interval[1]
    assert len(told(found)) == 1


def test_a_neighbour_that_speaks_for_all_is_heard_by_a_judge_that_obeys() -> None:
    found, _ = ask(lambda _, texts: 4 if any(INJECTED_GROUP_ORDER in text for text in texts) else 0)
    assert found.company["incited"].grades is not None
    assert found.company["incited"].grades > 2
    assert found.company["neighbours"].grades == 0
    assert "depend on the other passages of the call" in told(found)[0]


def test_company_is_the_same_but_for_what_is_compared() -> None:
    made = plan()
    for leak in made.leaks:
        places = {each.passages.index(next(p for p in each.passages if p.doc_id == leak.target)) for each in
                  (leak.good, leak.bad, leak.incited)}  # fmt: skip
        assert len(places) == 1
        assert len(leak.good.passages) == len(leak.bad.passages) == SIZE
        changed = [one for one, other in zip(leak.bad.passages, leak.incited.passages, strict=True) if one != other]
        assert len(changed) == 1
    for trial in made.trials:
        if trial.whole is not None:
            assert sum(a != b for a, b in zip(trial.among.passages, trial.whole.passages, strict=True)) <= 1
    assert len(made.leaks) == 12
    assert len(made.companies()) <= planned_calls(0.5, COUNT * 2)


def test_what_cannot_be_made_is_left_out_and_said() -> None:
    found, _ = ask(questions=1)
    assert found.company["neighbours"].questions == 0
    lines = [line.text for line in health_lines(JudgeHealth(canaries=found))]
    assert (
        "group context: too few queries to measure how a grade changes next to good passages rather than bad ones"
        in lines
    )
    assert shift_of([0.5]).interval is None
    assert shift_of([0.0, 1.0]).interval == (-5.8531, 6.8531)
