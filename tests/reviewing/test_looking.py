"""Look: offered only when asked for, and then no word counts as blind; a question shows what its artifacts say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from support.project import make_project
from support.reviewpage import write_run

from raggs import load_config, run
from raggs.app.serve import NOT_BLIND, ServeRequest, prepare
from raggs.base.artifacts import RankRecord
from raggs.base.jsonl import read_records
from raggs.golden.questions import GoldenQuestions
from raggs.golden.sources import open_golden
from raggs.golden.views import SHEETS, sheet_of
from raggs.parts.reviews import GradeReview, OrderReview, ReviewStore
from raggs.reviewing.pool import terms_of

TOKEN = "a-token-of-a-test-0123"
ME = {"who": "ada", "tab": "t1"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = make_project(tmp_path_factory.mktemp("looked"), queries=3, corpus=20, rank={"top": 3, "max_calls": 3})
    return run(load_config(project.config)).store.folder


@contextmanager
def visiting(*runs: Path, reviews: Path, look: bool = True) -> Iterator[TestClient]:
    app, (_, _, _, notes) = prepare(ServeRequest(runs, reviews, overlap=0, repeats=0, look=look), TOKEN)
    assert (NOT_BLIND in notes) == look
    base = "http://127.0.0.1:8765"
    with TestClient(app, base_url=base, headers={"x-raggs": "1"}, follow_redirects=False) as client:
        yield client


def enter(client: TestClient, path: str = "/") -> str:
    answer = client.get(path, params={"token": TOKEN})
    assert answer.status_code == 303
    return answer.headers["location"]


def test_nothing_of_it_is_there_unasked(made: Path, tmp_path: Path) -> None:
    with visiting(made, reviews=tmp_path, look=False) as client:
        enter(client)
        assert client.get("/api/about").json()["look"] is False
        for path in ("/look", "/look/q00", "/look.js", "/sheet.js"):
            assert client.get(path).status_code == 404
        assert client.post("/api/look", json={"question": "q00"}).status_code == 404
        assert client.post("/api/look/list", json={}).status_code == 404
        page = client.get("/look/q00", headers={"accept": "text/html"})
        assert page.status_code == 404
        assert "raggs review serve RUN --look" in page.text


def test_a_stranger_sees_nothing(made: Path, tmp_path: Path) -> None:
    with visiting(made, reviews=tmp_path) as client:
        assert client.get("/look/q00").status_code == 403
        assert client.post("/api/look", json={"question": "q00"}).status_code == 403


def test_a_question_is_its_sheet_with_people_as_they_spoke_meanwhile(made: Path, tmp_path: Path) -> None:
    with visiting(made, reviews=tmp_path) as client:
        enter(client)
        told = client.post("/api/look/list", json={}).json()
        assert (told["runs"], told["run"], [each["id"] for each in told["questions"]]) == (
            ["demo"],
            0,
            ["q00", "q01", "q02"],
        )
        questions = GoldenQuestions(open_golden(made))
        found = client.post("/api/look", json={"question": "q01"})
        view = questions.view("q01")
        sheet = replace(sheet_of(view, 3), terms=terms_of(view.text))
        assert sheet.terms
        assert found.content == SHEETS.dump_json(sheet, exclude_defaults=True)
        ranked = [record for record in read_records(made / "rank.jsonl", RankRecord) if record.qid == "q01"]
        assert [row["id"] for row in found.json()["rows"] if "rank" in row] == [each.doc_id for each in ranked]
        item = client.post("/api/next", json=ME).json()["ahead"][0]["item"]
        body = {**ME, "item": item, "grade": 4, "note": "so it is", "seconds": 1}
        assert client.post("/api/grade", json=body).status_code == 200
        (line,) = ReviewStore(tmp_path).read()
        assert isinstance(line, GradeReview)
        sheet = client.post("/api/look", json={"question": line.qid}).json()
        (row,) = [row for row in sheet["rows"] if row["id"] == line.doc_id]
        assert row["words"] == [{"who": "ada", "grade": 4, "note": "so it is"}]


@pytest.mark.parametrize("look", [True, False])
def test_who_could_look_does_not_speak_blind(made: Path, tmp_path: Path, look: bool) -> None:
    with visiting(made, reviews=tmp_path, look=look) as client:
        enter(client)
        item = client.post("/api/next", json=ME).json()["ahead"][0]["item"]
        client.post("/api/grade", json={**ME, "item": item, "grade": 2, "seconds": 1})
        shown = [view["item"] for view in client.post("/api/order/next", json=ME).json()["views"]]
        client.post("/api/order", json={**ME, "shown": shown, "order": [[each] for each in shown], "seconds": 1})
        grade, order = ReviewStore(tmp_path).read()
    assert isinstance(grade, GradeReview)
    assert isinstance(order, OrderReview)
    assert (grade.blind, order.blind) == (not look, not look)


def test_what_is_wrong_is_said(made: Path, tmp_path: Path) -> None:
    with visiting(made, reviews=tmp_path) as client:
        enter(client)
        for body, status, said in (
            ({"question": "q99"}, 404, "unknown query 'q99'"),
            ({"question": "q00", "run": 1}, 404, "run 2 does not exist"),
            ({"question": ""}, 400, "question"),
            ({"question": "q00", "run": -1}, 400, "run"),
            ({"question": "../manifest"}, 404, "unknown query"),
        ):
            answer = client.post("/api/look", json=body)
            assert (answer.status_code, said in answer.json()["error"]) == (status, True), answer.text


def test_of_several_runs_each_can_be_looked_at(made: Path, tmp_path: Path) -> None:
    bare = write_run(tmp_path / "runs" / "bare", 2, 3)  # pools and nothing else
    with visiting(made, bare, reviews=tmp_path) as client:
        enter(client)
        told = client.post("/api/look/list", json={"run": 1}).json()
        assert (told["runs"], [each["id"] for each in told["questions"]]) == (["demo", "bare"], ["q00000", "q00001"])
        sheet = client.post("/api/look", json={"question": "q00001", "run": 1}).json()
        assert [row["id"] for row in sheet["rows"]] == ["d1-0", "d1-1", "d1-2"]
        assert "top" not in sheet


@pytest.mark.parametrize(
    ("path", "leads"),
    [
        ("/look/q00", "/look/q00"),
        ("/look/a%20b%2Fc%3Fd", "/look/a%20b/c%3Fd"),
        ("/", "/"),
        ("//evil.example/look/", "/"),
        ("/look", "/look"),
        ("/looking", "/"),
        ("/api/look", "/"),
    ],
)
def test_a_deep_link_with_a_token_leads_where_it_says(made: Path, tmp_path: Path, path: str, leads: str) -> None:
    with visiting(made, reviews=tmp_path) as client:
        answer = client.get(f"http://127.0.0.1:8765{path}?token={TOKEN}")
        assert (answer.status_code, answer.headers["location"]) == (303, leads)
