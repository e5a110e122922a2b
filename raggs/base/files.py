"""Files appear whole or not at all.

A write goes to a temporary file in the same folder, is flushed to the disk, and is renamed over its target;
the folder's entry is flushed too. A kill at any moment leaves the old file or the new one. The price is one
fsync of the file and one of the folder for each write, so this is for whole artifacts, not for single lines. What a
power cut may take, since it costs nothing to make again, is written without (`durable=False`).

A disk that is full or refuses is the same error everywhere (`disk`): `ProviderError`, exit code 6.

One process at a time in a folder: whoever comes second is told at once, and waits for nobody.

Files of users, opened with care: what is no file is refused, and what has no end is not read to it.

A FIFO would wait for ever, a device never ends, and a small archive can hold more than any disk: each is a sentence
here. Whoever reads a file of a user asks `regular_file` first, or reads by `read_whole` or `read_lines`, which do.
Nothing is interpreted here.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import secrets
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from raggs.base.errors import BusyError, DataError, NotFoundError, ProviderError, RaggsError

MAX_LINE_BYTES = 1 << 26  # bytes of one line; a passage is a few thousand
MAX_FILE_BYTES = 1 << 30  # bytes of a file that is read in one piece
MIN_UNPACK_LIMIT_BYTES = 1 << 24  # bytes that an archive may unpack to, however small it is
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


def relative_to_cwd(path: Path) -> Path:
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


def read_whole(path: Path, most: int = MAX_FILE_BYTES) -> bytes:
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


def read_lines(path: Path, most: int = MAX_LINE_BYTES) -> Iterator[bytes]:
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
            bound = max(MIN_UNPACK_LIMIT_BYTES, RATIO * size) if packed else None
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


PREFIX = ".tmp-"
READ_BLOCK_BYTES = 1 << 16
DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)


def disk_fault(error: Exception, where: Path, remedy: str, said: str = "cannot be written") -> ProviderError:
    """What the disk refused, as one sentence.

    Args:
        where: the file or folder that cannot be used.
        remedy: what helps, unless the disk is full: then it is to free some space.
        said: what could not be done.
    """
    full = isinstance(error, OSError) and error.errno in DISK_FULL_ERRNOS
    if full:
        remedy = "free some space and run again"
    elif lacks_handles():
        remedy = MORE_HANDLES
    reason = getattr(error, "strerror", None) or error
    return ProviderError(f"{said} ({reason})", where=where, remedy=remedy)


@contextmanager
def disk(where: Path, remedy: str, said: str = "cannot be written") -> Iterator[None]:
    """Every fault of the disk in the block as `disk_fault`.

    Raises:
        ProviderError: an `OSError` in the block.
    """
    try:
        yield
    except OSError as error:
        raise disk_fault(error, where, remedy, said) from error


@contextmanager
def atomic_path(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """A path for a new file, which replaces `path` when the block ends well and vanishes when it does not.

    For libraries that open a file by its path; `atomic_writer` opens one itself.
    """
    temporary = path.with_name(f"{PREFIX}{secrets.token_hex(8)}-{path.name}")
    try:
        yield temporary
        if durable:
            flush_file(temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


@contextmanager
def atomic_writer(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """A binary file that replaces `path` when the block ends well and vanishes when it does not."""
    with atomic_path(path, durable=durable) as temporary:
        # By hand rather than by tempfile, whose files only their owner may read: a team shares its runs.
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(handle, "wb") as file:
            yield file


def write_atomic(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace `path` by `data`, whole or not at all."""
    with atomic_writer(path, durable=durable) as file:
        file.write(data)


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts by file name into a folder that the user named by ``--out``, made if missing; each appears whole.

    Raises:
        ProviderError: the folder cannot be written.
    """
    with disk(folder, "choose another --out"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_atomic(folder / name, text.encode())
    return [folder / name for name in texts]


def make_folder(path: Path) -> None:
    """Make a folder and its parents.

    Raises:
        ProviderError: the place cannot be written.
    """
    with disk(path, "choose another workspace"):
        path.mkdir(parents=True, exist_ok=True)


def flush_file(file: Path) -> None:
    """Make a file's bytes survive a power cut."""
    handle = os.open(file, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` survive a power cut; a no-op where folders cannot be opened (Windows)."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Delete temporary files that a killed process left in `folder`, of one target or of all."""
    for path in folder.glob(f"{PREFIX}*"):
        if path.name.endswith(f"-{name}" if name else ""):
            path.unlink(missing_ok=True)


def cut_torn_line(path: Path) -> None:
    """Cut off what stands after the last line break: what a kill left of a line."""
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - READ_BLOCK_BYTES)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        file.truncate(end)


@contextmanager
def hold_folder(lock: Path, folder: Path, *, who: str, wait: str, remedy: str) -> Iterator[None]:
    """Hold a folder, made if missing, by a file that is its lock.

    Args:
        who: that may hold it: "another raggs run is using this directory".
        wait: what to do then.
        remedy: what to do where the disk does not allow it.

    Raises:
        BusyError: another process holds it.
        ProviderError: it cannot be made or written.
    """
    from filelock import FileLock, Timeout  # late: from then on it listens to all that the process imports and opens

    with disk(folder, remedy):
        folder.mkdir(parents=True, exist_ok=True)
        found = FileLock(lock, timeout=0)
        try:
            found.acquire()
        except Timeout as error:
            raise BusyError(who, where=folder, remedy=wait) from error
    try:
        yield
    finally:
        found.release()


READ_BLOCK_BYTES = 1 << 20


def hash_file(path: Path) -> str:
    """sha256 of a file's bytes, read in blocks of 1 MiB.

    Raises:
        OSError: the file cannot be read.
        DataError: it is a pipe or a device, which never ends.
    """
    digest = hashlib.sha256()
    with regular_file(path).open("rb") as file:
        while block := file.read(READ_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
