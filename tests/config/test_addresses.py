"""Addresses that nobody can connect to, and names that no index has, are told when a configuration is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.project import make_project

from raggs.base.errors import ConfigError
from raggs.base.settings import http_address
from raggs.config.load import load_config
from raggs.llm.prices import address_of
from raggs.parts.elastic import IndexPlace

WRONG = [
    "ftp://x",
    "//x",
    "/v1",
    "x",
    "localhost:8000",
    "not a url",
    "http://",
    "http:///v1",
    "https://:8000",
    "http://x:0",
    "http://x:99999",
    "http://x:-1",
    "http://x:port",
    "http://x:٣",
    "http://x:",
    "http://x y/v1",
    "http://x/a b",
    "http://x\ny",
    "http://x\x00",
    "http://[::1",
    "http://::1",
    "http://a..b",
    "http://.",
    "http://-a",
    "http://" + "a" * 64,
    "http://" + "a." * 200 + "b",
    "http://a_b-/v1",
    "http://<script>",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "http:x",
    "http:/x",
    "http://x/#a",
    "unix:///run/x.sock",
]
RIGHT = [
    "http://localhost",
    "http://localhost:8000/v1",
    "https://my-name.openai.azure.com/openai/v1/",
    "http://127.0.0.1:11434",
    "http://[::1]:8000/v1",
    "http://my_host:8000",
    "https://bücher.example/v1",
    "https://host.example./v1?api-version=2024-10-21",
    "HTTP://HOST:80",
    "http://x:65535",
]


@pytest.mark.nightly(keep=12)
@pytest.mark.parametrize("address", WRONG)
@pytest.mark.parametrize("place", ["all", "one model"])
def test_an_address_that_cannot_be_has_line_and_key(address: str, place: str, tmp_path: Path) -> None:
    llm = {"api_base": address} if place == "all" else {"models": {"m": {"api_base": address}}}
    project = make_project(tmp_path, queries=1, corpus=3, llm=llm)
    with pytest.raises(ConfigError, match=r"raggs\.yaml:\d+: llm\.(models\.m\.)?api_base: not an address"):
        load_config(project.config, (), {})


@pytest.mark.parametrize("address", RIGHT)
def test_an_address_that_can_be(address: str) -> None:
    assert http_address(address) == address


@pytest.mark.nightly(keep=8)
@pytest.mark.parametrize("address", WRONG)
def test_elasticsearch(address: str, tmp_path: Path) -> None:
    corpus = {"type": "elasticsearch", "url": address, "index": "x", "path": None}
    project = make_project(tmp_path, queries=1, corpus=3)
    project.change(corpus=None)
    project.change(corpus={key: value for key, value in corpus.items() if value})
    with pytest.raises(ConfigError, match=r"raggs\.yaml:\d+: corpus\.url: not an address"):
        load_config(project.config, (), {})


@pytest.mark.nightly(keep=4)
@pytest.mark.parametrize(
    "index",
    [".", "..", "_all", "_x", "-x", "+x", "a/b", "../x", "a#b", "<x-{now}>", 'a"b', "a|b", "a\\b", "a\nb", "é" * 200],
)
def test_names_that_no_index_has(index: str, tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=3)
    project.change(corpus=None)
    project.change(corpus={"type": "elasticsearch", "index": index})
    with pytest.raises(ConfigError, match=r"raggs\.yaml:\d+: corpus\.index: "):
        load_config(project.config, (), {})


@pytest.mark.parametrize("index", ["x", "my-index_1", "Logs.2024", ".hidden", "名前"])
def test_names_that_an_index_or_an_alias_may_have(index: str) -> None:
    assert IndexPlace(index=index).index == index


@pytest.mark.parametrize(
    "address", ["tls://", "x", "tcp://x", "tcp://x:0", "tcp://x:99999", "tcp://[::1", "//x:1", "tcp://x:1/y"]
)
def test_a_schedulers_address(address: str, tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=1, corpus=3, execution={"type": "dask", "address": address})
    with pytest.raises(ConfigError, match=r"raggs\.yaml:\d+: execution\.address: expected an address"):
        load_config(project.config, (), {})


def test_an_address_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "ftp://x")
    with pytest.raises(ConfigError, match="environment OPENAI_BASE_URL: not an address"):
        address_of("openai/gpt-5", None)
    assert address_of("openai/gpt-5", "http://x") == "http://x"
