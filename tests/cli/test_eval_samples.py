"""`raggs eval --samples --outputs`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from support.scoring import OUTPUTS, SAMPLES, means, raggs_eval, scored, write


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of_samples(*arguments: object) -> dict[str, Any]:
    return scored("--samples", "samples.yaml", "--outputs", "outputs.jsonl", *arguments)


def test_the_worked_example(here: Path) -> None:
    write(here, samples__yaml=SAMPLES, outputs__jsonl=OUTPUTS)
    report = of_samples("-k", "5")
    values = {name: by_qid["s1"] for name, by_qid in report["per_query"]["outputs"].items()}
    assert values["hit@5"] == 1.0
    assert values["recall@5"] == 1.0
    assert values["mrr@5"] == 0.5
    assert values["ndcg@5"] == pytest.approx(0.6509, abs=5e-5)
    usual = of_samples()
    assert usual["per_query"]["outputs"]["ndcg@5"] == report["per_query"]["outputs"]["ndcg@5"]  # 5 is the usual cutoff
    assert usual["per_query"]["outputs"]["mrr"]["s1"] == values["mrr"] == 0.5
    # graded: gains 1, 3 in the order 2, 1
    log3 = math.log2(3)
    assert report["per_query"]["outputs"]["ndcg@5"]["s2"] == pytest.approx((1 + 3 / log3) / (3 + 1 / log3))


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "s1", "output": ["doc-7", "doc-3", "doc-1", "doc-9", "doc-2"]}',
        '{"id": "s1", "retrieved": ["doc-7", "doc-3", "doc-1", "doc-9", "doc-2"]}',
        '{"id": "s1", "actual_output": "[\\"doc-7\\", \\"doc-3\\", \\"doc-1\\", \\"doc-9\\", \\"doc-2\\"]"}',
        '{"id": "s1", "output": "{\\"retrieved\\":[\\"doc-7\\",\\"doc-3\\",\\"doc-1\\",\\"doc-9\\",\\"doc-2\\"]}"}',
    ],
)
def test_outputs_may_be_bare(line: str, here: Path) -> None:
    write(here, samples__yaml=SAMPLES, outputs__jsonl=line + "\n")
    report = of_samples("-m", "ndcg@5")
    assert report["per_query"]["outputs"]["ndcg@5"] == {"s1": pytest.approx(0.6509, abs=5e-5), "s2": 0.0}
    assert report["systems"][0]["missing"] == 1


def test_a_sample_s_own_cutoff_wins(here: Path) -> None:
    samples = SAMPLES.replace("[doc-3, doc-9]\n", "[doc-3, doc-9]\n  metadata: {k: 2}\n")
    write(here, samples__yaml=samples, outputs__jsonl=OUTPUTS)
    report = of_samples("-m", "recall,precision@1,mrr", "-k", "5")
    assert report["measures"] == ["recall@k", "precision@k", "mrr@k", "holes@k"]
    values = report["per_query"]["outputs"]
    assert values["recall@k"] == {"s1": 0.5, "s2": 1.0}
    assert values["precision@k"] == {"s1": 0.5, "s2": 1.0}  # s2 keeps the cutoff that the measure names
    assert values["mrr@k"]["s1"] == 0.5
    assert means(report)["recall@k"] == 0.75
    assert "each sample with metadata.k is scored at that cutoff" in report["notes"]
    arguments = ("--samples", "samples.yaml", "--outputs", "outputs.jsonl", "--fail-under", "recall@5=0.8")
    result = raggs_eval(*arguments)
    assert (result.exit_code, "recall@k of outputs is 0.7500, below 0.8" in result.stderr) == (7, True)


def test_answers_are_found_whatever_their_case_width_and_space(here: Path) -> None:
    samples = (
        "samples:\n- {id: s1, expected_output: [a1], metadata: {answer: 'Ｓtraße  12'}}\n"
        "- {id: s2, expected_output: [a1], expected_answer: 1969}\n- {id: s3, expected_output: [a1]}\n"
    )
    outputs = [
        {"id": "s1", "output": [{"id": "b", "text": "no"}, {"id": "c", "text": "at STRASSE\u00a0\n12."}]},
        {"id": "s2", "output": [{"id": "b", "text": "in 1968"}, {"id": "d"}]},
        {"id": "s3", "output": ["a1"]},
    ]
    write(here, samples__yaml=samples, outputs__jsonl="".join(json.dumps(line) + "\n" for line in outputs))
    report = of_samples("-k", "1,2")
    values = report["per_query"]["outputs"]
    assert values["containment@1"] == {"s1": 0.0, "s2": 0.0}
    assert values["containment@2"] == {"s1": 1.0, "s2": 0.0}
    assert report["systems"][0]["scores"]["containment@2"]["valid"] == 2


def test_samples_may_be_json(here: Path) -> None:
    samples = json.dumps([{"id": "s1", "expected_output": {"doc-3": 1e-05}}])
    write(here, samples__yaml=samples, outputs__jsonl='{"id": "s1", "output": ["doc-3"]}\n')
    assert means(of_samples("-m", "ndcg"))["ndcg@5"] == 1.0
