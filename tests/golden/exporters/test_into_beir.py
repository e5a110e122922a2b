"""BEIR's own loader reads the export, and its evaluation gets the numbers of `raggs eval`, which it rounds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.snippets import list_of, run_snippet

ROUNDED = 0.51e-5


@pytest.mark.filterwarnings("ignore")  # of its files left open
def test_beir_loads_the_folder_and_gets_the_numbers_of_eval(consumed, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("beir", reason="beir is not installed; with its models it is some GB")
    consumed.export(tmp_path, "beir")
    consumed.export(tmp_path / "lists", "trec")
    results = list_of(tmp_path / "lists" / "golden" / "runs" / "dense.trec")
    monkeypatch.chdir(tmp_path)
    found = run_snippet("beir", search=lambda corpus, queries: results)
    source = consumed.run.parent.parent / "corpus.jsonl"
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    assert found["corpus"] == {row["_id"]: {"title": row["title"], "text": row["text"]} for row in rows}
    (ndcg,) = consumed.means(consumed.run, "dense", "nDCG@10")
    assert found["ndcg"] == {"NDCG@10": pytest.approx(ndcg, abs=ROUNDED)}
    consumed.export(tmp_path, "beir", grades="binary")
    binary = run_snippet("beir", search=lambda corpus, queries: results)
    recall, precision, map_ = consumed.means(consumed.run, "dense", "R@10", "P@10", "AP@10")
    assert binary["recall"] == {"Recall@10": pytest.approx(recall, abs=ROUNDED)}
    assert binary["precision"] == {"P@10": pytest.approx(precision, abs=ROUNDED)}
    assert binary["map_"] == {"MAP@10": pytest.approx(map_, abs=ROUNDED)}
