"""What a run has cost, by stage, model and query: sums over its ledger.

A lock holds the cost of a stage's latest attempt only; the ledger has every invocation, also those that failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from raggs.base.spending import Spending
from raggs.base.text import plural
from raggs.llm.answerers import Answerer
from raggs.llm.ledger import LedgerLine, lines_in
from raggs.runs.manifests.models import LockedAnswerer
from raggs.runs.manifests.store import RunStore


class LedgerSum(Spending):
    """Some lines of the ledger together, which does not say what was repaired.

    `failed` counts calls without an answer; `perhaps_usd` is what those without one in time may have cost, a part of
    `usd`; `saved_usd` leaves out what the run had paid itself; `seconds` is the latency of their last attempts, over
    all but those that were cached. `unknown` counts the calls that are possibly billed, for at most `unknown_usd`.
    """

    answered: int = 0
    unusable: int = 0
    failed: int = 0
    seconds: float = 0.0
    perhaps_usd: float = 0.0
    unknown: int = 0
    unknown_usd: float = 0.0

    @property
    def possibly_billed(self) -> str:
        """One sentence about calls whose end was not booked; empty if there are none."""
        if not self.unknown:
            return ""
        calls, usd = plural(self.unknown, "call"), f"at most ${self.unknown_usd:,.4f}"
        why = "as after a kill or on a full disk"
        return f"possibly billed: {calls} without a recorded answer, {why}; counted as spent, {usd}"

    @property
    def unknown_json(self) -> dict[str, float]:
        """The same as figures."""
        return {"calls": self.unknown, "usd": self.unknown_usd}

    @property
    def mean_s(self) -> float:
        """Mean latency; 0 where nothing was asked."""
        asked = self.answered + self.unusable + self.failed
        return self.seconds / asked if asked else 0.0


def sum_of(line: LedgerLine) -> LedgerSum:
    """One line as a sum."""
    return LedgerSum(
        **{**line.spent.__dict__, "saved_usd": line.saved_usd - line.own_usd, "own_usd": 0.0},
        answered=line.outcome == "answered",
        unusable=line.outcome == "unusable",
        failed=line.outcome in ("failed", "cancelled"),
        seconds=line.latency_s,
        perhaps_usd=line.perhaps_usd,
        unknown=line.attempts if line.outcome == "unknown" else 0,
        unknown_usd=line.usd if line.outcome == "unknown" else 0.0,
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
    for line in lines_in(store.ledger):
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


def answerers_in(store: RunStore, stage: str) -> tuple[LockedAnswerer, ...]:
    """Who has answered for a stage so far, by the ledger; empty where nobody did.

    Raises:
        DataError: a line is damaged.
    """
    named, paid, cached = dict[str, Answerer](), Counter[str](), Counter[str]()
    for line in lines_in(store.ledger):
        if line.named is not None:
            named[line.answerer] = line.named
        if line.stage == stage and line.answerer:
            paid[line.answerer] += line.outcome == "answered"
            cached[line.answerer] += line.cached
    counts = {key: paid[key] or cached[key] for key in sorted(paid)}  # a resumed stage reads its own answers again
    found = ((named.get(key, Answerer(asked="")), count) for key, count in counts.items() if count)
    return tuple(LockedAnswerer(**each.model_dump(), answers=count) for each, count in found)


def _grouped(found: Iterable[tuple[str, LedgerSum]]) -> dict[str, LedgerSum]:
    sums: dict[str, LedgerSum] = {}
    for key, each in found:
        sums[key] = sums[key] + each if key in sums else each
    return sums
