"""PROC and %PROC of the lists that a run retrieved, computed from the run's own grades and stored in its manifest.

PROC (pool-restricted oracle ceiling) is the score of the best order of a list's own candidates. If PROC is low,
retrieval must improve. If PROC is high but the list reaches only a small part of it (a low %PROC), the order must
improve. Source: Dallaire 2025, sections 1 and 6. The values equal `bottleneck` of `raggs eval -g RUN -r RUN`, at the
cutoffs in `PUBLISHED`.
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
    """Return PROC and %PROC of each retriever and of their fusion. The mapping is empty if no passage has a grade.

    Args:
        store: a run in which all stages up to judge are finished.

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
    """Yield a finding for each retriever whose ceilings in a stage's lock differ from those of the artifacts. A lock
    without ceilings gives no findings.
    """
    if not lock.ceilings:
        return
    with suppress(RaggsError):  # another check already reports an unreadable artifact
        found = ceilings_of(store)
        for name in sorted(found.keys() | lock.ceilings.keys()):
            if found.get(name) != lock.ceilings.get(name):
                yield AuditFinding(
                    MANIFEST, None, f"stage {lock.stage}: the ceilings of {name} differ from those of the artifacts"
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
