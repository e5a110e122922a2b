"""Questions restated by a language model."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import ValidationError
from support.llm_bench import MODEL, PRICE
from support.llm_server import FENCED, KEY, LLMServer

from raggs.base.artifacts import Query
from raggs.base.errors import ConfigError, ProviderError
from raggs.llm import LLM, BudgetSettings, LLMSettings
from raggs.parts.rewriters import RewriterContext
from raggs.parts.rewriters.llm import LlmRewriter, check_rewrite

QUERY = Query(qid="q7", text="Hi! Where do herons nest?")


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def rewrite(server, text="Where do\n herons nest?", language="en", **config):
    settings = LLMSettings(api_base=server.url, prices={MODEL: PRICE}, timeout_s=20, backoff_s=0.001)
    llm = LLM(settings, BudgetSettings(), None)
    rewriter = LlmRewriter(LlmRewriter.Config(model=MODEL, **config), RewriterContext(llm))

    async def main():
        try:
            return await rewriter.rewrite(QUERY, text, language)
        finally:
            await llm.close()

    return asyncio.run(main())


def test_gives_the_model_s_words_on_one_line():
    with LLMServer() as server:
        assert rewrite(server) == "Where do herons nest?"
        (body,) = server.requests
    assert [match[2] for match in FENCED.finditer(body["messages"][1]["content"])] == ["Where do\n herons nest?"]
    assert "q7" not in str(body)


@pytest.mark.parametrize(
    ("language", "word"), [("en", "Text of the user:"), ("fr", "Texte de l'utilisateur :"), ("de", "Text of the user:")]
)
def test_speaks_the_language_of_the_question(language, word):
    with LLMServer() as server:
        rewrite(server, language=language)
        assert server.requests[0]["messages"][1]["content"].startswith(word)


def test_an_empty_rewrite_is_asked_for_again():
    with LLMServer(faults=["empty query"]) as server:
        assert rewrite(server) == "Where do herons nest?"
        assert server.count == 2


def test_a_rewrite_that_cannot_be_had_stops_and_names_the_query():
    with LLMServer(fault_for=lambda *_: "empty query") as server:
        with pytest.raises(ProviderError, match=r"query q7 could not be rewritten: .*not empty.*clean or none"):
            rewrite(server)
        assert server.count == 3


def test_a_prompt_of_ones_own(tmp_path):
    path = tmp_path / "mine.md"
    path.write_text("# user\nShort: {{query}}", encoding="utf-8")
    with LLMServer() as server:
        rewrite(server, prompt=str(path))
        assert [message["content"].split(":")[0] for message in server.requests[0]["messages"]] == ["Short"]


def test_the_text_of_the_prompt_is_a_cause_and_its_path_is_not(tmp_path):
    def causes(name, text):
        path = tmp_path / name
        path.write_text(f"# user\n{text} {{{{query}}}}", encoding="utf-8")
        llm = LLM(LLMSettings(), BudgetSettings(), None)
        return LlmRewriter(LlmRewriter.Config(model=MODEL, prompt=str(path)), RewriterContext(llm)).causes()

    assert causes("a.md", "one") == causes("b.md", "one") != causes("b.md", "two")
    assert causes("a.md", "one")["model"] == MODEL


def test_a_prompt_for_another_task_is_refused():
    with LLMServer() as server, pytest.raises(ConfigError, match="unknown prompt 'grade@1'"):
        rewrite(server, prompt="grade@1")


@pytest.mark.parametrize(
    "config", [{}, {"model": ""}, {"model": "m", "parameters": {"api_key": "k"}}, {"model": "m", "x": 1}]
)
def test_what_cannot_be_is_refused(config):
    with pytest.raises(ValidationError):
        LlmRewriter.Config.model_validate(config)


@pytest.mark.parametrize(
    "answer", [{}, {"query": ""}, {"query": " \u200b\n"}, {"query": None}, {"query": 5}, {"query": ["a"]}]
)
def test_only_text_is_a_rewrite(answer):
    with pytest.raises(ValueError, match="must be text, and not empty"):
        check_rewrite(answer)


def test_a_rewrite_is_cleaned():
    assert check_rewrite({"query": " Où\u00a0nichent\n les hérons\u200b ? "}) == "Où nichent les hérons ?"
