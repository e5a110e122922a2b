"""Drop systems that are significantly worse on some queries before all queries are searched.

The rule is in `raggs.stats.resampling`. With a limit on latency, cost or quality, the choice may be a worse system. In
this case, a system is dropped only if the better system was neither slower nor more expensive in the first round. A
system is kept if the most favourable grades of unjudged passages would make its loss insignificant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from raggs.base.arrays import Flags, Floats
from raggs.base.errors import AuthenticationError, ConfigError, ModelError, PrerequisiteError, RaggsError
from raggs.base.types import BuildProgress
from raggs.evaluation.messages import inconclusive
from raggs.evaluation.models import UnjudgedPart
from raggs.metrics.unjudged import ShownPassages
from raggs.stats.front import Candidate, may_replace
from raggs.stats.resampling import draw_order, halve
from raggs.sweeps.effects import SweepUncertainty
from raggs.sweeps.grid import CHUNKER, RetrievalStack
from raggs.sweeps.measuring import SystemCosts
from raggs.sweeps.outputs import SystemOutput
from raggs.sweeps.parts import SystemParts
from raggs.sweeps.scoring import SystemScorer, run_of
from raggs.sweeps.store import SweepStore
from raggs.sweeps.timing import StepTimer
from raggs.sweeps.world import SweepContext


def drop_hopeless(
    world: SweepContext, systems: Sequence[RetrievalStack], store: SweepStore
) -> tuple[dict[str, str], dict[str, str]]:
    """Return two mappings of systems to reasons: the dropped systems, and the systems that are kept although they are
    worse by the labels.

    Raises:
        ConfigError, PrerequisiteError: as `SystemMeasurement.make`. A system with a failed part is not dropped.
    """
    config, qids = world.config.search, list(world.queries)
    order = [qids[at] for at in draw_order(len(qids), world.config.seed)]
    rounds = sorted({count for count in config.queries if isinstance(count, int) and count < len(qids)})
    race = _Race(world, systems, store, rounds)
    dropped: dict[str, str] = {}
    undecided: dict[str, str] = {}
    for count in rounds:
        race.look(order[:count], dropped)
        found = halve(
            [system.name for system in systems],
            race.values[:, :count],
            total=len(qids),
            looked_at=list(race.seen.values()),
            replaces=race.replaces(),
            error=config.error,
        )
        undecided = {}
        for each in found.dropped:
            worse = f"worse than {each.by} by {each.difference:.3f} on the first {count} queries"
            if (why := race.reversible(each.name, each.by, count, len(qids))) is not None:
                undecided[each.name] = f"{worse} by the labels, which is {inconclusive(why)}"
                continue
            dropped[each.name] = (
                f"{worse}, significantly (probability of dropping the best: at most {config.error:.0%})"
            )
    return dropped, undecided


class _Race:
    """The values of all systems on the queries so far, and their latencies and costs."""

    def __init__(
        self, world: SweepContext, systems: Sequence[RetrievalStack], store: SweepStore, rounds: Sequence[int]
    ) -> None:
        self._world, self._systems, self._store = world, systems, store
        self.values: Floats = np.full((len(systems), max(rounds, default=0)), np.nan)
        self.seen = {system.name: 0 for system in systems}
        self._columns: list[int] = []
        self._doubts: SweepUncertainty | None = None
        self._takes = {system.name: Candidate(system.name, None, None, (0.0,), system.k) for system in systems}

    def look(self, asked: Sequence[str], dropped: Mapping[str, str]) -> None:
        """Score the remaining systems on some queries, into the first columns of `values`."""
        part = self._world.narrowed(asked)
        alive = [system for system in self._systems if system.name not in dropped]
        parts = SystemParts(part, alive)
        place = {qid: at for at, qid in enumerate(asked)}
        columns = self._columns = [place[qid] for qid in part.labels.qrels.qids]
        shown: dict[str, ShownPassages | None] = {}
        first = ""
        for done, system in enumerate(alive):
            part.hear(BuildProgress(f"systems on {len(asked)} queries", done, len(alive)))
            self.seen[system.name] = len(asked)
            try:
                final = parts.final(system)
                scorer = self._scorer(part, system)
                found = scorer.score(system.name, run_of(list(final.lists.items())), system.k)
                first = scorer.quality[0]
                self.values[self._systems.index(system), columns] = found.values[first]
                shown[system.name] = found.shown
                self._measure(part, parts, system, final)
            except (AuthenticationError, ModelError):
                continue  # as below
            except (ConfigError, PrerequisiteError):
                raise
            except RaggsError:
                continue  # `SystemMeasurement.make` reports the error if it occurs again
        self._doubts = SweepUncertainty.of(first, shown, self._world.config.golden) if first else None

    def reversible(self, name: str, by: str, count: int, total: int) -> UnjudgedPart | None:
        """Return why a system must not be dropped for another one, or None if unjudged passages cannot change the
        result.

        The comparison of the two systems is repeated with the most favourable possible difference on each query.

        Args:
            name: of the system.
            by: the system that would replace it.
            count: number of queries seen.
            total: number of all queries.
        """
        doubts = self._doubts
        if doubts is None or (ends := doubts.ends(name, by)) is None:
            return None
        best = np.full(count, np.nan)
        best[self._columns] = np.minimum(ends.high, 1.0)
        rows = np.stack([np.where(np.isnan(best), np.nan, 0.0), best])
        again = halve([by, name], rows, total=total, error=self._world.config.search.error)
        return None if any(each.name == name for each in again.dropped) else doubts.part([(name, by)])

    def _scorer(self, world: SweepContext, system: RetrievalStack) -> SystemScorer:
        sheet = None if world.atlas is None else world.atlas.sheet(system.levels[CHUNKER])
        return SystemScorer(world.config, world.labels, sheet=sheet)

    def replaces(self) -> Flags | None:
        """Return which system (row) may replace which other system (column); None if no limit is set."""
        if not self._limited:
            return None
        config = self._world.config
        return may_replace(list(self._takes.values()), config.latency.jitter_ms, config.limits.latency_ms)

    @property
    def _limited(self) -> bool:
        limits = self._world.config.limits
        return limits.latency_ms is not None or limits.usd_per_1k is not None or limits.quality is not None

    def _measure(self, world: SweepContext, parts: SystemParts, system: RetrievalStack, final: SystemOutput) -> None:
        """Measure latency and cost of a system once, if a limit on latency, cost or quality is set."""
        if not self._limited or self._takes[system.name].latency_ms is not None:
            return
        clock = StepTimer(world, parts, self._store)
        clock.note_paid(system)
        clock.note_reranked(system, final)
        clock.time([system], 1)
        total, cost = clock.latency(system).total, SystemCosts(world, parts).cost(system, final).total
        waits = None if total is None else total.p95
        self._takes[system.name] = Candidate(system.name, cost, waits, (0.0,), system.k)
