"""What is read off an index: fields, state, passages. On a real wire."""

from __future__ import annotations

import pytest
from support.elastic import fill, fresh_name, scripted, write

from raggs.base.artifacts import Span
from raggs.base.errors import DataError, NotFoundError, ProviderError
from raggs.parts.elastic import IndexPlace
from raggs.parts.elastic.index import TEXT_TYPES, VECTORS, ElasticIndex
from raggs.parts.elastic.passages import IndexPassages, pick
from raggs.parts.elastic.server import ElasticServer

DOCUMENTS = {
    "a": {"title": "One", "text": " First text. ", "metadata": {"page": 3}},
    "b": {"text": "Second text."},
    "c": {"title": "Title only", "text": "", "metadata": "a word"},
    "d": {"title": "  "},
}


def place(url: str, index: str, **options) -> IndexPlace:
    return IndexPlace(url=url, index=index, **options)


def opened(url: str, index: str, **options) -> IndexPassages:
    return IndexPassages(ElasticIndex(place(url, index, **options)))


@pytest.fixture(scope="module")
def name(elastic_url):
    return fill(elastic_url, DOCUMENTS)


# --- fields ---


def test_a_field_that_is_not_there_is_told_with_the_nearest(elastic_url, name):
    index = ElasticIndex(place(elastic_url, name))
    assert index.need("text_field", "text", TEXT_TYPES)["type"] == "text"
    with pytest.raises(DataError, match=r"no field 'txt' — did you mean 'text'\? set text_field; known: metadata, te"):
        index.need("text_field", "txt", TEXT_TYPES)
    with pytest.raises(DataError, match=r"field 'text' has type text, but vector_field needs dense_vector"):
        index.need("vector_field", "text", VECTORS)


def test_inner_fields_are_known_by_their_dotted_names(elastic_url):
    inner = {"properties": {"text": {"type": "text", "fields": {"raw": {"type": "keyword"}}}}}
    name = fill(elastic_url, {"x": {"body": {"text": "Nested."}}}, body=inner)
    index = ElasticIndex(place(elastic_url, name, text_field="body.text"))
    assert index.need("id_field", "body.text.raw", ("keyword",))
    assert IndexPassages(index).get(["x"])["x"].text == "Nested."


def test_a_missing_index(elastic_url):
    gone = opened(elastic_url, fresh_name())
    for act in (lambda: gone.content_hash, lambda: gone.get(["a"]), lambda: list(gone.scan())):
        with pytest.raises(NotFoundError, match="index 'test-"):
            act()


# --- state ---


def test_any_write_changes_the_state_and_nothing_else_does(elastic_url):
    name = fill(elastic_url, DOCUMENTS)
    hashes = [opened(elastic_url, name).content_hash]
    assert opened(elastic_url, name).content_hash == hashes[0]
    for change in (
        {"b": {"text": "Another text."}},
        {"b": {"text": "Another text."}},
        {"e": {"text": "One more."}},
        {"e": None},
    ):
        write(elastic_url, name, change)
        hashes.append(opened(elastic_url, name).content_hash)
    assert len(set(hashes)) == 5
    assert len(opened(elastic_url, name)) == 4


def test_an_index_of_the_same_name_and_documents_is_another(elastic_url):
    documents = {"a": {"text": "One."}, "b": {"text": "Two."}}
    name = fill(elastic_url, documents)
    index = ElasticIndex(place(elastic_url, name))
    before = index.state
    index.server.call(lambda client: client.indices.delete(index=name))
    index.server.call(lambda client: client.indices.create(index=name))
    write(elastic_url, name, documents)
    after = ElasticIndex(place(elastic_url, name)).state
    assert before[name]["changes"] == after[name]["changes"]
    assert before[name]["uuid"] != after[name]["uuid"]


def test_an_alias_stands_for_its_index(elastic_url, name):
    alias = fresh_name()
    ElasticIndex(place(elastic_url, name)).server.call(lambda client: client.indices.put_alias(index=name, name=alias))
    assert opened(elastic_url, alias).content_hash == opened(elastic_url, name).content_hash
    assert opened(elastic_url, alias).get(["b"]) == opened(elastic_url, name).get(["b"])


# --- passages ---


def test_a_span_is_an_object_of_three_or_none_and_a_wrong_one_is_named(elastic_url):
    where = {"source": "a.md", "start": 2, "end": 9}
    wrong = {"text": "x", "span": {**where, "end": 1}}
    name = fill(elastic_url, {"a": {"text": "x", "span": where}, "b": {"text": "x", "span": {"page": 2}}, "c": wrong})
    found = opened(elastic_url, name).get(["a", "b"])
    assert (found["a"].span, found["b"].span) == (Span(**where), None)
    with pytest.raises(DataError, match=r"document 'c' is not a valid passage \(.*a span from 2 to 1 is empty"):
        opened(elastic_url, name).get(["c"])


def test_passages_by_id_in_the_order_asked_for(elastic_url, name):
    found = opened(elastic_url, name, batch=1).get(["c", "a", "b", "a"])
    assert list(found) == ["c", "a", "b"]
    assert (found["a"].title, found["a"].text, found["a"].metadata) == ("One", "First text.", {"page": 3})
    assert (found["b"].title, found["b"].metadata) == ("", {})
    assert (found["c"].title, found["c"].text, found["c"].metadata) == ("", "Title only", {"metadata": "a word"})


def test_what_is_known(elastic_url, name):
    assert opened(elastic_url, name).known(["a", "zz", "d"]) == {"a", "d"}
    assert opened(elastic_url, name).known([]) == set()
    assert opened(elastic_url, name).get([]) == {}


def test_an_unknown_id_and_a_document_without_text(elastic_url, name):
    with pytest.raises(NotFoundError, match=r"no passage 'zz'"):
        opened(elastic_url, name).get(["a", "zz"])
    with pytest.raises(DataError, match=r"document 'd' has neither title nor text"):
        opened(elastic_url, name).get(["d"])


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 500])
def test_all_documents_by_a_point_in_time(elastic_url, name, batch):
    found = dict(opened(elastic_url, name, batch=batch).scan())
    assert sorted(found) == ["a", "b", "c", "d"]
    assert found["d"] is None
    assert {doc_id: passage for doc_id, passage in found.items() if passage} == opened(elastic_url, name).get("abc")


def test_a_scan_does_not_see_what_is_written_meanwhile(elastic_url):
    name = fill(elastic_url, DOCUMENTS)
    scan = opened(elastic_url, name, batch=1).scan()
    first = next(scan)[0]
    write(elastic_url, name, {"z": {"text": "Late."}, ("b" if first == "a" else "a"): None})
    assert sorted([first, *(doc_id for doc_id, _ in scan)]) == ["a", "b", "c", "d"]


def test_a_sample(elastic_url, name):
    assert sorted(opened(elastic_url, name).sample(9)) == ["One\nFirst text.", "Second text.", "Title only"]
    assert len(opened(elastic_url, name).sample(1)) == 1


def test_ids_of_a_field(elastic_url):
    documents = {"1": {"key": "x", "text": "X."}, "2": {"key": "y", "text": "Y."}}
    name = fill(elastic_url, documents, key={"type": "keyword"})
    assert opened(elastic_url, name, id_field="key").get(["y"])["y"].text == "Y."
    assert [doc_id for doc_id, _ in opened(elastic_url, name, id_field="key").scan()] == ["x", "y"]
    write(elastic_url, name, {"3": {"key": "y", "text": "Z."}})
    with pytest.raises(DataError, match=r"two documents have the id 'y'"):
        opened(elastic_url, name, id_field="key").get(["y"])
    write(elastic_url, name, {"4": {"text": "Z."}})
    with pytest.raises(DataError, match=r"document '4' has 0 values of 'key' instead of one"):
        list(opened(elastic_url, name, id_field="key").scan())
    with pytest.raises(DataError, match=r"field 'text' has type text, but id_field needs keyword"):
        opened(elastic_url, name, id_field="text").get(["y"])


@pytest.mark.parametrize(
    ("document", "message"),
    [({"text": {"no": "text"}}, "dict instead of a string"), ({"text": ["a", "b"]}, "list instead")],
)
def test_a_document_that_is_no_passage(elastic_url, document, message):
    name = fill(elastic_url, {"x": document}, text={"type": "object", "enabled": False})
    passages = IndexPassages(ElasticIndex(place(elastic_url, name)))
    with pytest.raises(DataError, match=rf"document 'x' is not a valid passage \({message}"):
        passages.get(["x"])


def test_an_id_with_white_space_is_no_passage(elastic_url):
    name = fill(elastic_url, {"a b": {"text": "Text."}})
    with pytest.raises(DataError, match="document id 'a b' contains white space"):
        list(opened(elastic_url, name).scan())


def test_values_at_dotted_names():
    assert pick({"a": {"b.c": 1}}, "a.b.c") == 1
    assert pick({"a.b": 1}, "a.b") == 1
    assert pick({"a": 1}, "a.b") is None
    assert pick({}, "a") is None


# --- searches ---


def test_many_searches_come_back_in_order(elastic_url, name):
    index = ElasticIndex(place(elastic_url, name))
    wanted = ["ab"[number % 2] for number in range(150)]
    bodies = [{"query": {"terms": {"_id": [doc_id]}}, "_source": False} for doc_id in wanted]
    assert [index.doc_id(hit) for (hit,) in index.search(bodies)] == wanted


def test_one_search_that_fails_fails_the_request(elastic_url, name):
    bodies = [{"query": {"match_all": {}}}, {"query": {"mtch": {"text": "a"}}}]
    with pytest.raises(DataError, match=r"the server rejected the request \(.*mtch"):
        list(ElasticIndex(place(elastic_url, name)).search(bodies))


@pytest.mark.parametrize(
    "answer", [{"timed_out": True, "hits": {"hits": []}}, {"_shards": {"failed": 1}, "hits": {"hits": []}}]
)
def test_half_a_result_is_none(answer):
    with scripted((200, {"responses": [answer]})) as (url, _), pytest.raises(ProviderError, match="did not answer"):
        list(ElasticIndex(place(url, "i", retries=0)).search([{}]))


def test_a_search_that_was_turned_away_is_tried_again():
    busy = {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "queue"}}
    good = {"status": 200, "hits": {"hits": [{"_id": "a"}]}}
    with scripted((200, {"responses": [good, busy]}), (200, {"responses": [good, good]})) as (url, script):
        index = ElasticIndex(place(url, "i"), ElasticServer(place(url, "i"), pauses=(0.001, 0.001)))
        assert list(index.search([{}, {}])) == [[{"_id": "a"}]] * 2
    assert len(script.seen) == 2


def test_half_of_a_surrogate_pair_in_a_document_becomes_a_character(elastic_url, name):
    hit = {"_id": "d1", "_source": {"title": "t\ud800", "text": "x\udfff", "metadata": {"a": ["\ud800"]}}}
    found = opened(elastic_url, name).passage(hit)
    assert (found.title, found.text, found.metadata) == ("t\ufffd", "x\ufffd", {"a": ["\ufffd"]})


def test_passages_with_such_characters_are_counted_once(elastic_url, name):
    replaced: set[str] = set()
    passages = IndexPassages(ElasticIndex(place(elastic_url, name)), replaced)
    bad = {"_id": "d1", "_source": {"text": "x\udfff"}}
    deep = {"_id": "d2", "_source": {"text": "x", "metadata": {"a": [{"\ud800": 1}]}}}
    for hit in (bad, deep, bad, {"_id": "d3", "_source": {"text": "fine", "metadata": {"a": "é"}}}):
        passages.passage(hit)
    assert replaced == {"d1", "d2"}


@pytest.mark.parametrize(
    ("doc_id", "why"),
    [
        ("two words", "contains white space"),
        ("a\x00b", "control character"),
        ("\ufeffa", "byte order mark"),
        ("\ud800", "surr"),
    ],
)
@pytest.mark.parametrize("field", ["_id", "key"])
def test_an_id_that_files_would_lose_is_refused_wherever_it_comes_in(elastic_url, name, doc_id, why, field):
    hit = {"_id": doc_id if field == "_id" else "d1", "fields": {"key": [doc_id]}, "_source": {"text": "x"}}
    index = ElasticIndex(place(elastic_url, name, id_field=field))
    for read in (index.doc_id, IndexPassages(index).passage):
        with pytest.raises(DataError, match=f"document id .*{why}.*set another id_field") as caught:
            read(hit)
        assert str(caught.value).isprintable()
