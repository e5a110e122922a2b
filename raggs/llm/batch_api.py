"""A provider's Batch API, in OpenAI's form: its endpoints, and the lines of its files.

Nothing is tried twice here: a submission whose answer was lost must be looked for before it is made again. Whatever
is raised leaves as a `Fault`, redacted; what an answer does not say is None or nothing.

Questions answered by a provider's batches: gathered, sent once, followed to their end, handed out.

Invariants: a batch is in the journal before it is sent, so a killed run looks for it and waits for it; a question lies
in one open batch at most; an entry leaves the journal only when each of its answers is kept or asked for anew. Nothing
here judges an answer: that is the asker's business, as with direct calls.

Which questions lie in which batch, on disk: so that a killed run waits for the batch it sent and sends no other.

One small file for each batch, written whole and flushed before the batch is sent, again when the provider has named
it, and deleted when every answer is in the cache or asked for anew. One process at a time holds the folder.
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
from raggs.llm.faults import MARK_WORDS, UNREADABLE_ANSWER, Fault, FaultRule, Treatment, fault_of
from raggs.llm.messages import add_cache_marks
from raggs.llm.settings import BatchSettings

if TYPE_CHECKING:
    from tenacity import AsyncRetrying

ENDPOINT: Final = "/v1/chat/completions"
WINDOW: Final = "24h"  # the only one there is
TOKEN = "raggs"  # noqa: S105 - the name under which a batch bears the token of its journal
UPLOAD_S = 600.0
CLOCKS_S = 86_400  # how far the provider's clock may be from ours
FINAL_STATUSES = ("completed", "expired", "cancelled", "failed")
NO_BATCHES = FaultRule(Treatment.STOP, ConfigError, "the server has no Batch API", "set judge.mode: direct")
UNANSWERED_RULE = FaultRule(Treatment.RETRY, ProviderError, "the batch ended without an answer to this question")


@dataclass(frozen=True)
class BatchState:
    """Where a batch stands. `files`: ids of what it has written; `problem`: why it failed as a whole."""

    status: str
    done: int
    total: int
    files: tuple[str, ...]
    problem: str | None

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.status in FINAL_STATUSES


class BatchAPI:
    """The endpoints at one address, for one model's key. Building it sends nothing. Every request may raise `Fault`."""

    def __init__(self, model: str, address: str | None, timeout_s: float, key_env: str | None = None) -> None:
        self.model = model
        self.address = address
        self._server = providers.ModelEndpoint(model, address, timeout_s, key_env)
        self._files = providers.ModelEndpoint(model, address, max(UPLOAD_S, timeout_s), key_env)

    async def upload(self, name: str, content: bytes) -> str:
        """The id of a new file."""
        with self._faults():
            return _id(await self._files.upload("files", f"{name}.jsonl", content, purpose="batch"))

    async def create(self, file_id: str, token: str) -> str:
        """The id of a new batch, which bears `token`."""
        body = {"input_file_id": file_id, "endpoint": ENDPOINT, "completion_window": WINDOW, "metadata": {TOKEN: token}}
        with self._faults():
            return _id(await self._server.post("batches", body))

    async def find(self, token: str, since: float) -> str | None:
        """The id of the batch that bears `token`, made about `since` (seconds of the epoch) or later."""
        after = ""
        while True:
            with self._faults():
                page = await self._server.get(f"batches?limit=100{after}")
                found = [as_object(batch) for batch in as_list(page.get("data"))]  # the newest first
                for batch in found:
                    if as_object(batch.get("metadata")).get(TOKEN) == token:
                        return _id(batch)
                    if _number_or_zero(batch.get("created_at")) < since - CLOCKS_S:
                        return None
                if not found or page.get("has_more") is not True:
                    return None
                after = f"&after={_id(found[-1])}"

    async def state(self, batch_id: str) -> BatchState:
        """Where a batch stands."""
        unknown = FaultRule(Treatment.STOP, ConfigError, f"the provider does not know batch {batch_id}")
        with self._faults(unknown):
            return _state(await self._server.get(f"batches/{batch_id}"))

    async def cancel(self, batch_id: str) -> None:
        """Ask for an early end; what is answered by then stays."""
        with self._faults():
            await self._server.post(f"batches/{batch_id}/cancel", {})

    async def lines(self, file_id: str) -> list[bytes]:
        """The lines of a file, whatever they hold."""
        with self._faults():
            return (await self._files.download(f"files/{file_id}/content")).splitlines()

    def line(self, call: ChatCall) -> bytes:
        """A call as one line with its end; its custom id is the key of its answer in the cache."""
        body = {
            **providers.with_named_limit(call.parameters, own_server=self.address is not None),
            "model": call.model.partition("/")[2] or call.model,
            "messages": list(call.messages),
            "response_format": call.response_format,
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
    """What the provider says went wrong with one line."""

    def __init__(self, words: str, status: int | None) -> None:
        super().__init__(words)
        self.status_code = status


def read_line(line: bytes, model: str) -> tuple[str, Completion | Fault] | None:
    """The key of a line and its answer, or what went wrong; None where the line says nothing of use."""
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
    """The fault of a question that a batch left open."""
    error = ProviderError(UNANSWERED_RULE.message + (f": {words}" if words else ""))
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
        raise providers.Garbled("it names no id")
    return name


def _number_or_zero(found: object) -> float:
    return found if isinstance(found, int | float) else 0.0


def _error_message(error: object) -> str:
    """The message of an error as providers nest it."""
    while isinstance(error, Mapping) and "error" in error:
        error = error["error"]
    return str(error.get("message") or error.get("code") or "") if isinstance(error, Mapping) else ""


LOCK = ".lock"
BATCHES = "batches"  # the folder of all journals, in that of the cache


@dataclass(frozen=True)
class SentBatch:
    """A batch: our token for it, when it was sent (seconds of the epoch), its keys, the provider's id once known."""

    token: str
    since: float
    keys: tuple[str, ...]
    batch_id: str | None = None


class BatchJournal:
    """The batches noted in `folder`, which is made and locked.

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
                "another raggs run waits for batches of this model", where=folder, remedy="wait for it to end"
            ) from None
        except OSError as error:
            raise ProviderError(
                f"cannot be used ({error.strerror})", where=folder, remedy="check the folder's permissions"
            ) from None
        remove_leftovers(folder)

    def batches(self) -> list[SentBatch]:
        """All batches, the oldest first.

        Raises:
            ProviderError: one is damaged.
        """
        return sorted(map(self.read, self.folder.glob("*.json")), key=lambda batch: batch.since)

    def put(self, batch: SentBatch) -> None:
        """Note a batch, in place of what was known of it."""
        write_atomic(self.path(batch.token), json.dumps(asdict(batch)).encode())

    def drop(self, token: str) -> None:
        """Forget a batch."""
        self.path(token).unlink(missing_ok=True)

    def path(self, token: str) -> Path:
        """The note of the batch that bears `token`."""
        return self.folder / f"{token}.json"

    def close(self) -> None:
        """Let another process have the folder."""
        self._lock.release()

    @staticmethod
    def read(path: Path) -> SentBatch:
        """A note.

        Raises:
            ProviderError: it is damaged.
        """
        try:
            found = json.loads(path.read_bytes())
            return SentBatch(
                str(found["token"]), float(found["since"]), tuple(map(str, found["keys"])), found["batch_id"]
            )
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            raise ProviderError(
                "this note of a batch is damaged", where=path, remedy="delete it; its questions are then asked again"
            ) from None


def keys_in_batches(folder: Path) -> dict[str, Path]:
    """Return every key that lies in a batch which was sent and is not fetched, with its note, from `folder`'s journals.

    Raises:
        ProviderError: a note is damaged, so that its keys are not known and could be paid twice.
    """
    found: dict[str, Path] = {}
    for path in folder.glob("*/*.json"):
        try:
            batch = BatchJournal.read(path)
        except ProviderError:
            if path.exists():  # else its batch was fetched in between
                raise
            continue
        found.update(dict.fromkeys(batch.keys if batch.batch_id is not None else (), path))
    return found


T = TypeVar("T")

FIRST_POLL_S = 1.0
SLOWER = 1.5  # each pause between polls over the one before
MAX_BYTES = 150_000_000  # providers take 200 MB
CANCELLING_S = 3600.0  # how long a cancelled batch may take to end
RESUME_REMEDY = "the batch is noted: run again to go on with it"

Progress = Callable[[str, int, int], None]


@dataclass
class OpenBatch:
    """A batch on its way. `note`: in the journal; `open`: keys whose answer is neither kept nor asked for anew."""

    note: SentBatch
    open: set[str]
    waiting: dict[str, asyncio.Future[Completion]] = field(default_factory=dict)
    collected: bool = False
    followed: bool = False


class BatchQueue:
    """The batches of one model.

    Args:
        api: the provider's endpoints.
        folder: where the journal lies.
        settings: how many questions, how long, how often.
        retries: how often each request to the endpoints is tried.
        progress: hears the batch, the answers there are, and how many there will be.
        spare: takes an answer that nobody waits for, to keep it.
        intend: notes the keys of lines that are about to leave.
        never_sent: hears of the keys of a batch of an earlier process that never left.
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
        """Whether a batch that was sent will answer `key`.

        Raises:
            Fault: the provider cannot be asked what became of a batch.
            BusyError, ProviderError: the journal cannot be used.
        """
        await self._open()
        return (sent := self._sent.get(key)) is not None and not sent.collected

    async def answer(self, key: str, line: bytes) -> Completion:
        """What a batch says to `key`: one that was sent already, else the next one, with `line`.

        Raises:
            Fault: there is no answer.
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
        """Until all that was asked so far is handed out."""
        while tasks := self._following | ({self._gathering} if self._pool and self._gathering else set()):
            await asyncio.wait(tasks)

    def forget(self, key: str) -> None:
        """The answer to `key` is kept, or there will be none."""
        if (sent := self._sent.pop(key, None)) is not None:
            sent.open.discard(key)
            if not sent.open:
                self._known.drop(sent.note.token)

    async def close(self) -> None:
        """Stop following; the batches go on at the provider, and the journal knows them."""
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
        """Send what was asked once nobody asks more: all who can ask have asked."""
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
        """Whatever ended the following is told to all who wait."""
        self._following.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        told = _stopping(error) if isinstance(error, Fault | RaggsError) else error
        for future in sent.waiting.values():
            if not future.done():
                future.set_exception(told)

    # --- one batch ---

    async def _follow(self, sent: OpenBatch, content: bytes) -> None:
        """From wherever a batch stands to its end."""
        if sent.note.batch_id is None:
            self._intend(sent.note.keys)
            self._note(sent)
            await self._submit(sent, content)
        state = await self._end(sent)
        self._hand_out(sent, state, await self._lines(state))

    def _note(self, sent: OpenBatch) -> None:
        """Write the journal first; whatever earlier batches said to these keys was of no use."""
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
            # The answer to an earlier try may have been lost on its way.
            found = await self._api.find(token, since) if tried else None
            tried = True
            return found or await self._api.create(file_id, token)

        self._named(sent, await self._persist(create))

    def _named(self, sent: OpenBatch, batch_id: str) -> None:
        sent.note = replace(sent.note, batch_id=batch_id)
        self._known.put(sent.note)

    async def _end(self, sent: OpenBatch) -> BatchState:
        """Poll until the batch has ended; past the deadline it is cancelled, and what it has is taken."""
        batch_id, pause, cancelled = str(sent.note.batch_id), min(FIRST_POLL_S, self._settings.poll_s), False
        deadline = sent.note.since + self._settings.deadline_h * 3600
        while not (state := await self._persist(lambda: self._api.state(batch_id))).ended:
            self._progress(f"batch {batch_id}", state.done, state.total or len(sent.note.keys))
            if time.time() > deadline + CANCELLING_S:
                raise ProviderError(f"batch {batch_id} does not end, though it was cancelled", remedy=RESUME_REMEDY)
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
        """Each answer to whom it concerns; those that nobody waits for are kept for later."""
        read = [entry for line in lines if (entry := read_line(line, self._api.model)) is not None]
        answers = dict(reversed(read))  # of two lines with one key, the first counts
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
        """Lock and read the journal; find out of each batch that was killed while it was sent whether it was."""
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
                    self.forget(key)  # an older batch, whose answer was of no use
                    self._sent[key] = sent

    async def _persist(self, work: Callable[[], Awaitable[T]]) -> T:
        async def attempt() -> T:
            return await work()

        return await self._retries.copy()(attempt)


def _stopping(error: Fault | RaggsError) -> Fault:
    """As a fault that ends the run: a batch that cannot be sent or followed concerns all of its questions."""
    if isinstance(error, RaggsError):
        return Fault(FaultRule(Treatment.STOP, type(error), error.message), error)
    if error.treatment is Treatment.STOP or error.rule is UNANSWERED_RULE:
        return error
    told, stop = error.error, error.rule._replace(treatment=Treatment.STOP)
    return Fault(stop, type(told)(told.message, where=told.where, remedy=told.remedy or RESUME_REMEDY))
