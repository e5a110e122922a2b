"""A panel: members' votes kept, a rule that settles them, failures of some that are not failures of all."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.contracts import settings_of
from support.judging import graded, judge, ordered, passage, query, written
from support.people import grade, kept

from raggs.parts.judges import Judge, Judgment
from raggs.parts.judges.composite import PanelConfig, PanelJudge

QUERY = query()
PASSAGES = [passage(f"d{number}", "text") for number in range(4)]


def member(folder: Path, name: str, *rows: dict[str, Any], default: int = 1) -> dict[str, Any]:
    lines = [json.dumps({"qid": "q1", **row}) for row in rows]
    return {"type": "scripted", "path": written(folder / f"{name}.jsonl", *lines), "default_grade": default}


def grades(folder: Path, *given: int | str) -> list[dict[str, Any]]:
    """Members of whom each gives d0 a grade, or fails with a reason."""
    rows = [{"doc_id": "d0", **({"grade": each} if isinstance(each, int) else {"fail": each})} for each in given]
    return [member(folder, f"m{number}", row) for number, row in enumerate(rows)]


def test_the_median_counts_and_every_vote_is_kept(tmp_path: Path) -> None:
    found = graded(judge("panel", judges=grades(tmp_path, 2, 5, 4)), QUERY, PASSAGES[0])
    assert (found.grade, found.error) == (4, None)
    assert {name: vote.grade for name, vote in found.votes.items()} == {
        "scripted m0.jsonl": 2,
        "scripted m1.jsonl": 5,
        "scripted m2.jsonl": 4,
    }


def test_of_two_the_lower_counts_unless_weights_say_more(tmp_path: Path) -> None:
    members = grades(tmp_path, 2, 5)
    assert graded(judge("panel", judges=members), QUERY, PASSAGES[0]).grade == 2
    weighted = judge("panel", judges=members, rule="weighted", weights=[1, 3])
    assert graded(weighted, QUERY, PASSAGES[0]).grade == 4


@pytest.mark.parametrize(("given", "reason"), [((1, 4, 5), "says 4"), ((1, 5, 5), "says 1")])
def test_the_words_are_those_of_the_member_nearest_to_the_grade(
    tmp_path: Path, given: tuple[int, ...], reason: str
) -> None:
    rows = [{"doc_id": "d0", "grade": grade, "reason": f"says {grade}"} for grade in given]
    members = [member(tmp_path, f"m{number}", row) for number, row in enumerate(rows)]
    found = graded(judge("panel", judges=members, rule="weighted", weights=[1, 1, 0.5]), QUERY, PASSAGES[0])
    assert (found.grade, found.reason) == (3, reason)


def test_half_of_the_members_decide_and_fewer_do_not(tmp_path: Path) -> None:
    found = graded(judge("panel", judges=grades(tmp_path, "busy", 4)), QUERY, PASSAGES[0])
    assert (found.grade, found.error) == (4, None)
    assert found.votes["scripted m0.jsonl"].error == "busy"
    found = graded(judge("panel", judges=grades(tmp_path, "busy", 4, "refused")), QUERY, PASSAGES[0])
    assert found.grade is None
    assert found.error == "scripted m0.jsonl: busy; scripted m2.jsonl: refused"


def test_orders_are_settled_by_their_pairs_and_the_first_has_the_casting_vote(tmp_path: Path) -> None:
    orders = (["d0", "d1", "d2", "d3"], ["d1", "d0", "d2", "d3"], ["d1", "d0", "d3", "d2"])
    members = [member(tmp_path, f"m{number}", {"order": order}) for number, order in enumerate(orders)]
    assert ordered(judge("panel", judges=members), QUERY, PASSAGES) == ["d1", "d0", "d2", "d3"]
    assert ordered(judge("panel", judges=members[::2]), QUERY, PASSAGES) == ["d0", "d1", "d2", "d3"]
    heavy = judge("panel", judges=members, rule="weighted", weights=[1, 1, 5])
    assert ordered(heavy, QUERY, PASSAGES[::-1]) == ["d1", "d0", "d3", "d2"]


def test_members_that_fail_to_order_leave_it_to_the_others_if_these_are_half(tmp_path: Path) -> None:
    failing = [member(tmp_path, f"f{number}", {"fail_orders": 1}) for number in range(2)]
    fine = member(tmp_path, "fine", {"order": ["d3", "d2"]})
    assert ordered(judge("panel", judges=[failing[0], fine]), QUERY, PASSAGES[2:]) == ["d3", "d2"]
    found = asyncio.run(judge("panel", judges=[*failing, fine]).order(QUERY, PASSAGES))
    assert found.order is None
    assert (
        found.error
        == "scripted f0.jsonl: failure requested by the script; scripted f1.jsonl: failure requested by the script"
    )


def test_members_of_one_name_are_told_apart(tmp_path: Path) -> None:
    labels = written(tmp_path / "labels.txt", "q1 0 d0 3")
    noisy = [{"type": "qrels", "path": labels, "grade_noise": 1.0, "seed": seed} for seed in range(3)]
    found = graded(judge("panel", judges=noisy), QUERY, PASSAGES[0])
    assert list(found.votes) == ["qrels labels.txt", "qrels labels.txt #2", "qrels labels.txt #3"]
    assert len({vote.grade for vote in found.votes.values()}) > 1


def test_each_sample_asks_every_member_anew(tmp_path: Path) -> None:
    labels = written(tmp_path / "labels.txt", "q1 0 d0 3")
    noisy = [{"type": "qrels", "path": labels, "grade_noise": 0.5, "seed": seed} for seed in range(2)]
    who = judge("panel", judges=noisy)
    seen = [tuple(vote.grade for vote in graded(who, QUERY, PASSAGES[0], n).votes.values()) for n in range(12)]
    assert len(set(seen)) > 2


def test_its_models_are_those_of_its_members(tmp_path: Path) -> None:
    from types import SimpleNamespace

    from raggs.parts.judges import REGISTRY

    adapter: Any = REGISTRY.load("panel")
    specs = [{"type": "litellm", "model": "openai/a"}, *grades(tmp_path, 3), {"type": "litellm", "model": "openai/b"}]
    prompt = SimpleNamespace(sha256="0")
    context = SimpleNamespace(
        llm=None, grade_prompt=prompt, order_prompt=prompt, judge=lambda spec: REGISTRY.of(spec)(spec, context)
    )
    who = adapter(adapter.Config(judges=specs), context)
    assert who.models == ("openai/a", "openai/b")
    assert judge("panel", judges=grades(tmp_path, 3, 4)).models == ()


def test_rule_weights_and_members_are_causes(tmp_path: Path) -> None:
    members = grades(tmp_path, 3, 4)
    variants = [
        judge("panel", judges=members),
        judge("panel", judges=members[::-1]),
        judge("panel", judges=members, rule="weighted", weights=[1, 2]),
        judge("panel", judges=members, rule="weighted", weights=[2, 1]),
    ]
    found = [json.dumps(who.causes("grade")) for who in variants]
    assert len(set(found)) == len(found)


def people(folder: Path, **given: int) -> dict[str, Any]:
    """The judge `human` of whom ada has given these passages grades."""
    words = [grade(QUERY, each, "ada", given[each.doc_id]) for each in PASSAGES if each.doc_id in given]
    return {"type": "human", "reviews": kept(folder, *words)}


def test_a_member_that_abstains_has_no_vote_and_is_not_counted(tmp_path: Path) -> None:
    absent, failing = people(tmp_path / "nobody"), grades(tmp_path, "busy", 4)
    found = graded(judge("panel", judges=[absent, *failing]), QUERY, PASSAGES[0])
    assert (found.grade, list(found.votes)) == (4, ["scripted m0.jsonl", "scripted m1.jsonl"])
    weighted = judge("panel", judges=[absent, *grades(tmp_path, 2, 5)], rule="weighted", weights=[9, 1, 3])
    assert graded(weighted, QUERY, PASSAGES[0]).grade == 4
    others = people(tmp_path / "others")
    silent = graded(judge("panel", judges=[absent, others]), QUERY, PASSAGES[0])
    assert (silent.grade, silent.error, dict(silent.votes)) == (None, None, {})
    assert silent.silent == "human: no annotator has labelled it; human #2: no annotator has labelled it"
    order = asyncio.run(judge("panel", judges=[absent, others]).order(QUERY, PASSAGES))
    assert (order.order, order.error) == (None, None)
    assert order.silent is not None


def test_the_first_that_speaks_decides_and_nobody_later_is_asked(tmp_path: Path) -> None:
    script = member(tmp_path, "script", {"doc_id": "d0", "grade": 1}, {"doc_id": "d1", "grade": 3})
    who = judge("panel", judges=[people(tmp_path / "r", d0=5), script], rule="first")
    assert who.name == "first of human + scripted script.jsonl"
    spoken = graded(who, QUERY, PASSAGES[0])
    assert (spoken.grade, spoken.by, list(spoken.votes)) == (5, "human: ada", ["human"])
    left = graded(who, QUERY, passage("d1", "of something else"))
    assert (left.grade, left.by, list(left.votes)) == (3, "scripted script.jsonl", ["scripted script.jsonl"])
    order = asyncio.run(who.order(QUERY, PASSAGES[:2]))
    assert order.by == "scripted script.jsonl"


def test_under_rule_first_a_failure_is_no_word_and_fails_only_where_nobody_else_speaks(tmp_path: Path) -> None:
    found = graded(judge("panel", judges=grades(tmp_path, "busy", 4, 5), rule="first"), QUERY, PASSAGES[0])
    assert (found.grade, found.by) == (4, "scripted m1.jsonl")
    assert found.votes["scripted m0.jsonl"].error == "busy"
    found = graded(judge("panel", judges=grades(tmp_path, "busy", "refused"), rule="first"), QUERY, PASSAGES[0])
    assert (found.grade, found.error) == (None, "scripted m0.jsonl: busy; scripted m1.jsonl: refused")
    silent = [people(tmp_path / "nobody"), *grades(tmp_path, "busy")]
    found = graded(judge("panel", judges=silent, rule="first"), QUERY, PASSAGES[0])
    assert (found.error, found.silent) == ("scripted m0.jsonl: busy", None)


NUGGETS = {"type": "nuggets"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"judges": [NUGGETS]}, "at least 2"),
        ({"judges": [NUGGETS, NUGGETS]}, "set samples"),
        ({"judges": [NUGGETS, {"type": "panel", "judges": []}]}, "'panel'"),
        ({"judges": [NUGGETS, {"type": "reference"}], "rule": "weighted"}, "set both or neither"),
        ({"judges": [NUGGETS, {"type": "reference"}], "weights": [1, 1]}, "set both or neither"),
        ({"judges": [NUGGETS, {"type": "reference"}], "rule": "weighted", "weights": [1]}, "1 weights for 2 judges"),
        ({"judges": [NUGGETS, {"type": "reference"}], "rule": "weighted", "weights": [1, 0]}, "greater than 0"),
    ],
)
def test_settings_that_cannot_be_right(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        PanelConfig.model_validate(settings)


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    members = ("qrels", "scripted", "nuggets")
    return {"judges": [{"type": name, **settings_of("judges", name, folder, request)} for name in members]}


class Together(Judge):
    """Grades what it is shown together by how many are shown; abstains on passages whose text names it."""

    grades_together = True

    def __init__(self, name: str) -> None:
        self.label, self.shown = name, []

    @property
    def name(self):
        return self.label

    async def grade(self, query, passage, *, sample=0):
        raise AssertionError("it is asked for several")

    async def grades(self, query, passages, *, sample=0):
        self.shown.append([passage.doc_id for passage in passages])
        return [
            Judgment(None, silent="nobody spoke") if self.label in passage.text else Judgment(len(passages))
            for passage in passages
        ]

    async def order(self, query, passages):
        raise AssertionError


def test_the_first_that_speaks_on_a_passage_decides_and_the_next_sees_the_company_that_it_would_see_anyway():
    people, model, last = Together("people"), Together("model"), Together("last")
    people.grades_together = False
    panel = PanelJudge.__new__(PanelJudge)
    panel.config = PanelJudge.Config(judges=[{"type": "nuggets"}, {"type": "reference"}], rule="first")
    panel.members = {each.name: each for each in (people, model, last)}
    shown = [passage(f"d{place}", text) for place, text in enumerate(["known", "people", "people model", "people"])]
    found = asyncio.run(panel.grades(query(), shown))
    assert [each.by for each in found] == ["people", "model", "last", "model"]
    assert [each.grade for each in found] == [4, 4, 4, 4]
    assert model.shown == last.shown == [["d0", "d1", "d2", "d3"]]
    last.grades_together = False
    assert [each.grade for each in asyncio.run(panel.grades(query(), shown))] == [4, 4, 1, 4]
    assert last.shown[1:] == [["d2"]], "one that cannot show them together is asked for what is open alone"
    asyncio.run(panel.grades(query(), shown[:1]))
    assert len(model.shown) == 2, "nobody is asked where people spoke on all"
