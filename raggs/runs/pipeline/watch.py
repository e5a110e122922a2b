"""What the runner learns of a stage while its records pass: failures, the judge's health, and what stopped it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from raggs.base.artifacts import JournalRecord, Record, answerers_named
from raggs.base.errors import RaggsError
from raggs.stages.base import AnyStage
from raggs.stages.statistics import Statistics


class Watch:
    """Counts a stage's failed records and tallies them while they pass."""

    def __init__(self, stage: AnyStage, statistics: Statistics) -> None:
        self._stage = stage
        self.statistics = statistics
        self.failed = 0
        self.answered: Counter[str] = Counter()  # records by the key of each of their answerers
        self.stopped: RaggsError | KeyboardInterrupt | None = None

    def until_stopped(self, records: Iterator[Record]) -> Iterator[Record]:
        """The records until the judge can be asked no more; what comes before the first one is raised."""
        some = False
        try:
            for record in self.passing(records):
                some = True
                yield record
        except (RaggsError, KeyboardInterrupt) as error:
            if not some:
                raise
            self.stopped = error

    def passing(self, records: Iterator[Record]) -> Iterator[Record]:
        """The records, counted."""
        for record in records:
            self.failed += self._stage.failed(record)
            self.statistics.see(record)
            self.answered.update(answerers_named(record))
            yield record

    def journal(self, entries: Iterable[JournalRecord]) -> Iterator[JournalRecord]:
        """The entries of the stage's journal, counted."""
        for entry in entries:
            self.failed += entry.failed
            self.statistics.see(entry)
            self.answered.update(answerers_named(entry))
            yield entry
