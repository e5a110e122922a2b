"""Systems that `raggs eval` queries instead of reading their lists: a search service or a Python function in a YAML
file.

The file contains one retriever, in the form of an entry of `retrieve.retrievers`. raggs sends the text of each judged
query to it, and the ids of its hits must be those of the labels. No corpus is needed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from raggs.base.adapter import OneOf
from raggs.base.artifacts import EmbedRecord, Passage
from raggs.base.cache import Cache
from raggs.base.errors import UsageError
from raggs.base.loops import open_loop
from raggs.base.settings import Settings
from raggs.base.text import plural
from raggs.config.load import load_settings
from raggs.golden.base import GoldenSet
from raggs.golden.sources import NamedSystem
from raggs.metrics.columns import Run
from raggs.parts import retrievers
from raggs.parts.retrievers import Retriever, RetrieverConfig, RetrieverContext, no_embedder

TYPES = ("http", "python")  # retrievers that need only the text of a query


def _needs_only_text(adapter: type[Retriever]) -> bool:
    return adapter.Config.model_fields["type"].default in TYPES


class SearchSystemFile(Settings):
    """Contents of a YAML file with a retriever that `raggs eval` queries."""

    retriever: Annotated[RetrieverConfig, OneOf(retrievers.REGISTRY, _needs_only_text)]


class UncheckedPassages:
    """Passages without a corpus: every id may exist, and no text is known."""

    content_hash = ""
    file = None
    folded = False
    cleaned = None

    def __len__(self) -> int:
        return 0

    def get(self, doc_ids: Iterable[str]) -> Mapping[str, Passage]:
        """Raise an error: texts are unknown."""
        raise UsageError("a system of raggs eval has no texts of passages", remedy="return ids of passages")

    def known(self, doc_ids: Iterable[str]) -> set[str]:
        """Return all ids."""
        return set(doc_ids)

    def sample(self, count: int) -> list[str]:
        """Return no texts."""
        return []

    def close(self) -> None:
        """Do nothing."""


def search_system(name: str, path: Path, golden: GoldenSet, qids: Sequence[str]) -> NamedSystem:
    """Search all judged queries, and return the lists as a system.

    Args:
        name: name of the system; empty for the name in the file, or the file's own name.
        path: YAML file with `retriever`.
        qids: ids of the judged queries.

    Raises:
        UsageError: the golden set lacks the text of a query, or hits are identified by text.
        ConfigError: the file is invalid.
        RaggsError: the service or function failed.
    """
    config = load_settings(SearchSystemFile, path)[0].retriever
    if retrievers.REGISTRY.of(config).whole_corpus(config):
        raise UsageError(
            f"{path}: hits cannot be identified by their texts without a corpus",
            remedy="set id instead of text, or use the retriever in a run: raggs run",
        )
    queries = list(_records(golden, qids))
    with tempfile.TemporaryDirectory() as folder, open_loop() as loop:  # every evaluation searches again
        context = RetrieverContext(
            UncheckedPassages(), qids, no_embedder, "", 0, Cache(Path(folder)), lambda *_: None, loop=lambda: loop
        )
        retriever = retrievers.REGISTRY.of(config)(config, context)
        try:
            retriever.check()
            lists = {
                query.qid: {hit.doc_id: hit.score for hit in hits}
                for query, hits in zip(queries, retriever.search(queries), strict=True)
            }
        finally:
            retriever.close()
    return NamedSystem(name or config.name or path.stem, str(path), Run.of(lists))


def _records(golden: GoldenSet, qids: Sequence[str]) -> Iterator[EmbedRecord]:
    known = {query.qid: query for query in golden.queries()}
    if missing := [qid for qid in qids if qid not in known]:
        raise UsageError(
            f"{golden.source}: no text of {plural(len(missing), 'judged query')}, such as {missing[0]}",
            remedy="add a file of queries next to the labels, or pass a run directory as golden set",
        )
    for qid in qids:
        text = known[qid].text
        yield EmbedRecord(
            qid=qid,
            text=text,
            rewrite=text,
            bm25_text=text,
            language=known[qid].language or "",
            embedding=(),
            embedder="",
        )
