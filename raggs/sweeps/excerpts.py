"""How much of the excerpts that answer its questions a system reads: measures that favour no cut.

Characters of passages that were graded 4 or 5 are those of one cut's passages, borders and all, so that cut is at an
advantage. The references of questions were marked in the documents by whoever asked. Formulas are those of
`span_recall4` and `span_precision4`, with references in place of grades.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.artifacts import MAX_GRADE, Query, Span, names_of
from raggs.golden.projecting import Projection
from raggs.metrics.columns import Run
from raggs.metrics.hits import Hits, Ties
from raggs.metrics.names import parse_measure

TERMS = {
    "reference_recall": "Share of the characters of the question's references that the top k holds, each counted once",
    "reference_precision": "Share of the retrieved characters that are of the question's references",
}
BY_GRADES = dict(zip(TERMS, ("span_recall4", "span_precision4"), strict=True))
References = Mapping[str, Sequence[Span]]


def references_of(queries: Iterable[Query]) -> References:
    """The places of the references of each question that has any, and says where all of them stand."""
    found = {query.qid: [each.span for each in query.references] for query in queries}
    return {qid: [span for span in spans if span] for qid, spans in found.items() if spans and None not in spans}


def is_reference(name: str) -> bool:
    """Whether this is one of the measures here; with its cutoff, which it needs."""
    stem, at, cutoff = name.partition("@")
    return stem in TERMS and at == "@" and cutoff.isdigit() and int(cutoff) > 0


@dataclass(frozen=True)
class Excerpts:
    """The references on the passages of one cut.

    Attributes:
        places: the golden set on them.
        references: by question.
    """

    places: Projection
    references: References

    def values(self, names: Iterable[str], hits: Hits, run: Run, ties: Ties, where: str) -> dict[str, Floats]:
        """By measure, a value for each judged question; NaN where it has no references in the corpus.

        Args:
            names: of measures, with their cutoffs.
            hits: of the run.
            run: of the cut's passages.
            ties: the order of equal scores.
            where: the system's name, for messages.
        """
        read = replace(hits, reading=self.marked.reading(run, ties, where))
        told = ((name, name.partition("@")) for name in names)
        return {name: parse_measure(f"{BY_GRADES[stem]}@{k}").values(read) for name, (stem, _, k) in told}

    @cached_property
    def marked(self) -> Projection:
        """The references as if they were all that was judged."""
        qids = self.places.judged.golden.qrels.qids
        own = self.places.cut.sources
        sources = {names_of(source)[1]: source for source in own} | {source: source for source in own}
        rows = [
            (query, span.model_copy(update={"source": sources.get(span.source, span.source)}))
            for query, qid in enumerate(qids)
            for span in self.references.get(qid, ())
        ]
        query = np.array([row for row, _ in rows], dtype=np.int64)
        judged = replace(
            self.places.judged, query=query, grade=np.full(len(query), MAX_GRADE), spans=tuple(span for _, span in rows)
        )
        return replace(self.places, judged=judged)
