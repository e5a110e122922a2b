"""What is counted while a stage's records pass, for its lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from raggs.base.artifacts import Record
from raggs.base.health import AgainstPeople, Canaries, Health, Rate
from raggs.stats.agreement import wilson

QUESTIONS, DEEPER = "questions", "deeper"  # counts where some questions are searched deeper; the others are signals


def rate_of(count: int, total: int) -> Rate:
    """So many of a total, with the interval; four digits."""
    low, high = wilson(count, total)
    rate = round(count / total, 4) if total else None
    return Rate(rate=rate, interval=(round(low, 4), round(high, 4)), count=count, total=total)


class Statistics:
    """What a stage's records say about its judge, counted while they pass; this one counts nothing."""

    probed: Canaries | None = None  # what cases of known grade told, which no record tells
    people: AgainstPeople | None = None  # what people's word told, which no record tells either
    label: Callable[[str, str], int | None] | None = None  # gives the grade to which a simulated judge adds noise
    noise: Rate | None = None  # how often that made another grade, which no record tells
    exact = False  # whether the judge answers by rule, so that nothing is to be warned of

    def see(self, record: Record) -> None:
        """Take notice of one record of an artifact, or of the settled journal; all come query by query."""

    def counts(self) -> Mapping[str, int]:
        """What was counted of the stage's own work, for the manifest; empty where there is nothing to tell."""
        return {}

    def health(self) -> Health | None:
        """What was found, for the manifest; None where there is nothing to tell."""
        return None
