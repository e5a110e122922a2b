"""The ledger of a run: what each call took, one line a call, and never a word of what was said.

`llm.ledger.jsonl` only grows: it holds every invocation of the run, also those that failed. It is neither an artifact
nor a cause: nothing depends on it, and a run without it is whole. A line is with the operating system before the
answer is used; a kill loses at most one, and a torn last line goes when the file is opened again. Answers from the
cache come by the thousand a second, so neighbours of the same query share a line.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from raggs.jsonl import Appender
from raggs.llm.messages import Usage

FILE = "llm.ledger.jsonl"
DIGITS = 12  # of an amount of USD after the point: the least price of a token is some 1e-8
Outcome = Literal["answered", "unusable", "failed", "cancelled", "cached"]

_query: ContextVar[str] = ContextVar("query", default="")


def ask_for(qid: str) -> None:
    """Book all that this task, and those that it starts, will ask on the query `qid`."""
    _query.set(qid)


class LedgerLine(BaseModel):
    """One line of llm.ledger.jsonl: a call with all of its attempts, or some answers from the cache."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    v: Literal[1] = 1
    time: datetime = Field(description="when it was over")
    stage: str
    qid: str = Field(description="empty where a call serves several queries")
    model: str
    task: str = Field(description="grade, order, rewrite, embed; batch: an answer that nobody waited for any more")
    outcome: Outcome = Field(description="unusable: paid, but not of the form asked for; failed: without an answer")
    attempts: int = Field(0, ge=0, description="requests sent, retries included")
    cached: int = Field(0, ge=0, description="answers that cost nothing")
    prompt_tokens: int = Field(0, ge=0)
    completion_tokens: int = Field(0, ge=0)
    usd: float = Field(0.0, ge=0)
    saved_usd: float = Field(0.0, ge=0, description="what the cached answers had cost")
    latency_s: float = Field(0.0, ge=0, description="seconds of the last attempt; the wait for a batch")


@dataclass
class Trace:
    """What one call takes, while it takes it."""

    attempts: int = 0
    latency_s: float = 0.0
    used: Usage = field(default_factory=Usage)
    outcome: Outcome = "cancelled"  # until something else is known
    _began: float = 0.0

    def begin(self) -> None:
        """An attempt is sent."""
        self.attempts += 1
        self._began = time.perf_counter()

    def end(self) -> None:
        """The attempt is over."""
        self.latency_s = time.perf_counter() - self._began

    def add(self, waited_s: float) -> None:
        """A batch has answered one line; who stops waiting books nothing, since a later run will."""
        self.attempts += 1
        self.latency_s = waited_s


@dataclass(frozen=True)
class _Hits:
    """Neighbouring answers from the cache."""

    stage: str
    qid: str
    model: str
    task: str
    cached: int = 0
    saved_usd: float = 0.0


class CallLedger:
    """Writes the ledger, from the first call on; without a path it writes nothing."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._stage = ""
        self._file: Appender | None = None
        self._hits: _Hits | None = None

    def turn_to(self, path: Path | None, stage: str) -> None:
        """Book what follows in the file `path`, on `stage`."""
        ask_for("")  # nobody has asked yet; a query of the caller's would be booked wrongly
        self._write_hits()
        if path != self._path:
            self.close()
        self._path, self._stage = path, stage

    @contextmanager
    def call(self, model: str, task: str) -> Iterator[Trace]:
        """Book one call; whoever makes it fills the trace."""
        trace = Trace()
        try:
            yield trace
        finally:
            if trace.attempts:
                self._book(model, task, trace)

    def hit(self, model: str, task: str, saved_usd: float) -> None:
        """Book an answer that cost nothing."""
        if self._path is None:
            return
        hits, qid = self._hits, _query.get()
        if hits is None or (hits.stage, hits.qid, hits.model, hits.task) != (self._stage, qid, model, task):
            self._write_hits()
            hits = _Hits(self._stage, qid, model, task)
        self._hits = replace(hits, cached=hits.cached + 1, saved_usd=hits.saved_usd + saved_usd)

    def close(self) -> None:
        """Write what is left and close the file."""
        self._write_hits()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _book(self, model: str, task: str, trace: Trace) -> None:
        self._write(
            LedgerLine(
                time=_now(),
                stage=self._stage,
                qid=_query.get(),
                model=model,
                task=task,
                outcome=trace.outcome,
                attempts=trace.attempts,
                prompt_tokens=trace.used.prompt_tokens,
                completion_tokens=trace.used.completion_tokens,
                usd=round(trace.used.usd, DIGITS),
                latency_s=round(trace.latency_s, 4),
            )
        )

    def _write_hits(self) -> None:
        if (hits := self._hits) is not None:
            self._hits = None
            saved = round(hits.saved_usd, DIGITS)
            self._write(LedgerLine(time=_now(), outcome="cached", **(vars(hits) | {"saved_usd": saved})))

    def _write(self, line: LedgerLine) -> None:
        if self._path is None:
            return
        if self._file is None:
            self._file = Appender(self._path)
        self._file.append(line)


def _now() -> datetime:
    return datetime.now(UTC)
