"""The files and batches endpoints of the test server: upload, create, list, poll, download, cancel.

A batch is worked on by polls: the first finds it in progress, the `polls`-th finds it ended as the next entry of
`endings` says. `wire_faults` holds, by route such as "POST /batches", what goes wrong with the next requests:

    "401", "500"        that status, and nothing is done
    "reset"             the connection breaks before anything is done
    "reset after"       it is done, and the connection breaks before the answer
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Answer = Callable[[dict[str, Any]], "tuple[int, dict[str, Any]] | None"]
PAGE = 2  # batches on a page of the list, so that a few make several pages
FIRST_CREATED = int(time.time())


@dataclass(frozen=True)
class Wire:
    """One request: `path` without /v1 and query, `head` with both."""

    method: str
    path: str
    head: str
    raw: bytes

    @property
    def route(self) -> str:
        return f"{self.method} {re.sub('(file|batch)-[0-9]+', 'ID', self.path)}"


class BatchAPI:
    """Files and batches in memory.

    Attributes:
        polls: at which poll a batch has ended; 0 never.
        endings: "completed" (the default when none is left), "expired", "failed" or "cancelled"; what did not
            complete has answered every other line.
        problem: why a batch failed as a whole.
        spoil: changes the lines of the output file, in place.
        created: the batches, as the API shows them; `submitted` are the custom ids of each.
    """

    def __init__(self, answer: Answer) -> None:
        self.polls = 2
        self.endings: list[str] = []
        self.wire_faults: dict[str, list[str]] = {}
        self.problem = "too many"
        self.spoil: Callable[[list[bytes]], None] = lambda lines: None
        self.created: list[dict[str, Any]] = []
        self.submitted: list[list[str]] = []
        self.seen: list[str] = []  # routes, in order
        self._answer = answer
        self._files: dict[str, bytes] = {}
        self._polled: dict[str, int] = {}

    def serve(self, wire: Wire) -> tuple[int, bytes]:
        """Status and body; status 0 breaks the connection."""
        self.seen.append(wire.route)
        waiting = self.wire_faults.get(wire.route) or [""]
        fault = waiting.pop(0)
        if fault.isdigit():
            return int(fault), json.dumps({"error": {"message": "no", "code": fault}}).encode()
        if fault == "reset":
            return 0, b""
        found = self._found(wire)
        if fault == "reset after":
            return 0, b""
        status = 404 if found is None else 200
        return status, found if isinstance(found, bytes) else json.dumps(found or {"error": {}}).encode()

    def _found(self, wire: Wire) -> dict[str, Any] | bytes | None:
        name = wire.path.split("/")[2] if wire.path.count("/") > 1 else ""
        match wire.route:
            case "POST /files":
                return self._upload(wire.raw)
            case "GET /files/ID/content":
                return self._files.get(name)
            case "POST /batches":
                return self._create(json.loads(wire.raw))
            case "GET /batches":
                return self._page(re.search(r"after=(batch-\d+)", wire.head))
        batch = next((batch for batch in self.created if batch["id"] == name), None)
        if batch is None or wire.route not in ("GET /batches/ID", "POST /batches/ID/cancel"):
            return None
        self._advance(batch, cancelled=wire.route.endswith("cancel"))
        return batch

    def _upload(self, raw: bytes) -> dict[str, Any]:
        boundary = raw.split(b"\r\n", 1)[0]
        parts = [part.partition(b"\r\n\r\n") for part in raw.split(boundary)]
        content = next(content for head, _, content in parts if b'name="file"' in head)
        return self._keep(content.removesuffix(b"\r\n"))

    def _keep(self, content: bytes) -> dict[str, Any]:
        name = f"file-{len(self._files) + 1}"
        self._files[name] = content
        return {
            "id": name,
            "object": "file",
            "bytes": len(content),
            "created_at": 1,
            "filename": "f",
            "purpose": "batch",
        }

    def _create(self, body: dict[str, Any]) -> dict[str, Any]:
        lines = [json.loads(line) for line in self._files[body["input_file_id"]].splitlines()]
        batch = {
            "id": f"batch-{len(self.created) + 1}",
            "object": "batch",
            "status": "validating",
            "created_at": FIRST_CREATED + len(self.created),
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
            **body,
        }
        self.created.append(batch)
        self.submitted.append([line["custom_id"] for line in lines])
        return batch

    def _page(self, after: re.Match[str] | None) -> dict[str, Any]:
        newest = self.created[::-1]
        start = 0 if after is None else next(n for n, b in enumerate(newest) if b["id"] == after[1]) + 1
        data = newest[start : start + PAGE]
        return {"object": "list", "data": data, "has_more": start + PAGE < len(newest)}

    def _advance(self, batch: dict[str, Any], cancelled: bool) -> None:
        polled = self._polled[batch["id"]] = self._polled.get(batch["id"], 0) + 1
        if "output_file_id" in batch or batch["status"] == "failed":
            return
        if cancelled:
            self._end(batch, "cancelled")
        elif self.polls and polled >= self.polls:
            self._end(batch, self.endings.pop(0) if self.endings else "completed")
        else:
            batch["status"] = "in_progress"

    def _end(self, batch: dict[str, Any], status: str) -> None:
        batch["status"] = status
        if status == "failed":
            batch["errors"] = {"object": "list", "data": [{"code": "token_limit_exceeded", "message": self.problem}]}
            return
        good: list[bytes] = []
        bad: list[bytes] = []
        asked = [json.loads(line) for line in self._files[batch["input_file_id"]].splitlines()]
        for place, line in enumerate(asked):
            if status != "completed" and place % 2:
                bad.append(_line(line, None, {"code": "batch_expired", "message": "not in time"}))
            elif (answer := self._answer(line["body"])) is not None:
                (good if answer[0] == 200 else bad).append(_line(line, answer, None))
        self.spoil(good)
        batch["output_file_id"] = self._keep(b"\n".join(good) + b"\n")["id"] if good else None
        batch["error_file_id"] = self._keep(b"\n".join(bad) + b"\n")["id"] if bad else None
        batch["request_counts"].update(completed=len(good), failed=len(bad))


def _line(asked: dict[str, Any], answer: tuple[int, dict[str, Any]] | None, error: dict[str, Any] | None) -> bytes:
    response = None if answer is None else {"status_code": answer[0], "request_id": "r", "body": answer[1]}
    row = {"id": "line", "custom_id": asked["custom_id"], "response": response, "error": error}
    return json.dumps(row).encode()
