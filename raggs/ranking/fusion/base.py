"""What a fusion method is: it says what each hit of a list is worth; the loop around it is
`raggs.ranking.fusion.fuse`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

ScoredList = Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Fused:
    """A passage of the fused list. `sources`: (rank from 1, score) by the lists that found it."""

    doc_id: str
    score: float
    sources: dict[str, tuple[int, float]]


class Fusion(ABC):
    """A method. The first line of its docstring is its line in `raggs list fusions`.

    The keywords of its constructor are its options, each with a default and checked there (ValueError).
    """

    VERSION: ClassVar[int] = 1  # raised when equal lists are fused otherwise

    def __init__(self, **options: float) -> None:
        if options:
            raise ValueError(f"there is no option {next(iter(options))!r}")

    @abstractmethod
    def points(self, hits: ScoredList) -> list[float]:
        """What each hit of a list, best first, is worth; from 0 up."""

    def total(self, points: float, lists: int) -> float:
        """What a passage gets: `points` is the weighted sum over the `lists` that found it and have a weight."""
        return points
