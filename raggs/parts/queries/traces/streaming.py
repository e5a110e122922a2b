"""Records of trace files, read in bounded memory: JSON documents, JSON lines and CSV tables.

A trace file may be one JSON document of several gigabytes. Its records are the outermost objects and the elements of a
few known lists, such as ``resourceSpans`` or ``observations``. If an object is smaller than `LOOKAHEAD` characters, it
is decoded at once. If it is larger, its keys are read one by one, and the elements of known lists are decoded one by
one. So memory depends on the largest record, not on the file. Other values may have at most about `MAX_VALUE_CHARS`
characters.

JSON lines are a sequence of documents. A broken line raises an error with its number, or is counted and skipped if the
caller passes a counter. A fault inside a document of several lines is always an error, because its end is unknown.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from raggs.base.errors import DataError, UsageError
from raggs.base.files import read_blocks
from raggs.base.jsonl import MAX_JSON_DEPTH, TOO_DEEP, UNIQUE, DuplicateFieldError
from raggs.base.tables import table_cells_of
from raggs.base.text import shorten

MAX_KEY_CHARS = 20  # maximum length of a key in a message
LOOKAHEAD = 1 << 20  # characters in the buffer before an object is decoded
MAX_VALUE_CHARS = 1 << 24  # approximate maximum length of a value of a large object, such as attributes of a span
ESCAPE_CHARS = 12  # length of a surrogate pair in JSON; an error so close to the end may be a truncated escape
SPACES = re.compile(r"[ \t\n\r]*")
TOKENS = re.compile(
    r'(?P<bracket>[{}\[\]])|(?P<key>"(?:[^"\\]|\\.)*+")[ \t\n\r]*:|"(?:[^"\\]|\\.)*+"', re.DOTALL
)  # brackets, keys and other strings of a JSON text
CONTAINERS = frozenset(
    {
        *("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "instrumentationLibrarySpans", "spans"),
        *("data", "traces", "observations", "scores", "runs", "child_runs", "feedback", "annotations", "items"),
    }
)  # keys of lists whose elements are records
WRAPPERS = frozenset({"trace"})  # keys of objects that are records
TABLES = (".csv", ".tsv")
JSON_FILES = (".json", ".jsonl", ".ndjson")
PARQUET = ".parquet"
SKIP_REMEDY = "correct the line, or skip broken lines with --skip-invalid (skip_invalid: true)"
BROKEN_LINE = "broken line"

Fields = Mapping[str, object]


class TraceRecord(NamedTuple):
    """One record of a trace file.

    Attributes:
        line: line, from 1, at which the object that was decoded at once ends.
        path: keys of the lists that contain the record, outermost first; empty for a record of the top level.
        fields: its values by key, without the lists of other records.
        parent: fields of the record that contains it (if that is large, only the fields before this record); empty at
            the top level.
    """

    line: int
    path: tuple[str, ...]
    fields: dict[str, object]
    parent: Fields


class _FaultError(Exception):
    """A fault in a JSON text, at a position of the buffer."""

    def __init__(self, said: str, at: int) -> None:
        super().__init__(said)
        self.said, self.at = said, at


def file_kind(path: Path) -> str:
    """Return the suffix of a file in lower case, without ``.gz``."""
    return (path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix).lower()


def read_trace_records(path: Path, skipped: Counter[str] | None = None) -> Iterator[TraceRecord]:
    """Return an iterator over the records of a trace file.

    Args:
        path: a .json, .jsonl, .ndjson, .csv or .tsv file, optionally gzipped.
        skipped: counts broken lines, which are then skipped; None to raise an error.

    Raises:
        UsageError: the suffix is unknown.
        NotFoundError: the file is missing or unreadable.
        DataError: the file is not UTF-8, not valid JSON or CSV, or a value is too large; the error names the line.
    """
    kind = file_kind(path)
    if kind in TABLES:
        return _table_records(path, "\t" if kind == ".tsv" else ",", skipped)
    if kind in JSON_FILES:
        return _JsonStream(path).records(skipped)
    if kind == PARQUET:
        remedy = "convert it to JSON lines, for example with DataFrame.to_json(orient='records', lines=True)"
        raise UsageError(f"{path}: Parquet files cannot be read", remedy=remedy)
    known = ", ".join((*JSON_FILES, *TABLES))
    raise UsageError(f"{path}: unknown trace format", remedy=f"use one of {known}, optionally gzipped")


def _table_records(path: Path, delimiter: str, skipped: Counter[str] | None) -> Iterator[TraceRecord]:
    rows = table_cells_of(path, delimiter)
    header = [name.strip() for name in next(rows, (1, list[str]()))[1]]
    for line, row in rows:
        if len(row) != len(header):
            said = f"{len(row)} columns, the header has {len(header)}"
            if skipped is None:
                raise DataError(said, where=path, line=line, remedy=SKIP_REMEDY)
            skipped[BROKEN_LINE] += 1
            continue
        cells: dict[str, object] = {name: cell for name, cell in zip(header, row, strict=True) if cell.strip()}
        yield TraceRecord(line, (), cells, {})


class _JsonStream:
    """Reads the JSON values of one file, with a buffer of decoded text.

    `_at` is the position of the reader in the buffer, and `_line` is its line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._blocks = _text_blocks(path)
        self._text, self._at, self._line, self._gone = "", 0, 1, 0
        self._ended, self._broken = False, False

    def records(self, skipped: Counter[str] | None) -> Iterator[TraceRecord]:
        """Yield the records; see `read_trace_records`."""
        lines = file_kind(self._path) != JSON_FILES[0]
        while self._peek():
            line = self._line
            try:
                yield from self._top_level()
                lines = lines or self._line == line
            except _FaultError as fault:
                at = self._line + self._text.count("\n", self._at, fault.at)
                at = line if lines and line == self._line else at  # a truncated line is noticed only in the next one
                if skipped is None or at != line:
                    raise self._error(fault, at, SKIP_REMEDY if at == line else "correct the file") from fault
                skipped[BROKEN_LINE] += 1
                self._skip_line()

    def _top_level(self) -> Iterator[TraceRecord]:
        char = self._peek()
        if char == "[":
            yield from self._array((), {})
        elif char == "{":
            yield from self._element((), {})
        else:
            raise _FaultError("not a JSON object or a list of objects", self._at)

    def _element(self, path: tuple[str, ...], parent: Fields) -> Iterator[TraceRecord]:
        """Yield the records of the object at the reader's position."""
        found = self._decode(LOOKAHEAD)
        if found is None:
            yield from self._object(path, parent)
            return
        start, (value, end) = self._at, found
        if not isinstance(value, dict):
            raise _FaultError("not a JSON object", start)
        self._move(end)
        yield from self._split(path, value, parent, start)

    def _split(
        self, path: tuple[str, ...], value: dict[str, object], parent: Fields, start: int
    ) -> Iterator[TraceRecord]:
        """Yield the records of a decoded object, inner records first."""
        if len(path) > MAX_JSON_DEPTH:
            raise _FaultError(TOO_DEEP, start)
        own: dict[str, object] = {}
        for key, inner in value.items():
            entries = [inner] if key in WRAPPERS else inner if key in CONTAINERS else None
            if not isinstance(entries, list) or not any(isinstance(entry, dict) for entry in entries):
                own[key] = inner
                continue
            for entry in entries:
                if isinstance(entry, dict):
                    yield from self._split((*path, key), entry, value, start)
        yield TraceRecord(self._line, path, own, parent)

    def _object(self, path: tuple[str, ...], parent: Fields) -> Iterator[TraceRecord]:
        """Yield the records of an object that is too large to be decoded at once."""
        own: dict[str, object] = {}
        keys = set[str]()
        self._take("{")
        while self._peek() != "}":
            key = self._value()
            if not isinstance(key, str):
                raise _FaultError("a key is not a string", self._at)
            if key in keys:
                raise _FaultError(f"{shorten(key, MAX_KEY_CHARS)!r} occurs twice in one object", self._at)
            keys.add(key)
            self._take(":")
            opening = self._peek()
            if key in CONTAINERS and opening == "[":
                yield from self._array((*path, key), own)
            elif key in WRAPPERS and opening == "{":
                yield from self._element((*path, key), own)
            else:
                own[key] = self._value()
            if self._peek() != "}":
                self._take(",")
        self._take("}")
        yield TraceRecord(self._line, path, own, parent)

    def _array(self, path: tuple[str, ...], parent: Fields) -> Iterator[TraceRecord]:
        """Yield the records of a list; elements of an inner list that are not objects are skipped."""
        self._take("[")
        while self._peek() != "]":
            if self._peek() == "{":
                yield from self._element(path, parent)
            elif path:
                self._value()
            else:
                raise _FaultError("an element of the list is not a JSON object", self._at)
            if self._peek() != "]":
                self._take(",")
        self._take("]")

    def _value(self) -> object:
        """Return the value at the reader's position, and move behind it."""
        self._peek()
        wanted = LOOKAHEAD
        while (found := self._decode(wanted)) is None:
            if wanted >= MAX_VALUE_CHARS:
                raise _FaultError(f"a value has more than {MAX_VALUE_CHARS:,} characters", self._at)
            wanted *= 4
        self._move(found[1])
        return found[0]

    def _decode(self, wanted: int) -> tuple[object, int] | None:
        """Return the value at the reader's position and its end, or None if it is longer than the buffer."""
        self._fill(wanted)
        length = len(self._text)
        try:
            value, end = UNIQUE.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            cut = error.msg.startswith("Unterminated string") or error.pos >= length - ESCAPE_CHARS
            if cut and not self._ended:
                return None
            raise _FaultError(error.msg, error.pos) from error
        except RecursionError as error:
            raise _FaultError(TOO_DEEP, self._at) from error
        except DuplicateFieldError as error:
            raise _FaultError(str(error), _duplicate_key(self._text, self._at)) from error
        except ValueError as error:
            raise _FaultError(str(error), self._at) from error
        if end == length and not self._ended and self._text[end - 1] not in '}]"':
            return None  # a number may continue
        if self._broken and not _is_text(self._text[self._at : end]):
            raise _FaultError("not UTF-8", self._at)
        return value, end

    def _peek(self) -> str:
        """Move to the next character that is not white space, and return it; empty at the end of the file."""
        while True:
            match = SPACES.match(self._text, self._at)
            self._move(self._at if match is None else match.end())
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._fill(1)

    def _take(self, char: str) -> None:
        found = self._peek()
        if found != char:
            said = "the file ends inside a JSON document" if not found else f"Expecting {char!r}, not {found!r}"
            raise _FaultError(said, self._at)
        self._move(self._at + 1)

    def _move(self, end: int) -> None:
        self._line += self._text.count("\n", self._at, end)
        self._at = end

    def _fill(self, wanted: int) -> None:
        """Read until at least `wanted` characters follow the reader's position, or the file ends."""
        if self._ended or len(self._text) - self._at >= wanted:
            return
        parts, held = [self._text[self._at :]], len(self._text) - self._at
        while held < wanted and not self._ended:
            block = next(self._blocks, None)
            self._ended = block is None
            if block is not None:
                parts.append(block)
                held += len(block)
                self._broken = self._broken or not _is_text(block)
        self._gone += self._at
        self._text, self._at = "".join(parts), 0

    def _skip_line(self) -> None:
        while (end := self._text.find("\n", self._at)) < 0 and not self._ended:
            self._move(len(self._text))
            self._fill(1)
        self._move(len(self._text) if end < 0 else end)

    def _error(self, fault: _FaultError, line: int, remedy: str) -> DataError:
        if fault.said == "not UTF-8":
            return DataError(fault.said, where=self._path, line=line, remedy="convert the file to UTF-8")
        said = f"not valid JSON ({fault.said}, character {self._gone + fault.at + 1:,} of the file)"
        return DataError(said, where=self._path, line=line, remedy=remedy)


def _duplicate_key(text: str, start: int) -> int:
    """Return the position of the first key that its object has twice, from `start`; `start` if there is none."""
    keys: list[set[str]] = []
    for match in TOKENS.finditer(text, start):
        bracket, key = match["bracket"], match["key"]
        if bracket is not None and bracket in "{[":
            keys.append(set())
        elif bracket is not None:
            keys = keys[:-1]
        elif key is not None and keys:
            name = str(json.loads(key, strict=False))
            if name in keys[-1]:
                return match.start()
            keys[-1].add(name)
        if not keys:
            break
    return start


def _is_text(text: str) -> bool:
    """Return whether a text has no lone surrogate; `_text_blocks` decodes a byte that is not UTF-8 as one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text_blocks(path: Path) -> Iterator[str]:
    """Yield the text of a file in blocks. A byte that is not UTF-8 becomes a lone surrogate."""
    rest, first = b"", True
    for block in read_blocks(path):
        data = rest + block
        end = _whole_characters(data)
        text, rest = data[:end].decode("utf-8", "surrogateescape"), data[end:]
        yield text.removeprefix("\ufeff") if first else text
        first = False
    if rest:
        yield rest.decode("utf-8", "surrogateescape")


def _whole_characters(data: bytes) -> int:
    """Return the number of bytes without an incomplete character at the end of the data."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if back < length else len(data)
    return len(data)
