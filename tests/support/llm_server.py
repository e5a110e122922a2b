"""An OpenAI-compatible server on this machine that knows the truth, and misbehaves on demand.

    with LLMServer(truth=lambda query, passage: 5 if query in passage else 1, faults=["429:1", "grade 7"]) as server:
        ...  # llm.api_base or OPENAI_BASE_URL = server.url, any OPENAI_API_KEY

It answers the forms of `raggs` (grade, grades, order, rewrite, relevance) from `truth`, states probabilities of grades
at /decisions and as log-probabilities (`support.llm_decisions`), answers questions by all
passages that it is shown (answer), finds them correct if they hold the reference answer (correct), says by `splits`
after which pieces of a text to cut, makes questions of windows (`support.llm_asking`), gives embeddings of `dims`
numbers, and scores at /rerank whatever stands before it (`support.llm_reranks`). It keeps every request, and spends
one entry of `faults` on each; a None in it is a good answer. `fault_for` decides by number and body (see
`support.fault_plan`), `headers_for` by number what good answers carry; `prefixes` what of prompts came before
(`support.llm_prefixes`). Files and batches are there too (`support.llm_batches`). It runs in a thread with a loop of
its own.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import threading
import time
from collections.abc import Callable, Iterable
from email.utils import formatdate
from typing import Any

from support.llm_asking import asked
from support.llm_batches import BatchAPI, Wire
from support.llm_decisions import DECISION_FORMS, DIGIT_FORMS, decided, digit_choice
from support.llm_prefixes import Prefixes
from support.llm_reranks import scores

Truth = Callable[[str, str], int]
FENCED = re.compile(r"<data-([0-9a-f]+)>\n(.*?)\n</data-\1>", re.DOTALL)
LABELLED = re.compile(r"^Passage ([A-Z]+):$", re.MULTILINE)
ASKED = re.compile(r"POST (/chat/completions|/decisions|/embeddings|.*/rerank)")
KEY = "sk-test-0123456789abcdef"
TRICKLE_S = 0.2  # between two bytes
# spoiled on the outside only: what they bring is the truth
HARMLESS = ("", "wrong type", "fenced", "invented", "mended", "truncated list", *DECISION_FORMS, *DIGIT_FORMS)

# status, words of the error, its code
ERRORS: dict[str, tuple[int, str, str]] = {
    "400": (400, "Invalid value for a field", "invalid_value"),
    "401": (401, "Incorrect API key provided: sk-te***************cdef.", "invalid_api_key"),
    "403": (403, "This key may not use the model", "forbidden"),
    "404": (404, "The model does not exist", "model_not_found"),
    "429": (429, "Rate limit reached", "rate_limit_exceeded"),
    "500": (500, "The server had an error", "server_error"),
    "502": (502, "Bad gateway", "bad_gateway"),
    "503": (503, "Overloaded", "overloaded"),
    "context": (400, "This model's maximum context length is 8192 tokens", "context_length_exceeded"),
    "policy": (400, "Rejected by the content management policy, content_policy_violation", "content_policy_violation"),
    "quota": (429, "You exceeded your current quota", "insufficient_quota"),
    "no parameter": (400, "Unsupported value: 'temperature' does not support 0.3", "unsupported_value"),
    "no limit": (400, "Unsupported parameter: 'max_tokens' is not supported with this model.", "unsupported_parameter"),
    "no marks": (400, "Unknown parameter: 'prompt_cache_options'.", "unknown_parameter"),
    "no schema": (400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported", "invalid_value"),
}
# bodies that are no completion
BODIES: dict[str, tuple[str, bytes]] = {
    "garbage": ("application/json", b"\xff\xfe\x00garbage"),
    "html": ("text/html", b"<html><body>Welcome</body></html>"),
    "cut body": ("application/json", b'{"id": "chatcmpl-1", "choices": [{"mess'),
    "list body": ("application/json", b"[]"),
    "deep body": ("application/json", b'{"choices": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
}
# bytes that are no answer at all
NOISE = b"\x16\x03\x01\x02\x00\x01\xff\xfe noise, not HTTP\r\n\r\n"


def no_truth(query: str, passage: str) -> int:
    """A grade that depends on nothing but the texts."""
    return (len(query) + len(passage)) % 5 + 1


def every_third(pieces: list[str]) -> list[int]:
    """After every third piece, and at least after one."""
    return list(range(3, len(pieces) + 1, 3)) or [1]


class LLMServer:
    """The server as a context manager.

    Attributes:
        url: for `llm.api_base` or OPENAI_BASE_URL; known once it runs.
        requests: bodies, in order of arrival.
        peak: most requests in progress at once.
        faults: what is still to go wrong, in order.
        paid_twice: bodies that came again after their good answer had been sent.
        batches: the Batch API, with its own faults and counts.
        obeys: what a text outside the fence may order, see `support.hostile`; None obeys nothing.
        splits: from the pieces of a text to the numbers of those after which to cut.
        evidence: from a query and passages to the positions of each combination that suffices.
        suffices: from a query and passages to whether they suffice.
        echo_keys: whether errors quote the key that they got.
        states: fields of every good answer, such as `model` and `system_fingerprint`, over what it would say of itself;
            by the number of the request, if it is a function. A field that is None is left out.
        hidden_for: from the body of a question to tokens of hidden reasoning in its answer.
        honours_limit: whether an answer ends at `max_tokens`.
    """

    def __init__(
        self,
        truth: Truth = no_truth,
        faults: Iterable[str | None] = (),
        *,
        fault_for: Callable[[int, dict[str, Any]], str | None] | None = None,
        delay_s: float = 0.0,
        count_tokens: bool = True,
        dims: int = 8,
        headers_for: Callable[[int], dict[str, str]] = lambda number: {},
        prefixes: Prefixes | None = None,
    ) -> None:
        self.prefixes = prefixes
        self.truth = truth
        self.faults = list(faults)
        self.fault_for = fault_for
        self.delay_s = delay_s
        self.count_tokens = count_tokens
        self.dims = dims
        self.headers_for = headers_for
        self.splits: Callable[[list[str]], list[int]] = every_third
        self.evidence: Callable[[str, list[str]], list[list[int]]] = lambda query, passages: [[0]]
        self.suffices: Callable[[str, list[str]], bool] = lambda query, passages: True
        self.obeys: Callable[[str], bool] | None = None
        self.echo_keys = False
        self.states: dict[str, Any] | Callable[[int], dict[str, Any]] = {}
        self.hidden_for: Callable[[dict[str, Any]], int] = lambda body: 0
        self.honours_limit = True
        self.paid_twice: list[str] = []
        self._answered: set[str] = set()
        self.requests: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.peak = 0
        self.url = ""
        self._running = 0
        self.batches = BatchAPI(self._line)
        self._ready = threading.Event()
        self._stop: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    @property
    def count(self) -> int:
        return len(self.requests)

    def __enter__(self) -> LLMServer:
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the server did not start")
        return self

    def __exit__(self, *unused: object) -> None:
        self._stop()
        self._thread.join(10)

    # --- the wire ---

    async def _serve(self) -> None:
        connections: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connections.add(task := asyncio.current_task())
            try:
                while await self._exchange(reader, writer):
                    pass
            except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                pass
            finally:
                connections.discard(task)
                writer.close()

        done, loop = asyncio.Event(), asyncio.get_running_loop()
        self._stop = lambda: loop.call_soon_threadsafe(done.set)
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._ready.set()
        await done.wait()
        server.close()
        for task in list(connections):
            task.cancel()
        await asyncio.sleep(0)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; False ends the connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = re.search(r"content-length: *(\d+)", head, re.IGNORECASE)
        raw = await reader.readexactly(int(length[1])) if length else b""
        method, path, _ = head.split(" ", 2)
        path = path.partition("?")[0].removeprefix("/v1")
        if not ASKED.fullmatch(f"{method} {path}"):
            return await self._elsewhere(Wire(method, path, head, raw), writer)
        body = json.loads(raw)
        self.requests.append(body)
        if (digest := json.dumps(body, sort_keys=True)) in self._answered:
            self.paid_twice.append(digest)
        self.times.append(time.monotonic())
        self._running += 1
        self.peak = max(self.peak, self._running)
        if self.prefixes is not None and "messages" in body:
            self.prefixes.begins(body)
        try:
            await asyncio.sleep(self.delay_s)
            fault = self._next_fault(body) or ""
            open_still = await self._answer(body, fault, head, writer)
            if open_still and fault in HARMLESS:
                self._answered.add(digest)
            return open_still
        finally:
            self._running -= 1

    async def _elsewhere(self, wire: Wire, writer: asyncio.StreamWriter) -> bool:
        status, content = self.batches.serve(wire)
        if status == 0:
            writer.transport.abort()
            return False
        writer.write(_http(status, content))
        await writer.drain()
        return True

    async def _answer(self, body: dict[str, Any], fault: str, head: str, writer: asyncio.StreamWriter) -> bool:
        name, _, detail = fault.partition(":")
        if name in ("reset", "noise"):
            if name == "noise":
                writer.write(NOISE)
                await writer.drain()
            writer.transport.abort() if name == "reset" else writer.close()
            return False
        if name == "slow":
            await asyncio.sleep(float(detail))
        if name == "trickle":
            return await _trickle(writer, _http(200, json.dumps(self._completion(body, "")).encode()))
        if name.isdecimal() and name.startswith("30"):
            writer.write(_http(int(name), b"", headers={"Location": detail}))
        elif name == "200":  # an error all the same
            writer.write(_http(200, self._error(detail, head)[1]))
        elif name in ERRORS:
            status, content = self._error(name, head)
            writer.write(_http(status, content, headers=_retry_after(detail)))
        elif name in BODIES:
            kind, content = BODIES[name]
            writer.write(_http(200, content, kind))
        else:
            kind = "text/plain" if name == "wrong type" else "application/json"
            headers = self.headers_for(len(self.requests))
            writer.write(_http(200, json.dumps(self._completion(body, name)).encode(), kind, headers))
        await writer.drain()
        return True

    def _error(self, name: str, head: str) -> tuple[int, bytes]:
        status, words, code = ERRORS[name]
        if self.echo_keys:
            key = re.search(r"authorization: (.*)\r", head, re.IGNORECASE)
            words += f" Your request said Authorization: {key[1] if key else ''}"
        return status, json.dumps({"error": {"message": words, "type": code, "code": code}}).encode()

    def _line(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        """The answer to one line of a batch; None leaves it out."""
        self.requests.append(body)
        name = (self._next_fault(body) or "").partition(":")[0]
        if name in ERRORS:
            status, content = self._error(name, "")
            return status, json.loads(content)
        return None if name in ("reset", "slow") else (200, self._completion(body, name))

    def _next_fault(self, body: dict[str, Any]) -> str | None:
        if self.fault_for is not None:
            return self.fault_for(len(self.requests), body)
        return self.faults.pop(0) if self.faults else None

    # --- what it says ---

    def _embeddings(self, body: dict[str, Any], fault: str) -> dict[str, Any]:
        """A vector for each text, in reverse, since only `index` says whose it is."""
        dims = body.get("dimensions", self.dims)
        data = [{"index": place, "embedding": embedding(text, dims)} for place, text in enumerate(body["input"])]
        _spoil_vectors(data, fault)
        sent = sum(len(text) for text in body["input"]) // 4
        return {"object": "list", "model": body["model"], "data": data[::-1], "usage": {"prompt_tokens": sent}}

    def _completion(self, body: dict[str, Any], fault: str) -> dict[str, Any]:
        stated = self.states(len(self.requests)) if callable(self.states) else self.states
        found = {**self._plain(body, fault), **stated}
        return {name: value for name, value in found.items() if value is not None}

    def _plain(self, body: dict[str, Any], fault: str) -> dict[str, Any]:
        if "questions" in body:
            return decided(body, self.truth, fault, counted=self.count_tokens)
        if "input" in body:
            return self._embeddings(body, fault)
        if "documents" in body:
            return scores(body, fault, counted=self.count_tokens)
        content = _quoting(body) if fault == "quote" else _spoil(self._truthful(body, fault), fault)
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if fault == "refusal":
            message["refusal"] = "I cannot help with that."
        finish = {"truncated": "length", "filtered": "content_filter"}.get(fault, "stop")
        choice = {"index": 0, "finish_reason": finish, "message": message}
        if body.get("logprobs"):
            choice = digit_choice(body, self.truth, fault)
            message, content = choice["message"], choice["message"]["content"]
        found: dict[str, Any] = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [] if fault == "no choices" else [choice],
        }
        if self.count_tokens:
            sent = sum(len(message["content"]) for message in body["messages"]) // 4
            said = len(content or "") // 4 + 1 + self.hidden_for(body)
            limit = body.get("max_tokens") or body.get("max_completion_tokens")
            if limit is not None and said > limit and self.honours_limit:
                said, message["content"], found["choices"][0]["finish_reason"] = limit, "", "length"
            found["usage"] = {"prompt_tokens": sent, "completion_tokens": said, "total_tokens": sent + said}
            if self.prefixes is not None:
                found["usage"] = self.prefixes.ends(body, said)
        if fault == "hidden":
            found["usage"]["completion_tokens"] = 20_000
        if fault == "huge usage":
            found["usage"] = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), int("9" * 400))
        return found

    def _truthful(self, body: dict[str, Any], fault: str = "") -> dict[str, Any]:
        """The right answer to the first user message, by its form."""
        text = next(message["content"] for message in body["messages"] if message["role"] == "user")
        if _form(body) == "ask":
            order = self.obeys is not None and self._ordered_about(body)
            return asked(text, "obeyed" if order else fault)
        if self.obeys is not None and self._ordered_about(body):
            told = sorted(LABELLED.findall(text), reverse=True)
            if _form(body) == "grades":
                return {label: {"reason": "as told", "grade": 5} for label in told}
            return {"reason": "as told", "grade": 5, "order": told}
        query, *passages = [match[2] for match in FENCED.finditer(text)]
        if (found := self._about_answers(_form(body), query, passages)) is not None:
            return found
        if _form(body) in ("hyde", "multi_query"):
            count = int(text.rpartition(":")[2].strip(" ."))
            return {"texts": [f"{_form(body)} {number} of {query}" for number in range(1, count + 1)]}
        if _form(body) == "split":
            return {"split_after": self.splits([query, *passages])}
        labels = LABELLED.findall(FENCED.sub("", text))
        if labels:
            grades = {label: self.truth(query, passage) for label, passage in zip(labels, passages, strict=True)}
            if _form(body) == "grades":
                return {label: {"reason": "by the truth", "grade": grade} for label, grade in grades.items()}
            return {"order": sorted(labels, key=lambda label: -grades[label])}
        if passages:
            grade = self.truth(query, passages[0])
            return (
                {"relevance": 20 * grade} if _form(body) == "relevance" else {"reason": "by the truth", "grade": grade}
            )
        return {"query": " ".join(query.split())}

    def _about_answers(self, form: str, query: str, passages: list[str]) -> dict[str, Any] | None:
        match form:
            case "answer":
                return {"answer": " ".join(passages)}
            case "correct":
                reference, answer = passages
                return {"reason": "by the reference", "correct": int(reference in answer)}
            case "evidence":
                sets = [[chr(ord("A") + place) for place in places] for places in self.evidence(query, passages)]
                return {"reason": "by the evidence", "sets": sets}
            case "standalone":
                return {"query": f"{' '.join(passages[0].split())} ({query.splitlines()[0]})"}
            case "suffices":
                return {"reason": "by the passages", "sufficient": int(self.suffices(query, passages))}
        return None

    def _ordered_about(self, body: dict[str, Any]) -> bool:
        """Whether anything that stands outside the fence tells this server what to do."""
        outside = (FENCED.sub("", message["content"]) for message in body["messages"])
        return any(map(self.obeys, outside))


def _form(body: dict[str, Any]) -> str:
    return body.get("response_format", {}).get("json_schema", {}).get("name", "")


async def _trickle(writer: asyncio.StreamWriter, content: bytes) -> bool:
    """The right answer, so slowly that nobody waits for it."""
    for byte in content:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(TRICKLE_S)
    return False


def _quoting(body: dict[str, Any]) -> str:
    """An answer of no use that repeats all it was shown."""
    shown = [match[2] for message in body["messages"] for match in FENCED.finditer(message["content"])]
    return json.dumps({"reason": "\n".join(shown), "grade": 7}, ensure_ascii=False)


def embedding(text: str, dims: int) -> list[float]:
    """A vector that depends on nothing but the text, not of unit length."""
    draw = random.Random(text)
    return [round(draw.gauss(0, 2), 6) for _ in range(dims)]


def _spoil_vectors(data: list[dict[str, Any]], fault: str) -> None:
    match fault:
        case "shorter answer":
            data.pop()
        case "wrong dimension":
            data[-1]["embedding"].append(0.5)
        case "huge number":
            data[-1]["embedding"][0] = 10**400
        case "nan":
            data[-1]["embedding"][0] = math.nan
        case "infinity":
            data[-1]["embedding"][0] = 1e300
        case "null":
            data[-1]["embedding"][0] = None
        case "same index":
            data[-1]["index"] = 0


def _spoil(answer: dict[str, Any], fault: str) -> str | None:
    order = list(answer.get("order", ()))
    spoiled: dict[str, Any] = {
        "grade 7": {"reason": "", "grade": 7},
        "grade text": {"reason": "", "grade": "4"},
        "grade float": {"reason": "", "grade": 4.5},
        "grade true": {"reason": "", "grade": True},
        "no grade": {"reason": "none"},
        "repeated label": {"order": [*order[:-1], *order[:1]]},
        "missing label": {"order": order[1:]} if order else dict([*answer.items()][1:]),
        "unknown label": {"order": [*order[:-1], "?"]} if order else {**dict([*answer.items()][1:]), "?": {"grade": 3}},
        "label too many": {**answer, "Z": {"reason": "", "grade": 3}},
        "one grade 7": {**answer, "A": {"reason": "", "grade": 7}},
        "empty query": {"query": " "},
        "few texts": {"texts": list(answer.get("texts", ()))[1:]},
        "empty text": {"texts": [" " for _ in answer.get("texts", ())]},
        "texts in a word": {"texts": "wing"},
        "relevance 101": {"relevance": 101},
        "relevance text": {"relevance": "50"},
        "relevance nan": {"relevance": math.nan},
        "no relevance": {},
        "split descending": {"split_after": [2, 1]},
        "split twice": {"split_after": [1, 1]},
        "split below": {"split_after": [0, 1]},
        "split beyond": {"split_after": [1, 10_000]},
        "split text": {"split_after": "split_after: 1"},
        "split texts": {"split_after": ["1"]},
        "split true": {"split_after": [True]},
        "split nowhere": {"split_after": []},
    }
    if fault in ("empty", "refusal", "filtered"):
        return None if fault == "refusal" else ""
    text = json.dumps(spoiled.get(fault, answer))
    if fault == "truncated":
        return text[: len(text) // 2]
    return {"prose": "I would say four.", "fenced": f"```json\n{text}\n```"}.get(fault, text)


def _retry_after(detail: str) -> dict[str, str]:
    """`2` seconds, `date` for an HTTP date a second ahead, or `day` for an allowance that is used up until tomorrow."""
    if not detail:
        return {}
    if detail == "day":
        return {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "24h0m0s"}
    return {"Retry-After": formatdate(time.time() + 1, usegmt=True) if detail == "date" else detail}


def _http(status: int, content: bytes, kind: str = "application/json", headers: dict[str, str] | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(content)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + content
