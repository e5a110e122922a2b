"""What can go wrong between here and a server: each fault is one sentence, a type and a remedy."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import suppress
from typing import Any

import pytest
from pydantic import ValidationError
from support.elastic import scripted

from raggs.base.errors import (
    AuthenticationError,
    DataError,
    NotFoundError,
    PrerequisiteError,
    ProviderError,
    RaggsError,
)
from raggs.parts.elastic import IndexPlace
from raggs.parts.elastic.server import ElasticServer

OK = (200, {"count": 3})


def count(url: str, environment: dict[str, str] | None = None, **options: Any) -> int:
    server = ElasticServer(IndexPlace(url=url, index="passages", **options), environment or {}, (0.001, 0.001))
    try:
        return int(server.call(lambda client: client.count(index="passages"))["count"])
    finally:
        server.close()


def fault(kind: str, reason: str, caused_by: str = "") -> dict[str, Any]:
    error: dict[str, Any] = {"type": kind, "reason": reason, "root_cause": [{"type": kind, "reason": reason}]}
    if caused_by:
        error["caused_by"] = {"type": "status_exception", "reason": caused_by}
    return {"error": error}


MISMATCH = fault(
    "media_type_header_exception",
    "Invalid media-type value on headers [Accept]",
    "Accept version must be either version 8 or 7, but found 9.",
)


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (400, MISMATCH, PrerequisiteError, r"does not support client .*8 or 7, but found 9.*elasticsearch<\d+"),
        (
            401,
            fault("security_exception", "missing"),
            AuthenticationError,
            "rejected the credentials .* ELASTIC_API_KEY",
        ),
        (403, fault("security_exception", "no read"), AuthenticationError, "not allowed .no read. .* privileges"),
        (
            404,
            fault("index_not_found_exception", "no such index"),
            NotFoundError,
            "index 'passages' not found .* raggs index",
        ),
        (404, fault("search_context_missing_exception", "gone"), NotFoundError, "not found .gone."),
        (400, fault("x", "a different number of dimensions [2]"), DataError, "wrong dimensions"),
        (
            400,
            fault("parsing_exception", "unknown query [mtch]"),
            DataError,
            "rejected the request .unknown query .mtch..",
        ),
        (410, fault("api_not_available", "serverless"), ProviderError, "failed with 410 .serverless."),
        (500, "broken", ProviderError, "failed with 500 .broken."),
    ],
)
def test_an_answer_that_is_a_fault(status: int, body: Any, kind: type[RaggsError], message: str) -> None:
    with scripted((status, body)) as (url, script), pytest.raises(RaggsError, match=message) as caught:
        count(url)
    assert type(caught.value) is kind
    assert url in str(caught.value)
    assert len(script.seen) == 1, "what another try cannot help is not tried again"


def test_no_server() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(PrerequisiteError, match=r"cannot be reached .* start the server"):
            count(url, retries=1)


def test_another_product() -> None:
    with scripted(OK, product="OpenSearch") as (url, _), pytest.raises(PrerequisiteError, match="not Elasticsearch"):
        count(url)


def test_a_server_that_hangs() -> None:
    with scripted((0, 0.5)) as (url, script), pytest.raises(ProviderError, match=r"no answer within 0\.1 s"):
        count(url, timeout=0.1, retries=0)
    assert len(script.seen) == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(status: int) -> None:
    busy = (status, fault("busy", "try later"))
    with scripted(busy, busy, OK) as (url, script):
        assert count(url, retries=2) == 3
    assert len(script.seen) == 3
    with scripted(busy) as (url, script), pytest.raises(ProviderError, match=f"failed with {status} .try later."):
        count(url, retries=2)
    assert len(script.seen) == 3


@pytest.mark.parametrize(
    ("environment", "header"),
    [
        ({}, None),
        ({"ELASTIC_API_KEY": "c2VjcmV0", "ELASTIC_PASSWORD": "other"}, "ApiKey c2VjcmV0"),
        ({"ELASTIC_PASSWORD": "pw"}, "Basic ZWxhc3RpYzpwdw=="),
        ({"ELASTIC_USERNAME": "me", "ELASTIC_PASSWORD": "pw"}, "Basic bWU6cHc="),
    ],
)
def test_credentials_come_from_the_environment(environment: dict[str, str], header: str | None) -> None:
    with scripted(OK) as (url, script):
        count(url, environment)
    assert {name.lower(): value for name, value in script.seen[0][1].items()}.get("authorization") == header


def test_a_refused_credential_is_not_shown() -> None:
    with scripted((401, fault("security_exception", "bad"))) as (url, _), pytest.raises(AuthenticationError) as caught:
        count(url, {"ELASTIC_PASSWORD": "hunter2", "ELASTIC_USERNAME": "someone"})
    assert "hunter2" not in repr(caught.value) + str(caught.value)
    assert "someone" not in str(caught.value)


def test_an_untrusted_certificate(tmp_path) -> None:
    """A server whose certificate nobody signed is refused before anything is sent."""
    certificate, key = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = socket.create_server(("127.0.0.1", 0))
    url = f"https://127.0.0.1:{server.getsockname()[1]}"

    def accept() -> None:
        with suppress(OSError):
            context.wrap_socket(server.accept()[0], server_side=True)

    thread = threading.Thread(target=accept)
    thread.start()
    with server, pytest.raises(PrerequisiteError, match=r"TLS failed .* set ca_certs"):
        count(url)
    thread.join(timeout=60)


def self_signed(folder) -> tuple[str, str]:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    certificate, key = str(folder / "cert.pem"), str(folder / "key.pem")
    subprocess.run(
        [
            program,
            *["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-keyout"],
            key,
            "-out",
            certificate,
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key


def test_a_missing_certificate_file(tmp_path) -> None:
    with pytest.raises(NotFoundError, match=r"none\.pem: no such file .* check ca_certs"):
        count("https://127.0.0.1:1", ca_certs=tmp_path / "none.pem")


NO_NAMES = [
    ".",
    "..",
    "-a",
    "_a",
    "+a",
    "a b",
    "a/b",
    "a\\b",
    'a"b',
    "a#b",
    "a:b",
    "a<b",
    "a>b",
    "a|b",
    "%2e%2e",
    "%2E",
    "a%2fb",
    "%3Ca-%7Bnow%2Fd%7D%3E",
    "100%",
    "<a-{now/d}>",
    "a\n",
    "a\0",
    "é" * 128,
]


@pytest.mark.parametrize("name", [".hidden", "a.b", "a-b_c+d", "Alias", "é", "a" * 255])
def test_names_of_indexes(name: str) -> None:
    assert IndexPlace(index=name).index == name


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status: int) -> None:
    with scripted(OK) as (there, asked), scripted((status, {}), headers={"Location": f"{there}/x"}) as (here, _):
        with pytest.raises(PrerequisiteError) as told:
            count(here, {"ELASTIC_API_KEY": "a key of mine"})
        assert asked.seen == []
    assert f"{here[7:]} redirects to {there[7:]}; redirects are not followed" in str(told.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"url": "localhost:9200"}, "not an address"),
        ({"url": "https://me:secret@host:9200"}, "must not contain credentials"),
        ({"index": "a,b"}, "one index"),
        ({"index": "logs-*"}, "one index"),
        ({"index": "logs-?"}, "one index"),
        ({"index": "_all"}, "one index"),
        *(({"index": name}, "not a valid index name") for name in NO_NAMES),
        ({"timeout": 0}, "greater than 0"),
        ({"batch": 5001}, "less than or equal to 5000"),
    ],
)
def test_a_place_that_cannot_be(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        IndexPlace(**{"index": "passages", **values})


def test_an_answer_that_is_nested_too_deep_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def deep(_: object) -> None:
        raise RecursionError("maximum recursion depth exceeded while decoding a JSON array")

    with pytest.raises(ProviderError, match=r"the server's answer is nested too deeply.*check that url"):
        ElasticServer(IndexPlace(url="http://127.0.0.1:9", index="i", retries=0)).call(deep)
