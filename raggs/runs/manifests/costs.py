"""What a run has cost, by stage, model and query: sums over its ledger.

A lock holds the cost of a stage's latest attempt only; the ledger has every invocation, also those that failed.

Whether a run's judge is as good as the run asked for: `judge.gate` against the health in the locks.

Read off the manifest alone, so that status, exports and evaluations say the same. What could not be looked at has
failed: a gate is never passed over. A judge that answers by rule has no errors to be held to.

What a run has cost, beside what it was expected to: from its ledger and its manifest alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from raggs.base.artifacts import Spending
from raggs.base.document import Column
from raggs.base.judge_health import JudgeHealth, RankHealth
from raggs.base.text import plural
from raggs.base.types import as_object
from raggs.llm.ledger import LedgerLine, lines_in
from raggs.llm.messages import Answerer
from raggs.parts.judges import is_exact
from raggs.runs.manifests.models import CostEstimate, LockedAnswerer, RunManifest
from raggs.runs.manifests.open_run import open_run
from raggs.runs.manifests.store import RunStore


class LedgerSum(Spending):
    """Some lines of the ledger together, which does not say what was repaired.

    `failed` counts calls without an answer; `perhaps_usd` is what those without one in time may have cost, a part of
    `usd`; `saved_usd` leaves out what the run had paid itself; `seconds` is the latency of their last attempts, over
    all but those that were cached. `unknown` counts the calls that are possibly billed, for at most `unknown_usd`.
    """

    answered: int = 0
    unusable: int = 0
    failed: Annotated[int, Column("failed", text="{:,}")] = 0
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
class LedgerTotals:
    """A run's ledger in sums; all keys in the order of their first line."""

    total: LedgerSum = field(default_factory=LedgerSum)
    stage: Mapping[str, LedgerSum] = field(default_factory=dict)
    model: Mapping[str, LedgerSum] = field(default_factory=dict)
    query: Mapping[str, LedgerSum] = field(default_factory=dict)


def costs(store: RunStore, stage: str | None = None) -> LedgerTotals:
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
    return LedgerTotals(
        sum(sums.values(), LedgerSum()),
        _sums_by_key((stage, found) for (stage, _, _), found in sums.items()),
        _sums_by_key((model, found) for (_, model, _), found in sums.items()),
        _sums_by_key((qid, found) for (_, _, qid), found in sums.items()),
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


def _sums_by_key(found: Iterable[tuple[str, LedgerSum]]) -> dict[str, LedgerSum]:
    sums: dict[str, LedgerSum] = {}
    for key, each in found:
        sums[key] = sums[key] + each if key in sums else each
    return sums


HELD_OUT_HINT = "where people decide it is not asked: keep words apart for it by judge.gate.reviews"


def failed_judge_gates(manifest: RunManifest) -> tuple[str, ...]:
    """A clause for each figure of the judge that is beyond its limit; none of stages that have not run."""
    section = as_object(manifest.config.get("judge"))
    limits = {
        name: float(limit) for name, limit in as_object(section.get("gate")).items() if isinstance(limit, int | float)
    }
    found = (
        (*_judge(manifest, limits), *_human_agreement_failures(manifest, limits), *_rank(manifest, limits))
        if limits
        else ()
    )
    return tuple(found)


def _judge(manifest: RunManifest, limits: Mapping[str, float]) -> Iterator[str]:
    lock, least = manifest.stages.get("judge"), limits.get("canaries")
    if lock is None or least is None or is_exact(lock.components.get("judge")):
        return
    asked = lock.health.canaries if isinstance(lock.health, JudgeHealth) else None
    rate = None if asked is None else asked.passed.rate
    if rate is None:
        yield "no canary was asked, though a share of them is to be as expected"
    elif rate < least:
        yield f"{rate:.0%} of the canaries are as expected, less than the {least:.0%} asked for"


def _human_agreement_failures(manifest: RunManifest, limits: Mapping[str, float]) -> Iterator[str]:
    """Also of a judge that answers by rule: people may think otherwise. The value is held to the limit."""
    lock, least = manifest.stages.get("judge"), limits.get("kappa")
    if lock is None or least is None:
        return
    from raggs.stats.agreement import FEWEST_CASES, FEWEST_CLUSTERS  # late: few runs have such a gate

    found = lock.health.people if isinstance(lock.health, JudgeHealth) else None
    if found is None:
        yield "its grades were not held against people's yet"
    elif found.grades < FEWEST_CASES or found.questions < FEWEST_CLUSTERS:
        compared = f"{plural(found.grades, 'grade')} of {plural(found.questions, 'question')}"
        own = f" ({HELD_OUT_HINT})" if found.by_people and not found.grades else ""
        yield (
            f"only {compared} can be held against people's{own}: kappa is believed from {FEWEST_CASES} of "
            f"{FEWEST_CLUSTERS} questions on"
        )
    elif found.kappa is None:
        yield "kappa with people is not defined, since all gave one and the same grade"
    elif found.kappa < least:
        of = plural(found.grades, "grade")
        yield f"kappa with people is {found.kappa:.2f} ({of}), less than the {least:g} asked for"


def _rank(manifest: RunManifest, limits: Mapping[str, float]) -> Iterator[str]:
    lock = manifest.stages.get("rank")
    if lock is None or not isinstance(lock.health, RankHealth) or is_exact(lock.components.get("judge")):
        return
    flips, bias = lock.health.flips.rate, lock.health.position_bias
    if (most := limits.get("flips")) is not None:
        if flips is None:
            yield "no pair was shown twice, so that flips are not known"
        elif flips > most:
            yield f"{flips:.0%} of the pairs flip, more than the {most:.0%} allowed"
    if (most := limits.get("position_bias")) is not None:
        if bias is None:
            yield "the engine does not estimate the position bias"
        elif abs(bias) > most:
            yield f"the position bias is {abs(bias):.2f} grades, more than the {most:g} allowed"


@dataclass(frozen=True)
class RunCost:
    """Sums over the ledger, and the dry run's lines when the latest run that could pay began."""

    spent: LedgerTotals
    estimates: tuple[CostEstimate, ...]

    @property
    def estimated_usd(self) -> float | None:
        """What a run without a cache was estimated to cost; None where that is not known."""
        if not self.estimates or any(line.usd is None for line in self.estimates):
            return None
        return sum(line.usd or 0.0 for line in self.estimates)

    @property
    def expected_usd(self) -> float | None:
        """What such a run was expected to cost; None where that is not known."""
        if self.estimated_usd is None:
            return None
        return sum(line.expected_usd or 0.0 for line in self.estimates)


def cost(folder: Path) -> RunCost:
    """What the run in `folder` has cost.

    Raises:
        NotFoundError, DataError: there is no run, or its manifest or ledger is damaged.
    """
    run = open_run(folder)
    return RunCost(costs(run.store), tuple(line for line in run.manifest.estimates if line.input_tokens))
