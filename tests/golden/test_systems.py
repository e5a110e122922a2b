"""Systems by the names that reports give them, from files and from run directories."""

from __future__ import annotations

import gzip

import pytest
from support.golden import change

from raggs.base.artifacts import MergeRecord, RetrieveRecord
from raggs.base.errors import DataError, UsageError
from raggs.base.jsonl import read_records
from raggs.golden.sources import open_systems, retrievers_of


def test_systems_are_called_by_their_files_or_as_asked(tmp_path):
    line = b"q1 Q0 doc-1 1 2.0 t\n"
    for name in ("bm25.trec", "dense.v2.trec.gz", "plain"):
        (tmp_path / name).write_bytes(gzip.compress(line) if name.endswith(".gz") else line)
    specs = [str(tmp_path / name) for name in ("bm25.trec", "dense.v2.trec.gz", "plain")]
    specs.append(f"x={tmp_path / 'plain'}")
    assert [system.name for system in open_systems(specs)] == ["bm25", "dense.v2", "plain", "x"]
    with pytest.raises(UsageError, match="two systems have the name bm25"):
        list(open_systems([specs[0], specs[0]]))


def test_systems_are_the_retrievers_and_their_fusion(run):
    found = dict(retrievers_of(run))
    assert list(found) == ["bm25", "dense", "fused"]
    for name, model, artifact in (("bm25", RetrieveRecord, "retrieve"), ("fused", MergeRecord, "merge")):
        records = [r for r in read_records(run / f"{artifact}.jsonl", model) if getattr(r, "retriever", name) == name]
        assert found[name].score.tolist() == [record.score for record in records]
    change(run, "retrieve", RetrieveRecord, lambda record: record if record.retriever == "bm25" else None)
    assert list(dict(retrievers_of(run))) == ["bm25"]
    change(run, "retrieve", RetrieveRecord, lambda record: None)
    with pytest.raises(DataError, match="contains no retrieved lists"):
        list(retrievers_of(run))
