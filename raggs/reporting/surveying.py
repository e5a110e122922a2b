"""Statistics of a golden set: labels, pools, contributions of retrievers, near-duplicates, languages, tokens.

Pools are counted while the report reads the queries, because a second pass would take as long.

Counts are over (query, passage) pairs unless stated otherwise; near-duplicates count as separate passages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Annotated

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.base.artifacts import EmbedRecord, Passage
from raggs.base.document import Column
from raggs.base.text import count_tokens
from raggs.golden.judgments import Judgments
from raggs.golden.views import PassageView, QuestionView
from raggs.runs.manifests.open_run import OpenedRun

SAMPLE = 500  # passages whose tokens are counted
SEED = 1


@dataclass(frozen=True)
class QuerySpread:
    """Distribution of a number over the queries."""

    name: str
    median: float
    mean: float
    least: float
    most: float

    @classmethod
    def of(cls, name: str, values: Ints | Floats | Sequence[int]) -> QuerySpread:
        """Return the distribution of at least one value."""
        found = np.asarray(values, dtype=np.float64)
        return cls(name, float(np.median(found)), float(found.mean()), float(found.min()), float(found.max()))


@dataclass(frozen=True)
class LabelMix:
    """Label mix of a golden set.

    Attributes:
        grades: number of judgments per grade, highest grade first.
        spreads: distributions over queries: per relevant grade, all relevant grades, judged passages.
        prevalence: distribution of the relevant share of judged passages.
        without: queries without a relevant passage.
        queries: number of queries.
    """

    grades: Mapping[int, int]
    spreads: tuple[QuerySpread, ...]
    prevalence: QuerySpread
    without: int
    queries: int


@dataclass(frozen=True)
class RetrieverSurvey:
    """Contribution of a retriever to the pools; `alone` counts passages that no other retriever found.

    `relevant` and `relevant_alone` are None before grading.
    """

    name: Annotated[str, Column("retriever")]
    passages: Annotated[int, Column("passages")]
    alone: Annotated[int, Column("unique")]
    relevant: Annotated[int | None, Column("relevant")]
    relevant_alone: int | None

    @property
    def share(self) -> Annotated[str | None, Column("unique relevant")]:
        """Number and share of its relevant passages that no other retriever found; None if it found none."""
        return f"{(alone := self.relevant_alone or 0)} ({alone / self.relevant:.0%})" if self.relevant else None


@dataclass(frozen=True)
class PoolSurvey:
    """The pools of a run.

    Attributes:
        depth: passages per query that has any.
        passages: number of pooled passages; `distinct` of them are different passages of the corpus.
        duplicates: near-duplicates of another passage in the pool.
        sources: contributions by retriever.
        overlap: for each pair of retrievers, passages found by both as a share of those found by either.
        tokens: tokens per passage of `sampled` passages; None without passages.
    """

    depth: QuerySpread
    passages: int
    distinct: int
    duplicates: int
    sources: tuple[RetrieverSurvey, ...]
    overlap: Mapping[tuple[str, str], float]
    tokens: QuerySpread | None
    sampled: int


def labels_of(judgments: Judgments) -> LabelMix:
    """Return the label mix of judgments."""
    qrels = judgments.qrels
    counts, scale = qrels.counts, qrels.scale
    relevant = list(range(scale.high, scale.relevant - 1, -1))
    total, good = counts.sum(axis=1), counts[:, scale.relevant - scale.low :].sum(axis=1)
    spreads = [QuerySpread.of(f"grade {grade}", counts[:, grade - scale.low]) for grade in relevant]
    spreads += [QuerySpread.of(f"relevant (grade {scale.relevant} or more)", good)] if len(relevant) > 1 else []
    return LabelMix(
        grades={grade: int(counts[:, grade - scale.low].sum()) for grade in range(scale.high, scale.low - 1, -1)},
        spreads=(*spreads, QuerySpread.of("judged passages", total)),
        prevalence=QuerySpread.of("prevalence", good / np.maximum(total, 1)),
        without=int((good == 0).sum()),
        queries=len(total),
    )


@dataclass
class PoolTally:
    """Counts pool statistics while queries are read.

    Attributes:
        relevant: lowest relevant grade; None before grading.
    """

    relevant: int | None = None
    depth: list[int] = field(default_factory=list)
    brought: Counter[tuple[str, bool]] = field(default_factory=Counter)
    alone: Counter[tuple[str, bool]] = field(default_factory=Counter)
    both: Counter[tuple[str, str]] = field(default_factory=Counter)
    duplicates: int = 0
    texts: dict[str, str] = field(default_factory=dict)

    def see(self, view: QuestionView) -> None:
        """Count the pool of a query, and store the texts of its passages."""
        if view.passages:
            self.depth.append(len(view.passages))
        for passage in view.passages:
            self._see(passage)

    def _see(self, passage: PassageView) -> None:
        relevant = self.relevant is not None and (passage.grade or 0) >= self.relevant
        self.duplicates += passage.repeats
        if passage.doc_id not in self.texts:
            raw = Passage(doc_id=passage.doc_id, title=passage.title, text=passage.text)
            self.texts[passage.doc_id] = raw.content
        names = sorted(passage.sources)
        for name in names:
            self.brought[name, relevant] += 1
        if len(names) == 1:
            self.alone[names[0], relevant] += 1
        elif len(names) > 1:
            self.both.update(combinations(names, 2))


def pools_of(tally: PoolTally) -> PoolSurvey | None:
    """Return the pools of a run; None before pooling."""
    if not tally.depth:
        return None
    names = sorted({name for name, _ in tally.brought})
    sources = tuple(_source(name, tally) for name in names)
    size = {each.name: each.passages for each in sources}
    drawn = _sample_texts(tally.texts)
    return PoolSurvey(
        depth=QuerySpread.of("passages per pool", tally.depth),
        passages=sum(tally.depth),
        distinct=len(tally.texts),
        duplicates=tally.duplicates,
        sources=sources,
        overlap={(a, b): _share(tally.both[a, b], size[a] + size[b]) for a, b in combinations(names, 2)},
        tokens=QuerySpread.of("tokens per passage", count_tokens(drawn)) if drawn else None,
        sampled=len(drawn),
    )


def languages_of(run: OpenedRun) -> Mapping[str, int]:
    """Return the number of queries per language; empty before the embed stage."""
    if not run.file("embed").is_file():
        return {}
    found = Counter(record.language for record in run.typed("embed", EmbedRecord))
    return dict(found.most_common())


def _source(name: str, tally: PoolTally) -> RetrieverSurvey:
    return RetrieverSurvey(
        name,
        passages=tally.brought[name, True] + tally.brought[name, False],
        alone=tally.alone[name, True] + tally.alone[name, False],
        relevant=None if tally.relevant is None else tally.brought[name, True],
        relevant_alone=None if tally.relevant is None else tally.alone[name, True],
    )


def _share(both: int, sum_of_sizes: int) -> float:
    return both / (sum_of_sizes - both) if sum_of_sizes > both else 0.0


def _sample_texts(texts: Mapping[str, str]) -> list[str]:
    """Return at most `SAMPLE` texts, drawn with a fixed seed."""
    ids = sorted(texts)
    places = np.random.default_rng(SEED).permutation(len(ids))[:SAMPLE]
    return [texts[ids[place]] for place in places.tolist()]
