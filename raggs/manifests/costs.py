"""What a run has cost, by stage, model and query: sums over its ledger.

A lock holds the cost of a stage's latest attempt only; the ledger has every invocation, also those that failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from raggs.jsonl import read_torn
from raggs.llm.ledger import REMEDY, LedgerLine
from raggs.manifests.store import RunStore
from raggs.spending import Spending


class LedgerSum(Spending):
    """Some lines of the ledger together, which does not say what was repaired.

    `failed` counts calls without an answer; `perhaps_usd` is what those without one in time may have cost, a part of
    `usd`; `seconds` is the latency of their last attempts, over all but those that were cached.
    """

    answered: int = 0
    unusable: int = 0
    failed: int = 0
    seconds: float = 0.0
    perhaps_usd: float = 0.0

    @property
    def mean_s(self) -> float:
        """Mean latency; 0 where nothing was asked."""
        asked = self.answered + self.unusable + self.failed
        return self.seconds / asked if asked else 0.0


def sum_of(line: LedgerLine) -> LedgerSum:
    """One line as a sum."""
    return LedgerSum(
        **line.spent.__dict__,
        answered=line.outcome == "answered",
        unusable=line.outcome == "unusable",
        failed=line.outcome in ("failed", "cancelled"),
        seconds=line.latency_s,
        perhaps_usd=line.perhaps_usd,
    )


@dataclass(frozen=True)
class Costs:
    """A run's ledger in sums; all keys in the order of their first line."""

    total: LedgerSum = field(default_factory=LedgerSum)
    stage: Mapping[str, LedgerSum] = field(default_factory=dict)
    model: Mapping[str, LedgerSum] = field(default_factory=dict)
    query: Mapping[str, LedgerSum] = field(default_factory=dict)


def costs(store: RunStore, stage: str | None = None) -> Costs:
    """The sums of a run's ledger, or of one stage's lines; zeros where no language model was asked.

    Raises:
        DataError: a line is damaged.
    """
    sums: dict[tuple[str, str, str], LedgerSum] = {}
    for line in read_torn(store.ledger, LedgerLine, REMEDY):
        if stage not in (None, line.stage):
            continue
        key, found = (line.stage, line.model, line.qid), sum_of(line)
        sums[key] = sums[key] + found if key in sums else found
    return Costs(
        sum(sums.values(), LedgerSum()),
        _grouped((stage, found) for (stage, _, _), found in sums.items()),
        _grouped((model, found) for (_, model, _), found in sums.items()),
        _grouped((qid, found) for (_, _, qid), found in sums.items()),
    )


def _grouped(found: Iterable[tuple[str, LedgerSum]]) -> dict[str, LedgerSum]:
    sums: dict[str, LedgerSum] = {}
    for key, each in found:
        sums[key] = sums[key] + each if key in sums else each
    return sums
