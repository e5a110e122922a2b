"""`datasets` loads the folder, and MTEB evaluates on it as on a task of its own, with the numbers of `raggs eval`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from support.snippets import list_of, run_snippet

from raggs import open_golden

HEAVY = "is not installed; with what it needs it is some 100 MB to GB"
ROUNDED = 0.51e-5


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore")
def test_datasets_loads_each_configuration(consumed, tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason=f"datasets {HEAVY}")
    consumed.export(tmp_path, "hf")
    found = run_snippet("hf")
    golden = open_golden(consumed.run)
    rows = [json.loads(line) for line in (consumed.run.parent.parent / "corpus.jsonl").read_text().splitlines()]
    assert [(one["_id"], one["title"], one["text"]) for one in found["corpus"]] == [
        (row["_id"], row["title"], row["text"]) for row in rows
    ]
    assert {one["_id"]: one["text"] for one in found["queries"]} == {one.qid: one.text for one in golden.queries()}
    assert [(one["query-id"], one["corpus-id"], one["score"]) for one in found["labels"]] == [
        (query.qid, one.doc_id, one.grade - 1) for query in golden.by_query("grades") for one in query.grades
    ]


@pytest.mark.filterwarnings("ignore")
def test_mteb_gets_the_numbers_of_eval(consumed, tmp_path: Path) -> None:
    models = pytest.importorskip("mteb.models.model_meta", reason=f"mteb {HEAVY}")
    consumed.export(tmp_path, "hf")
    consumed.export(tmp_path / "lists", "trec")
    results = list_of(tmp_path / "lists" / "golden" / "runs" / "dense.trec")

    class Search:
        mteb_model_meta = models.ModelMeta.create_empty({"name": "mine/dense", "revision": "1"})

        def index(self, corpus, **_) -> None:
            assert len(corpus) == 60

        def search(self, queries, **_):
            return {qid: results[qid] for qid in queries["id"]}

    scores = run_snippet("hf", 1, model=Search())["scores"]
    (ndcg,) = consumed.means(consumed.run, "dense", "nDCG@10")
    assert scores["ndcg_at_10"] == pytest.approx(ndcg, abs=ROUNDED)
    consumed.export(tmp_path, "hf", grades="binary")
    binary = run_snippet("hf", 1, model=Search())["scores"]
    recall, precision, map_ = consumed.means(consumed.run, "dense", "R@10", "P@5", "AP@10")
    assert [binary[name] for name in ("recall_at_10", "precision_at_5", "map_at_10")] == pytest.approx(
        [recall, precision, map_], abs=ROUNDED
    )


def test_the_card_names_files_that_are_there_with_their_columns(consumed, tmp_path: Path) -> None:
    out = consumed.export(tmp_path, "hf", split="dev")
    head = yaml.safe_load((out / "README.md").read_text().split("---")[1])
    columns = {info["config_name"]: [one["name"] for one in info["features"]] for info in head["dataset_info"]}
    assert [config["config_name"] for config in head["configs"]] == ["corpus", "queries", "default"] == list(columns)
    for config in head["configs"]:
        (file,) = config["data_files"]
        rows = [json.loads(line) for line in (out / file["path"]).read_text().splitlines()]
        assert rows and all(list(row) == columns[config["config_name"]] for row in rows)
    assert head["configs"][2]["data_files"][0] == {"split": "dev", "path": "qrels/dev.jsonl"}
    other = consumed.export(tmp_path, "hf", split="dev", grades="binary")
    again = yaml.safe_load((other / "README.md").read_text().split("---")[1])
    assert again["dataset_info"] != head["dataset_info"], "datasets would go on with what it read before"
