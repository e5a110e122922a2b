"""The ledger: the usage of each call, one line per call, without any text of requests or answers.

`llm.ledger.jsonl` is append-only. It contains the calls of all invocations of the run, including failed ones. It is not
an artifact: no result depends on it, and a run without it is complete. The line of a call is passed to the operating
system before its answer is used. An incomplete last line is removed when the file is opened again. The cache can return
thousands of answers per second. Consecutive cached answers of the same query, task and answering model therefore share
a line, which is written after them.

Before a call is sent, raggs writes to disk that it is about to be sent: its intent (`IntentLog`). If a kill interrupted
calls, the next invocation books them as `unknown`: they are possibly billed, and count as spent with the cost in their
intent. This is their maximum cost, or their likely cost if USD are not limited.

All spending passes through the ledger, which counts it whether it writes a file or not. Only the budget counts
separately, to enforce its limits.

`IntentLog` records calls that are about to be sent, so that a kill removes no call from the account. There is one line
per request, including retries. If nothing of a call was sent, a further line withdraws each of its intents. A line is
passed to the operating system before its call is sent. A call's line in the ledger names its intents. If no ledger line
names an intent, the end of its call was not booked. The call is then possibly billed. Lines are not synced one by one:
a `kill -9` loses nothing, but a power cut may lose the newest lines and thus their calls. The lines of the ledger are
not synced either. `llm.intents.jsonl` exists next to the ledger while a process makes calls. The next process that
opens the ledger books the remaining intents as calls with unknown outcome. Only the intents of batch lines stay,
because their answers can still be fetched.
"""

from __future__ import annotations

import errno
import os
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import fsum
from operator import not_
from pathlib import Path
from typing import Literal, NamedTuple
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

from raggs.base.artifacts import Spending
from raggs.base.files import disk, hold_folder, write_atomic
from raggs.base.jsonl import Appender, dump_line, read_torn
from raggs.llm.messages import Answerer, Answerers, CallUsage

INTENTS_FILE = "llm.intents.jsonl"
FREE_BYTES, ANSWER_BYTES = 1 << 20, 1 << 16  # required disk space for answers: minimum, and per call in flight
INTENTS_REMEDY = "restore the file from a copy; without it, calls that may have been billed are not counted"


class CallIntent(BaseModel):
    """One line of llm.intents.jsonl: a request that is about to be sent."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    v: Literal[1] = 1
    number: int = Field(ge=1, description="number by which a line of the ledger refers to this intent")
    time: datetime
    stage: str
    qid: str = Field(description="query id; empty if the call serves several queries")
    model: str
    task: str
    usd: float = Field(
        ge=0, description="reserved cost in USD: the maximum cost if USD are limited, otherwise the likely cost"
    )
    key: str = Field(
        "", exclude_if=not_, description="cache key of the answer, for a line of a batch, which can be fetched later"
    )
    unsent: bool = Field(
        False, exclude_if=not_, description="true if the request was not sent after all, so that it does not count"
    )


class IntentLog:
    """The intents next to one ledger.

    Attributes:
        unsettled: intents that no line of the ledger names and that were not withdrawn, by number.
        last: the highest number of an intent so far.
    """

    def __init__(self, ledger: Path, settled: Collection[int] = ()) -> None:
        """Read the existing intents. Nothing is written.

        Args:
            ledger: path of the ledger.
            settled: the numbers that the ledger names.

        Raises:
            DataError: a line is damaged.
        """
        self.path = intents_beside(ledger)
        self.unsettled: dict[int, CallIntent] = {}
        self.last = max(settled, default=0)
        self._file: Appender | None = None
        for intent in read_torn(self.path, CallIntent, INTENTS_REMEDY):
            self.last = max(self.last, intent.number)
            self.unsettled[intent.number] = intent
            if intent.unsent or intent.number in settled:
                del self.unsettled[intent.number]

    def add(self, intents: Iterable[CallIntent]) -> None:
        """Write intents. Their calls may be sent after this returns.

        Raises:
            OSError: the disk failed, so the calls must not be sent.
        """
        added = list(intents)
        if self._file is None:
            self._file = Appender(self.path)
        self._file.extend(added)
        for intent in added:
            self.last = max(self.last, intent.number)
            self.unsettled[intent.number] = intent

    def settle(self, numbers: Iterable[int]) -> None:
        """Record that the ledger has lines for some intents."""
        for number in numbers:
            self.unsettled.pop(number, None)

    def void(self, numbers: Iterable[int]) -> None:
        """Record that some intents were not sent after all."""
        known = [self.unsettled[number] for number in numbers if number in self.unsettled]
        if known:
            self.add(intent.model_copy(update={"unsent": True}) for intent in known)
            self.settle(intent.number for intent in known)

    def shrink(self) -> None:
        """Keep only unsettled intents on disk; delete the file if there are none."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self.unsettled:
            lines = b"".join(map(dump_line, self.unsettled.values()))
            if not self.path.is_file() or self.path.read_bytes() != lines:
                write_atomic(self.path, lines)
        else:
            self.path.unlink(missing_ok=True)


def intents_beside(ledger: Path) -> Path:
    """Return the path of the intents of a ledger."""
    return ledger.with_name(f"{ledger.name.removesuffix('.jsonl').removesuffix('.ledger')}.intents.jsonl")


def check_room(folder: Path, calls: int) -> None:
    """Check before a paid call that the disk has space for the answers of `calls` calls. Nothing is checked on systems
    that do not report free space by `statvfs` (Windows).

    Raises:
        OSError: the disk is full, or nearly full.
    """
    if hasattr(os, "statvfs"):
        found = os.statvfs(folder)
        if found.f_bavail * found.f_frsize < FREE_BYTES + calls * ANSWER_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


LEDGER_FILE = "llm.ledger.jsonl"
PAYER_LENGTH = 16
DIGITS = 12  # decimal digits of an amount in USD, because the lowest price of a token is about 1e-8 USD
Outcome = Literal["answered", "unusable", "failed", "cancelled", "cached", "unknown"]


class LedgerAccount(NamedTuple):
    """Stage and query that a call is booked on. They are fixed when the call is requested."""

    stage: str
    qid: str


class LedgerLine(BaseModel):
    """One line of llm.ledger.jsonl: a call with all of its attempts, or several cached answers."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    v: Literal[1] = 1
    time: datetime = Field(description="time at which the call ended")
    stage: str
    qid: str = Field(description="query id; empty if the call serves several queries")
    model: str
    task: str = Field(
        description="task of the call, such as grade, order, rewrite, embed or rerank; batch: an answer that no caller "
        "waited for"
    )
    outcome: Outcome = Field(
        description="outcome of the call. unusable: the answer was paid for, but has the wrong form. failed: no "
        "answer. unknown: the end was not booked, for example after a kill, so the call is possibly billed"
    )
    attempts: int = Field(0, ge=0, description="number of requests sent, including retries")
    cached: int = Field(0, ge=0, description="number of answers from the cache")
    prompt_tokens: int = Field(0, ge=0)
    cached_tokens: int = Field(
        0,
        ge=0,
        exclude_if=not_,
        description="part of `prompt_tokens` that the provider reports as read from its prompt cache",
    )
    completion_tokens: int = Field(0, ge=0)
    searches: int = Field(0, ge=0, description="billing units of rerankers that charge by search, counted or estimated")
    usd: float = Field(0.0, ge=0)
    discount_usd: float = Field(0.0, exclude_if=not_, description="saving through the provider's prompt cache, in USD")
    saved_usd: float = Field(0.0, ge=0, description="original cost of the cached answers, in USD")
    own_usd: float = Field(
        0.0, ge=0, exclude_if=not_, description="part of `saved_usd` that this run itself paid for earlier"
    )
    latency_s: float = Field(
        0.0, ge=0, description="duration of the last attempt in seconds; for a batch, the time until its answer"
    )
    perhaps_usd: float = Field(
        0.0,
        ge=0,
        description="part of `usd` for calls that were sent but not answered. This is the maximum cost if USD are "
        "limited, otherwise the likely cost",
    )
    intents: tuple[int, ...] = Field((), exclude_if=not_, description="numbers of the intents of the call's requests")
    answerer: str = Field("", exclude_if=not_, description="key of the model that answered; empty if no model answered")
    named: Answerer | None = Field(
        None, exclude_if=not_, description="names of the model that answered, only on the first line with its key"
    )
    payer: str = Field(
        "",
        exclude_if=not_,
        description="random id that marks answers in the cache as paid by this run; only on one line of the ledger",
    )
    refused: bool = Field(
        False,
        exclude_if=not_,
        description="whether the run stopped because this answer is from another model snapshot than earlier answers",
    )

    @property
    def spent(self) -> Spending:
        """The usage in this line. The number of corrections is not included."""
        return Spending(
            calls=self.attempts,
            cached=self.cached,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
            usd=self.usd,
            discount_usd=self.discount_usd,
            saved_usd=self.saved_usd,
            own_usd=self.own_usd,
        )


@dataclass
class CallTrace:
    """Usage of one call, filled while the call runs."""

    spent: Spending = field(default_factory=Spending)
    latency_s: float = 0.0
    outcome: Outcome = "cancelled"  # until the outcome is known
    perhaps_usd: float = 0.0
    searches: int = 0
    by_batch: bool = False
    book: _OpenLedger | None = None
    about: tuple[LedgerAccount, str, str] = (LedgerAccount("", ""), "", "")  # account, model and task of the call
    intents: list[int] = field(default_factory=list)
    answerer: Answerer | None = None

    @property
    def took(self) -> CallUsage:
        """Usage of the answer. The latency is None for batches, because the time until a batch answers is not a latency
        of the model.
        """
        spent = self.spent
        return CallUsage(1, spent.prompt_tokens, None if self.by_batch else 1000 * self.latency_s, spent.usd)

    def intend(self, usd: float) -> None:
        """Record on disk that a request with a reserved cost of `usd` is about to be sent. If the ledger has no file,
        nothing is recorded.

        Raises:
            ProviderError: the disk failed, so the request must not be sent.
            BusyError: another process has calls in flight that are booked in the same ledger.
        """
        if self.book is not None:
            self.intents += self.book.intend([self], [usd])

    def fetched(self, key: str) -> None:
        """Take over the intent of a batch line that an earlier process sent and the batch has now answered."""
        if self.book is not None:
            self.intents += self.book.fetched(key)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Measure one request, from sending to its end."""
        self.spent += Spending(calls=1)
        began = time.perf_counter()
        try:
            yield
        finally:
            self.latency_s = time.perf_counter() - began

    def unsent(self) -> None:
        """Subtract the latest attempt from the count, because nothing was sent."""
        self.spent -= Spending(calls=1)

    def perhaps(self, usd: float) -> float:
        """Record that the latest attempt had no answer but may be charged for, and return `usd`."""
        self.spent += Spending(usd=usd)
        self.perhaps_usd += usd
        return usd

    def batched(self, waited_s: float) -> None:
        """Record the answer to one line of a batch. Its caller waited `waited_s` seconds; 0 if no caller waited."""
        self.spent += Spending(calls=1)
        self.latency_s = waited_s
        self.by_batch = True


class _Hits(NamedTuple):
    """Consecutive answers from the cache."""

    account: LedgerAccount
    model: str
    task: str
    answerer: Answerer
    cached: int = 0
    saved_usd: float = 0.0
    own_usd: float = 0.0

    @property
    def spent(self) -> Spending:
        return Spending(cached=self.cached, saved_usd=self.saved_usd, own_usd=self.own_usd)


WORKSPACE_REMEDY = "choose another workspace"
LEDGER_REMEDY = "restore the file from a copy, or run with --run-id NAME: cached answers are not paid for again"


def lines_in(path: Path) -> Iterator[LedgerLine]:
    """Yield the lines of the ledger in `path`, and a line for each call that was sent but not booked, which is possibly
    billed.

    Raises:
        DataError: a line is damaged.
    """
    settled: set[int] = set()
    for line in read_torn(path, LedgerLine, LEDGER_REMEDY):
        settled.update(line.intents)
        yield line
    yield from map(_unsettled_line, IntentLog(path, settled).unsettled.values())


def _unsettled_line(intent: CallIntent) -> LedgerLine:
    """Return the line of a call whose end was not booked."""
    usd = round(intent.usd, DIGITS)
    return LedgerLine(
        time=intent.time,
        stage=intent.stage,
        qid=intent.qid,
        model=intent.model,
        task=intent.task,
        outcome="unknown",
        attempts=1,
        usd=usd,
        perhaps_usd=usd,
        intents=(intent.number,),
    )


class _OpenLedger:
    """One ledger and its intents. Only one process at a time may write them.

    If there are intents of an earlier process, its unfinished calls are booked. Lines of batches are excluded, because
    their answers can still be fetched.

    Raises:
        BusyError: another process has calls in flight that are booked here.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: Appender | None = None
        self._held, self._owned = ExitStack(), False
        self._size, self._settled = 0, set[int]()
        self.answerers: dict[str, Answerer] = {}  # answerers that the file names, by key
        self.payer, self.payer_named = uuid4().hex[:PAYER_LENGTH], False
        self.before: set[str] = set()  # keys of the answerers of earlier processes
        self._booked, self._unknown = self._read()
        self._log = IntentLog(path, self._settled)
        self._fetchable: dict[str, CallIntent] = {}
        if self._log.path.exists():
            self._own()

    def _read(self) -> tuple[Spending, Spending]:
        """Return the calls and USD in the ledger, and the part of them that has an unknown outcome."""
        self._size = self.path.stat().st_size if self.path.exists() else 0
        calls, usd, unknown = 0, [], Spending()
        for line in read_torn(self.path, LedgerLine, LEDGER_REMEDY):
            calls += line.attempts
            usd.append(line.usd)
            self._settled.update(line.intents)
            self._meet(line)
            if line.answerer and not line.refused:
                self.before.add(line.answerer)
            if line.outcome == "unknown":
                unknown += Spending(calls=line.attempts, usd=line.usd)
        return Spending(calls=calls, usd=fsum(usd)), unknown

    def _meet(self, line: LedgerLine) -> None:
        if line.named is not None:
            self.answerers[line.answerer] = line.named
        if line.payer:
            self.payer, self.payer_named = line.payer, True

    def _own(self) -> None:
        """Lock both files, and book the unfinished calls of an earlier process."""
        if self._owned:
            return
        lock, who = f".{self._log.path.stem}.lock", "another raggs process books its calls here"
        wait = "wait for it to end, or choose another folder"
        folder = self.path.parent
        self._held.enter_context(hold_folder(folder / lock, folder, who=who, wait=wait, remedy=WORKSPACE_REMEDY))
        self._owned = True
        if self.path.exists() and self.path.stat().st_size != self._size:
            self._booked, self._unknown = self._read()  # another process has booked calls since this one opened it
        self._log = IntentLog(self.path, self._settled)
        unsettled = list(self._log.unsettled.values())
        self._fetchable = {intent.key: intent for intent in unsettled if intent.key}  # the latest one of each key
        for intent in unsettled:
            if intent != self._fetchable.get(intent.key):
                line = _unsettled_line(intent)
                self.append(line)
                self._booked, self._unknown = self._booked + line.spent, self._unknown + line.spent
        if self._log.path.exists():
            self._log.shrink()

    @property
    def earlier(self) -> Spending:
        """Spending before the ledger was opened, including possibly billed calls."""
        return self._booked + self._still_unknown

    @property
    def unknown(self) -> Spending:
        """The possibly billed part of `earlier`."""
        return self._unknown + self._still_unknown

    @property
    def _still_unknown(self) -> Spending:
        left = self._fetchable.values()
        return Spending(calls=len(left), usd=fsum(intent.usd for intent in left))

    def intend(self, traces: Sequence[CallTrace], usd: Sequence[float], keys: Sequence[str] = ("",)) -> list[int]:
        """Write intents to disk and return their numbers.

        Args:
            traces: traces of the calls.
            usd: reserved cost of each call.
            keys: cache keys of the answers, for lines of a batch.

        Raises:
            BusyError: another process has calls in flight that are booked here.
            ProviderError: the disk failed, so the calls must not be sent.
        """
        self._own()
        now = datetime.now(UTC)
        intents = [
            CallIntent(number=number, time=now, stage=stage, qid=qid, model=model, task=task, usd=most, key=key)
            for number, (trace, most, key) in enumerate(zip(traces, usd, keys, strict=True), start=self._log.last + 1)
            for (stage, qid), model, task in [trace.about]
        ]
        with disk(self._log.path, WORKSPACE_REMEDY):
            check_room(self.path.parent, len(self._log.unsettled) + len(intents))
            self._log.add(intents)
        return [intent.number for intent in intents]

    def fetched(self, key: str) -> list[int]:
        """Take over the intent of a batch line that an earlier process sent and that is now answered."""
        return [] if (intent := self._fetchable.pop(key, None)) is None else [intent.number]

    def never_sent(self, key: str) -> None:
        """Record that an earlier process did not send the batch line whose answer has this cache key."""
        self.void(self.fetched(key))

    def void(self, numbers: Iterable[int]) -> None:
        """Record that calls were not sent after all."""
        self._log.void(numbers)

    def append(self, line: LedgerLine) -> None:
        """Write a line, which settles the intents that it names.

        Raises:
            ProviderError: the disk failed. The intents stay unsettled, so the call stays possibly billed.
        """
        with disk(self.path, WORKSPACE_REMEDY):
            if self._file is None:
                self._file = Appender(self.path)
            self._file.append(line)
        self._meet(line)
        self._log.settle(line.intents)

    def close(self) -> None:
        """Close the files. Only unsettled intents stay on disk."""
        with suppress(OSError):  # full disk: the written lines are correct, and the next process repairs the files
            if self._file is not None:
                file, self._file = self._file, None
                file.close()
            if self._owned:
                self._log.shrink()
        self._owned = False
        self._held.close()


class CallLedger:
    """Count spending, and write it to the file at `path` from the first call on. Without a path, no file is written.

    Args:
        path: the file, created or appended to.
        stage: stage that calls are booked on, or a name for their purpose.
        allow_mixed: whether answers of other model snapshots than before are allowed.

    Attributes:
        answerers: all models that answered, including earlier invocations.
    """

    def __init__(self, path: Path | None = None, stage: str = "", *, allow_mixed: bool = False) -> None:
        self.answerers = Answerers(allow_mixed=allow_mixed)
        self._answers: Counter[tuple[str, str]] = Counter()  # by stage and answerer
        self._spent = Spending()
        self._stage = stage
        self._hits: _Hits | None = None
        self._open(path)

    @property
    def earlier(self) -> Spending:
        """Spending of other invocations in the file, including possibly billed calls."""
        return Spending() if self._book is None else self._book.earlier

    @property
    def unknown(self) -> Spending:
        """The possibly billed part of `earlier`: calls interrupted by a kill."""
        return Spending() if self._book is None else self._book.unknown

    def answered(self, stage: str) -> Mapping[str, int]:
        """Return the number of answers of this invocation for a stage by the key of their answerer, including cached
        ones.
        """
        self._write_hits()
        return {key: count for (name, key), count in self._answers.items() if name == stage}

    def _open(self, path: Path | None) -> None:
        self._book = None if path is None else _OpenLedger(path)
        if self._book is not None:
            self.answerers.learn(self._book.answerers.values())

    @property
    def payer(self) -> str:
        """Random id that marks answers in the cache as paid by this run; empty if the ledger has no file."""
        return "" if self._book is None else self._book.payer

    @property
    def spent(self) -> Spending:
        """Usage of all finished calls."""
        return self._spent if self._hits is None else self._spent + self._hits.spent

    @property
    def path(self) -> Path | None:
        """Path of the file, or None."""
        return None if self._book is None else self._book.path

    def turn_to(self, path: Path | None, stage: str) -> None:
        """Book further calls in the file `path`, on `stage`. Calls in flight keep their stage.

        From now on, a model may answer only with the snapshots that this file, or a file before it, names for an
        earlier invocation. A model without such a snapshot is not restricted, and neither is any model if mixed
        snapshots are allowed.
        """
        self._write_hits()
        if path != self.path:
            self.close()
            self._open(path)
        self._stage = stage
        if self._book is not None:
            self.answerers.expect(map(self.answerers.named, self._book.before))

    def account(self, qid: str) -> LedgerAccount:
        """Return the account for a call that is requested now for query `qid`."""
        return LedgerAccount(self._stage, qid)

    @contextmanager
    def call(self, account: LedgerAccount, model: str, task: str) -> Iterator[CallTrace]:
        """Book one call. The caller fills the trace."""
        trace = CallTrace(book=self._book, about=(account, model, task))
        try:
            yield trace
        finally:
            if trace.spent.calls:
                self._write(trace)
            elif trace.book is not None:
                trace.book.void(trace.intents)

    def intend(self, traces: Sequence[CallTrace], usd: Sequence[float], keys: Sequence[str]) -> list[int]:
        """Record on disk that lines of a batch are about to be sent. Return the numbers of the intents; empty if the
        ledger has no file.

        Args:
            traces: traces of the calls.
            usd: reserved cost of each call.
            keys: cache keys of the answers.

        Raises:
            ProviderError: the disk failed, so the lines must not be sent.
            BusyError: another process has calls in flight that are booked in the same ledger.
        """
        return [] if self._book is None else self._book.intend(traces, usd, keys)

    def never_sent(self, key: str) -> None:
        """Record that an earlier process did not send the batch line whose answer has the cache key `key`."""
        if self._book is not None:
            self._book.never_sent(key)

    def hit(
        self, account: LedgerAccount, model: str, task: str, saved_usd: float, answerer: Answerer, payer: str = ""
    ) -> None:
        """Book an answer from the cache.

        Args:
            account: stage and query.
            model: name of the model.
            task: name of the task.
            saved_usd: cost of the answer when it was paid for.
            answerer: the model that answered.
            payer: id of the run that paid for it; empty if unknown.

        Raises:
            SnapshotError: the answer is from another model snapshot than earlier answers.
        """
        self.answerers.require(answerer)
        hits = self._hits
        if hits is None or hits[:4] != (account, model, task, answerer):
            self._write_hits()
            hits = _Hits(account, model, task, answerer)
        own_usd = hits.own_usd + (saved_usd if payer and payer == self.payer else 0.0)
        self._hits = hits._replace(cached=hits.cached + 1, saved_usd=hits.saved_usd + saved_usd, own_usd=own_usd)

    def close(self) -> None:
        """Write the remaining lines and close the file."""
        self._write_hits()
        if self._book is not None:
            self._book.close()

    def _write_hits(self) -> None:
        if (hits := self._hits) is not None:
            self._hits = None
            about = (hits.account, hits.model, hits.task)
            self._write(CallTrace(hits.spent, outcome="cached", book=self._book, about=about, answerer=hits.answerer))

    def _write(self, trace: CallTrace) -> None:
        self._spent += (spent := trace.spent)
        account, model, task = trace.about
        by, key = trace.answerer, "" if trace.answerer is None else self.answerers.note(trace.answerer)
        if trace.outcome in ("answered", "cached"):
            self._answers[account.stage, key] += max(1, spent.cached)
        if trace.book is None:
            return
        new = bool(key) and key not in trace.book.answerers
        trace.book.append(
            LedgerLine(
                time=datetime.now(UTC),
                stage=account.stage,
                qid=account.qid,
                model=model,
                task=task,
                outcome=trace.outcome,
                attempts=spent.calls,
                cached=spent.cached,
                prompt_tokens=spent.prompt_tokens,
                cached_tokens=spent.cached_tokens,
                completion_tokens=spent.completion_tokens,
                searches=trace.searches,
                usd=round(spent.usd, DIGITS),
                discount_usd=round(spent.discount_usd, DIGITS),
                saved_usd=round(spent.saved_usd, DIGITS),
                own_usd=round(spent.own_usd, DIGITS),
                latency_s=round(trace.latency_s, 4),
                perhaps_usd=round(trace.perhaps_usd, DIGITS),
                intents=tuple(trace.intents),
                answerer=key,
                named=self.answerers.named(key) if new else None,
                payer="" if trace.book.payer_named else trace.book.payer,
                refused=by is not None and trace.outcome != "cached" and self.answerers.another(by),
            )
        )
