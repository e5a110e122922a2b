"""JSON lines in and out, with the place of every fault.

Writing is by whole files (see `raggs.atomic`). Reading checks each line: UTF-8, JSON, then the record's model;
whatever is wrong is said with file and line.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from pydantic import BaseModel, ValidationError

from raggs.atomic import atomic_writer
from raggs.errors import DataError, NotFoundError

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Written:
    """What a finished file holds: sha256, lines, bytes, and the CRC-32 of each line (4 bytes, little-endian)."""

    sha256: str
    rows: int
    size: int
    line_sums: bytes


def dump_line(record: BaseModel) -> bytes:
    """One record as one line: fields in the model's order, defaults included, UTF-8."""
    return record.model_dump_json().encode() + b"\n"


def write_records(path: Path, records: Iterable[BaseModel]) -> Written:
    """Write all records to `path`, whole or not at all, in one pass and constant memory."""
    digest, rows, size, sums = hashlib.sha256(), 0, 0, bytearray()
    with atomic_writer(path) as file:
        for record in records:
            line = dump_line(record)
            file.write(line)
            digest.update(line)
            sums += zlib.crc32(line).to_bytes(4, "little")
            rows += 1
            size += len(line)
    return Written(digest.hexdigest(), rows, size, bytes(sums))


def raw_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The non-blank lines of a UTF-8 text file (or a ``.gz`` of one) with their numbers, from 1.

    Raises:
        NotFoundError: the file is missing or may not be read.
        DataError: a line is not UTF-8.
    """
    try:
        file = gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # noqa: SIM115 - closed below
    except FileNotFoundError as error:
        raise NotFoundError("no such file", where=path, remedy="check the path") from error
    except OSError as error:
        raise NotFoundError(f"cannot be read ({error.strerror})", where=path, remedy="check its permissions") from error
    with file:
        for number, line in enumerate(_whole(file, path), start=1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"not UTF-8 (byte {error.start + 1} of the line)",
                    where=path,
                    line=number,
                    remedy="convert the file to UTF-8",
                ) from error
            if text.strip():
                yield number, text


def _whole(file: BinaryIO | gzip.GzipFile, path: Path) -> Iterator[bytes]:
    try:
        yield from file
    except (OSError, EOFError, zlib.error) as error:
        raise NotFoundError(f"cannot be read ({error})", where=path, remedy="check the file") from error


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file with their line numbers.

    Raises:
        NotFoundError, DataError: as `raw_lines`, and where a line is not a JSON object.
    """
    for number, text in raw_lines(path):
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except ValueError as error:
            raise DataError(
                f"not valid JSON ({error})", where=path, line=number, remedy="each line is one JSON object"
            ) from error
        if not isinstance(value, dict):
            raise DataError("not a JSON object", where=path, line=number, remedy="each line is one JSON object")
        yield number, value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def read_records(path: Path, model: type[M]) -> Iterator[M]:
    """The records of an artifact, validated line by line.

    Raises:
        NotFoundError, DataError: as `raw_lines`, and where a line does not fit `model`.
    """
    for number, text in raw_lines(path):
        try:
            yield model.model_validate_json(text)
        except ValidationError as error:
            raise DataError(explain(error), where=path, line=number, remedy=f"expected a {model.__name__}") from error


def explain(error: ValidationError) -> str:
    """The first fault of a validation, in one phrase."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    message = first["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def read_torn(path: Path, model: type[M]) -> Iterator[M]:
    """The records of an append-only file; a torn last line is dropped, a fault before it is an error.

    Raises:
        DataError: names file and line.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield model.model_validate_json(line)
            except ValidationError as error:
                raise DataError(
                    explain(error), where=path, line=number, remedy="delete the file to start this stage afresh"
                ) from error
