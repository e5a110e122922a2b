"""A local search service over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qsl, urlsplit

WORDS = {"cat": "cat", "copy": "cat", "wing": "wing", "plate": "flat plate"}
SCORES = {"cat": 2.5, "copy": 2.5, "wing": 1.0, "plate": 0.5}


def search(request: dict) -> object:
    found = [name for name, word in WORDS.items() if word in request["query"]]
    return {"results": [{"id": name, "score": SCORES[name]} for name in found][: request["k"]]}


class SearchService:
    """A local service. `answer` returns a JSON value, or a pair of status and body; `seen` are the requests."""

    def __init__(self, answer: Callable[[dict], object] = search) -> None:
        self.answer, self.seen = answer, []
        self.at_once = self.most_at_once = 0
        lock, service = threading.Lock(), self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else each body waits 40 ms for the acknowledgement of its headers

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.reply(json.loads(body))

            def do_GET(self) -> None:
                found = dict(parse_qsl(urlsplit(self.path).query))
                self.reply({**found, "k": int(found.get("k", 10))})

            def reply(self, request: dict) -> None:
                with lock:
                    service.seen.append((request, dict(self.headers)))
                    service.at_once += 1
                    service.most_at_once = max(service.most_at_once, service.at_once)
                try:
                    found = service.answer(request)
                finally:
                    with lock:
                        service.at_once -= 1
                status, body, *more = found if isinstance(found, tuple) else (200, json.dumps(found))
                raw = body if isinstance(body, bytes) else body.encode()
                self.send_response(status)
                for name, value in more:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/search"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()  # polls for its end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
