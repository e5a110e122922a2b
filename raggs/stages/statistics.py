"""What is counted while a stage's records pass, for its lock."""

from __future__ import annotations

from raggs.artifacts import Record
from raggs.health import Health


class Statistics:
    """What a stage's records say about its judge, counted while they pass; this one counts nothing."""

    exact = False  # whether the judge answers by rule, so that nothing is to be warned of

    def see(self, record: Record) -> None:
        """Take notice of one record of an artifact, or of the settled journal; all come query by query."""

    def health(self) -> Health | None:
        """What was found, for the manifest; None where there is nothing to tell."""
        return None
