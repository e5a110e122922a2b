"""The page's HTTP: who comes in, what is refused with which sentence, and that texts stay texts."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from support.hostile import ORDERS, hostile
from support.reviewpage import write_run

from raggs.app.serve import ServeRequest, prepare
from raggs.parts.reviews import GradeReview, ReviewStore
from raggs.reviewing.server import BURST, MAX_BODY_BYTES, AccessGate, AddressRateLimit

TOKEN = "a-token-of-a-test-0123"
ME = {"who": "ada", "tab": "t1"}


def visitor(folder: Path, texts: tuple[str, ...] = ()) -> TestClient:
    run = write_run(folder / "runs" / "demo", texts=texts)
    app, _ = prepare(ServeRequest([run], overlap=0, repeats=0), TOKEN)
    return TestClient(app, base_url="http://127.0.0.1:8765", headers={"x-raggs": "1"}, follow_redirects=False)


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[TestClient]:
    with visitor(tmp_path) as client:
        yield client


@pytest.fixture
def client(stranger: TestClient) -> TestClient:
    assert stranger.get("/", params={"token": TOKEN}).status_code == 303
    return stranger


def item_of(client: TestClient) -> str:
    found: str = client.post("/api/next", json=ME).json()["ahead"][0]["item"]
    return found


def said(folder: Path) -> list[Any]:
    return list(ReviewStore(folder / "reviews").read())


def test_a_dispute_that_is_shown_stays_first(client: TestClient) -> None:
    items = [each["item"] for each in client.post("/api/next", json=ME).json()["ahead"]]
    for who, grade in (("ada", 1), ("bo", 5)):
        for item in items:
            client.post("/api/grade", json={"who": who, "tab": "t", "item": item, "grade": grade, "note": ""})
    for item in items:
        found = client.post("/api/differences", json={**ME, "shown": item}).json()
        assert (found["first"]["view"]["item"], found["people"]) == (item, len(items))


def test_a_grade_goes_to_the_disk(client: TestClient, tmp_path: Path) -> None:
    body = {**ME, "item": item_of(client), "grade": 4, "note": "so it is", "seconds": 2.5}
    answer = client.post("/api/grade", json=body)
    assert answer.status_code == 200
    (line,) = said(tmp_path)
    assert isinstance(line, GradeReview)
    assert (line.grade, line.note, line.prompt, line.id) == (4, "so it is", "grade@1", answer.json()["line"])
    assert client.post("/api/known", json=ME).json() == {"words": 1}
    assert client.post("/api/undo", json={**ME, "line": None}).json()["progress"]["done"] == 0


def test_the_rubric_is_the_judges_in_both_languages(client: TestClient) -> None:
    rubric = client.get("/api/about").json()["rubric"]
    assert rubric["en"]["5"].startswith("The passage answers the question clearly")
    assert rubric["fr"]["1"] == "Sans rapport avec la question."


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"grade": 7}, "grade 7 is outside 1..5"),
        ({"grade": "4"}, "grade: Input should be a valid integer"),
        ({"grade": True}, "grade: Input should be a valid integer"),
        ({"who": " "}, "who: String should match"),
        ({"who": "x" * 81}, "who: String should have at most 80"),
        ({"note": "x" * 10_001}, "note: String should have at most 10000"),
        ({"seconds": -1}, "seconds: Input should be greater"),
        ({"item": "../../etc/passwd"}, "item: String should match"),
        ({"rank": 1}, "rank: Extra inputs are not permitted"),
    ],
)
def test_what_a_browser_cannot_have_meant(
    client: TestClient, tmp_path: Path, change: dict[str, object], sentence: str
) -> None:
    body = {**ME, "item": item_of(client), "grade": 4, **change}
    answer = client.post("/api/grade", json=body)
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]
    assert said(tmp_path) == []


def test_names_that_look_the_same_are_one(client: TestClient, tmp_path: Path) -> None:
    item = item_of(client)
    for number, name in enumerate(("José", "Jose\u0301", "Jo\u200bs\u202eé")):
        body = {**ME, "who": name, "item": item, "grade": 4, "seconds": number}
        assert client.post("/api/grade", json=body).status_code == 200
    assert {line.who for line in said(tmp_path)} == {"José"}


def test_what_is_no_json_or_nobody_knows(client: TestClient) -> None:
    headers = {"content-type": "application/json"}
    assert client.post("/api/grade", content=b"{", headers=headers).status_code == 400
    assert client.post("/api/skip", json={**ME, "item": "0" * 64}).status_code == 404
    assert client.post("/api/nothing", json=ME).status_code == 404
    assert client.get("/api/grade").status_code == 405


def test_without_the_token_nobody_comes_in(stranger: TestClient) -> None:
    for path in ("/", "/page.js", "/api/about", "/nothing"):
        assert stranger.get(path).status_code == 403
    assert stranger.post("/api/next", json=ME).status_code == 403
    wrong = stranger.get("/", params={"token": "wrong"})
    assert wrong.status_code == 403
    assert "wrong token" in wrong.json()["error"]
    assert "set-cookie" not in wrong.headers
    right = stranger.get("/", params={"token": TOKEN})
    cookie = right.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=lax" in cookie.lower()
    assert TOKEN not in cookie
    assert right.headers["location"] == "/"


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
    ],
)
def test_another_sites_page_makes_nobody_grade(client: TestClient, tmp_path: Path, headers: dict[str, str]) -> None:
    body = json.dumps({**ME, "item": item_of(client), "grade": 4})
    answer = client.post("/api/grade", content=body, headers={"content-type": "application/json", **headers})
    assert answer.status_code == 403
    del client.headers["x-raggs"]
    assert client.post("/api/next", json=ME).status_code == 403
    assert said(tmp_path) == []


def test_our_own_page_may(client: TestClient) -> None:
    answer = client.post("/api/next", json=ME, headers={"origin": "http://127.0.0.1:8765"})
    assert answer.status_code == 200


def test_every_answer_forbids_what_the_page_does_not_want(client: TestClient) -> None:
    for answer in (client.get("/"), client.get("/nothing"), client.get("/", params={"token": "x"})):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


def test_the_page_asks_nobody_else(client: TestClient) -> None:
    page = client.get("/").text
    assert "<style" not in page
    assert "style=" not in page
    assert "onclick" not in page
    for name in ("", "page.css", "page.js", "words.js", "waiting.js", "views.js"):
        assert "//" not in client.get(f"/{name}").text.replace("// ", "").replace("http://www.w3.org", "")
        assert "innerHTML" not in client.get(f"/{name}").text


@pytest.mark.parametrize(
    "path",
    ["/../pyproject.toml", "/%2e%2e/x", "/page.css/../../session.py", "/..%2fsession.py", "//etc/passwd"],
)
def test_no_path_leads_out_of_the_page(client: TestClient, path: str) -> None:
    assert client.get(path).status_code in (404, 405)


def test_too_much_at_once(client: TestClient, tmp_path: Path) -> None:
    item = item_of(client)
    huge = json.dumps({**ME, "item": item, "grade": 3, "note": "x" * MAX_BODY_BYTES})
    headers = {"content-type": "application/json"}
    assert client.post("/api/grade", content=huge, headers=headers).status_code == 413

    def pieces() -> Iterator[bytes]:
        yield from (huge[start : start + 1000].encode() for start in range(0, len(huge), 1000))

    assert client.post("/api/grade", content=pieces(), headers=headers).status_code == 413
    assert said(tmp_path) == []


def test_too_often() -> None:
    clock = [0.0]
    with TestClient(
        AccessGate(Starlette(), TOKEN, AddressRateLimit(lambda: clock[0])), base_url="http://127.0.0.1"
    ) as client:
        codes = [client.get("/").status_code for _ in range(int(BURST) + 1)]
        assert codes == [403] * int(BURST) + [429]
    rate = AddressRateLimit(lambda: clock[0])
    assert sum(rate.passes("a") for _ in range(1000)) == BURST
    assert rate.passes("b")
    clock[0] = 1.0
    assert rate.passes("a")


def test_hostile_passages_come_as_the_text_that_they_are(tmp_path: Path) -> None:
    texts = tuple(hostile(number, "otters") for number in range(len(ORDERS)))
    with visitor(tmp_path, texts) as client:
        client.get("/", params={"token": TOKEN})
        for _ in range(len(ORDERS) * 3):
            answer = client.post("/api/next", json=ME)
            assert answer.headers["content-type"] == "application/json"
            (view, *_rest) = answer.json()["ahead"]
            assert "otters" in view["text"]
            assert "\u202e" not in view["text"]
            client.post("/api/grade", json={**ME, "item": view["item"], "grade": 1, "seconds": 1.0})
    assert {line.grade for line in said(tmp_path)} == {1}


def test_the_rubric_of_a_reviewer_named_by_the_command(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo")
    app, (folder, passages, questions, _) = prepare(ServeRequest([run], who=" ada  lovelace "), TOKEN)
    assert (folder, passages, questions) == (tmp_path / "reviews", 12, 3)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        client.get("/", params={"token": TOKEN})
        assert client.get("/api/about").json()["who"] == "ada lovelace"


def test_a_person_gets_a_page_where_the_code_of_the_page_gets_json(stranger: TestClient) -> None:
    html = {"accept": "text/html,application/xhtml+xml"}
    answer = stranger.get("/", headers=html)
    assert (answer.status_code, answer.headers["content-type"]) == (403, "text/html; charset=utf-8")
    assert "<h1>Access denied</h1><p>Open the address that <code>raggs review serve</code> printed" in answer.text
    assert stranger.get("/").json()["error"]
    stranger.get("/", params={"token": TOKEN})
    assert stranger.get("/nothing", headers=html).text.count("<h1>There is no page at this address</h1>") == 1


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(("127.0.0.1:8765", 200), ("localhost:1", 200), ("[::1]:8765", 200), ("10.1.2.3", 200)),
        *(("evil.example", 400), ("evil.example:8765", 400), ("", 400), ("127.0.0.1.evil.example", 400)),
    ],
)
def test_a_name_that_another_site_leads_here_is_refused(client: TestClient, host: str, status: int) -> None:
    assert client.get("/api/about", headers={"host": host}).status_code == status


def test_a_name_that_was_allowed_is_ours() -> None:
    gate = AccessGate(Starlette(), TOKEN, hosts=("Review.example.com",))
    with TestClient(gate, base_url="http://review.example.com") as client:
        assert client.get("/").status_code == 403, "the token is missing, not the name"


def test_names_that_differ_by_case_are_one_annotator(client: TestClient, tmp_path: Path) -> None:
    item = item_of(client)
    client.post("/api/grade", json={**ME, "item": item, "grade": 4})
    client.post("/api/grade", json={**ME, "who": ME["who"].upper(), "item": item, "grade": 2})
    store = ReviewStore(tmp_path / "reviews")
    assert {line.who for line in store.read()} == {ME["who"]}
    assert [[word.grade for word in words.values()] for words in store.held().grades.values()] == [[2]]


def test_an_error_page_has_the_colours_of_the_other_pages(stranger: TestClient) -> None:
    answer = stranger.get("/", headers={"accept": "text/html"})
    style = re.search("<style>(.*?)</style>", answer.text, re.S)
    assert style is not None
    assert "--ground: #14161a" in style[1]
    known = b64encode(sha256(style[1].encode()).digest()).decode()
    policy = answer.headers.get_list("content-security-policy")
    assert len(policy) == 1
    assert f"style-src 'sha256-{known}'" in policy[0]
    assert "unsafe" not in policy[0]
    wrong = stranger.get("/?token=wrong", headers={"accept": "text/html"})
    assert (wrong.status_code, "printed last" in wrong.text) == (403, True)
