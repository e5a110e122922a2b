"""How hard questions are, by how many systems find what answers them.

The share of systems that find it is the classical difficulty of an item (the higher, the easier). It says as much as
the systems differ: three chunk sizes of one embedder are hardly more than one system. What nobody finds may be hard,
or its excerpts may be wrong: such questions are told apart, to be looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from raggs.base.arrays import Flags

Level = Literal["easy", "medium", "hard", "unfound"]
DIFFICULTIES: tuple[Level, ...] = ("easy", "medium", "hard", "unfound")
EASY, MEDIUM = 2 / 3, 1 / 3  # shares of the systems, each included


@dataclass(frozen=True)
class Difficulty:
    """Of one question.

    Attributes:
        found: how many systems find it.
        systems: how many were asked.
        level: easy from two thirds of the systems, medium from one third, hard below, unfound by none.
    """

    found: int
    systems: int
    level: Level


def difficulties(hits: Flags) -> tuple[Difficulty, ...]:
    """The difficulty of each question.

    Args:
        hits: shape (questions, systems), whether a system finds what answers a question.

    Raises:
        ValueError: there is no system.
    """
    if hits.ndim != 2 or not hits.shape[1]:
        raise ValueError("hits need a row a question and a column for at least one system")
    systems = hits.shape[1]
    return tuple(Difficulty(found, systems, _level(found, systems)) for found in np.sum(hits, axis=1).tolist())


def _level(found: int, systems: int) -> Level:
    if not found:
        return "unfound"
    return "easy" if found >= EASY * systems else "medium" if found >= MEDIUM * systems else "hard"
