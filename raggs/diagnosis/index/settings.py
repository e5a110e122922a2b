"""What is asked of `raggs diagnose index`: which indexes, how far each is tried, and what is decided by it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from raggs.base.adapter import OneOf
from raggs.base.errors import UsageError
from raggs.base.settings import Settings
from raggs.chunking.specs import parse_spec
from raggs.diagnosis.base import DiagnosisConfig
from raggs.parts import indexes
from raggs.parts.indexes.base import IndexConfig
from raggs.stats.probes.answers import NEAR


def _index(given: object) -> object:
    return parse_spec(given, indexes.REGISTRY, IndexConfig) if isinstance(given, str) else given


def _share(given: object) -> object:
    """A share, or per cent in words: "1%"."""
    if isinstance(given, str) and given.strip().endswith("%"):
        try:
            return float(given.strip()[:-1]) / 100
        except ValueError:
            return given
    return given


def _vary(given: object) -> object:
    """A mapping, or words such as "m=8,16"."""
    if not isinstance(given, list | tuple):
        return given
    found: dict[str, list[str]] = {}
    for word in given:
        name, equals, values = str(word).partition("=")
        if not equals or not values:
            raise UsageError(f"{word!r} varies nothing", remedy="write a setting and its values: m=8,16")
        found.setdefault(name.strip(), []).extend(values.split(","))
    return found


def _fixed(given: object) -> object:
    """A mapping, or words such as "recall=0.9"."""
    if not isinstance(given, str):
        return given
    what, _, least = given.partition("=")
    return {"what": what.strip(), "least": _share(least)}


IndexSpec = Annotated[IndexConfig, OneOf(indexes.REGISTRY), BeforeValidator(_index)]
Share = Annotated[float, Field(gt=0, le=1)]
Bound = Literal["recall", "robustness", "qps"]


class Fixed(Settings):
    """The one of three that must be reached; of the other two the front is shown."""

    what: Bound = Field("recall", description="recall, robustness (at `delta`) or qps")
    least: float = Field(0.9, gt=0, description="its least value")


class IndexSettings(DiagnosisConfig):
    """Settings of the kind `index`."""

    type: Literal["index"] = "index"
    indexes: tuple[IndexSpec, ...] = Field(
        (), description="indexes; none: hnsw, ivf, and ivf with pq of a quarter of the dimensions"
    )
    vary: Annotated[Mapping[str, tuple[int, ...]], BeforeValidator(_vary)] = Field(
        {}, description="values of settings, such as m or reorder, that each index which has them is tried with"
    )
    k: tuple[Annotated[int, Field(ge=1, le=1000)], ...] = Field((10, 100), min_length=1, description="hits wanted")
    held_out: int = Field(500, ge=0, description="passages, a tenth at most, kept out of the indexes and asked for")
    deltas: tuple[Share, ...] = Field((0.1, 0.3, 0.5, 0.7, 0.9), min_length=1, description="recalls to be reached")
    levels: tuple[Share, ...] = Field((0.8, 0.9, 0.95), min_length=1, description="mean recalls to compare indexes at")
    timed: int = Field(100, ge=1, description="questions of each point that are timed")
    rounds: int = Field(3, ge=1, description="times that each of them is; its time is the median")
    tune: Annotated[Annotated[float, Field(gt=0, lt=1)] | None, BeforeValidator(_share)] = Field(
        None, description="loss allowed, 0.01 or 1%: find the least effort"
    )
    cutoffs: tuple[Annotated[int, Field(ge=1)], ...] = Field((10, 30), min_length=1, description="where loss counts")
    measure: str | None = Field(
        None, description="measure that the loss is of, without @k, by a golden set; null: recall of the exact nearest"
    )
    depth: int | None = Field(None, ge=1, description="hits wanted when tuning; null: the dense retriever's k, or 50")
    fix: Annotated[Fixed | None, BeforeValidator(_fixed)] = Field(
        None, description="a threshold, to see the front of the other two of three"
    )
    delta: Share = Field(0.3, description="the delta of the front's robustness")
    correct: Path | None = Field(None, description="CSV of qid, setting, correct: answers, to choose delta by")
    near: Share = Field(NEAR, description="share of the exact search's accuracy that is near enough")
    vectors: Path | None = Field(None, description="vectors in a file of numpy, in place of a corpus")
    queries: Path | None = Field(None, description="vectors of questions in a file of numpy")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.queries is not None and self.vectors is None:
            raise ValueError("queries are of vectors: name these too")
        if self.tune is not None and self.depth is not None and self.depth < max(self.cutoffs):
            raise ValueError(f"depth is {self.depth}, and loss counts at {max(self.cutoffs)}")
        return self
