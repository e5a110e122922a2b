"""A sweep's surroundings made of what a bench holds, so that its parts serve a diagnosis: nothing is searched twice."""

from __future__ import annotations

from pathlib import Path

from raggs.base.errors import DataError
from raggs.base.hashing import hash_value
from raggs.diagnosis.bench import Bench
from raggs.llm.ledger import FILE
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.world import World

LISTED = "depth"


class BenchWorld(World):
    """See the module.

    Args:
        bench: whose golden set, questions, passages and workshop are used.
        config: of the sweep that is none: its systems and cutoffs.

    Raises:
        DataError: none of the bench's questions has a grade.
    """

    def __init__(self, bench: Bench, config: SweepConfig) -> None:
        self.config, self.hear, self.workshop = config, bench.hear, bench.workshop
        self.golden, self.judgments, self.passages = bench.golden, bench.judgments, bench.passages
        judged = set(self.judgments.qrels.qids)
        self.queries = {qid: query for qid, query in bench.queries.items() if qid in judged}
        if not self.queries:
            raise DataError("has no grade for any question", where=bench.golden.source, remedy="name another --golden")

    @property
    def folder(self) -> Path:
        """Where measurements of time lie, among the caches."""
        return self.workshop.places.diagnoses / f"{LISTED}-{hash_value(self.fingerprint)[:16]}"

    @property
    def ledger(self) -> Path:
        """Where the diagnosis books its calls."""
        return self.workshop.ledger.path or self.folder / FILE

    def book(self, what: str) -> None:
        """From now on calls are booked on this part of the work, in the diagnosis's own ledger."""
        self.workshop.ledger.turn_to(self.ledger, what)
