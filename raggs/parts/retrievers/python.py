"""A Python function as a retriever: any search engine in a few lines, without a package around it.

def search(query: str, k: int) -> list[tuple[str, float]]: ...   # passages' ids with scores, higher is better
def search(query: str, k: int) -> list[str]: ...                 # or only ids, best first
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from numbers import Real
from typing import TYPE_CHECKING, Literal

from raggs.base.adapter import CallableConfig, UserFunction
from raggs.base.errors import DataError
from raggs.base.settings import Causes
from raggs.base.text import shorten
from raggs.parts.retrievers.base import Hit, Retriever, RetrieverConfig

if TYPE_CHECKING:
    from raggs.base.artifacts import EmbedRecord

REMEDY = "give doc_ids of the corpus, best first, or pairs of doc_id and score"


class PythonRetriever(Retriever):
    """A Python function of yours: search(query, k) gives doc_ids, or pairs of doc_id and score."""

    class Config(RetrieverConfig, CallableConfig):
        type: Literal["python"] = "python"

    config: Config

    def own_causes(self) -> Causes:
        return {**super().own_causes(), **self._function.causes()}

    def check(self) -> None:
        self._function.load()

    def search(self, queries: Sequence[EmbedRecord]) -> Iterator[list[Hit]]:
        for query in queries:
            about = f"query {query.qid} ({shorten(query.rewrite, 40)!r})"
            found = self._function(about, query.rewrite, self.config.k)
            yield self._hits(found, about)

    @cached_property
    def _function(self) -> UserFunction:
        return UserFunction(self.config.callable, self.config.folder)

    def _hits(self, found: object, about: str) -> list[Hit]:
        """What the function gave, checked.

        Raises:
            DataError: it is no list of hits, names a passage twice or one that the corpus does not have.
        """
        if not isinstance(found, Sequence) or isinstance(found, (str, bytes)):
            raise self._wrong(f"gave {type(found).__name__}, not a list, on {about}")
        hits = [self._hit(each, rank, about) for rank, each in enumerate(islice(found, self.config.k), start=1)]
        ids = [hit.doc_id for hit in hits]
        if twice := next((doc_id for doc_id in ids if ids.count(doc_id) > 1), None):
            raise self._wrong(f"gave {twice!r} twice on {about}")
        if unknown := sorted(set(ids) - self.context.passages.known(ids)):
            raise self._wrong(f"gave {unknown[0]!r} on {about}, which the corpus does not have")
        return sorted(hits, key=lambda hit: (-hit.score, hit.doc_id))

    def _hit(self, each: object, rank: int, about: str) -> Hit:
        if isinstance(each, str):
            return Hit(each, 1 / rank)
        doc_id, score = each if isinstance(each, Sequence) and len(each) == 2 else (None, None)
        if not isinstance(doc_id, str) or not isinstance(score, Real):
            raise self._wrong(
                f"gave {shorten(repr(each), 60)} on {about}, which is no doc_id and no pair of one and a score"
            )
        if not math.isfinite(score):
            raise self._wrong(f"gave {doc_id!r} the score {score} on {about}")
        return Hit(doc_id, float(score))

    def _wrong(self, problem: str) -> DataError:
        return DataError(f"{self.config.callable} {problem}", remedy=REMEDY)
