"""Human grades of randomly drawn passages of a run, which are used to correct scores.

A grade counts only if it is blind and if the probability of drawing the passage is known. This probability is recorded
with a draw (`raggs.parts.reviews.Draw`), and counts once all passages of the draw are labelled. Without a recorded
draw, grades with a stored probability count. Annotators grade the representative of near-duplicates; the others get its
grade and its probability. If the run's own grades of drawn passages are human labels, the run cannot be corrected:
these grades do not show the judge's errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from raggs.app.judge_check import blind_only
from raggs.app.review import fitted_labels, items_of, reviews_of
from raggs.base.artifacts import JudgeRecord
from raggs.base.errors import DataError, UsageError
from raggs.base.text import plural
from raggs.evaluation.analyses.corrected import DrawnLabel, PeopleCorrection, WholeQuestions
from raggs.parts.judges import by_people, without_human_grade
from raggs.parts.reviews import CompletedDraw, CurrentReviews, Draw, Key, ReviewStore, latest, read_draws
from raggs.runs.manifests.open_run import OpenedRun, open_run

REMEDY = "draw passages with raggs review plan RUN --out FILE, and label them with raggs review serve RUN --plan FILE"
FINISH = "plan the rest with raggs review plan RUN --out FILE, and label it with raggs review serve RUN --plan FILE"

Item = tuple[str, str]  # query id and passage id


@dataclass(frozen=True)
class DrawnLabels:
    """Human grades by query id and passage id, queries with all passages graded, and notes on grades that do not
    count.
    """

    labels: Mapping[Item, DrawnLabel]
    whole: WholeQuestions = field(default_factory=WholeQuestions)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Corrections:
    """Analyses and notes that are added to an evaluation whose scores are corrected by human labels."""

    analyses: tuple[PeopleCorrection, ...] = ()
    notes: tuple[str, ...] = ()


def corrections_of(golden: Path, folder: Path, baseline: str | None, *, projected: bool) -> Corrections:
    """Return the corrections that the reviews of a run allow.

    Args:
        golden: run directory of the golden set.
        folder: folder of the reviews.
        baseline: baseline system of the differences.
        projected: whether grades are projected onto other passages.

    Raises:
        UsageError: grades are projected, or `golden` is not a run directory.
        DataError: as `drawn_labels`.
    """
    if projected:
        raise UsageError("human labels do not apply to projected passages", remedy="omit --project")
    if not golden.is_dir():
        raise UsageError("human labels need the texts of a run", remedy="--reviews needs --golden RUN_DIRECTORY")
    found = drawn_labels(open_run(golden), folder)
    return Corrections((PeopleCorrection(found.labels, baseline, found.whole),), found.notes)


def drawn_labels(run: OpenedRun, folder: Path | None = None) -> DrawnLabels:
    """Return the human grades of randomly drawn passages of a run.

    Args:
        folder: folder of the labels [default: `reviews` next to the folder of runs].

    Raises:
        DataError: no graded passage of the run was drawn at random, no draw was graded completely, or the run's own
            grades of drawn passages are human labels.
    """
    store = ReviewStore(reviews_of(run.folder, folder))
    said, pool = store.held(), _Pool.of(run)
    held, draws = blind_only(said), read_draws(store.folder)
    read = {*said.grades, *said.settling}
    by_passage, unread = latest(draws, "passage", pool.asked, read)
    by_question, open_ = latest(draws, "question", pool.asked, pool.read_whole(read))
    if not unread and not by_passage and not _of_run(draws, pool):
        by_passage = CompletedDraw(_stated_chances(held, pool.asked), 0)
    found = _DrawnGrades(held, pool)
    labels = found.labels({} if by_passage is None else by_passage.chance)
    whole = found.whole({} if by_question is None else by_question.chance)
    if not labels and not whole.grades:
        if left := max(unread, open_):
            said_ = f"the random part of the plan is not completely labelled: {plural(left, 'passage')} left"
            raise DataError(said_, where=store.path, remedy=FINISH)
        raise DataError(
            "no passage of this run was drawn at random and labelled blind", where=store.path, remedy=REMEDY
        )
    _check_judged(run, {*labels, *whole.grades})
    notes = [
        f"{plural(each, 'passage')} of a random draw not labelled yet, so none of its labels count"
        for each in (unread, open_)
        if each
    ]
    if by_passage and 0 < by_passage.among < len(pool.asked):
        new = plural(len(pool.asked) - by_passage.among, "passage")
        notes.append(
            f"{new} entered the pools after the random draw; to include them in the draw, run raggs review plan again"
        )
    return DrawnLabels(labels, whole, (*notes, *found.notes, *_fitted_notes(run, {*labels, *whole.grades})))


def _fitted_notes(run: OpenedRun, drawn: set[Item]) -> Iterator[str]:
    """Yield a note if the judge's calibration was fitted on drawn labels, or if this is unknown. Excluding these labels
    would invalidate the sampling probabilities.
    """
    fitted = fitted_labels(run)
    if used := len(fitted.pairs & drawn):
        yield (
            f"the judge's calibration was fitted on {plural(used, 'drawn label')}, so corrected intervals are too "
            "short; to avoid this, fit it with raggs judge calibrate --chosen"
        )
    if fitted.unknown:
        yield f"the calibration of the judge may have been fitted on drawn labels: {fitted.unknown}"


@dataclass(frozen=True)
class _Pool:
    """Review keys of a run's passages. Near-duplicates share the key of their representative.

    Attributes:
        keys: by query id and passage id, the review key of the passage or of its representative.
        asked: query id by review key.
    """

    keys: Mapping[Item, Key]
    asked: Mapping[Key, str]

    @classmethod
    def of(cls, run: OpenedRun) -> _Pool:
        keys = items_of(run)
        twins = {
            (record.qid, record.doc_id): (record.qid, record.duplicate_of)
            for record in run.typed("judge", JudgeRecord)
            if record.duplicate_of not in {None, record.doc_id}
        }
        keys = {
            item: keys.get((item[0], twins[item][1] or ""), key) if item in twins else key for item, key in keys.items()
        }
        return cls(keys, {key: qid for (qid, _), key in keys.items()})

    def read_whole(self, read: set[Key]) -> set[Key]:
        """Return the keys of the queries whose passages are all labelled."""
        open_ = {key[0] for key in self.asked if key not in read}
        return {key for key in self.asked if key[0] not in open_}


class _DrawnGrades:
    """Human grades of the drawn passages.

    Attributes:
        notes: sentences on passages without a grade.
    """

    def __init__(self, held: CurrentReviews, pool: _Pool) -> None:
        self._held, self._pool = held, pool
        self.notes: list[str] = []

    def labels(self, chance: Mapping[Key, float]) -> dict[Item, DrawnLabel]:
        """Return the labels of drawn passages, with probabilities corrected for `cannot tell` answers.

        A drawn passage without a grade is assumed to be like graded passages that had the same probability.
        """
        grades = self._grades(chance)
        if unsure := len(chance) - len(grades):
            self.notes.append(
                f"{plural(unsure, 'drawn passage')} without a grade (`cannot tell`): assumed to be like the graded ones"
            )
        drawn, told = Counter(chance.values()), Counter(chance[key] for key in grades)
        return {
            item: DrawnLabel(grades[key], chance[key] * told[chance[key]] / drawn[chance[key]])
            for item, key in self._pool.keys.items()
            if key in grades
        }

    def whole(self, chance: Mapping[Key, float]) -> WholeQuestions:
        """Return the grades of fully graded questions; a passage without a human grade keeps the judge's grade."""
        grades = self._grades(chance)
        if unsure := len(chance) - len(grades):
            said = f"{plural(unsure, 'passage')} of drawn queries without a human grade: the judge's grade is used"
            self.notes.append(said)
        by_query = {key[0]: odds for key, odds in chance.items()}
        items = {item: key for item, key in self._pool.keys.items() if key[0] in by_query}
        return WholeQuestions(
            {qid: by_query[key[0]] for (qid, _), key in items.items()},
            {item: grades[key] for item, key in items.items() if key in grades},
        )

    def _grades(self, chance: Mapping[Key, float]) -> dict[Key, int]:
        settled = {key: self._held.settled(key) for key in chance}
        return {key: found.grade for key, found in settled.items() if found is not None}


def _of_run(draws: list[Draw], pool: _Pool) -> bool:
    return any(item.key in pool.asked for draw in draws for item in draw.items)


def _stated_chances(held: CurrentReviews, asked: Mapping[Key, str]) -> dict[Key, float]:
    """Return the probability that is stored with the labels of each passage, if there is one."""
    return {key: odds for key in asked if (odds := chance_of(held, key)) is not None}


def chance_of(held: CurrentReviews, key: Key) -> float | None:
    """Return the probability of drawing an item that is stored with its labels, the largest one if there are several.

    Return None if no probability is stored.
    """
    chances = [word.chance for word in held.grades.get(key, {}).values() if word.chance is not None]
    return max(chances, default=None)


def _check_judged(run: OpenedRun, drawn: set[Item]) -> None:
    for record in run.typed("judge", JudgeRecord):
        if (by_people(record) or without_human_grade(record) is not record) and (record.qid, record.doc_id) in drawn:
            raise DataError(
                "grades of drawn passages are human labels, so they do not show the errors of the judge",
                where=run.folder,
                remedy="use a run that was graded only by the model",
            )
