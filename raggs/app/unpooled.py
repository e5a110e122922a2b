"""What a reader of grades must know, told when the judge stage ends: the judge's remarks, and labels outside the pools.

Human labels that no retriever found are in no golden set: a set made of them knows fewer relevant passages than their
authors did, and scores against it are the higher for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from raggs.app.services import RunServices
from raggs.base.artifacts import MergeRecord
from raggs.base.jsonl import read_records
from raggs.base.text import plural
from raggs.parts.readers.scales import RELEVANT
from raggs.runs.manifests.store import RunStore
from raggs.runs.pipeline.events import Event, Listener, Notice, StageFinished


def telling_unpooled(listen: Listener, services: RunServices, store: RunStore) -> Listener:
    """`listen`, which also hears of labels outside the pools when the judge stage ends."""

    def hear(event: Event) -> None:
        listen(event)
        if isinstance(event, StageFinished) and event.stage == "judge":
            for sentence in (*services.judge.remarks(), *_unpooled(services, store)):
                listen(Notice(sentence))

    return hear


def _unpooled(services: RunServices, store: RunStore) -> Iterator[str]:
    labels = services.judge.labels()
    known = {(qid, doc_id): grade for qid in services.queries for doc_id, grade in labels.get(qid, {}).items()}
    if not known:
        return
    total = len(known)
    for record in read_records(store.path("merge"), MergeRecord):
        known.pop((record.qid, record.doc_id), None)
    if known:
        relevant = sum(grade >= RELEVANT for grade in known.values())
        yield (
            f"{total - len(known):,} of {plural(total, 'labelled passage')} are in the pools; {len(known):,} fell "
            f"outside, {relevant:,} of them with grade {RELEVANT} or more, and are not in the golden set: no retriever "
            "found them"
        )
