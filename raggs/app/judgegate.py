"""`judge.gate.kappa`: how a finished run's judge stands to people, put into the lock of its judge stage.

The figure is that of `raggs judge check`. It is looked at anew at the end of every run that asks for it, since people
go on reading while no stage has a reason to run again.
"""

from __future__ import annotations

import math

from raggs.app.judgecheck import blind_only
from raggs.app.review import items_of
from raggs.app.unaided import by_people, unaided
from raggs.base.artifacts import JudgeRecord
from raggs.base.health import AgainstPeople, JudgeHealth, rounded
from raggs.config.models import RunConfig
from raggs.parts.reviews import beside
from raggs.parts.reviews.store import ReviewStore
from raggs.runs.manifests.models import RunManifest
from raggs.runs.manifests.opened import OpenedRun
from raggs.runs.manifests.store import RunStore
from raggs.stats.agreement import check_labels

CONFIDENCE, SEED = 0.95, 1  # as of `raggs judge check`


def held_against_people(manifest: RunManifest, store: RunStore, config: RunConfig) -> RunManifest:
    """The manifest with the judge's agreement with people in its lock, if the gate asks for it; else without.

    Raises:
        DataError: a line of the reviews cannot be right.
    """
    gate, lock = config.judge.gate, manifest.stages.get("judge")
    if lock is None:
        return manifest
    found = None if gate.kappa is None else against_people(OpenedRun(store, manifest), witnesses(config))
    health = lock.health if isinstance(lock.health, JudgeHealth) else JudgeHealth()
    if found == health.people:
        return manifest
    told = health.model_copy(update={"people": found})
    updated = lock.model_copy(update={"health": None if told == JudgeHealth() else told})
    return manifest.model_copy(update={"stages": {**manifest.stages, "judge": updated}})


def witnesses(config: RunConfig) -> ReviewStore:
    """The words to which the gate of a configuration holds the judge."""
    return ReviewStore(config.judge.gate.reviews or beside(config.workspace))


def against_people(run: OpenedRun, store: ReviewStore) -> AgainstPeople:
    """How a run's judge stands to what people said who had not seen a machine's grade.

    Raises:
        DataError: a line of the reviews cannot be right.
    """
    settled, present = blind_only(store.held()).items(), items_of(run)
    records = [
        record for record in run.typed("judge", JudgeRecord) if present.get((record.qid, record.doc_id)) in settled
    ]
    cases = [
        (record.grade, settled[present[record.qid, record.doc_id]].grade, record.qid)
        for record in map(unaided, records)
        if record.grade is not None and not by_people(record)
    ]
    own = sum(by_people(unaided(record)) for record in records)
    judge, people, questions = zip(*cases, strict=True) if cases else ((), (), ())
    checked = check_labels(judge, people, questions, confidence=CONFIDENCE, seed=SEED)
    kappa = checked.kappa
    known = not (checked.few or math.isnan(kappa.low))
    return AgainstPeople(
        kappa=rounded(kappa.value),
        interval=(round(kappa.low, 4), round(kappa.high, 4)) if known else None,
        grades=checked.cases,
        questions=checked.clusters,
        by_people=own,
    )
