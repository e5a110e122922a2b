"""A run whose dense retriever has an index: resumed, explained, audited as any other."""

from __future__ import annotations

from support.project import make_project

from raggs.app.audit import audit
from raggs.app.run import run


def retrieved(project, **index):
    """The hits of a run with this index, as bytes."""
    dense = {"type": "dense", "k": 10, **({"index": index} if index else {})}
    project.change(
        embed={"embedder": {"type": "wordllama", "dims": 64}}, retrieve={"retrievers": [{"type": "bm25"}, dense]}
    )
    run(project.config)
    return (project.run / "retrieve.jsonl").read_bytes()


def test_an_index_that_finds_the_same_gives_the_same_bytes(tmp_path):
    project = make_project(tmp_path, queries=3, corpus=60)
    exact = retrieved(project)
    assert retrieved(project, type="hnsw") == exact
    assert retrieved(project, type="hnsw", quantize="int8") == exact
    assert retrieved(project, type="ivf", nprobe=100) == exact
    assert retrieved(project, type="ivf", lists=30, nprobe=1) != exact
    assert audit(project.run).findings == ()
    indexes = [*(project.run.parent / ".cache" / "vectors").glob("*/*/index")]
    assert len(indexes) == 4
    indexes[0].write_bytes(b"else")
    (finding,) = audit(project.run).findings
    assert "index does not match its recorded checksum" in str(finding)
