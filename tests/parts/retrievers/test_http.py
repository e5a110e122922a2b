"""A search service over HTTP: requests, answers, faults of the server, the cache, keys and latency."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli import call
from support.project import make_project, passages
from support.search_service import SearchService, search
from support.sweeping import make_sweep

from raggs.base.errors import (
    AuthenticationError,
    DataError,
    NotFoundError,
    PrerequisiteError,
    ProviderError,
)
from raggs.base.secrets import mask
from raggs.parts.retrievers import http
from raggs.parts.retrievers.http import HttpRetriever, fill_template, value_at


def contract_case(folder, request):
    service = SearchService()
    request.addfinalizer(service.server.shutdown)
    return {"url": service.url}


@pytest.fixture
def service():
    with SearchService() as made:
        yield made


@pytest.fixture
def make(service, context):
    made = []

    def retriever(**options):
        made.append(HttpRetriever(HttpRetriever.Config(**{"url": service.url, **options}), context))
        return made[-1]

    yield retriever
    for each in made:
        each.close()


def test_template_and_paths(make, service, ask):
    service.answer = lambda _: {
        "hits": {"hits": [{"_id": "cat", "_score": 3}, {"_source": {}, "_id": "wing", "_score": 1}]}
    }
    template = {"query": {"match": {"text": "{query}"}}, "size": "{k}", "note": "top {k} for {query}"}
    ((first, second),) = make(request=template, results="$.hits.hits", id="_id", score="_score", k=7).search(
        [ask("a {k} cat")]
    )
    assert (first.doc_id, first.score, second.doc_id) == ("cat", 3.0, "wing")
    assert service.seen[0][0] == {
        "query": {"match": {"text": "a {k} cat"}},
        "size": 7,
        "note": "top 7 for a {k} cat",
    }


def test_get_sends_parameters(make, service, ask):
    ((first, *_),) = make(method="GET", request={"query": "{query}", "k": "{k}"}, k=3).search([ask("the wing & tail")])
    assert first.doc_id == "wing"
    assert service.seen[0][0] == {"query": "the wing & tail", "k": 3}


def test_plain_ids_without_scores(make, service, ask):
    service.answer = lambda _: ["wing", "cat"]
    ((first, second),) = make(results="", id="", score=None).search([ask("x")])
    assert (first.doc_id, second.doc_id) == ("wing", "cat")
    assert first.score > second.score > 0


def test_hits_by_text(make, service, ask):
    service.answer = lambda _: {"results": [{"content": "A cat  sleeps on the mat for most\nof the day."}]}
    ((hit,),) = make(text="content", score=None).search([ask("x")])
    assert hit.doc_id == "cat"
    assert HttpRetriever.whole_corpus(HttpRetriever.Config(url="http://localhost/s", text="content"))
    service.answer = lambda _: {"results": [{"content": "A dog."}]}
    with pytest.raises(DataError, match=r"no passage of the corpus has: 'A dog\.'"):
        list(make(text="content", score=None, revision="2").search([ask("x")]))


def test_requests_run_concurrently_up_to_the_limit(make, service, ask):
    def slow(request):
        time.sleep(0.05)
        return search(request)

    service.answer = slow
    lists = list(make(concurrency=3).search([ask(f"cat {number}", f"q{number}") for number in range(9)]))
    assert [len(each) for each in lists] == [2] * 9
    assert 1 < service.most_at_once <= 3


def test_results_are_cached_by_request(make, service, ask):
    queries = [ask("a cat"), ask("a wing", "q2"), ask("a cat", "q3")]
    before = list(make().search(queries))
    assert len(service.seen) == 2  # equal requests are sent once
    assert list(make().search(queries)) == before
    assert len(service.seen) == 2
    list(make(revision="2026-11").search(queries[:1]))
    list(make(k=1).search(queries[:1]))
    assert len(service.seen) == 4


def test_latency_is_measured_by_a_new_request(make, service, ask):
    retriever = make()
    list(retriever.search([ask("a cat")]))

    def slow(request):
        time.sleep(0.1)
        return search(request)

    service.answer = slow
    assert 100 <= retriever.latency_ms(ask("a cat")) < 5000
    assert len(service.seen) == 2


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_transient_errors_are_retried(make, service, ask, status):
    fails = iter([True, True])
    service.answer = lambda request: (status, "busy", ("Retry-After", "0")) if next(fails, False) else search(request)
    ((first, *_),) = make().search([ask("a cat")])
    assert first.doc_id == "cat"
    assert len(service.seen) == 3


def test_results_before_an_error_are_kept(make, service, ask):
    service.answer = lambda request: (400, "no such field") if "wing" in request["query"] else search(request)
    queries = [ask("a cat"), ask("a wing", "q2")]
    with pytest.raises(DataError, match=r"status 400: no such field") as caught:
        list(make(concurrency=1).search(queries))
    assert caught.value.remedy == "check method, request and headers"
    service.answer = search
    assert [len(each) for each in make().search(queries)] == [2, 1]
    assert [request["query"] for request, _ in service.seen] == ["a cat", "a wing", "a wing"]


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        ((401, "who are you"), AuthenticationError, "status 401: who are you"),
        ((404, ""), NotFoundError, "status 404: no message"),
        ((302, "moved", ("Location", "http://127.0.0.1:1/")), PrerequisiteError, "status 302"),
        ((200, "<html>"), DataError, "for query q1 is not JSON"),
        ((200, "[" * 100_000), DataError, "is not JSON"),
        ({"items": []}, DataError, r"has no list at 'results' \(it has: items\)"),
        ({"results": [{"score": 1}]}, DataError, "has no id at 'id' in result 1"),
        ({"results": [{"id": "cat", "score": "high"}]}, DataError, "has no finite number at 'score' in result 1"),
        ((200, '{"results": [{"id": "cat", "score": NaN}]}'), DataError, "has no finite number"),
        ((200, '{"results": [{"id": "\\ud800", "score": 1}]}'), DataError, "has invalid Unicode at 'id' in result 1"),
        ((200, f'{{"results": [{{"id": "cat", "score": 1{"0" * 400}}}]}}'), DataError, "has no finite number"),
        ((200, '{"results": [{"id": "cat",'), DataError, "is not JSON"),
        ((200, b'{"results": [{"id": "c\xff"}]}'), DataError, "is not JSON"),
        ({"results": "cat"}, DataError, r"has no list at 'results' \(but 'cat'\)"),
        ({"results": [{"id": "dog", "score": 1}]}, DataError, "contains dog, which the corpus does not contain"),
        ({"results": [{"id": "cat", "score": 1}] * 2}, DataError, "contains the passage 'cat' twice"),
        ((503, "busy"), ProviderError, "status 503: busy"),
    ],
)
def test_unusable_answers(make, service, ask, answer, kind, message):
    service.answer = lambda _: answer
    with pytest.raises(kind, match=message) as caught:
        list(make(max_attempts=1).search([ask("a cat")]))
    assert caught.value.remedy
    assert caught.value.where == service.url


def test_a_service_that_is_down_or_silent(make, service, ask):
    service.answer = lambda request: time.sleep(0.5) or search(request)
    with pytest.raises(ProviderError, match=r"no answer within 0.1 s"):
        list(make(timeout_s=0.1, max_attempts=1).search([ask("a cat")]))
    with pytest.raises(ProviderError, match="cannot be reached"):
        list(make(url="http://127.0.0.1:9/search", max_attempts=2).search([ask("a cat")]))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"results": [', "the answer ends too early"),
        (b"\x00\xffnoise\r\n\r\n", "the answer is not HTTP"),
        (b"", "cannot be reached"),
    ],
)
def test_connections_that_break_are_retried_and_named(make, ask, raw, message):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            for _ in range(2):
                connection, _ = server.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(raw)

        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/search"
        with pytest.raises(ProviderError, match=message):
            list(make(url=url, max_attempts=2).search([ask("a cat")]))


def test_an_answer_of_10_mb_is_read_and_a_larger_one_than_allowed_is_refused(make, service, ask, monkeypatch):
    service.answer = lambda _: {"results": [{"id": "cat", "score": 1, "text": "x" * 10_000_000}]}
    ((hit,),) = make().search([ask("a cat")])
    assert hit.doc_id == "cat"
    monkeypatch.setattr(http, "MAX_ANSWER_BYTES", 1 << 20)
    with pytest.raises(DataError, match="more than 1 MB"):
        list(make(revision="2").search([ask("a cat")]))


def test_the_key_is_sent_and_never_shown(make, service, ask, monkeypatch):
    with pytest.raises(AuthenticationError, match="the environment variable SEARCHING is not set"):
        make(api_key_env="SEARCHING").check()
    monkeypatch.setenv("SEARCHING", "correct-horse-battery")
    retriever = make(api_key_env="SEARCHING")
    list(retriever.search([ask("a cat")]))
    assert service.seen[0][1]["Authorization"] == "Bearer correct-horse-battery"
    list(make(api_key_env="SEARCHING", api_key_header="X-Key", k=2).search([ask("a cat")]))
    assert service.seen[1][1]["X-Key"] == "correct-horse-battery"
    assert "correct-horse" not in mask("seen: correct-horse-battery") + repr(retriever.causes())


def test_settings_that_cannot_work():
    with pytest.raises(ValueError, match="all queries would have the same hits"):
        HttpRetriever.Config(url="http://localhost/s", request={"q": "cat"})
    with pytest.raises(ValueError, match=r"request\.filter is nested"):
        HttpRetriever.Config(url="http://localhost/s", method="GET", request={"q": "{query}", "filter": {"a": 1}})
    for headers, message in (
        ({"X-A": "a\nb"}, "not allowed in a header"),
        ({"X A": "a"}, "not allowed in a header"),
        ({"X-A": "$KEY"}, "set api_key_env"),
    ):
        with pytest.raises(ValueError, match=message):
            HttpRetriever.Config(url="http://localhost/s", headers=headers)
    with pytest.raises(ValueError, match="http"):
        HttpRetriever.Config(url="localhost/s")


@given(st.text(), st.integers(1, 1000))
def test_the_query_is_inserted_unchanged(query, k):
    assert fill_template({"a": ["{query}", {"b": "{k}"}]}, query, k) == {"a": [query, {"b": k}]}


def test_paths():
    tree = {"a": [{"b.c": 1, "b": {"c": 2}}]}
    assert value_at(tree, "a[0].b.c") == value_at(tree, "$.a.0.b.c") == 2
    assert value_at(tree, "") == tree
    assert value_at(tree, "a.1") is value_at(tree, "x.y") is None


# --- in a run and in a sweep ---

SEARCH_KEY = "correct-horse-battery-staple"


def first_passages(request):
    """The first k passages of the corpus of `make_project` and `make_sweep`, after 30 ms."""
    time.sleep(0.03)
    return {"results": [{"id": each["_id"], "score": -place} for place, each in enumerate(passages(request["k"]))]}


def files_with(folder: Path, text: str) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_a_run_searches_the_service_once_and_its_files_hold_no_key(service, tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", SEARCH_KEY)
    service.answer = first_passages
    entry = {"type": "http", "url": service.url, "api_key_env": "SEARCH_KEY", "k": 5}
    project = make_project(tmp_path / "demo", retrieve={"retrievers": [entry]})
    call("run", "--config", project.config)
    sent = len(service.seen)
    assert sent == 4 and all(headers["Authorization"] == f"Bearer {SEARCH_KEY}" for _, headers in service.seen)
    assert "Nothing to do" in call("run", "--config", project.config).output
    call("audit", project.run)
    assert len(service.seen) == sent
    assert files_with(tmp_path, "SEARCH_KEY") and not files_with(tmp_path, SEARCH_KEY)
    service.answer = lambda _: (401, f"wrong key: Bearer {SEARCH_KEY}")
    project.change(retrieve={"retrievers": [{**entry, "revision": "2"}]})
    refused = call("run", "--config", project.config, code=3).output
    assert "status 401: wrong key" in refused and SEARCH_KEY not in refused
    assert not files_with(tmp_path, SEARCH_KEY)


def test_a_sweep_measures_the_service_without_its_cache(service, tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", SEARCH_KEY)
    service.answer = first_passages
    mode = {"type": "http", "url": service.url, "api_key_env": "SEARCH_KEY", "k": 5}
    latency = {"passes": 2, "warmup": 1, "queries": 3}
    project = make_sweep(tmp_path, axes={"mode": ["lexical", mode], "k": [5]}, latency=latency)
    project.call("--quiet")
    assert len(service.seen) == 6 + 2 * (1 + 3), "six queries, then two rounds of a warm-up and three queries"
    rows = {row["name"]: row for row in json.loads((project.out / "sweep.json").read_text())["systems"]}
    (found,) = [row for name, row in rows.items() if "http" in name]
    assert 30 <= found["latency"]["retrieve"]["p50"] < 1000
    assert not files_with(tmp_path, SEARCH_KEY)
