"""Other tools read what is exported, and get the numbers of `raggs eval`, where definitions agree."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import ir_measures
import pytest
from ir_measures import AP, RR, P, R, nDCG
from support.project import make_project

from raggs import load_config, open_golden
from raggs import run as run_config
from raggs.app.evaluate import EvalRequest, JudgedFiles, MeasureRequest, evaluate
from raggs.app.export import export_run
from raggs.errors import NotFoundError, UsageError
from raggs.exporters import REGISTRY
from raggs.manifests.opened import open_run
from raggs.progress import Notice

OURS = {"nDCG@10": nDCG @ 10, "P@5": P(rel=3) @ 5, "R@10": R(rel=3) @ 10, "RR": RR(rel=3), "AP": AP(rel=3)}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    project = make_project(tmp_path_factory.mktemp("consumers"), queries=6, corpus=60, rank={"top": 5, "max_calls": 4})
    return run_config(load_config(project.config)).store.folder


def export(run: Path, out: Path, format_: str, **options) -> Path:
    export_run(open_run(run), format_, out, **options)
    return out


def values(golden: Path, run: Path, names=tuple(OURS)) -> dict[str, dict[str, dict[str, float]]]:
    report = evaluate(EvalRequest(JudgedFiles(golden, (str(run),)), MeasureRequest(names))).report
    assert len(report.measures) >= len(names)
    return {
        system: {name: found[measure] for name, measure in zip(names, report.measures, strict=False)}
        for system, found in report.per_query.items()
    }


def test_ir_measures_gets_the_numbers_of_eval(run, tmp_path):
    out = export(run, tmp_path / "out", "trec")
    qrels = list(ir_measures.read_trec_qrels(str(out / "qrels.txt")))
    for system, found in values(run, run).items():
        theirs = list(ir_measures.read_trec_run(str(out / "runs" / f"{system}.trec")))
        for name, measure in OURS.items():
            got = {each.query_id: each.value for each in ir_measures.iter_calc([measure], qrels, theirs)}
            ours = {qid: value for qid, value in found[name].items() if value is not None}
            assert {qid: got[qid] for qid in ours} == pytest.approx(ours, abs=1e-9), (system, name)


def test_pytrec_eval_gets_the_numbers_of_eval(run, tmp_path):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="comes with ir-measures on most platforms only")
    out = export(run, tmp_path / "out", "trec")
    with (out / "qrels.txt").open() as file:
        qrels = pytrec_eval.parse_qrel(file)
    graded = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
    binary = pytrec_eval.RelevanceEvaluator(qrels, {"map", "P.5", "recip_rank"}, relevance_level=3)
    theirs = {"nDCG@10": "ndcg_cut_10", "P@5": "P_5", "RR": "recip_rank", "AP": "map"}
    for system, found in values(run, run).items():
        with (out / "runs" / f"{system}.trec").open() as file:
            lists = pytrec_eval.parse_run(file)
        got = {qid: {**one, **binary.evaluate(lists)[qid]} for qid, one in graded.evaluate(lists).items()}
        for name, their in theirs.items():
            ours = {qid: value for qid, value in found[name].items() if value is not None}
            assert {qid: got[qid][their] for qid in ours} == pytest.approx(ours, abs=1e-9), (system, name)


@pytest.mark.filterwarnings("ignore")  # of its compiler
def test_ranx_gets_the_numbers_of_eval(run, tmp_path):
    ranx = pytest.importorskip("ranx", reason="ranx is not installed; its compiler and tables are 480 MB")
    out = export(run, tmp_path / "out", "trec")
    qrels = ranx.Qrels.from_file(str(out / "qrels.txt"), kind="trec")
    files = {"run": out / "run.trec", **{path.stem: path for path in (out / "runs").glob("*.trec")}}
    names = {"nDCG@10": "ndcg@10", "P@5": "precision@5-l3", "RR": "mrr-l3", "AP": "map-l3"}
    for system, path in files.items():
        lists = ranx.Run.from_file(str(path), kind="trec")
        assert {qid: len(found) for qid, found in lists.to_dict().items()} == Counter(
            line.split()[0] for line in path.read_text().splitlines()
        )
        settled = ranx.Run({qid: as_trec_eval_sorts(found) for qid, found in lists.to_dict().items()})
        ours = values(out, path)[system]
        for name, their in names.items():
            got = ranx.evaluate(qrels, settled, their, make_comparable=True)
            known = [value for value in ours[name].values() if value is not None]
            assert got == pytest.approx(sum(known) / len(known), abs=1e-9), (system, name)


def as_trec_eval_sorts(found: dict[str, float]) -> dict[str, float]:
    """Scores without ties: ranx has no rule for them."""
    order = sorted(found, key=lambda doc: (found[doc], doc))
    return {doc: float(place) for place, doc in enumerate(order, start=1)}


@pytest.mark.filterwarnings("ignore")  # of its files left open
def test_beir_loads_the_folder(run, tmp_path):
    reason = "beir is not installed; with its models it is some GB"
    loader = pytest.importorskip("beir.datasets.data_loader", reason=reason).GenericDataLoader
    corpus, queries, qrels = loader(data_folder=str(export(run, tmp_path / "out", "beir"))).load(split="test")
    golden = open_golden(run)
    store = {row["_id"]: row for row in map(json.loads, (run.parent.parent / "corpus.jsonl").read_text().splitlines())}
    assert corpus == {doc_id: {"title": row["title"], "text": row["text"]} for doc_id, row in store.items()}
    assert queries == {query.qid: query.text for query in golden.queries()}
    assert qrels == {
        query.qid: {each.doc_id: each.grade - 1 for each in query.grades if each.grade is not None}
        for query in golden.by_query("grades")
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


@pytest.mark.parametrize("form", ["gain", "raw"])
@pytest.mark.parametrize("format_", sorted(REGISTRY))
def test_eval_takes_the_folder_and_gets_the_numbers_of_the_run(run, tmp_path, format_, form):
    out = export(run, tmp_path / "out", format_, grades=form)
    names = (*OURS, "n_recall4@10", "harm@10")
    assert values(out, run, names) == values(run, run, names)


def test_eval_takes_the_exported_runs(run, tmp_path):
    out = export(run, tmp_path / "out", "trec")
    assert values(out, out) == values(run, run)
    assert values(out / "qrels.txt", out) == values(run, run)


def test_yes_and_no(run, tmp_path):
    out = export(run, tmp_path / "out", "trec", grades="binary", binary_at=3)
    labels = {line.split()[3] for line in (out / "qrels.txt").read_text().splitlines()}
    assert labels == {"0", "1"}
    assert values(out, out, ("P@5",)) == values_at(run, 3)
    with pytest.raises(UsageError, match=r"from grade 1 on divides nothing.*--binary-at 2 to 5"):
        export(run, tmp_path / "never", "trec", grades="binary", binary_at=1)
    assert not (tmp_path / "never").exists()


def values_at(run: Path, relevant: int):
    from raggs.app.evaluate import ScaleRequest

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

    for format_ in REGISTRY:
        export(run, tmp_path / format_, format_, hear=hear)
    assert told == ["stage prune has not finished: grades are exported without an order"] * len(list(REGISTRY))
    assert (tmp_path / "trec" / "qrels.txt").stat().st_size and not (tmp_path / "trec" / "run.trec").stat().st_size
    monkeypatch.setattr(REGISTRY.load("jsonl"), "NEEDS_ORDER", True)
    with pytest.raises(NotFoundError, match=r"stage prune has not finished.*formats that need grades only: .*trec"):
        export(run, tmp_path / "none", "jsonl")
    assert not (tmp_path / "none").exists()


def test_the_whole_corpus_where_it_is_at_hand(run, tmp_path):
    from raggs.corpora.jsonl import JsonlConfig, JsonlCorpus

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
    for path in (run.parent / ".cache" / "corpora").iterdir():
        path.unlink()
    told: list[object] = []
    export(run, tmp_path / "out", "beir", hear=told.append)
    (_, note) = told
    assert isinstance(note, Notice) and "corpus.jsonl holds the pooled passages only" in note.message
    assert json.loads((tmp_path / "out" / "meta.json").read_text())["corpus"] == "pool"
