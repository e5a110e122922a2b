"""Which calls need no litellm, and what is sent for them."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys

import pytest
from support.llm_bench import MODEL, question, until
from support.llm_server import LLMServer

from raggs.llm import providers

SCRIPT = """
import asyncio, sys
sys.path.insert(0, "tests")
from support.llm_bench import MODEL, PRICE, question
from raggs.llm import LLM, BudgetSettings, LLMSettings

async def main():
    llm = LLM(LLMSettings(api_base=sys.argv[1], prices={MODEL: PRICE}), BudgetSettings(), None)
    reply = await llm.ask(question())
    await llm.close()
    return reply.error

print(asyncio.run(main()), [name for name in ("litellm", "openai", "httpx") if name in sys.modules])
"""


def test_an_openai_server_is_asked_without_litellm(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-any")
    with LLMServer() as server:
        done = subprocess.run([sys.executable, "-c", SCRIPT, server.url], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "None []"
        assert server.requests[0]["model"] == MODEL.partition("/")[2]


def ask_at(port, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-any")
    server = providers.ModelEndpoint(MODEL, f"http://127.0.0.1:{port}/v1", 0.3)

    async def ask():
        try:
            await server.ask("chat/completions", {})
        finally:
            await providers.close_http()

    asyncio.run(ask())


def test_a_server_that_does_not_take_the_connection_in_time_was_sent_nothing(busy_port, monkeypatch):
    with pytest.raises(providers.Unreached, match=r"no connection within 0\.3 s"):
        ask_at(busy_port, monkeypatch)


def test_a_port_where_nobody_listens_was_sent_nothing(monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(providers.Unreached, match="Cannot connect"):
            ask_at(closed.getsockname()[1], monkeypatch)


def test_a_server_that_took_the_question_may_have_read_it(monkeypatch):
    with LLMServer(faults=["slow:2"]) as server, pytest.raises(TimeoutError):
        ask_at(server.url.rpartition(":")[2].partition("/")[0], monkeypatch)
    with LLMServer(faults=["reset"]) as server, pytest.raises(providers.http_exceptions()) as told:
        ask_at(server.url.rpartition(":")[2].partition("/")[0], monkeypatch)
    assert not isinstance(told.value, providers.Unreached)


@pytest.mark.parametrize("sent", [False, True])
def test_who_is_stopped_while_connecting_has_sent_nothing(sent, busy_port, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-any")

    async def stop(address):
        asker = asyncio.ensure_future(providers.ModelEndpoint(MODEL, address, 30).ask("chat/completions", {}))
        await asyncio.sleep(0.3)
        await until(lambda: server.count == sent)
        asker.cancel()
        try:
            await asker
        except asyncio.CancelledError as stopped:
            return type(stopped)
        finally:
            await providers.close_http()

    with LLMServer(faults=["slow:60"]) as server:
        told = asyncio.run(stop(server.url if sent else f"http://127.0.0.1:{busy_port}/v1"))
    assert told is (asyncio.CancelledError if sent else providers.StoppedUnsent)


@pytest.mark.parametrize(
    ("model", "parameters", "spoken"),
    [
        ("openai/gpt-5-mini", ["temperature"], True),
        ("gpt-5-mini", [], True),
        ("openai/a-server-of-mine", ["seed", "response_format"], True),
        ("openai/org/model", [], True),
        ("openai/gpt-5-pro", [], False),
        ("openai/text-embedding-3-small", [], False),
        ("openai/gpt-5-mini", ["mock_response"], False),
        ("openai/gpt-5-mini", ["extra_body"], False),
        ("azure/gpt-5-mini", [], False),
        ("anthropic/claude-sonnet-4-5", [], False),
        ("nonsense", [], False),
    ],
)
def test_what_the_protocol_covers(model, parameters, spoken):
    assert providers.speaks_openai(model, parameters, "chat") is spoken


def test_embeddings_are_another_mode():
    assert providers.speaks_openai("openai/text-embedding-3-small", ["dimensions"], "embedding")
    assert not providers.speaks_openai("openai/gpt-5-mini", [], "embedding")


def test_openai_itself_is_told_the_newer_name_of_the_limit():
    assert providers.with_named_limit({"max_tokens": 5}, own_server=False) == {"max_completion_tokens": 5}
    assert providers.with_named_limit({"max_tokens": 5}, own_server=True) == {"max_tokens": 5}


def test_the_address_may_come_from_the_environment(bench, monkeypatch):
    with bench() as b:
        monkeypatch.setenv("OPENAI_BASE_URL", b.server.url + "/")
        assert b.run(lambda llm: llm.ask(question()), api_base=None).error is None
        assert b.server.count == 1


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b'{"error": {"message": "m", "code": "c"}}', ("m", "c")),
        (b'{"error": {"message": "m", "code": null}}', ("m", "")),
        (b'{"error": "m"}', ("m", "")),
        (b'{"detail": "m"}', ('{"detail": "m"}', "")),
        (b"[1]", ("[1]", "")),
        (b"<html>", ("<html>", "")),
        (b"\xff", ("\ufffd", "")),
        (b"", ("", "")),
    ],
)
def test_complaints_in_any_form(raw, told):
    assert providers._complaint(raw) == told


def test_a_proxy_of_the_environment_is_used(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    providers._proxy.cache_clear()
    assert providers._proxy("https://api.example/v1") == "http://proxy:3128"
    assert providers._proxy("https://inside.example/v1") is None
    providers._proxy.cache_clear()
