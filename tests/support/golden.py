"""A golden set whose queries were made elsewhere, and runs changed by hand, for whoever reads golden sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from raggs.base.artifacts import Query, Record
from raggs.base.jsonl import read_records
from raggs.golden.base import GoldenProvenance, GoldenQuery, GoldenSet, SetPart
from raggs.golden.judgments import Judgments
from raggs.metrics.columns import GradeScale, Qrels
from support.forging import write_artifact

PROVENANCE = GoldenProvenance(
    run="r1",
    raggs="0.1",
    created="2026-01-02T03:04:05+00:00",
    fingerprints={"rank": "abc"},
    judge={"model": "été"},
    rank={"top": 4},
    failed=1,
    depth=None,
)


@dataclass
class GivenGolden(GoldenSet):
    """`queries` are read anew each time."""

    name: str
    top: int
    given: Iterable[GoldenQuery]
    source: str = "here"
    provenance: GoldenProvenance | None = PROVENANCE

    def by_query(self, *parts: SetPart) -> Iterator[GoldenQuery]:
        for query in self.given:
            yield replace(query, **{part: () for part in get_args(SetPart) if parts and part not in parts})

    def queries(self) -> Iterator[Query]:
        return (query.query for query in self.given if query.query is not None)

    def judgments(self, scale: GradeScale | None = None) -> Judgments:
        labels = {
            query.qid: {one.doc_id: one.grade for one in query.grades if one.grade is not None} for query in self.given
        }
        return Judgments(self.source, Qrels.of(labels, scale))


def change(run: Path, artifact: str, model: type[Record], turn: Callable[[Record], Record | None]) -> None:
    """Write an artifact anew, each record turned into another, or left out."""
    path = run / f"{artifact}.jsonl"
    write_artifact(path, [turned for record in list(read_records(path, model)) if (turned := turn(record)) is not None])
