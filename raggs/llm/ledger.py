"""The ledger: what each call took, one line a call, and never a word of what was said.

`llm.ledger.jsonl` only grows: it holds every invocation of the run, also those that failed. It is neither an artifact
nor a cause: nothing depends on it, and a run without it is whole. A line is with the operating system before the
answer is used; a kill loses at most one, and a torn last line goes when the file is opened again. Answers from the
cache come by the thousand a second, so neighbours of the same query share a line.

All that is spent passes through here, so the ledger is also the one place that counts it, with or without a file.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import fsum
from operator import not_
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from raggs.jsonl import Appender, read_torn
from raggs.llm.messages import Took
from raggs.spending import Spending

FILE = "llm.ledger.jsonl"
DIGITS = 12  # of an amount of USD after the point: the least price of a token is some 1e-8
Outcome = Literal["answered", "unusable", "failed", "cancelled", "cached"]


class Account(NamedTuple):
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
    outcome: Outcome = Field(description="unusable: paid, but not of the form asked for; failed: without an answer")
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
    latency_s: float = Field(0.0, ge=0, description="seconds of the last attempt; the wait for a batch")
    perhaps_usd: float = Field(
        0.0, ge=0, description="of `usd`, what calls without an answer in time may have cost, each at its likely price"
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
        )


@dataclass
class Trace:
    """What one call takes, while it takes it."""

    spent: Spending = field(default_factory=Spending)
    latency_s: float = 0.0
    outcome: Outcome = "cancelled"  # until something else is known
    perhaps_usd: float = 0.0
    searches: int = 0
    by_batch: bool = False

    @property
    def took(self) -> Took:
        """What the answer took. How long a batch was waited for says nothing about the model."""
        spent = self.spent
        return Took(1, spent.prompt_tokens, None if self.by_batch else 1000 * self.latency_s, spent.usd)

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
        """The latest attempt had no answer in time, but may have been charged for; returns `usd`."""
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

    account: Account
    model: str
    task: str
    cached: int = 0
    saved_usd: float = 0.0

    @property
    def spent(self) -> Spending:
        return Spending(cached=self.cached, saved_usd=self.saved_usd)


REMEDY = "restore the file from a copy, or run with --run-id NAME: all answers are cached, and its account is whole"


def spent_in(path: Path) -> Spending:
    """What the ledger in `path` says was spent; nothing where there is none.

    Raises:
        DataError: a line is damaged.
    """
    calls, usd = 0, []
    for line in read_torn(path, LedgerLine, REMEDY):
        calls += line.attempts
        usd.append(line.usd)
    return Spending(calls=calls, usd=fsum(usd))


class CallLedger:
    """Counts what is spent, and writes it down from the first call on; without a path it only counts.

    Args:
        path: the file, made or added to.
        stage: on what calls are booked: a stage's name, or whatever tells the use.
    """

    def __init__(self, path: Path | None = None, stage: str = "") -> None:
        self._spent = Spending()
        self._path = path
        self._stage = stage
        self._file: Appender | None = None
        self._hits: _Hits | None = None
        self.earlier = Spending() if path is None else spent_in(path)  # what the file holds of other invocations

    @property
    def spent(self) -> Spending:
        """What all calls took that are over."""
        return self._spent if self._hits is None else self._spent + self._hits.spent

    @property
    def path(self) -> Path | None:
        """The file in which calls are booked; None where they are not."""
        return self._path

    def turn_to(self, path: Path | None, stage: str) -> None:
        """Book what is asked from now on in the file `path`, on `stage`; calls under way keep their stage."""
        self._write_hits()
        if path != self._path:
            self.close()
            self.earlier = Spending() if path is None else spent_in(path)
        self._path, self._stage = path, stage

    def account(self, qid: str) -> Account:
        """On what a call for the query `qid` is booked that is asked now."""
        return Account(self._stage, qid)

    @contextmanager
    def call(self, account: Account, model: str, task: str) -> Iterator[Trace]:
        """Book one call; whoever makes it fills the trace."""
        trace = Trace()
        try:
            yield trace
        finally:
            if trace.spent.calls:
                self._book(account, model, task, trace)

    def hit(self, account: Account, model: str, task: str, saved_usd: float) -> None:
        """Book an answer that cost nothing."""
        hits = self._hits
        if hits is None or hits[:3] != (account, model, task):
            self._write_hits()
            hits = _Hits(account, model, task)
        self._hits = hits._replace(cached=hits.cached + 1, saved_usd=hits.saved_usd + saved_usd)

    def close(self) -> None:
        """Write what is left and close the file."""
        self._write_hits()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write_hits(self) -> None:
        if (hits := self._hits) is not None:
            self._hits = None
            self._book(hits.account, hits.model, hits.task, Trace(hits.spent, outcome="cached"))

    def _book(self, account: Account, model: str, task: str, trace: Trace) -> None:
        self._spent += (spent := trace.spent)
        if self._path is None:
            return
        if self._file is None:
            self._file = Appender(self._path)
        self._file.append(
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
                latency_s=round(trace.latency_s, 4),
                perhaps_usd=round(trace.perhaps_usd, DIGITS),
            )
        )
