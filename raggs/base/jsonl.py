"""Read and write JSON lines, with the position of every error.

Files are written completely (see `raggs.base.files`), or by appending single flushed lines to a journal. Reading checks
each line: UTF-8, JSON, then the record's model. Errors name file and line. Files of users (corpora, queries,
answers) are read by jsonlines. All lines share one strict decoder, because `json.loads` with the same hooks creates a
decoder per line, which is slower.
Artifacts are parsed by pydantic, which validates many records in one step. Compared to one call per line, this takes 50
to 90% of the time.

If a batch has a faulty line, `all_records` returns None, and its callers read the batch line by line.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from raggs.base.errors import DataError
from raggs.base.files import MAX_LINE_BYTES, atomic_writer, cut_torn_line, read_lines, regular_file
from raggs.base.text import shorten

NumberedLine = tuple[int, bytes]
MAX_BATCH_LINES, MAX_BATCH_BYTES = 512, 1 << 20  # maximum size of a batch


def batches(lines: Iterable[bytes]) -> Iterator[list[NumberedLine]]:
    """Yield numbered lines (from 1) in batches, without blank lines. The first batches are small, for quick
    previews.
    """
    batch, wanted, size = list[NumberedLine](), 1, 0
    for number, line in enumerate(lines, start=1):
        if line.strip():
            batch.append((number, line))
            size += len(line)
            if len(batch) >= wanted or size >= MAX_BATCH_BYTES:
                yield batch
                batch, wanted, size = [], min(2 * wanted, MAX_BATCH_LINES), 0
    if batch:
        yield batch


def all_records(lines: Sequence[bytes], model: type[M]) -> list[M] | None:
    """Return a record for each line, or None if a line is invalid or contains several records."""
    try:
        found = _lists(model).validate_json(b"[" + b",".join(lines) + b"]")
    except ValidationError:
        return None
    return found if len(found) == len(lines) else None


@cache
def _lists(model: type[M]) -> TypeAdapter[list[M]]:
    form: Any = list.__class_getitem__(model)  # type checkers do not accept list[model] here
    return TypeAdapter(form)


M = TypeVar("M", bound=BaseModel)
# maximum nesting of lists and objects; beyond about 200 levels, records could be written but not read again
MAX_JSON_DEPTH = 64
MAX_NUMBER_CHARS = 100  # maximum length of an integer
TOO_DEEP = f"nested more than {MAX_JSON_DEPTH} levels deep"


@dataclass(frozen=True)
class WrittenFile:
    """Summary of a written file: sha256, lines, bytes, and the CRC-32 of each line (4 bytes, little-endian)."""

    sha256: str
    rows: int
    size: int
    line_sums: bytes


def dump_line(record: BaseModel, *, given: bool = False) -> bytes:
    """Return one record as one line: fields in the model's order, including defaults, UTF-8.

    Args:
        record: the record.
        given: whether to omit defaults that were not set explicitly. For a record that was read from a file, this
            restores the original line, even if it lacks fields that are newer than the line.
    """
    return record.model_dump_json(exclude_unset=given).encode() + b"\n"


class _Lines:
    """Writer that counts and hashes lines."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._digest, self._sums = hashlib.sha256(), bytearray()
        self._rows = self._size = 0

    def add(self, record: BaseModel) -> None:
        line = dump_line(record)
        self._file.write(line)
        self._digest.update(line)
        self._sums += zlib.crc32(line).to_bytes(4, "little")
        self._rows += 1
        self._size += len(line)

    def written(self) -> WrittenFile:
        return WrittenFile(self._digest.hexdigest(), self._rows, self._size, bytes(self._sums))


def write_records(path: Path, records: Iterable[BaseModel]) -> WrittenFile:
    """Write all records to `path`, completely or not at all, in one pass and constant memory."""
    with atomic_writer(path) as file:
        lines = _Lines(file)
        for record in records:
            lines.add(record)
    return lines.written()


def write_routed(places: Mapping[type[M], Path], records: Iterable[M], *, durable: bool = True) -> list[WrittenFile]:
    """Write each record to the file of its class, in one pass and constant memory.

    Each file is written completely or not at all. No file appears before all records are written.

    Returns:
        The summary of each file, in the order of `places`.
    """
    with ExitStack() as stack:
        files = {model: stack.enter_context(atomic_writer(path, durable=durable)) for model, path in places.items()}
        routes = {model: _Lines(file) for model, file in files.items()}
        for record in records:
            routes[type(record)].add(record)
    return [lines.written() for lines in routes.values()]


def raw_lines(path: Path, most: int = MAX_LINE_BYTES) -> Iterator[tuple[int, str]]:
    """Return the nonblank lines of a UTF-8 text file (or a ``.gz`` file) with their numbers, from 1.

    Args:
        path: the file.
        most: maximum bytes of a line.

    Raises:
        NotFoundError, DataError: see `read_lines`; or a line is not UTF-8.
    """
    return _decode_nonblank(path, enumerate(read_lines(path, most), start=1))


def text_lines(path: Path, most: int = MAX_LINE_BYTES) -> Iterator[tuple[int, str]]:
    """Return all lines of a text file, including blank ones, which may be part of a quoted cell.

    Raises:
        NotFoundError, DataError: see `raw_lines`.
    """
    return _decode_lines(path, enumerate(read_lines(path, most), start=1))


def _decode_nonblank(path: Path, lines: Iterable[NumberedLine]) -> Iterator[tuple[int, str]]:
    return ((number, text) for number, text in _decode_lines(path, lines) if text.strip())


def _decode_lines(path: Path, lines: Iterable[NumberedLine]) -> Iterator[tuple[int, str]]:
    for number, line in lines:
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            said = f"not UTF-8 (byte {error.start + 1} of the line)"
            raise DataError(said, where=path, line=number, remedy="convert the file to UTF-8") from error
        yield number, text


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON objects of a file with their line numbers.

    Raises:
        NotFoundError, DataError: see `raw_lines`; or a line is not a JSON object, or has a duplicate field.
    """
    import jsonlines  # imported lazily: not needed to read artifacts

    number = 0

    def texts() -> Iterator[str]:
        nonlocal number
        for number, text in raw_lines(path):  # noqa: B007 - yielded with each object
            yield text

    try:
        for value in jsonlines.Reader(texts(), loads=decode_unique).iter(type=dict):
            yield number, value
    except jsonlines.InvalidLineError as error:
        said = "not a JSON object" if error.__cause__ is None else f"not valid JSON ({error.__cause__})"
        raise DataError(said, where=path, line=number, remedy="write one JSON object per line") from error


def decode_unique(text: str | bytes) -> object:
    """Decode JSON from users; see `decode_json`. A duplicate field is an error, because only one value would count."""
    return decode_json(text, UNIQUE)


def decode_json(text: str | bytes, decoder: json.JSONDecoder | None = None) -> Any:
    """Return the value of an untrusted JSON text. Only finite numbers and a limited nesting depth are allowed.

    Raises:
        ValueError: the text is not JSON, is nested deeper than `MAX_JSON_DEPTH`, or contains a number that is too long
            or too large.
    """
    text = str(text)
    try:
        found = (decoder or DECODER).decode(text)
    except RecursionError as error:
        raise ValueError(TOO_DEEP) from error
    if text.count("[") + text.count("{") > MAX_JSON_DEPTH and _deeper(found, MAX_JSON_DEPTH):
        raise ValueError(TOO_DEEP)
    return found


def _deeper(value: object, levels: int) -> bool:
    """Return whether lists and objects are nested more than `levels` deep."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is not None and (levels == 0 or any(_deeper(entry, levels - 1) for entry in inner))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _int(text: str) -> int:
    if len(text) > MAX_NUMBER_CHARS:
        raise ValueError(f"a number of {len(text):,} characters")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{shorten(text, 20)} is too large for a number")
    return value


class DuplicateFieldError(ValueError):
    """An object has a field twice."""


def _unique_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DuplicateFieldError(f"{shorten(twice, 20)!r} occurs twice in one object")
    return found


# Created once: this dominates the cost of a short line.
DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_int, parse_float=_float)
UNIQUE = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_int=_int, parse_float=_float, object_pairs_hook=_unique_object
)


def mentions(path: Path, names: Iterable[str]) -> bool:
    """Return whether a file contains one of the names, without parsing it."""
    wanted = [name.encode() for name in names]
    longest, tail = max(map(len, wanted)), b""
    with path.open("rb") as file:
        while block := file.read(MAX_BATCH_BYTES):
            if any(each in tail + block for each in wanted):
                return True
            tail = block[-longest:]
    return False


def read_records(path: Path, model: type[M]) -> Iterator[M]:
    """Yield the records of an artifact, each line validated.

    Raises:
        NotFoundError, DataError: see `raw_lines`; or a line does not match `model`.
    """
    for batch in batches(read_lines(path)):
        found = all_records([line for _, line in batch], model)
        yield from _one_by_one(path, batch, model) if found is None else found


def _one_by_one(path: Path, lines: Iterable[NumberedLine], model: type[M]) -> Iterator[M]:
    for number, text in _decode_nonblank(path, lines):
        try:
            yield model.model_validate_json(text)
        except ValidationError as error:
            raise _misfit(error, model, path, number) from error


def _misfit(error: ValidationError, model: type[BaseModel], path: Path, line: int) -> DataError:
    """Return the error for a line that is not a record of the model, or has another version of the record format."""
    first = error.errors(include_url=False)[0]
    if first["loc"] == ("v",):
        message = f"format {first['input']} of a {model.__name__}, which this version of raggs does not read"
        return DataError(message, where=path, line=line, remedy="write the file again with the command that created it")
    return DataError(first_fault(error), where=path, line=line, remedy=f"expected a {model.__name__}")


def first_fault(error: ValidationError) -> str:
    """Return the first error of a validation as one phrase."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    message = first["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


class Appender:
    """Append-only file of records. Each line is passed to the operating system before `append` returns.

    A kill during a write leaves at most one incomplete last line. `read_torn` ignores this line. It is removed when an
    `Appender` opens the file, because it would corrupt the next line. Lines are not synced one by one: a power cut may
    lose the lines since the last `sync`.
    """

    def __init__(self, path: Path) -> None:
        if path.exists():
            cut_torn_line(path)
        self._file = path.open("ab")

    def append(self, record: BaseModel) -> None:
        """Write one line and pass it to the operating system."""
        self.extend([record])

    def extend(self, records: Iterable[BaseModel]) -> None:
        """Write several lines and pass them to the operating system together."""
        self._file.write(b"".join(map(dump_line, records)))
        self._file.flush()

    def sync(self) -> None:
        """Flush all lines to disk, so that they survive a power cut."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file. Closing it again has no effect."""
        self._file.close()

    def __enter__(self) -> Appender:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_torn(path: Path, model: type[M], remedy: str) -> Iterator[M]:
    """Yield the records of an append-only file; nothing if the file is missing. An incomplete last line is ignored.

    Raises:
        DataError: a complete line is invalid; the error contains `remedy`.
    """
    return (record for record, _ in read_on(path, model, remedy))


def read_on(path: Path, model: type[M], remedy: str, byte: int = 0) -> Iterator[tuple[M, int]]:
    """Yield the records from byte `byte` on, each with the byte at which its line ends; see `read_torn`.

    Raises:
        DataError: see `read_torn`. If the file is not read from its start, the error names no line.
    """
    if not path.exists():
        return
    whole = byte == 0
    with regular_file(path).open("rb") as file:
        file.seek(byte)
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            byte += len(line)
            try:
                yield model.model_validate_json(line), byte
            except ValidationError as error:
                where = number if whole else None
                raise DataError(first_fault(error), where=path, line=where, remedy=remedy) from error
