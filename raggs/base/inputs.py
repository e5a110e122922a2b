"""Files of users, opened with care: what is no file is refused, and what has no end is not read to it.

A FIFO would wait for ever, a device never ends, and a small archive can hold more than any disk: each is a sentence
here. Whoever reads a file of a user asks `regular_file` first, or reads by `read_whole` or `read_lines`, which do.
Nothing is interpreted here.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path

from raggs.base.errors import DataError, NotFoundError, ProviderError, RaggsError

MOST_LINE = 1 << 26  # bytes of one line; a passage is a few thousand
MOST_WHOLE = 1 << 30  # bytes of a file that is read in one piece
FREE = 1 << 24  # bytes that an archive may unpack to, however small it is
RATIO = 200  # beyond that, how many times its own size; text packs 3 to 30 times, an archive made to harm 1,000 times
FREE_LINES = 1 << 19  # as FREE, of lines, each of which takes its time however short it is
LINES = 8  # as RATIO, for each byte of an archive; text has one in 3 to 50 bytes
HANDLES = (errno.EMFILE, errno.ENFILE)
PROBED = 8  # files that a library opens at once
MORE_HANDLES = "raise the limit, for example: ulimit -n 1024"
KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def regular_file(path: Path) -> Path:
    """`path`, unless what stands there is neither a file nor a folder.

    Where nothing is, or a folder, whoever opens the path says so better.

    Raises:
        DataError: a pipe, a device or a socket.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return path
    for is_kind, name in KINDS:
        if is_kind(mode):
            raise DataError(f"is {name}, not a file", where=path, remedy="write what it gives into a file first")
    return path


def near(path: Path) -> Path:
    """`path` from the working directory on if it is below it, else as it is."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def unreadable(error: Exception, path: Path, remedy: str = "check the path and its permissions") -> RaggsError:
    """Why a file cannot be opened or read, as one sentence; what this process lacks is not the file's fault."""
    if isinstance(error, FileNotFoundError):
        return NotFoundError("no such file", where=path, remedy=remedy)
    if isinstance(error, OSError) and error.errno in HANDLES:
        return no_handles(path)
    reason = getattr(error, "strerror", None) or error
    return NotFoundError(f"cannot be read ({reason})", where=path, remedy=remedy)


def no_handles(path: Path) -> ProviderError:
    """This process may open no more files; nothing is wrong with `path`."""
    return ProviderError("cannot be opened: too many files are open", where=path, remedy=MORE_HANDLES)


def lacks_handles() -> bool:
    """Whether this process can hardly open another file, which libraries tell in many ways, and often wrongly."""
    opened: list[int] = []
    try:
        opened.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(PROBED))
    except OSError as error:
        return error.errno in HANDLES
    finally:
        for handle in opened:
            os.close(handle)
    return False


def read_whole(path: Path, most: int = MOST_WHOLE) -> bytes:
    """The bytes of a file.

    Raises:
        NotFoundError: it is missing or unreadable.
        DataError: it is no file, or holds more than `most` bytes.
    """
    try:
        with regular_file(path).open("rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise unreadable(error, path) from error
    if len(data) > most:
        raise DataError(f"holds more than {most:,} bytes", where=path, remedy="split it, or make it smaller")
    return data


def read_text(path: Path) -> str:
    """A file as text, for formats that are not read line by line. Line ends are not translated.

    Raises:
        NotFoundError: it is missing or unreadable.
        DataError: it is no file, or not UTF-8.
    """
    try:
        return read_whole(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DataError("not UTF-8", where=path, line=line, remedy="save the file as UTF-8") from error


def read_lines(path: Path, most: int = MOST_LINE) -> Iterator[bytes]:
    """The lines of a file (or a ``.gz`` of one), with their ends.

    Raises:
        NotFoundError: it is missing or unreadable.
        DataError: it is no file, a line has more than `most` bytes, or an archive unpacks out of all proportion.
    """
    packed = path.suffix == ".gz"
    try:
        size = regular_file(path).stat().st_size
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            total, line = 0, 0
            bound = max(FREE, RATIO * size) if packed else None
            lines = max(FREE_LINES, LINES * size)
            while text := file.readline((most if bound is None else min(most, bound - total)) + 1):
                line += 1
                total += len(text)
                if len(text) > most:
                    said = f"a line of more than {most:,} bytes"
                    raise DataError(said, where=path, line=line, remedy="break it into lines")
                if bound is not None and (total > bound or line > lines):
                    more = f"{RATIO} times its size" if total > bound else f"{LINES} lines for each of its bytes"
                    said = f"unpacks to more than {more}"
                    raise DataError(said, where=path, line=line, remedy="unpack it yourself, if it is what you meant")
                yield text
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise unreadable(error, path) from error


def table_rows(text: str, path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV text that hold more than white space, each with the number of its first line, from 1.

    A row may span lines (a quoted line break), and a cell may be as long as the text.

    Raises:
        DataError: it is not valid CSV; names `path` and the line.
    """
    import csv  # late: not every run reads a table

    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line, usual = 1, csv.field_size_limit()  # the limit is everybody's, and others rely on it
    csv.field_size_limit(max(usual, len(text)))
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"not valid CSV ({error})", where=path, line=line, remedy="check the quotes") from error
    finally:
        csv.field_size_limit(usual)
