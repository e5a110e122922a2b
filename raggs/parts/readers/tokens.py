"""White-space columns of large files, a chunk of bytes at a time and without a Python object a line.

Only what is sure is taken: plain ASCII, the same number of columns in each line, no comment. At the first oddity
`OddError` is raised, and the caller reads the file line by line instead, which either names the fault or knows how to
read it. So a fast way and a slow one give the same columns, and an error always has its line.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from raggs.base.arrays import Buffer, ByteTexts, Floats, Ints, Keys
from raggs.base.files import FREE, RATIO, regular_file
from raggs.metrics.columns import WORD, IdColumn

CHUNK = 1 << 22  # bytes; its arrays stay in the processor's cache
QUERY, DOC = 0, 2  # columns, in qrels as in runs
WIDEST = 256  # bytes of an id or number; wider ones are odd
EXACT = 2**53  # integers up to here, divided by an exact power of ten, give the nearest double (Clinger 1990)
DIGITS = 18  # more may overflow

TENS: Floats = np.array([float(10**power) for power in range(DIGITS + 3)])  # exact; a vectorised power need not be


N = TypeVar("N", np.int64, np.float64)


class OddError(Exception):
    """The fast way is not sure."""


class Table(NamedTuple, Generic[N]):
    """The rows of a file: its queries in the order of their first sight; each row's query, passage and number.

    `rank`: of each row; empty if it was not asked for, NaN if a rank of the same chunk is no number.
    """

    known: list[bytes]
    query: Ints
    docs: IdColumn
    number: NDArray[N]
    rank: Floats


def read_table(
    path: Path,
    columns: int,
    place: int,
    parse: Callable[[ByteTexts], NDArray[N]],
    size: int = CHUNK,
    rank: int | None = None,
) -> Table[N]:
    """A file of `columns` columns (or a ``.gz`` of one), read `size` bytes at a time.

    Its numbers stand in column `place`, its ranks in column `rank`.

    Raises:
        OddError: it is odd, holds nothing, or is an archive that swells beyond measure.
        DataError: it is no file.
        OSError, EOFError, zlib.error: it cannot be read.
    """
    known: dict[bytes, int] = {}
    queries, docs, found, ranks = [], [], [], []
    packed = path.suffix == ".gz"
    left = max(FREE, RATIO * regular_file(path).stat().st_size) if packed else math.inf
    with gzip.open(path, "rb") if packed else regular_file(path).open("rb") as file:
        for chunk in chunks(file, size):
            left -= len(chunk)
            if left < 0:
                raise OddError
            buffer, starts, ends = tokens(chunk, columns)
            queries.append(numbered(ids(buffer, starts[:, QUERY], ends[:, QUERY]), known))
            docs.append(ids(buffer, starts[:, DOC], ends[:, DOC]))
            found.append(parse(ids(buffer, starts[:, place], ends[:, place])))
            ranks.append(np.empty(0) if rank is None else _ranks(ids(buffer, starts[:, rank], ends[:, rank])))
    if not queries:
        raise OddError
    return Table(list(known), np.concatenate(queries), IdColumn(docs), np.concatenate(found), np.concatenate(ranks))


def chunks(file: BinaryIO | gzip.GzipFile, size: int) -> Iterator[bytes]:
    """The file in chunks of whole lines, of about `size` bytes each; it is best when their arrays fit into a cache."""
    rest = b""
    while block := file.read(size):
        cut = block.rfind(b"\n") + 1
        if not cut:
            rest += block
            if len(rest) > CHUNK:  # no line of ids is as long
                raise OddError
            continue
        yield rest + block[:cut]
        rest = block[cut:]
    if rest.strip():
        yield rest + b"\n"


def tokens(chunk: bytes, columns: int) -> tuple[Buffer, Ints, Ints]:
    """The bytes, and where each column begins and ends: two arrays of shape (lines, columns)."""
    if not chunk.isascii():
        raise OddError
    buffer = np.frombuffer(chunk + b"\n" * WIDEST, dtype=np.uint8)
    text = buffer[: len(chunk)]
    starts, ends = _tight(text, columns) or _loose(text, columns)
    if (text[starts[:, 0]] == ord("#")).any():  # a comment
        raise OddError
    return buffer, starts, ends


def _tight(text: Buffer, columns: int) -> tuple[Ints, Ints] | None:
    """Where columns begin and end, where one blank or tab stands between two; None where it does not."""
    ends = np.flatnonzero(text <= ord(" "))
    lines, more = divmod(len(ends), columns)
    signs = text[ends]
    blanks = np.count_nonzero(signs == ord(" ")) + np.count_nonzero(signs == ord("\t"))
    if more or blanks != len(ends) - lines or (signs[columns - 1 :: columns] != ord("\n")).any():
        return None
    starts = np.empty_like(ends)
    starts[:1] = 0
    np.add(ends[:-1], 1, out=starts[1:])
    if (starts == ends).any():
        return None
    return starts.reshape(-1, columns), ends.reshape(-1, columns)


def _loose(text: Buffer, columns: int) -> tuple[Ints, Ints]:
    """Where columns begin and end, whatever white space stands between them.

    Raises:
        OddError: a line has other columns, or there is another control character.
    """
    lines = np.flatnonzero(text == ord("\n"))
    usual = len(lines) + np.count_nonzero(text == ord("\t")) + np.count_nonzero(text == ord("\r"))
    if usual != np.count_nonzero(text < ord(" ")):  # another control character
        raise OddError
    ink = text > ord(" ")
    turns = ink.copy()
    turns[1:] ^= ink[:-1]
    edges = np.flatnonzero(turns)
    if len(edges) != 2 * columns * len(lines):
        raise OddError
    table = edges.reshape(-1, 2 * columns)
    starts, ends = table[:, 0::2], table[:, 1::2]
    if (ends[:, -1] > lines).any() or (starts[1:, 0] < lines[:-1]).any():
        raise OddError
    return starts, ends


def ids(buffer: Buffer, starts: Ints, ends: Ints) -> ByteTexts:
    """The texts between `starts` and `ends`, padded with NUL to a multiple of a word."""
    lengths = ends - starts
    width = -(-int(lengths.max()) // WORD) * WORD
    if width > WIDEST:
        raise OddError
    every: ByteTexts = np.ndarray(len(buffer) - width + 1, dtype=f"S{width}", buffer=buffer, strides=(1,))
    taken = every[starts]
    words = taken.view(np.uint64).reshape(len(taken), width // WORD)
    words &= _masks(width)[lengths]
    return taken


def _masks(width: int) -> Keys:
    """Row n keeps the first n bytes of a text of `width` bytes."""
    kept = np.tri(width + 1, width, -1, dtype=np.uint8) * np.uint8(255)
    return kept.view(np.uint64)


def numbered(ids: ByteTexts, numbers: dict[bytes, int]) -> Ints:
    """A number for each id, new ones in the order of their first sight; quick where equal ids stand together."""
    changed = np.ones(len(ids), dtype=bool)
    words = ids.view(np.uint64).reshape(len(ids), -1)
    changed[1:] = (words[1:] != words[:-1]).any(axis=1)
    firsts = np.flatnonzero(changed)
    seen = [numbers.setdefault(name, len(numbers)) for name in ids[firsts].tolist()]
    return np.repeat(np.array(seen, dtype=np.int64), np.diff(np.append(firsts, len(ids))))


def numbers(texts: ByteTexts) -> Floats:
    """Decimal texts as the nearest doubles."""
    columns = np.ascontiguousarray(texts.view(np.uint8).reshape(len(texts), -1).T)
    value = np.zeros(len(texts), dtype=np.int64)
    digits, decimals, dots = (np.zeros(len(texts), dtype=np.int8) for _ in range(3))
    good = np.ones(len(texts), dtype=bool)
    for place, column in enumerate(columns):
        if not column.any():
            break
        figure = column - np.uint8(ord("0"))  # wraps around below "0", so one comparison is enough
        digit, dot = figure < 10, column == ord(".")
        np.copyto(value, value * 10 + figure, where=digit)
        digits += digit
        dots += dot
        decimals += digit & (dots > 0)
        good &= digit | dot | (column == 0)
        if place == 0:
            good |= (column == ord("-")) | (column == ord("+"))
        elif place == DIGITS + 1:
            good &= (columns[place + 1 :] == 0).all(axis=0)
            break
    good &= (digits > 0) & (digits <= DIGITS) & (dots <= 1) & (value <= EXACT)
    found = np.where(columns[0] == ord("-"), -1.0, 1.0) * value / TENS[decimals]
    if not good.all():
        found[~good] = _parsed(texts[~good])
    return found


def _ranks(texts: ByteTexts) -> Floats:
    try:
        return numbers(texts)
    except OddError:
        return np.full(len(texts), np.nan)


def _parsed(texts: ByteTexts) -> Floats:
    try:
        found = texts.astype(np.float64)
    except ValueError as error:
        raise OddError from error
    if not np.isfinite(found).all() or any(b"_" in text for text in texts.tolist()):
        raise OddError
    return found
