"""The dense retriever's own errors and causes. The searches are tested in tests/parts/indexes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raggs.base.errors import DataError, PrerequisiteError
from raggs.base.registry import installed
from raggs.base.settings import causes_of
from raggs.parts.retrievers.dense import DenseRetriever
from raggs.stages.retrieve import RetrieveConfig


def search(context, query):
    return list(DenseRetriever(DenseRetriever.Config(), context).search([query]))


def test_scores_are_cosines(context, ask):
    (hits,) = search(context, ask("a cat and a wing"))
    assert {hit.doc_id: hit.score for hit in hits} == pytest.approx(
        {"cat": 0.5**0.5, "copy": 0.5**0.5, "wing": 0.5**0.5, "plate": 0}
    )


def test_a_vector_of_another_length(context, ask):
    with pytest.raises(DataError, match=r"the vector of query q1 has 2 values, not 3 .* embed stage"):
        search(context, ask("a cat", embedding=(1.0, 0.0)))


def test_a_vector_of_another_embedder(context, ask):
    with pytest.raises(DataError, match="embedded by other/2, not by topics/1"):
        search(context, ask("a cat", embedder="other/2"))
    with pytest.raises(DataError, match="embedded by no embedder"):
        search(context, ask("a cat", embedder="", embedding=()))


def test_no_embedder_at_all(context, ask):
    with pytest.raises(DataError, match=r"needs an embedder .* remove dense"):
        search(replace(context, embedder="", dims=0), ask("a cat", embedder="", embedding=()))


def test_a_large_query_value_in_float64_is_read_as_float32(context, ask):
    (near,) = search(context, ask("a cat", embedding=(0.0, 0.0, 1.0 + 1e-12)))
    assert near[0].score == 1.0


CONTRACT_VARIANTS = [{}, {"index": {"type": "hnsw"}}, {"index": {"type": "ivf"}}, {"scoring": {"dtype": "bf16"}}]


def contract_case(folder, request):
    return {}


def test_what_it_depended_on_before_there_were_indexes_is_all_that_it_depends_on(context):
    """Runs from before need not run again."""
    known = {"type": "dense", "name": None, "k": 50}
    assert causes_of(RetrieveConfig()).popitem()[1][1] == known
    causes = DenseRetriever(DenseRetriever.Config(), context).causes()
    assert causes == {**known, "version": 1, "packages": {"numpy": installed("numpy")}}
    said = DenseRetriever.Config(index={"type": "flat"}, scoring={"dtype": "f32", "high_precision": True})
    assert DenseRetriever(said, context).causes() == causes


def test_an_index_and_its_library_are_causes(context):
    def causes(**index):
        return DenseRetriever(DenseRetriever.Config(index=index), context).causes()["index"]

    found = causes(type="hnsw")
    assert found["packages"] == {"faiss-cpu": installed("faiss-cpu")}
    assert (found["m"], found["ef"], found["quantize"]) == (16, 64, None)
    assert causes(type="hnsw", ef=80) != found
    scored = DenseRetriever(DenseRetriever.Config(scoring={"dtype": "bf16"}), context).causes()
    assert scored["scoring"] == {"dtype": "bf16", "high_precision": True} and "index" not in scored


@pytest.mark.parametrize("index", [{"type": "hnsw"}, {"type": "hnsw", "quantize": "int8"}, {"type": "ivf"}])
def test_an_index_gives_what_the_exact_search_gives(context, ask, index):
    query = ask("a cat and a wing")
    retriever = DenseRetriever(DenseRetriever.Config(index=index), context)
    retriever.check()
    assert list(retriever.search([query])) == search(context, query)
    assert retriever.facts.kind.startswith(index["type"]) and retriever.facts.rows == 4


def test_scores_of_less_than_32_bits(context, ask):
    def scores(**scoring):
        retriever = DenseRetriever(DenseRetriever.Config(scoring=scoring), context)
        return [hit.score for hit in next(retriever.search([ask("a cat and a wing")]))][:3]

    half = 0.5**0.5
    assert scores(dtype="f32")[0] == pytest.approx(half, abs=1e-7)
    assert scores(dtype="bf16") == [0.70703125] * 3, "the query's half root, rounded; the passages have ones"
    assert scores(dtype="f16", high_precision=False) == [0.70703125] * 3


def test_what_gives_its_own_scores_cannot_round_the_vectors(context):
    with pytest.raises(ValueError, match="does not support dtype bf16; set reorder"):
        DenseRetriever.Config(index={"type": "hnsw", "reorder": False}, scoring={"dtype": "bf16"})
    DenseRetriever.Config(index={"type": "hnsw", "reorder": False})


def test_an_index_that_does_not_exist():
    with pytest.raises(ValueError, match="unknown type 'hsnw'"):
        DenseRetriever.Config(index={"type": "hsnw"})


def test_an_index_that_cannot_be_is_told_before_anything_is_embedded(context, monkeypatch):
    retriever = DenseRetriever(DenseRetriever.Config(index={"type": "hnsw"}), context)
    monkeypatch.setattr("raggs.parts.indexes.vectors.available", lambda: 10)
    with pytest.raises(PrerequisiteError, match="building index hnsw-f32 of 4 vectors with 3 dimensions"):
        retriever.check()
    DenseRetriever(DenseRetriever.Config(index={"type": "hnsw"}), replace(context, embedder="")).check()


def test_an_altered_index_is_a_finding(context, ask):
    config = DenseRetriever.Config(index={"type": "hnsw"})
    list(DenseRetriever(config, context).search([ask("a cat")]))
    assert list(DenseRetriever.index_faults(config, context.store, context.cache)) == []
    (file,) = context.cache.at("vectors").folder.glob("*/hnsw-*/index")
    file.write_bytes(file.read_bytes()[:-1])
    assert list(DenseRetriever.index_faults(config, context.store, context.cache)) == [
        (file.parent, "index does not match its recorded checksum")
    ]
