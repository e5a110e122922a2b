"""A reranker's scores with a lexical boost: what is added, what is passed through, and what is refused."""

from __future__ import annotations

import asyncio
import math

import pytest
from support.contracts import write_module
from support.judging import passage
from support.reranking import counted

from raggs.base.errors import ConfigError
from raggs.parts.rerankers import REGISTRY, RerankedPassage, Reranking
from raggs.parts.rerankers.boosted import bm25, boost_scores, standardize
from raggs.parts.retrievers.reranked import RerankedRetriever
from raggs.parts.workspace import Workspace

LENGTHS = """
def rerank(query, passages):
    return [float(len(text)) for text in passages]
"""
CONTRACT_VARIANTS = [{}, {"weight": 0}, {"weight": 5}]
PASSAGES = [
    passage("many", "the lift of a wing in a flow"),
    passage("rare", "the lift of a wing in a slipstream"),
    passage("none", "a cat sleeps on the mat"),
]
QUERY = "lift of a wing in a slipstream"


def contract_case(folder, request):
    module = write_module(folder, request, LENGTHS)
    return {"by": {"type": "python", "callable": f"{module}:rerank", "folder": folder}}


def found(*scores, **more):
    ranked = tuple(RerankedPassage(each.doc_id, score) for each, score in zip(PASSAGES, scores, strict=True))
    return Reranking(tuple(sorted(ranked, key=lambda each: -each.score)), **more)


def at(weight, base, query):
    return boost_scores(base, query, "en", PASSAGES, [weight])[0]


def scores(reranking):
    return {each.doc_id: each.score for each in reranking.ranked}


def test_bm25_is_that_of_the_formula_over_the_candidates_alone():
    texts = ["wing wing flow", "wing slipstream", "cat"]
    rare, common = math.log(1 + 2.5 / 1.5), math.log(1 + 1.5 / 2.5)
    mean = 2.0

    def part(idf, many, length):
        return idf * many * 2.2 / (many + 1.2 * (0.25 + 0.75 * length / mean))

    assert bm25("wings in slipstreams", "en", texts) == pytest.approx(
        [part(common, 2, 3), part(common, 1, 2) + part(rare, 1, 2), 0.0]
    )


def test_scores_are_standardized_and_a_passage_with_the_rare_word_rises():
    assert standardize([1.0, 2.0, 3.0]) == pytest.approx([-math.sqrt(1.5), 0.0, math.sqrt(1.5)])
    base = found(0.9, 0.8, 0.1)
    assert [each.doc_id for each in at(0.0, base, QUERY).ranked] == ["many", "rare", "none"]
    lifted = at(1.0, base, QUERY)
    assert [each.doc_id for each in lifted.ranked] == ["rare", "many", "none"]
    one, other = standardize([0.9, 0.8, 0.1]), standardize(bm25(QUERY, "en", [each.content for each in PASSAGES]))
    sums = [left + right for left, right in zip(one, other, strict=True)]
    assert scores(lifted) == pytest.approx(dict(zip(("many", "rare", "none"), sums, strict=True)))


def test_a_constant_column_adds_nothing_and_extremes_stay_finite():
    equal = at(0.5, found(0.5, 0.5, 0.5), QUERY)
    assert scores(equal)["rare"] == max(scores(equal).values())
    assert scores(at(9.0, found(3, 2, 1), "zebra")) == pytest.approx(scores(at(0.0, found(3, 2, 1), QUERY)))
    assert scores(at(1.0, found(0.5, 0.5, 0.5), "")) == {"many": 0, "rare": 0, "none": 0}
    for column in ([1e308, -1e308, 0.0], [5e-324, 0.0, 0.0], [1.0, 1.0 + 2**-52, 1.0]):
        assert all(map(math.isfinite, standardize(column)))


def test_what_the_other_one_took_passes_through():
    base = found(3, 2, 1, tokens=7, calls=2, usd=0.5, repaired=1, problems=("late",), searches=3, ms=4.0)
    made = at(1.0, base, QUERY)
    assert (made.tokens, made.calls, made.usd, made.repaired) == (7, 2, 0.5, 1)
    assert (made.problems, made.searches) == (("late",), 3)
    assert made.ms == 4.0


def test_models_prices_and_calls_are_those_of_the_other_one(bench):
    by = {"type": "listwise", "model": "openai/gpt-5-mini"}
    made, plain = bench("boosted", by=by), bench(**{"kind": "listwise", "model": by["model"]})
    who, alone = made.who, plain.who
    assert who.models == alone.models == ("openai/gpt-5-mini",)
    lines = [counted(each.workspace, each.who.config, PASSAGES, QUERY) for each in (made, plain)]
    assert lines[0] == lines[1]
    assert type(who.reader) is type(alone)
    assert who.paid(who.config) and not who.paid(
        REGISTRY.load("boosted").Config(by={"type": "python", "callable": "a:b"})
    )
    assert who.causes() != bench("boosted", by=by, weight=0.3).who.causes()


def test_a_retriever_that_holds_it_is_paid_where_the_other_one_is():
    config = RerankedRetriever.Config(
        of={"type": "bm25"}, by={"type": "boosted", "by": {"type": "listwise", "model": "openai/gpt-5-mini"}}
    )
    assert RerankedRetriever.paid(config)


def test_a_weight_to_be_fitted_is_refused_before_anything_is_asked(tmp_path, request):
    settings = contract_case(tmp_path, request)
    workspace = Workspace(tmp_path / "runs")
    who = workspace.reranker(REGISTRY.load("boosted").Config(**settings, weight="fit"))
    with pytest.raises(ConfigError, match="of a sweep") as caught:
        who.check()
    assert caught.value.remedy == "fit the weight with raggs sweep, and set the value that it reports"
    with pytest.raises(ConfigError, match="of a sweep"):
        asyncio.run(who.rerank(QUERY, "en", PASSAGES))
    workspace.close()
