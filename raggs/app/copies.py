"""What the cache beside a run keeps of its corpus: the passages, and the indexes that its retrievers searched.

A run can be right and what the next run will read be altered: texts in the passage store, scores of bm25, vectors. A
corpus of up to `WHOLE` passages is read from end to end; of a larger one as many stand for all, so that an audit stays
quick. Nothing is built, and what is not there is not missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from raggs.base.errors import RaggsError
from raggs.parts import retrievers
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.indexes.places import Places
from raggs.runs.manifests.findings import Finding
from raggs.runs.manifests.opened import OpenedRun
from raggs.runs.manifests.params import parameters
from raggs.runs.manifests.texts import store_of, text_findings
from raggs.stages.retrieve import RetrieveConfig

NO_STORE = "the texts of the pools (the cache has no passages of this corpus)"
WHOLE = 100_000  # passages that are all read, in about a second


@dataclass(frozen=True)
class Copies:
    """What was found wrong, and what was not looked at."""

    findings: tuple[Finding, ...] = ()
    unchecked: tuple[str, ...] = ()


def cached_copies(run: OpenedRun) -> Copies:
    """Hold a run and the caches beside it against each other."""
    places = Places.of(run.folder.parent)
    store = store_of(run, sorted(places.corpora.glob("*.sqlite")))
    if store is None:
        return Copies(unchecked=(NO_STORE,))
    with closing(store):
        texts = text_findings(run, store) if run.store.path("merge").is_file() else iter(())
        found = (*texts, *_passages(store, places), *_indexes(run, store, places))
        return Copies(found, tuple(_unread(store)))


def _passages(store: PassageStore, places: Places) -> Iterator[Finding]:
    try:
        store.verify(WHOLE)
    except RaggsError as error:
        yield Finding(_shown(store.path, places), None, f"{error.message}; {error.remedy}", "told")


def _indexes(run: OpenedRun, store: PassageStore, places: Places) -> Iterator[Finding]:
    """What is wrong with the indexes of the run's retrievers; a manifest that names none is found elsewhere."""
    lock = run.manifest.stages.get("retrieve")
    try:
        specs = parameters(RetrieveConfig, "retrieve", lock.params).retrievers if lock else ()
        for spec in specs:
            for folder, fault in retrievers.REGISTRY.of(spec).index_faults(spec, store, places):
                said = f"the index is damaged ({fault}); delete the folder, and it is built again"
                yield Finding(_shown(folder, places), None, said, "told")
    except RaggsError:
        return


def _unread(store: PassageStore) -> Iterator[str]:
    if len(store) > WHOLE:
        yield (
            f"all passages of the cache: {WHOLE:,} of {len(store):,} were read, spread evenly, and those of the pools; "
            "of large index files, blocks"
        )


def _shown(path: Path, places: Places) -> str:
    return str(path.relative_to(places.root.parent))
