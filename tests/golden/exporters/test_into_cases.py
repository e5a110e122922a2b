"""Tools with an entry a question load the export with their own loaders, each where it is installed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.snippets import list_of, run_snippet

from raggs import open_golden
from raggs.app.export import import_set
from raggs.golden.base import GoldenQuery

pytestmark = pytest.mark.filterwarnings("ignore")  # of theirs


@pytest.fixture
def out(consumed, tmp_path: Path, monkeypatch, request) -> Path:
    """The export for the tool that a test names."""
    monkeypatch.chdir(tmp_path)
    return consumed.export(tmp_path, request.node.name.rpartition("_")[2])


def counting(run: Path) -> dict[str, set[str]]:
    """By question, the passages of grade 4 and 5."""
    return {query.text: ids for query, ids in ((one.query, _ids(one)) for one in open_golden(run).by_query()) if query}


def _ids(query: GoldenQuery) -> set[str]:
    return {graded.doc_id for graded in query.grades if (graded.grade or 0) >= 4}


def test_the_samples_are_read_by_ragas(consumed, out: Path) -> None:
    pytest.importorskip("ragas", reason="ragas is not installed; with what it needs it is 700 MB")
    from ragas.metrics import IDBasedContextRecall

    run = list_of(out / "runs" / "bm25.trec")
    qids = {query.text: query.qid for query in open_golden(consumed.run).queries()}
    search = {text: list(run.get(qid, ())) for text, qid in qids.items()}.__getitem__
    dataset = run_snippet("ragas", search=search)["dataset"]
    assert {sample.user_input: set(sample.reference_context_ids) for sample in dataset} == counting(consumed.run)
    recall = [asyncio.run(IDBasedContextRecall().single_turn_ascore(sample)) for sample in dataset]
    (ours,) = consumed.means(consumed.run, "bm25", "R@1000")
    assert sum(recall) / len(recall) == pytest.approx(ours, abs=1e-9)


def test_the_goldens_are_read_by_deepeval(consumed, out: Path) -> None:
    pytest.importorskip("deepeval", reason="deepeval is not installed; with what it needs it is 300 MB")
    goldens = run_snippet("deepeval")["dataset"].goldens
    found = {golden.input: set(golden.additional_metadata["context_ids"]) for golden in goldens}
    assert found == counting(consumed.run)
    assert all(len(golden.context) == len(golden.additional_metadata["context_ids"]) for golden in goldens)


def test_the_examples_are_taken_by_langsmith(consumed, out: Path) -> None:
    langsmith = pytest.importorskip("langsmith", reason="langsmith is not installed")

    class Client:
        """Checks as the real one does before it sends."""

        def create_examples(self, *, dataset_name: str, examples: list) -> None:
            self.taken = [langsmith.schemas.ExampleCreate(**example) for example in examples]

    client = Client()
    run_snippet("langsmith", client=client)
    assert {one.inputs["question"]: set(one.outputs["context_ids"]) for one in client.taken} == counting(consumed.run)


def test_the_parquet_of_autorag(consumed, out: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is 150 MB")
    pytest.importorskip("pandas", reason="pandas is not installed")
    found = run_snippet("autorag")
    qa, corpus = found["qa"], found["corpus"]
    wanted = {doc_id for groups in qa["retrieval_gt"] for group in groups for doc_id in group}
    assert {
        text: {doc for group in groups for doc in group} for text, groups in qa[["query", "retrieval_gt"]].values
    } == (counting(consumed.run))
    assert wanted <= {*corpus["doc_id"]} and all(one["last_modified_datetime"] for one in corpus["metadata"])
    for name in ("qa.jsonl", "corpus.jsonl", "meta.json"):
        (out / name).unlink()
    done = import_set(out, "autorag", tmp_path / "back")
    counts = {each.part: each.count for each in done.through}
    assert (counts["grades"], counts["questions"]) == (sum(map(len, counting(consumed.run).values())), len(qa))
