"""Queries and pooled passages of a run, as annotators see them.

Queries and passages are found by their texts or ids. A pool entry holds the judge's answers on a passage, and whether
the passage still needs a human label. Near-duplicates with a shared grade form one entry, and annotators grade its
representative. Passages without a grade count as not relevant, as in the measures.

The module also draws the random sample for annotation, either passages or whole queries. The sample is drawn from all
entries, including graded ones. Only labels of drawn entries are used for estimates, because other entries are not
random. With the same seed, a later sample contains the earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from raggs.app.review import reviews_of
from raggs.base.arrays import Flags, Ints
from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, JudgeRecord, MergeRecord, Passage, Query, QueryRecord, RankRecord
from raggs.base.text import clean_unicode, did_you_mean, one_line
from raggs.metrics.columns import GradeScale, Qrels, shares_of
from raggs.parts.judges import by_people
from raggs.parts.review_files import ReviewFileRow
from raggs.parts.reviews import (
    CurrentReviews,
    Draw,
    DrawnItem,
    DrawUnit,
    Key,
    PlanItem,
    ReviewStore,
    ever_drawn,
    passage_digest,
    question_digest,
    read_draws,
)
from raggs.runs.manifests.open_run import OpenedRun
from raggs.runs.manifests.reasons import no_grades
from raggs.stats.annotation_value import KnownGrades
from raggs.stats.correction import RandomSample, draw, sampling_numbers


class PassageItems:
    """Queries and passages of a run, found by their texts or by their ids."""

    def __init__(self, run: OpenedRun) -> None:
        self.queries: dict[str, Query] = {record.qid: record for record in run.typed("queries", QueryRecord)}
        self.pools: dict[str, dict[str, Passage]] = {}
        self.ids: dict[Key, tuple[str, str]] = {}
        self.questions = {qid: question_digest(query) for qid, query in self.queries.items()}
        for record in run.typed("merge", MergeRecord):
            if record.qid in self.queries:
                self.pools.setdefault(record.qid, {})[record.doc_id] = passage = record.passage
                self.ids.setdefault((self.questions[record.qid], passage_digest(passage)), (record.qid, record.doc_id))

    def tasks(self) -> Iterator[tuple[Key, Query, Passage]]:
        """Yield every pooled passage with its query; passages with the same text are yielded once."""
        for key, (qid, doc_id) in self.ids.items():
            yield key, self.queries[qid], self.pools[qid][doc_id]

    def find(self, row: ReviewFileRow) -> tuple[str, str, Key]:
        """Return the ids and the review key of a row.

        Raises:
            DataError: the row names no query or passage of this run.
        """
        qid, doc_id = (word_of(row.cells.get(name)) for name in ("qid", "doc_id"))
        query, passage = (word_of(row.cells.get(name)) for name in ("query", "passage"))
        if query and passage and (query, passage) in self.ids:
            return (*self.ids[query, passage], (query, passage))
        if not qid or not doc_id:
            raise row.wrong("does not identify a query and a passage", "fill in qid and doc_id, or both digests")
        if qid not in self.queries:
            raise row.wrong(f"no query {qid} in this run", did_you_mean(qid, self.queries))
        pool = self.pools.get(qid, {})
        if doc_id not in pool:
            raise row.wrong(f"no passage {doc_id} in the pool of query {qid}", did_you_mean(doc_id, pool))
        return qid, doc_id, (query or self.questions[qid], passage or passage_digest(pool[doc_id]))


def text_of(value: object) -> str:
    """Return a cell as text; empty for None."""
    return "" if value is None else str(value)


def word_of(value: object) -> str:
    """Return a cell as a name or number: cleaned, on one line."""
    return one_line(clean_unicode(text_of(value)))


GRADES = MAX_GRADE - MIN_GRADE + 1
CERTAIN_FROM = 0.7  # probability of the most probable grade, below which a plan calls the judge uncertain


@dataclass(frozen=True)
class PoolEntry:
    """A passage to grade, with its near-duplicates.

    Attributes:
        qid, doc_id, key, length: ids, review key, and number of characters.
        grade: the judge's grade; None if it gave none.
        voices: all answers of the judge, or of the members of a panel.
        open: whether the entry still needs a human label. Entries with the same texts as an earlier one need none.
        stated: probabilities of the grades that the judge states, if any.
    """

    qid: str
    doc_id: str
    key: Key
    length: int
    grade: int | None
    voices: tuple[int, ...]
    open: bool
    stated: tuple[float, ...] | None = None

    @property
    def disputed(self) -> bool:
        """Return whether the judge's answers differ."""
        return len(set(self.voices)) > 1

    @property
    def uncertain(self) -> bool:
        """Return whether the judge states less than `CERTAIN_FROM` for its most probable grade."""
        return self.stated is not None and max(self.stated) < CERTAIN_FROM


@dataclass(frozen=True)
class RunPools:
    """All pools of a run.

    Attributes:
        entries: pool entries, grouped by query.
        qrels: one row per pooled passage, with the human grade if there is one, else the judge's grade, else 1.
        entry_of: index of the entry of each row, shape (m,).
        heard: the judge's answers on each entry.
        learned: randomly drawn entries with a blind human grade, and these grades, counted from 0.
        timed: labelling time in seconds, and number of characters, of each human label.
    """

    entries: tuple[PoolEntry, ...]
    qrels: Qrels
    entry_of: Ints
    heard: KnownGrades
    learned: tuple[Ints, Ints]
    timed: tuple[tuple[float, int], ...]


def open_review_pool(run: OpenedRun, folder: Path | None = None) -> RunPools:
    """Read the pools, the grades and the reviews.

    Raises:
        NotFoundError: the judge stage has not run yet.
        DataError: there are no grades, or a line of the reviews is invalid.
    """
    if not run.graded:
        raise no_grades(run)
    judged = {(record.qid, record.doc_id): record for record in run.typed("judge", JudgeRecord)}
    reviewed = reviews_of(run.folder, folder)
    held = ReviewStore(reviewed).held()
    entries, rows = _entries(run, judged, held)
    machine = [-1 if entry.grade is None else entry.grade - MIN_GRADE for entry in entries]
    voices = np.zeros((len(entries), GRADES), dtype=np.int64)
    for number, entry in enumerate(entries):
        np.add.at(voices[number], np.array(entry.voices, dtype=np.int64) - MIN_GRADE, 1)
    stated = shares_of(
        ((entry.qid, entry.doc_id) for entry in entries),
        {(entry.qid, entry.doc_id): entry.stated for entry in entries if entry.stated is not None},
    )
    heard = KnownGrades(np.array(machine), voices, _sigma(run, entries), stated)
    qrels, entry_of = _columns(entries, rows, held)
    drawn = ever_drawn(read_draws(reviewed), {entry.key for entry in entries}, held.grades)
    return RunPools(
        entries, qrels, entry_of, heard, _learned_entries(entries, held, drawn), tuple(_timed_labels(entries, held))
    )


def _entries(
    run: OpenedRun, judged: Mapping[tuple[str, str], JudgeRecord], held: CurrentReviews
) -> tuple[tuple[PoolEntry, ...], dict[tuple[str, str], int]]:
    """Return the pool entries, and the index of the entry of each passage."""
    questions = {record.qid: question_digest(record) for record in run.typed("queries", QueryRecord)}
    found: list[PoolEntry] = []
    asked: set[Key] = set()
    numbers: dict[tuple[str, str], int] = {}
    twins: list[tuple[tuple[str, str], tuple[str, str]]] = []
    for pooled in run.typed("merge", MergeRecord):
        item, record = (pooled.qid, pooled.doc_id), judged.get((pooled.qid, pooled.doc_id))
        if record is not None and record.duplicate_of not in {None, pooled.doc_id}:
            twins.append((item, (pooled.qid, record.duplicate_of or "")))
            continue
        content = pooled.passage
        key = questions[pooled.qid], passage_digest(content)
        numbers[item] = len(found)
        found.append(_entry(pooled, key, len(content.content), record, held, again=key in asked))
        asked.add(key)
    for item, representative in twins:
        if representative in numbers:
            numbers[item] = numbers[representative]
    return tuple(found), numbers


def _entry(
    pooled: MergeRecord, key: Key, length: int, record: JudgeRecord | None, held: CurrentReviews, *, again: bool
) -> PoolEntry:
    theirs = record is not None and by_people(record)
    read = again or theirs or bool(held.grades.get(key)) or key in held.settling
    grade = None if record is None else record.grade
    stated = None if record is None else record.distribution
    return PoolEntry(pooled.qid, pooled.doc_id, key, length, grade, _machine_grades(record), not read, stated)


def _machine_grades(record: JudgeRecord | None) -> tuple[int, ...]:
    if record is None or record.grade is None:
        return ()
    said = [grade for grades in record.votes.values() for grade in grades] or list(record.grades)
    return tuple(grade for grade in said if grade is not None) or (record.grade,)


def _sigma(run: OpenedRun, entries: tuple[PoolEntry, ...]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the ranking's standard error of each entry; 0 if the judge did not order it."""
    ranked: Mapping[tuple[str, str], float] = {}
    if "rank" in run.pipeline.order and run.file("rank").is_file():
        ranked = {(each.qid, each.doc_id): each.sigma for each in run.typed("rank", RankRecord) if each.exposures}
    return np.array([ranked.get((entry.qid, entry.doc_id), 0.0) for entry in entries])


def _columns(
    entries: tuple[PoolEntry, ...], rows: Mapping[tuple[str, str], int], held: CurrentReviews
) -> tuple[Qrels, Ints]:
    labels: dict[str, dict[str, int]] = {}
    for (qid, doc_id), number in rows.items():
        said = held.settled(entries[number].key)
        grade = entries[number].grade if said is None else said.grade
        labels.setdefault(qid, {})[doc_id] = grade or MIN_GRADE
    qrels = Qrels.of(labels, GradeScale.of(MIN_GRADE, MAX_GRADE))
    return qrels, np.array([rows[qid, doc_id] for qid in qrels.qids for doc_id in labels[qid]])


def _learned_entries(entries: tuple[PoolEntry, ...], held: CurrentReviews, drawn: set[Key]) -> tuple[Ints, Ints]:
    """Return the randomly drawn entries with a blind human grade, and these grades."""
    found = []
    blind = replace(held, grades=held.blind)
    for number, entry in enumerate(entries):
        said = blind.settled(entry.key)
        told = any(word.chance is not None for word in blind.grades.get(entry.key, {}).values())
        if said is not None and (told or entry.key in drawn):
            found.append((number, said.grade - MIN_GRADE))
    pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _timed_labels(entries: tuple[PoolEntry, ...], held: CurrentReviews) -> list[tuple[float, int]]:
    return [
        (word.seconds, entry.length)
        for entry in entries
        for word in held.grades.get(entry.key, {}).values()
        if word.seconds is not None
    ]


@dataclass(frozen=True)
class RandomDraw:
    """A random sample.

    Attributes:
        unit: unit of the draw, passages or whole queries.
        seed: random seed.
        chance: probability of each drawn entry, by its index, in reading order.
    """

    unit: DrawUnit
    seed: int
    chance: dict[int, float]


def draw_part(pool: RunPools, before: Sequence[Draw], wanted: int, *, whole: bool, seed: int) -> RandomDraw:
    """Draw until the sample has `wanted` unlabelled units. Earlier draws with the same seed are included.

    Args:
        before: all earlier draws, oldest first.
        wanted: number of passages, or of queries if `whole`.
    """
    unit: DrawUnit = "question" if whole else "passage"
    held = next((each for each in reversed(before) if (each.unit, each.seed) == (unit, seed)), None)
    items = () if held is None else held.items
    make = _questions if whole else _passages
    return RandomDraw(unit, seed, make(pool, items, wanted, seed))


def draw_of_plan(plan: Iterable[PlanItem]) -> Draw | None:
    """Return the random part of a plan in its stored form; None if there is none, or if its seed is unknown."""
    drawn = [(item, item.chance) for item in plan if item.chance is not None and item.seed is not None]
    if not drawn:
        return None
    unit, seed = drawn[0][0].unit, drawn[0][0].seed or 0
    queries = sorted({item.query for item, _ in drawn})
    turn = dict(zip(queries, sampling_numbers(seed, queries).tolist(), strict=True))
    drawn.sort(key=lambda each: (turn[each[0].query], *each[0].key))
    items = tuple(DrawnItem(query=item.query, passage=item.passage, chance=odds) for item, odds in drawn)
    return Draw(unit=unit, seed=seed, items=items)


def draw_of_sample(keys: Sequence[Key], chances: Sequence[float | None], seed: int) -> Draw:
    """Return a sample of passages in its stored form."""
    items = tuple(
        DrawnItem(query=query, passage=passage, chance=odds or 1.0)
        for (query, passage), odds in zip(keys, chances, strict=True)
    )
    return Draw(unit="passage", seed=seed, items=items)


def _passages(pool: RunPools, held: Sequence[DrawnItem], wanted: int, seed: int) -> dict[int, float]:
    heard, known, own = pool.heard, {item.key for item in held}, _unique_entries(pool)
    entries = [pool.entries[number] for number in own.tolist()]
    stratum = (heard.kind * (heard.voices.shape[1] + 1) + heard.grade)[own]
    lot = sampling_numbers(seed, ("".join(entry.key) for entry in entries))
    again = np.array([entry.key in known for entry in entries], dtype=bool)
    open_ = np.array([entry.open for entry in entries], dtype=bool)
    found = _grow_draw(open_, wanted, lambda count: draw(stratum, lot, count, again))
    return dict(zip(own[found.items].tolist(), found.chance.tolist(), strict=True))


def _questions(pool: RunPools, held: Sequence[DrawnItem], wanted: int, seed: int) -> dict[int, float]:
    """Draw whole queries in a random order. If annotators stop early, the queries so far are a smaller valid sample."""
    members: dict[str, list[int]] = {}
    for number in _unique_entries(pool).tolist():
        members.setdefault(pool.entries[number].key[0], []).append(number)
    known = {item.query for item in held}
    lot = sampling_numbers(seed, members)
    again = np.array([query in known for query in members], dtype=bool)
    open_ = np.array([any(pool.entries[each].open for each in mine) for mine in members.values()], dtype=bool)
    found = _grow_draw(open_, wanted, lambda count: draw(np.zeros(len(lot), dtype=np.int64), lot, count, again))
    chance, groups = dict(zip(found.items.tolist(), found.chance.tolist(), strict=True)), list(members.values())
    order = sorted(chance, key=lambda place: float(lot[place]))
    return {number: chance[place] for place in order for number in groups[place]}


def _unique_entries(pool: RunPools) -> Ints:
    """Return the indices of the entries, with only one entry per pair of query text and passage text."""
    first = {entry.key: number for number, entry in reversed([*enumerate(pool.entries)])}
    return np.array(sorted(first.values()), dtype=np.int64)


def _grow_draw(open_: Flags, wanted: int, make: Callable[[int], RandomSample]) -> RandomSample:
    """Return the smallest draw with `wanted` unlabelled units; draw all units if there are fewer."""
    count = wanted
    while True:
        found = make(count)
        lacking = wanted - int(open_[found.items].sum())
        if lacking <= 0 or count >= len(open_):
            return found
        count += lacking
