"""User functions as parts: any search engine or model in a few lines, without a package around it.

Retriever:

    def search(query: str, k: int) -> list[tuple[str, float]]: ...   # passage ids with scores, higher is better
    def search(query: str, k: int) -> list[str]: ...                 # or only ids, best first

An object with a method `invoke(query)` (LangChain) or `retrieve(query)` (LlamaIndex) is a retriever, too. The first k
documents that it returns count. `id_field` names the entry of a document's metadata with the passage id. Without
`id_field`, raggs uses the first of these that the corpus contains: `doc_id` in the metadata, the document's id, or its
text (unless the corpus is on a server).

Reranker, which may be a coroutine function; its results are not cached:

    def rerank(query: str, passages: list[str]) -> list[float]: ...   # one score per passage, higher is better

Embedder, whose vectors are normalised and cached by the content of the function's file:

    def embed(texts: list[str]) -> "array of shape (len(texts), dims)": ...

Chunker, which may return the texts of the chunks instead of offsets. raggs then searches the document for each text,
after the start of the previous chunk:

    def cut(text: str) -> list[tuple[int, int]]: ...   # start and end of each chunk, in characters, in order

Judge, whose functions may be coroutine functions, so that calls run concurrently:

    def grade(query: str, passage: str) -> int: ...                    # 1 to 5
    def order(query: str, passages: list[str]) -> list[int]: ...       # optional: positions, best first

Rerankers and judges receive each passage as its title and text. If a judge has no function `order`, its passages are
ordered by grade. Passages of equal grade are ordered by a hash of their content, so that the order of presentation has
no effect. If a function of a judge raises an exception or returns an invalid value, the judgment fails with an error,
without grade or order.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from numbers import Real
from operator import index
from typing import TYPE_CHECKING, ClassVar, Literal, SupportsIndex

from pydantic import Field

from raggs.base.adapter import CallableConfig, Target, UserFunction
from raggs.base.arrays import unit_rows
from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, Passage, Query
from raggs.base.errors import DataError, ProviderError
from raggs.base.hashing import hash_bytes
from raggs.base.settings import AddedLater, Causes
from raggs.base.text import fold_quotes, plural, shorten
from raggs.parts.chunkers import Chunker, ChunkerConfig, Document, TextRange
from raggs.parts.embedders import Embedder, EmbedderConfig
from raggs.parts.indexes.passages import PassageStore, TextIds
from raggs.parts.judges import Judge, JudgeContext, Judgment, Ordering, Task
from raggs.parts.rerankers import Reranker, RerankerConfig, Reranking
from raggs.parts.retrievers import Hit, Retriever, RetrieverConfig

if TYPE_CHECKING:
    from raggs.base.arrays import Floats, Vectors
    from raggs.base.artifacts import EmbedRecord

RESULT_REMEDY = "return doc_ids of the corpus, best first, or pairs of doc_id and score"


FRAMEWORK_METHODS = ("invoke", "retrieve")  # methods of retrievers of LangChain and LlamaIndex, called with the query
FRAMEWORK_REMEDY = "set id_field to the metadata key with the passage id, or retrieve from the same passages"


class PythonRetriever(Retriever):
    """Your Python function search(query, k), or a retriever of LangChain or LlamaIndex.

    A function returns doc_ids, or pairs of doc_id and score.
    """

    class Config(RetrieverConfig, CallableConfig):
        type: Literal["python"] = "python"
        id_field: AddedLater[str | None] = Field(
            None,
            description="metadata key with the passage id, for retrievers of LangChain and LlamaIndex; null: doc_id in "
            "the metadata, the document's id, or its text",
        )

    config: Config

    def own_causes(self) -> Causes:
        return {**super().own_causes(), **self._function.causes()}

    def check(self) -> None:
        self._function.load()

    def search(self, queries: Sequence[EmbedRecord]) -> Iterator[list[Hit]]:
        for query in queries:
            about = f"query {query.qid} ({shorten(query.rewrite, 40)!r})"
            if self._function.is_method:
                found = self._function(about, query.rewrite)
            else:
                found = self._function(about, query.rewrite, self.config.k)
            yield self._hits(found, about)

    @cached_property
    def _function(self) -> UserFunction:
        return UserFunction(self.config.callable, self.config.folder, FRAMEWORK_METHODS)

    @cached_property
    def _texts(self) -> TextIds | None:
        """The ids of passages by text; None if the passages are on a server."""
        return TextIds(self.context.passages) if isinstance(self.context.passages, PassageStore) else None

    def _hits(self, found: object, about: str) -> list[Hit]:
        """Check and return the hits of the function.

        Raises:
            DataError: the function returned no list of hits, repeated a passage, or returned one that the corpus does
                not contain.
        """
        if not isinstance(found, Sequence) or isinstance(found, (str, bytes)):
            raise self._wrong(f"returned {type(found).__name__} instead of a list for {about}")
        hits = [self._hit(each, rank, about) for rank, each in enumerate(islice(found, self.config.k), start=1)]
        ids = [hit.doc_id for hit in hits]
        if twice := next((doc_id for doc_id in ids if ids.count(doc_id) > 1), None):
            raise self._wrong(f"returned {twice!r} twice for {about}")
        if unknown := sorted(set(ids) - self.context.passages.known(ids)):
            raise self._wrong(f"returned {unknown[0]!r} for {about}, which the corpus does not contain")
        return sorted(hits, key=lambda hit: (-hit.score, hit.doc_id))

    def _hit(self, each: object, rank: int, about: str) -> Hit:
        if isinstance(each, str):
            return Hit(each, 1 / rank)
        if (document := _document(each)) is not None:
            given = document.score
            score = 1 / rank if given is None or not math.isfinite(given) else given
            return Hit(self._passage_of(document, about), score)
        doc_id, number = each if isinstance(each, Sequence) and len(each) == 2 else (None, None)
        if not isinstance(doc_id, str) or not isinstance(number, Real):
            raise self._wrong(
                f"returned {shorten(repr(each), 60)} for {about}, which is neither a doc_id nor a pair of"
                " doc_id and score"
            )
        if not math.isfinite(number):
            raise self._wrong(f"returned score {number} of {doc_id!r} for {about}")
        return Hit(doc_id, float(number))

    def _passage_of(self, document: _FrameworkDocument, about: str) -> str:
        """Return the id of the document's passage.

        Raises:
            DataError: no passage of the corpus has the document's id, or its text if `id_field` is not set.
        """
        key = self.config.id_field
        named = [document.metadata.get(key)] if key is not None else [document.metadata.get("doc_id"), *document.ids]
        ids = [str(each) for each in named if isinstance(each, str | int) and not isinstance(each, bool) and each != ""]
        known = self.context.passages.known(ids)
        if (found := next((each for each in ids if each in known), None)) is not None:
            return found
        if key is None and self._texts is not None and (by_text := self._texts.find([document.text])[0]) is not None:
            return by_text
        shown = f"metadata {key} {ids[0] if ids else None!r}" if key is not None else f"id {', '.join(ids) or None!r}"
        raise DataError(
            f"{self.config.callable} returned a document for {about} that is not in the corpus: {shown}, "
            f"text {shorten(document.text, 40)!r}",
            remedy=FRAMEWORK_REMEDY,
        )

    def _wrong(self, problem: str) -> DataError:
        return DataError(f"{self.config.callable} {problem}", remedy=RESULT_REMEDY)


@dataclass(frozen=True)
class _FrameworkDocument:
    """A document of LangChain, or a node of LlamaIndex. `score` is None if the framework gives none."""

    ids: tuple[object, ...]
    text: str
    metadata: Mapping[str, object]
    score: float | None


def _document(found: object) -> _FrameworkDocument | None:
    """Return `found` as a document of a framework; None if it is not one."""
    node = getattr(found, "node", found)
    text = getattr(node, "page_content", getattr(node, "text", None))
    metadata = getattr(node, "metadata", None)
    if not isinstance(text, str) or not isinstance(metadata, Mapping):
        return None
    score = getattr(found, "score", None)
    ids = tuple(getattr(node, name, None) for name in ("id", "id_", "node_id"))
    return _FrameworkDocument(ids, text, metadata, float(score) if isinstance(score, Real) else None)


UNORDERED = (str, bytes, Mapping, Set)


class PythonReranker(Reranker):
    """Your Python function f(query, passages), which returns one score per passage."""

    INDEPENDENT: ClassVar[bool] = False  # whether a score depends on the other passages is unknown for user functions

    class Config(RerankerConfig, CallableConfig):
        type: Literal["python"] = "python"

    config: Config

    def own_causes(self) -> Causes:
        return {**super().own_causes(), **self._function.causes()}

    def check(self) -> None:
        self._function.load()

    async def rerank(self, query: str, language: str, passages: Sequence[Passage]) -> Reranking:
        if not passages:
            return Reranking(())
        about = f"the query {shorten(query, 40)!r} with {plural(len(passages), 'passage')}"
        start = time.perf_counter()
        found = await self._function.ask(about, query, [passage.content for passage in passages])
        ms = (time.perf_counter() - start) * 1000
        return Reranking.of(passages, self._scores(found, passages, about), ms=ms)

    @cached_property
    def _function(self) -> UserFunction:
        return UserFunction(self.config.callable, self.config.folder)

    def _scores(self, found: object, passages: Sequence[Passage], about: str) -> list[float]:
        """Check and return the scores of the function.

        Raises:
            ProviderError: the function did not return one finite number per passage.
        """
        try:
            scores = list(found) if isinstance(found, Collection) and not isinstance(found, UNORDERED) else None
        except TypeError:  # NumPy's zero-dimensional arrays have no length
            scores = None
        if scores is None:
            raise self._wrong(f"returned {type(found).__name__} instead of a list of scores for {about}")
        if len(scores) != len(passages):
            raise self._wrong(f"returned {plural(len(scores), 'score')} for {about}")
        return [
            self._score(score, f"{passage.doc_id} and {about}") for score, passage in zip(scores, passages, strict=True)
        ]

    def _score(self, score: object, about: str) -> float:
        if isinstance(score, bool) or not isinstance(score, Real):
            raise self._wrong(f"returned {shorten(repr(score), 60)}, which is not a number, for {about}")
        try:
            found = float(score)
        except OverflowError:
            found = math.inf
        if not math.isfinite(found):
            raise self._wrong(f"returned score {shorten(repr(score), 60)} for {about}")
        return found

    def _wrong(self, problem: str) -> ProviderError:
        return ProviderError(f"{self.config.callable} {problem}", remedy="return one finite score per passage")


class PythonEmbedder(Embedder):
    """Your Python function embed(texts), which returns an array with one row per text."""

    class Config(EmbedderConfig, CallableConfig):
        type: Literal["python"] = "python"
        dims: int = Field(ge=1, description="dimensions of a vector")

    config: Config

    def own_causes(self) -> Causes:
        return {**super().own_causes(), **self._function.causes()}

    @property
    def dims(self) -> int:
        return self.config.dims

    def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        vectors = np.zeros((len(texts), self.dims), dtype=np.float32)
        for start in range(0, len(texts), self.config.batch):
            batch = list(map(fold_quotes, texts[start : start + self.config.batch]))
            found = self._checked(self._function(_describe_batch(batch), batch), batch)
            vectors[start : start + len(batch)] = unit_rows(found)
        return vectors

    @cached_property
    def _function(self) -> UserFunction:
        return UserFunction(self.config.callable, self.config.folder)

    def _checked(self, found: object, batch: list[str]) -> Floats:
        """Check and return the array of the function, shape (len(batch), dims).

        Raises:
            ProviderError: the array has another shape or type, or contains NaN or infinity.
        """
        import numpy as np

        try:
            given = np.asarray(found)
            if given.dtype.kind not in "fiubO":
                raise TypeError(f"{given.dtype} does not contain real numbers")
            rows: Floats = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._wrong(f"returned {type(found).__name__} instead of an array of numbers", batch) from error
        if rows.shape != (len(batch), self.dims):
            raise self._wrong(f"returned an array of shape {rows.shape} instead of {(len(batch), self.dims)}", batch)
        if not np.isfinite(rows).all():
            place = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise self._wrong("returned a vector that is not finite", batch[place : place + 1])
        return rows

    def _wrong(self, problem: str, batch: list[str]) -> ProviderError:
        return ProviderError(
            f"{self.config.callable} {problem} for {_describe_batch(batch)}", remedy="fix the function"
        )


def _describe_batch(batch: list[str]) -> str:
    more = f" and {len(batch) - 1} more" if len(batch) > 1 else ""
    return f"the text {shorten(batch[0], 40)!r}{more}"


class PythonChunker(Chunker):
    """Your Python function f(text), which returns start and end of each chunk, or its exact text."""

    class Config(ChunkerConfig, CallableConfig):
        type: Literal["python"] = "python"

    config: Config

    def own_causes(self) -> Causes:
        return {**super().own_causes(), **self._function.causes()}

    def check(self) -> None:
        self._function.load()

    def places(self, document: Document) -> Iterator[TextRange]:
        found = self._function(document.source, document.text)
        if not isinstance(found, Iterable) or isinstance(found, UNORDERED):
            raise self._wrong(f"returned {type(found).__name__} instead of a list of ranges for {document.source}")
        start = end = 0
        for each in self._function.iterate(document.source, found):
            if isinstance(each, str):
                start, end = self._found(document, each, start, end)
            else:
                start, end = self._place(each, document)
            yield start, end

    @cached_property
    def _function(self) -> UserFunction:
        return UserFunction(self.config.callable, self.config.folder)

    def _found(self, document: Document, chunk: str, start: int, end: int) -> TextRange:
        """Return the range of a chunk's text, which starts after the start of the previous chunk."""
        at = document.text.find(chunk, end)
        overlapping = document.text.find(chunk, start + 1 if end else 0, end + len(chunk)) if end else -1
        at = overlapping if overlapping >= 0 else at
        if at < 0:
            raise self._wrong(
                f"returned {shorten(repr(chunk), 60)}, which is not in {document.source} after character {start}"
            )
        return at, at + len(chunk)

    def _place(self, value: object, document: Document) -> TextRange:
        if isinstance(value, Sequence) and len(value) == 2:
            try:
                return index(value[0]), index(value[1])
            except TypeError:
                pass
        raise self._wrong(f"returned {shorten(repr(value), 60)}, which is not a range, for {document.source}")

    def _wrong(self, problem: str) -> ProviderError:
        return ProviderError(f"{self.config.callable} {problem}", remedy="return start and end in characters per chunk")


class PythonJudge(Judge):
    """Your Python functions: grade(query, passage) returns 1 to 5; order(query, passages) is optional."""

    class Config(CallableConfig):
        type: Literal["python"] = "python"
        order: Target | None = Field(
            None, description='"module:function" that orders passages; null: passages are ordered by grade'
        )

    config: Config

    def __init__(self, config: Config, context: JudgeContext) -> None:
        super().__init__(config, context)
        self._grade = UserFunction(config.callable, config.folder)
        self._order = None if config.order is None else UserFunction(config.order, config.folder)

    @property
    def name(self) -> str:
        return f"python {self.config.callable}"

    @property
    def reads(self) -> bool:
        return True

    def causes(self, task: Task) -> Causes:
        function = self._order if task == "order" and self._order is not None else self._grade
        found = {**self.own_causes(), **function.causes()}
        return found if task == "order" else {key: value for key, value in found.items() if key != "order"}

    def check(self, queries: Iterable[Query]) -> None:
        """Load the user's functions, so that an import error is raised before the first call."""
        for function in (self._grade, self._order):
            if function is not None:
                function.load()

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        about = f"query {query.qid}, passage {passage.doc_id}"
        try:
            grade = await self._grade.ask(about, query.text, passage.content)
        except ProviderError as error:
            return Judgment(None, error=error.message)
        whole = _as_integer(grade)
        if whole is None or not MIN_GRADE <= whole <= MAX_GRADE:
            said = shorten(repr(grade), 60)
            problem = f"returned {said} for {about} instead of a whole number from {MIN_GRADE} to {MAX_GRADE}"
            return Judgment(None, error=f"{self.config.callable} {problem}", raw=said)
        return Judgment(whole)

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        if self._order is None:
            return await self._by_grades(query, passages)
        about = f"query {query.qid}, passages {', '.join(passage.doc_id for passage in passages)}"
        try:
            found = await self._order.ask(about, query.text, [passage.content for passage in passages])
        except ProviderError as error:
            return Ordering(None, error=error.message)
        order = [_as_integer(place) for place in found] if isinstance(found, Iterable) else []
        places = tuple(place for place in order if place is not None)
        if len(order) != len(places) or sorted(places) != list(range(len(passages))):
            said = shorten(repr(found), 60)
            problem = f"returned {said} for {about} instead of each position from 0 to {len(passages) - 1} once"
            return Ordering(None, error=f"{self._order.target} {problem}", raw=said)
        return Ordering(places)

    async def _by_grades(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        grades: list[int] = []
        for passage in passages:
            judgment = await self.grade(query, passage)
            if judgment.grade is None:
                return Ordering(None, error=judgment.error, raw=judgment.raw)
            grades.append(judgment.grade)

        def key(place: int) -> tuple[int, str, str]:
            return -grades[place], hash_bytes(passages[place].content.encode()), passages[place].doc_id

        return Ordering(tuple(sorted(range(len(passages)), key=key)))


def _as_integer(value: object) -> int | None:
    """Return `value` as an int, including NumPy integers; None if it is not an integer."""
    return None if isinstance(value, bool) or not isinstance(value, SupportsIndex) else index(value)
