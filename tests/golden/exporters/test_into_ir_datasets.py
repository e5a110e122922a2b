"""ir_datasets loads the export by the module in it, and what it loads gives the numbers of `raggs eval`."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import ir_measures
import pytest
from ir_measures import AP, P, nDCG
from support.snippets import list_of, run_snippet

from raggs import open_golden


@pytest.mark.filterwarnings("ignore")
def test_ir_datasets_gets_the_numbers_of_eval(consumed, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("ir_datasets", reason="ir_datasets is not installed; it brings pandas' kin and lz4")
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))
    out = consumed.export(tmp_path, "ir_datasets")
    before = sorted(out.iterdir())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "golden_demo", raising=False)
    found = run_snippet("ir_datasets")
    golden = open_golden(consumed.run)
    assert {one.query_id: one.text for one in found["questions"]} == {one.qid: one.text for one in golden.queries()}
    passages = {one.doc_id: one for one in found["passages"]}
    assert len(passages) == 60 and passages["p003"].default_text().startswith("delta 3 The delta")
    assert found["dataset"].docs_store().get("p003") == passages["p003"]
    assert sorted(out.iterdir()) == before
    consumed.export(tmp_path / "lists", "trec")
    lists = list_of(tmp_path / "lists" / "golden" / "runs" / "bm25.trec")
    run = [ir_measures.ScoredDoc(qid, doc, score) for qid, hits in lists.items() for doc, score in hits.items()]
    scores = ir_measures.calc_aggregate([nDCG @ 10, P(rel=3) @ 5, AP(rel=3)], found["qrels"], run)
    ours = consumed.means(consumed.run, "bm25", "nDCG@10", "P@5", "AP")
    assert [scores[nDCG @ 10], scores[P(rel=3) @ 5], scores[AP(rel=3)]] == pytest.approx(ours, abs=1e-9)


@pytest.mark.parametrize("name", ['"); import os #', "Été 2024", "../../x", "\n", "class"])
def test_a_name_is_never_code(name: str, golden, tmp_path: Path) -> None:
    from dataclasses import replace

    from raggs.golden.formats.beir import IrDatasetsExporter

    (module,) = [
        path for path in IrDatasetsExporter().write(replace(golden(), name=name), tmp_path) if path.suffix == ".py"
    ]
    assert module.parent == tmp_path and module.stem.isidentifier()
    tree = ast.parse(module.read_text())
    names = [each.value.value for each in tree.body if isinstance(each, ast.Assign) and each.targets[0].id == "NAME"]
    assert len(names) == 1 and re.fullmatch(r"raggs/[a-z0-9_]+", names[0])
    imported = [ast.unparse(each) for each in tree.body if isinstance(each, ast.Import | ast.ImportFrom)]
    assert len(imported) == 6
