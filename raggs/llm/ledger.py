"""The ledger: what each call took, one line a call, and never a word of what was said.

`llm.ledger.jsonl` only grows: it holds every invocation of the run, also those that failed. It is neither an artifact
nor a cause: nothing depends on it, and a run without it is whole. A line is with the operating system before the
answer is used; a torn last line goes when the file is opened again. Answers from the cache come by the thousand a
second, so neighbours of the same query share a line.

Before a call leaves, its intent is on the disk (`IntentLog`). The next invocation books the calls whose end a
kill took as `unknown`: they are possibly billed, and count as spent with all that they can have cost.

All that is spent passes through here, so the ledger is also the one place that counts it, with or without a file.

Intents: calls that are about to leave, so that a kill takes no call from the account.

A line is with the operating system before its call leaves, one for each request, retries included. The ledger's line
of a call names its intents. An intent that no line names belongs to a call whose end was not booked: it is possibly
billed, and counts as spent, with all that it can cost at most. There is no fsync for each line: a `kill -9` takes
nothing. A power cut may take the newest lines, as it may take those of the ledger, and with them their calls.

`llm.intents.jsonl` lies beside the ledger for as long as a process is at work. Whoever opens the ledger next, alone,
books what is left as calls of unknown outcome. Only lines of batches stay, since their answers can still be fetched.
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
FREE_BYTES, ANSWER_BYTES = 1 << 20, 1 << 16  # of a disk on which answers are stored; and of each call in flight
INTENTS_REMEDY = "restore the file from a copy; without it, calls that may have been billed are not counted"


class CallIntent(BaseModel):
    """One line of llm.intents.jsonl: a request that is about to leave."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    v: Literal[1] = 1
    number: int = Field(ge=1, description="by which a line of the ledger names it")
    time: datetime
    stage: str
    qid: str = Field(description="empty if the call serves several queries")
    model: str
    task: str
    usd: float = Field(ge=0, description="cost at most, as far as that is known before the answer")
    key: str = Field(
        "", exclude_if=not_, description="of the answer in the cache, for a line of a batch, which can be fetched later"
    )
    unsent: bool = Field(False, exclude_if=not_, description="nothing was sent, so the call does not count")


class IntentLog:
    """The intents beside one ledger.

    Attributes:
        unsettled: those that left and that no line of the ledger names, by number.
        last: the highest number that is taken.
    """

    def __init__(self, ledger: Path, settled: Collection[int] = ()) -> None:
        """Read what is there; nothing is written.

        Args:
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
        """Write intents; their calls may leave when this returns.

        Raises:
            OSError: the disk failed, so the calls must not leave.
        """
        added = list(intents)
        if self._file is None:
            self._file = Appender(self.path)
        self._file.extend(added)
        for intent in added:
            self.last = max(self.last, intent.number)
            self.unsettled[intent.number] = intent

    def settle(self, numbers: Iterable[int]) -> None:
        """Take note that the ledger has a line for some intents."""
        for number in numbers:
            self.unsettled.pop(number, None)

    def void(self, numbers: Iterable[int]) -> None:
        """Write that some intents were not sent after all."""
        known = [self.unsettled[number] for number in numbers if number in self.unsettled]
        if known:
            self.add(intent.model_copy(update={"unsent": True}) for intent in known)
            self.settle(intent.number for intent in known)

    def shrink(self) -> None:
        """Keep only what is unsettled on the disk, and no file if there is nothing."""
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
    """Where the intents of a ledger lie."""
    return ledger.with_name(f"{ledger.name.removesuffix('.jsonl').removesuffix('.ledger')}.intents.jsonl")


def check_room(folder: Path, calls: int) -> None:
    """Check that the answers of so many calls can be stored, before one more is paid for.

    Raises:
        OSError: the disk is full, or nearly so.
    """
    if hasattr(os, "statvfs"):
        found = os.statvfs(folder)
        if found.f_bavail * found.f_frsize < FREE_BYTES + calls * ANSWER_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


LEDGER_FILE = "llm.ledger.jsonl"
PAYER_LENGTH = 16
DIGITS = 12  # of an amount of USD after the point: the least price of a token is some 1e-8
Outcome = Literal["answered", "unusable", "failed", "cancelled", "cached", "unknown"]


class LedgerAccount(NamedTuple):
    """On what a call is booked: for which stage and query it was asked, whenever it ends."""

    stage: str
    qid: str


class LedgerLine(BaseModel):
    """One line of llm.ledger.jsonl: a call with all of its attempts, or some answers from the cache."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    v: Literal[1] = 1
    time: datetime = Field(description="when it was over")
    stage: str
    qid: str = Field(description="empty where a call serves several queries")
    model: str
    task: str = Field(
        description="grade, grades, order, rewrite, embed, rerank, relevance; batch: nobody waited for it"
    )
    outcome: Outcome = Field(
        description="unusable: paid, but not of the form asked for; failed: without an answer; unknown: raggs was "
        "killed before the end was booked, so the call is possibly billed"
    )
    attempts: int = Field(0, ge=0, description="requests sent, retries included")
    cached: int = Field(0, ge=0, description="answers that cost nothing")
    prompt_tokens: int = Field(0, ge=0)
    cached_tokens: int = Field(
        0, ge=0, exclude_if=not_, description="of `prompt_tokens`, those that the provider says it remembered"
    )
    completion_tokens: int = Field(0, ge=0)
    searches: int = Field(0, ge=0, description="units by which some rerankers are paid, told or estimated")
    usd: float = Field(0.0, ge=0)
    discount_usd: float = Field(
        0.0, exclude_if=not_, description="what it would have cost more, had the provider remembered nothing"
    )
    saved_usd: float = Field(0.0, ge=0, description="what the cached answers had cost")
    own_usd: float = Field(
        0.0, ge=0, exclude_if=not_, description="of `saved_usd`, answers that this run had paid for itself"
    )
    latency_s: float = Field(0.0, ge=0, description="seconds of the last attempt; the wait for a batch")
    perhaps_usd: float = Field(
        0.0,
        ge=0,
        description="of `usd`, what calls that were sent and brought no answer may have cost: at most, if USD are "
        "limited or the outcome is unknown, else at a likely price",
    )
    intents: tuple[int, ...] = Field((), exclude_if=not_, description="the numbers of its requests in the intents")
    answerer: str = Field("", exclude_if=not_, description="key of the model that answered; empty where none did")
    named: Answerer | None = Field(
        None, exclude_if=not_, description="the answerer, on the first line that has its key"
    )
    payer: str = Field("", exclude_if=not_, description="the run's name in the cache of answers, on one line")
    refused: bool = Field(
        False,
        exclude_if=not_,
        description="whether the run stopped, since this is another snapshot than the ones of before",
    )

    @property
    def spent(self) -> Spending:
        """What it says of the spending: all but which answers were repaired."""
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
    """What one call takes, while it takes it."""

    spent: Spending = field(default_factory=Spending)
    latency_s: float = 0.0
    outcome: Outcome = "cancelled"  # until something else is known
    perhaps_usd: float = 0.0
    searches: int = 0
    by_batch: bool = False
    book: _OpenLedger | None = None
    about: tuple[LedgerAccount, str, str] = (LedgerAccount("", ""), "", "")  # on what it is booked, its model, its task
    intents: list[int] = field(default_factory=list)
    answerer: Answerer | None = None

    @property
    def took(self) -> CallUsage:
        """What the answer took. How long a batch was waited for says nothing about the model."""
        spent = self.spent
        return CallUsage(1, spent.prompt_tokens, None if self.by_batch else 1000 * self.latency_s, spent.usd)

    def intend(self, usd: float) -> None:
        """Put on the disk that a request is about to leave, which costs `usd` at most.

        Raises:
            ProviderError: the disk failed, so it must not leave.
        """
        if self.book is not None:
            self.intents += self.book.intend([self], [usd])

    def fetched(self, key: str) -> None:
        """Take over the intent of a line of an earlier process's batch, which the batch has answered now."""
        if self.book is not None:
            self.intents += self.book.fetched(key)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """One request, from when it is sent until it is over."""
        self.spent += Spending(calls=1)
        began = time.perf_counter()
        try:
            yield
        finally:
            self.latency_s = time.perf_counter() - began

    def unsent(self) -> None:
        """The latest attempt was none: nothing was sent."""
        self.spent -= Spending(calls=1)

    def perhaps(self, usd: float) -> float:
        """The latest attempt brought no answer, but may have been charged for; returns `usd`."""
        self.spent += Spending(usd=usd)
        self.perhaps_usd += usd
        return usd

    def batched(self, waited_s: float) -> None:
        """A batch has answered one line; who stops waiting books nothing, since a later run will."""
        self.spent += Spending(calls=1)
        self.latency_s = waited_s
        self.by_batch = True


class _Hits(NamedTuple):
    """Neighbouring answers from the cache."""

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
LEDGER_REMEDY = (
    "restore the file from a copy, or run with --run-id NAME: all answers are cached, and its account is whole"
)


def lines_in(path: Path) -> Iterator[LedgerLine]:
    """The lines of the ledger in `path`; and one for each call that left and is not booked, which is possibly billed.

    Raises:
        DataError: a line is damaged.
    """
    settled: set[int] = set()
    for line in read_torn(path, LedgerLine, LEDGER_REMEDY):
        settled.update(line.intents)
        yield line
    yield from map(_unsettled_line, IntentLog(path, settled).unsettled.values())


def _unsettled_line(intent: CallIntent) -> LedgerLine:
    """The line of a call whose end was not booked."""
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
    """One ledger and its intents, which one process at a time may write.

    Whoever opens it with intents of an earlier process books what that left, but lines of batches, whose answers can
    still be fetched.

    Raises:
        BusyError: another process has calls under way that are booked here.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: Appender | None = None
        self._held, self._owned = ExitStack(), False
        self._size, self._settled = 0, set[int]()
        self.answerers: dict[str, Answerer] = {}  # that the file names, by key
        self.payer, self.payer_named = uuid4().hex[:PAYER_LENGTH], False
        self.before: set[str] = set()  # keys of those whose answers earlier processes have used
        self._booked, self._unknown = self._read()
        self._log = IntentLog(path, self._settled)
        self._fetchable: dict[str, CallIntent] = {}
        if self._log.path.exists():
            self._own()

    def _read(self) -> tuple[Spending, Spending]:
        """What the ledger holds, and how much of it is possibly billed."""
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
        """Hold both files, and book what an earlier process left."""
        if self._owned:
            return
        lock, who = f".{self._log.path.stem}.lock", "another raggs process books its calls here"
        wait = "wait for it to end, or choose another folder"
        folder = self.path.parent
        self._held.enter_context(hold_folder(folder / lock, folder, who=who, wait=wait, remedy=WORKSPACE_REMEDY))
        self._owned = True
        if self.path.exists() and self.path.stat().st_size != self._size:
            self._read()
        self._log = IntentLog(self.path, self._settled)
        unsettled = list(self._log.unsettled.values())
        self._fetchable = {intent.key: intent for intent in unsettled if intent.key}  # the latest of each key
        for intent in unsettled:
            if intent != self._fetchable.get(intent.key):
                line = _unsettled_line(intent)
                self.append(line)
                self._booked, self._unknown = self._booked + line.spent, self._unknown + line.spent
        if self._log.path.exists():
            self._log.shrink()

    @property
    def earlier(self) -> Spending:
        """What was spent before it was opened, with what is possibly billed."""
        return self._booked + self._still_unknown

    @property
    def unknown(self) -> Spending:
        """The part of it that is possibly billed."""
        return self._unknown + self._still_unknown

    @property
    def _still_unknown(self) -> Spending:
        left = self._fetchable.values()
        return Spending(calls=len(left), usd=fsum(intent.usd for intent in left))

    def intend(self, traces: Sequence[CallTrace], usd: Sequence[float], keys: Sequence[str] = ("",)) -> list[int]:
        """Put intents on the disk; returns their numbers.

        Args:
            traces: of the calls.
            usd: what each costs at most.
            keys: of the answers, if they are lines of a batch.

        Raises:
            ProviderError: the disk failed, so the calls must not leave.
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
        """Take the intent of a batch's line that an earlier process sent, as the batch has answered it."""
        return [] if (intent := self._fetchable.pop(key, None)) is None else [intent.number]

    def never_sent(self, key: str) -> None:
        """Take note that the batch in which an earlier process meant to send a line never left."""
        self.void(self.fetched(key))

    def void(self, numbers: Iterable[int]) -> None:
        """Take note that calls were not sent after all."""
        self._log.void(numbers)

    def append(self, line: LedgerLine) -> None:
        """Write a line, which settles the intents that it names.

        Raises:
            ProviderError: the disk failed; the intents stay unsettled, so the call stays possibly billed.
        """
        with disk(self.path, WORKSPACE_REMEDY):
            if self._file is None:
                self._file = Appender(self.path)
            self._file.append(line)
        self._meet(line)
        self._log.settle(line.intents)

    def close(self) -> None:
        """Close the files; of the intents only those that are not settled stay."""
        with suppress(OSError):  # a full disk: what is written is true, and the next process puts it in order
            if self._file is not None:
                file, self._file = self._file, None
                file.close()
            if self._owned:
                self._log.shrink()
        self._owned = False
        self._held.close()


class CallLedger:
    """Counts what is spent, and writes it down from the first call on; without a path it only counts.

    Args:
        path: the file, made or added to.
        stage: on what calls are booked: a stage's name, or whatever tells the use.
        allow_mixed: whether other snapshots of models than those of before may answer.

    Attributes:
        answerers: all models that answered, also in earlier invocations.
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
        """Spending of other invocations by the file, with what is possibly billed."""
        return Spending() if self._book is None else self._book.earlier

    @property
    def unknown(self) -> Spending:
        """The part of `earlier` that is possibly billed: calls whose end a kill took."""
        return Spending() if self._book is None else self._book.unknown

    def answered(self, stage: str) -> Mapping[str, int]:
        """Answers of this invocation for a stage by the key of their answerer, cached ones included."""
        self._write_hits()
        return {key: count for (name, key), count in self._answers.items() if name == stage}

    def _open(self, path: Path | None) -> None:
        self._book = None if path is None else _OpenLedger(path)
        if self._book is not None:
            self.answerers.learn(self._book.answerers.values())

    @property
    def payer(self) -> str:
        """The run's name in the cache of answers that it pays for; empty without a file."""
        return "" if self._book is None else self._book.payer

    @property
    def spent(self) -> Spending:
        """What all calls took that are over."""
        return self._spent if self._hits is None else self._spent + self._hits.spent

    @property
    def path(self) -> Path | None:
        """The file in which calls are booked; None where they are not."""
        return None if self._book is None else self._book.path

    def turn_to(self, path: Path | None, stage: str) -> None:
        """Book what is asked from now on in the file `path`, on `stage`; calls under way keep their stage.

        Only the snapshots that answered by this file in earlier invocations may answer from now on.
        """
        self._write_hits()
        if path != self.path:
            self.close()
            self._open(path)
        self._stage = stage
        if self._book is not None:
            self.answerers.expect(map(self.answerers.named, self._book.before))

    def account(self, qid: str) -> LedgerAccount:
        """On what a call for the query `qid` is booked that is asked now."""
        return LedgerAccount(self._stage, qid)

    @contextmanager
    def call(self, account: LedgerAccount, model: str, task: str) -> Iterator[CallTrace]:
        """Book one call; whoever makes it fills the trace."""
        trace = CallTrace(book=self._book, about=(account, model, task))
        try:
            yield trace
        finally:
            if trace.spent.calls:
                self._write(trace)
            elif trace.book is not None:
                trace.book.void(trace.intents)

    def intend(self, traces: Sequence[CallTrace], usd: Sequence[float], keys: Sequence[str]) -> list[int]:
        """Put on the disk that lines of a batch are about to leave; returns their numbers, none if there is no file.

        Args:
            traces: of the calls.
            usd: what each costs at most.
            keys: of the answers.

        Raises:
            ProviderError: the disk failed, so they must not leave.
        """
        return [] if self._book is None else self._book.intend(traces, usd, keys)

    def never_sent(self, key: str) -> None:
        """Take note that a line of an earlier process's batch, with the answer's `key`, never left."""
        if self._book is not None:
            self._book.never_sent(key)

    def hit(
        self, account: LedgerAccount, model: str, task: str, saved_usd: float, answerer: Answerer, payer: str = ""
    ) -> None:
        """Book an answer that cost nothing.

        Args:
            saved_usd: its cost when it was paid for.
            payer: the run that paid for it, if that is known.

        Raises:
            SnapshotError: it is of another snapshot than the answers of before.
        """
        self.answerers.require(answerer)
        hits = self._hits
        if hits is None or hits[:4] != (account, model, task, answerer):
            self._write_hits()
            hits = _Hits(account, model, task, answerer)
        own_usd = hits.own_usd + (saved_usd if payer and payer == self.payer else 0.0)
        self._hits = hits._replace(cached=hits.cached + 1, saved_usd=hits.saved_usd + saved_usd, own_usd=own_usd)

    def close(self) -> None:
        """Write what is left and close the file."""
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
