"""Search depth per query: shallow, or deep if an uncertainty signal fires (see `raggs.stats.search_depth`).

Retrievers without a reranker search to `deep` at once, which costs almost nothing. The lists of queries for which no
signal fires are then truncated to `base`. A reranker scores the first `base` candidates of every query, and the first
`deep` only if a signal fires. Thresholds are not learned here: they come from `raggs diagnose depth`, or are written by
hand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationInfo, model_validator

from raggs.base.languages import names_in
from raggs.base.settings import Settings
from raggs.stats.search_depth import HEAD_RANK, Readings, agreement, entropy, head_margin, rewrite_distance, tail_margin

# source of a list's scores: vectors, words, or candidates of a reranker
ScoreSource = Literal["vectors", "words", "candidates"]
REQUIRED_SOURCES: Mapping[str, tuple[ScoreSource, ...]] = {
    "head_margin": ("vectors",),
    "tail_margin": ("vectors",),
    "agreement": ("vectors", "words"),
    "entropy": ("candidates",),
}
SOURCE_WORDS: Mapping[ScoreSource, str] = {
    "vectors": "a vector search such as dense",
    "words": "a lexical search such as bm25",
    "candidates": "a reranker",
}


class RoutingThresholds(Settings):
    """Thresholds of the signals: a query is searched deep if any signal reaches its threshold."""

    head_margin: float | None = Field(
        None, description="search deep if the dense score of rank 1 minus that of rank 10 is at most this value"
    )
    tail_margin: float | None = Field(
        None, description="search deep if the dense score of rank 10 minus that of rank `base` is at most this value"
    )
    entropy: float | None = Field(
        None,
        ge=0,
        le=1,
        description="search deep if the normalised entropy of the reranker's scores (softmax) is at least this value",
    )
    rewrite: float | None = Field(
        None, ge=0, le=2, description="search deep if 1 - cosine(query, rewrite) is at least this value"
    )
    name: bool = Field(False, description="search deep if the query contains a proper name")
    agreement: float | None = Field(
        None,
        ge=0,
        le=1,
        description="search deep if the overlap (RBO) of the dense and the lexical list is at most this value",
    )

    @property
    def thresholds(self) -> dict[str, float]:
        """Thresholds that are set, by signal."""
        found = {name: value for name, value in self if name != "name" and isinstance(value, int | float)}
        return {**found, **({"name": 1.0} if self.name else {})}

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.thresholds:
            raise ValueError(
                "no signal has a threshold, so no query is searched deeper; set a threshold, or a fixed depth"
            )
        return self


class RoutedDepth(Settings):
    """Settings for shallow lists, with deep lists for queries on which a signal fires."""

    type: Literal["routed"] = Field("routed", description="depth chosen per query by uncertainty signals")
    base: int = Field(50, ge=2, le=10_000, description="hits per query, or candidates for a reranker")
    deep: int = Field(100, ge=2, le=10_000, description="hits or candidates of queries on which a signal fires")
    when: RoutingThresholds = Field(description="signals and their thresholds")

    @model_validator(mode="after")
    def _goes_deeper(self) -> Self:
        if self.deep <= self.base:
            raise ValueError(f"deep ({self.deep}) must be greater than base ({self.base})")
        if self.when.tail_margin is not None and self.base <= HEAD_RANK:
            raise ValueError(f"when.tail_margin compares ranks {HEAD_RANK} and `base`, but base is {self.base}")
        return self

    def lacking(self, there: Collection[ScoreSource]) -> str | None:
        """Return a message about the first signal whose source of scores is missing; None if all sources are available.

        Args:
            there: available sources of scores.
        """
        for signal in self.when.thresholds:
            for reads in REQUIRED_SOURCES.get(signal, ()):
                if reads not in there:
                    return f"when.{signal} needs {SOURCE_WORDS[reads]}, but none is configured"
        return None


def _parse_depth(value: object, info: ValidationInfo) -> object:
    """Return a fixed depth, or the validated settings of a routed depth, so that each form reports its own errors."""
    if isinstance(value, Mapping):
        return RoutedDepth.model_validate(value, context=info.context)
    return value if isinstance(value, RoutedDepth) else TypeAdapter(Candidates).validate_python(value)


Candidates = Annotated[int, Field(ge=1, le=10_000)]
DepthLevel = Annotated[Candidates | RoutedDepth, BeforeValidator(_parse_depth)]


@dataclass(frozen=True)
class SignalInputs:
    """Inputs from which the signals of one query are computed.

    Attributes:
        text, language: original query.
        base: length of shallow lists.
        vectors, words: hits of the dense and the lexical search, best first; None if there is no such search.
        candidates: scores of the reranker for the shallow candidates, best first; None if there is no reranker.
        question, rewrite: vectors of the query and of its rewrite; None if no signal needs them.
    """

    text: str
    language: str
    base: int
    vectors: Sequence[tuple[str, float]] | None = None
    words: Sequence[tuple[str, float]] | None = None
    candidates: Sequence[float] | None = None
    question: Sequence[float] | None = None
    rewrite: Sequence[float] | None = None


def readings(seen: SignalInputs, wanted: Collection[str]) -> Readings:
    """Return the wanted signals; None for a signal whose input is missing."""
    found = {"name": float(bool(names_in(seen.text, seen.language)))} if "name" in wanted else {}
    scores = [score for _, score in seen.vectors or ()]
    read: dict[str, float | None] = {**found}
    if "head_margin" in wanted:
        read["head_margin"] = head_margin(scores)
    if "tail_margin" in wanted:
        read["tail_margin"] = tail_margin(scores, seen.base)
    if "agreement" in wanted:
        read["agreement"] = agreement(_ids(seen.vectors, seen.base), _ids(seen.words, seen.base))
    if "entropy" in wanted:
        read["entropy"] = entropy(seen.candidates or ())
    if "rewrite" in wanted:
        vectors = None if seen.question is None or seen.rewrite is None else (seen.question, seen.rewrite)
        read["rewrite"] = None if vectors is None else rewrite_distance(*vectors)
    return read


def _ids(hits: Sequence[tuple[str, float]] | None, base: int) -> list[str]:
    return [doc for doc, _ in (hits or ())[:base]]
