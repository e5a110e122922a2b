"""The vectors of a corpus on disk: computed once for each embedder, mapped into memory, searched exactly.

A folder holds `vectors.f32` (rows in position order, float32, nothing else) and `header.json`, which says whose
vectors they are and has a CRC-32 for each shard of rows. The header is replaced after each finished shard, so a
killed build goes on where it stopped; the vectors are complete when the header counts all shards. One process
builds at a time, others wait. The folder's name depends on embedder and corpus, so a change makes a new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from raggs.arrays import SmallInts, Vectors
from raggs.atomic import disk, write_atomic
from raggs.errors import DataError, ProviderError, RaggsError
from raggs.hashing import hash_value
from raggs.indexes.exact import FULL, Neighbours, search
from raggs.indexes.kept import kept_faults
from raggs.indexes.passagerows import Progress
from raggs.indexes.passages import PassageStore
from raggs.inputs import regular_file
from raggs.precision import Scoring

SHARD = 4096  # passages embedded between two marks on the disk
CHECKED = 64  # shards that an audit reads of one file at most
VECTORS, HEADER, LOCK = "vectors.f32", "header.json", "lock"

Embed = Callable[[Sequence[str]], Vectors]


@dataclass(frozen=True)
class Header:
    """Whose vectors a folder holds, and the CRC-32 of each shard that is done."""

    embedder: str
    content_hash: str
    rows: int
    dims: int
    sums: tuple[int, ...] = ()
    shard: int = SHARD
    format: int = 1

    @property
    def complete(self) -> bool:
        """Whether every shard is on the disk."""
        return len(self.sums) >= -(-self.rows // self.shard)

    @property
    def rows_done(self) -> int:
        """Rows of the shards that are on the disk."""
        return min(len(self.sums) * self.shard, self.rows)

    @property
    def bytes_done(self) -> int:
        """Bytes of those rows."""
        return self.rows_done * self.dims * 4


class VectorIndex:
    """A corpus's vectors, ready to be searched. Made by `open_vectors`, or `of` a matrix.

    Args:
        vectors: shape (n, dims), of unit length or zero.
        ranks: of each row's doc_id among all.
        place: the folder that holds them, and what is made of them.
        sum: of what they are and whose.
    """

    def __init__(self, vectors: Vectors, ranks: SmallInts, place: Path, sum: str) -> None:
        self.vectors, self.ranks, self.place, self.sum = vectors, ranks, place, sum

    @classmethod
    def of(cls, matrix: Vectors, place: Path) -> VectorIndex:
        """Vectors that belong to no corpus, or to a part of one; ties go to the earlier row.

        Args:
            matrix: as `vectors`, in one piece.
            place: the folder in which indexes of it are kept.
        """
        digest = hashlib.blake2b(str(matrix.shape).encode(), digest_size=16)
        for start in range(0, len(matrix), SHARD):
            digest.update(matrix[start : start + SHARD].tobytes())
        return cls(matrix, np.arange(len(matrix), dtype=np.int32), place, digest.hexdigest())

    def __len__(self) -> int:
        return len(self.vectors)

    def search(self, queries: Vectors, k: int, scoring: Scoring = FULL) -> Neighbours:
        """The k passages nearest to each query by cosine (see `exact.search`); ties go to the smaller doc_id.

        Raises:
            DataError: a query has another length than the vectors, or anything is not finite.
        """
        return search(self.vectors, self.ranks, queries, k, scoring=scoring)


def open_vectors(
    folder: Path, embedder: str, dims: int, store: PassageStore, embed: Embed, progress: Progress | None = None
) -> VectorIndex:
    """The vectors of `store` by `embedder`, computed now as far as `folder` does not hold them yet.

    Args:
        folder: holds the vectors of any number of corpora and embedders.
        embedder: its identity: equal identities mean comparable vectors.
        embed: texts to vectors of unit length (or zero), shape (texts, dims). Called with up to 4,096 texts.
        progress: called with ("vectors", done, of) after each shard.

    Raises:
        DataError: the files are damaged, or `embed` gave NaN or infinity.
        ProviderError: `embed` gave another shape or lengths, or the disk failed.
    """
    wanted = Header(embedder, store.content_hash, len(store), dims)
    place = vectors_place(folder, embedder, dims, store)
    with disk(place, "check the folder's permissions", "the vectors cannot be stored"):
        place.mkdir(parents=True, exist_ok=True)
        header = _read_header(place, wanted)
        if not header.complete:
            header = _build(place, wanted, store, embed, progress)
    return VectorIndex(_mapped(place, wanted), store.id_ranks(), place, hash_value(asdict(header)))


def _mapped(place: Path, wanted: Header) -> Vectors:
    """The vectors that a complete header promises."""
    file, remedy = place / VECTORS, "delete the folder; they are computed again"
    with disk(place, "check the folder's permissions", "the vectors cannot be read"):
        if not file.exists():
            raise DataError("the vectors are gone", where=file, remedy=remedy)
        if regular_file(file).stat().st_size != wanted.rows * wanted.dims * 4:
            raise DataError("the vectors are cut short", where=place, remedy=remedy)
        return np.memmap(file, np.float32, "r", shape=(wanted.rows, wanted.dims))


def rows_done(folder: Path, embedder: str, dims: int, store: PassageStore) -> int:
    """How many passages of `store`, from its first one, have vectors in `folder` by the header, see `open_vectors`.

    Raises:
        DataError: the header is damaged.
    """
    wanted = Header(embedder, store.content_hash, len(store), dims)
    return _read_header(vectors_place(folder, embedder, dims, store), wanted).rows_done


def vector_faults(folder: Path, store: PassageStore) -> Iterator[tuple[Path, str]]:
    """What is wrong with the vectors of `store`, whoever embedded it, and with indexes over them, by folder.

    Of many shards, some stand for all.
    """
    for path in sorted(folder.glob(f"*/{HEADER}")):
        try:
            values = json.loads(regular_file(path).read_bytes())
            if values["content_hash"] != store.content_hash:
                continue
            header = Header(**{**values, "sums": tuple(values["sums"])})
            shards = _spread(len(header.sums))
            wrong = not all(_holds(path.with_name(VECTORS), header, shard) for shard in shards)
        except (RaggsError, OSError, ValueError, TypeError, KeyError) as error:
            yield path.parent, str(error)
        else:
            if wrong:
                yield path.parent, f"{VECTORS} is not what was computed"
            yield from kept_faults(path.parent)


def _spread(count: int) -> list[int]:
    """Up to `CHECKED` of `count` places, evenly."""
    taken = min(count, CHECKED)
    return [number * count // taken for number in range(taken)]


def _holds(file: Path, header: Header, shard: int) -> bool:
    """Whether a shard is as it was written."""
    size = header.shard * header.dims * 4
    with regular_file(file).open("rb") as opened:
        opened.seek(shard * size)
        return zlib.crc32(opened.read(size)) == header.sums[shard]


def vectors_place(folder: Path, embedder: str, dims: int, store: PassageStore) -> Path:
    """Where in `folder` the vectors of `store` by `embedder` lie, or will."""
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", embedder).strip("-.")[:60]
    return folder / f"{slug}-{hash_value([embedder, store.content_hash, len(store), dims])[:16]}"


def _read_header(place: Path, wanted: Header) -> Header:
    """The header on disk if it is about what is wanted, else `wanted`, which counts no shard."""
    try:
        values = json.loads(regular_file(place / HEADER).read_bytes())
        found = Header(**{**values, "sums": tuple(values["sums"])})
    except FileNotFoundError:
        return wanted
    except (ValueError, TypeError, KeyError) as error:
        raise DataError("not a header of vectors", where=place / HEADER, remedy="delete the folder") from error
    return found if replace(found, sums=()) == wanted else wanted


def _build(place: Path, wanted: Header, store: PassageStore, embed: Embed, progress: Progress | None) -> Header:
    """Compute the missing shards; the header of all. Whoever waited for another builder finds nothing to do."""
    from filelock import FileLock  # late: only a build needs it

    with FileLock(place / LOCK):
        header = _trusted(place, _read_header(place, wanted))
        with (place / VECTORS).open("ab") as file:
            file.truncate(header.bytes_done)
            while not header.complete:
                shard = _embed_shard(header, store, embed)
                file.write(shard)
                file.flush()
                os.fsync(file.fileno())
                header = replace(header, sums=(*header.sums, zlib.crc32(shard)))
                write_atomic(place / HEADER, json.dumps(asdict(header)).encode())
                if progress is not None:
                    progress("vectors", header.rows_done, header.rows)
    return header


def _trusted(place: Path, header: Header) -> Header:
    """The header without the shards that the file does not hold as they were written."""
    good = 0
    if header.sums and (place / VECTORS).exists():
        with (place / VECTORS).open("rb") as file:
            for expected in header.sums:
                if zlib.crc32(file.read(header.shard * header.dims * 4)) != expected:
                    break
                good += 1
    return replace(header, sums=header.sums[:good])


def _embed_shard(header: Header, store: PassageStore, embed: Embed) -> bytes:
    """The next shard's vectors, checked, as they stand in the file."""
    start = header.rows_done
    stop = min(start + header.shard, header.rows)
    vectors = np.ascontiguousarray(embed(store.contents(start, stop)), dtype="<f4")
    if vectors.shape != (stop - start, header.dims):
        raise ProviderError(
            f"{header.embedder} gave vectors of shape {vectors.shape}, not {(stop - start, header.dims)}"
        )
    lengths = np.linalg.norm(vectors, axis=1)
    if not np.isfinite(lengths).all():
        doc_id = store.ids_at([start + int(np.flatnonzero(~np.isfinite(lengths))[0])])[0]
        raise DataError(f"{header.embedder} gave NaN or infinity for passage {doc_id!r}", remedy="check its text")
    if not (np.isclose(lengths, 1, atol=1e-3) | (lengths == 0)).all():
        raise ProviderError(f"{header.embedder} gave vectors that are not of unit length")
    return vectors.tobytes()
