"""Evidence sets that annotators gave for the queries of a run, in the view Evidence of `raggs review serve`.

Human evidence replaces the sets that are stored with a query. It is read from the folder of labels next to the folder
of runs, as the judge `human` does without settings. If annotators differ, the stored sets count until an annotator
adjudicates. If the text of a passage has changed since, the labels that depend on it do not count. The run itself
does not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from raggs.base.artifacts import Groups, MergeRecord, QueryRecord
from raggs.base.jsonl import mentions
from raggs.base.text import plural
from raggs.parts.judges import reviews_beside
from raggs.parts.reviews import ReviewStore, passage_digest, question_digest
from raggs.runs.manifests.open_run import ArtifactByQuery, OpenedRun

MAX_NAMES = 3


@dataclass(frozen=True)
class HumanEvidence:
    """The human evidence of a run.

    Attributes:
        sets: sets that replace the stored ones, by query id. An entry is empty if no set suffices for the annotators.
        by: annotators of these sets, sorted.
        differing: ids of queries for which annotators gave different sets that are not adjudicated.
        stale: ids of queries whose labels do not count, because the text of a passage has changed.
    """

    sets: Mapping[str, Groups] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for reports; empty if no annotator decided on evidence."""
        said = []
        if self.sets:
            names = ", ".join(self.by[:MAX_NAMES]) + (" and others" if len(self.by) > MAX_NAMES else "")
            none = sum(not sets for sets in self.sets.values())
            less = f"; for {none:,} of them no set suffices" if none else ""
            said.append(f"evidence sets of {plural(len(self.sets), 'query')} are by annotators ({names}){less}")
        if self.differing:
            said.append(
                f"annotators differ on the evidence sets of {plural(len(self.differing), 'query')}, "
                "so the stored sets count: adjudicate them in the view Evidence of raggs review serve"
            )
        if self.stale:
            said.append(
                f"for {plural(len(self.stale), 'query')}, evidence sets by annotators do not count, because the text "
                "of a passage has changed"
            )
        return tuple(said)


def human_evidence(run: OpenedRun, folder: Path | None = None) -> HumanEvidence:
    """Return the evidence sets that annotators gave for the queries of a run.

    Args:
        folder: folder of the labels [default: `reviews` next to the folder of runs].

    Raises:
        DataError: a line of the labels or of the run is invalid.
    """
    store = ReviewStore(folder or reviews_beside(run.folder.resolve().parent))
    if not (store.path.is_file() and run.file("queries").is_file() and mentions(store.path, ['"evidence"'])):
        return HumanEvidence()
    held, pools = store.held(), ArtifactByQuery(run, "merge")
    decided = {*held.evidence, *held.settling_evidence}
    sets, by, differing, stale = dict[str, Groups](), set[str](), [], []
    for query in run.typed("queries", QueryRecord):
        if (digest := question_digest(query)) not in decided:
            continue
        pool = {record.doc_id: passage_digest(record.passage) for record in pools.of(query.qid, MergeRecord)}
        found = held.settled_evidence(digest, pool)
        if found is None:
            stale.append(query.qid)
        elif found.sets is None:
            differing.append(query.qid)
        else:
            sets[query.qid] = found.sets
            by.update(found.by)
    return HumanEvidence(sets, tuple(sorted(by)), tuple(differing), tuple(stale))
