"""reviews.jsonl in a folder of its own: lines are added, never changed.

Names that differ by case alone are one reviewer, under the spelling that came first.

A line is on the disk before `append` returns, whoever else writes at the same time. A last line that a power cut tore
is dropped when the next one is added; whoever reads passes over it and can say so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import RLock

from pydantic import BaseModel

from raggs.base.atomic import disk, sync_folder
from raggs.base.errors import BusyError
from raggs.base.jsonl import Appender, read_on, read_torn
from raggs.parts.reviews.folding import Reviewed, fold
from raggs.parts.reviews.models import Review, ReviewLine

FILE, LOCK = "reviews.jsonl", ".lock"
PATIENCE = 10.0  # seconds; a line takes some milliseconds
REMEDY = "nobody but raggs should write here; delete the line, or bring the file back from a copy"


class ReviewStore:
    """All that was ever said, in the order in which it was said.

    Args:
        folder: made at the first line.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / FILE
        self._lock = RLock()
        self._held: tuple[int, Reviewed] | None = None
        self._names: dict[str, str] = {}  # first spelling, by the name without case

    def read(self) -> list[Review]:
        """All lines, oldest first; none where nothing was said.

        Raises:
            DataError: a line cannot be right; names it. A torn last line is none.
        """
        return [self._unified(line.root) for line in read_torn(self.path, ReviewLine, REMEDY)]

    def lines(self) -> Iterator[Review]:
        """The same one by one, for whoever keeps little of them.

        Raises:
            DataError: as `read`.
        """
        return (line for line, _ in self.since(0))

    def held(self) -> Reviewed:
        """What holds now, folded again only after a line was added; nobody may change it.

        Raises:
            DataError: as `read`.
        """
        with self._lock:
            size = self.size
            if self._held is None or self._held[0] != size:
                self._held = size, fold(self.read())
            return self._held[1]

    @property
    def size(self) -> int:
        """Bytes of the file; 0 where there is none."""
        return self.path.stat().st_size if self.path.exists() else 0

    def since(self, byte: int) -> Iterator[tuple[Review, int]]:
        """Each whole line from a byte at which one begins, and the byte at which it ends.

        Raises:
            DataError: a line cannot be right.
        """
        return ((self._unified(line.root), end) for line, end in read_on(self.path, ReviewLine, REMEDY, byte))

    def spelling(self, name: str) -> str:
        """Return the spelling under which the words of a reviewer are known; `name` itself if there are none.

        Raises:
            DataError: as `read`.
        """
        if not self._names:
            for _ in self.lines():
                pass
        return self._names.get(name.casefold(), name)

    def _unified(self, line: Review) -> Review:
        return line.spelled(self._names.setdefault(line.who.casefold(), line.who))

    @property
    def torn(self) -> bool:
        """Whether the last line is torn, so that it does not count."""
        if not self.path.exists() or not self.path.stat().st_size:
            return False
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"

    def append(self, *reviews: Review) -> None:
        """Add lines; they are on the disk when this returns.

        Raises:
            ProviderError: the disk refuses, or the folder is read-only.
            BusyError: another process has held the file for 10 s.
        """
        append_lines(self.path, reviews)


def append_lines(path: Path, lines: Sequence[BaseModel]) -> None:
    """Add lines to a file of a folder of reviews, which is made where there is none; one process writes at a time.

    Raises:
        ProviderError: the disk refuses, or the folder is read-only.
        BusyError: another process has held the folder for 10 s.
    """
    folder = path.parent
    from filelock import FileLock, Timeout  # late: from then on it listens to all that is opened; readers lock nothing

    with disk(folder, "name a folder that can be written: --reviews DIR"):
        new = not path.exists()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(folder / LOCK, timeout=PATIENCE), Appender(path) as file:
                for line in lines:
                    file.append(line)
                file.sync()
        except Timeout as error:
            raise BusyError("another process holds the reviews", where=path, remedy="try again") from error
        if new:
            sync_folder(folder)
