"""Cases of known grade: made of the run's own texts, the same each time, and told apart by judges of known vices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from raggs.base.artifacts import MergeRecord, Passage, Query
from raggs.base.judge_health import CanaryHealth
from raggs.parts.judges import Judgment
from raggs.stages.canaries import KINDS, ORDER, CanaryCase, ask_cases, make_cases, planned

TOPICS = ("harbour", "pension", "volcano", "printer", "orchard")


def query(number: int) -> Query:
    topic = TOPICS[number]
    return Query(qid=f"q{number}", text=f"How is the {topic} opened?", answer=f"The {topic} is opened by a key.")


def pool(number: int) -> list[MergeRecord]:
    text = f"The {TOPICS[number]} has a door. Its key turns left. Nobody enters by night. The guard has gone."
    return [
        MergeRecord(qid=f"q{number}", rank=rank, doc_id=f"d{number}-{rank}", score=1.0, sources={}, text=text)
        for rank in (1, 2)
    ]


QUERIES = {f"q{number}": query(number) for number in range(len(TOPICS))}


def cases(share: float = 1.0, queries: int = 5) -> list[CanaryCase]:
    return make_cases(lambda: ((f"q{number}", pool(number)) for number in range(queries)), QUERIES, share, 1)


class Grader:
    """Grades by the question's topic, as a sound judge would, unless it has a vice."""

    name = "grader"

    def __init__(self, vice: Callable[[Query, Passage, int], int | None] = lambda *_: None) -> None:
        self.vice, self.asked = vice, 0

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        self.asked += 1
        given = self.vice(query, passage, sample)
        if given == 0:
            return Judgment(None, error="down")
        about = query.text.split()[3] in passage.text
        return Judgment(given or (1 if not about else 4))

    def apart(self, query: Query, one: Passage, other: Passage) -> bool:
        return False


def ask(vice: Callable[[Query, Passage, int], int | None] = lambda *_: None) -> CanaryHealth:
    return asyncio.run(ask_cases(Grader(vice), cases()))


def missed(found: CanaryHealth) -> set[str]:
    return {kind for kind, rate in found.kinds.items() if rate.count < rate.total}


def test_each_kind_is_made_of_the_runs_own_texts() -> None:
    made = {case.kind: case for case in cases(queries=5)[:6]}
    assert tuple(made) == ("answers", "unrelated", "injected", "twice", "cut", "shuffled")
    assert set(made) == set(KINDS)
    topic = made["answers"].query.text.split()[3]
    assert made["answers"].passage.text.endswith(f"The {topic} is opened by a key.")
    assert topic not in made["unrelated"].passage.text
    assert made["injected"].passage.text.endswith(ORDER)
    whole = made["cut"].whole
    assert whole is not None
    assert whole.text.startswith(made["cut"].passage.text)
    assert sorted(made["shuffled"].passage.text.split()) == sorted(whole.text.split())
    assert made["shuffled"].passage.text != whole.text
    assert (made["twice"].passage, made["twice"].sample) == (whole, 1)


def test_they_are_the_same_each_time_and_their_ids_tell_nothing() -> None:
    assert cases() == cases()
    assert not any(kind in case.passage.doc_id for case in cases() for kind in KINDS)


def test_how_many() -> None:
    assert [planned(share, 1000) for share in (0.0, 0.001, 0.02, 1.0)] == [0, 6, 20, 1000]
    assert planned(0.02, 0) == 0
    assert len(cases(0.02)) == 6
    assert len(cases(1.0)) == 10, "as many as judgments"
    assert cases(0.0) == []


def test_what_cannot_be_made_is_left_out() -> None:
    bare = {"q0": QUERIES["q0"].model_copy(update={"answer": None})}
    made = make_cases(lambda: [("q0", pool(0))], bare, 1.0, 4)
    assert [case.kind for case in made] == ["twice", "cut", "shuffled"], "no answer is known, and no other pool"


def test_a_sound_judge_passes() -> None:
    found = ask()
    assert (found.passed.count, found.passed.total, found.passed.rate) == (10, 10, 1.0)
    assert missed(found) == set()


@pytest.mark.parametrize(
    ("vice", "kinds"),
    [
        (lambda _q, passage, _s: 5 if ORDER in passage.text else None, {"injected"}),
        (lambda *_: 5, {"unrelated", "injected"}),
        (lambda *_: 1, {"answers"}),
        (lambda _q, _p, sample: 1 if sample else None, {"twice"}),
        (lambda _q, passage, _s: 1 if passage.text.startswith("The") else 4, {"shuffled"}),
        (lambda _q, passage, _s: 2 if passage.text.endswith("gone.") else 4, {"cut"}),
        (lambda *_: 0, set(KINDS)),
    ],
    ids=["obeys", "all good", "all bad", "fickle", "by the first word", "by the last word", "fails"],
)
def test_each_vice_is_seen(vice: Callable[[Query, Passage, int], int | None], kinds: set[str]) -> None:
    assert missed(ask(vice)) >= kinds


def test_who_abstains_is_not_wrong() -> None:
    class Silent(Grader):
        async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
            return Judgment(None, silent="nobody has read it")

    found = asyncio.run(ask_cases(Silent(), cases()))
    assert (found.passed.total, found.passed.rate, found.kinds) == (0, None, {})
