"""The dense retriever's own errors. The search is tested in tests/indexes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from raggs.errors import DataError
from raggs.retrievers.dense import DenseRetriever


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
    with pytest.raises(DataError, match=r"needs an embedder .* leave dense out"):
        search(replace(context, embedder="", dims=0), ask("a cat", embedder="", embedding=()))


def test_a_large_query_value_in_float64_is_read_as_float32(context, ask):
    (near,) = search(context, ask("a cat", embedding=(0.0, 0.0, 1.0 + 1e-12)))
    assert near[0].score == 1.0


def contract_case(folder, request):
    return {}
