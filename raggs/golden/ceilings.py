"""PROC and %PROC of what a run retrieved, by the run's own grades, as its manifest keeps them.

PROC (pool-restricted oracle ceiling) is what the best order of a list's own candidates scores. A low one asks for
better retrieval; a high one of which little is realised (%PROC) asks for a better order (Dallaire 2025, sections 1
and 6). The figures are those that `raggs eval -g RUN -r RUN` has in `bottleneck`, at the published cutoffs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, JudgeRecord, MergeRecord, RetrieveRecord
from raggs.base.errors import RaggsError
from raggs.base.types import finite_or_none
from raggs.golden.sources import lists_of_records
from raggs.metrics.bottleneck import PAIRS, PUBLISHED, bottleneck
from raggs.metrics.columns import GradeScale, Qrels
from raggs.metrics.hits import Hits, find_hits
from raggs.runs.manifests.models import MANIFEST, AuditFinding, RetrieverCeiling, StageLock
from raggs.runs.manifests.store import RunStore


def ceilings_of(store: RunStore) -> Mapping[str, tuple[RetrieverCeiling, ...]]:
    """Return the ceilings of each retriever and of their fusion; none where no passage has a grade.

    Args:
        store: a run whose stages up to judge have written their artifacts.

    Raises:
        DataError: an artifact cannot be read.
    """
    labels: dict[str, dict[str, int]] = {}
    for record in store.read("judge", JudgeRecord):
        if record.grade is not None:
            labels.setdefault(record.qid, {})[record.doc_id] = record.grade
    if not labels:
        return {}
    qrels = Qrels.of(labels, GradeScale.of(MIN_GRADE, MAX_GRADE))
    lists = lists_of_records(store.read("retrieve", RetrieveRecord), store.read("merge", MergeRecord))
    return {name: tuple(_ceilings(find_hits(qrels, run))) for name, run in lists}


def ceiling_findings(store: RunStore, lock: StageLock) -> Iterator[AuditFinding]:
    """Compare the ceilings in a lock with those that the artifacts give; none for a lock that has none."""
    if not lock.ceilings:
        return
    with suppress(RaggsError):  # an artifact that cannot be read is a finding already
        found = ceilings_of(store)
        for name in sorted(found.keys() | lock.ceilings.keys()):
            if found.get(name) != lock.ceilings.get(name):
                yield AuditFinding(
                    MANIFEST, None, f"stage {lock.stage}: the ceilings of {name} are not what its records give"
                )


def _ceilings(hits: Hits) -> Iterator[RetrieverCeiling]:
    for measure in PAIRS:
        for k in PUBLISHED:
            found = bottleneck(hits, measure, k=k)
            yield RetrieverCeiling(
                measure=f"{measure}@{k}",
                pool=found.pool,
                score=finite_or_none(found.actual),
                proc=finite_or_none(found.ceiling),
                pct_proc=finite_or_none(found.share_of_means),
            )
