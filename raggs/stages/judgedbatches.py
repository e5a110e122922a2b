"""One query's batches and who answers them: the journal, else the judge, whose answer is noted before it is used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from raggs.base.artifacts import JournalRecord, Passage, Query
from raggs.base.believed import JudgeProfile
from raggs.base.errors import BudgetError
from raggs.parts.judges.base import Judge, KnownOrder
from raggs.stages.base import Journal
from raggs.stages.pilot import profile_entry
from raggs.stages.replay import Answers, Batch


class JudgedBatches:
    """Answers to one query's batches: the journal's, and where it has none that succeeded, the judge's.

    Args:
        blank: what the entries of the query have in common.

    Attributes:
        used: every answer that was given.
    """

    def __init__(
        self, blank: JournalRecord, query: Query, passages: Mapping[str, Passage], judge: Judge, journal: Journal
    ) -> None:
        self.used: list[JournalRecord] = []
        self._blank = blank
        self._known = Answers(entry for entry in journal.entries(query.qid) if entry.state == blank.state)
        self._query = query
        self._passages = passages
        self._judge = judge
        self._journal = journal

    def told(self, orders: Iterable[KnownOrder]) -> list[JournalRecord]:
        """The entries of orders that are there before anything is asked; new ones are in the journal."""
        entries, before = known_entries(self._blank, orders), self._known.known
        for entry in entries:
            if entry not in before:
                self._journal.append(entry)
        self.used += entries
        return entries

    def believed(self, number: int, profile: JudgeProfile) -> JournalRecord:
        """The entry of what was learned of the judge; a new one is in the journal."""
        entry = profile_entry(self._blank, number, profile)
        if entry != self._known.believed:
            self._journal.append(entry)
        self.used.append(entry)
        return entry

    @property
    def overhead(self) -> float | None:
        """Of a call, as the journal reckoned with it before; None where it did not."""
        return None if self._known.profile is None else self._known.profile.overhead

    async def answer(self, batch: Batch) -> JournalRecord:
        """The batch's entry; a new one is in the journal before it is given."""
        known = self._known.get(batch)
        entry = known if known is not None and not known.failed else await self._ask(batch)
        self.used.append(entry)
        return entry

    async def paid(self, batch: Batch) -> JournalRecord | None:
        """The batch's entry, where the money has ended; None where it would cost something."""
        try:
            return await self.answer(batch)
        except BudgetError:
            return self.noted(batch)

    def noted(self, batch: Batch) -> JournalRecord | None:
        """The batch's entry in the journal, be it a failure."""
        return self._known.get(batch)

    async def _ask(self, batch: Batch) -> JournalRecord:
        ordering = await self._judge.order(self._query, [self._passages[doc_id] for doc_id in batch.shown])
        order = None if ordering.order is None else tuple(batch.shown[place] for place in ordering.order)
        said = {"order": order, "error": ordering.error, "silent": ordering.silent, "by": ordering.by}
        said["answerers"] = tuple(dict.fromkeys(ordering.answerers))
        entry = self._blank.model_copy(update={**batch._asdict(), **said})
        self._journal.append(entry)
        return entry


def known_entries(blank: JournalRecord, orders: Iterable[KnownOrder]) -> list[JournalRecord]:
    """The entries of orders that were there before anything was asked: the first round. `blank`: what they share."""
    return [
        blank.model_copy(
            update={
                "slot": slot,
                "shown": tuple(doc_id for group in order.groups for doc_id in group),
                "groups": order.groups,
                "sharpness": order.sharpness,
                "by": order.by,
            }
        )
        for slot, order in enumerate(orders)
    ]
