"""A Python function as a retriever: any search engine in a few lines, without a package around it.

def search(query: str, k: int) -> list[tuple[str, float]]: ...   # passages' ids with scores, higher is better
def search(query: str, k: int) -> list[str]: ...                 # or only ids, best first

A Python function as a reranker: any model in a few lines, without a package around it.

    def rerank(query: str, passages: list[str]) -> list[float]: ...   # one score a passage, higher is better

It may be a coroutine function. A passage is its title and text. What it gives is not kept: a function may be anything.

A Python function as an embedder: any model in a few lines, without a package around it.

    def embed(texts: list[str]) -> "array of shape (len(texts), dims)": ...

Vectors are brought to unit length here. They are kept by the content of the function's file: a change embeds anew.

A Python function as a chunker: any way to cut in a few lines, without a package around it.

    def cut(text: str) -> list[tuple[int, int]]: ...   # where each chunk begins and ends, in characters, in order

It may give the chunks' texts instead, word for word: each is looked for from where the one before began.

Python functions as a judge: rules, a model of one's own, or somebody else's service.

    def grade(query: str, passage: str) -> int: ...                    # 1 to 5
    def order(query: str, passages: list[str]) -> list[int]: ...       # optional: positions, best first

Either may be a coroutine function; then many are asked at once. A passage is its title and text. Without `order`
passages go by their grades, equal ones by a hash of their content that no order of showing can bend. A function that
raises or gives anything else has failed on that passage or batch: the answer says so and holds no grade and no order.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
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
from raggs.base.settings import Causes
from raggs.base.text import fold_quotes, plural, shorten
from raggs.parts.chunkers import Chunker, ChunkerConfig, Document, TextRange
from raggs.parts.embedders import Embedder, EmbedderConfig
from raggs.parts.judges import Judge, JudgeContext, Judgment, Ordering, Task
from raggs.parts.rerankers import Reranker, RerankerConfig, Reranking
from raggs.parts.retrievers import Hit, Retriever, RetrieverConfig

if TYPE_CHECKING:
    from raggs.base.arrays import Floats, Vectors
    from raggs.base.artifacts import EmbedRecord

RESULT_REMEDY = "give doc_ids of the corpus, best first, or pairs of doc_id and score"


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
        return DataError(f"{self.config.callable} {problem}", remedy=RESULT_REMEDY)


UNORDERED = (str, bytes, Mapping, Set)


class PythonReranker(Reranker):
    """A Python function of yours: f(query, passages) gives a score for each passage."""

    INDEPENDENT: ClassVar[bool] = False  # nobody can know

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
        """What the function gave, checked.

        Raises:
            ProviderError: it is not one finite number for each passage.
        """
        try:
            scores = list(found) if isinstance(found, Collection) and not isinstance(found, UNORDERED) else None
        except TypeError:  # an array of no dimension
            scores = None
        if scores is None:
            raise self._wrong(f"gave {type(found).__name__}, not a list of scores, on {about}")
        if len(scores) != len(passages):
            raise self._wrong(f"gave {plural(len(scores), 'score')} on {about}")
        return [
            self._score(score, f"{passage.doc_id} on {about}") for score, passage in zip(scores, passages, strict=True)
        ]

    def _score(self, score: object, about: str) -> float:
        if isinstance(score, bool) or not isinstance(score, Real):
            raise self._wrong(f"gave {shorten(repr(score), 60)}, which is no number, for {about}")
        try:
            found = float(score)
        except OverflowError:
            found = math.inf
        if not math.isfinite(found):
            raise self._wrong(f"gave the score {shorten(repr(score), 60)} for {about}")
        return found

    def _wrong(self, problem: str) -> ProviderError:
        return ProviderError(f"{self.config.callable} {problem}", remedy="give one finite score for each passage")


class PythonEmbedder(Embedder):
    """A Python function of yours: embed(texts) gives an array with a row for each text."""

    class Config(EmbedderConfig, CallableConfig):
        type: Literal["python"] = "python"
        dims: int = Field(ge=1, description="length of a vector")

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
        """What the function gave, shape (len(batch), dims).

        Raises:
            ProviderError: it is no such array, or holds NaN or infinity.
        """
        import numpy as np

        try:
            given = np.asarray(found)
            if given.dtype.kind not in "fiubO":
                raise TypeError(f"{given.dtype} holds no real numbers")
            rows: Floats = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._wrong(f"gave {type(found).__name__}, which is no array of numbers", batch) from error
        if rows.shape != (len(batch), self.dims):
            raise self._wrong(f"gave an array of shape {rows.shape}, not {(len(batch), self.dims)},", batch)
        if not np.isfinite(rows).all():
            place = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise self._wrong("gave a vector that is not finite", batch[place : place + 1])
        return rows

    def _wrong(self, problem: str, batch: list[str]) -> ProviderError:
        return ProviderError(
            f"{self.config.callable} {problem} on {_describe_batch(batch)}", remedy="mend the function"
        )


def _describe_batch(batch: list[str]) -> str:
    more = f" and {len(batch) - 1} more" if len(batch) > 1 else ""
    return f"the text {shorten(batch[0], 40)!r}{more}"


class PythonChunker(Chunker):
    """A Python function of yours: f(text) gives the places of its chunks, or their texts word for word."""

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
            raise self._wrong(f"gave {type(found).__name__}, not a list of places, on {document.source}")
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
        """Where a chunk's text stands: after the one before, or over its end where the two overlap."""
        at = document.text.find(chunk, end)
        overlapping = document.text.find(chunk, start + 1 if end else 0, end + len(chunk)) if end else -1
        at = overlapping if overlapping >= 0 else at
        if at < 0:
            raise self._wrong(f"gave {shorten(repr(chunk), 60)}, which is not in {document.source} after {start}")
        return at, at + len(chunk)

    def _place(self, value: object, document: Document) -> TextRange:
        if isinstance(value, Sequence) and len(value) == 2:
            try:
                return index(value[0]), index(value[1])
            except TypeError:
                pass
        raise self._wrong(f"gave {shorten(repr(value), 60)}, which is no place, on {document.source}")

    def _wrong(self, problem: str) -> ProviderError:
        return ProviderError(
            f"{self.config.callable} {problem}", remedy="give a pair of start and end in characters for each chunk"
        )


class PythonJudge(Judge):
    """Python functions of yours: grade(query, passage) gives 1 to 5; order(query, passages) is optional."""

    class Config(CallableConfig):
        type: Literal["python"] = "python"
        order: Target | None = Field(None, description='"module:function" that orders; null: by the grades')

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
        """Find the functions."""
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
            problem = f"gave {said} on {about}, not a whole number from {MIN_GRADE} to {MAX_GRADE}"
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
            problem = f"gave {said} on {about}, not each position from 0 to {len(passages) - 1} once"
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
    """The whole number that `value` is, NumPy's among them; None where it is none."""
    return None if isinstance(value, bool) or not isinstance(value, SupportsIndex) else index(value)
