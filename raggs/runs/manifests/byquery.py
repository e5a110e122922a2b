"""Where each query's lines stand in a run's artifacts, so that one query is read without the others.

One pass over the bytes finds the ids; nothing is parsed until it is asked for. A file that changes afterwards is an
error or read as it is now, never another query's lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from raggs.base.artifacts import Record
from raggs.base.bulk import all_records
from raggs.base.errors import DataError
from raggs.base.inputs import regular_file
from raggs.base.jsonl import first_fault
from raggs.runs.manifests.opened import OpenedRun

R = TypeVar("R", bound=Record)
QID = re.compile(rb'"qid":\s*("(?:[^"\\]|\\.)+")')  # inside a text its quotes would be escaped
RANK = re.compile(rb'"rank":\s*([0-9]+)')


class ByQuery:
    """An artifact by query; empty where there is no file.

    Raises:
        DataError: a line names no query, or the file is not what its stage wrote.
    """

    def __init__(self, run: OpenedRun, artifact: str) -> None:
        self._path = run.file(artifact)
        run.check(artifact)
        self._pieces: dict[str, list[tuple[int, int]]] = {}
        if self._path.is_file():
            for qid, begin, end in _pieces(self._path):
                self._pieces.setdefault(qid, []).append((begin, end))

    @property
    def qids(self) -> tuple[str, ...]:
        """The queries, in the order of the file."""
        return tuple(self._pieces)

    def of(self, qid: str, model: type[R], depth: int | None = None) -> tuple[R, ...]:
        """A query's records; none where it has none.

        Args:
            depth: those of a rank beyond it are not read; None: all are.

        Raises:
            DataError: a line does not fit `model`, or the file has changed since.
        """
        if qid not in self._pieces:
            return ()
        lines = [line for line in self._lines(qid, depth) if line.strip()]
        try:
            records = all_records(lines, model) or list(map(model.model_validate_json, lines))
        except ValidationError as error:
            where = f"{self._path}, query {qid}"
            raise DataError(first_fault(error), where=where, remedy=f"expected a {model.__name__}") from error
        if any(record.qid != qid for record in records):
            raise DataError("has changed while it was read", where=self._path, remedy="start again")
        return tuple(records)

    def _lines(self, qid: str, depth: int | None) -> Iterator[bytes]:
        with self._path.open("rb", buffering=0) as file:  # a query's lines mostly stand in one piece, read at once
            for begin, end in self._pieces[qid]:
                file.seek(begin)
                lines = file.read(end - begin).splitlines()
                yield from lines if depth is None else (line for line in lines if not _beyond(line, depth))


def _beyond(line: bytes, depth: int) -> bool:
    """Whether a line says a rank beyond a depth."""
    found = RANK.search(line)
    return found is not None and int(found[1]) > depth


def _pieces(path: Path) -> Iterator[tuple[str, int, int]]:
    """Query, first byte and end of each run of lines of one query."""
    named, head, begin, byte = b"", b"\n", 0, 0
    with regular_file(path).open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.startswith(head):  # as the line before begins, up to the end of its query
                found = QID.search(line)
                if found is None and line.strip():
                    raise DataError("names no query", where=path, line=number, remedy="run raggs audit on the run")
                if found is not None and found[1] != named:
                    if named:
                        yield json.loads(named), begin, byte
                    named, begin = found[1], byte
                head = b"\n" if found is None else line[: found.end()]
            byte += len(line)
    if named:
        yield json.loads(named), begin, byte
