"""The output of any other system, read from a TREC run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from raggs.base.errors import DataError
from raggs.base.settings import InputPath
from raggs.base.trec import read_scored
from raggs.parts.retrievers import Hit, Retriever, RetrieverConfig

if TYPE_CHECKING:
    from raggs.base.artifacts import EmbedRecord

LINES_PER_LOOKUP = 1000  # lines whose doc_ids are looked up at a time


class RunFileRetriever(Retriever):
    """A TREC run of any system, sorted by score; scores that rise with the rank are an error."""

    class Config(RetrieverConfig):
        type: Literal["runfile"] = "runfile"
        path: InputPath = Field(description="qid Q0 docid rank score tag; may be .gz")

    config: Config

    @cached_property
    def _hits(self) -> dict[str, list[Hit]]:
        """The best k hits by query, score descending, then doc_id ascending."""
        found: dict[str, list[Hit]] = {}
        lines = read_scored(self.config.path)
        while block := list(islice(lines, LINES_PER_LOOKUP)):
            known = self.context.passages.known(line.doc_id for line in block)
            for line in block:
                if line.doc_id not in known:
                    remedy = "use a run over this corpus"
                    raise DataError(
                        f"the corpus has no passage {line.doc_id!r}",
                        where=self.config.path,
                        line=line.line,
                        remedy=remedy,
                    )
                found.setdefault(line.qid, []).append(Hit(line.doc_id, line.score))
        self._check(found)
        return {
            qid: sorted(hits, key=lambda hit: (-hit.score, hit.doc_id))[: self.config.k] for qid, hits in found.items()
        }

    def search(self, queries: Sequence[EmbedRecord]) -> Iterator[list[Hit]]:
        """The file's rows for each query, ties by doc_id, cut to `k`."""
        for query in queries:
            yield self._hits.get(query.qid, [])

    def _check(self, found: Mapping[str, list[Hit]]) -> None:
        """Refuse a run about other queries only."""
        if not found:
            raise DataError("the run is empty", where=self.config.path, remedy="check the file")
        if found.keys().isdisjoint(self.context.queries):
            raise DataError(
                f"no query of the run is known: it is about {_first_ids(found)}, "
                f"the queries are {_first_ids(self.context.queries)}",
                where=self.config.path,
                remedy="give the run and the queries the same ids",
            )


def _first_ids(qids: Iterable[str]) -> str:
    return ", ".join(islice(qids, 3)) + ", ..."
