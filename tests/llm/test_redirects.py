"""A redirect is refused, whoever makes the call, and nothing reaches the other host."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from support.llm_bench import MODEL, PRICE, question
from support.llm_server import LLMServer

from raggs.base.errors import ConfigError
from raggs.llm.providers import Redirected, refuse_redirects

OTHER = "hosted_vllm/m"  # asked through litellm


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize("model", [MODEL, OTHER])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed_and_both_hosts_are_named(bench, status, model):
    with LLMServer() as elsewhere, bench(faults=[f"{status}:{elsewhere.url}/chat/completions"]) as b:
        with pytest.raises(ConfigError, match="follows no redirects") as caught:
            b.run(lambda llm: llm.ask(question(model=model)), prices={MODEL: PRICE, OTHER: PRICE})
        assert (b.server.count, elsewhere.count) == (1, 0)
        for server in (b.server, elsewhere):
            assert server.url.split("/")[2] in str(caught.value)


def test_other_business_with_httpx_goes_on_as_ever():
    async def look(url):
        async with httpx.AsyncClient(follow_redirects=True) as client:
            return (await client.post(f"{url}/chat/completions", json={"messages": []})).status_code

    with LLMServer(faults=["307:/v1/nowhere"]) as server, refuse_redirects(), pytest.raises(httpx.TooManyRedirects):
        asyncio.run(look(server.url))
    with LLMServer() as elsewhere, LLMServer(faults=[f"307:{elsewhere.url}/nowhere"]) as server:
        assert asyncio.run(look(server.url)) == 404


def test_the_sentence_names_no_password():
    told = str(Redirected(302, "https://me:secret@here:1/v1", "//you:hidden@there/x"))
    assert told == "here:1 redirects to there (status 302)"
    assert str(Redirected(302, "https://here", "/x")) == "here redirects to here (status 302)"
    assert "another address" in str(Redirected(302, "https://here", "http://[bad"))
