"""benchmarks/chunks.py: its loops give raggs' scores; where the report's data lies here, its rows too."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from raggs.base.artifacts import Query, Reference, Span
from raggs.chunking.documents import Documents, chunk_documents
from raggs.chunking.questions import place_questions
from raggs.metrics.spans import DocumentOffsets, summary

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data" / "chunking"
spec = importlib.util.spec_from_file_location("benchmark_of_chunks", ROOT / "benchmarks" / "chunks.py")
assert spec is not None and spec.loader is not None
benchmark = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = benchmark  # its dataclasses look themselves up
spec.loader.exec_module(benchmark)


def test_the_loops_give_the_same_scores():
    text = "".join(f"Sentence {number} about {number * number} things. " for number in range(60))
    documents = Documents(Path("docs"), ("a.md", "b.md"), (text, text[::-1]))
    rng, made = np.random.default_rng(2), {}
    for number in range(20):
        first, second = sorted(rng.choice(10, 2, replace=False).tolist())
        places = [(part * 150, part * 150 + int(rng.integers(10, 149))) for part in (first, second)]
        name = documents.names[number % 2]
        body = documents.texts[number % 2]
        references = [Reference(text=body[a:b], span=Span(source=name, start=a, end=b)) for a, b in places]
        made[f"q{number}"] = Query(qid=f"q{number}", text="Which?", references=tuple(references))
    asked = place_questions(made, documents, Path("q.csv"))
    data = benchmark.Data(documents, asked, DocumentOffsets.of(documents.lengths))
    found = chunk_documents(benchmark.TokenChunker(benchmark.TokenChunker.Config(size=30)), documents)
    given = benchmark.world(data, found, 2)
    scores = benchmark.fresh(given).values
    mine = np.stack([scores[name] for name in ("recall", "precision", "iou", "precision_omega")], axis=1)
    assert mine == pytest.approx(np.array(benchmark.loops(given)), abs=1e-12)


@pytest.mark.skipif(not (DATA / "questions.csv").is_file(), reason="the report's corpora are not here")
@pytest.mark.parametrize("row", benchmark.ROWS[:3], ids=lambda row: row.name)
def test_chunks_and_omega_are_the_reports(row):
    data = benchmark.Data.of(DATA)
    found = chunk_documents(row.chunker(None), data.documents, compat=True)
    assert len(found.texts) == row.chunks
    assert 100 * summary(data.target(found).omega).mean == pytest.approx(row.printed[2], abs=0.05)
