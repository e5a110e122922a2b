"""What tools with an entry a question are given: the passages that count, best first, and all texts as data."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from support.rich import rich_golden

from raggs.base.artifacts import Passage, Query
from raggs.golden import formats
from raggs.golden.base import GoldenQuery, LabelRecord
from raggs.golden.formats import EXPORTERS, ExportOptions
from raggs.parts.file_shapes import GradeFormat

HOSTILE = "=cmd|' /C calc'!A1\u2028{{ env.KEY }} <script>\"\\\n--- !!python/object"
TABLES = {"qa.parquet", "corpus.parquet"}


def rows(path: Path) -> list[dict]:
    text = path.read_text()
    return json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.split("\n")[:-1]]


def test_ragas(golden, tmp_path: Path) -> None:
    EXPORTERS.load("ragas")().write(golden(), tmp_path)
    first, second, third = rows(tmp_path / "ragas.jsonl")
    assert (first["user_input"], first["reference"], first["qid"]) == ("What of q1?", None, "q1")
    assert first["reference_context_ids"] == ["d10", "d1"], "in the order of the ranking, grades 4 and 5"
    assert first["reference_contexts"][0] == "Title d10\nThe text of d10."
    assert second["reference_context_ids"] == ["d3"]
    assert (third["reference_contexts"], third["reference_context_ids"]) == ([], []), "nothing counts for it"


def test_what_counts_is_what_binary_at_says_and_labels_stay_gains(golden, tmp_path: Path) -> None:
    options = ExportOptions(GradeFormat("gain", binary_at=3))
    EXPORTERS.load("langsmith")(options).write(golden(), tmp_path)
    _, second, third = rows(tmp_path / "examples.jsonl")
    assert second["outputs"]["context_ids"] == ["é/7", "d3"] and second["metadata"]["context_grades"] == [3, 4]
    assert third["outputs"]["context_ids"] == ["d5"]
    assert "q2 0 d5 2\n" in (tmp_path / "qrels.txt").read_text()
    assert json.loads((tmp_path / "meta.json").read_text())["references"].startswith("passages of grade 3 or more")


def test_a_golden_of_deepeval_names_its_document_where_there_is_one(tmp_path: Path) -> None:
    EXPORTERS.load("deepeval")().write(rich_golden(), tmp_path)
    first, second = rows(tmp_path / "goldens.json")
    assert first["expected_output"] == "Ici" and first["additional_metadata"]["context_ids"] == ["d1", "d10"]
    assert first["source_file"] is None, "only one of its passages says where it stands"
    assert first["additional_metadata"]["language"] == "fr" and "answer" not in first["additional_metadata"]
    assert second["additional_metadata"]["context_grades"] == [4]


def test_any_of_near_duplicates_will_do_for_autorag(tmp_path: Path) -> None:
    EXPORTERS.load("autorag")().write(rich_golden(), tmp_path)
    first, second = rows(tmp_path / "qa.jsonl")
    assert (first["retrieval_gt"], first["generation_gt"]) == ([["d1", "d10"]], ["Ici"])
    assert (second["retrieval_gt"], second["generation_gt"]) == ([["d3"]], [])
    assert rows(tmp_path / "corpus.jsonl")[0]["contents"].startswith("T d1\nThe text")
    compile((tmp_path / "make_parquet.py").read_text(), "make_parquet.py", "exec")


@pytest.mark.parametrize("name", ["ragas", "deepeval", "langsmith"])
def test_hostile_texts_stay_data(name: str, golden, tmp_path: Path) -> None:
    query = Query(qid="q", text=HOSTILE, answer=HOSTILE, metadata={"x": HOSTILE})
    judged = GoldenQuery("q", query, (Passage(doc_id="d", text=HOSTILE),), (LabelRecord(qid="q", doc_id="d", grade=5),))
    EXPORTERS.load(name)().write(golden([judged]), tmp_path)
    (file,) = [path for path in tmp_path.glob("*.json*") if "meta" not in path.name]
    (row,) = rows(file)
    assert json.dumps(row).count(json.dumps(HOSTILE)[1:-1]) >= 2
    found = formats.IMPORTERS.load(name)().read(tmp_path)
    assert list(found.queries()) == [query]
    assert [passage.text for one in found.by_query() for passage in one.pool] == [HOSTILE]


def test_a_table_is_opened_and_not_run(golden, tmp_path: Path) -> None:
    query = Query(qid="-q", text=HOSTILE)
    judged = GoldenQuery(
        "-q",
        query,
        (Passage(doc_id="@d", text=f"{HOSTILE}\r\n."),),
        (LabelRecord(qid="-q", doc_id="@d", grade=5, reason="'=1"),),
    )
    EXPORTERS.load("csv")(ExportOptions(GradeFormat("binary"))).write(golden([judged]), tmp_path)
    data = (tmp_path / "golden.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbfqid,") and data.count(b"\xef\xbb\xbf") == 1
    with (tmp_path / "golden.csv").open(encoding="utf-8-sig", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["question"], row["grade"], row["rank"]) == (f"'{HOSTILE}", "5", "")
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row.values())
    found = formats.IMPORTERS.load("csv")().read(tmp_path)
    assert list(found.by_query()) == [judged]


def test_promptfoo_is_given_no_template_no_file_and_no_id(golden, tmp_path: Path) -> None:
    texts = ["{{ env.KEY }}", "file:///etc/hostname", "{% raw %}{# c #}{{{", HOSTILE, "a\x85\ufeffb"]
    EXPORTERS.load("promptfoo")().write(
        golden(
            [
                GoldenQuery(f"q{place}", Query(qid=f"q{place}", text=text), (Passage(doc_id="{{x}}", text=text),))
                for place, text in enumerate(texts)
            ]
        ),
        tmp_path,
    )
    written = (tmp_path / "promptfooconfig.yaml").read_text()
    spelt = [test["vars"]["question"] for test in yaml.safe_load(written)["tests"]]
    assert len(spelt) == len(texts) and "{{x}}" not in written
    for text, found in zip(texts, spelt, strict=True):
        plain = re.sub(r'\{\{ "([{#:])" \}\}', "", found)
        assert not re.search(r"\{[{%#]|#\}|^\s*\w+:", plain)
        assert re.sub(r'\{\{ "([{#:])" \}\}', r"\1", found) == text


def test_what_promptfoo_runs_gives_the_recall_of_eval(consumed, tmp_path: Path) -> None:
    node = shutil.which("node") or pytest.skip("node is not installed")
    out = consumed.export(tmp_path, "promptfoo")
    config = yaml.safe_load((out / "promptfooconfig.yaml").read_text())
    script = """
      const [Lists, check] = [require("./lists.cjs"), require("./recall.cjs")];
      const config = JSON.parse(process.argv[1]);
      (async () => {
        for (const options of config.providers) {
          const lists = new Lists(options), scores = [];
          for (const test of config.tests.filter((test) => test.assert)) {
            const { output } = await lists.callApi("", test);
            scores.push(check(output, { ...test, config: test.assert[0].config }).score);
          }
          console.log(JSON.stringify([lists.label, scores.reduce((one, other) => one + other) / scores.length]));
        }
        console.log(JSON.stringify(check("no list", { vars: {}, config: { k: 1, least: 1 } }).pass));
      })();
    """
    done = subprocess.run([node, "-e", script, json.dumps(config)], cwd=out, capture_output=True, text=True, check=True)
    *found, refused = map(json.loads, done.stdout.splitlines())
    assert refused is False and {name for name, _ in found} >= {"bm25", "dense", "fused"}
    for name, mean in found:
        assert [mean] == pytest.approx(consumed.means(consumed.run, name, "R@10"), abs=1e-9), name


def test_parquet_is_written_where_pyarrow_is_and_never_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = EXPORTERS.load("autorag")

    def written(folder: str, found: object, run: Callable[[str], dict[str, object]]) -> set[str]:
        monkeypatch.setattr("raggs.golden.formats.hf.find_spec", lambda name: found)
        monkeypatch.setattr("raggs.golden.formats.hf.runpy.run_path", run)
        return {path.name for path in exporter().write(rich_golden(), tmp_path / folder)} & TABLES

    def broken(_: str) -> dict[str, object]:
        raise ImportError("of another version")

    asked: list[str] = []
    assert written("with", object(), lambda path: asked.append(path) or {"schema": 1}) == TABLES
    assert asked == [str(tmp_path / "with" / "make_parquet.py")]
    assert written("without", None, lambda path: pytest.fail(path)) == written("broken", object(), broken) == set()


def test_the_parquet_that_is_written_is_read_back(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    EXPORTERS.load("autorag")().write(rich_golden(), tmp_path)
    for name in ("qa.jsonl", "corpus.jsonl"):
        (tmp_path / name).unlink()
    assert {query.qid for query in formats.IMPORTERS.load("autorag")().read(tmp_path).queries()} == {
        query.qid for query in rich_golden().queries()
    }
