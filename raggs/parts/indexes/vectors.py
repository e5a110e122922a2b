"""The vectors of a corpus on disk: computed once per embedder, memory-mapped and searched exactly.

A folder contains `vectors.f32` (float32 rows in position order) and `header.json`, with the identity of corpus and
embedder and a CRC-32 for each shard of rows. The header is replaced after each finished shard, so that a killed build
continues with the next shard. The vectors are complete when the header lists all shards. Only one process builds at a
time; others wait. The folder's name depends on embedder and corpus, so a change of either makes a new folder.

When the vectors are opened, all shards are compared with their CRC-32, except if the file has not changed since the
last check. If rows were altered, raggs notifies the user and computes them again before a search.

`available` returns the free memory, so that a build that will not fit is refused in advance.
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

from raggs.base.arrays import SmallInts, Vectors
from raggs.base.cache import LOCK, Cache, verify_once
from raggs.base.errors import DataError, ProviderError, RaggsError
from raggs.base.files import READ_BLOCK_BYTES, atomic_writer, disk, regular_file, write_atomic
from raggs.base.hashing import hash_value
from raggs.base.precision import PrecisionSettings
from raggs.parts.indexes.exact import FULL_PRECISION, Neighbours, search
from raggs.parts.indexes.passages import PassageStore, Progress

SHARD = 4096  # passages embedded between two updates of the header
VECTORS, HEADER = "vectors.f32", "header.json"

Embed = Callable[[Sequence[str]], Vectors]


@dataclass(frozen=True)
class Header:
    """Identity of the vectors in a folder, and the CRC-32 of each finished shard."""

    embedder: str
    content_hash: str
    rows: int
    dims: int
    sums: tuple[int, ...] = ()
    shard: int = SHARD
    format: int = 1

    @property
    def complete(self) -> bool:
        """Whether every shard is on disk."""
        return len(self.sums) >= -(-self.rows // self.shard)

    @property
    def rows_done(self) -> int:
        """Number of rows in the shards on disk."""
        return min(len(self.sums) * self.shard, self.rows)

    @property
    def bytes_done(self) -> int:
        """Number of bytes of the shards on disk."""
        return self.rows_done * self.dims * 4


class VectorIndex:
    """The vectors of a corpus, ready to be searched. Created by `open_vectors`, or by `of` from a matrix.

    Args:
        vectors: shape (n, dims), of unit length or zero.
        ranks: rank of each row's doc_id among all doc_ids.
        cache: cache of the vectors and of indexes over them.
        sum: hash of the vectors and their identity.
    """

    def __init__(self, vectors: Vectors, ranks: SmallInts, cache: Cache, sum: str) -> None:
        self.vectors, self.ranks, self.cache, self.sum = vectors, ranks, cache, sum

    @classmethod
    def of(cls, matrix: Vectors, cache: Cache) -> VectorIndex:
        """Return the vectors of a matrix, for example of a part of a corpus; ties are ordered by row.

        Args:
            matrix: contiguous array, of unit length or zero.
            cache: cache for indexes over the matrix.
        """
        digest = hashlib.blake2b(str(matrix.shape).encode(), digest_size=16)
        for start in range(0, len(matrix), SHARD):
            digest.update(matrix[start : start + SHARD].tobytes())
        return cls(matrix, np.arange(len(matrix), dtype=np.int32), cache, digest.hexdigest())

    def __len__(self) -> int:
        return len(self.vectors)

    def search(self, queries: Vectors, k: int, scoring: PrecisionSettings = FULL_PRECISION) -> Neighbours:
        """Return the k passages nearest to each query by cosine (see `exact.search`); ties are ordered by doc_id.

        Raises:
            DataError: the dimensions differ from those of the vectors, or a value is not finite.
        """
        return search(self.vectors, self.ranks, queries, k, scoring=scoring)


def open_vectors(
    cache: Cache,
    embedder: str,
    dims: int,
    store: PassageStore,
    embed: Embed,
    progress: Progress | None = None,
) -> VectorIndex:
    """Return the vectors of `store` by `embedder`; missing or altered vectors are computed.

    Args:
        cache: cache of vectors, which may belong to several corpora and embedders.
        embedder: identity of the embedder; vectors of equal identity are comparable.
        embed: converts up to 4,096 texts to vectors of unit length (or zero), shape (texts, dims).
        progress: called with ("vectors", done, total) after each shard.

    Raises:
        DataError: the passages are damaged, or `embed` returned NaN or infinity.
        ProviderError: `embed` returned a wrong shape or length, or a disk operation failed.
    """
    wanted = Header(embedder, store.search_hash, len(store), dims)
    own = vectors_cache(cache, embedder, dims, store)
    place = own.folder
    with disk(place, "check the folder's permissions", "the vectors cannot be stored"):
        place.mkdir(parents=True, exist_ok=True)
        header = _read_header(place, wanted)
        vectors = _mapped(place, header)
        if vectors is None or not _is_verified(vectors, place, header):
            del vectors  # some systems cannot replace a mapped file
            header = _build(own, wanted, store, embed, progress)
            vectors = _mapped(place, header)
    if vectors is None:
        raise ProviderError("the vectors were removed while they were read", where=place, remedy="run again")
    return VectorIndex(vectors, store.id_ranks(), own, hash_value(asdict(header)))


def _mapped(place: Path, header: Header) -> Vectors | None:
    """Return the memory-mapped vectors; None if the header is incomplete, or the file is missing or of another
    length.
    """
    file = place / VECTORS
    with disk(place, "check the folder's permissions", "the vectors cannot be read"):
        if not header.complete or not file.exists():
            return None
        if regular_file(file).stat().st_size != header.bytes_done:
            return None
        return np.memmap(file, np.float32, "r", shape=(header.rows, header.dims))


def _is_verified(vectors: Vectors, place: Path, header: Header) -> bool:
    """Return whether all shards match their checksums; a check is repeated only after the file has changed."""

    def check() -> bool:
        rows: Vectors = np.asarray(vectors)
        shards = (rows[at * header.shard : (at + 1) * header.shard] for at in range(len(header.sums)))
        return all(zlib.crc32(shard.data) == expected for shard, expected in zip(shards, header.sums, strict=True))

    return verify_once([place / VECTORS], header.sums, check)


def rows_done(cache: Cache, embedder: str, dims: int, store: PassageStore) -> int:
    """Return how many passages of `store` have cached vectors according to the header on disk (see `open_vectors`)."""
    wanted = Header(embedder, store.search_hash, len(store), dims)
    return _read_header(vectors_cache(cache, embedder, dims, store).folder, wanted).rows_done


def vector_faults(cache: Cache, store: PassageStore) -> Iterator[tuple[Path, str]]:
    """Yield faults in the vectors of `store`, and in indexes over them, for all embedders: folder and description."""
    for path in sorted(cache.folder.glob(f"*/{HEADER}")):
        try:
            values = json.loads(regular_file(path).read_bytes())
            if values["content_hash"] != store.search_hash:
                continue
            header = Header(**{**values, "sums": tuple(values["sums"])})
            wrong = not all(
                _shard_is_intact(path.with_name(VECTORS), header, shard) for shard in range(len(header.sums))
            )
        except (RaggsError, OSError, ValueError, TypeError, KeyError) as error:
            yield path.parent, str(error)
        else:
            if wrong:
                yield path.parent, f"{VECTORS} has been altered"
            yield from Cache(path.parent).faults()


def _shard_is_intact(file: Path, header: Header, shard: int) -> bool:
    """Return whether a shard matches its checksum."""
    size = header.shard * header.dims * 4
    with regular_file(file).open("rb") as opened:
        opened.seek(shard * size)
        return zlib.crc32(opened.read(size)) == header.sums[shard]


def vectors_cache(cache: Cache, embedder: str, dims: int, store: PassageStore) -> Cache:
    """Return the subfolder of the cache that contains the vectors of `store` by `embedder`."""
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", embedder).strip("-.")[:60]
    return cache.at(f"{slug}-{hash_value([embedder, store.search_hash, len(store), dims])[:16]}")


def _read_header(place: Path, wanted: Header) -> Header:
    """Return the header on disk if it is readable and matches `wanted`; otherwise `wanted`, which lists no shard."""
    try:
        values = json.loads(regular_file(place / HEADER).read_bytes())
        found = Header(**{**values, "sums": tuple(values["sums"])})
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return wanted
    return found if replace(found, sums=()) == wanted else wanted


def _build(cache: Cache, wanted: Header, store: PassageStore, embed: Embed, progress: Progress | None) -> Header:
    """Compute the missing shards, and return the final header.

    If another process is building, this function waits; afterwards, possibly no shard is missing.
    """
    from filelock import FileLock  # imported lazily: only a build needs it

    place = cache.folder
    with FileLock(place / LOCK):
        header = _trusted(cache, _read_header(place, wanted))
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


def _trusted(cache: Cache, header: Header) -> Header:
    """Return the header without the shards that do not match their checksums."""
    file, good = cache.folder / VECTORS, 0
    if not header.sums:
        if (cache.folder / HEADER).exists():
            cache.notify(f"{cache.folder / HEADER}: not the header of these vectors; raggs computes them again")
        return header
    if file.exists():
        with file.open("rb") as opened:
            for expected in header.sums:
                if zlib.crc32(opened.read(header.shard * header.dims * 4)) != expected:
                    break
                good += 1
    if good == len(header.sums):
        return header
    lost = f"vectors {good * header.shard + 1:,} to {header.rows_done:,} of {header.rows:,}"
    cache.notify(f"{file}: altered, so {lost} are computed again")
    found = replace(header, sums=header.sums[:good])
    if header.complete and file.exists():
        _keep_first(file, found.bytes_done)
    return found


def _keep_first(file: Path, size: int) -> None:
    """Replace a file by a copy of its first bytes. Truncating the file in place would break memory maps of other
    processes.
    """
    with file.open("rb") as old, atomic_writer(file) as new:
        while size and (block := old.read(min(size, READ_BLOCK_BYTES))):
            new.write(block)
            size -= len(block)


def _embed_shard(header: Header, store: PassageStore, embed: Embed) -> bytes:
    """Return the vectors of the next shard as bytes of the file, after checking them."""
    start = header.rows_done
    stop = min(start + header.shard, header.rows)
    vectors = np.ascontiguousarray(embed(store.contents(start, stop)), dtype="<f4")
    if vectors.shape != (stop - start, header.dims):
        raise ProviderError(
            f"{header.embedder} returned vectors of shape {vectors.shape}, not {(stop - start, header.dims)}"
        )
    lengths = np.linalg.norm(vectors, axis=1)
    if not np.isfinite(lengths).all():
        doc_id = store.ids_at([start + int(np.flatnonzero(~np.isfinite(lengths))[0])])[0]
        raise DataError(f"{header.embedder} returned NaN or infinity for passage {doc_id!r}", remedy="check its text")
    if not (np.isclose(lengths, 1, atol=1e-3) | (lengths == 0)).all():
        raise ProviderError(f"{header.embedder} returned vectors that are not of unit length")
    return vectors.tobytes()


MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def available() -> int | None:
    """Return the memory available to this process, in bytes: the lower of machine and container; None if both are
    unknown.

    If the machine does not report free memory, its total memory is used.
    """
    found = [size for size in (_of_machine(), _of_container()) if size is not None]
    return min(found, default=None)


def in_words(size: float) -> str:
    """Return a number of bytes for display, such as "3.8 GiB"."""
    power = 0
    while size >= 1024 and power < len(UNITS) - 1:
        size, power = size / 1024, power + 1
    return f"{size:.1f} {UNITS[power]}" if power else f"{size:.0f} B"


def _of_machine() -> int | None:
    try:
        told = re.search(r"^MemAvailable:\s+(\d+) kB", MEMINFO.read_text(), re.MULTILINE)
    except OSError:
        told = None
    return int(told[1]) * 1024 if told else _of_system()


def _of_system() -> int | None:
    """Return the machine's total memory, for systems that do not report free memory (macOS)."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def _of_container() -> int | None:
    """Return the remaining memory of a container (cgroup 2); file pages that the system can drop count as free."""
    try:
        limit = int((CGROUP / "memory.max").read_text())  # "max" (no limit) raises ValueError
        used = int((CGROUP / "memory.current").read_text())
        droppable = re.search(r"^inactive_file (\d+)", (CGROUP / "memory.stat").read_text(), re.MULTILINE)
    except (OSError, ValueError):
        return None
    return max(limit - used + (int(droppable[1]) if droppable else 0), 0)
