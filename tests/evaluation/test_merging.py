"""Samples with cutoffs of their own are scored as if each cutoff had been asked for alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.evaluation.report import make_report
from raggs.evaluation.samples import merged_by_cutoff
from raggs.evaluation.study import ScoringSettings
from raggs.golden.judgments import Judgments
from raggs.golden.sources import NamedSystem
from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.names import parse_measures

DOCS = [f"doc-{number}" for number in range(6)]
QIDS = [f"sample-{number}" for number in range(4)]
GOLDEN = Judgments("s", Qrels.of({qid: {"doc-1": 2, "doc-4": 1} for qid in QIDS}, GradeScale.of(0, 2)))
NAMES = ["recall@2", "ndcg@2", "map", "E[mrr@2]"]


@given(
    st.fixed_dictionaries({qid: st.permutations(DOCS) for qid in QIDS}),
    st.fixed_dictionaries({qid: st.sampled_from([None, 1, 3, 6]) for qid in QIDS}),
)
def test_each_sample_has_the_value_of_its_own_cutoff(lists, own):
    system = NamedSystem("one", "f", Run.of(lists))
    cutoffs = {k: frozenset(qid for qid in QIDS if own[qid] == k) for k in set(own.values())}
    merged = merged_by_cutoff(GOLDEN, system, ScoringSettings(measures=parse_measures(NAMES), cutoffs=(2,)), cutoffs)
    assert merged.measures == ("recall@k", "ndcg@k", "map", "E[mrr@k]")
    for qid, k in own.items():
        asked = [name.replace("@2", f"@{k or 2}") for name in NAMES]
        alone = make_report(GOLDEN, [system], ScoringSettings(measures=parse_measures(asked)))
        for label, name in zip(merged.measures, asked, strict=True):
            assert merged.per_query["one"][label][qid] == alone.per_query["one"][name][qid]
    for label, score in merged.systems[0].scores.items():
        assert score.mean == pytest.approx(sum(merged.per_query["one"][label].values()) / len(QIDS))
        assert score.valid == len(QIDS)


def test_of_several_cutoffs_the_first_serves_samples_without_their_own():
    system = NamedSystem("one", "f", Run.of(dict.fromkeys(QIDS, DOCS)))
    scoring = ScoringSettings(measures=parse_measures(["recall@2", "recall@5"]), cutoffs=(2, 5))
    merged = merged_by_cutoff(GOLDEN, system, scoring, {None: frozenset(QIDS[1:]), 5: frozenset(QIDS[:1])})
    assert merged.per_query["one"] == {"recall@k": {"sample-0": 1.0, "sample-1": 0.5, "sample-2": 0.5, "sample-3": 0.5}}
