"""Keys and forms of the cache, the marks and the notes of batches stay: if you change one, every user pays again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from raggs.base.errors import BudgetError
from raggs.llm import LLM, BudgetSettings, ChatRequest, EmbedRequest, LLMSettings
from raggs.llm.batch_api import BatchJournal, SentBatch
from raggs.llm.cache import AnswerCache
from raggs.llm.client import InjectionGuard

ROW = '{"completion_tokens":5,"model":"m","prompt_tokens":10,"raw":"{\\"grade\\": 4}","usd":0.25}'
VECTOR = '{"completion_tokens":0,"model":"m","prompt_tokens":1,"raw":"AACAPwAAAEA=","usd":0.5}'
PLAIN: dict[str, Any] = {
    "model": "openai/gpt-5-mini",
    "messages": [{"role": "system", "content": "Grade."}, {"role": "user", "content": "é?"}],
    "schema": {"type": "object", "properties": {"grade": {"type": "integer"}}},
    "schema_name": "grade",
    "check": lambda answer: answer["grade"],
}


def stored(folder, **rows):
    """Write a cache with these rows."""
    cache = AnswerCache(folder)
    for key, text in rows.items():
        cache._cache.set(key, text)
    cache.close()


def no_calls(folder, **settings):
    return LLM(LLMSettings(**settings), BudgetSettings(max_calls=0), folder)


@pytest.mark.parametrize(
    ("changes", "settings", "key"),
    [
        ({}, {}, "261d03ba29f282a292f1892ba717225ea5f682ce24c4b8136acae6b42eeff585"),
        (
            {"sample": 2, "parameters": {"temperature": 0}, "qid": "whoever asks"},
            {"parameters": {"top_p": 0.5}, "backoff_s": 5},
            "39425bba04786c7238a96708231bd0e2d1d36322ba044d5a034d0aa7372d350b",
        ),
        (
            {"model": "anthropic/claude-sonnet-4-5"},
            {"api_base": "http://localhost:8000/v1"},
            "2e300a3fd7df0a2c6379268fc1bffa7300d4f2c2e3bd54987eac1eca803f296d",
        ),
    ],
    ids=["plain", "with parameters", "another provider"],
)
def test_an_answer_paid_before_is_found(tmp_path, changes, settings, key):
    stored(tmp_path, **{key: ROW})
    llm = no_calls(tmp_path, **settings)
    reply = asyncio.run(llm.ask(ChatRequest(**{**PLAIN, **changes})))
    asyncio.run(llm.close())
    assert reply.value == 4
    assert (llm.spent.cached, llm.spent.saved_usd) == (1, 0.25)


def test_an_answer_paid_at_an_address_is_found_at_any(tmp_path):
    stored(tmp_path, **{"2e300a3fd7df0a2c6379268fc1bffa7300d4f2c2e3bd54987eac1eca803f296d": ROW})
    asked = ChatRequest(**{**PLAIN, "model": "anthropic/claude-sonnet-4-5"})
    for port in (8000, 8001, 8000):
        llm = no_calls(tmp_path, api_base=f"http://localhost:{port}/v1")
        assert asyncio.run(llm.ask(asked)).value == 4
        asyncio.run(llm.close())
    llm = no_calls(tmp_path, models={asked.model: {"api_base": "http://localhost:8002/v1", "model_id": "another"}})
    with pytest.raises(BudgetError):
        asyncio.run(llm.ask(asked))
    asyncio.run(llm.close())


def test_vectors_paid_before_are_found(tmp_path):
    keys = (
        "0c5a1af5853572f1a1661b2d715ec2584fbabe2398434d5f670facd9950857e6",
        "c5f272677e6e748d76608d78b26514835f26df355e200a54847c9d37002fcb8e",
    )
    stored(tmp_path, **dict.fromkeys(keys, VECTOR))
    llm = no_calls(tmp_path)
    request = EmbedRequest("openai/text-embedding-3-small", ["é", "two"], 2, parameters={"dimensions": 2})
    assert asyncio.run(llm.embed(request)).tolist() == [[1.0, 2.0]] * 2
    asyncio.run(llm.close())


def test_marks_are_those_of_before():
    assert InjectionGuard(bytes(32))("text") == "<data-0611b704abab473f9562>\ntext\n</data-0611b704abab473f9562>"


def test_a_batch_sent_before_is_known(tmp_path):
    note = tmp_path / "t.json"
    note.write_text('{"token": "t", "since": 1.5, "keys": ["a", "b"], "batch_id": "id"}')
    journal = BatchJournal(tmp_path)
    assert journal.batches() == [SentBatch("t", 1.5, ("a", "b"), "id")]
    journal.put(journal.batches()[0])
    assert note.read_text() == '{"token": "t", "since": 1.5, "keys": ["a", "b"], "batch_id": "id"}'
    journal.close()
