"""Columns of ids: passages by their bytes, without a Python object for each.

Ids are UTF-8 bytes in NumPy arrays of fixed width, in chunks, so that one long id widens its own chunk alone. Byte
order is the order of code points, which is also the order in which trec_eval breaks ties. A key is a 64-bit hash of
the bytes; it does not depend on the width of the array that holds the id. Keys are drawn by a secret of the process, so
that nobody can make two ids that share one; they must not be stored, nor compared with those of another process.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence

import numpy as np

from raggs.base.arrays import ByteTexts, Ints, Keys
from raggs.base.errors import DataError
from raggs.base.text import one_line

WORD = 8
FILTER_BITS = 22  # a table of as many bits' values tells most unknown keys at one look
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
SECRET = np.array([secrets.randbits(64)], dtype=np.uint64)


class IdColumn:
    """Immutable ids, row by row.

    Args:
        chunks: arrays of bytes (dtype ``S``), one after the other. Ids hold no NUL.
    """

    def __init__(self, chunks: Sequence[ByteTexts]) -> None:
        self._chunks = tuple(chunks)
        self._ends = np.cumsum([len(chunk) for chunk in self._chunks], dtype=np.int64)

    @classmethod
    def of(cls, ids: Iterable[str]) -> IdColumn:
        """The column of some strings.

        Raises:
            DataError: one holds a NUL, which would be lost, or half of a surrogate pair.
        """
        return cls([np.array([_encoded(name) for name in ids], dtype=np.bytes_)])

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def and_also(self, ids: Iterable[str]) -> IdColumn:
        """The column with more rows below."""
        return IdColumn([*self._chunks, *IdColumn.of(ids)._chunks])

    def keys(self) -> Keys:
        """A 64-bit hash of each id, this process's own."""
        return self._hashed(secret=True)

    def lasting_keys(self) -> Keys:
        """A 64-bit hash of each id, the same everywhere. Ids that share one can be made: use it for order alone."""
        return self._hashed(secret=False)

    def _hashed(self, *, secret: bool) -> Keys:
        parts = [_keys(chunk, secret=secret) for chunk in self._chunks]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)

    def take(self, rows: Ints) -> ByteTexts:
        """The ids of some rows, in one array."""
        if len(self._chunks) == 1:
            return self._chunks[0][rows]
        place = np.searchsorted(self._ends, rows, side="right")
        taken = np.empty(len(rows), dtype=max((chunk.dtype for chunk in self._chunks), key=lambda kind: kind.itemsize))
        for number in np.unique(place):
            mine = place == number
            first = self._ends[number] - len(self._chunks[number])
            taken[mine] = self._chunks[number][rows[mine] - first]
        return taken

    def text(self, row: int) -> str:
        """The id of one row."""
        return str(self.take(np.array([row]))[0].decode())


class KeyTable:
    """Rows by their keys, sorted once for all who look something up.

    Args:
        keys: of all rows.
        rows: those that can be found.
    """

    def __init__(self, keys: Keys, rows: Ints) -> None:
        self._rows = rows[np.argsort(keys[rows])]
        self._keys = keys[self._rows]
        self._maybe = np.zeros(1 << FILTER_BITS, dtype=np.bool_)
        self._maybe[_low_bits(self._keys)] = True

    def find(self, keys: Keys) -> tuple[Ints, Ints]:
        """The places in `keys` that are known, and their rows. Different ids may share a key."""
        places = np.flatnonzero(self._maybe[_low_bits(keys)])
        if not len(self._keys) or not len(places):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        found = np.minimum(np.searchsorted(self._keys, keys[places]), len(self._keys) - 1)
        right = self._keys[found] == keys[places]
        return places[right], self._rows[found[right]]


def _low_bits(keys: Keys) -> Ints:
    return (keys & np.uint64((1 << FILTER_BITS) - 1)).astype(np.int64)


def mixed(values: Keys) -> Keys:
    """Bits well mixed, one value to one value (the finaliser of SplitMix64; Steele, Lea, Flood 2014)."""
    z = values + GOLDEN
    z = (z ^ (z >> SHIFTS[0])) * MIX[0]
    z = (z ^ (z >> SHIFTS[1])) * MIX[1]
    return z ^ (z >> SHIFTS[2])


def pair_keys(queries: Ints, docs: Keys) -> Keys:
    """A key for each (query number, passage key)."""
    # The complement of a number has bytes that no UTF-8 holds. A number itself may be the word of a short id, and then
    # (48, "1") and (49, "0") would share their key.
    return mixed(docs ^ mixed(~queries.astype(np.uint64)))


def _encoded(name: str) -> bytes:
    try:
        found = name.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"id {name!a} is no text", remedy="write ids in Unicode") from error
    if b"\0" in found:
        raise DataError(f"id {one_line(name)!r} holds a NUL", remedy="ids are text")
    return found


def _keys(ids: ByteTexts, *, secret: bool) -> Keys:
    width = max(ids.dtype.itemsize, 1)
    words = -(-width // WORD)
    padded = np.ascontiguousarray(ids.astype(f"S{words * WORD}", copy=False))
    table = padded.view(np.uint64).reshape(len(ids), words)
    keys = np.zeros(len(ids), dtype=np.uint64)
    salts = np.arange(words, dtype=np.uint64) * MIX[0]
    for word, salt in zip(table.T, mixed(salts + SECRET) if secret else salts, strict=True):
        # A word of zeros lies behind the end of the id; it must not count, whatever the width of the array.
        keys ^= np.where(word == 0, np.uint64(0), mixed(word + salt))
    return keys
