"""Every measure once more, as slow and plain as its definition: grades in a list, no columns, no tie groups.

`shown` is the whole list of one query, best first: the grade of each passage, None where it is not judged. `pool` are
the grades of all judged passages of the query. Grades are on the scale 1 to 5, 4 and 5 are relevant, gain = grade - 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby, permutations, product

from raggs.metrics import evaluate

Shown = Sequence[int | None]
Pool = Sequence[int]

RELEVANT = 4
UTILITY = {5: 1.0, 4: 0.5, 3: 0.1, 2: 0.0, 1: 0.0}


def weights(pool: Pool, alpha: float = 1.0, cap4: float = 1.0, cap3: float = 0.25) -> dict[int | None, float]:
    held = Counter(pool)
    if not held[5]:
        return {5: 1.0, 4: 1.0, 3: 0.2, 2: 0.0, 1: 0.0, None: 0.0}
    rarity = {g: UTILITY[g] / (held[g] / len(pool)) ** alpha if held[g] else 0.0 for g in UTILITY}
    return {
        5: 1.0,
        4: min(rarity[4] / rarity[5], cap4),
        3: min(rarity[3] / rarity[5], cap3),
        2: 0.0,
        1: 0.0,
        None: 0.0,
    }


def share(above: float, below: float, otherwise: float = math.nan) -> float:
    return above / below if below > 0 else otherwise


def good(grades: Shown, low: int = RELEVANT) -> int:
    return sum(grade is not None and grade >= low for grade in grades)


def best(values: Sequence[float], k: int) -> float:
    return sum(sorted(values, reverse=True)[:k])


def ra_nwg(shown: Shown, pool: Pool, k: int, **how: float) -> float:
    w = weights(pool, **how)
    return share(sum(w[g] for g in shown[:k]), best([w[g] for g in pool], k))


def n_recall(low: int) -> Callable[[Shown, Pool, int], float]:
    return lambda shown, pool, k: share(good(shown[:k], low), min(k, good(pool, low)))


def proc_ra_nwg(shown: Shown, pool: Pool, k: int, depth: int) -> float:
    w = weights(pool)
    return share(best([w[g] for g in shown[: max(depth, k)]], k), best([w[g] for g in pool], k))


def proc_n_recall(low: int) -> Callable[[Shown, Pool, int, int], float]:
    return lambda shown, pool, k, depth: share(min(k, good(shown[: max(depth, k)], low)), min(k, good(pool, low)))


def pct(plain: Callable[..., float], ceiling: Callable[..., float]) -> Callable[..., float]:
    def measure(shown: Shown, pool: Pool, k: int, depth: int) -> float:
        top = ceiling(shown, pool, k, depth)
        if not shown and not math.isnan(top):
            return 0.0
        return share(plain(shown, pool, k), top)

    return measure


def discounted(values: Sequence[float]) -> float:
    return sum(value / math.log2(place + 1) for place, value in enumerate(values, start=1))


def ndcg(gain: Callable[[int], float]) -> Callable[[Shown, Pool, int], float]:
    def measure(shown: Shown, pool: Pool, k: int) -> float:
        ideal = sorted((gain(g) for g in pool), reverse=True)[:k]
        return share(discounted([0.0 if g is None else gain(g) for g in shown[:k]]), discounted(ideal), 0.0)

    return measure


def net_utility(shown: Shown, pool: Pool, k: int, harm: float = 0.33) -> float:
    u = {g: UTILITY[g] if UTILITY[g] > 0 else -harm for g in UTILITY} | {None: 0.0}
    return share(sum(u[g] for g in shown[:k]), sum(sorted((UTILITY[g] for g in pool), reverse=True)[:k]))


def interpolated(shown: Shown, pool: Pool, k: int, recall: float = 0.5) -> float:
    needed = int(recall * good(pool) + 0.9)
    reached = [good(shown[:place]) / place for place in range(1, len(shown) + 1) if good(shown[:place]) >= needed]
    return max(reached, default=0.0)


def expected_reciprocal_rank(shown: Shown, pool: Pool, k: int) -> float:
    going_on, total = 1.0, 0.0
    for place, grade in enumerate(shown[:k], 1):
        stop = 0.0 if grade is None else (2 ** (grade - 1) - 1) / 2**4
        total, going_on = total + going_on * stop / place, going_on * (1 - stop)
    return total


def per_passage(gains: Sequence[float], going_on: Callable[[int, float, float], float]) -> float:
    """The gain per passage of a reader who goes on from a place by its rank, its gain and the gain so far (C/W/L)."""
    weight, weights, total, so_far = 1.0, 0.0, 0.0, 0.0
    for place, gain in enumerate([*gains, *[0.0] * (1000 - len(gains))], 1):
        weights, total, so_far = weights + weight, total + weight * gain, so_far + gain
        weight *= going_on(place, gain, so_far)
    return total / weights


def patient(place: int, goal: float) -> float:
    return ((place + goal - 1) / (place + goal)) ** 2


# name -> for a goal T or a persistence p, and a cutoff, the probability of going on
GOING_ON: dict[str, Callable[[float, int], Callable[[int, float, float], float]]] = {
    "inst": lambda t, k: lambda i, gain, so_far: patient(i, t + t - so_far),
    "insq": lambda t, k: lambda i, gain, so_far: patient(i, 2 * t),
    "sdcg": lambda t, k: lambda i, gain, so_far: math.log2(i + 1) / math.log2(i + 2) if i < k else 0.0,
    "bpm": lambda t, k: lambda i, gain, so_far: float(so_far < t and i < k),
    "nerr8": lambda t, k: lambda i, gain, so_far: 1 - gain if i < k else 0.0,
    "nerr9": lambda t, k: lambda i, gain, so_far: i / (i + 1) * (1 - gain) if i < k else 0.0,
    "nerr10": lambda p, k: lambda i, gain, so_far: p * (1 - gain),
    "nerr11": lambda t, k: lambda i, gain, so_far: patient(i, 2 * t) * (1 - gain),
}


def scaled(shown: Shown) -> list[float]:
    return [0.0 if grade is None else (grade - 1) / 4 for grade in shown]


def reader(name: str, usual: float = 1.0) -> Callable[[Shown, Pool, int], float]:
    return lambda shown, pool, k: per_passage(scaled(shown[:k]), GOING_ON[name](usual, k))


def insq(shown: Shown, pool: Pool, k: int) -> float:
    return sum(gain / (place + 1) ** 2 for place, gain in enumerate(scaled(shown[:k]), 1)) / INSQ


INSQ = sum(1 / (place + 1) ** 2 for place in range(1, 1001))


def accuracy(shown: Shown, pool: Pool, k: int) -> float:
    pairs = [(good([one]), good([two])) for place, one in enumerate(shown[:k]) for two in shown[place + 1 : k]]
    ordered, mixed = pairs.count((1, 0)), pairs.count((1, 0)) + pairs.count((0, 1))
    return share(ordered, mixed) if shown else 0.0


def compatibility(shown: Shown, pool: Pool, k: int, p: float = 0.95) -> float:
    seen = [(grade, number) for number, grade in enumerate(shown[:k])]
    left = list(pool)
    for grade, _ in seen:
        if grade is not None:
            left.remove(grade)
    named = [pair for pair in seen if pair[0] is not None] + [(grade, 10**6 + n) for n, grade in enumerate(left)]
    ideal = sorted((pair for pair in named if pair[0] > 1), key=lambda pair: (-pair[0], pair[1]))
    depths = range(1, max(len(seen), len(ideal)) + 1)

    def overlap(first: list[tuple[int | None, int]]) -> float:
        return sum(p ** (d - 1) * len(set(first[:d]) & set(ideal[:d])) / d for d in depths)

    return share(overlap(seen), overlap(ideal), 0.0)


def inferred(shown: Shown, pool: Pool, k: int) -> float:
    total, judged, relevant = 0.0, 0, 0
    for place, grade in enumerate(shown[:k], 1):
        if grade is not None and grade >= 4:
            above = (relevant + 1e-5) / (judged + 2e-5)
            total += 1 / place + judged / place * above if place > 1 else 1.0
        judged += grade is not None
        relevant += grade is not None and grade >= 4
    return share(total, good(pool), 0.0)


def mrr(shown: Shown, pool: Pool, k: int) -> float:
    return next((1 / place for place in range(1, len(shown[:k]) + 1) if good(shown[place - 1 : place])), 0.0)


def average_precision(shown: Shown, pool: Pool, k: int) -> float:
    hits = [place for place in range(1, len(shown[:k]) + 1) if good(shown[place - 1 : place])]
    return share(sum(good(shown[:place]) / place for place in hits), good(pool), 0.0)


def rbp(shown: Shown, pool: Pool, k: int, p: float = 0.8) -> float:
    return sum((1 - p) * p**place for place in range(len(shown[:k])) if good(shown[place : place + 1]))


def bpref(shown: Shown, pool: Pool, k: int) -> float:
    relevant, others = good(pool), len(pool) - good(pool)
    total = 0.0
    for place, grade in enumerate(shown[:k]):
        if good([grade]):
            above = sum(g is not None and g < RELEVANT for g in shown[:place])
            total += 1 - share(min(above, relevant), min(relevant, others), 0.0)
    return share(total, relevant, 0.0)


def hit_all(shown: Shown, pool: Pool, k: int) -> float:
    return float(good(shown[:k]) == good(pool)) if good(pool) else math.nan


def judged(shown: Shown, pool: Pool, k: int) -> float:
    return share(sum(g is not None for g in shown[:k]), min(k, len(shown)), 0.0)


def holes(shown: Shown, pool: Pool, k: int) -> float:
    return share(sum(g is None for g in shown[:k]), min(k, len(shown)), 0.0)


def recall(shown: Shown, pool: Pool, k: int) -> float:
    return share(good(shown[:k]), good(pool), 0.0)


# name -> the value at a cutoff; ceilings take their pool as well
PLAIN: dict[str, Callable[..., float]] = {
    "ra_nwg": ra_nwg,
    "n_recall4": n_recall(4),
    "n_recall5": n_recall(5),
    "precision4": lambda shown, pool, k: good(shown[:k]) / k,
    "harm": lambda shown, pool, k: sum(g is not None and g <= 2 for g in shown[:k]) / k,
    "hit_all": hit_all,
    "holes": holes,
    "judged": judged,
    "proc_ra_nwg": proc_ra_nwg,
    "proc_n_recall4": proc_n_recall(4),
    "proc_n_recall5": proc_n_recall(5),
    "pct_proc_ra_nwg": pct(ra_nwg, proc_ra_nwg),
    "pct_proc_n_recall4": pct(n_recall(4), proc_n_recall(4)),
    "pct_proc_n_recall5": pct(n_recall(5), proc_n_recall(5)),
    "net_utility": net_utility,
    "set_p": lambda shown, pool, k: share(good(shown[:k]), len(shown[:k]), 0.0),
    "set_f": lambda shown, pool, k: share(2 * good(shown[:k]), len(shown[:k]) + good(pool), 0.0),
    "rprec": lambda shown, pool, k: share(good(shown[: min(good(pool), k)]), good(pool), 0.0),
    "iprec": interpolated,
    "err": expected_reciprocal_rank,
    "inst": reader("inst"),
    "insq": insq,
    "sdcg": lambda shown, pool, k: discounted(scaled(shown[:k])) / discounted([1.0] * k),
    "bpm": reader("bpm"),
    "nerr8": reader("nerr8"),
    "nerr9": reader("nerr9"),
    "nerr10": reader("nerr10", 0.9),
    "nerr11": reader("nerr11"),
    "accuracy": accuracy,
    "set_ap": lambda shown, pool, k: share(good(shown[:k]) ** 2, len(shown[:k]) * good(pool), 0.0),
    "compat": compatibility,
    "infap": inferred,
    "unj": lambda shown, pool, k: sum(grade is None for grade in shown[:k]) / k,
    "hit": lambda shown, pool, k: float(good(shown[:k]) > 0),
    "hits": lambda shown, pool, k: float(good(shown[:k])),
    "recall": recall,
    "precision": lambda shown, pool, k: good(shown[:k]) / k,
    "f1": lambda shown, pool, k: 2 * good(shown[:k]) / (k + good(pool)),
    "mrr": mrr,
    "map": average_precision,
    "ndcg": ndcg(lambda grade: grade - 1),
    "ndcg_exp": ndcg(lambda grade: 2 ** (grade - 1) - 1),
    "rbp": rbp,
    "bpref": bpref,
    "robustness": lambda shown, pool, k: float(recall(shown, pool, k) >= 0.5),
}
CEILINGS = frozenset(name for name in PLAIN if "proc" in name)


def plain_value(name: str, shown: Shown, pool: Pool, k: int, depth: int) -> float:
    """The value of a list without ties; of a measure that is not written here, by the measure itself.

    So the expectations and ranges of a new measure over ties are compared with the enumeration of every order, too.
    """
    if name not in PLAIN:
        judged = {f"shown{n}": grade for n, grade in enumerate(shown) if grade is not None}
        rest = list(pool)
        for grade in judged.values():
            rest.remove(grade)
        judged |= {f"missed{n}": grade for n, grade in enumerate(rest)}
        ranked = [f"shown{n}" for n in range(len(shown))]
        measure = written(name, k, depth)
        return evaluate({"q": judged}, {"q": ranked}, [measure], scale=(1, 5)).per_query[measure]["q"]
    return PLAIN[name](shown, pool, k, depth) if name in CEILINGS else PLAIN[name](shown, pool, k)


def written(name: str, k: int, depth: int) -> str:
    """The measure as `raggs.metrics` spells it."""
    if name == "iprec":  # the recall stands behind "@"
        return "iprec@0.5"
    return f"{name}(pool={depth})@{k}" if name in CEILINGS else f"{name}@{k}"


def all_orders(groups: Sequence[Sequence[int | None]]) -> Counter[tuple[int | None, ...]]:
    """Every order of tied passages, by how many of the permutations look like it."""
    each = [Counter(permutations(group)) for group in groups]
    found: Counter[tuple[int | None, ...]] = Counter()
    for choice in product(*(ways.items() for ways in each)):
        found[tuple(grade for order, _ in choice for grade in order)] += math.prod(count for _, count in choice)
    return found


def groups_of(scored: Sequence[tuple[float, int | None]]) -> list[list[int | None]]:
    """The tie groups of (score, grade) pairs, best first."""
    ranked = sorted(scored, key=lambda pair: -pair[0])
    return [[grade for _, grade in group] for _, group in groupby(ranked, key=lambda pair: pair[0])]
