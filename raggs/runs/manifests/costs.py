"""Cost of a run by stage, model and query, summed from its ledger. Also: the limits for the judge (`judge.gate`).

A lock contains only the cost of the attempt that finished the stage. The ledger contains the calls of every attempt,
including those that were stopped.

`failed_judge_gates` compares the judge's health in the locks with the limits in `judge.gate`. It reads only the
manifest, so that status, exports and evaluations report the same failures. If a limit is set, its stage has run, and
the statistic was not measured, the check fails. Rule-based judges make no random errors, so only the limit `kappa`
applies to them.

`cost` returns what a run has cost, according to its ledger, and what it was estimated to cost, according to its
manifest.
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
    """Sum of ledger lines. Corrections (`repaired`) are not included, because the ledger does not contain them.

    `failed` counts calls without an answer. `perhaps_usd` is the part of `usd` for calls that were sent but not
    answered. It is their maximum cost if USD are limited, otherwise their likely cost.
    `saved_usd` is what cached answers would have cost, except answers that this run itself had paid for. `seconds` is
    the latency of the last attempts, summed over all uncached calls. `unknown` counts calls without a recorded result,
    which may have been billed. They count as spent with `unknown_usd`, which is a part of `perhaps_usd`.
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
        """A sentence about calls without a recorded result, which may have been billed; empty if there are none."""
        if not self.unknown:
            return ""
        calls, usd = plural(self.unknown, "call"), f"${self.unknown_usd:,.4f}"
        why = "for example after a kill or on a full disk"
        return f"possibly billed: {calls} without a recorded answer, {why}; counted as spent, {usd}"

    @property
    def unknown_json(self) -> dict[str, float]:
        """The number of calls without a recorded result, and the cost with which they count as spent."""
        return {"calls": self.unknown, "usd": self.unknown_usd}

    @property
    def mean_s(self) -> float:
        """Mean latency of a call in seconds; 0 if there were no uncached calls."""
        asked = self.answered + self.unusable + self.failed
        return self.seconds / asked if asked else 0.0


def sum_of(line: LedgerLine) -> LedgerSum:
    """Convert one line of the ledger to a sum, so that lines can be added."""
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
    """Sums over a run's ledger. Keys are in the order in which they first occur in the ledger."""

    total: LedgerSum = field(default_factory=LedgerSum)
    stage: Mapping[str, LedgerSum] = field(default_factory=dict)
    model: Mapping[str, LedgerSum] = field(default_factory=dict)
    query: Mapping[str, LedgerSum] = field(default_factory=dict)


def costs(store: RunStore, stage: str | None = None) -> LedgerTotals:
    """Return the sums over a run's ledger, or over the lines of one stage. If there are no lines, all sums are 0.

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
    """Return the models that answered for a stage so far, according to the ledger.

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
    # cached answers count only if none was paid for: a resumed stage reads its own answers again
    counts = {key: paid[key] or cached[key] for key in sorted(paid)}
    found = ((named.get(key, Answerer(asked="")), count) for key, count in counts.items() if count)
    return tuple(LockedAnswerer(**each.model_dump(), answers=count) for each, count in found)


def _sums_by_key(found: Iterable[tuple[str, LedgerSum]]) -> dict[str, LedgerSum]:
    sums: dict[str, LedgerSum] = {}
    for key, each in found:
        sums[key] = sums[key] + each if key in sums else each
    return sums


HELD_OUT_HINT = (
    "the judge does not grade passages with human labels: set judge.gate.reviews to a folder of labels reserved "
    "for this check"
)


def failed_judge_gates(manifest: RunManifest) -> tuple[str, ...]:
    """Return a clause for each limit in `judge.gate` that the judge does not satisfy. Stages that have not run are
    ignored.
    """
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
        yield "no canaries were graded, but the gate requires a pass rate"
    elif rate < least:
        yield f"{rate:.0%} of the canaries pass, less than the required {least:.0%}"


def _human_agreement_failures(manifest: RunManifest, limits: Mapping[str, float]) -> Iterator[str]:
    """Check the agreement with human labels, also for rule-based judges. The estimated kappa must reach the limit; its
    confidence interval is not used.
    """
    lock, least = manifest.stages.get("judge"), limits.get("kappa")
    if lock is None or least is None:
        return
    from raggs.stats.agreement import FEWEST_CASES, FEWEST_CLUSTERS  # imported lazily: few runs have such a gate

    found = lock.health.people if isinstance(lock.health, JudgeHealth) else None
    if found is None:
        yield "its grades have not been compared with human labels yet"
    elif found.grades < FEWEST_CASES or found.questions < FEWEST_CLUSTERS:
        compared = f"{plural(found.grades, 'grade')} of {plural(found.questions, 'query')}"
        own = f" ({HELD_OUT_HINT})" if found.by_people and not found.grades else ""
        yield (
            f"only {compared} can be compared with human labels{own}: kappa needs at least {FEWEST_CASES} "
            f"grades of {FEWEST_CLUSTERS} queries"
        )
    elif found.kappa is None:
        yield "kappa with human labels is undefined because all grades are equal"
    elif found.kappa < least:
        of = plural(found.grades, "grade")
        yield f"kappa with human labels is {found.kappa:.2f} ({of}), less than the required {least:g}"


def _rank(manifest: RunManifest, limits: Mapping[str, float]) -> Iterator[str]:
    lock = manifest.stages.get("rank")
    if lock is None or not isinstance(lock.health, RankHealth) or is_exact(lock.components.get("judge")):
        return
    flips, bias = lock.health.flips.rate, lock.health.position_bias
    if (most := limits.get("flips")) is not None:
        if flips is None:
            yield "no pair was shown twice, so the flip rate is unknown"
        elif flips > most:
            yield f"{flips:.0%} of the pairs flip, more than the allowed {most:.0%}"
    if (most := limits.get("position_bias")) is not None:
        if bias is None:
            yield "the position bias is unknown, because the engine did not estimate it"
        elif abs(bias) > most:
            yield f"the position bias is {abs(bias):.2f} grades, more than the allowed {most:g}"


@dataclass(frozen=True)
class RunCost:
    """Actual cost, summed from the ledger, and estimated cost, from the manifest."""

    spent: LedgerTotals
    estimates: tuple[CostEstimate, ...]

    @property
    def estimated_usd(self) -> float | None:
        """Estimated maximum cost of the run if no answer were cached, in USD; None if a price is unknown or nothing was
        estimated.
        """
        if not self.estimates or any(line.usd is None for line in self.estimates):
            return None
        return sum(line.usd or 0.0 for line in self.estimates)

    @property
    def expected_usd(self) -> float | None:
        """Expected cost of the run if no answer were cached, in USD; None if a price is unknown or nothing was
        estimated.
        """
        if self.estimated_usd is None:
            return None
        return sum(line.expected_usd or 0.0 for line in self.estimates)


def cost(folder: Path) -> RunCost:
    """Return the cost of the run in `folder`.

    Raises:
        NotFoundError, DataError: the run is missing, or its manifest or ledger is damaged.
    """
    run = open_run(folder)
    return RunCost(costs(run.store), tuple(line for line in run.manifest.estimates if line.input_tokens))
