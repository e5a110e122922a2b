"""Systems that are worse beyond doubt on a part of the questions are not looked at on the rest.

The rule is that of `raggs.decision.halving`.

Where a limit on waiting or money is set, a worse system may still be the choice: then it is dropped only for one that
does no more work than it does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raggs.arrays import Flags, Floats
from raggs.decision.halving import draw_order, halve
from raggs.errors import ConfigError, PrerequisiteError, RaggsError
from raggs.progress import Building
from raggs.sweeps.grid import System
from raggs.sweeps.parts import Parts
from raggs.sweeps.partstore import PartStore
from raggs.sweeps.scoring import Scorer, run_of
from raggs.sweeps.world import World


def drop_hopeless(world: World, systems: Sequence[System]) -> dict[str, str]:
    """By system that is given up, why.

    Raises:
        ConfigError, PrerequisiteError: as `Measuring.make`. A system whose part fails stays in the race.
    """
    config, qids = world.config.search, list(world.queries)
    order = [qids[at] for at in draw_order(len(qids), world.config.seed)]
    rounds = sorted({count for count in config.queries if isinstance(count, int) and count < len(qids)})
    replaces = _replaces(systems, limited=_limited(world))
    dropped: dict[str, str] = {}
    seen = {system.name: 0 for system in systems}
    values = np.full((len(systems), max(rounds, default=0)), np.nan)
    for count in rounds:
        asked = order[:count]
        _look(world, systems, dropped, asked, values)
        seen |= {system.name: count for system in systems if system.name not in dropped}
        found = halve(
            [system.name for system in systems],
            values[:, :count],
            total=len(qids),
            looked_at=list(seen.values()),
            replaces=replaces,
            error=config.error,
        )
        for each in found.dropped:
            dropped[each.name] = (
                f"worse than {each.by} by {each.difference:.3f} on the first {count} questions, beyond doubt "
                f"(at most {config.error:.0%} to lose the best system)"
            )
    return dropped


def _look(
    world: World, systems: Sequence[System], dropped: dict[str, str], asked: Sequence[str], values: Floats
) -> None:
    """Score the systems that are left on some questions, into the first columns of `values`."""
    part = world.narrowed(asked)
    alive = [system for system in systems if system.name not in dropped]
    parts, scorer = Parts(part, PartStore(world.workshop.places.sweeps), alive), Scorer(world.config, part.labels)
    place = {qid: at for at, qid in enumerate(asked)}
    columns = [place[qid] for qid in part.labels.qrels.qids]
    for done, system in enumerate(alive):
        world.hear(Building(f"systems on {len(asked)} questions", done, len(alive)))
        try:
            run = run_of(list(parts.final(system).lists.items()))
        except (ConfigError, PrerequisiteError):
            raise
        except RaggsError:
            continue  # it is told when all questions are asked
        found = scorer.score(system.name, run, system.k).values[scorer.quality[0]]
        values[systems.index(system), columns] = found


def _limited(world: World) -> bool:
    limits = world.config.limits
    return limits.latency_ms is not None or limits.usd_per_1k is not None or limits.quality is not None


def _replaces(systems: Sequence[System], *, limited: bool) -> Flags:
    """Which system (row) may stand in for which other one (column)."""
    if not limited:
        return np.ones((len(systems), len(systems)), dtype=np.bool_)
    return np.array([[_no_more_work(one, other) for other in systems] for one in systems], dtype=np.bool_)


def _no_more_work(one: System, other: System) -> bool:
    """Whether the first does nothing that the second does not."""
    if one.k > other.k or one.reranker not in (None, other.reranker):
        return False
    parts = (one.mode, one.rewrite, one.embedder, one.index, one.own)
    return parts == (other.mode, other.rewrite, other.embedder, other.index, other.own)
