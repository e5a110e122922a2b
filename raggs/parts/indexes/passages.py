"""The passages of a corpus in one sqlite file, for fast lookups without loading them into memory.

A corpus is read once, in its own order, into a table keyed by position (0-based) with a unique index on doc_id. The
file is written atomically and not modified afterwards: for a changed corpus, a new file is written. `content_hash`, a
hash of the passages in order, identifies the corpus. The cache verifies that the file is unchanged
(`raggs.base.cache`).

A store belongs to the thread that opened it. A store contains the raw text of passages; chunking and interpretation
happen elsewhere. If Unicode hygiene changes the text that models see, `content_hash` includes its version, so that
results of versions without hygiene are computed again. The hash of a corpus of clean texts is unaffected. Indexes
depend on `search_hash`, which differs from `content_hash` if a passage contains typographic quotation marks, because
searches replace such marks.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from raggs.base.arrays import SmallInts
from raggs.base.artifacts import Passage, Span
from raggs.base.cache import Cache
from raggs.base.errors import DataError, NotFoundError, RaggsError
from raggs.base.files import atomic_path, disk_fault, lacks_handles, no_handles
from raggs.base.hashing import canonical_json, hash_value
from raggs.base.text import FOLDING, HYGIENE, QUOTES, fold_quotes, id_problem, one_line

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE passages (
    position INTEGER PRIMARY KEY,
    doc_id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    span TEXT
);
"""
CLEANED = f"hygiene {HYGIENE}\n".encode()
COLUMNS = "doc_id, title, text, metadata, span"
REPORT_EVERY = 1000
Progress = Callable[[str, int, int], None]
Row = tuple[str, str, str, str, str | None]


def row_of(passage: Passage) -> Row:
    """Return the columns of a passage."""
    span = None if passage.span is None else canonical_json(passage.span.model_dump())
    return passage.doc_id, passage.title, passage.text, canonical_json(dict(passage.metadata)), span


def passage_of(row: Row) -> Passage:
    """Return the passage of a row.

    Raises:
        ValueError: the row is not a valid passage.
    """
    doc_id, title, text, metadata, span = row
    place = None if span is None else Span.model_validate_json(span)
    return Passage(doc_id=doc_id, title=title, text=text, span=place, metadata=json.loads(metadata))


def line_of(row: Row) -> bytes:
    """Return the bytes by which a passage enters the corpus hash: one line, and a second one if hygiene changes its
    text.
    """
    span = row[4]
    line = canonical_json(row[:4] if span is None else (*row[:4], span)).encode() + b"\n"
    return line + CLEANED if is_cleaned(row) else line


def is_cleaned(row: Row) -> bool:
    """Return whether Unicode hygiene changes the text of a passage."""
    passage = Passage.model_construct(doc_id=row[0], title=row[1], text=row[2])
    return passage.content != passage.raw


def ingest(connection: sqlite3.Connection, source: Iterable[Passage], progress: Progress | None) -> Mapping[str, str]:
    """Insert all passages of `source` into the database.

    Args:
        progress: called with ("passages", done, 0) at intervals, and with ("passages", count, count) at the end.

    Returns:
        Hash of all rows (`content_hash`), number of rows (`count`), number of passages that hygiene changes
        (`cleaned`), and number of passages with typographic quotation marks (`folded`).

    Raises:
        DataError: the corpus has no passage, a duplicate id, or an id that file formats cannot represent.
    """
    digest, count, cleaned, folded = hashlib.sha256(), 0, 0, 0
    for position, passage in enumerate(source):
        if problem := id_problem(passage.doc_id):
            said = f"passage {position + 1} of the corpus: id {passage.doc_id!a} {problem}"
            raise DataError(said, remedy="rename the id")
        row = row_of(passage)
        try:
            connection.execute("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)", (position, *row))
        except sqlite3.IntegrityError as error:
            raise _duplicate(connection, passage.doc_id, position) from error
        line = line_of(row)
        digest.update(line)
        cleaned += line.endswith(CLEANED)
        folded += fold_quotes(passage.content) != passage.content
        count = position + 1
        if progress is not None and count % REPORT_EVERY == 0:
            progress("passages", count, 0)
    if count == 0:
        raise DataError("the corpus is empty", remedy="use a corpus with at least one passage")
    if progress is not None:
        progress("passages", count, count)
    return {"content_hash": digest.hexdigest(), "count": str(count), "cleaned": str(cleaned), "folded": str(folded)}


def _duplicate(connection: sqlite3.Connection, doc_id: str, position: int) -> DataError:
    first = connection.execute("SELECT position FROM passages WHERE doc_id = ?", (doc_id,)).fetchone()[0]
    return DataError(
        f"duplicate id {doc_id!r}: passages {first + 1} and {position + 1} of the corpus",
        remedy="use a unique id for each passage",
    )


FORMAT = "raggs-passages-5"
FILE = "passages.sqlite"  # name of the file; the cache has one folder per corpus
FOLDING_CAUSE = f"quotes {FOLDING}"  # version of the replacement of typographic quotation marks in searches
META_KEYS = frozenset({"content_hash", "cleaned", "count", "format"})  # required keys of the table `meta`
LOOKUP = 500  # ids per SQL statement; every build of sqlite allows 999


class Passages(Protocol):
    """A corpus that returns passages by id; `content_hash` changes whenever a passage may have changed."""

    @property
    def content_hash(self) -> str: ...
    @property
    def file(self) -> Path | None:
        """The file that another process can open as a `PassageStore`; None if the passages are not in such a file."""

    @property
    def folded(self) -> bool:
        """Whether any passage has typographic quotation marks, which searches replace."""

    @property
    def cleaned(self) -> int | None:
        """Number of passages whose text Unicode hygiene changes; None if unknown."""

    def __len__(self) -> int: ...
    def get(self, doc_ids: Iterable[str]) -> Mapping[str, Passage]: ...
    def known(self, doc_ids: Iterable[str]) -> set[str]: ...
    def sample(self, count: int) -> list[str]: ...
    def close(self) -> None: ...


class PassageStore:
    """A corpus with access by position or id. Created by `build` or `open`."""

    def __init__(self, path: Path, connection: sqlite3.Connection, meta: dict[str, str]) -> None:
        self.path = path
        self.content_hash = meta["content_hash"]
        self.cleaned: int | None = int(meta["cleaned"])
        self.notes = tuple(meta.get("notes", "").splitlines())
        self._folded = meta.get("folded")
        self.unreadable: tuple[str, ...] = tuple(json.loads(meta.get("unreadable", "[]")))
        self.cutting_s = float(meta["cutting_s"]) if "cutting_s" in meta else None
        self._count = int(meta["count"])
        self._connection = connection

    @property
    def file(self) -> Path | None:
        """Absolute path of the file, so that other processes can open it."""
        return self.path.resolve()

    @classmethod
    def build(
        cls,
        path: Path,
        source: Iterable[Passage],
        progress: Progress | None = None,
        notes: Callable[[], Iterable[str]] = tuple,
        cutting_s: Callable[[], float | None] = lambda: None,
        unreadable: Callable[[], Sequence[str]] = tuple,
    ) -> PassageStore:
        """Read all of `source` into a new file at `path`, replace any earlier file, and open it.

        Args:
            notes: called at the end; returns remarks on the read, one sentence each, which are stored with the
                passages.
            progress: called with ("passages", done, 0) at intervals; the total is unknown until the end.
            cutting_s: called at the end; returns the chunking time in seconds, or None if unknown.
            unreadable: called at the end; returns the files of the source that could not be read and were skipped.

        Raises:
            DataError: the corpus has no passage, a duplicate id, or an id that file formats cannot represent.
            ProviderError: the file cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_path(path) as file, closing(sqlite3.connect(file, isolation_level=None)) as connection:
                connection.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {SCHEMA} BEGIN;")
                meta = {"format": FORMAT, **ingest(connection, source, progress)}
                meta |= {} if (seconds := cutting_s()) is None else {"cutting_s": repr(round(seconds, 6))}
                meta |= {"unreadable": json.dumps(list(names))} if (names := unreadable()) else {}
                meta["notes"] = "\n".join(one_line(note) for note in notes())
                connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
                connection.execute("COMMIT")
        except (OSError, sqlite3.Error) as error:
            raise disk_fault(error, path, "check the folder's permissions", "the passages cannot be stored") from error
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> PassageStore:
        """Open an existing file, read-only. Opening it reads only a few pages.

        Raises:
            NotFoundError: the file does not exist.
            DataError: the file is damaged, truncated or of another kind.
        """
        if not path.is_file():
            raise NotFoundError("passage store not found", where=path, remedy="run the command again to build it")
        with _faults(path):
            # `immutable` skips locking: the file is replaced by renaming and never modified in place.
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
            try:
                meta = _checked_meta(connection, path)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection, meta)

    @classmethod
    def find(cls, cache: Cache, content_hash: object) -> PassageStore | None:
        """Return the store of these passages in a cache, or None if the cache has none. The file is not verified."""
        for path in sorted(cache.folder.glob(f"*/{FILE}")):
            try:
                store = cls.open(path)
            except (RaggsError, OSError):
                continue  # the file is damaged, or of another version
            if store.content_hash == content_hash:
                return store
            store.close()
        return None

    @cached_property
    def folded(self) -> bool:
        """Whether any passage has typographic quotation marks, which searches replace (see `fold_quotes`)."""
        if self._folded is not None:
            return self._folded != "0"
        marks = f"*[{''.join(QUOTES)}]*"  # stores of older versions do not have the field `folded`
        with _faults(self.path):
            wanted = "SELECT 1 FROM passages WHERE text GLOB ? OR title GLOB ? LIMIT 1"
            return self._connection.execute(wanted, (marks, marks)).fetchone() is not None

    @property
    def search_hash(self) -> str:
        """Hash of the passages as searches read them: equal to `content_hash` if no passage is `folded`."""
        return hash_value([self.content_hash, FOLDING_CAUSE]) if self.folded else self.content_hash

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Passage]:
        with _faults(self.path):
            yield from map(passage_of, self._rows())

    def ids(self) -> list[str]:
        """Return every doc_id, in position order."""
        with _faults(self.path):
            return [row[0] for row in self._connection.execute("SELECT doc_id FROM passages ORDER BY position")]

    def get(self, doc_ids: Iterable[str]) -> dict[str, Passage]:
        """Return the passages with these ids, in the order of `doc_ids`.

        Raises:
            NotFoundError: the corpus does not contain one of the ids.
        """
        wanted = list(dict.fromkeys(doc_ids))
        found = {row[0]: row for row in self._lookup(COLUMNS, "doc_id", wanted)}
        for doc_id in wanted:
            if doc_id not in found:
                remedy = "check whether the corpus has changed, or the id belongs to another corpus"
                raise NotFoundError(f"the corpus does not contain passage {doc_id!r}", where=self.path, remedy=remedy)
        with _faults(self.path):
            return {doc_id: passage_of(found[doc_id]) for doc_id in wanted}

    def sources(self) -> list[str]:
        """Return the source documents that the spans of the passages name, sorted."""
        with _faults(self.path):
            rows = self._connection.execute(
                "SELECT DISTINCT json_extract(span, '$.source') FROM passages WHERE span IS NOT NULL ORDER BY 1"
            )
            return [row[0] for row in rows]

    def known(self, doc_ids: Iterable[str]) -> set[str]:
        """Return the ids in `doc_ids` that the corpus contains."""
        return {row[0] for row in self._lookup("doc_id", "doc_id", list(dict.fromkeys(doc_ids)))}

    def ids_at(self, positions: Iterable[int]) -> list[str]:
        """Return the doc_ids at these positions, in the order of `positions`.

        Raises:
            DataError: the corpus does not have such a position.
        """
        wanted = [int(position) for position in positions]
        found = dict(self._lookup("position, doc_id", "position", list(dict.fromkeys(wanted))))
        try:
            return [found[position] for position in wanted]
        except KeyError as error:
            raise DataError(f"the corpus has no position {error}", where=self.path) from error

    def id_ranks(self) -> SmallInts:
        """Return, for each position, the rank of its doc_id among all doc_ids in ascending order; shape (n,)."""
        count = len(self)
        with _faults(self.path):
            rows = self._connection.execute("SELECT position FROM passages ORDER BY doc_id")
            order = np.fromiter((row[0] for row in rows), dtype=np.int32, count=count)
        ranks = np.empty(count, dtype=np.int32)
        ranks[order] = np.arange(count, dtype=np.int32)
        return ranks

    def contents(self, start: int, stop: int) -> list[str]:
        """Return `Passage.content` at the positions start <= position < stop."""
        return [passage.content for passage in self.slice(start, stop)]

    def slice(self, start: int, stop: int) -> list[Passage]:
        """Return the passages at the positions start <= position < stop."""
        with _faults(self.path):
            rows = self._connection.execute(
                f"SELECT {COLUMNS} FROM passages WHERE position >= ? AND position < ? ORDER BY position",  # noqa: S608
                (start, stop),
            )
            return [passage_of(row) for row in rows]

    def sample(self, count: int) -> list[str]:
        """Return `Passage.content` of up to `count` passages, evenly spaced over the corpus."""
        count = min(count, len(self))
        places = [number * len(self) // count for number in range(count)]
        return [self.contents(place, place + 1)[0] for place in places]

    def close(self) -> None:
        """Close the file. May be called twice."""
        self._connection.close()

    def __enter__(self) -> PassageStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _rows(self) -> Iterator[Row]:
        yield from self._connection.execute(f"SELECT {COLUMNS} FROM passages ORDER BY position")  # noqa: S608

    def _lookup(self, columns: str, key: str, values: Sequence[str | int]) -> Iterator[tuple[Any, ...]]:
        with _faults(self.path):
            for start in range(0, len(values), LOOKUP):
                part = values[start : start + LOOKUP]
                marks = ",".join("?" * len(part))
                yield from self._connection.execute(
                    f"SELECT {columns} FROM passages WHERE {key} IN ({marks})",  # noqa: S608 - column names are from this module
                    part,
                )


def _checked_meta(connection: sqlite3.Connection, path: Path) -> dict[str, str]:
    """Return the meta table of a store after checking that the file is complete.

    Raises:
        DataError, sqlite3.Error: the file is not a store, or is damaged.
    """
    meta: dict[str, str] = dict(connection.execute("SELECT key, value FROM meta"))
    pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    last = connection.execute("SELECT max(position) FROM passages").fetchone()[0]
    whole = meta.keys() >= META_KEYS and meta["cleaned"].isdecimal()
    if not whole or meta["format"] != FORMAT or last is None or meta["count"] != str(last + 1):
        raise _damaged(path, "not a passage store of this version")
    if pages * size != path.stat().st_size:
        raise _damaged(path, "the file is truncated")
    return meta


def _damaged(path: Path, why: str) -> DataError:
    return DataError(
        f"the passage store is damaged ({why})", where=path, remedy="delete the file; raggs builds it again"
    )


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    """Convert sqlite errors. A ValueError is converted, too: metadata is not JSON, or a row is not a passage."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # the caller used a closed store or another thread
    except (sqlite3.Error, ValueError) as error:
        raise (no_handles(path) if lacks_handles() else _damaged(path, str(error))) from error


class TextIds:
    """The ids of passages by their text, for systems that return texts instead of ids of the corpus.

    A text matches a passage if it equals the passage's text, or its title and text (raw or cleaned), apart from white
    space. If several passages have the same text, the first one in the corpus is found.

    Args:
        passages: the corpus, read once. Memory: about 150 bytes per passage.
    """

    def __init__(self, passages: PassageStore) -> None:
        self._ids: dict[bytes, str] = {}
        for passage in passages:
            for text in (passage.text, passage.raw, passage.content):
                self._ids.setdefault(_text_key(text), passage.doc_id)

    def find(self, texts: Iterable[str]) -> list[str | None]:
        """Return the id of each text, or None if no passage has this text."""
        return [self._ids.get(_text_key(text)) for text in texts]


def _text_key(text: str) -> bytes:
    return hashlib.blake2b(" ".join(text.split()).encode("utf-8", "surrogatepass"), digest_size=16).digest()
