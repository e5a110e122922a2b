"""Ranking a pool from small judged batches: engines by name, behind one interface.

A pure library: identifiers and grades in, batches out, orders in, a `Ranking` out. It reads no file, no clock
and no environment, logs nothing, and knows nothing of judges. The state of a ranker is a fold over what it
observed, so replaying the same observations rebuilds it bit for bit.

    ranker = make_ranker("online", ids, grades, top=20, batch_size=5, seed=1, max_calls=80)
    while not ranker.done:
        for batch in ranker.next_batches(4):
            ranker.observe(order_of(batch))      # best first; ranker.skip(batch) when the judge failed
    ranking = ranker.ranking()

base                the types that callers need: `Ranker`, `Ranking`, `Lock`
bayes, online       the engines; `rounds`: input checks, rounds and the fold of answers, which both share
posterior, profile  the Plackett-Luce posterior of one query; what several queries teach about a judge
locks               settled pairs: when they are locked and released, and the orders that respect them
fusion, pruning     ranked lists to one pool, and a pool to the candidates of a ranking

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
    """The keywords that an engine takes besides those of `make_ranker`.

    Raises:
        UsageError: no such engine.
    """
    common = inspect.signature(make_ranker).parameters
    return [name for name in inspect.signature(REGISTRY.load(engine)).parameters if name not in common]


def engine_switches(engine: str) -> list[str]:
    """Those of an engine's options that are true or false.

    Raises:
        UsageError: no such engine.
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
    """A fresh ranker over `ids`, started from `grades`.

    Args:
        engine: a name in `REGISTRY`.
        ids: the pool; distinct. Their order decides only how passages that hardly gain anything stand among each other.
        grades: one for each id, 1 (worst) to 5; NaN or None where the judge gave none.
        top: how many leading positions matter.
        batch_size: passages shown in one call; smaller pools are shown whole. None: what tells most for its price, of
            an engine that chooses.
        seed: of the choice of batches and the order of presentation. Derive one for each query.
        max_calls: how many batches may be asked, failed ones included; where their size is open, what so many batches
            of five cost.
        **options: the engine's own settings (see its class).

    Raises:
        UsageError: no such engine.
        ValueError: an argument cannot be right; the message says which and why.
        TypeError: the engine has no such option.
    """
    kind = REGISTRY.load(engine)
    return kind(ids, grades, top=top, batch_size=batch_size, seed=seed, max_calls=max_calls, **options)
