"""What thresholds would take out of questions that are there, and the pairs by which to judge that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.artifacts import Query
from raggs.base.errors import DataError, UsageError
from raggs.base.text import did_you_mean
from raggs.chunking.specs import parse_spec
from raggs.llm import BudgetSettings
from raggs.parts import embedders
from raggs.parts import queries as formats
from raggs.parts.embedders.base import Embedder, EmbedderConfig
from raggs.parts.queries.base import format_of
from raggs.parts.workshop import Workshop, open_queries
from raggs.runs.pipeline.events import Listener, beside, in_loop, silent
from raggs.stats.asking.calibration import Search, furthest_excerpt, histogram, nearest_earlier
from raggs.stats.asking.filters import Thresholds, duplicates, excerpt_cosines, irrelevant, thresholds_for

__all__ = ["CalibrateRequest", "Calibration", "Kind", "Pairs", "Search", "Thresholds", "calibrate"]

Kind = Literal["duplicate", "excerpt"]
CORPUS = "corpus_id"


@dataclass(frozen=True)
class CalibrateRequest:
    """What to look at.

    Attributes:
        questions: a file of questions, with excerpts where there are any.
        embedder: as on the command line.
        corpus: only questions about this one; None for all.
        workspace: below it lie the caches.
        max_usd: what the embedder may cost.
    """

    questions: Path
    embedder: str = "wordllama"
    corpus: str | None = None
    workspace: Path = Path()
    max_usd: float = 5.0


@dataclass(frozen=True)
class Pairs:
    """The pairs by which one threshold is judged.

    Attributes:
        kind: "duplicate": each question and its nearest before it; "excerpt": each and its furthest excerpt.
        texts: of both.
        cosines: of both, shape (pairs,).
    """

    kind: Kind
    texts: tuple[tuple[str, str], ...]
    cosines: Floats

    @property
    def histogram(self) -> tuple[tuple[float, int], ...]:
        """How many cosines begin where (`raggs.stats.asking.calibration.histogram`)."""
        return histogram(self.cosines)


@dataclass(frozen=True)
class Calibration:
    """Questions, embedded.

    Attributes:
        questions: how many there are.
        embedder: identity of what embedded them: cosines of another are on another scale.
        usual: thresholds of that embedder, or of the report's corpus of that name.
        pairs: by kind.
    """

    questions: int
    embedder: str
    usual: Thresholds
    pairs: Mapping[Kind, Pairs]
    _vectors: tuple[np.ndarray[tuple[int, ...], np.dtype[np.float32]], ...]
    _owner: tuple[int, ...]

    def gone(self, thresholds: Thresholds) -> dict[Kind, int]:
        """How many questions each threshold takes out, of all."""
        vectors, excerpts = self._vectors
        return {
            "duplicate": len(duplicates(vectors, thresholds.duplicate)),
            "excerpt": len(irrelevant(vectors, excerpts, self._owner, thresholds.excerpt)),
        }


def calibrate(request: CalibrateRequest, listen: Listener = silent) -> Calibration:
    """Embed questions and excerpts, and pair them. Works in notebooks.

    Raises:
        RaggsError: the file cannot be used, the embedder is unknown or failed, no question is about the corpus.
    """
    if in_loop():
        return beside(lambda hear: calibrate(request, hear), listen)
    specs = parse_spec(request.embedder, embedders.REGISTRY, EmbedderConfig)
    reader = formats.REGISTRY.load(format_of(request.questions)).Config.model_validate({"path": request.questions})
    queries = _about(request, list(open_queries(reader, listen).values()))
    workshop = Workshop(request.workspace, budget=BudgetSettings(max_usd=request.max_usd), hear=listen)
    try:
        return _paired(queries, workshop.embedder(specs), thresholds_for(request.corpus or "", specs.type))
    finally:
        workshop.close()


def _about(request: CalibrateRequest, queries: list[Query]) -> list[Query]:
    """The questions about the corpus."""
    if request.corpus is None:
        return queries
    found = [query for query in queries if request.corpus in _corpora(query)]
    if not found:
        known = sorted({name for query in queries for name in _corpora(query)})
        if not known:
            raise DataError("no question names its corpus", where=request.questions, remedy="leave --corpus out")
        remedy = did_you_mean(request.corpus, known)
        raise UsageError(f"no question is about {request.corpus!r}", remedy=remedy)
    return found


def _corpora(query: Query) -> set[str]:
    """The names by which a question says what it is about."""
    named = query.metadata.get(CORPUS)
    spans = {each.span.source for each in query.references if each.span is not None}
    return {*spans, *([named] if isinstance(named, str) else [])}


def _paired(queries: list[Query], embedder: Embedder, usual: Thresholds) -> Calibration:
    texts = [query.text for query in queries]
    excerpts = [(number, each.text) for number, query in enumerate(queries) for each in query.references]
    owner = [number for number, _ in excerpts]
    vectors = embedder.embed_queries(texts)
    held = embedder.embed([text for _, text in excerpts]) if excerpts else np.empty((0, embedder.dims), np.float32)
    near, nearest = nearest_earlier(vectors)
    far, furthest = furthest_excerpt(excerpt_cosines(vectors, held, owner), owner)
    pairs: dict[Kind, Pairs] = {
        "duplicate": Pairs("duplicate", tuple((texts[of], texts[row + 1]) for row, of in enumerate(nearest)), near),
        "excerpt": Pairs("excerpt", tuple((texts[owner[row]], excerpts[row][1]) for row in furthest), far),
    }
    return Calibration(len(queries), embedder.identity, usual, pairs, (vectors, held), tuple(owner))
