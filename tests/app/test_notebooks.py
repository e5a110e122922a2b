"""`run`, `sweep` and `evaluate` as notebooks use them: in a running loop, from what is in memory, shown as HTML."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from support.sweeping import make_sweep

import raggs
from raggs.base.document import Cell, ReportDocument, Section, Table, fragment
from raggs.base.errors import ConfigError, DataError, PrerequisiteError, UsageError

EXAMPLE = Path(__file__).parents[2] / "examples" / "runs"
EVIL = "<script>alert(1)</script>"


def rows(name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (EXAMPLE / name).read_text(encoding="utf-8").splitlines()]


def settings(folder: Path) -> dict[str, object]:
    return {
        "name": "memory",
        "workspace": folder / "runs",
        "embed": {"embedder": None},
        "retrieve": {"retrievers": [{"type": "bm25", "k": 10}]},
        "judge": {"judge": {"type": "qrels", "path": str(EXAMPLE / "qrels.trec")}},
        "rank": {"top": 5, "max_calls": 20},
    }


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A run of what is in memory, made while a loop runs; and its folder."""
    folder = tmp_path_factory.mktemp("notebook")

    async def cell():
        return raggs.run(settings(folder), corpus=rows("corpus.jsonl"), queries=rows("queries.jsonl"))

    return folder, asyncio.run(cell())


class _Frame:
    """What is used of pandas."""

    def __init__(self, rows: list[list[object]], columns: list[str]) -> None:
        self.rows, self.columns = rows, columns


@pytest.fixture
def pandas(monkeypatch):
    fake = ModuleType("pandas")
    fake.DataFrame = _Frame
    monkeypatch.setitem(sys.modules, "pandas", fake)


def test_a_run_of_what_is_in_memory_runs_again_only_for_other_content(done):
    folder, first = done
    assert set(first.ran) == {"embed", "retrieve", "merge", "judge", "prune", "rank"}
    assert first.manifest.config_file is None
    again = raggs.run(settings(folder), corpus=iter(rows("corpus.jsonl")), queries=rows("queries.jsonl"))
    assert not again.ran
    fewer = [{**row, "text": f"{row['text']} more"} for row in rows("corpus.jsonl")]
    other = raggs.run(settings(folder), corpus=fewer, queries=rows("queries.jsonl"), stop="retrieve", run_id="other")
    same = raggs.run(settings(folder), corpus=fewer, queries=rows("queries.jsonl"), stop="retrieve", run_id="memory")
    assert set(other.ran) == {"embed", "retrieve"}
    assert "retrieve" in same.ran


def test_a_run_is_shown_and_is_a_frame_of_its_judged_passages(done, pandas):
    _, result = done
    raggs.run(settings(done[0]), corpus=rows("corpus.jsonl"), queries=rows("queries.jsonl"))
    assert "<th>stage</th>" in result._repr_html_()
    frame = result.to_pandas()
    assert frame.columns == ["qid", "query", "doc_id", "grade", "rank"]
    assert {row[0] for row in frame.rows} == {str(row["_id"]) for row in rows("queries.jsonl")}
    assert any(row[3] == 5 and row[4] == 1 for row in frame.rows)


def test_an_evaluation_in_a_loop_is_shown_with_names_as_text_and_is_a_frame(pandas):
    async def cell():
        return raggs.evaluate(
            {"q1": {"a": 5, "b": 1}}, {EVIL: lambda q, k: ["a"]}, queries={"q1": "?"}, measures=["mrr"]
        )

    result = asyncio.run(cell())
    shown = result._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    frame = result.to_pandas()
    assert (frame.columns[:3], frame.rows[0][:3]) == (["system", "qid", "mrr"], [EVIL, "q1", 1.0])


def test_a_sweep_from_a_mapping_in_a_loop(tmp_path, pandas, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a sweep of a mapping is written where one works
    project = make_sweep(tmp_path, axes={"mode": ["lexical"], "k": [10]})
    values = raggs.load_sweep(project.config).model_dump(mode="json", exclude_unset=True)

    async def cell():
        return raggs.sweep(values)

    result = asyncio.run(cell())
    shown = result._repr_html_()
    assert shown.index("<strong>Recommended") < shown.index("<table>") < shown.index("<details>")
    assert "<svg" in result.plot().svg
    with pytest.raises(UsageError, match="no plot 'fronts'"):
        result.plot("fronts")
    assert [row[0] for row in result.to_pandas().rows] == [row.name for row in result.report.systems]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(PrerequisiteError, match="pip install pandas"):
        result.to_pandas()


def test_an_evaluation_draws_scores_or_differences_from_the_baseline():
    golden, systems = {"q1": {"a": 5, "b": 1}}, {EVIL: lambda q, k: ["a"], "old": lambda q, k: ["b", "a"]}
    alone = raggs.evaluate(golden, systems, queries={"q1": "?"}, measures=["mrr"])
    against = raggs.evaluate(golden, systems, queries={"q1": "?"}, measures=["mrr"], baseline="old")
    assert alone.plot().title == "mrr of each system" and alone.plot().svg.count("<circle") == 2
    assert against.plot("mrr").title == "mrr: difference from old" and against.plot().svg.count("<circle") == 2
    assert "<script" not in against.plot()._repr_svg_()
    with pytest.raises(UsageError, match="map was not measured"):
        alone.plot("map")


def test_nothing_of_a_document_becomes_markup():
    table = Table((EVIL,), ((Cell(EVIL, mark=EVIL, best=True),),))
    section = Section(EVIL, (EVIL,), table)
    assert "<script" not in fragment(ReportDocument(EVIL, section, (section,), (EVIL,), (EVIL,)))


@pytest.mark.parametrize(
    ("change", "given", "kind", "said"),
    [
        ({"juge": {}}, {}, ConfigError, "settings in memory: unknown key 'juge'"),
        ({}, {"corpus": [3]}, DataError, r"corpus, row 0: 3 \(int\) is not a passage"),
        ({}, {"corpus": [{"id": "d", "text": object()}]}, DataError, "row 0: cannot be written as JSON"),
        ({}, {"corpus": {"d": "x"}, "queries": [{"id": "q"}]}, DataError, "queries:1"),
    ],
)
def test_what_in_memory_cannot_be_right_is_told(tmp_path, change, given, kind, said):
    whole = {"corpus": {"d": "text"}, "queries": {"q": "?"}}
    with pytest.raises(kind, match=said):
        raggs.run({**settings(tmp_path), **change}, **{**whole, **given})
