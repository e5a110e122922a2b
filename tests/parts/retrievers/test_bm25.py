"""The BM25 retriever's own options. The index is tested in tests/parts/indexes."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from raggs.parts.retrievers.bm25 import Bm25Retriever


def test_the_words_searched_for_are_the_record_s(context, ask):
    retriever = Bm25Retriever(Bm25Retriever.Config(), context)
    (hits,) = retriever.search([ask("a wing").model_copy(update={"bm25_text": "plate"})])
    assert [hit.doc_id for hit in hits] == ["plate"]


def test_the_index_is_kept_in_the_cache(context, ask):
    list(Bm25Retriever(Bm25Retriever.Config(), context).search([ask("a cat")]))
    assert [path.name[:5] for path in context.cache.at("bm25").folder.iterdir()] == ["bm25-"]


def test_a_language_without_stemmer():
    with pytest.raises(ValidationError, match="no stemmer for 'xx'; known: auto, ar,"):
        Bm25Retriever.Config(language="xx")


@pytest.mark.parametrize("options", [{"k1": -1}, {"b": 1.5}, {"k1": float("nan")}])
def test_parameters_out_of_range(options):
    with pytest.raises(ValidationError):
        Bm25Retriever.Config(**options)


def contract_case(folder, request):
    return {}
