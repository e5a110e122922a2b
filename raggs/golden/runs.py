"""A run directory as a golden set. Its artifacts are sorted by query id, so they are read side by side, query by query.

Queries are in `queries.jsonl`, pools in `merge.jsonl`, grades in `judge.jsonl` and orders in `rank.jsonl`. A run whose
ranking has not begun has grades without an order. If a run was stopped, the golden set has all parts that were
finished, also of an unfinished ranking.

`columns_of` returns the grades of a run as columns, with the uncertainty of its judge and ranking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Generic, TypeVar, get_args

import numpy as np

from raggs.base.artifacts import (
    MAX_GRADE,
    MIN_GRADE,
    Groups,
    JudgeRecord,
    MergeRecord,
    Query,
    QueryRecord,
    RankRecord,
    Record,
    RetrieveRecord,
)
from raggs.base.errors import DataError
from raggs.base.jsonl import mentions
from raggs.base.judge_health import GATE_FAILED_TEXT, HUMAN_SOURCE, JudgeHealth, source_of
from raggs.base.types import as_object
from raggs.golden.base import FUSION_NAME, GoldenProvenance, GoldenQuery, GoldenSet, SetPart
from raggs.golden.human_evidence import HumanEvidence, human_evidence
from raggs.golden.judgments import Judgments, origin_of
from raggs.metrics.columns import (
    GradeScale,
    Qrels,
    StatedShares,
    UtilityEstimates,
    belief_of,
    shares_of,
)
from raggs.metrics.unjudged import LabelUncertainty
from raggs.parts.queries import ORIGIN_KEY, made_notes
from raggs.runs.manifests.costs import failed_judge_gates
from raggs.runs.manifests.messages import mixed_versions
from raggs.runs.manifests.open_run import OpenedRun
from raggs.runs.manifests.reasons import no_grades
from raggs.stages import GOLDEN

R = TypeVar("R", bound=Record)
NOTE_MARK = f'"{ORIGIN_KEY}":'.encode()


def check_golden(run: OpenedRun) -> None:
    """Check that a run is from the pipeline that makes golden sets.

    Raises:
        DataError: the run is from another pipeline.
    """
    if (made := run.manifest.pipeline) != GOLDEN.name:
        remedy = "create a golden set over its questions with raggs run --config CONFIG"
        raise DataError(f"is a run of raggs {made}, not a golden set", where=run.folder, remedy=remedy)


class RunGolden(GoldenSet):
    """The golden set of a run."""

    def __init__(self, run: OpenedRun) -> None:
        check_golden(run)
        self.run = run
        self.name = run.manifest.name
        self.source = str(run.folder)
        self.provenance = _provenance(run)
        self.lacks = run.lacks
        self.model_versions = tuple(mixed_versions(run.manifest))
        lock, begun = run.manifest.stages.get("rank"), any(part.stage == "rank" for part in run.parts)
        self._ranked = bool(lock or begun) and run.file("rank").is_file()
        settings = lock.params if lock else run.manifest.config.get("rank", {})
        self.by_grade = "rank" in run.pipeline.left_out
        self.top = _top(settings, run.folder) if self._ranked else 0

    @property
    def made(self) -> tuple[str, ...]:
        """Sentences about how the queries were generated; see `GoldenSet.made`. Only lines that state the origin of
        a query are parsed.
        """
        path = self.run.file("queries")
        if not path.is_file():
            return ()
        with path.open("rb") as file:
            said = [QueryRecord.model_validate_json(line) for line in file if NOTE_MARK in line]
        return tuple(made_notes(said))

    def queries(self) -> Iterator[Query]:
        """Yield the queries, with the evidence sets of annotators if there are any; see `GoldenSet.queries`.

        Raises:
            NotFoundError: the run does not store its queries, for example because an old version of raggs made it.
            DataError: the file of queries cannot be read.
        """
        human = self.human_evidence.sets
        for query in self.run.typed("queries", QueryRecord):
            yield query.model_copy(update={"evidence": human[query.qid]}) if query.qid in human else query

    @cached_property
    def human_evidence(self) -> HumanEvidence:
        """Evidence sets that annotators gave; see `human_evidence`."""
        return human_evidence(self.run)

    def evidence(self) -> dict[str, Groups]:
        """Return the evidence sets by query; see `GoldenSet.evidence`."""
        path = self.run.file("queries")
        known = path.is_file() and (mentions(path, ["evidence"]) or self.human_evidence.sets)
        return super().evidence() if known else {}

    def by_query(self, *parts: SetPart) -> Iterator[GoldenQuery]:
        """Yield the queries with their parts; see `GoldenSet.by_query`."""
        wanted = parts or get_args(SetPart)
        passages = _ArtifactStream("the pools", self.run.typed("merge", MergeRecord) if "pool" in wanted else iter(()))
        grades = _ArtifactStream("the grades", self.run.typed("judge", JudgeRecord) if "grades" in wanted else iter(()))
        orders = _ArtifactStream("the ranking", self._orders() if "order" in wanted else iter(()))
        for query in self.queries():
            yield GoldenQuery(
                query.qid,
                query,
                tuple(record.passage for record in passages.of(query.qid)),
                grades.of(query.qid),
                orders.of(query.qid),
            )
        for stream in (passages, grades, orders):
            stream.check_ended()

    def hits(self) -> Iterator[RetrieveRecord]:
        """Yield the lists of the retrievers, and of their fusion if there are several; see `GoldenSet.hits`."""
        names = set()
        for record in self.run.typed("retrieve", RetrieveRecord):
            names.add(record.retriever)
            yield record
        if len(names) > 1 and FUSION_NAME not in names:
            for pooled in self.run.typed("merge", MergeRecord):
                yield RetrieveRecord(
                    qid=pooled.qid, retriever=FUSION_NAME, rank=pooled.rank, doc_id=pooled.doc_id, score=pooled.score
                )

    def judgments(self, scale: GradeScale | None = None) -> Judgments:
        """Return the grades; see `GoldenSet.judgments`."""
        found = columns_of(self.run, self._orders(), scale)
        return replace(found, evidence=self.evidence(), evidence_notes=self.human_evidence.notes)

    def _orders(self) -> Iterator[RankRecord]:
        return self.run.typed("rank", RankRecord) if self._ranked else iter(())


class _ArtifactStream(Generic[R]):
    """A stream of the records of one artifact, which is read query by query."""

    def __init__(self, what: str, records: Iterator[R]) -> None:
        self._what = what
        self._groups = groupby(records, key=lambda record: record.qid)
        self._next = next(self._groups, None)

    def of(self, qid: str) -> tuple[R, ...]:
        """Return all records of a query. The queries must be read in the order of their ids."""
        if self._next is None or self._next[0] > qid:
            return ()
        if self._next[0] < qid:
            raise self._stray(self._next[0])
        found = tuple(self._next[1])
        self._next = next(self._groups, None)
        return found

    def check_ended(self) -> None:
        """Check that no records are left, which would belong to no query."""
        if self._next is not None:
            raise self._stray(self._next[0])

    def _stray(self, qid: str) -> DataError:
        return DataError(f"query {qid} is in {self._what} but not in the queries", remedy="run raggs audit on the run")


def _top(settings: object, folder: Path) -> int:
    """Return the number of leading ranks that matter.

    Raises:
        DataError: the manifest does not state this number.
    """
    top = as_object(settings).get("top")
    if not isinstance(top, int):
        remedy = "run raggs audit to see whether it was edited"
        raise DataError(
            f"stage rank has no valid parameter top ({top!r})", where=folder / "manifest.json", remedy=remedy
        )
    return top


def _provenance(run: OpenedRun) -> GoldenProvenance:
    stages = run.manifest.stages
    judge, rank = stages.get("judge"), stages.get("rank")
    origin = origin_of(run.manifest)
    health = judge.health if judge and isinstance(judge.health, JudgeHealth) else JudgeHealth()
    depth = health.depth
    return GoldenProvenance(
        run=run.manifest.name,
        raggs=run.manifest.raggs,
        created=run.manifest.created.isoformat(),
        fingerprints={name: lock.fingerprint for name, lock in stages.items()},
        judge=judge and judge.components.get("judge"),
        rank=dict(rank.params) if rank else {},
        failed=sum(lock.failed for lock in stages.values()),
        depth=depth.model_dump() if depth else None,
        gate=failed_judge_gates(run.manifest),
        corpus=origin.corpus,
        retrieved=origin.retrieved,
        sources=health.sources,
        version=run.manifest.version_name,
    )


def columns_of(run: OpenedRun, ranked: Iterable[RankRecord], scale: GradeScale | None) -> Judgments:
    """Return all grades of a run, their uncertainty, and groups of near-duplicates. Passages without a grade are not
    included.

    Raises:
        NotFoundError: the judge stage has not run.
        DataError: the run has no grades, or a grade is outside `scale`.
    """
    if not run.graded:
        raise no_grades(run)
    graded = [record for record in run.typed("judge", JudgeRecord) if record.grade is not None]
    labels: dict[str, dict[str, int]] = {}
    for record in graded:
        labels.setdefault(record.qid, {})[record.doc_id] = record.grade or 0
    qrels = Qrels.of(labels, scale or GradeScale.of(MIN_GRADE, MAX_GRADE))
    facets = {record.doc_id: record.duplicate_of or record.doc_id for record in graded}
    judged = {qid: labels[qid] for qid in qrels.qids}
    placed = list(ranked)
    doubt, origin = _label_uncertainty(judged, graded, placed), origin_of(run.manifest)
    below = [
        f"{run.folder}: {GATE_FAILED_TEXT}: {said}" for said in ["; ".join(failed_judge_gates(run.manifest))] if said
    ]
    qrels = replace(qrels, belief=_belief(judged, placed))
    version = run.manifest.version_name
    return Judgments(str(run.folder), qrels, doubt, facets, origin, tuple(below), _sources(graded), version=version)


def _sources(graded: Iterable[JudgeRecord]) -> Mapping[str, int]:
    """Return the number of grades by source. The mapping is empty if no grade comes from a human."""
    found = Counter(source_of(record.judge) for record in graded if record.duplicate_of is None)
    return found if HUMAN_SOURCE in found else {}


def _stated_shares(graded: Iterable[JudgeRecord]) -> StatedShares:
    """Return the probabilities of the grades that the judge states, by query id and passage id."""
    return {(each.qid, each.doc_id): each.distribution for each in graded if each.distribution is not None}


def _belief(judged: Mapping[str, Iterable[str]], ranked: Sequence[RankRecord]) -> UtilityEstimates | None:
    """Return the utility of each judged passage as estimated by the ranking, or None if the judge ranked no passage."""
    if not any(record.exposures for record in ranked):
        return None
    placed = {(record.qid, record.doc_id): (record.score, record.sigma) for record in ranked if not record.unordered}
    return belief_of([(qid, doc) for qid, docs in judged.items() for doc in docs], placed)


def _label_uncertainty(
    judged: Mapping[str, Iterable[str]], graded: Iterable[JudgeRecord], ranked: Iterable[RankRecord]
) -> LabelUncertainty:
    """Return, for each judged passage, its standard error in the ranking, and the judge's repeated grades and
    probabilities, if there are any.
    """
    graded = list(graded)
    sigma: dict[str, dict[str, float]] = {}
    for placed in ranked:
        if placed.exposures:
            sigma.setdefault(placed.qid, {})[placed.doc_id] = placed.sigma
    samples: dict[str, dict[str, tuple[int, ...]]] = {}
    for record in graded:
        if len(repeats := tuple(filter(None, record.grades))) > 1:
            samples.setdefault(record.qid, {})[record.doc_id] = repeats
    pairs = [(qid, doc) for qid, docs in judged.items() for doc in docs]
    rows = {pair: row for row, pair in enumerate(pairs)}
    leaders = {(each.qid, each.doc_id): (each.qid, each.duplicate_of or each.doc_id) for each in graded}
    shares = shares_of(pairs, _stated_shares(graded))
    return LabelUncertainty(
        np.array([mine.get(doc, 0.0) for qid, docs in judged.items() for mine in [sigma.get(qid, {})] for doc in docs]),
        tuple(mine.get(doc, ()) for qid, docs in judged.items() for mine in [samples.get(qid, {})] for doc in docs),
        shares,
        None if shares is None else np.array([rows.get(leaders[pair], row) for pair, row in rows.items()]),
    )
