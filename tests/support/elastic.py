"""A server that speaks Elasticsearch's protocol (noida-db), and one that answers what a test wants."""

from __future__ import annotations

import importlib.util
import json
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from raggs.parts.elastic import IndexPlace
from raggs.parts.elastic.index import ElasticIndex

START = 30.0  # seconds until the server must answer
NUMBERS = count()


def fresh_name() -> str:
    """An index name that no other test uses."""
    return f"test-{next(NUMBERS)}"


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """The address of a server that keeps its data in `folder`; skips the test where its program cannot run."""
    spec = importlib.util.find_spec("noida_db")
    if spec is None or spec.origin is None:
        pytest.skip("noida-db, the test server, is not made for this platform")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(spec.origin).parent / "noida-db"
    command = [program, "start", "--data-dir", folder, "--only", "elasticsearch", "--elasticsearch-port", str(port)]
    try:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError as error:
        pytest.skip(f"noida-db, the test server, cannot run here ({error})")
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url, process)
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.skip(f"noida-db, the test server, cannot run here (it ended with {process.returncode})")
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"noida-db does not answer at {url}")


def fill(url: str, documents: dict[str, dict[str, Any]], **properties: Any) -> str:
    """A new index with these documents by `_id`; unnamed fields are mapped as title, text and metadata."""
    name = fresh_name()
    fields = {
        "title": {"type": "text"},
        "text": {"type": "text"},
        "metadata": {"type": "object", "enabled": False},
        **properties,
    }
    server = ElasticIndex(IndexPlace(url=url, index=name)).server
    server.call(lambda client: client.indices.create(index=name, mappings={"properties": fields}))
    write(url, name, documents)
    return name


def vector_of(dims: int) -> dict[str, Any]:
    """The mapping of a vector that is searched all but exactly."""
    return {"type": "dense_vector", "dims": dims, "similarity": "cosine", "index_options": {"type": "hnsw"}}


def write(url: str, name: str, documents: dict[str, dict[str, Any] | None]) -> None:
    """Put documents into an index; None deletes one."""
    lines: list[Any] = []
    for doc_id, source in documents.items():
        lines += [{"delete": {"_id": doc_id}}] if source is None else [{"index": {"_id": doc_id}}, source]
    server = ElasticIndex(IndexPlace(url=url, index=name)).server
    answer = server.call(lambda client: client.bulk(index=name, operations=lines, refresh=True))
    assert not answer["errors"], answer
    server.close()


class Scripted:
    """Answers requests from a list, one after the other (the last one again and again); remembers the requests."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = list(answers)
        self.seen: list[tuple[str, dict[str, str], bytes]] = []

    def take(self) -> tuple[int, Any]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def scripted(
    *answers: tuple[int, Any], product: str = "Elasticsearch", headers: Mapping[str, str] | None = None
) -> Iterator[tuple[str, Scripted]]:
    """A server that gives these (status, body), each with `headers`, and its record."""
    script = Scripted(*answers)

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            script.seen.append((f"{self.command} {self.path}", dict(self.headers), self.rfile.read(length)))
            status, body = script.take()
            if status == 0:  # hang
                time.sleep(body)
                return
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("X-Elastic-Product", product)
            self.send_header("Content-Length", str(len(data)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = _answer

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
