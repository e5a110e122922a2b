"""Intents: calls that are about to leave, so that a kill takes no call from the account.

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
from collections.abc import Collection, Iterable
from datetime import datetime
from operator import not_
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from raggs.base.atomic import write_atomic
from raggs.base.jsonl import Appender, dump_line, read_torn

FILE = "llm.intents.jsonl"
FREE_BYTES, ANSWER_BYTES = 1 << 20, 1 << 16  # of a disk on which answers are stored; and of each call in flight
REMEDY = "restore the file from a copy; without it, calls that may have been billed are not counted"


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
        for intent in read_torn(self.path, CallIntent, REMEDY):
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
