"""The pools of a run as people's reading sees them: what the judge said of each passage, and what people said since.

Near-duplicates that share a grade are one entry, which is read by its representative. Passages without a grade count
as not relevant, as measures have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from raggs.app.review import reviews_of
from raggs.app.unaided import by_people
from raggs.base.arrays import Ints
from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, JudgeRecord, MergeRecord, QueryRecord, RankRecord
from raggs.metrics.columns import Qrels, Scale
from raggs.parts.reviews.draws import ever_drawn, read_draws
from raggs.parts.reviews.folding import Reviewed
from raggs.parts.reviews.models import Key, passage_digest, question_digest
from raggs.parts.reviews.store import ReviewStore
from raggs.runs.manifests.opened import OpenedRun
from raggs.runs.manifests.ungraded import no_grades
from raggs.stats.decision.beliefs import Heard

GRADES = MAX_GRADE - MIN_GRADE + 1


@dataclass(frozen=True)
class Entry:
    """A passage to read, with its near-duplicates.

    Attributes:
        qid, doc_id, key, length: which, what its reviews are filed under, and its characters.
        grade: the machine's; None where there is none.
        voices: all answers of the judge, or of the members of a panel.
        open: whether nobody has read it, and it is not asked for another question of the same words.
    """

    qid: str
    doc_id: str
    key: Key
    length: int
    grade: int | None
    voices: tuple[int, ...]
    open: bool

    @property
    def disputed(self) -> bool:
        """Whether the judge's answers differ."""
        return len(set(self.voices)) > 1


@dataclass(frozen=True)
class Pool:
    """All pools of a run.

    Attributes:
        entries: by query, as pooled.
        qrels: people's grades where they spoke, else the machine's; a row for each passage of the pools.
        entry_of: shape (m,), the entry of each row.
        heard: what the machine said of each entry.
        learned: the entries that people read at random, and the grades that they gave, from 0.
        timed: of people's words, the seconds they took and the characters of the passage.
    """

    entries: tuple[Entry, ...]
    qrels: Qrels
    entry_of: Ints
    heard: Heard
    learned: tuple[Ints, Ints]
    timed: tuple[tuple[float, int], ...]


def open_review_pool(run: OpenedRun, folder: Path | None = None) -> Pool:
    """Read the pools, the grades and the reviews.

    Raises:
        NotFoundError: the judge has not worked yet.
        DataError: there are no grades, or a line of the reviews cannot be right.
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
    heard = Heard(np.array(machine), voices, _sigma(run, entries))
    qrels, entry_of = _columns(entries, rows, held)
    drawn = ever_drawn(read_draws(reviewed), {entry.key for entry in entries}, held.grades)
    return Pool(entries, qrels, entry_of, heard, _learned(entries, held, drawn), tuple(_timed(entries, held)))


def _entries(
    run: OpenedRun, judged: Mapping[tuple[str, str], JudgeRecord], held: Reviewed
) -> tuple[tuple[Entry, ...], dict[tuple[str, str], int]]:
    """The entries, and the number of that of each passage."""
    questions = {record.qid: question_digest(record) for record in run.typed("queries", QueryRecord)}
    found: list[Entry] = []
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
    pooled: MergeRecord, key: Key, length: int, record: JudgeRecord | None, held: Reviewed, *, again: bool
) -> Entry:
    theirs = record is not None and by_people(record)
    read = again or theirs or bool(held.grades.get(key)) or key in held.settling
    grade = None if record is None else record.grade
    return Entry(pooled.qid, pooled.doc_id, key, length, grade, _voices(record), not read)


def _voices(record: JudgeRecord | None) -> tuple[int, ...]:
    if record is None or record.grade is None:
        return ()
    said = [grade for grades in record.votes.values() for grade in grades] or list(record.grades)
    return tuple(grade for grade in said if grade is not None) or (record.grade,)


def _sigma(run: OpenedRun, entries: tuple[Entry, ...]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The ranking's standard error of each entry; 0 where it was not ranked."""
    ranked: Mapping[tuple[str, str], float] = {}
    if "rank" in run.pipeline.order and run.file("rank").is_file():
        ranked = {(each.qid, each.doc_id): each.sigma for each in run.typed("rank", RankRecord) if each.exposures}
    return np.array([ranked.get((entry.qid, entry.doc_id), 0.0) for entry in entries])


def _columns(entries: tuple[Entry, ...], rows: Mapping[tuple[str, str], int], held: Reviewed) -> tuple[Qrels, Ints]:
    labels: dict[str, dict[str, int]] = {}
    for (qid, doc_id), number in rows.items():
        said = held.settled(entries[number].key)
        grade = entries[number].grade if said is None else said.grade
        labels.setdefault(qid, {})[doc_id] = grade or MIN_GRADE
    qrels = Qrels.of(labels, Scale.of(MIN_GRADE, MAX_GRADE))
    return qrels, np.array([rows[qid, doc_id] for qid in qrels.qids for doc_id in labels[qid]])


def _learned(entries: tuple[Entry, ...], held: Reviewed, drawn: set[Key]) -> tuple[Ints, Ints]:
    """Entries that chance hit and somebody read, whatever for, and what people say of them."""
    found = []
    blind = replace(held, grades=held.blind)
    for number, entry in enumerate(entries):
        said = blind.settled(entry.key)
        told = any(word.chance is not None for word in blind.grades.get(entry.key, {}).values())
        if said is not None and (told or entry.key in drawn):
            found.append((number, said.grade - MIN_GRADE))
    pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _timed(entries: tuple[Entry, ...], held: Reviewed) -> list[tuple[float, int]]:
    return [
        (word.seconds, entry.length)
        for entry in entries
        for word in held.grades.get(entry.key, {}).values()
        if word.seconds is not None
    ]
