"""What is exported gives the numbers of the run, in `raggs eval` and in the readers of others."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import ir_measures
import pytest
from support.project import make_project

from raggs import load_config, open_golden
from raggs import run as run_config
from raggs.app.eval_request import EvalRequest, JudgedFiles, MeasureRequest
from raggs.app.evaluate import evaluate
from raggs.app.export import export_run
from raggs.base.errors import NotFoundError, UsageError
from raggs.base.types import Notice
from raggs.golden.formats import EXPORTERS
from raggs.runs.manifests.open_run import open_run

OURS = ("nDCG@10", "P@5", "R@10", "RR", "AP")


@pytest.fixture(scope="module")
def run(consumed) -> Path:
    return consumed.run


def export(run: Path, out: Path, format_: str, **options) -> Path:
    export_run(open_run(run), format_, out, **options)
    return out


def values(golden: Path, run: Path, names=OURS) -> dict[str, dict[str, dict[str, float]]]:
    report = evaluate(EvalRequest(JudgedFiles(golden, (str(run),)), MeasureRequest(names))).report
    assert len(report.measures) >= len(names)
    return {
        system: {name: found[measure] for name, measure in zip(names, report.measures, strict=False)}
        for system, found in report.per_query.items()
    }


def test_the_beir_folder_reads_as_its_toolkit_reads_it(run, tmp_path):
    out = export(run, tmp_path / "out", "beir")
    corpus = {row["_id"]: row for row in map(json.loads, (out / "corpus.jsonl").read_text().splitlines())}
    queries = {row["_id"]: row["text"] for row in map(json.loads, (out / "queries.jsonl").read_text().splitlines())}
    with (out / "qrels" / "test.tsv").open(newline="") as file:
        _, *rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_MINIMAL)
    qrels: dict[str, dict[str, int]] = {}
    for qid, doc_id, score in rows:
        assert qid in queries and doc_id in corpus
        qrels.setdefault(qid, {})[doc_id] = int(score)
    assert {score for found in qrels.values() for score in found.values()} <= set(range(5))
    assert {0, 4} <= {score for found in qrels.values() for score in found.values()}
    theirs = [ir_measures.Qrel(qid, doc, score) for qid, found in qrels.items() for doc, score in found.items()]
    trec = ir_measures.read_trec_qrels(str(export(run, tmp_path / "trec", "trec") / "qrels.txt"))
    assert set(theirs) == set(trec)


@pytest.mark.nightly(keep=6)
@pytest.mark.parametrize("form", ["gain", "raw"])
@pytest.mark.parametrize("format_", sorted(each for each in EXPORTERS if not EXPORTERS.load(each).TRAINING))
def test_eval_takes_the_folder_and_gets_the_numbers_of_the_run(run, tmp_path, format_, form):
    out = export(run, tmp_path / "out", format_, grades=form)
    names = (*OURS, "n_recall4@10", "harm@10")
    assert values(out, run, names) == values(run, run, names)


def test_lines_hold_what_is_known_of_doubt_and_of_near_duplicates(run, tmp_path):
    out = export(run, tmp_path / "out", "jsonl")
    found, wanted = open_golden(out).judgments(), open_golden(run).judgments()
    assert found.facets == wanted.facets and found.digest == wanted.digest
    assert found.doubt.samples == wanted.doubt.samples
    assert found.doubt.sigma.tolist() == wanted.doubt.sigma.tolist() and found.doubt.sigma.any()
    assert values(out, run, ("ra_nwg_novel@5",)) == values(run, run, ("ra_nwg_novel@5",))


def test_eval_takes_the_exported_runs(run, tmp_path):
    wanted = values(run, run)
    for name in EXPORTERS:
        if "lists" in (EXPORTERS.load(name).HOLDS or ()):
            out = export(run, tmp_path / name, name)
            assert values(out, out) == wanted, name
    assert values(tmp_path / "trec" / "qrels.txt", tmp_path / "trec") == wanted


def test_yes_and_no(run, tmp_path):
    out = export(run, tmp_path / "out", "trec", grades="binary", binary_at=3)
    labels = {line.split()[3] for line in (out / "qrels.txt").read_text().splitlines()}
    assert labels == {"0", "1"}
    assert values(out, out, ("P@5",)) == values_at(run, 3)
    with pytest.raises(UsageError, match=r"threshold of grade 1 does not separate any grades.*--binary-at to 2..5"):
        export(run, tmp_path / "never", "trec", grades="binary", binary_at=1)
    assert not (tmp_path / "never").exists()


def values_at(run: Path, relevant: int):
    from raggs.app.eval_request import ScaleRequest

    asked = EvalRequest(JudgedFiles(run, (str(run),)), MeasureRequest(("P@5",)), ScaleRequest(relevant=relevant))
    report = evaluate(asked).report
    return {system: {"P@5": found[report.measures[0]]} for system, found in report.per_query.items()}


def test_grades_without_a_ranking(tmp_path, monkeypatch):
    project = make_project(tmp_path, queries=2, corpus=20)
    run = run_config(load_config(project.config), stop="judge").store.folder
    told: list[str] = []

    def hear(news: object) -> None:
        assert isinstance(news, Notice)
        told.append(news.message)

    for format_ in EXPORTERS:
        export(run, tmp_path / format_, format_, hear=hear)
    assert told == ["stage prune has not finished: grades are exported without an order"] * len(list(EXPORTERS))
    assert (tmp_path / "trec" / "qrels.txt").stat().st_size and not (tmp_path / "trec" / "run.trec").stat().st_size
    monkeypatch.setattr(EXPORTERS.load("jsonl"), "NEEDS_ORDER", True)
    with pytest.raises(NotFoundError, match=r"stage prune has not finished.*formats that need no ranking: .*trec"):
        export(run, tmp_path / "none", "jsonl")
    assert not (tmp_path / "none").exists()


def test_the_whole_corpus_where_it_is_at_hand(run, tmp_path):
    from raggs.parts.corpora.jsonl import JsonlConfig, JsonlCorpus

    told: list[object] = []
    whole = export(run, tmp_path / "whole", "beir", hear=told.append) / "corpus.jsonl"
    source = JsonlCorpus(JsonlConfig(path=Path(open_run(run).manifest.config["corpus"]["path"])))
    assert list(JsonlCorpus(JsonlConfig(path=whole)).passages()) == list(source.passages())
    pool = export(run, tmp_path / "pool", "beir", corpus="pool", hear=told.append) / "corpus.jsonl"
    assert 0 < len(pool.read_bytes().splitlines()) < len(whole.read_bytes().splitlines())
    assert told == []


def test_the_pool_where_the_corpus_is_gone(tmp_path):
    project = make_project(tmp_path, queries=2, corpus=40)
    run = run_config(load_config(project.config), stop="judge").store.folder
    shutil.rmtree(run.parent / ".cache" / "corpora")
    told: list[object] = []
    export(run, tmp_path / "out", "beir", hear=told.append)
    (_, note) = told
    assert isinstance(note, Notice) and "corpus.jsonl contains only the pooled passages" in note.message
    assert json.loads((tmp_path / "out" / "meta.json").read_text())["corpus"] == "pool"
