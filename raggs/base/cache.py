"""Cache of results that can be recomputed. The key is a hash of their causes: everything that can change them.

A `Cache` is one folder. It stores results in three forms:

- rows: records in one JSONL file (`get`, `find`, `keep`);
- a table: bytes by key, in one sqlite file, for thousands of small results (`table`);
- files: a folder of files that a library reads and writes by path (`files`).

The rules are the same for all forms. A result is used only if it was stored completely. Its checksum is verified when
it is read; that of files only if they have changed since the last check. A damaged, edited or exchanged result is not
used: the listener is notified, and the result is recomputed. Several processes can use one cache at the same time. The
cache does not interpret results.

Paid answers are stored in `raggs.llm.cache`, and runs in `raggs.runs.manifests.store`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel

from raggs.base.errors import NotFoundError, RaggsError
from raggs.base.files import (
    READ_BLOCK_BYTES,
    disk,
    disk_fault,
    flush_file,
    make_folder,
    read_whole,
    regular_file,
    sync_folder,
    write_atomic,
)
from raggs.base.hashing import canonical_json, hash_bytes, hash_value
from raggs.base.jsonl import M, all_records, dump_line
from raggs.base.text import plural
from raggs.base.types import Notify, ignore_notice

CACHE_NOTES: Mapping[str, str] = {  # folders of a workspace's cache, with their content and how it is restored
    "llm": "paid answers of models; if you clear them, you pay again",
    "corpora": "corpus passages; read again from the corpus",
    "cuts": "chunks of paid chunkers; rebuilt from the paid answers",
    "vectors": "embeddings of passages and their indexes; recomputed by the embedder",
    "words": "word vectors of the embedder lsa; fitted again on the corpus",
    "rerank": "scores of local rerankers; recomputed by the model",
    "bm25": "lexical indexes; rebuilt from the passages",
    "sweeps": "result lists of sweeps; recomputed by searching",
    "diagnoses": "intermediate results of diagnoses; recomputed",
}
FORMAT = 2  # version of the row format
HEADER, LOCK, VERIFIED_FILE = "entry.json", "lock", "verified.json"  # stored next to the files of one result
TICK_NS = 2_000_000_000  # file systems may record times only to the nearest 2 seconds
KEYS_PER_STATEMENT = 500  # keys per SQL statement
PATIENCE_S = 30.0  # seconds to wait while another process writes to a table
TABLE = "CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, value BLOB, sum BLOB) WITHOUT ROWID"
FOLDER_REMEDY = "check the folder's permissions, or choose another workspace"


@dataclass(frozen=True)
class CachedFiles:
    """Files of one result: their folder, the seconds needed to compute them, and their size in bytes."""

    path: Path
    seconds: float
    bytes: int


class Cache:
    """Results in one folder, which is created when the first one is stored.

    Args:
        folder: folder of the results.
        notify: receives a message about each unusable result.
    """

    def __init__(self, folder: Path, notify: Notify = ignore_notice) -> None:
        self.folder, self.notify = folder, notify

    @classmethod
    def of(cls, workspace: Path, notify: Notify = ignore_notice) -> Cache:
        """Return the cache that the runs in `workspace` share. `CACHE_NOTES` describes its subfolders."""
        return cls(workspace / ".cache", notify)

    def at(self, name: str) -> Cache:
        """Return the cache in the subfolder of this name."""
        return Cache(self.folder / name, self.notify)

    # --- rows ---

    def get(self, causes: object, model: type[M], make: Callable[[], Iterable[M]]) -> list[M]:
        """Return the rows of these causes, from the cache or newly made and stored."""
        found = self.find(causes, model)
        if found is None:
            self.keep(causes, found := list(make()))
        return found

    def has(self, causes: object) -> bool:
        """Return whether rows are stored for these causes. The rows may still be damaged."""
        return self._path(_key(causes)).is_file()

    def find(self, causes: object, model: type[M]) -> list[M] | None:
        """Return the rows of these causes, or None if none are stored or the file was changed."""
        key = _key(causes)
        path = self._path(key)
        try:
            head, _, body = read_whole(path).partition(b"\n")
        except NotFoundError:
            return None
        except RaggsError:
            head, body = b"", b""
        found = all_records(body.splitlines(), model) if head == _seal(key, body) else None
        if found is None:
            self.notify(f"{path}: changed since raggs stored it, so it is ignored and computed again")
        return found

    def keep(self, causes: object, rows: Iterable[BaseModel]) -> None:
        """Store rows.

        Raises:
            ProviderError: the folder is not writable.
        """
        key = _key(causes)
        path, body = self._path(key), b"".join(map(dump_line, rows))
        with disk(path, FOLDER_REMEDY):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, _seal(key, body) + b"\n" + body, durable=False)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key[:32]}.jsonl"

    # --- tables and files ---

    def table(self, name: str) -> CacheTable:
        """Return the table of this name."""
        return CacheTable(self.folder / f"{name}.sqlite", self.notify)

    def has_files(self, name: str) -> bool:
        """Return whether files are stored under a name. They may still be damaged, or have other causes."""
        return (self.folder / name / HEADER).is_file()

    def files(self, name: str, causes: object, make: Callable[[Path], None], what: str) -> CachedFiles:
        """Return the files of these causes, from the cache or newly made. Files of other causes are replaced.

        Only one process makes the files at a time; other processes wait.

        Args:
            name: name of their folder.
            causes: everything that the files depend on.
            make: writes the files into a folder.
            what: description of the files for messages, such as "the index".

        Raises:
            ProviderError: the disk failed. Exceptions of `make` are passed on.
        """
        place, key = self.folder / name, hash_value(causes)
        with disk(place, FOLDER_REMEDY, f"{what} cannot be stored"):
            place.mkdir(parents=True, exist_ok=True)
            found = _valid_header(place, key) or self._made(place, key, make, what)
        return CachedFiles(place, found.seconds, sum((place / name).stat().st_size for name in found.files))

    def faults(self, name: str = "*") -> Iterator[tuple[Path, str]]:
        """Yield each folder with faulty files, and the fault. All files under the name pattern are read."""
        for path in sorted(self.folder.glob(f"{name}/{HEADER}")):
            try:
                fault = _fault(path.parent, _header(path.parent))
            except (RaggsError, OSError) as error:
                fault = str(error)
            if fault is not None:
                yield path.parent, fault

    def _made(self, place: Path, key: str, make: Callable[[Path], None], what: str) -> _Header:
        """Make the files, or return those that another process has made in the meantime."""
        from filelock import FileLock  # imported lazily: needed only to make files

        with FileLock(place / LOCK):
            if found := _valid_header(place, key):
                return found
            if (place / HEADER).exists():
                found = _header(place)
                if (found is None or found.causes == key) and (fault := _fault(place, found)):
                    self.notify(f"{place}: {what} is damaged ({fault}), so it is built again")
                (place / HEADER).unlink()
            _empty(place)
            started = time.perf_counter()
            try:
                make(place)
            except BaseException:  # frees the space of a full disk
                _empty(place)
                raise
            seconds, files = round(time.perf_counter() - started, 3), _files(place)
            for file in files.values():
                flush_file(file)
            sync_folder(place)
            found = _Header(causes=key, seconds=seconds, files={name: _sum_of(file) for name, file in files.items()})
            write_atomic(place / HEADER, found.model_dump_json().encode())
            return found


def _key(causes: object) -> str:
    return hash_value([FORMAT, causes])


def _seal(key: str, body: bytes) -> bytes:
    """Return the first line of a file of rows: the hash of their causes and of their content."""
    return canonical_json({"causes": key, "sha256": hash_bytes(body)}).encode()


class _Header(BaseModel):
    """Causes of files, the seconds needed to make them, and the hash of each. Written last."""

    causes: str
    seconds: float
    files: Mapping[str, str]


def _header(place: Path) -> _Header | None:
    """Return the header, or None if it is missing or damaged."""
    try:
        return _Header.model_validate_json(regular_file(place / HEADER).read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def _valid_header(place: Path, key: str) -> _Header | None:
    """Return the header if the files have these causes and are unchanged, otherwise None."""
    found = _header(place)
    if found is None or found.causes != key:
        return None
    files = _files(place)
    same = files.keys() == found.files.keys()
    return found if same and verify_once(files.values(), found.files, lambda: not _fault(place, found)) else None


def _fault(place: Path, header: _Header | None) -> str | None:
    """Return a sentence about the first changed file, or None if no file was changed."""
    if header is None:
        return f"{HEADER} is missing or damaged"
    files = _files(place)
    sums = {name: _sum_of(file) for name, file in files.items()}
    changed = sorted(name for name in {*sums, *header.files} if sums.get(name) != header.files.get(name))
    if not changed:
        return None
    name = changed[0]
    if name not in sums:
        return f"{name} is missing"
    return f"{name} does not match its recorded checksum" if name in header.files else f"{name} is not recorded"


def _files(place: Path) -> dict[str, Path]:
    """Return the files by name."""
    own = (HEADER, LOCK, VERIFIED_FILE)
    return {file.name: file for file in place.iterdir() if file.name not in own and not file.is_dir()}


def _empty(place: Path) -> None:
    for file in (place / VERIFIED_FILE, *_files(place).values()):
        file.unlink(missing_ok=True)


def _sum_of(file: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with regular_file(file).open("rb") as opened:
        while block := opened.read(READ_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def verify_once(files: Iterable[Path], sums: object, check: Callable[[], bool]) -> bool:
    """Return whether `check` succeeds for files of one folder, or has succeeded since their last change.

    `check` is skipped if `verified.json` next to the files records its success. Each write or exchange of a file
    changes its inode or its change time, and programs cannot set either.

    Args:
        files: files of one folder.
        sums: the values that `check` compares the files with.
        check: the check.
    """
    files = list(files)
    state = _state(files, sums)
    stamp = files[0].with_name(VERIFIED_FILE)
    with suppress(OSError, ValueError, RaggsError):
        if json.loads(regular_file(stamp).read_bytes()) == state:
            return True
    if not check():
        return False
    changed = max(file.stat().st_ctime_ns for file in files)
    settled = time.time_ns() - changed > TICK_NS  # recent enough changes could share their time with a later write
    if settled and os.name != "nt" and _state(files, sums) == state:
        with suppress(OSError):  # a read-only cache is verified each time
            write_atomic(stamp, json.dumps(state).encode(), durable=False)
    return True


def _state(files: Iterable[Path], sums: object) -> dict[str, object]:
    """Return values that change with each write to the files."""
    stats = {file.name: file.stat() for file in files}
    seen = {name: [found.st_ino, found.st_size, found.st_ctime_ns] for name, found in stats.items()}
    return {"sums": hash_value(sums), "files": seen}


class CacheTable:
    """Bytes by key in one sqlite file. Each row has a checksum over its key and bytes.

    Args:
        file: the file, created with its folder on the first write.
        notify: receives a message about changed rows.
    """

    def __init__(self, file: Path, notify: Notify = ignore_notice) -> None:
        self.file = file
        self._notify = notify

    def find(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the unchanged values stored under these keys.

        Raises:
            ProviderError: the file cannot be read, or is damaged.
        """
        wanted = list(dict.fromkeys(keys))
        if not wanted or not self.file.exists():
            return {}
        with self._open() as database:
            rows = list(_select_rows(database, wanted))
        found = {key: value for key, value, known in rows if isinstance(value, bytes) and known == _row_sum(key, value)}
        if lost := len(rows) - len(found):
            said = f"{plural(lost, 'row')} changed since raggs stored {'it' if lost == 1 else 'them'}"
            self._notify(f"{self.file}: {said}, so the results are computed again")
        return found

    def put(self, rows: Mapping[str, bytes]) -> None:
        """Store all rows, or none if the process is killed.

        Raises:
            ProviderError: the file is not writable, or is damaged.
        """
        with self._open() as database, database:
            database.executemany(
                "REPLACE INTO rows VALUES (?, ?, ?)",
                ((key, value, _row_sum(key, value)) for key, value in rows.items()),
            )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with disk(self.file, "choose another workspace"):
                make_folder(self.file.parent)
                with closing(sqlite3.connect(regular_file(self.file), timeout=PATIENCE_S)) as database:
                    database.execute(TABLE)
                    yield database
        except sqlite3.Error as error:
            raise disk_fault(error, self.file, "delete it; raggs computes its contents again") from error


def _row_sum(key: str, value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=16, key=hashlib.sha256(key.encode()).digest()).digest()


def _select_rows(database: sqlite3.Connection, keys: list[str]) -> Iterator[tuple[str, object, object]]:
    for start in range(0, len(keys), KEYS_PER_STATEMENT):
        asked = keys[start : start + KEYS_PER_STATEMENT]
        marks = ", ".join("?" * len(asked))
        yield from database.execute(f"SELECT key, value, sum FROM rows WHERE key IN ({marks})", asked)  # noqa: S608


V = TypeVar("V")


class OnceCache(Generic[V]):
    """Values in memory by key, each made once."""

    def __init__(self) -> None:
        self._made: dict[str, V] = {}

    def __call__(self, key: object, make: Callable[[], V]) -> V:
        name = repr(key)
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]
