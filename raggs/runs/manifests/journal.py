"""The journal of judged batches while the rank stage runs. It lives on the disk; memory holds only where entries stand.

Entries are appended as they come; each is with the operating system before `append` returns. There is no fsync for
each line: a power cut may lose the newest ones, whose paid answers the language-model cache still holds. When a query
is done, `settle` says which of its entries its ranking is the fold of; `settled` gives them all in their final order
for the commit, so that the journal of a resumed run has the same bytes as that of an undisturbed one.
"""

from __future__ import annotations

import tempfile
import zlib
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from raggs.base.artifacts import JournalRecord
from raggs.base.atomic import atomic_writer
from raggs.base.jsonl import dump_line, read_torn


class EntryFile:
    """Journal entries in a file, found again by their query. Its owner closes it.

    Args:
        file: open for reading and writing; `index` says what stands in it already.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self._end = 0
        self._places: dict[str, array[int]] = {}  # start and end of each run of entries: 16 bytes

    def index(self, qid: str, size: int) -> None:
        """The next `size` bytes are an entry of this query."""
        places = self._places.setdefault(qid, array("q"))
        if places and places[-1] == self._end:
            places.pop()
        else:
            places.append(self._end)
        self._end += size
        places.append(self._end)

    def add(self, record: JournalRecord) -> None:
        line = dump_line(record)
        self.file.seek(self._end)
        self.file.write(line)
        self.file.flush()
        self.index(record.qid, len(line))

    def get(self, qid: str) -> Iterator[JournalRecord]:
        """The entries of a query, in the order they came."""
        places = self._places.get(qid, array("q"))
        for start, end in zip(places[::2], places[1::2], strict=True):
            self.file.seek(start)
            for line in self.file.read(end - start).splitlines():
                yield JournalRecord.model_validate_json(line)

    def forget(self, qid: str) -> None:
        self._places.pop(qid, None)

    def __iter__(self) -> Iterator[JournalRecord]:
        """Every entry, by query, round and slot."""
        for qid in sorted(self._places):
            yield from sorted(self.get(qid), key=lambda entry: (entry.round, entry.slot))


class RunJournal:
    """The journal of one run.

    Args:
        path: of the file; made where missing.
        sums: CRC-32 of the lines to be believed, four bytes each, little-endian; None believes all.

    Raises:
        DataError: a line other than a torn last one is no entry.
        OSError: the disk failed.
    """

    def __init__(self, path: Path, sums: bytes | None = None) -> None:
        believed = None if sums is None else {sums[at : at + 4] for at in range(0, len(sums), 4)}
        # A torn last line would corrupt what is appended next, so the whole lines are written again.
        with atomic_writer(path) as file:
            self._known = EntryFile(file)
            for record in read_torn(path, JournalRecord, "delete the file to start this stage afresh"):
                line = dump_line(record, given=True)
                if believed is None or zlib.crc32(line).to_bytes(4, "little") in believed:
                    self._known.index(record.qid, file.write(line))
        self._known.file = path.open("r+b")
        self._settled = EntryFile(tempfile.TemporaryFile(dir=path.parent))  # noqa: SIM115 - closed by `close`

    def entries(self, qid: str) -> list[JournalRecord]:
        """What is known of a query, from earlier runs and from this one."""
        return list(self._known.get(qid))

    def append(self, record: JournalRecord) -> None:
        self._known.add(record)

    def settle(self, qid: str, used: Iterable[JournalRecord]) -> None:
        self._known.forget(qid)
        for record in used:
            self._settled.add(record)

    def settled(self) -> Iterator[JournalRecord]:
        yield from self._settled

    def close(self) -> None:
        self._known.file.close()
        self._settled.file.close()
