"""Are the texts of the pools those of the corpus? Held against a passage store, where the cache has that corpus's.

A store is known by the hash of its content, which the lock of merge names; it is only read. Whether its rows still have
that hash is for whoever owns the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from raggs.base.artifacts import MergeRecord
from raggs.base.errors import RaggsError
from raggs.base.text import shorten
from raggs.parts.indexes.passages import PassageStore
from raggs.runs.manifests.findings import Finding
from raggs.runs.manifests.opened import OpenedRun

FILE = "merge.jsonl"
BATCH = 500
SHOWN = 3


def store_of(run: OpenedRun, files: Iterable[Path]) -> PassageStore | None:
    """The passage store of a run's corpus among some files, open; None where it is not there."""
    lock = run.manifest.stages.get("merge")
    wanted = lock.components.get("corpus") if lock else None
    for file in files:
        try:
            store = PassageStore.open(file)
        except (RaggsError, OSError):
            continue
        if store.content_hash == wanted:
            return store
        store.close()
    return None


def text_findings(run: OpenedRun, store: PassageStore) -> Iterator[Finding]:
    """The first lines of merge.jsonl whose passages the corpus does not have so."""
    count = 0
    try:
        for finding in _differences(run, store):
            count += 1
            if count <= SHOWN:
                yield finding
    except RaggsError as error:
        yield Finding(FILE, error.line, f"cannot be compared with the corpus: {error.message}")
    if count > SHOWN:
        yield Finding(FILE, None, f"and {count - SHOWN:,} more lines are not as the corpus has them")


def _differences(run: OpenedRun, store: PassageStore) -> Iterator[Finding]:
    batch: list[tuple[int, MergeRecord]] = []
    for numbered in enumerate(run.typed("merge", MergeRecord), start=1):
        batch.append(numbered)
        if len(batch) == BATCH:
            yield from _compared(batch, store)
            batch = []
    yield from _compared(batch, store)


def _compared(batch: Sequence[tuple[int, MergeRecord]], store: PassageStore) -> Iterator[Finding]:
    known = store.get(store.known(record.doc_id for _, record in batch))
    for number, record in batch:
        passage = known.get(record.doc_id)
        if passage is None:
            yield Finding(FILE, number, f"the corpus has no passage {record.doc_id!r}")
        elif passage != record.passage:
            mine, theirs = record.passage.model_dump(), passage.model_dump()
            field = next(name for name in mine if mine[name] != theirs[name])
            told = f"{shorten(str(mine[field]), 60)!r}, the corpus has {shorten(str(theirs[field]), 60)!r}"
            yield Finding(FILE, number, f"{field} of {record.doc_id} is {told}")
