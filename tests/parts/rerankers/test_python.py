"""A Python function as a reranker: what it gives, and the sentence where it gives no score."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from support.contracts import write_module
from support.judging import passage

from raggs.base.errors import ConfigError, ProviderError
from raggs.parts.callables import PythonReranker

SCORE = """
def rerank(query, passages):
    return [sum(word in text.lower() for word in query.lower().split()) for text in passages]
"""
PASSAGES = [passage("cat", "A cat."), passage("wing", "A wing.", title="On wings")]


def contract_case(folder, request):
    return {"callable": f"{write_module(folder, request, SCORE)}:rerank", "folder": folder}


@pytest.fixture
def make(request, tmp_path):
    """A reranker whose function has this body."""

    def made(body, head="def rerank(query, passages)", name="rerank"):
        module = write_module(tmp_path, request, f"{head}:\n    {body}\n")
        return PythonReranker(PythonReranker.Config(callable=f"{module}:{name}", folder=tmp_path), None)

    return made


def ask(who, passages=PASSAGES):
    return asyncio.run(who.rerank("a wing", "en", passages))


def test_it_reads_title_and_text_and_its_time_is_told(make):
    found = ask(make("return [float('On wings' in text) for text in passages]"))
    assert [(each.doc_id, each.score, each.logit) for each in found.ranked] == [("wing", 1.0, None), ("cat", 0.0, None)]
    assert found.ms > 0


def test_a_coroutine_function_and_scores_of_numpy_will_do(make):
    found = ask(make("import numpy; return numpy.float32([0.25, 0.5])", head="async def rerank(query, passages)"))
    assert [each.score for each in found.ranked] == [float(np.float32(0.5)), 0.25]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return None", "returned NoneType instead of a list of scores for the query 'a wing' with 2 passages"),
        ("return 'ab'", "returned str instead of a list of scores"),
        ("return [1]", "returned 1 score for"),
        ("return [1, 2, 3]", "returned 3 scores for"),
        ("return [1, 'high']", "returned 'high', which is not a number, for wing"),
        ("return [1, None]", "returned None, which is not a number, for wing"),
        ("return [True, 1]", "returned True, which is not a number, for cat"),
        ("return {1.0, 2.0}", "returned set instead of a list of scores"),
        ("import numpy; return numpy.array(1.0)", "returned ndarray instead of a list of scores"),
        ("import numpy; return numpy.zeros((2, 2))", "which is not a number, for cat"),
        ("return [10 ** 400, 1]", "returned score 1000"),
        ("return [float('nan'), 1]", "returned score nan for cat"),
        ("return [1, float('inf')]", "returned score inf for wing"),
        ("return 1 / 0", "rerank raised ZeroDivisionError on the query 'a wing' with 2 passages"),
    ],
)
def test_what_is_no_score_for_each_is_told_in_a_sentence(make, body, message):
    with pytest.raises(ProviderError, match=message) as caught:
        ask(make(body))
    assert caught.value.remedy


def test_a_missing_function_is_found_before_anything_is_ranked(make):
    with pytest.raises(ConfigError, match=r"has no function 'find'; its functions: rerank"):
        make("return []", name="find").check()


def test_the_content_of_its_file_counts(make):
    assert make("return [1]").causes() == make("return [1]").causes() != make("return [2]").causes()
