"""Write files completely or not at all, read users' files safely, and lock folders.

A write goes to a temporary file in the same folder, is flushed to disk, and is renamed to its target. The folder's
entry is flushed, too. After a kill, either the old or the new file exists. Each write costs one fsync of the file and
one of the folder, so atomic writes suit whole artifacts, not single lines. Files that are cheap to recompute are
written without fsync (`durable=False`).

`disk` converts every disk error to a `ProviderError` (exit code 6).

`hold_folder` allows only one process at a time in a folder. A second process gets an error immediately and does not
wait.

Reading a FIFO would block forever, a device never ends, and a small archive can unpack to more than a disk holds. Here,
each of these cases raises an error. Code that reads a user's file calls `regular_file` first, or uses `read_whole` or
`read_lines`, which call `regular_file`. This module does not interpret contents.
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

MAX_LINE_BYTES = 1 << 26  # maximum bytes of one line; a passage has a few thousand
MAX_FILE_BYTES = 1 << 30  # maximum bytes of a file that is read at once
MIN_UNPACK_LIMIT_BYTES = 1 << 24  # unpacked bytes that are allowed for every archive, even a small one
RATIO = 200  # maximum unpack ratio of larger archives; text compresses 3 to 30 times, a malicious archive 1,000 times
FREE_LINES = 1 << 19  # lines that are allowed for every archive; lines are limited because each costs time
READ_BLOCK_BYTES = 1 << 20
LINES = 8  # maximum lines per byte of a larger archive; text has one line in 3 to 50 bytes
HANDLES = (errno.EMFILE, errno.ENFILE)
PROBED = 8  # file handles that a library may need at once
MORE_HANDLES = "raise the limit, for example: ulimit -n 1024"
KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def regular_file(path: Path) -> Path:
    """Return `path` if it is a file or a folder, or if it does not exist.

    For a folder or a missing path, the code that opens it gives a better error.

    Raises:
        DataError: the path is a pipe, a device or a socket.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return path
    for is_kind, name in KINDS:
        if is_kind(mode):
            raise DataError(f"is {name}, not a file", where=path, remedy="write its output to a file first")
    return path


def relative_to_cwd(path: Path) -> Path:
    """Return `path` relative to the working directory if it is inside; otherwise return it unchanged."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def unreadable(error: Exception, path: Path, remedy: str = "check the path and its permissions") -> RaggsError:
    """Return the error for a file that cannot be opened or read. A lack of file handles has its own error, and a
    damaged archive has its own remedy.
    """
    if isinstance(error, FileNotFoundError):
        return NotFoundError("no such file", where=path, remedy=remedy)
    if isinstance(error, OSError) and error.errno in HANDLES:
        return no_handles(path)
    if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
        remedy = "the file is not a complete gzip archive: compress or download it again"
    reason = getattr(error, "strerror", None) or error
    return NotFoundError(f"cannot be read ({reason})", where=path, remedy=remedy)


def no_handles(path: Path) -> ProviderError:
    """Return the error for too many open files."""
    return ProviderError("cannot be opened: too many files are open", where=path, remedy=MORE_HANDLES)


def lacks_handles() -> bool:
    """Return whether this process has hardly any file handles left. Libraries report this in various, often misleading
    ways.
    """
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
    """Return the bytes of a file.

    Raises:
        NotFoundError: the file is missing or unreadable.
        DataError: the path is not a file, or the file has more than `most` bytes.
    """
    try:
        with regular_file(path).open("rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise unreadable(error, path) from error
    if len(data) > most:
        raise DataError(f"contains more than {most:,} bytes", where=path, remedy="split it, or make it smaller")
    return data


def read_text(path: Path) -> str:
    """Return a file as text, for formats that are not line-based. Line endings are kept.

    Raises:
        NotFoundError: the file is missing or unreadable.
        DataError: the path is not a file, or the file is not UTF-8.
    """
    try:
        return read_whole(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DataError("not UTF-8", where=path, line=line, remedy="save the file as UTF-8") from error


def read_lines(path: Path, most: int = MAX_LINE_BYTES) -> Iterator[bytes]:
    """Yield the lines of a file (or of a ``.gz`` file), with line endings.

    Raises:
        NotFoundError: the file is missing or unreadable.
        DataError: the path is not a file, a line has more than `most` bytes, or an archive unpacks to far too much
            data.
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
                    raise DataError(said, where=path, line=line, remedy="split it into lines")
                if bound is not None and (total > bound or line > lines):
                    more = f"{RATIO} times its size" if total > bound else f"{LINES} lines per byte"
                    said = f"unpacks to more than {more}"
                    raise DataError(said, where=path, line=line, remedy="if the file is correct, unpack it yourself")
                yield text
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise unreadable(error, path) from error


def read_blocks(path: Path, size: int = READ_BLOCK_BYTES) -> Iterator[bytes]:
    """Yield the content of a file (or of a ``.gz`` file) in blocks of at most `size` bytes.

    Raises:
        NotFoundError: the file is missing or unreadable.
        DataError: the path is not a file, or an archive unpacks to far too much data.
    """
    packed = path.suffix == ".gz"
    try:
        bound = max(MIN_UNPACK_LIMIT_BYTES, RATIO * regular_file(path).stat().st_size) if packed else None
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            total = 0
            while block := file.read(size):
                total += len(block)
                if bound is not None and total > bound:
                    said = f"unpacks to more than {RATIO} times its size"
                    raise DataError(said, where=path, remedy="if the file is correct, unpack it yourself")
                yield block
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise unreadable(error, path) from error


def table_rows(text: str, path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield the nonblank rows of a CSV text, each with the number of its first line, from 1.

    A row may span lines (a quoted line break), and a cell may have any length.

    Raises:
        DataError: the text is not valid CSV. The error names `path` and the line.
    """
    import csv  # imported lazily: not every run reads a table

    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line, usual = 1, csv.field_size_limit()  # the limit is global, and other code relies on it
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
DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)


def disk_fault(error: Exception, where: Path, remedy: str, said: str = "cannot be written") -> ProviderError:
    """Return the error for a failed disk operation.

    Args:
        error: the original error.
        where: the file or folder.
        remedy: the remedy, unless the disk is full or file handles are missing.
        said: the failed operation.
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
    """Convert every disk error in the block with `disk_fault`.

    Raises:
        ProviderError: an `OSError` in the block.
    """
    try:
        yield
    except OSError as error:
        raise disk_fault(error, where, remedy, said) from error


@contextmanager
def atomic_path(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Yield the path of a new file, which replaces `path` if the block succeeds and is deleted otherwise.

    Use it for libraries that open a file by path; `atomic_writer` opens the file itself.
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
    """Yield a binary file that replaces `path` if the block succeeds and is deleted otherwise."""
    with atomic_path(path, durable=durable) as temporary:
        # Not tempfile: only the owner could read its files, but teams share their runs.
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(handle, "wb") as file:
            yield file


def write_atomic(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace `path` by `data`, completely or not at all."""
    with atomic_writer(path, durable=durable) as file:
        file.write(data)


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts by file name into the folder given by ``--out``, created if missing, and return the paths of the
    files. Each file is written completely or not at all.

    Raises:
        ProviderError: the folder is not writable.
    """
    with disk(folder, "choose another --out"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_atomic(folder / name, text.encode())
    return [folder / name for name in texts]


def make_folder(path: Path) -> None:
    """Create a folder and its parents.

    Raises:
        ProviderError: the location is not writable.
    """
    with disk(path, "choose another workspace"):
        path.mkdir(parents=True, exist_ok=True)


def flush_file(file: Path) -> None:
    """Flush a file to disk, so that it survives a power cut."""
    handle = os.open(file, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Flush the entries of `folder` to disk; a no-op on Windows, where folders cannot be opened."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Delete temporary files that a killed process left in `folder`: those of file `name`, or all by default."""
    for path in folder.glob(f"{PREFIX}*"):
        if path.name.endswith(f"-{name}" if name else ""):
            path.unlink(missing_ok=True)


def cut_torn_line(path: Path) -> None:
    """Remove an incomplete last line, which a killed process may leave."""
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
    """Lock a folder, created if missing, by a lock file.

    Args:
        lock: the lock file.
        folder: the folder.
        who: message if another process has the lock: "another raggs run is using this directory".
        wait: remedy if another process has the lock.
        remedy: remedy for a disk error.

    Raises:
        BusyError: another process has the lock.
        ProviderError: the folder cannot be created or written.
    """
    # imported lazily: it installs hooks that slow down later imports and file operations
    from filelock import FileLock, Timeout

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


def hash_file(path: Path) -> str:
    """Return the sha256 of a file's bytes, read in blocks of 1 MiB.

    Raises:
        OSError: the file cannot be read.
        DataError: the path is a pipe, a device or a socket.
    """
    digest = hashlib.sha256()
    with regular_file(path).open("rb") as file:
        while block := file.read(READ_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
