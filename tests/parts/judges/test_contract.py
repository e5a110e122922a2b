"""What holds for every judge that needs no language model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.contracts import more_of, says, settings_of
from support.judging import judge, passage, query

from raggs.base.errors import DataError
from raggs.parts.judges import REGISTRY

JUDGES = [name for name in REGISTRY if "model" not in REGISTRY.load(name).Config.model_fields]
QUESTIONS = [
    query(
        f"q{number}",
        nuggets=[{"any": ["alpha"]}, {"any": ["beta"]}],
        references=[{"text": "alpha beta gamma delta epsilon"}],
    )
    for number in range(3)
]
TEXTS = ["alpha beta gamma", "alpha beta gamma delta epsilon", "nothing", "beta", "alpha alpha alpha", "nothing"]
PASSAGES = [passage(f"d{number}", text) for number, text in enumerate(TEXTS)]
Settings = Callable[[str, Path], dict[str, Any]]
MORE = {".txt": "q1 0 d2 3", ".jsonl": '{"qid": "q1", "doc_id": "d2", "grade": 3}', ".py": "# another file"}


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> Settings:
    return lambda name, folder: settings_of("judges", name, folder, request)


def answers(who: Any) -> list[Any]:
    async def ask() -> list[Any]:
        grades = [await who.grade(question, each) for question in QUESTIONS for each in PASSAGES]
        orders = [await who.order(question, PASSAGES[start:]) for question in QUESTIONS for start in range(5)]
        return [*grades, *orders]

    return asyncio.run(ask())


@pytest.mark.parametrize("name", JUDGES)
def test_grades_are_on_the_scale_or_failures_and_orders_are_permutations(
    name: str, tmp_path: Path, settings: Settings
) -> None:
    for answer in answers(judge(name, **settings(name, tmp_path))):
        if hasattr(answer, "grade"):
            spoke = answer.error is None and answer.silent is None
            assert answer.grade in {1, 2, 3, 4, 5} if spoke else answer.grade is None
        elif answer.error is None and answer.silent is None:
            assert sorted(answer.order) in [list(range(size)) for size in range(2, 7)]
        else:
            assert answer.order is None


@pytest.mark.parametrize("name", JUDGES)
def test_a_judge_built_again_answers_alike(name: str, tmp_path: Path, settings: Settings) -> None:
    config = settings(name, tmp_path)
    who = judge(name, **config)
    assert answers(who) == answers(who) == answers(judge(name, **config))


@pytest.mark.parametrize("name", JUDGES)
def test_an_order_of_one_is_that_one(name: str, tmp_path: Path, settings: Settings) -> None:
    who = judge(name, **settings(name, tmp_path))
    assert asyncio.run(who.order(QUESTIONS[0], PASSAGES[:1])).order == (0,)


@pytest.mark.parametrize("name", JUDGES)
@pytest.mark.parametrize("task", ["grade", "order"])
def test_causes_are_json_and_follow_the_content_not_the_path(
    name: str, task: str, tmp_path: Path, settings: Settings
) -> None:
    config = settings(name, tmp_path)

    def causes(config: dict[str, Any]) -> list[Any]:
        who = judge(name, **config)
        return [who.causes(task), who.told if task == "order" else None]

    before = causes(config)
    assert json.loads(json.dumps(before)) == before
    assert causes(config) == before
    moved = settings(name, tmp_path / "elsewhere")
    assert causes(moved) == before
    for path in (tmp_path / "elsewhere").iterdir():
        with path.open("a") as file:
            file.write((more_of("judges", name) or MORE[path.suffix]) + "\n")
        assert causes(moved) != before


@pytest.mark.parametrize("name", JUDGES)
def test_check_accepts_its_queries_and_refuses_those_it_cannot_judge(
    name: str, tmp_path: Path, settings: Settings
) -> None:
    who = judge(name, **settings(name, tmp_path))
    who.check(QUESTIONS)
    who.check(iter(QUESTIONS))
    if says("judges", name, "JUDGES_ANY_QUERY"):
        return
    with pytest.raises(DataError) as caught:
        who.check([query("unknown")])
    assert caught.value.remedy


@pytest.mark.parametrize("name", JUDGES)
def test_its_name_begins_with_its_type(name: str, tmp_path: Path, settings: Settings) -> None:
    assert judge(name, **settings(name, tmp_path)).name.split()[0] == name
