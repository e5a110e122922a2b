"""The default retrievers on a public test collection: no change may cost quality unseen."""

from __future__ import annotations

import math

import pytest
from support.cranfield import cranfield_labels, cranfield_runs, needs_cranfield

pytestmark = needs_cranfield


def ndcg_at_10(lists):
    """Linear gain, mean over queries, as trec_eval computes it."""
    labels = cranfield_labels()
    total = 0.0
    for qid, grades in labels.items():
        gains = [grades.get(doc_id, 0) for doc_id, _ in lists[qid][:10]]
        ideal = sorted(grades.values(), reverse=True)[:10]
        total += sum(gain / math.log2(place + 2) for place, gain in enumerate(gains)) / sum(
            gain / math.log2(place + 2) for place, gain in enumerate(ideal)
        )
    return total / len(labels)


@pytest.mark.parametrize(("name", "quality"), [("bm25", 0.513), ("dense", 0.411), ("fused", 0.488)])
def test_quality(name, quality):
    assert ndcg_at_10(cranfield_runs()[name]) == pytest.approx(quality, abs=0.01)
