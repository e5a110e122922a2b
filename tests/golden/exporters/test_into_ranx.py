"""ranx loads the export and gets the numbers of `raggs eval`; it has no rule for ties, so lists come without."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.snippets import run_snippet

NAMES = ("nDCG@10", "P@5", "RR", "AP")
THEIRS = ("ndcg@10", "precision@5-l3", "mrr-l3", "map-l3")


@pytest.mark.filterwarnings("ignore")  # of its compiler
def test_ranx_gets_the_numbers_of_eval(consumed, tmp_path: Path, monkeypatch) -> None:
    ranx = pytest.importorskip("ranx", reason="ranx is not installed; its compiler and tables are 480 MB")
    out = consumed.export(tmp_path, "ranx")
    monkeypatch.chdir(tmp_path)
    scores = run_snippet("ranx")["scores"]
    assert [scores[name] for name in THEIRS] == pytest.approx(
        consumed.means(consumed.run, out / "run.json", *NAMES), abs=1e-9
    )
    qrels = ranx.Qrels.from_file(str(out / "qrels.json"))
    for path in sorted((out / "runs").glob("*.json")):
        found = ranx.Run.from_file(str(path)).to_dict()
        settled = ranx.Run({qid: _settled(hits) for qid, hits in found.items()})
        theirs = ranx.evaluate(qrels, settled, list(THEIRS), make_comparable=True)
        ours = consumed.means(consumed.run, path.stem, *NAMES)
        assert [theirs[name] for name in THEIRS] == pytest.approx(ours, abs=1e-9), path.stem


def _settled(found: dict[str, float]) -> dict[str, float]:
    """Scores without ties, in the order in which trec_eval sorts."""
    order = sorted(found, key=lambda doc: (found[doc], doc))
    return {doc: float(place) for place, doc in enumerate(order, start=1)}


def test_the_files_are_what_raggs_reads_as_systems_again(consumed, tmp_path: Path) -> None:
    out = consumed.export(tmp_path, "ranx")
    systems = {path.stem for path in (out / "runs").glob("*.json")}
    assert {"bm25", "dense", "fused"} <= systems
    assert json.loads((out / "runs" / "bm25.json").read_text())["q00"]
    for name in systems:
        assert consumed.means(out, out / "runs" / f"{name}.json", *NAMES) == consumed.means(consumed.run, name, *NAMES)
