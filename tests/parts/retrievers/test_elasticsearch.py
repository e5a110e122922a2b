"""What is peculiar to retrieval by Elasticsearch: its modes, its template, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import ValidationError
from support.elastic import fill, vector_of, write

from raggs.base.errors import DataError, NotFoundError
from raggs.parts.elastic import IndexPlace
from raggs.parts.elastic.server import ElasticServer
from raggs.parts.retrievers import Hit
from raggs.parts.retrievers.elasticsearch import ElasticsearchRetriever


def make(context, source, **options):
    return ElasticsearchRetriever(ElasticsearchRetriever.Config(**{**source, **options}), context)


def search(context, source, *queries, **options):
    return list(make(context, source, **options).search(queries))


# --- modes ---


@pytest.mark.parametrize(("mode", "vectors"), [("bm25", False), ("knn", True), ("hybrid", True)])
def test_an_embedder_is_needed_for_vectors_only(mode, vectors):
    config = ElasticsearchRetriever.Config(index="texts", mode=mode)
    assert ElasticsearchRetriever.needs_vectors(config) == vectors


def test_knn_scores_are_cosines_from_0_to_1(context, elastic_texts, ask):
    (hits,) = search(context, elastic_texts, ask("a cat and a wing"), mode="knn")
    near = pytest.approx((1 + 0.5**0.5) / 2)
    assert {hit.doc_id: hit.score for hit in hits} == {"cat": near, "copy": near, "wing": near, "plate": 0.5}


def test_hybrid_is_the_reciprocal_ranks_of_both(context, elastic_texts, ask):
    query = ask("a cat", bm25_text="transition")
    (words,), (vectors,) = (search(context, elastic_texts, query, mode=mode) for mode in ("bm25", "knn"))
    (both,) = search(context, elastic_texts, query, mode="hybrid")
    assert [hit.doc_id for hit in words] == ["plate"]
    assert [hit.doc_id for hit in vectors] == ["cat", "copy", "plate", "wing"]
    assert [hit.doc_id for hit in both] == ["plate", "cat", "copy", "wing"]
    assert both[0].score == pytest.approx(1 / 61 + 1 / 63)
    assert both[1].score == pytest.approx(1 / 61)


def test_the_words_searched_for_are_the_record_s(context, elastic_texts, ask):
    (hits,) = search(context, elastic_texts, ask("a wing", bm25_text="plate"))
    assert [hit.doc_id for hit in hits] == ["plate"]


def test_a_query_without_words_finds_nothing(context, elastic_texts, ask):
    query = ask("a cat", bm25_text="  ")
    assert search(context, elastic_texts, query) == [[]]
    assert len(search(context, elastic_texts, query, mode="hybrid")[0]) == 4


def test_ties_at_the_cut_go_to_the_smaller_id(context, elastic_url, ask):
    """In the index's own order the larger ids come first."""
    ids = [f"d{number:02}" for number in reversed(range(40))]
    source = {"url": elastic_url, "index": fill(elastic_url, {doc_id: {"text": "same words"} for doc_id in ids})}
    known = replace(context, passages=Anything())
    (hits,) = search(known, source, ask("words"), k=3)
    assert [hit.doc_id for hit in hits] == ["d00", "d01", "d02"]
    assert len({hit.score for hit in hits}) == 1


class Anything:
    """A corpus that has every passage."""

    def known(self, doc_ids):
        return set(doc_ids)


# --- fields ---


def test_ids_of_a_field(context, elastic_url, ask):
    documents = {"1": {"key": "wing", "text": "A wing."}, "2": {"key": "cat", "text": "A cat."}}
    source = {"url": elastic_url, "index": fill(elastic_url, documents, key={"type": "keyword"}), "id_field": "key"}
    (hits,) = search(context, source, ask("wing"))
    assert [hit.doc_id for hit in hits] == ["wing"]
    with pytest.raises(DataError, match=r"field 'text' has type text, but id_field needs keyword"):
        search(context, {**source, "id_field": "text"}, ask("wing"))


def test_title_and_text_are_searched_as_one(context, elastic_url, ask):
    documents = {"cat": {"title": "wing", "text": "plate plate"}, "copy": {"title": "", "text": "plate plate wing"}}
    name = fill(elastic_url, documents)
    (hits,) = search(context, {"url": elastic_url, "index": name}, ask("wing"))
    assert [hit.doc_id for hit in hits] == ["cat", "copy"]
    assert hits[0].score == hits[1].score


def test_a_title_analysed_otherwise_is_not_searched(context, elastic_url, ask):
    documents = {"cat": {"title": "wing", "text": "plate"}, "copy": {"text": "wing"}}
    name = fill(elastic_url, documents, title={"type": "text", "analyzer": "whitespace"})
    (hits,) = search(context, {"url": elastic_url, "index": name}, ask("wing"))
    assert [hit.doc_id for hit in hits] == ["copy"]


def test_a_template_takes_the_place_of_the_query(context, elastic_texts, ask):
    template = {
        "bool": {
            "must": [{"match": {"text": {"query": "{query}", "operator": "and"}}}],
            "must_not": [{"terms": {"_id": ["copy"]}}],
        }
    }
    (hits,) = search(context, elastic_texts, ask('the "cat" {sleeps}'), query_template=template, text_field="unused")
    assert [hit.doc_id for hit in hits] == ["cat"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"query_template": {"match": {"text": "cat"}}}, "the template does not contain"),
        ({"query_template": {"match": {"text": "{query}"}}, "mode": "knn"}, "mode knn does not use"),
        ({"k": 9901}, "less than or equal to 9900"),
        ({"mode": "vector"}, "'bm25', 'knn' or 'hybrid'"),
    ],
)
def test_settings_that_cannot_be(options, message):
    with pytest.raises(ValidationError, match=message):
        ElasticsearchRetriever.Config(index="i", **options)


# --- what it refuses ---


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"index": "nowhere"}, NotFoundError, "index 'nowhere' not found"),
        ({"text_field": "txt"}, DataError, r"no field 'txt' — did you mean 'text'\? set text_field"),
        ({"text_field": "vector"}, DataError, "has type dense_vector, but text_field needs"),
        ({"mode": "knn", "vector_field": "vectr"}, DataError, r"did you mean 'vector'\? set vector_field"),
        ({"mode": "hybrid", "vector_field": "text"}, DataError, "has type text, but vector_field needs dense_vector"),
        ({"query_template": {"nope": "{query}"}}, DataError, "rejected the request"),
    ],
)
def test_an_index_or_a_field_that_is_not_there(context, elastic_texts, ask, options, kind, message):
    with pytest.raises(kind, match=message):
        search(context, elastic_texts, ask("a cat"), **options)


def test_it_says_so_before_anything_is_searched(context, elastic_texts):
    with pytest.raises(DataError, match="no field 'txt'"):
        make(context, elastic_texts, text_field="txt").check()


def test_wrong_dimensions(context, elastic_url, ask):
    name = fill(elastic_url, {"cat": {"text": "A cat."}}, vector=vector_of(2))
    with pytest.raises(DataError, match=r"wrong dimensions: vector has 2, embedder topics/1 has 3 .* raggs index"):
        search(context, {"url": elastic_url, "index": name}, ask("a cat"), mode="knn")


def test_queries_of_another_embedder_or_none(context, elastic_texts, ask):
    with pytest.raises(DataError, match=r"embedded by other/2 in 3 dimensions, not by topics/1 in 3"):
        search(context, elastic_texts, ask("a cat", embedder="other/2"), mode="knn")
    with pytest.raises(DataError, match=r"mode knn needs an embedder .* mode: bm25"):
        search(replace(context, embedder="", dims=0), elastic_texts, ask("a cat"), mode="knn")
    without = ask("a cat", embedder="", embedding=())
    assert search(replace(context, embedder="", dims=0), elastic_texts, without)[0]


def test_an_index_of_another_embedder(context, elastic_url, ask):
    name = fill(elastic_url, {"cat": {"text": "A cat.", "vector": [1, 0, 0]}}, vector=vector_of(3))
    retriever = make(context, {"url": elastic_url, "index": name}, mode="knn")
    notes = {"raggs": {"embedder": "other/2"}}
    server = ElasticServer(IndexPlace(url=elastic_url, index=name))
    server.call(lambda client: client.indices.put_mapping(index=name, meta=notes))
    with pytest.raises(DataError, match=r"the index was created with other/2, not topics/1"):
        retriever.check()


def test_hits_that_the_corpus_does_not_have(context, elastic_url, ask):
    name = fill(elastic_url, {"cat": {"text": "A cat."}, "lion": {"text": "A big cat."}})
    with pytest.raises(
        DataError, match=r"the hits of query q1 include lion, which the corpus does not contain .* raggs index"
    ):
        search(context, {"url": elastic_url, "index": name}, ask("cat"))


# --- fingerprint ---


def test_the_state_follows_the_index(context, elastic_url):
    name = fill(elastic_url, {"cat": {"text": "A cat."}})
    source = {"url": elastic_url, "index": name}
    before = make(context, source).causes()["index"]
    assert make(context, source).causes()["index"] == before
    assert set(before) == {name, "documents"}
    write(elastic_url, name, {"cat": {"text": "A cat"}})
    assert make(context, source).causes()["index"] != before


def test_closing_twice(context, elastic_texts, ask):
    retriever = make(context, elastic_texts)
    retriever.close()
    assert all(isinstance(hit, Hit) for hit in next(retriever.search([ask("a cat")])))
    retriever.close()
    retriever.close()


CONTRACT_VARIANTS = [{"mode": "bm25"}, {"mode": "knn"}, {"mode": "hybrid"}]


def contract_case(folder, request):
    return request.getfixturevalue("elastic_texts")


def test_an_alias_over_indices_that_share_ids_is_refused(context, elastic_url, ask):
    texts = {"wing": {"text": "a wing"}, "cat": {"text": "a cat"}}
    first, second = fill(elastic_url, texts), fill(elastic_url, texts)
    server = ElasticServer(IndexPlace(url=elastic_url, index=first))
    for name in (first, second):
        server.call(lambda client, name=name: client.indices.put_alias(index=name, name="both-of-them"))
    source = {"url": elastic_url, "index": "both-of-them"}
    with pytest.raises(
        DataError, match=rf"two documents have the id 'wing'.*is an alias of .*{first}.*use a single index"
    ):
        search(context, source, ask("wing"))


def test_an_index_loaded_in_part_is_refused_before_anything_is_searched(context, elastic_url):
    name = fill(elastic_url, {"wing": {"text": "a wing"}})
    server = ElasticServer(IndexPlace(url=elastic_url, index=name))
    for loading in (True, False):
        meta = {"raggs": {"documents": 2, "loading": loading}}
        server.call(lambda client, meta=meta: client.indices.put_mapping(index=name, meta=meta))
        made = make(context, {"url": elastic_url, "index": name})
        if loading:
            with pytest.raises(DataError, match=r"is incomplete: 1 of 2 documents .* raggs index"):
                made.check()
        else:
            made.check()
