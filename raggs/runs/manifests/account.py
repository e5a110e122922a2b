"""The ledger's running hash: how far llm.ledger.jsonl had come when a manifest was written.

The ledger stays append-only, and a line costs nothing more than before: whoever writes a manifest reads on from where
it stood and notes a mark. A mark covers whole lines only, since a torn one goes when the ledger is opened again. What
no mark covers yet (a run was killed) is covered by the next one. A ledger that does not fit its last mark is not
marked anew: an account that was altered stays so.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from raggs.base.atomic import write_atomic
from raggs.base.text import plural
from raggs.runs.manifests.models import LedgerMark

CRC = 4  # bytes of a line's checksum
Problem = tuple[int | None, str]  # a line of the ledger, and what is wrong


class Account:
    """One ledger, read once from its start and on from there.

    Args:
        path: the ledger, which need not exist.
        sums: where the CRC-32 of each marked line is kept, by which an edited one is named.
    """

    def __init__(self, path: Path, sums: Path) -> None:
        self._path, self._sums_path = path, sums
        self._digest, self._sums = hashlib.sha256(), bytearray()
        self._mark = LedgerMark()
        self._checked = False  # whether what was there fits what was known of it
        self._kept: LedgerMark | None = None  # of a ledger that does not fit it any more
        self._summed = -1  # rows whose checksums are on the disk

    def end(self) -> int:
        """Bytes of whole lines that are in the ledger now.

        Raises:
            OSError: it cannot be read.
        """
        return self._read().bytes

    def expect(self, known: LedgerMark) -> None:
        """Take the ledger to end where `known` does: what comes after it was not booked by a run, and is never marked.

        Raises:
            OSError: it cannot be read.
        """
        if self.end() > known.bytes:
            self._kept, self._checked = known, True

    def mark(self, known: LedgerMark) -> LedgerMark:
        """The mark of today, on the disk with all it covers; the `known` one where the ledger does not fit it.

        Raises:
            OSError: the disk failed.
        """
        if not self._checked and not fits(self._path, known):
            self._kept = known
        self._checked = True
        if self._kept is not None:
            return self._kept
        found = self._read()
        if found.bytes > known.bytes or (not self._sums_path.is_file() and found.rows):
            self._sums_path.parent.mkdir(exist_ok=True)
            write_atomic(self._sums_path, bytes(self._sums))
        return found

    def _read(self) -> LedgerMark:
        if not self._path.is_file():
            return self._mark
        with self._path.open("rb") as file:
            file.seek(self._mark.bytes)
            rows, size = self._mark.rows, self._mark.bytes
            for line in _whole(file):
                self._digest.update(line)
                self._sums += zlib.crc32(line).to_bytes(CRC, "little")
                rows, size = rows + 1, size + len(line)
            if size > self._mark.bytes:
                os.fsync(file.fileno())  # no mark before what it covers
        self._mark = LedgerMark(rows=rows, bytes=size, sha256=self._digest.hexdigest())
        return self._mark


def fits(path: Path, mark: LedgerMark) -> bool:
    """Whether the ledger still begins with what the mark covers."""
    if not mark.bytes:
        return True
    if not path.is_file() or path.stat().st_size < mark.bytes:
        return False
    digest, left = hashlib.sha256(), mark.bytes
    with path.open("rb") as file:
        while left and (block := file.read(min(left, 1 << 20))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest() == mark.sha256


def problems(path: Path, mark: LedgerMark, sums: bytes) -> Iterator[Problem]:
    """What is wrong with a ledger that does not fit its mark; the first changed line where the checksums tell it."""
    if fits(path, mark):
        return
    if not path.is_file():
        yield None, f"the file is missing, the manifest says {plural(mark.rows, 'line')}"
        return
    line = _first_changed(path, sums) if len(sums) >= CRC * mark.rows else None
    yield (
        line,
        f"is not what was booked: the hash of its first {plural(mark.rows, 'line')} is not what the manifest says",
    )


def unbooked(path: Path, mark: LedgerMark) -> Problem | None:
    """Return the first line after a mark and what is wrong with it, in a run in which no stage is at work."""
    if not path.is_file() or path.stat().st_size <= mark.bytes or not fits(path, mark):
        return None
    with path.open("rb") as file:
        file.seek(mark.bytes)
        count = sum(1 for _ in _whole(file))
    told = f"{plural(count, 'line')} from here on were added after the run had booked its last call"
    return (mark.rows + 1, told) if count else None


def _first_changed(path: Path, sums: bytes) -> int | None:
    number = 0
    with path.open("rb") as file:
        for number, line in enumerate(_whole(file), start=1):
            expected = sums[CRC * (number - 1) : CRC * number]
            if not expected:
                return None
            if zlib.crc32(line).to_bytes(CRC, "little") != expected:
                return number
    return number + 1


def _whole(file: BinaryIO) -> Iterator[bytes]:
    """The lines that end."""
    for line in file:
        if line.endswith(b"\n"):
            yield line
