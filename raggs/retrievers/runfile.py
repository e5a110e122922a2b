"""The output of any other system, read from a TREC run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from raggs.errors import DataError
from raggs.retrievers.base import Hit, RetrieverAdapter, RetrieverContext
from raggs.settings import InputPath, Settings
from raggs.trec import read_scored

if TYPE_CHECKING:
    from raggs.artifacts import EmbedRecord

BLOCK = 1000  # lines whose doc_ids are looked up at a time


class RunFileRetriever(RetrieverAdapter):
    """A TREC run of any system, sorted by score; its rank column is not used."""

    class Config(Settings):
        type: Literal["runfile"] = "runfile"
        path: InputPath = Field(description="qid Q0 docid rank score tag; may be .gz")
        name: str | None = Field(None, description="its name in records and weights; the type if absent")
        k: int = Field(50, ge=1, description="hits for each query")

    def __init__(self, config: Config, context: RetrieverContext) -> None:
        self._config = config
        self._context = context

    @cached_property
    def _hits(self) -> dict[str, list[Hit]]:
        """The best k hits by query, score descending, then doc_id ascending."""
        found: dict[str, list[Hit]] = {}
        lines = read_scored(self._config.path)
        while block := list(islice(lines, BLOCK)):
            known = self._context.passages.known(line.doc_id for line in block)
            for line in block:
                if line.doc_id not in known:
                    remedy = "use a run over this corpus"
                    raise DataError(
                        f"the corpus has no passage {line.doc_id!r}",
                        where=self._config.path,
                        line=line.line,
                        remedy=remedy,
                    )
                found.setdefault(line.qid, []).append(Hit(line.doc_id, line.score))
        self._check(found)
        return {
            qid: sorted(hits, key=lambda hit: (-hit.score, hit.doc_id))[: self._config.k] for qid, hits in found.items()
        }

    def search(self, queries: Sequence[EmbedRecord]) -> Iterator[list[Hit]]:
        for query in queries:
            yield self._hits.get(query.qid, [])

    def _check(self, found: Mapping[str, list[Hit]]) -> None:
        """Refuse a run about other queries only."""
        if not found:
            raise DataError("the run is empty", where=self._config.path, remedy="check the file")
        if found.keys().isdisjoint(self._context.queries):
            raise DataError(
                f"no query of the run is known: it is about {_some(found)}, "
                f"the queries are {_some(self._context.queries)}",
                where=self._config.path,
                remedy="give the run and the queries the same ids",
            )


def _some(qids: Iterable[str]) -> str:
    return ", ".join(islice(qids, 3)) + ", ..."
