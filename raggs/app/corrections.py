"""People's grades of the passages of a run that were drawn at random: what scores are corrected by.

Only grades count that were given without having seen a machine's, of passages whose chance to be drawn is known. A run
whose own grades are people's where they spoke cannot be corrected: there the judge is right exactly where one looks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raggs.app.judgecheck import blind_only
from raggs.app.review import items_of, reviews_of
from raggs.app.unaided import by_people, unaided
from raggs.artifacts import JudgeRecord
from raggs.errors import DataError, UsageError
from raggs.evaluation.analyses.corrected import DrawnLabel, PeopleCorrection
from raggs.manifests.opened import OpenedRun, open_run
from raggs.reviews.folding import Reviewed, fold
from raggs.reviews.models import Key
from raggs.reviews.store import ReviewStore
from raggs.text import plural

REMEDY = "read the random part of a plan, without seeing the judge's grades"


@dataclass(frozen=True)
class DrawnLabels:
    """Grades by query id and passage id, and a sentence on what does not count."""

    labels: dict[tuple[str, str], DrawnLabel]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Corrections:
    """What is added to an evaluation whose scores are to be corrected by people."""

    analyses: tuple[PeopleCorrection, ...] = ()
    notes: tuple[str, ...] = ()


def corrections_of(golden: Path, folder: Path, baseline: str | None, *, projected: bool) -> Corrections:
    """By the reviews of a run.

    Args:
        golden: what is scored against.
        folder: of the reviews.
        baseline: the system that others are subtracted from.
        projected: whether grades are carried over to other passages.

    Raises:
        UsageError: they are, or `golden` is no run directory.
        DataError: as `drawn_labels`.
    """
    if projected:
        raise UsageError("people graded passages as they were cut, not projected ones", remedy="leave out --project")
    if not golden.is_dir():
        raise UsageError("labels in a file say nothing of texts", remedy="--reviews needs --golden RUN_DIRECTORY")
    found = drawn_labels(open_run(golden), folder)
    return Corrections((PeopleCorrection(found.labels, baseline),), found.notes)


def drawn_labels(run: OpenedRun, folder: Path | None = None) -> DrawnLabels:
    """The random part of people's word on a run.

    Args:
        folder: of the reviews; `reviews` beside the folder of runs if left out.

    Raises:
        DataError: nothing that people said of the run was drawn at random, or the run's own grades are people's.
    """
    store = ReviewStore(reviews_of(run.folder, folder))
    held, present = blind_only(fold(store.read())), items_of(run)
    drawn = {item: chance for item, key in present.items() if (chance := chance_of(held, key)) is not None}
    settled = {item: held.settled(present[item]) for item in drawn}
    labels = {item: DrawnLabel(found.grade, drawn[item]) for item, found in settled.items() if found is not None}
    if not labels:
        raise DataError("no passage of this run was drawn at random and graded blind", where=store.path, remedy=REMEDY)
    _check_judged(run, labels)
    unsure = len(drawn) - len(labels)
    said = f"{plural(unsure, 'drawn passage')} on which nobody could tell: taken for like the others"
    return DrawnLabels(labels, (said,) if unsure else ())


def chance_of(held: Reviewed, key: Key) -> float | None:
    """The probability with which an item was drawn; the largest where it was drawn more than once."""
    chances = [word.chance for word in held.grades.get(key, {}).values() if word.chance is not None]
    return max(chances, default=None)


def _check_judged(run: OpenedRun, labels: dict[tuple[str, str], DrawnLabel]) -> None:
    for record in run.typed("judge", JudgeRecord):
        if (by_people(record) or unaided(record) is not record) and (record.qid, record.doc_id) in labels:
            raise DataError(
                "the run's own grades are people's where they spoke, so that they say nothing of the judge elsewhere",
                where=run.folder,
                remedy="correct a run that was judged by the model alone",
            )
