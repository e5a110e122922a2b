"""The output of any other system, read from a TREC run file."""

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

LINES_PER_LOOKUP = 1000  # lines of the file per lookup of doc_ids in the corpus


class RunFileRetriever(Retriever):
    """A TREC run file of any system, sorted by score; it is an error if most scores rise with the rank."""

    class Config(RetrieverConfig):
        type: Literal["runfile"] = "runfile"
        path: InputPath = Field(description="TREC run file (qid Q0 docid rank score tag); may be gzipped")

    config: Config

    @cached_property
    def _hits(self) -> dict[str, list[Hit]]:
        """The best k hits by query id: by descending score, then by ascending doc_id."""
        found: dict[str, list[Hit]] = {}
        lines = read_scored(self.config.path)
        while block := list(islice(lines, LINES_PER_LOOKUP)):
            known = self.context.passages.known(line.doc_id for line in block)
            for line in block:
                if line.doc_id not in known:
                    remedy = "use a run file for this corpus"
                    raise DataError(
                        f"the corpus does not contain passage {line.doc_id!r}",
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
        """Yield the file's best `k` rows per query; ties are ordered by doc_id."""
        for query in queries:
            yield self._hits.get(query.qid, [])

    def _check(self, found: Mapping[str, list[Hit]]) -> None:
        """Raise an error if the run file is empty or has no query of the run."""
        if not found:
            raise DataError("the run file is empty", where=self.config.path, remedy="check the file")
        if found.keys().isdisjoint(self.context.queries):
            raise DataError(
                f"the run file contains no query of this run: it has {_first_ids(found)}, "
                f"the run has {_first_ids(self.context.queries)}",
                where=self.config.path,
                remedy="use the same query ids in the run file and the queries",
            )


def _first_ids(qids: Iterable[str]) -> str:
    return ", ".join(islice(qids, 3)) + ", ..."
