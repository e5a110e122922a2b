"""How deep a question is searched: shallow unless a signal of doubt fires (see `raggs.stats.search_depth`).

Plain retrievers are searched to `deep` at once, and the lists of questions that stay shallow are cut to `base`: a
longer list costs them next to nothing. A reranker reads the first `base` candidates of every question, and
the first `deep` of those alone that are escalated. Nothing is learned here: thresholds come from `raggs diagnose
depth`, or from whoever writes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationInfo, model_validator

from raggs.base.languages import names_in
from raggs.base.settings import Settings
from raggs.stats.search_depth import HEAD_RANK, Readings, agreement, entropy, head_margin, rewrite_distance, tail_margin

ScoreSource = Literal[
    "vectors", "words", "candidates"
]  # what the scores of a list come from: vectors, words, a reranker
REQUIRED_SOURCES: Mapping[str, tuple[ScoreSource, ...]] = {
    "head_margin": ("vectors",),
    "tail_margin": ("vectors",),
    "agreement": ("vectors", "words"),
    "entropy": ("candidates",),
}
SOURCE_WORDS: Mapping[ScoreSource, str] = {
    "vectors": "a search by vectors, such as dense",
    "words": "a search by words, such as bm25",
    "candidates": "a reranker",
}


class RoutingThresholds(Settings):
    """What sends a question deep: any signal that reaches its threshold."""

    head_margin: float | None = Field(
        None, description="deep where the dense score of rank 1 less that of rank 10 is at most this"
    )
    tail_margin: float | None = Field(
        None, description="deep where the dense score of rank 10 less that of rank `base` is at most this"
    )
    entropy: float | None = Field(
        None, ge=0, le=1, description="deep where the entropy of the softmax of the reranker's scores is at least this"
    )
    rewrite: float | None = Field(
        None, ge=0, le=2, description="deep where 1 - cosine of the question and its rewrite is at least this"
    )
    name: bool = Field(False, description="deep where the question holds a proper name")
    agreement: float | None = Field(
        None, ge=0, le=1, description="deep where the overlap (RBO) of the dense and the lexical list is at most this"
    )

    @property
    def thresholds(self) -> dict[str, float]:
        """The thresholds that are set, by signal."""
        found = {name: value for name, value in self if name != "name" and isinstance(value, int | float)}
        return {**found, **({"name": 1.0} if self.name else {})}

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.thresholds:
            raise ValueError(
                "no signal has a threshold, so no question would be searched deeper; set one, or a plain k"
            )
        return self


class RoutedDepth(Settings):
    """Shallow lists, and deep ones for questions on which a signal fires."""

    type: Literal["routed"] = Field("routed", description="by signals of doubt")
    base: int = Field(50, ge=2, le=10_000, description="hits, or candidates of a reranker, of a question")
    deep: int = Field(100, ge=2, le=10_000, description="the same where a signal fires")
    when: RoutingThresholds = Field(description="the signals and their thresholds")

    @model_validator(mode="after")
    def _goes_deeper(self) -> Self:
        if self.deep <= self.base:
            raise ValueError(f"deep is {self.deep}, which is no deeper than base, {self.base}")
        if self.when.tail_margin is not None and self.base <= HEAD_RANK:
            raise ValueError(f"when.tail_margin looks at rank {HEAD_RANK} and at rank `base`, which is {self.base}")
        return self

    def lacking(self, there: Collection[ScoreSource]) -> str | None:
        """The first signal that cannot be read, and of what, in words; None where all can.

        Args:
            there: what lists there are.
        """
        for signal in self.when.thresholds:
            for reads in REQUIRED_SOURCES.get(signal, ()):
                if reads not in there:
                    return f"when.{signal} is read off {SOURCE_WORDS[reads]}, and there is none"
        return None


def _parse_depth(value: object, info: ValidationInfo) -> object:
    """A depth for all questions, or the settings of one that is routed; each with its own errors."""
    if isinstance(value, Mapping):
        return RoutedDepth.model_validate(value, context=info.context)
    return value if isinstance(value, RoutedDepth) else TypeAdapter(Candidates).validate_python(value)


Candidates = Annotated[int, Field(ge=1, le=10_000)]
DepthLevel = Annotated[Candidates | RoutedDepth, BeforeValidator(_parse_depth)]


@dataclass(frozen=True)
class SignalInputs:
    """What signals of one question are read off.

    Attributes:
        text, language: of the question as it was asked.
        base: how long shallow lists are.
        vectors, words: hits of the search by vectors and of that by words, best first; None where there is none.
        candidates: scores of the reranker for the shallow candidates, best first; None without one.
        question, rewrite: vectors of the question and of what was searched for; None where nobody asks.
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
    """The signals that are wanted; None for one that cannot be read."""
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
