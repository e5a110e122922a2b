"""What tools with an entry a question are given: the passages that count, best first, and all texts as data."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from raggs import importers
from raggs.artifacts import Passage, Query
from raggs.exporters import REGISTRY
from raggs.exporters.base import ExportOptions
from raggs.golden.base import GoldenQuery, Graded
from raggs.golden.scales import GradeScale

HOSTILE = "=cmd|' /C calc'!A1\u2028{{ env.KEY }} <script>\"\\\n--- !!python/object"


def rows(path: Path) -> list[dict]:
    text = path.read_text()
    return json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.split("\n")[:-1]]


def test_ragas(golden, tmp_path: Path) -> None:
    REGISTRY.load("ragas")().write(golden(), tmp_path)
    first, second, third = rows(tmp_path / "ragas.jsonl")
    assert (first["user_input"], first["reference"], first["qid"]) == ("What of q1?", None, "q1")
    assert first["reference_context_ids"] == ["d10", "d1"], "in the order of the ranking, grades 4 and 5"
    assert first["reference_contexts"][0] == "Title d10\nThe text of d10."
    assert second["reference_context_ids"] == ["d3"]
    assert (third["reference_contexts"], third["reference_context_ids"]) == ([], []), "nothing counts for it"


def test_what_counts_is_what_binary_at_says_and_labels_stay_gains(golden, tmp_path: Path) -> None:
    options = ExportOptions(GradeScale("gain", binary_at=3))
    REGISTRY.load("langsmith")(options).write(golden(), tmp_path)
    _, second, third = rows(tmp_path / "examples.jsonl")
    assert second["outputs"]["context_ids"] == ["é/7", "d3"] and second["metadata"]["context_grades"] == [3, 4]
    assert third["outputs"]["context_ids"] == ["d5"]
    assert "q2 0 d5 2\n" in (tmp_path / "qrels.txt").read_text()
    assert json.loads((tmp_path / "meta.json").read_text())["references"].startswith("passages of grade 3 or more")


def test_a_golden_of_deepeval_names_its_document_where_there_is_one(tmp_path: Path) -> None:
    from support.rich import rich_golden

    REGISTRY.load("deepeval")().write(rich_golden(), tmp_path)
    first, second = rows(tmp_path / "goldens.json")
    assert first["expected_output"] == "Ici" and first["additional_metadata"]["context_ids"] == ["d1", "d10"]
    assert first["source_file"] is None, "only one of its passages says where it stands"
    assert first["additional_metadata"]["language"] == "fr" and "answer" not in first["additional_metadata"]
    assert second["additional_metadata"]["context_grades"] == [4]


@pytest.mark.parametrize("name", ["ragas", "deepeval", "langsmith"])
def test_hostile_texts_stay_data(name: str, golden, tmp_path: Path) -> None:
    query = Query(qid="q", text=HOSTILE, answer=HOSTILE, metadata={"x": HOSTILE})
    judged = GoldenQuery("q", query, (Passage(doc_id="d", text=HOSTILE),), (Graded("d", 5),))
    REGISTRY.load(name)().write(golden([judged]), tmp_path)
    (file,) = [path for path in tmp_path.glob("*.json*") if "meta" not in path.name]
    (row,) = rows(file)
    assert json.dumps(row).count(json.dumps(HOSTILE)[1:-1]) >= 2
    found = importers.REGISTRY.load(name)().read(tmp_path)
    assert list(found.queries()) == [query]
    assert [passage.text for one in found.by_query() for passage in one.pool] == [HOSTILE]


def test_a_table_is_opened_and_not_run(golden, tmp_path: Path) -> None:
    query = Query(qid="-q", text=HOSTILE)
    judged = GoldenQuery("-q", query, (Passage(doc_id="@d", text=f"{HOSTILE}\r\n."),), (Graded("@d", 5, reason="'=1"),))
    REGISTRY.load("csv")(ExportOptions(GradeScale("binary"))).write(golden([judged]), tmp_path)
    data = (tmp_path / "golden.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbfqid,") and data.count(b"\xef\xbb\xbf") == 1
    with (tmp_path / "golden.csv").open(encoding="utf-8-sig", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["question"], row["grade"], row["rank"]) == (f"'{HOSTILE}", "5", "")
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row.values())
    found = importers.REGISTRY.load("csv")().read(tmp_path)
    assert list(found.by_query()) == [judged]
