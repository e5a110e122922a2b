"""Rank a pool of passages from small judged batches. Every engine has a name, and all have the same interface.

A pure library: identifiers and grades in, batches out, orders in, a `Ranking` out. It reads no file, clock or
environment variable, writes no log, and does not depend on judges. The state of a ranker depends only on its arguments
and on the calls of its methods. Repeating the same calls, with rounds of the same size, gives a bit-identical ranking.

    ranker = make_ranker("online", ids, grades, top=20, batch_size=5, seed=1, max_calls=80)
    while not ranker.done:
        for batch in ranker.next_batches(4):
            ranker.observe(order_of(batch))      # best first; call ranker.skip(batch) if the judge failed
    ranking = ranker.ranking()

base                types that callers need: `Ranker`, `Ranking`, `Lock`
bayes, online       the engines; `rounds`: input checks, rounds and the order of processing, shared by both engines
posterior, profile  Plackett-Luce posterior of one query, and judge parameters estimated from one or several queries
locks               settled pairs: when they are locked and released, and the orders that respect them
fusion, pruning     fusion of ranked lists into one pool, and selection of the candidates to rank

Importing this module is cheap: numpy and networkx are imported only when an engine is loaded or used.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from raggs.base.registry import Registry
from raggs.ranking.base import Lock, Pilot, Profile, Ranker, Ranking

__all__ = [
    "REGISTRY",
    "Lock",
    "Pilot",
    "Profile",
    "Ranker",
    "Ranking",
    "engine_options",
    "engine_switches",
    "make_ranker",
]

REGISTRY: Registry[Ranker] = Registry(
    "engine",
    "engines",
    "raggs.ranking.base:Ranker",
    {"bayes": "raggs.ranking.bayes:BayesRanker", "online": "raggs.ranking.online:OnlineRanker"},
)


def engine_options(engine: str) -> list[str]:
    """Return the names of the options of an engine, without the arguments that all engines share.

    Raises:
        UsageError: no engine has this name.
    """
    common = inspect.signature(make_ranker).parameters
    return [name for name in inspect.signature(REGISTRY.load(engine)).parameters if name not in common]


def engine_switches(engine: str) -> list[str]:
    """Return the names of the boolean options of an engine.

    Raises:
        UsageError: no engine has this name.
    """
    known = inspect.signature(REGISTRY.load(engine)).parameters
    return [name for name in engine_options(engine) if isinstance(known[name].default, bool)]


def make_ranker(
    engine: str,
    ids: Sequence[str],
    grades: Sequence[float | None],
    *,
    top: int = 20,
    batch_size: int | None = 5,
    seed: int = 1,
    max_calls: int = 80,
    distributions: Sequence[Sequence[float] | None] | None = None,
    **options: float,
) -> Ranker:
    """Return a new ranker for the passages `ids`, whose first scores are the `grades`.

    Args:
        engine: a name in `REGISTRY`.
        ids: ids of the passages of the pool, all different. Their order matters only for passages that are probably
            irrelevant.
        grades: one grade per id, from 1 (worst) to 5; NaN or None if the judge gave no grade.
        top: number of leading positions that matter.
        batch_size: passages per call; a smaller pool is shown as a whole. If None, the engine chooses the size with the
            most information per cost. Only some engines support None.
        seed: random seed for the choice of batches and the order of presentation. Derive another seed for each query.
        max_calls: maximum number of batches, including failed ones. If `batch_size` is None, the budget is the cost of
            this many batches of five.
        distributions: per id, the calibrated probabilities that the passage deserves the grades 1 to 5, or None if only
            the grade is known. A distribution replaces the grade. If None, only grades are known.
        **options: settings of the engine (see its class).

    Raises:
        UsageError: no engine has this name.
        ValueError: an argument is out of range; the message names it and the reason.
        TypeError: the engine has no such option.
    """
    kind = REGISTRY.load(engine)
    # passed only if given, because an engine of another package may not accept distributions
    more: dict[str, Any] = dict(options) if distributions is None else {**options, "distributions": distributions}
    return kind(ids, grades, top=top, batch_size=batch_size, seed=seed, max_calls=max_calls, **more)
