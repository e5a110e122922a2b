"""`raggs review serve` as a process: what is refused, and that a kill loses nothing that was acknowledged."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from http.client import HTTPException
from pathlib import Path

import pytest
from support.project import raggs
from support.reviewpage import Visitor, serving, write_run

from raggs.app import serve
from raggs.base.errors import PrerequisiteError
from raggs.parts.reviews import ReviewStore

MOMENTS = int(os.environ.get("RAGGS_KILL_MOMENTS", "3"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("made") / "runs" / "demo", 40, 25)


@pytest.mark.parametrize(
    ("options", "sentence", "code"),
    [
        (("--host", "0.0.0.0"), "--token SECRET", 2),
        (("--host", "example.org"), "--token SECRET", 2),
        (("--token", "short"), "at least 16 ASCII characters", 2),
        (("--overlap", "2"), "--overlap 2 is outside 0..1", 2),
        (("--sample", "100000"), "cannot draw 100000 of 1000 passages", 2),
        (("--plan", "plan.jsonl", "--sample", "3"), "pass --plan or --sample", 2),
        (("--plan", "nowhere.jsonl"), "nowhere.jsonl", 4),
        (("--port", "70000"), "port 70000 is outside", 2),
        (("--annotator", " "), "1 to 80 characters", 2),
        (("--timeout", "0"), "--timeout 0 is not positive and finite", 2),
        (("--timeout", "nan"), "--timeout nan is not positive and finite", 2),
    ],
)
def test_what_cannot_be_served(run: Path, options: tuple[str, ...], sentence: str, code: int) -> None:
    said = raggs("review", "serve", run, *options)
    assert (said.returncode, sentence in " ".join(said.stderr.split())) == (code, True), said.stderr
    assert "Traceback" not in said.stderr


def test_a_port_that_is_taken(run: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        said = raggs("review", "serve", run, "--port", other.getsockname()[1])
    assert said.returncode == 6
    assert "--port 0 for a free one" in said.stderr


def test_a_second_server_for_the_same_labels_is_refused_until_the_first_is_killed(run: Path, tmp_path: Path) -> None:
    options = ("--reviews", tmp_path / "reviews")
    with serving(run, *options) as (_, process):
        said = raggs("review", "serve", run, "--port", 0, *options)
        assert said.returncode == 6
        assert "another server stores labels in this folder" in " ".join(said.stderr.split())
        assert "one server can serve several runs" in " ".join(said.stderr.split())
        process.kill()
        process.wait()
        with serving(run, *options) as (address, _):
            assert Visitor(address).post("/api/next", who="ada", tab="t")["ahead"]


def test_a_run_that_is_not_there(tmp_path: Path) -> None:
    assert raggs("review", "serve", tmp_path / "none").returncode == 4


def test_the_extra_is_named_where_it_is_missing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    with pytest.raises(PrerequisiteError, match=r'pip install "\.\[review\]"'):
        serve.serve(serve.ServeRequest([run]), lambda served: None)


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_in_peace(run: Path, tmp_path: Path, number: int) -> None:
    with serving(run, "--reviews", tmp_path / "reviews") as (address, process):
        visitor = Visitor(address)
        item = visitor.post("/api/next", who="ada", tab="t")["ahead"][0]["item"]
        visitor.post("/api/grade", who="ada", tab="t", item=item, grade=3)
        process.send_signal(number)
        assert process.wait(20) == 0
        assert process.stderr is not None
        told = process.stderr.read()
    assert "Traceback" not in told
    assert "1,000 passages of 40 queries" in told
    assert "token" not in told, "an address with its token is in no log"


FIRST = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
SHORT = "POST /api/next HTTP/1.1\r\nHost: 127.0.0.1\r\n{cookie}X-Raggs: 1\r\nContent-Type: application/json\r\n"
SHORT += "Content-Length: 500\r\n\r\n" + '{"who":'
HALF_OPEN = {
    "nothing": "",
    "half a request line": "GET /page.c",
    "half of the headers": "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAcc",
    "a short body": SHORT,
    "a short body of a stranger": SHORT.replace("{cookie}", ""),
    "half of a second request": FIRST + "GET /page.c",
    "a short body in a second request": FIRST + SHORT,
}


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("drip", [False, True], ids=["silent", "a byte at a time"])
def test_half_open_connections_time_out_while_others_are_served(run: Path, tmp_path: Path, drip: bool) -> None:
    with serving(run, "--reviews", tmp_path / "reviews", "--timeout", 1) as (address, _):
        visitor = Visitor(address)
        cookie = f"Cookie: {visitor.cookie}\r\n"
        begun = time.monotonic()
        lines = {}
        for name, text in HALF_OPEN.items():
            lines[name] = socket.create_connection(("127.0.0.1", int(address.split(":")[2].split("/")[0])))
            lines[name].sendall(text.replace("{cookie}", cookie).encode())
            lines[name].settimeout(0.05)
        while lines:
            assert time.monotonic() - begun < 12, f"still open: {', '.join(lines)}"
            visitor.post("/api/next", who="ada", tab="t")  # fails where the server waits for the others
            for name, line in [*lines.items()]:
                try:
                    if drip and name != "nothing":
                        line.sendall(b"x")
                    closed = not line.recv(65_536)
                except TimeoutError:
                    closed = False
                except OSError:
                    closed = True
                if closed:
                    lines.pop(name).close()
        assert time.monotonic() - begun > 0.9, "nobody is cut off before the time limit"


def grade_on(address: str, acknowledged: list[str]) -> None:
    """Grade until the server is gone; ids of the lines that it acknowledged."""
    try:
        visitor = Visitor(address)
        ahead = visitor.post("/api/next", who="ada", tab="t")["ahead"]
        while ahead:
            told = visitor.post("/api/grade", who="ada", tab="t", item=ahead[0]["item"], grade=4, seconds=1.0)
            acknowledged.append(told["line"])
            ahead = told["ahead"]
    except (OSError, HTTPException):
        return


def test_a_kill_loses_nothing_that_was_acknowledged(run: Path, tmp_path: Path) -> None:
    acknowledged: list[str] = []
    for moment in range(MOMENTS):
        with serving(run, "--reviews", tmp_path / "reviews", "--repeats", 0) as (address, process):
            script = threading.Thread(target=grade_on, args=(address, acknowledged))
            before = len(acknowledged)
            script.start()
            while len(acknowledged) == before:
                time.sleep(0.001)
            time.sleep(0.037 * moment % 0.3)
            process.kill()
            script.join(30)
        lines = [line.id for line in ReviewStore(tmp_path / "reviews").read()]
        assert set(acknowledged) <= set(lines)
        assert len(acknowledged) <= len(lines) <= len(acknowledged) + moment + 1, "and hardly more than that"
    assert len(acknowledged) >= MOMENTS
