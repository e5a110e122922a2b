"""Labels that no retriever found are counted aloud."""

from __future__ import annotations

from pathlib import Path

from support.project import make_project

from raggs import load_config
from raggs import run as run_config
from raggs.base.artifacts import MergeRecord
from raggs.base.jsonl import read_records
from raggs.base.trec import read_qrels
from raggs.base.types import Notice
from raggs.runs.events import Event


def label_notices(events: list[Event]) -> list[str]:
    """The notices on labels; others name the default embedder."""
    return [event.message for event in events if isinstance(event, Notice) and "labelled" in event.message]


def test_how_many_labels_fell_outside_the_pools(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=3, corpus=60, retrieve={"retrievers": [{"type": "bm25", "k": 5}]})
    config, heard = load_config(project.config), list[Event]()
    store = run_config(config, stop="judge", listen=heard.append).store
    pooled = {(record.qid, record.doc_id) for record in read_records(store.path("merge"), MergeRecord)}
    labels = {(label.qid, label.doc_id): label.grade for label in read_qrels(config.run.judge.judge.path)}
    outside = labels.keys() - pooled
    assert outside
    (said,) = label_notices(heard)
    good = sum(labels[pair] >= 4 for pair in outside)
    assert said.startswith(f"{len(labels) - len(outside)} of {len(labels)} labelled passages are in the pools; ")
    assert f"{len(outside)} fell outside, {good} of them with grade 4 or more" in said
    again = list[Event]()
    run_config(config, stop="judge", listen=again.append)
    assert not label_notices(again)
