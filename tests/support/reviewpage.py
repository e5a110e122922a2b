"""Runs with pools and nothing else, for the tests of what people grade; the page's server as a process of its own."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from raggs.app.serve import ServeRequest, prepare
from raggs.base.artifacts import JudgeRecord, MergeRecord, QueryRecord, Span
from raggs.base.jsonl import read_records, write_records
from raggs.parts.reviews import ReviewStore
from raggs.reviewing.deciding import Dispute, disputes
from raggs.reviewing.pool import ModelJudges, ReviewPool, open_pool
from raggs.reviewing.session import Session, SessionSettings
from raggs.runs.manifests.models import RunManifest, utc_now
from raggs.runs.manifests.open_run import OpenedRun, open_run
from raggs.runs.manifests.store import RunStore
from support.project import environment

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-of-a-test-0123"


def write_run(folder: Path, questions: int = 3, passages: int = 4, texts: Sequence[str] = ()) -> Path:
    """A run directory with the pools of some questions.

    Args:
        texts: of the passages of each pool; made up where left out, cut from one document a question.
    """
    folder.mkdir(parents=True)
    queries = [QueryRecord(qid=f"q{number:05}", text=f"What of subject {number}?") for number in range(questions)]
    write_records(folder / "queries.jsonl", queries)
    pool = [
        MergeRecord(
            qid=query.qid,
            rank=rank + 1,
            doc_id=f"d{number}-{rank}",
            score=1.0 / (rank + 1),
            sources={"secretsystem": {"rank": rank + 1, "score": 7.25}},
            title=f"Title {number}-{rank}",
            text=text,
            span=Span(source=f"doc{number}.md", start=rank * 100, end=rank * 100 + 90),
        )
        for number, query in enumerate(queries)
        for rank, text in enumerate(texts or [f"Passage {rank} on subject {number}." for rank in range(passages)])
    ]
    write_records(folder / "merge.jsonl", pool)
    RunStore(folder).save(RunManifest(name=folder.name, created=utc_now(), config={}))
    return folder


def judge_run(run: Path, grade: Callable[[MergeRecord], int | None], judge: str = "litellm openai/x") -> Path:
    """Add a judge's grades to a run, each with a reason."""
    graded = [
        JudgeRecord(
            qid=each.qid,
            rank=each.rank,
            doc_id=each.doc_id,
            grade=grade(each),
            reason=f"because of {each.doc_id}",
            judge=judge,
        )
        for each in read_records(run / "merge.jsonl", MergeRecord)
    ]
    write_records(run / "judge.jsonl", graded)
    return run


def state_evidence(run: Path, sets: Mapping[str, Sequence[Sequence[str]]]) -> Path:
    """Add evidence sets to the queries of a run."""
    queries = [
        each.model_copy(update={"evidence": tuple(map(tuple, sets.get(each.qid, ())))})
        for each in read_records(run / "queries.jsonl", QueryRecord)
    ]
    write_records(run / "queries.jsonl", queries)
    return run


def make_pool(folder: Path, questions: int = 3, passages: int = 4) -> ReviewPool:
    return open_pool([open_run(write_run(folder / "runs" / "demo", questions, passages))])


def differing(run: OpenedRun, reviews: Path) -> list[Dispute]:
    """Where people, or people and the run's judge, differ."""
    pool = open_pool([run])
    session = Session(pool, ReviewStore(reviews), SessionSettings())
    return list(disputes(pool, session.undecided(), ModelJudges([run], pool)))


class Visitor:
    """A browser without a screen: cookie, header, JSON."""

    def __init__(self, address: str, timeout: float = 20) -> None:
        parts = urlsplit(address)
        self._line = HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)
        self._line.request("GET", f"{parts.path}?{parts.query}")
        first = self._line.getresponse()
        first.read()
        self.cookie = (first.getheader("set-cookie") or "").partition(";")[0]

    def post(self, path: str, **body: object) -> Any:
        status, told = self._answer(path, body)
        assert status == 200, told
        return told

    def refused(self, path: str, **body: object) -> tuple[int, str]:
        """Status and sentence of a request that is not accepted."""
        status, told = self._answer(path, body)
        return status, told["error"]

    def _answer(self, path: str, body: dict[str, object]) -> tuple[int, Any]:
        headers = {"content-type": "application/json", "x-raggs": "1", "cookie": self.cookie}
        self._line.request("POST", path, json.dumps(body), headers)
        answer = self._line.getresponse()
        return answer.status, json.loads(answer.read())


def command_of(run: Path, *options: object) -> list[str]:
    """The words of `raggs review serve` on a free port."""
    return [*map(str, [sys.executable, "-m", "raggs", "review", "serve", run, "--port", 0, *options])]


@contextmanager
def serving(run: Path, *options: object) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of `raggs review serve`, and its process."""
    with subprocess.Popen(
        command_of(run, *options),
        cwd=ROOT,
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not re.match(r"http://\S+\n", line):
                process.kill()
                raise AssertionError(process.communicate()[1])
            yield line.strip(), process
        finally:
            process.kill()
            process.wait()


@contextmanager
def served(run: Path, port: int = 0, **asked: Any) -> Iterator[str]:
    """The address of the page, served by a thread of this process: what needs no kill starts at once."""
    import uvicorn  # late: what needs no page needs no server

    app, _ = prepare(ServeRequest([run], **asked), TOKEN)
    settings = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=1)
    with socket.create_server(("127.0.0.1", port)) as listener:
        server = uvicorn.Server(settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/?token={TOKEN}"
        finally:
            server.should_exit = server.force_exit = True
            thread.join(10)
