"""A public test collection: what raggs' own retrievers find there scores as ir_measures says."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from ir_measures import AP, RR, Bpref, P, R, Success, nDCG
from support.cranfield import cranfield_labels, cranfield_runs, needs_cranfield

from raggs.metrics import evaluate
from raggs.parts.run_files import read_trec_run

pytestmark = needs_cranfield

MEASURES = [nDCG @ 10, nDCG @ 100, nDCG, AP, AP @ 20, RR, P @ 10, R @ 10, R @ 100, Success @ 5, Bpref, P(rel=4) @ 5]


@pytest.mark.parametrize("name", ["bm25", "dense", "fused"])
def test_equals_ir_measures(name, tmp_path):
    labels, lists = cranfield_labels(), cranfield_runs()[name]
    scores = {qid: dict(found) for qid, found in lists.items()}
    values = {(row.query_id, str(row.measure)): row.value for row in ir_measures.iter_calc(MEASURES, labels, scores)}
    path = tmp_path / "run.trec"
    path.write_text(
        "".join(
            f"{qid} Q0 {doc} {rank} {score!r} {name}\n"
            for qid, found in lists.items()
            for rank, (doc, score) in enumerate(found, start=1)
        )
    )
    for run in (scores, read_trec_run(path)):
        ours = evaluate(labels, run, [str(measure) for measure in MEASURES], scale=(0, 5))
        assert len(ours.qids) == len(labels) == 150
        for measure in map(str, MEASURES):
            theirs = np.array([values[qid, measure] for qid in ours.qids])
            assert np.abs(ours.column(measure) - theirs).max() < 1e-9, measure
