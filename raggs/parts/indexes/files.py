"""An index's file on disk: made once, beside the vectors that it is of, and believed only as it was made.

A folder holds `index` and `header.json`, which says of what it was made and has a hash of the file. The file appears
by renaming and the header after it, so a killed build leaves nothing that is read. One process builds at a time, others
wait; whoever builds takes away what a killed builder left. A file that is not what the header says is made again, and
the listener is told.

What is searched is read in full and hashed first: faiss follows the numbers of a damaged graph wherever they point.

Files and folders that other libraries write, made to appear whole or not at all.

`raggs.base.files` hands out an open file; a database or an index needs a path. The rule is the same: build beside
the target, flush to the disk, rename. A kill leaves the old target or the new one, and at worst a leftover
whose name begins with `PREFIX`, which nobody ever opens.

Where a workspace keeps what can be made, or bought, again: one folder a cache, named here and nowhere else.

Everything below `.cache` may be deleted at any time; the price is in `NOTES`.

What people said of passages: kept for good, one line a judgment, and folded to what holds now.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from raggs.base.errors import DataError
from raggs.base.files import BLOCK, disk, regular_file, remove_leftovers, sync_folder, write_atomic
from raggs.base.files import PREFIX as atomic_PREFIX
from raggs.base.hashing import hash_value
from raggs.base.types import Notify, unheard

INDEX, HEADER, LOCK = "index", "header.json", "lock"
FORMAT = 1


@dataclass(frozen=True)
class IndexBuild:
    """What an index was made of, and what came of it.

    Attributes:
        kind: the type of the index.
        vectors: the sum of the vectors.
        settings: all that changes the file.
        library: the package that made it, with its version.
        build_s, bytes, sum: seconds that it took, length and hash of the file.
    """

    kind: str
    vectors: str
    rows: int
    dims: int
    settings: Mapping[str, str | int | None]
    library: str
    build_s: float = 0.0
    bytes: int = 0
    sum: str = ""
    format: int = FORMAT

    @property
    def wanted(self) -> IndexBuild:
        """What it was made of, without what came of it."""
        return replace(self, build_s=0.0, bytes=0, sum="")


def place_of(folder: Path, wanted: IndexBuild) -> Path:
    """Where in the folder of the vectors the index lies, or will."""
    parts = [wanted.format, wanted.rows, wanted.dims, dict(wanted.settings), wanted.library]
    return folder / f"{wanted.kind}-{hash_value(parts)[:16]}"


def is_made(folder: Path, wanted: IndexBuild) -> bool:
    """Whether an index like this one was made there; its file is not looked at, nor which vectors it is of."""
    found = _header(place_of(folder, wanted))
    return found is not None and replace(found.wanted, vectors=wanted.vectors) == wanted


def kept(
    folder: Path, wanted: IndexBuild, build: Callable[[Path], None], notify: Notify = unheard
) -> tuple[Path, IndexBuild]:
    """The file of an index, made now if it is not there, and what is known of it.

    Args:
        folder: of the vectors.
        build: writes the index to the path that it is given.
        notify: hears of a file that is damaged, which is made again.

    Raises:
        ProviderError: the disk failed; besides, whatever `build` raises.
    """
    place = place_of(folder, wanted)
    with disk(place, "check the folder's permissions", "the index cannot be stored"):
        place.mkdir(parents=True, exist_ok=True)
        found = _trusted(place, wanted) or _build(place, wanted, build, notify)
    return place / INDEX, found


def kept_faults(folder: Path) -> Iterator[tuple[Path, str]]:
    """What is wrong with the indexes over the vectors in `folder`, by the folder of each.

    Raises:
        OSError: the disk failed.
    """
    for path in sorted(folder.glob(f"*/{HEADER}")):
        try:
            found = _header(path.parent)
            wrong = found is None or not _holds(path.parent, found)
        except DataError as error:
            yield path.parent, error.message
        else:
            if wrong:
                yield path.parent, f"{INDEX} is not what was built"


def _header(place: Path) -> IndexBuild | None:
    """The header, if there is one that can be read."""
    try:
        return IndexBuild(**json.loads(regular_file(place / HEADER).read_bytes()))
    except (DataError, FileNotFoundError, ValueError, TypeError):
        return None


def _trusted(place: Path, wanted: IndexBuild) -> IndexBuild | None:
    """The header, if the file is of what is wanted and as it was written."""
    found = _header(place)
    return found if found is not None and found.wanted == wanted and _holds(place, found) else None


def _is_damaged(place: Path, wanted: IndexBuild) -> bool:
    """Whether an index lies there that is neither as it was written nor, by its header, of other vectors."""
    if not (place / HEADER).exists():
        return False
    found = _header(place)
    return found is None or found.wanted == wanted or replace(found.wanted, vectors=wanted.vectors) != wanted


def _holds(place: Path, made: IndexBuild) -> bool:
    """Whether the file is as it was written."""
    try:
        return (place / INDEX).stat().st_size == made.bytes and _sum_of(place / INDEX) == made.sum
    except FileNotFoundError:
        return False


def _build(place: Path, wanted: IndexBuild, build: Callable[[Path], None], notify: Notify) -> IndexBuild:
    """Make the file, or take the one that another process has made in the meantime."""
    from filelock import FileLock  # late: only a build needs it

    with FileLock(place / LOCK):
        if found := _trusted(place, wanted):
            return found
        if _is_damaged(place, wanted):
            notify(f"{place / INDEX}: not the index that was built, so it is built again")
        remove_leftovers(place)
        (place / HEADER).unlink(missing_ok=True)
        draft = place / f"{atomic_PREFIX}{INDEX}"
        started = time.perf_counter()
        try:
            build(draft)
        except BaseException:  # a disk that is full needs the room
            draft.unlink(missing_ok=True)
            raise
        took = time.perf_counter() - started
        _flush(draft)
        made = replace(wanted, build_s=round(took, 3), bytes=draft.stat().st_size, sum=_sum_of(draft))
        draft.replace(place / INDEX)
        sync_folder(place)
        write_atomic(place / HEADER, json.dumps(asdict(made)).encode())
        return made


def _flush(file: Path) -> None:
    handle = os.open(file, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sum_of(file: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with regular_file(file).open("rb") as opened:
        while block := opened.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


PREFIX = "building-"


@contextmanager
def building(target: Path) -> Iterator[Path]:
    """A folder to build in; what the block puts at the yielded path inside it becomes `target`.

    The yielded path does not exist yet, so it may become a file or a folder. A folder replaces nothing: when
    another process has published the same target in the meantime, that one stays, since equal names in a cache
    mean equal content.

    Raises:
        OSError: the disk is full, or the folder may not be written.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    workshop = Path(tempfile.mkdtemp(prefix=PREFIX, dir=target.parent))
    try:
        product = workshop / target.name
        yield product
        for file in [product] if product.is_file() else sorted(product.iterdir()):
            _flush(file)
        if product.is_file() or not target.exists():
            product.replace(target)
        sync_folder(target.parent)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


NOTES: Mapping[str, str] = {
    "llm": "paid answers: clearing them means paying again",
    "corpora": "passages as read; made again from the corpus",
    "cuts": "where paid chunkers cut; made again from the paid answers",
    "vectors": "embeddings of passages and indexes over them; made again by the embedder",
    "rerank": "scores of rerankers of this machine; made again by the model",
    "bm25": "lexical indexes; made again from the passages",
    "sweeps": "lists of the parts of sweeps; made again by searching",
    "diagnoses": "parts of diagnoses; made again by measuring",
}


@dataclass(frozen=True)
class CacheFolders:
    """The folders of one workspace's caches. None of them need exist."""

    root: Path

    @classmethod
    def of(cls, workspace: Path) -> CacheFolders:
        """The caches of the runs in `workspace`."""
        return cls(workspace / ".cache")

    def folder(self, name: str) -> Path:
        """The folder of a cache that `NOTES` names."""
        return self.root / name

    @property
    def llm(self) -> Path:
        """Answers of language models."""
        return self.folder("llm")

    @property
    def corpora(self) -> Path:
        """Passage stores, one file each."""
        return self.folder("corpora")

    @property
    def cuts(self) -> Path:
        """Where chunkers cut that ask models, one file for each way of cutting."""
        return self.folder("cuts")

    @property
    def vectors(self) -> Path:
        """Vectors of passages, a folder for each corpus and embedder, with the indexes over them."""
        return self.folder("vectors")

    @property
    def rerank(self) -> Path:
        """What rerankers of this machine gave for pairs of query and passage."""
        return self.folder("rerank")

    @property
    def bm25(self) -> Path:
        """Lexical indexes, a folder for each corpus and parameters."""
        return self.folder("bm25")

    @property
    def sweeps(self) -> Path:
        """Lists that systems of sweeps share."""
        return self.folder("sweeps")

    @property
    def diagnoses(self) -> Path:
        """What diagnoses have measured so far."""
        return self.folder("diagnoses")


REVIEWS_FOLDER = "reviews"


def reviews_beside(workspace: Path) -> Path:
    """Where the reviews of the runs in `workspace` are kept, if nobody says otherwise: in a folder beside it."""
    return workspace.resolve().parent / REVIEWS_FOLDER
