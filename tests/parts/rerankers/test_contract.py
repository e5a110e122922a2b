"""What holds for every reranker.

A case that asks a server starts it in its `contract_case`, and points the workspace there by the environment.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from support.contracts import cases, settings_of
from support.hostile import ORDERS
from support.judging import passage
from support.reranking import counted

from raggs.base.artifacts import Passage
from raggs.parts.rerankers import REGISTRY, Reranker, Reranking
from raggs.parts.workspace import Workspace

QUESTION = "How is the lift of a wing measured in a slipstream?"
TEXTS = {
    "cat": "A cat sleeps on the mat for most of the day.",
    "plate": "Transition of the boundary layer on a flat plate.",
    "wing": "The lift of a wing in a slipstream was measured.",
    "copy": "A cat sleeps on the mat for most of the day.",
    "long": "the wing " * 2000,
    "accents": "Der Auftrieb eines Flügels – größer als erwartet: 翼の揚力 \U0001f6e9",
}
CANDIDATES = [passage(doc_id, text, title="On wings" if doc_id == "wing" else "") for doc_id, text in TEXTS.items()]
HOSTILE = [passage(f"h{number}", text) for number, text in enumerate(ORDERS)]
ODD = [passage("blank", " \u00a0 "), passage("nul", "a\x00b"), passage("half", "\ufffd"), passage("signs", "?!…")]
Make = Callable[[], Reranker]


@pytest.fixture(params=cases("rerankers", REGISTRY))
def make(request: pytest.FixtureRequest, tmp_path) -> Iterator[Make]:
    """Makes the reranker anew, over one workspace."""
    name, variant = request.param
    settings = {**settings_of("rerankers", name, tmp_path / "case", request), **variant}
    spec = REGISTRY.load(name).Config(**settings)
    workspace = Workspace(tmp_path / "runs")
    yield lambda: workspace.reranker(spec)
    workspace.close()


def ask(who: Reranker, passages: list[Passage], query: str = QUESTION) -> Reranking:
    return asyncio.run(who.rerank(query, "en", passages))


def ids(found: Reranking) -> list[str]:
    return [each.doc_id for each in found.ranked]


@pytest.mark.nightly(keep=14)
@pytest.mark.parametrize("passages", [CANDIDATES, HOSTILE, ODD, CANDIDATES[:1]], ids=["usual", "hostile", "odd", "one"])
def test_every_candidate_comes_back_once_sorted_and_finite(make: Make, passages: list[Passage]) -> None:
    found = ask(make(), passages)
    assert sorted(ids(found)) == sorted(each.doc_id for each in passages)
    assert [-each.score for each in found.ranked] == sorted(-each.score for each in found.ranked)
    assert all(type(each.score) is float and math.isfinite(each.score) for each in found.ranked)
    assert all(each.logit is None or math.isfinite(each.logit) for each in found.ranked)
    assert found.tokens >= 0 and found.calls >= 0 and found.usd >= 0
    assert found.ms is None or found.ms >= 0


def test_of_nothing_nothing_is_made(make: Make) -> None:
    assert ask(make(), []) == Reranking(())


def test_equal_texts_have_equal_scores_and_keep_their_order(make: Make) -> None:
    who = make()
    if not who.INDEPENDENT:
        pytest.skip("its scores depend on the other candidates")
    for passages in (CANDIDATES, CANDIDATES[::-1]):
        found = [each for each in ask(who, passages).ranked if each.doc_id in ("cat", "copy")]
        assert found[0].score == found[1].score
        assert [each.doc_id for each in found] == [each.doc_id for each in passages if each.doc_id in ("cat", "copy")]


def test_scores_of_many_candidates_are_those_of_few(make: Make) -> None:
    who = make()
    if not who.INDEPENDENT:
        pytest.skip("its scores depend on the other candidates")
    many = {each.doc_id: each.score for each in ask(who, CANDIDATES).ranked}
    few = {each.doc_id: each.score for each in ask(who, CANDIDATES[:3]).ranked}
    assert few == {doc_id: pytest.approx(many[doc_id], abs=1e-6) for doc_id in few}


def test_asked_again_and_made_again_it_says_the_same(make: Make) -> None:
    who = make()
    first = ask(who, CANDIDATES)
    assert ask(who, CANDIDATES).ranked == first.ranked
    assert ask(make(), CANDIDATES).ranked == first.ranked


def test_causes_are_plain_and_stay(make: Make) -> None:
    causes = make().causes()
    assert json.loads(json.dumps(causes)) == causes == make().causes()


def test_what_it_may_take_is_told_before_anyone_is_asked(make: Make, tmp_path) -> None:
    who = make()
    who.check()
    texts = [passage(f"n{number}", f"text {number} of many") for number in range(40)]
    with closing(Workspace(tmp_path / "dry")) as workspace:
        for model in who.models:
            few, many = (counted(workspace, who.config, texts[:number], QUESTION) for number in (10, 40))
            assert few.who == model
            assert 0 < few.calls <= many.calls
            assert few.input_tokens < many.input_tokens


def test_it_may_be_closed_twice(make: Make) -> None:
    who = make()
    ask(who, CANDIDATES[:2])
    who.close()
    who.close()
