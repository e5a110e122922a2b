"""What reviewers were shown of a machine's or others' words: shown.jsonl beside reviews.jsonl, lines are added alone.

A grade that is given afterwards is not blind, even after a restart, an undo or on another day. A line is on the disk
before its words are on a screen.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from threading import RLock

from pydantic import AwareDatetime, Field

from raggs.base.frozen import Frozen
from raggs.base.jsonl import read_on
from raggs.parts.reviews.models import Digest, Key, Name
from raggs.parts.reviews.store import REMEDY, append_lines

FILE = "shown.jsonl"


class Shown(Frozen):
    """Somebody was shown what others, or a machine, said of a passage."""

    v: int = Field(1, ge=1, le=1, strict=True, description="version of the line's form")
    who: Name = Field(description="the reviewer")
    at: AwareDatetime = Field(description="when, by the clock of the machine")
    query: Digest = Field(description="digest of the question's text")
    passage: Digest = Field(description="digest of the passage's title and text")


class ShownStore:
    """Who was shown what, in a folder of reviews.

    Args:
        folder: made at the first line.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._read, self._known, self._lock = 0, dict[str, set[Key]](), RLock()

    def knows(self, who: str, key: Key) -> bool:
        """Whether a reviewer was shown words on an item.

        Raises:
            DataError: a line cannot be right.
        """
        return key in self.of(who)

    def of(self, who: str) -> Collection[Key]:
        """The items on which a reviewer was shown words.

        Raises:
            DataError: a line cannot be right.
        """
        with self._lock:
            if (size := self.path.stat().st_size if self.path.exists() else 0) < self._read:
                self._read, self._known = 0, {}
            if size > self._read:
                for line, end in read_on(self.path, Shown, REMEDY, self._read):
                    self._read = end
                    self._known.setdefault(line.who, set()).add((line.query, line.passage))
            return self._known.get(who, ())

    def note(self, line: Shown) -> None:
        """Add a line, once for each reviewer and item; it is on the disk when this returns.

        Raises:
            ProviderError, BusyError: as `ReviewStore.append`.
        """
        with self._lock:
            if not self.knows(line.who, (line.query, line.passage)):
                append_lines(self.path, [line])
