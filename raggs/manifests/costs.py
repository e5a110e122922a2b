"""What a run has cost, by stage, model and query: sums over its ledger.

A lock holds the cost of a stage's latest attempt only; the ledger has every invocation, also those that failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from raggs.jsonl import read_torn
from raggs.llm.ledger import LedgerLine
from raggs.manifests.models import Spent
from raggs.manifests.store import RunStore


class Sum(Spent, frozen=False):
    """Some calls together. `seconds` is the latency of their last attempts, over all but those that were cached."""

    answered: int = 0
    unusable: int = 0
    failed: int = 0
    seconds: float = 0.0

    def add(self, line: LedgerLine) -> None:
        self.calls += line.attempts
        self.cached += line.cached
        self.answered += line.outcome == "answered"
        self.unusable += line.outcome == "unusable"
        self.failed += line.outcome in ("failed", "cancelled")
        self.prompt_tokens += line.prompt_tokens
        self.completion_tokens += line.completion_tokens
        self.usd += line.usd
        self.saved_usd += line.saved_usd
        self.seconds += line.latency_s

    @property
    def mean_s(self) -> float:
        """Mean latency; 0 where nothing was asked."""
        asked = self.answered + self.unusable + self.failed
        return self.seconds / asked if asked else 0.0


@dataclass(frozen=True)
class Costs:
    """A run's ledger in sums; all keys in the order of their first line."""

    total: Sum = field(default_factory=Sum)
    stage: Mapping[str, Sum] = field(default_factory=dict)
    model: Mapping[str, Sum] = field(default_factory=dict)
    query: Mapping[str, Sum] = field(default_factory=dict)


def costs(store: RunStore) -> Costs:
    """The sums of a run's ledger; zeros where no language model was asked.

    Raises:
        DataError: a line is damaged.
    """
    total = Sum()
    stages: dict[str, Sum] = {}
    models: dict[str, Sum] = {}
    queries: dict[str, Sum] = {}
    for line in read_torn(store.ledger, LedgerLine, "delete the line: the ledger is an account, nothing depends on it"):
        total.add(line)
        for sums, key in ((stages, line.stage), (models, line.model), (queries, line.qid)):
            sums.setdefault(key, Sum()).add(line)
    return Costs(total, stages, models, queries)
