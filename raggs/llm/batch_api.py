"""A provider's Batch API in OpenAI's form: its endpoints, the lines of its files, and the queue of batches.

`BatchAPI` never repeats a request. If the response to a submission was lost, callers must search for the batch before
they submit it again. Errors of the server are raised as a `Fault` with secrets removed. Fields that are missing in a
response are None or empty; only a missing id is an error.

`BatchQueue` collects requests, sends each once, polls the batches until they end, and returns the answers.

Invariants: a batch is written to the journal before it is sent, so a killed run finds it and waits for it. A request is
in at most one open batch. The journal entry of a sent batch is removed only when each of its answers is cached or
requested again, or will never come. The queue does not check answers. The caller checks them, as for direct calls.

`BatchJournal` records on disk which requests are in which batch. When a killed run is started again, it therefore waits
for the batch that it sent and sends no second one. There is one small file per batch. It is written and flushed before
the batch is sent, updated with the provider's id, and deleted when no more answers are expected from the batch. Only
one process at a time can lock the folder.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from filelock import FileLock, Timeout

from raggs.base.errors import BusyError, ConfigError, ProviderError, RaggsError
from raggs.base.files import remove_leftovers, write_atomic
from raggs.base.hashing import canonical_json
from raggs.base.types import as_list, as_object, as_text
from raggs.llm import providers
from raggs.llm.calls import ChatCall, Completion, completion_of
from raggs.llm.faults import MARK_WORDS, UNREADABLE_ANSWER, Fault, FaultRule, Treatment, fault_of, redact
from raggs.llm.messages import add_cache_marks
from raggs.llm.settings import BatchSettings

if TYPE_CHECKING:
    from tenacity import AsyncRetrying

ENDPOINT: Final = "/v1/chat/completions"
WINDOW: Final = "24h"  # the only available value
TOKEN = "raggs"  # noqa: S105 - metadata key of the journal token in a batch
UPLOAD_S = 600.0
CLOCKS_S = 86_400  # seconds that the provider's clock may differ from ours
FINAL_STATUSES = ("completed", "expired", "cancelled", "failed")
NO_BATCHES = FaultRule(Treatment.STOP, ConfigError, "the server has no Batch API", "set judge.mode: direct")
UNANSWERED_RULE = FaultRule(Treatment.RETRY, ProviderError, "the batch ended without an answer to this request")


@dataclass(frozen=True)
class BatchState:
    """State of a batch. `files`: ids of its output files; `problem`: reason why the whole batch failed."""

    status: str
    done: int
    total: int
    files: tuple[str, ...]
    problem: str | None

    @property
    def ended(self) -> bool:
        """Whether the batch has ended."""
        return self.status in FINAL_STATUSES


class BatchAPI:
    """The endpoints at one address, with the key of one model. The constructor sends nothing. Every request may
    raise `Fault`.
    """

    def __init__(self, model: str, address: str | None, timeout_s: float, key_env: str | None = None) -> None:
        self.model = model
        self.address = address
        self._server = providers.ModelEndpoint(model, address, timeout_s, key_env)
        self._files = providers.ModelEndpoint(model, address, max(UPLOAD_S, timeout_s), key_env)

    async def upload(self, name: str, content: bytes) -> str:
        """Upload a file and return its id."""
        with self._faults():
            return _id(await self._files.upload("files", f"{name}.jsonl", content, purpose="batch"))

    async def create(self, file_id: str, token: str) -> str:
        """Create a batch with `token` in its metadata, and return its id."""
        body = {"input_file_id": file_id, "endpoint": ENDPOINT, "completion_window": WINDOW, "metadata": {TOKEN: token}}
        with self._faults():
            return _id(await self._server.post("batches", body))

    async def find(self, token: str, since: float) -> str | None:
        """Return the id of the batch with `token`, created around `since` (seconds since the epoch) or later, or
        None.
        """
        after = ""
        while True:
            with self._faults():
                page = await self._server.get(f"batches?limit=100{after}")
                found = [as_object(batch) for batch in as_list(page.get("data"))]  # newest first
                for batch in found:
                    if as_object(batch.get("metadata")).get(TOKEN) == token:
                        return _id(batch)
                    if _number_or_zero(batch.get("created_at")) < since - CLOCKS_S:
                        return None
                if not found or page.get("has_more") is not True:
                    return None
                after = f"&after={_id(found[-1])}"

    async def state(self, batch_id: str) -> BatchState:
        """Return the state of a batch."""
        unknown = FaultRule(Treatment.STOP, ConfigError, f"the provider does not know batch {batch_id}")
        with self._faults(unknown):
            return _state(await self._server.get(f"batches/{batch_id}"))

    async def cancel(self, batch_id: str) -> None:
        """Request an early end. Answers that exist by then are kept."""
        with self._faults():
            await self._server.post(f"batches/{batch_id}/cancel", {})

    async def lines(self, file_id: str) -> list[bytes]:
        """Return the lines of a file, unchecked."""
        with self._faults():
            return (await self._files.download(f"files/{file_id}/content")).splitlines()

    def line(self, call: ChatCall) -> bytes:
        """Return a call as one line of a batch file. Its custom id is the cache key of its answer."""
        body = {
            **providers.with_named_limit(call.parameters, own_server=self.address is not None),
            "model": call.model.partition("/")[2] or call.model,
            "messages": list(call.messages),
            **({"response_format": call.response_format} if call.response_format else {}),
        }
        body = dict(add_cache_marks(call.model, body, home=self.address is None))
        return canonical_json({"custom_id": call.key, "method": "POST", "url": ENDPOINT, "body": body}).encode() + b"\n"

    @contextmanager
    def _faults(self, missing: FaultRule = NO_BATCHES) -> Iterator[None]:
        try:
            yield
        except providers.http_exceptions() as error:
            fault = fault_of(error, self.model, self._server.key_env)
            if getattr(error, "status_code", None) == 404:
                fault = Fault(missing, missing.error(missing.message, remedy=missing.remedy))
            raise fault from None


class LineError(Exception):
    """The provider's error for one line."""

    def __init__(self, words: str, status: int | None) -> None:
        super().__init__(words)
        self.status_code = status


def read_line(line: bytes, model: str) -> tuple[str, Completion | Fault] | None:
    """Return the key of a line and its answer or fault, or None if the line is unreadable."""
    try:
        found = as_object(json.loads(line))
    except (ValueError, RecursionError):
        return None
    key, response = found.get("custom_id"), found.get("response")
    if not isinstance(key, str):
        return None
    if not isinstance(response, Mapping):
        return key, unanswered_fault(_error_message(found.get("error")))
    status, body = response.get("status_code"), response.get("body")
    if status != 200:
        return key, fault_of(LineError(_error_message(body), status if isinstance(status, int) else None), model)
    if not isinstance(body, Mapping):
        return key, Fault(UNREADABLE_ANSWER, UNREADABLE_ANSWER.error(UNREADABLE_ANSWER.message))
    return key, completion_of(model, body, {})


def unanswered_fault(words: str = "") -> Fault:
    """Return the fault of a request that a batch did not answer."""
    error = ProviderError(UNANSWERED_RULE.message + (f": {redact(words)}" if words else ""))
    return Fault(UNANSWERED_RULE, error, about_marks=any(mark in words for mark in MARK_WORDS))


def _state(batch: Mapping[str, object]) -> BatchState:
    counts = as_object(batch.get("request_counts"))
    problems = as_list(as_object(batch.get("errors")).get("data"))
    files = (as_text(batch.get("output_file_id")), as_text(batch.get("error_file_id")))
    return BatchState(
        status=as_text(batch.get("status")) or "",
        done=int(_number_or_zero(counts.get("completed")) + _number_or_zero(counts.get("failed"))),
        total=int(_number_or_zero(counts.get("total"))),
        files=tuple(filter(None, files)),
        problem=as_text(as_object(next(iter(problems), None)).get("message")),
    )


def _id(found: Mapping[str, object]) -> str:
    if (name := as_text(found.get("id"))) is None:
        raise providers.Garbled("it contains no id")
    return name


def _number_or_zero(found: object) -> float:
    return found if isinstance(found, int | float) else 0.0


def _error_message(error: object) -> str:
    """Return the message of an error, which providers nest differently."""
    while isinstance(error, Mapping) and "error" in error:
        error = error["error"]
    return str(error.get("message") or error.get("code") or "") if isinstance(error, Mapping) else ""


LOCK = ".lock"
BATCHES = "batches"  # folder of all journals, inside the cache folder


@dataclass(frozen=True)
class SentBatch:
    """A batch: its token, time of sending (seconds since the epoch), keys, and the provider's id once known."""

    token: str
    since: float
    keys: tuple[str, ...]
    batch_id: str | None = None


class BatchJournal:
    """The batches recorded in `folder`, which is created and locked.

    Raises:
        BusyError: another process waits for batches of the same model in this workspace.
        ProviderError: the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(folder / LOCK, timeout=0)
            self._lock.acquire()
        except Timeout:
            raise BusyError(
                "another raggs run is waiting for batches of this model", where=folder, remedy="wait for it to end"
            ) from None
        except OSError as error:
            raise ProviderError(
                f"cannot be used ({error.strerror})", where=folder, remedy="check the folder's permissions"
            ) from None
        remove_leftovers(folder)

    def batches(self) -> list[SentBatch]:
        """Return all batches, oldest first.

        Raises:
            ProviderError: a file is damaged.
        """
        return sorted(map(self.read, self.folder.glob("*.json")), key=lambda batch: batch.since)

    def put(self, batch: SentBatch) -> None:
        """Record a batch, replacing its earlier record."""
        write_atomic(self.path(batch.token), json.dumps(asdict(batch)).encode())

    def drop(self, token: str) -> None:
        """Delete the record of a batch."""
        self.path(token).unlink(missing_ok=True)

    def path(self, token: str) -> Path:
        """Return the path of the record of the batch with `token`."""
        return self.folder / f"{token}.json"

    def close(self) -> None:
        """Release the folder for other processes."""
        self._lock.release()

    @staticmethod
    def read(path: Path) -> SentBatch:
        """Read the record of a batch.

        Raises:
            ProviderError: the file is damaged.
        """
        try:
            found = json.loads(path.read_bytes())
            return SentBatch(
                str(found["token"]), float(found["since"]), tuple(map(str, found["keys"])), found["batch_id"]
            )
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            raise ProviderError(
                "this record of a batch is damaged",
                where=path,
                remedy="delete the file; its requests are then sent again",
            ) from None


def keys_in_batches(folder: Path) -> dict[str, Path]:
    """Return the answer keys in the batches that the journals in `folder` record, each with the path of the record.
    Batches whose id is unknown are omitted.

    Raises:
        ProviderError: a record is damaged, so its keys are unknown and could be paid for twice.
    """
    found: dict[str, Path] = {}
    for path in folder.glob("*/*.json"):
        try:
            batch = BatchJournal.read(path)
        except ProviderError:
            if path.exists():  # if it is missing, the batch was fetched in the meantime
                raise
            continue
        found.update(dict.fromkeys(batch.keys if batch.batch_id is not None else (), path))
    return found


T = TypeVar("T")

FIRST_POLL_S = 1.0
SLOWER = 1.5  # factor by which each pause between polls grows
MAX_BYTES = 150_000_000  # providers accept 200 MB
CANCELLING_S = 3600.0  # seconds that a cancelled batch may take to end
RESUME_REMEDY = "the batch is recorded: run again to continue with it"

Progress = Callable[[str, int, int], None]


@dataclass
class OpenBatch:
    """A batch in progress. `note`: its journal record; `open`: keys whose answer is neither cached nor requested
    again.
    """

    note: SentBatch
    open: set[str]
    waiting: dict[str, asyncio.Future[Completion]] = field(default_factory=dict)
    collected: bool = False
    followed: bool = False


class BatchQueue:
    """The batches of one model.

    Args:
        api: endpoints of the provider.
        folder: folder of the journal.
        settings: settings of batches: size, deadline, polling.
        retries: retry policy for requests to the endpoints.
        progress: receives the batch, the number of answers, and the expected number.
        spare: caches an answer that no caller waits for.
        intend: records the keys of lines that are about to be sent.
        never_sent: receives the keys of an earlier process's batch that was never sent.
    """

    def __init__(
        self,
        api: BatchAPI,
        folder: Path,
        settings: BatchSettings,
        retries: AsyncRetrying,
        progress: Progress,
        spare: Callable[[str, Completion], None],
        intend: Callable[[Sequence[str]], None],
        never_sent: Callable[[Sequence[str]], None],
    ) -> None:
        self._api = api
        self._folder = folder
        self._settings = settings
        self._retries = retries
        self._progress = progress
        self._spare = spare
        self._intend = intend
        self._never_sent = never_sent
        self._opening = asyncio.Lock()
        self._journal: BatchJournal | None = None
        self._sent: dict[str, OpenBatch] = {}  # by key
        self._pool: dict[str, tuple[bytes, asyncio.Future[Completion]]] = {}
        self._pooled_bytes = 0
        self._asked = 0
        self._gathering: asyncio.Task[None] | None = None
        self._following: set[asyncio.Task[None]] = set()

    async def holds(self, key: str) -> bool:
        """Return whether a sent batch will answer `key`.

        Raises:
            Fault: raggs cannot find out whether a recorded batch was sent.
            BusyError, ProviderError: the journal cannot be used.
        """
        await self._open()
        return (sent := self._sent.get(key)) is not None and not sent.collected

    async def answer(self, key: str, line: bytes) -> Completion:
        """Return the answer to `key` from a batch that was already sent. If there is none, send `line` in the next
        batch.

        Raises:
            Fault: the batch failed, has no answer to the request, or has an error instead.
        """
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        if await self.holds(key):
            sent = self._sent[key]
            sent.waiting[key] = future
            if not sent.followed:
                self._start(sent, b"")
        else:
            self._put(key, line, future)
        try:
            return await future
        finally:
            if self._pool.get(key, (b"", None))[1] is future:
                del self._pool[key]

    async def drained(self) -> None:
        """Wait until all requests so far are answered."""
        while tasks := self._following | ({self._gathering} if self._pool and self._gathering else set()):
            await asyncio.wait(tasks)

    def forget(self, key: str) -> None:
        """Remove `key` from its batch: its answer is cached, or there will be none."""
        if (sent := self._sent.pop(key, None)) is not None:
            sent.open.discard(key)
            if not sent.open:
                self._known.drop(sent.note.token)

    async def close(self) -> None:
        """Stop polling. The batches continue at the provider, and the journal contains them."""
        tasks = self._following | ({self._gathering} if self._gathering else set())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._journal is not None:
            self._journal.close()

    # --- gathering ---

    def _put(self, key: str, line: bytes, future: asyncio.Future[Completion]) -> None:
        full = self._pooled_bytes + len(line) > MAX_BYTES or len(self._pool) >= self._settings.max_requests
        if self._pool and full:
            self._send()
        self._pool[key] = (line, future)
        self._pooled_bytes += len(line)
        self._asked += 1
        if self._gathering is None or self._gathering.done():
            self._gathering = asyncio.ensure_future(self._gather())

    async def _gather(self) -> None:
        """Send the collected requests once no new ones arrive."""
        seen = -1
        while seen != self._asked:
            seen = self._asked
            await asyncio.sleep(self._settings.quiet_s)
        if self._pool:
            self._send()

    def _send(self) -> None:
        pool, self._pool, self._pooled_bytes = self._pool, {}, 0
        keys = tuple(sorted(pool))
        sent = OpenBatch(SentBatch(secrets.token_hex(16), time.time(), keys), set(keys))
        sent.waiting = {key: future for key, (_, future) in pool.items()}
        content = b"".join(pool[key][0] for key in keys)
        self._start(sent, content)

    def _start(self, sent: OpenBatch, content: bytes) -> None:
        sent.followed = True
        task = asyncio.ensure_future(self._follow(sent, content))
        self._following.add(task)
        task.add_done_callback(partial(self._followed, sent))

    def _followed(self, sent: OpenBatch, task: asyncio.Task[None]) -> None:
        """Pass an error that ends the polling of a batch to all its callers."""
        self._following.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        told = _stopping(error) if isinstance(error, Fault | RaggsError) else error
        for future in sent.waiting.values():
            if not future.done():
                future.set_exception(told)

    # --- one batch ---

    async def _follow(self, sent: OpenBatch, content: bytes) -> None:
        """Follow a batch from its current state to its end."""
        if sent.note.batch_id is None:
            self._intend(sent.note.keys)
            self._note(sent)
            await self._submit(sent, content)
        state = await self._end(sent)
        self._hand_out(sent, state, await self._lines(state))

    def _note(self, sent: OpenBatch) -> None:
        """Record a batch before it is sent. Its keys are removed from earlier batches, which had no usable answers."""
        self._known.put(sent.note)
        for key in sent.note.keys:
            self.forget(key)
            self._sent[key] = sent

    async def _submit(self, sent: OpenBatch, content: bytes) -> None:
        token, since = sent.note.token, sent.note.since
        name = f"raggs-{token}"
        file_id = await self._persist(lambda: self._api.upload(name, content))
        tried = False

        async def create() -> str:
            nonlocal tried
            # The response to an earlier attempt may have been lost.
            found = await self._api.find(token, since) if tried else None
            tried = True
            return found or await self._api.create(file_id, token)

        self._named(sent, await self._persist(create))

    def _named(self, sent: OpenBatch, batch_id: str) -> None:
        sent.note = replace(sent.note, batch_id=batch_id)
        self._known.put(sent.note)

    async def _end(self, sent: OpenBatch) -> BatchState:
        """Poll until the batch has ended. After the deadline, cancel it and use the answers that it has."""
        batch_id, pause, cancelled = str(sent.note.batch_id), min(FIRST_POLL_S, self._settings.poll_s), False
        deadline = sent.note.since + self._settings.deadline_h * 3600
        while not (state := await self._persist(lambda: self._api.state(batch_id))).ended:
            self._progress(f"batch {batch_id}", state.done, state.total or len(sent.note.keys))
            if time.time() > deadline + CANCELLING_S:
                raise ProviderError(f"batch {batch_id} has not ended although it was cancelled", remedy=RESUME_REMEDY)
            if time.time() > deadline and not cancelled:
                cancelled = True
                await self._persist(lambda: self._api.cancel(batch_id))
                continue
            await asyncio.sleep(pause)
            pause = min(SLOWER * pause, self._settings.poll_s)
        self._progress(f"batch {batch_id}", state.done, state.total or len(sent.note.keys))
        return state

    async def _lines(self, state: BatchState) -> list[bytes]:
        found: list[bytes] = []
        for file_id in state.files:
            found += await self._persist(partial(self._api.lines, file_id))
        return found

    def _hand_out(self, sent: OpenBatch, state: BatchState, lines: list[bytes]) -> None:
        """Return each answer to its caller. Answers without a caller are cached."""
        read = [entry for line in lines if (entry := read_line(line, self._api.model)) is not None]
        answers = dict(reversed(read))  # of two lines with the same key, the first counts
        sent.collected = True
        for key in sent.note.keys:
            answer = answers.get(key) or unanswered_fault(state.problem or state.status)
            future = sent.waiting.get(key)
            if future is not None and not future.done():
                future.set_exception(answer) if isinstance(answer, Fault) else future.set_result(answer)
            elif self._sent.get(key) is sent:
                if isinstance(answer, Completion):
                    self._spare(key, answer)
                self.forget(key)

    # --- the journal ---

    @property
    def _known(self) -> BatchJournal:
        if self._journal is None:
            raise ProviderError("the journal of batches is not open")
        return self._journal

    async def _open(self) -> None:
        """Lock and read the journal. For each batch without an id, find out whether it was sent."""
        async with self._opening:
            if self._journal is not None:
                return
            self._journal = BatchJournal(self._folder)
            for note in self._journal.batches():
                sent = OpenBatch(note, set(note.keys))
                if note.batch_id is None:
                    found = await self._persist(partial(self._api.find, note.token, note.since))
                    if found is None:
                        self._never_sent(note.keys)
                        self._journal.drop(note.token)
                        continue
                    self._named(sent, found)
                for key in note.keys:
                    self.forget(key)  # drop an older batch with an unusable answer to this key
                    self._sent[key] = sent

    async def _persist(self, work: Callable[[], Awaitable[T]]) -> T:
        async def attempt() -> T:
            return await work()

        return await self._retries.copy()(attempt)


def _stopping(error: Fault | RaggsError) -> Fault:
    """Return the error as a fault that ends the run, because it concerns all requests of the batch."""
    if isinstance(error, RaggsError):
        return Fault(FaultRule(Treatment.STOP, type(error), error.message), error)
    if error.treatment is Treatment.STOP or error.rule is UNANSWERED_RULE:
        return error
    told, stop = error.error, error.rule._replace(treatment=Treatment.STOP)
    return Fault(stop, type(told)(told.message, where=told.where, remedy=told.remedy or RESUME_REMEDY))
