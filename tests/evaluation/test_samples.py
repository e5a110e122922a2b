from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import DataError
from raggs.evaluation.samples import open_samples
from raggs.metrics.evaluate import evaluate

IDS = st.text("abc019-", min_size=1, max_size=5).filter(lambda name: not name.isdecimal())


def opened(folder, samples, outputs):
    (folder / "samples.json").write_text(json.dumps(samples))
    (folder / "outputs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in outputs))
    return open_samples(folder / "samples.json", folder / "outputs.jsonl")


@given(st.dictionaries(IDS, st.floats(0, 100), min_size=1), st.lists(IDS, unique=True), st.integers(1, 5))
def test_any_gains_give_the_ndcg_of_its_formula(tmp_path_factory, gains, ranked, k):
    read = opened(
        tmp_path_factory.mktemp("s"),
        [{"id": "s1", "expected_output": gains}],
        [{"id": "s1", "output": {"retrieved": [{"id": name} for name in ranked]}}],
    )
    worth = [1 / math.log2(place + 2) for place in range(k)]
    best = sum(gain * w for gain, w in zip(sorted(gains.values(), reverse=True), worth, strict=False))
    got = sum(gains.get(name, 0.0) * w for name, w in zip(ranked, worth, strict=False))
    found = evaluate(read.judgments.qrels, read.system.run, [f"ndcg@{k}", f"hit@{k}"])
    assert found.mean[f"ndcg@{k}"] == pytest.approx(got / best if best > 0 else 0.0)
    assert found.mean[f"hit@{k}"] == float(any(gains.get(name, 0) > 0 for name in ranked[:k]))


def test_cutoffs_and_answers_of_each_sample(tmp_path):
    read = opened(
        tmp_path,
        {
            "samples": [
                {"id": "s1", "expected_output": ["a"], "metadata": {"k": 3, "answer": "Paris"}},
                {"id": 2, "expected_output": {"7": 1}, "expected_answer": 12.5},
                {"id": "s3", "expected_output": ["a"], "metadata": {"answer": "never returned"}},
                {"id": "s4", "expected_output": ["a"], "metadata": None},
            ]
        },
        [
            {"id": "s1", "output": [{"id": "b", "text": None}, {"id": "a", "text": "in  PARIS"}]},
            {"id": "2", "output": [7, {"id": 8, "text": "12.5 metres"}]},
            {"id": "s4", "output": [], "retrieved": ["a"]},
        ],
    )
    assert read.cutoffs == {3: {"s1"}, None: {"2", "s3", "s4"}}
    assert read.answer_rank == {"s1": 2.0, "2": 2.0, "s3": math.inf}
    assert read.system.name == "outputs"
    assert evaluate(read.judgments.qrels, read.system.run, ["mrr"]).per_query["mrr"] == {
        "2": 1.0, "s1": 0.5, "s3": 0.0, "s4": 0.0,
    }  # fmt: skip


def test_yaml_comments_anchors_and_a_byte_order_mark(tmp_path):
    text = "samples:\n- id: s1\n  expected_output: &docs [a, b]\n- id: s2\n  expected_output: *docs\n"
    (tmp_path / "s.yaml").write_text(f"\ufeff# ours\n{text}", encoding="utf-8")
    (tmp_path / "o.jsonl").write_text('{"id": "s1", "output": ["b"]}\n')
    read = open_samples(tmp_path / "s.yaml", tmp_path / "o.jsonl")
    assert read.judgments.qrels.counts.tolist() == [[0, 2], [0, 2]]


def test_gains_of_0_are_judged_and_worth_nothing(tmp_path):
    read = opened(tmp_path, [{"id": "s1", "expected_output": {"a": 0, "b": 0}}], [{"id": "s1", "output": ["a"]}])
    found = evaluate(read.judgments.qrels, read.system.run, ["ndcg@5", "recall@5", "holes@5"])
    assert list(found.mean.values()) == [0.0, 0.0, 0.0]


def test_one_and_the_same_passage_under_two_spellings_is_found(tmp_path):
    with pytest.raises(DataError, match="expects 7 twice"):
        opened(tmp_path, [{"id": "s1", "expected_output": ["7", 7]}], [])
