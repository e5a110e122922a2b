"""Human orders, with ties, of batches of two to five passages of a query, from the passages that a run ranks.

The passages of a batch are shown in a random order per annotator. Batches that an annotator has ordered are not
repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from threading import RLock

from pydantic import ValidationError

from raggs.base.artifacts import Frozen, Groups, PruneRecord
from raggs.base.errors import NotFoundError, UsageError
from raggs.base.hashing import generator
from raggs.base.text import clean_unicode
from raggs.parts.reviews import (
    HEX,
    CurrentReviews,
    GradeReview,
    OrderReview,
    Review,
    ReviewStore,
    ShownStore,
    Withdrawal,
    fold_reviews,
)
from raggs.reviewing.pool import ItemView, ReviewItem, ReviewPool, view_of
from raggs.runs.manifests.open_run import OpenedRun

AT_ONCE = 5
Batch = tuple[int, ...]  # item numbers


class OrderingTask(Frozen):
    """Passages to order (none if all batches are done), and the progress.

    Attributes:
        line: line that was just stored.
        withdrawn: groups of items of the order that was just withdrawn, best first.
    """

    line: str | None
    views: tuple[ItemView, ...]
    done: int
    left: int
    withdrawn: Groups = ()


def kept_of(runs: Sequence[OpenedRun]) -> set[tuple[str, str]]:
    """Return query id and passage id of the passages that runs rank; empty before the prune stage."""
    done = (run for run in runs if run.file("prune").is_file())
    return {(record.qid, record.doc_id) for run in done for record in run.typed("prune", PruneRecord) if record.kept}


class UngradedReviews:
    """The valid orders and evidence sets. Lines of grades, which are far more frequent, are skipped while reading."""

    def __init__(self, store: ReviewStore) -> None:
        self._store, self._lock = store, RLock()
        self._lines, self._read, self._held = list[Review](), 0, CurrentReviews()

    def read(self) -> CurrentReviews:
        """Return the labels that are valid now.

        Raises:
            DataError: a line is invalid.
        """
        with self._lock:
            if self._store.size < self._read:
                self._lines, self._read, self._held = [], 0, CurrentReviews()
            come = len(self._lines)
            for review, end in self._store.since(self._read):
                self._read = end
                if not isinstance(review, GradeReview):
                    self._lines.append(review)
            if len(self._lines) > come:
                self._held = fold_reviews(self._lines)
            return self._held


class OrderingSession:
    """Batches of a pool.

    Args:
        kept: query id and passage id of the passages to order; empty: the whole pool.
        blind: whether grades of models are hidden from all annotators.
    """

    def __init__(
        self, pool: ReviewPool, store: ReviewStore, kept: Collection[tuple[str, str]], seed: int, *, blind: bool = True
    ) -> None:
        self._pool, self._store, self._seed, self._blind = pool, store, seed, blind
        self._shown, self._lock = ShownStore(store.folder), RLock()
        self._held = UngradedReviews(store)
        rows: dict[int, dict[str, int]] = {}
        for number, item in enumerate(pool.items):
            if not kept or (item.qid, item.doc_id) in kept:
                rows.setdefault(item.question, {}).setdefault(item.doc_id, number)
        self._batches = [batch for question, row in rows.items() for batch in self._cut(question, [*row.values()])]

    def _cut(self, question: int, row: Sequence[int]) -> Iterator[Batch]:
        shuffled = generator(self._seed, "review", "batches", self._pool.questions[question]).permutation(row).tolist()
        for start in range(0, len(shuffled), AT_ONCE):
            if len(shuffled) - start > 1:
                yield tuple(shuffled[start : start + AT_ONCE])

    def upcoming(self, who: str, line: str | None = None, withdrawn: Groups = ()) -> OrderingTask:
        """Return the next batch of an annotator, with the line that was just stored or the order that was withdrawn."""
        held = self._held.read()
        order = generator(self._seed, "review", "orders", who).permutation(len(self._batches)).tolist()
        left = [self._batches[place] for place in order if not self._done(held, who, self._batches[place])]
        first = left[0] if left else ()
        shown = generator(self._seed, "review", "shown", who, first).permutation(first).tolist() if first else []
        views = tuple(view_of(self._pool, int(number)) for number in shown)
        return OrderingTask(line=line, views=views, done=len(order) - len(left), left=len(left), withdrawn=withdrawn)

    def note(
        self, who: str, shown: Sequence[str], order: Sequence[Sequence[str]], note: str, seconds: float | None
    ) -> OrderingTask:
        """Store an order: groups of ties, best first. A repeated request is stored once.

        Raises:
            UsageError: the order does not contain each shown passage once, or the passages are of several queries.
            NotFoundError: a passage does not exist.
            ProviderError: the file cannot be written; nothing is stored.
        """
        items = {each: self._item(each) for each in shown}
        if len({item.question for item in items.values()}) != 1 or not {each for row in order for each in row} <= {
            *items
        }:
            raise UsageError("an order must contain the shown passages of a single query")
        first = next(iter(items.values()))
        try:
            review = OrderReview(
                who=who,
                at=datetime.now(UTC),
                qid=first.qid,
                query=first.key[0],
                shown=tuple(items[each].doc_id for each in shown),
                passages=tuple(items[each].key[1] for each in shown),
                order=tuple(tuple(items[each].doc_id for each in row) for row in order),
                note=clean_unicode(note),
                seconds=seconds,
                blind=self._blind and not any(item.key in self._shown.of(who) for item in items.values()),
            )
        except ValidationError as error:
            raise UsageError("an order must contain each shown passage exactly once") from error
        with self._lock:
            before = self._held.read().orders.get((review.query, frozenset(review.passages)), {}).get(who)
            if before is not None and (before.order, before.seconds) == (review.order, review.seconds):
                return self.upcoming(who, before.id)
            self._store.append(review)
        return self.upcoming(who, review.id)

    def undo(self, who: str, line: str | None = None) -> OrderingTask:
        """Withdraw an order of the annotator, the latest or the given line.

        Raises:
            UsageError: there is no such order by this annotator.
        """
        held = self._held.read()
        mine = (row[who] for row in held.orders.values() if who in row)
        found = held.latest_order.get(who) if line is None else next((each for each in mine if each.id == line), None)
        if found is None:
            raise UsageError("there is no order to undo")
        self._store.append(Withdrawal.of(found))
        items = {doc_id: found.query + passage for doc_id, passage in zip(found.shown, found.passages, strict=True)}
        return self.upcoming(who, withdrawn=tuple(tuple(items[each] for each in group) for group in found.order))

    def _item(self, each: str) -> ReviewItem:
        number = self._pool.numbers.get((each[:HEX], each[HEX:]))
        if number is None:
            raise NotFoundError("unknown passage; reload the page")
        return self._pool.items[number]

    def _done(self, held: CurrentReviews, who: str, batch: Batch) -> bool:
        items = [self._pool.items[number] for number in batch]
        return who in held.orders.get((items[0].key[0], frozenset(item.key[1] for item in items)), {})
