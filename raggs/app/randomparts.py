"""The random part of what people read: which passages, or whole questions, chance chooses, and what of it is noted.

Drawn is among all that the pools hold, whether somebody has read it or not: what chance hits counts, and what was
chosen for another reason does not. By one seed, a later part holds the earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.app.reviewpool import Pool
from raggs.base.arrays import Flags, Ints
from raggs.parts.reviews.draws import Draw, DrawnItem, Unit
from raggs.parts.reviews.models import Key
from raggs.parts.reviews.plans import PlanItem
from raggs.stats.decision.drawing import Drawn, draw, lots


@dataclass(frozen=True)
class RandomPart:
    """What chance chose.

    Attributes:
        unit: what was drawn.
        seed: of the numbers by which it was.
        chance: by the number of an entry of the pool, in the order of reading.
    """

    unit: Unit
    seed: int
    chance: dict[int, float]


def draw_part(pool: Pool, before: Sequence[Draw], wanted: int, *, whole: bool, seed: int) -> RandomPart:
    """Draw until there are so many that nobody has read, and what earlier draws by the same seed hold.

    Args:
        before: all draws, oldest first.
        wanted: passages, or questions where `whole`.
    """
    unit: Unit = "question" if whole else "passage"
    held = next((each for each in reversed(before) if (each.unit, each.seed) == (unit, seed)), None)
    items = () if held is None else held.items
    make = _questions if whole else _passages
    return RandomPart(unit, seed, make(pool, items, wanted, seed))


def draw_of_plan(plan: Iterable[PlanItem]) -> Draw | None:
    """The random part of a plan, as it is noted; None where it has none that names its seed."""
    drawn = [(item, item.chance) for item in plan if item.chance is not None and item.seed is not None]
    if not drawn:
        return None
    unit, seed = drawn[0][0].unit, drawn[0][0].seed or 0
    queries = sorted({item.query for item, _ in drawn})
    turn = dict(zip(queries, lots(seed, queries).tolist(), strict=True))
    drawn.sort(key=lambda each: (turn[each[0].query], *each[0].key))
    items = tuple(DrawnItem(query=item.query, passage=item.passage, chance=odds) for item, odds in drawn)
    return Draw(unit=unit, seed=seed, items=items)


def draw_of_sample(keys: Sequence[Key], chances: Sequence[float | None], seed: int) -> Draw:
    """A sample of passages, as it is noted."""
    items = tuple(
        DrawnItem(query=query, passage=passage, chance=odds or 1.0)
        for (query, passage), odds in zip(keys, chances, strict=True)
    )
    return Draw(unit="passage", seed=seed, items=items)


def _passages(pool: Pool, held: Sequence[DrawnItem], wanted: int, seed: int) -> dict[int, float]:
    heard, known, own = pool.heard, {item.key for item in held}, _once(pool)
    entries = [pool.entries[number] for number in own.tolist()]
    stratum = (heard.kind * (heard.voices.shape[1] + 1) + heard.grade)[own]
    lot = lots(seed, ("".join(entry.key) for entry in entries))
    again = np.array([entry.key in known for entry in entries], dtype=bool)
    open_ = np.array([entry.open for entry in entries], dtype=bool)
    found = _grown(open_, wanted, lambda count: draw(stratum, lot, count, again))
    return dict(zip(own[found.items].tolist(), found.chance.tolist(), strict=True))


def _questions(pool: Pool, held: Sequence[DrawnItem], wanted: int, seed: int) -> dict[int, float]:
    """Whole questions, in the order of their numbers: who stops early has read a smaller draw."""
    members: dict[str, list[int]] = {}
    for number in _once(pool).tolist():
        members.setdefault(pool.entries[number].key[0], []).append(number)
    known = {item.query for item in held}
    lot = lots(seed, members)
    again = np.array([query in known for query in members], dtype=bool)
    open_ = np.array([any(pool.entries[each].open for each in mine) for mine in members.values()], dtype=bool)
    found = _grown(open_, wanted, lambda count: draw(np.zeros(len(lot), dtype=np.int64), lot, count, again))
    chance, groups = dict(zip(found.items.tolist(), found.chance.tolist(), strict=True)), list(members.values())
    order = sorted(chance, key=lambda place: float(lot[place]))
    return {number: chance[place] for place in order for number in groups[place]}


def _once(pool: Pool) -> Ints:
    """The entries, without those that ask for another question's words once more."""
    first = {entry.key: number for number, entry in reversed([*enumerate(pool.entries)])}
    return np.array(sorted(first.values()), dtype=np.int64)


def _grown(open_: Flags, wanted: int, make: Callable[[int], Drawn]) -> Drawn:
    """The smallest draw with so many open ones; all where there are not."""
    count = wanted
    while True:
        found = make(count)
        lacking = wanted - int(open_[found.items].sum())
        if lacking <= 0 or count >= len(open_):
            return found
        count += lacking
