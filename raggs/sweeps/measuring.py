"""From a configuration to what was measured of each system: lists, waiting, money, memory. Nothing is scored here.

A system whose part fails is named unfinished, and the others go on. Whatever was made is kept, so that a killed sweep
goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from raggs.base.errors import AuthenticationError, ConfigError, DataError, ModelError, PrerequisiteError, RaggsError
from raggs.base.hashing import hash_value
from raggs.base.jsontypes import Number
from raggs.base.progress import Building, Notice
from raggs.base.settings import Causes, causes_of
from raggs.llm.credentials import require_keys
from raggs.parts.rerankers.boosted import BoostedConfig
from raggs.sweeps.costing import Costs
from raggs.sweeps.fitting import WEIGHTS, is_fitted, scorer_for
from raggs.sweeps.foreign import check_known, lists_of, read_foreign, sha256_of
from raggs.sweeps.grid import CHUNKER, System
from raggs.sweeps.memory import memory_of
from raggs.sweeps.models import FitPart, LatencyPart, SystemRow
from raggs.sweeps.once import Once
from raggs.sweeps.parts import Parts
from raggs.sweeps.partstore import Final, PartStore
from raggs.sweeps.store import SweepStore
from raggs.sweeps.timing import Clock
from raggs.sweeps.world import World


@dataclass
class Measured:
    """One system: what it returns, or why it is unfinished."""

    system: System
    final: Final | None = None
    file: str | None = None
    sha256: str | None = None
    failed: str | None = None
    dropped: str | None = None
    undecided: str | None = None
    fit: FitPart | None = None


class Measuring:
    """Measures systems, one after another.

    Args:
        world: of the sweep.
        systems: all of them.
        store: of the sweep.
    """

    def __init__(self, world: World, systems: Sequence[System], store: SweepStore) -> None:
        self._world, self._store = world, store
        self.measured = [Measured(system) for system in systems]
        self.parts = Parts(world, PartStore(world.workshop.places.sweeps, world.hear), systems)
        self._hashes = Once[str]()
        self._searches = world.config.recuts or any(system.run_file is None for system in systems)

    @cached_property
    def _clock(self) -> Clock:
        """Reads what was timed before, so it is made when the race of `halving` is over."""
        return Clock(self._world, self.parts, self._store)

    def give_up(self, dropped: Mapping[str, str], undecided: Mapping[str, str]) -> None:
        """Do not measure some systems; by name, why, and why others are measured although labels call them worse."""
        for each in self.measured:
            each.dropped, each.undecided = dropped.get(each.system.name), undecided.get(each.system.name)

    def check(self) -> None:
        """Find what is wrong before anything is paid for.

        Raises:
            PrerequisiteError: a key or an extra is missing.
            ConfigError: a price is not known where money is limited.
            RaggsError: a part lacks what it needs.
        """
        models: list[str] = []
        for each in self.measured:
            system, parts = each.system, self.parts
            if system.run_file is not None:
                continue  # nobody is asked
            for search in parts.searches(system):
                parts.retriever(search).check()
                models += parts.paid(search)
            models += self._world.workshop.rewriter(system.rewrite).models
            models += () if system.embedder is None else parts.embedder(system.embedder).models
            if system.reranker is not None:
                parts.reranker(system.reranker).check()
                models += parts.reranker(system.reranker).models
        specs = [each.system.embedder for each in self.measured if each.system.run_file is None]
        for number, spec in enumerate(specs):
            if models and spec is not None and spec not in specs[:number]:
                self.parts.embedder(spec).check()
        require_keys(tuple(dict.fromkeys(models)), self._world.workshop.llm.settings)
        if self._world.config.limits.usd_per_1k is not None or self._world.config.budget.limits_usd:
            for model in dict.fromkeys(models):
                self._world.workshop.llm.require_price(model)

    def fingerprint(self, system: System) -> str:
        """Hash of everything that a system's lists depend on."""
        if system.run_file is not None:
            return hash_value({"run": self._sha256(system.run_file), "k": system.k})
        reranker = None if system.reranker is None else self.parts.reranker(system.reranker)
        config = self._world.config
        return hash_value(
            {
                "searches": [self.parts.causes(search) for search in self.parts.searches(system)],
                "k": system.k,
                "rrf": config.hybrid.rrf_k if system.mode == "hybrid" else None,
                "reranker": reranker and [reranker.causes(), config.duplicates],
                "llm": config.llm.causes_for(reranker.models) if reranker and reranker.models else None,
                **({"depth": causes_of(system.depth)} if system.depth is not None else {}),
                **({"fit": self._fit_causes(system)} if is_fitted(system.reranker) else {}),
            }
        )

    def _fit_causes(self, system: System) -> Causes:
        """What decides which weights are chosen."""
        world = self._world
        scorer = scorer_for(world.config, world.labels, world.atlas, system.levels)
        return {
            "weights": list(WEIGHTS),
            "measure": scorer.quality[0],
            "seed": world.config.seed,
            "golden": world.labels.digest,
        }

    def make(self) -> None:
        """Every system's lists, and the first round of the clock, each right after its system was made."""
        for done, each in enumerate(self.measured):
            self._world.hear(Building("systems", done, len(self.measured)))
            if each.dropped:
                continue
            try:
                if each.system.run_file is not None:
                    self._take(each, each.system.run_file)
                    continue
                each.final = self.parts.final(each.system)
                if not any(each.final.lists.values()):
                    raise DataError("returned nothing for any question", remedy="look at its settings")
                each.file = self._store.keep_run(each.system.name, each.final.lists)
                each.fit = self._fit(each.system)
                self._clock.note_paid(each.system)
                self._clock.note_reranked(each.system, each.final)
                self._clock.time([each.system], 1)
            except (AuthenticationError, ModelError) as error:  # of one provider; the keys of all were there
                self._lose(each, error)
            except (ConfigError, PrerequisiteError):
                raise
            except RaggsError as error:
                self._lose(each, error)
        self._world.hear(Building("systems", len(self.measured), len(self.measured)))

    def _fit(self, system: System) -> FitPart | None:
        """How the weight of its reranker was chosen, with the lists of each weight; None where that is given."""
        part, spec = self.parts.fitted(system), system.reranker
        if part is None or not isinstance(spec, BoostedConfig):
            return None
        made = self.parts.boosted(system, spec, self.parts.candidates(system))
        files = [
            self._store.keep_run(f"{system.name} weight {weight:g}", Final.of(found).lists)
            for weight, found in made.items()
        ]
        return part.model_copy(update={"files": tuple(files)})

    def _lose(self, each: Measured, error: RaggsError) -> None:
        each.final, each.file, each.failed = None, None, str(error)
        self._world.hear(Notice(f"{each.system.name} is unfinished: {error}"))

    @property
    def timed(self) -> int:
        """How many questions are asked for the time alone, at most."""
        return self._clock.timed

    def probes(self, system: System) -> Iterator[tuple[str, str, int]]:
        """As `Clock.probes`."""
        return self._clock.probes(system)

    def time(self, number: int) -> None:
        """One more round of the clock."""
        made = [each.system for each in self.measured if each.final]
        self._clock.time([system for system in made if system.run_file is None], number)

    def shown(self) -> Mapping[str, set[str]]:
        """By cut of the corpus, the passages that systems return."""
        found: dict[str, set[str]] = {}
        for each in self.measured:
            if each.final is not None:
                shown = found.setdefault(each.system.levels.get(CHUNKER, ""), set())
                shown |= {doc for hits in each.final.lists.values() for doc, _ in hits}
        return found

    def rows(self) -> Iterator[SystemRow]:
        """What was measured of each system."""
        costs = Costs(self._world, self.parts)
        for each in self.measured:
            system, final = each.system, each.final
            if each.file is not None and each.sha256 is not None:
                yield self._foreign(each, costs)
                continue
            yield SystemRow(
                name=system.name,
                levels=system.levels,
                fingerprint=self.fingerprint(system),
                file=each.file,
                k=system.k,
                mean_k=self._mean_k(system, final),
                escalated=self._share(system, final),
                questions=0 if final is None else len(final.lists),
                failed=each.failed,
                dropped=each.dropped,
                undecided=each.undecided,
                steps={} if final is None else self._clock.steps(system),
                latency=LatencyPart() if final is None else self._clock.latency(system),
                cost=None if final is None else costs.cost(system, final),
                memory=None if final is None else memory_of(system, self.parts),
                fit=None if final is None else each.fit,
            )

    def _share(self, system: System, final: Final | None) -> Number:
        """Of the questions that were searched deeper; None where depth is the same for all."""
        router = self.parts.router(system)
        return None if router is None or final is None else router.share

    def _mean_k(self, system: System, final: Final | None) -> Number:
        share, depth = self._share(system, final), system.depth
        return None if share is None or depth is None else depth.base + share * (depth.deep - depth.base)

    def _take(self, each: Measured, path: Path) -> None:
        """Take a run that was made elsewhere as it is; where there is a corpus, its passages must be known."""
        each.sha256 = self._sha256(path)
        if self._searches:
            lists = lists_of(read_foreign(path, each.sha256, each.system.k), each.system.k)
            check_known(lists, self._world.passages_of(each.system.chunker), path)
            each.final = Final({qid: lists.get(qid, []) for qid in self._world.queries})
        each.file = str(path)

    def _foreign(self, each: Measured, costs: Costs) -> SystemRow:
        """Nobody here knows how long it takes; without passages, nobody knows what a generator would read either."""
        return SystemRow(
            name=each.system.name,
            levels=each.system.levels,
            fingerprint=self.fingerprint(each.system),
            file=each.file,
            sha256=each.sha256,
            k=each.system.k,
            questions=len(self._world.queries),
            cost=None if each.final is None else costs.cost(each.system, each.final),
        )

    def _sha256(self, path: Path) -> str:
        return self._hashes(path, lambda: sha256_of(path))
