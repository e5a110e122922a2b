"""Ranking of a pool from small judged batches: engines by name, behind one interface.

A pure library: identifiers and grades in, batches out, orders in, a `Ranking` out. It reads no file, clock or
environment variable, writes no log, and does not depend on judges. The state of a ranker depends only on the observed
answers, so replaying the same observations gives the same bits.

    ranker = make_ranker("online", ids, grades, top=20, batch_size=5, seed=1, max_calls=80)
    while not ranker.done:
        for batch in ranker.next_batches(4):
            ranker.observe(order_of(batch))      # best first; ranker.skip(batch) when the judge failed
    ranking = ranker.ranking()

base                types that callers need: `Ranker`, `Ranking`, `Lock`
bayes, online       the engines; `rounds`: input checks, rounds and the order of answers, shared by both
posterior, profile  Plackett-Luce posterior of one query; judge parameters estimated from several queries
locks               settled pairs: when they are locked and released, and the orders that respect them
fusion, pruning     fusion of ranked lists to one pool, and selection of the candidates to rank

Importing this module is cheap: numpy, scipy and networkx are imported with the first engine.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence

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
    """Return the keyword arguments of an engine in addition to those of `make_ranker`.

    Raises:
        UsageError: unknown engine.
    """
    common = inspect.signature(make_ranker).parameters
    return [name for name in inspect.signature(REGISTRY.load(engine)).parameters if name not in common]


def engine_switches(engine: str) -> list[str]:
    """Return the options of an engine that are true or false.

    Raises:
        UsageError: unknown engine.
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
    **options: float,
) -> Ranker:
    """Return a new ranker over `ids`, started from `grades`.

    Args:
        engine: a name in `REGISTRY`.
        ids: the pool; distinct. Their order only decides the order of passages that have hardly any gain.
        grades: one per id, 1 (worst) to 5; NaN or None if the judge gave none.
        top: number of leading positions that matter.
        batch_size: passages per call; smaller pools are shown completely. None: the engine chooses the size with the
            most information for its price, if it supports that.
        seed: random seed of the choice of batches and the order of presentation. Derive one for each query.
        max_calls: maximum number of batches, including failed ones. If the batch size is open, the cost of that many
            batches of five.
        **options: settings of the engine (see its class).

    Raises:
        UsageError: unknown engine.
        ValueError: an argument is out of range; the message states which and why.
        TypeError: the engine has no such option.
    """
    kind = REGISTRY.load(engine)
    return kind(ids, grades, top=top, batch_size=batch_size, seed=seed, max_calls=max_calls, **options)
