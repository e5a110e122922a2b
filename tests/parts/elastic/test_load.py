"""Making and filling an index: explicit, resumable, never over somebody else's, and counted at the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.elastic import fill, fresh_name, write

from raggs.base.artifacts import Passage, Span
from raggs.base.errors import DataError, ProviderError
from raggs.parts.elastic import ElasticIndexSettings, IndexPlace
from raggs.parts.elastic.index import ElasticIndex
from raggs.parts.elastic.load import Contents, IndexDocument, Loader
from raggs.parts.elastic.passages import IndexPassages
from raggs.parts.elastic.server import ElasticServer


def span(number: int) -> Span | None:
    """The place of every passage but one, which has none."""
    return None if number == 5 else Span(source="a.md", start=10 * number, end=10 * number + 7)


DOCUMENTS = [
    IndexDocument(
        Passage(
            doc_id=f"p{number}", title=f"T{number}", text=f"Text {number}.", metadata={"n": number}, span=span(number)
        ),
        None if number == 4 else [1.0, float(number)],
    )
    for number in range(10)
]
CONTENTS = Contents(10, "hash-1", "topics/1", 2, "vector")


def loader(url: str, name: str, contents: Contents = CONTENTS, **options: Any) -> Loader:
    settings = ElasticIndexSettings(**options.pop("settings", {}))
    return Loader(IndexPlace(url=url, index=name, **{"batch": 3, **options}), settings, contents)


def documents(start: int, stop: int) -> list[IndexDocument]:
    return DOCUMENTS[start:stop]


def load(made: Loader, overwrite: bool = False, given=documents) -> tuple[Any, list[tuple[str, int, int]]]:
    heard: list[tuple[str, int, int]] = []
    made.prepare(overwrite)
    return made.load(given, lambda *step: heard.append(step)), heard


def test_everything_arrives(elastic_url):
    name = fresh_name()
    assert loader(elastic_url, name).standing().kind == "absent"
    done, heard = load(loader(elastic_url, name))
    assert (done.documents, done.vectors, done.sent) == (10, 9, 10)
    assert heard == [("documents", 3, 10), ("documents", 6, 10), ("documents", 9, 10), ("documents", 10, 10)]
    assert loader(elastic_url, name).standing() == ("begun", "10 documents")
    index = ElasticIndex(IndexPlace(url=elastic_url, index=name))
    found = IndexPassages(index).get([f"p{number}" for number in range(10)])
    assert list(found.values()) == [document.passage for document in DOCUMENTS]


def test_the_mapping_is_explicit(elastic_url):
    name = fresh_name()
    load(loader(elastic_url, name, id_field="key", settings={"analyzer": "english", "m": 8, "ef_construction": 50}))
    server = ElasticIndex(IndexPlace(url=elastic_url, index=name)).server
    mapping = server.call(lambda client: client.indices.get_mapping(index=name))[name]["mappings"]
    assert mapping["dynamic"] == "strict"
    fields = mapping["properties"]
    assert fields["title"] == fields["text"] == {"type": "text", "analyzer": "english"}
    assert fields["key"]["type"] == "keyword"
    assert fields["span"] == fields["metadata"] == {"type": "object", "enabled": False}
    assert fields["vector"] == {
        "type": "dense_vector",
        "dims": 2,
        "index": True,
        "similarity": "cosine",
        "index_options": {"type": "hnsw", "m": 8, "ef_construction": 50},
    }
    assert IndexPassages(ElasticIndex(IndexPlace(url=elastic_url, index=name, id_field="key"))).known(["p3"]) == {"p3"}


def test_without_an_embedder_there_are_no_vectors(elastic_url):
    bare = Contents(10, "hash-1")
    done, _ = load(loader(elastic_url, name := fresh_name(), bare), given=bare_documents)
    assert (done.documents, done.vectors) == (10, 0)
    assert "vector" not in ElasticIndex(IndexPlace(url=elastic_url, index=name)).fields


def bare_documents(start: int, stop: int) -> list[IndexDocument]:
    return [IndexDocument(document.passage, None) for document in DOCUMENTS[start:stop]]


def test_an_interrupted_load_goes_on_with_what_is_missing(elastic_url):
    name = fresh_name()

    def stops_at_six(start: int, stop: int) -> list[IndexDocument]:
        if start == 6:
            raise KeyboardInterrupt
        return documents(start, stop)

    with pytest.raises(KeyboardInterrupt):
        load(loader(elastic_url, name), given=stops_at_six)
    done, _ = load(loader(elastic_url, name))
    assert (done.documents, done.vectors, done.sent) == (10, 9, 4)
    before = ElasticIndex(IndexPlace(url=elastic_url, index=name)).state
    done, _ = load(loader(elastic_url, name))
    assert done.sent == 0
    assert ElasticIndex(IndexPlace(url=elastic_url, index=name)).state == before, "nothing was written"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"contents": replace(CONTENTS, content_hash="hash-2")}, "its passages is hash-1, not hash-2"),
        ({"contents": replace(CONTENTS, embedder="topics/2")}, "its embedder is topics/1, not topics/2"),
        ({"contents": replace(CONTENTS, dims=0)}, "its dims is 2, not absent"),
        ({"settings": {"analyzer": "french"}}, "its analyzer is standard, not french"),
        ({"settings": {"m": 4}}, "its m is 16, not 4"),
    ],
)
def test_an_index_made_otherwise_is_replaced_only_when_asked(elastic_url, change, said):
    name = fresh_name()
    load(loader(elastic_url, name))
    given = bare_documents if change.get("contents", CONTENTS).dims == 0 else documents
    with pytest.raises(DataError, match=rf"already exists, and {said} .* --yes to delete the index"):
        load(loader(elastic_url, name, **change), given=given)
    assert ElasticIndex(IndexPlace(url=elastic_url, index=name)).count() == 10
    done, _ = load(loader(elastic_url, name, **change), overwrite=True, given=given)
    assert done.sent == 10


def test_replicas_make_no_other_index(elastic_url):
    name = fresh_name()
    load(loader(elastic_url, name))
    assert loader(elastic_url, name, settings={"replicas": 2}).standing().kind == "begun"


def test_an_index_of_somebody_else_is_never_replaced(elastic_url):
    name = fill(elastic_url, {"mine": {"text": "Not yours."}})
    for overwrite in (False, True):
        with pytest.raises(DataError, match=r"it was not created by raggs .* use another index"):
            load(loader(elastic_url, name), overwrite=overwrite)
    assert ElasticIndex(IndexPlace(url=elastic_url, index=name)).count() == 1


def test_a_document_that_is_refused_is_named(elastic_url):
    bad = [
        document._replace(vector=[1.0, 2.0, 3.0]) if place == 5 else document
        for place, document in enumerate(DOCUMENTS)
    ]
    with pytest.raises(DataError, match=r"rejected passage 'p5' \(.*more dimensions than"):
        load(loader(elastic_url, fresh_name()), given=lambda start, stop: bad[start:stop])


def test_documents_of_others_are_found_out(elastic_url):
    name = fresh_name()
    load(loader(elastic_url, name))
    write(elastic_url, name, {"stranger": {"text": "Here too."}})
    with pytest.raises(DataError, match=r"contains 11 documents, but the corpus has 10"):
        load(loader(elastic_url, name))


def test_documents_that_got_lost_are_found_out(elastic_url):
    name, made = fresh_name(), None

    def loses_one(start: int, stop: int) -> list[IndexDocument]:
        if start == 9:
            write(elastic_url, name, {"p0": None})
        return documents(start, stop)

    made = loader(elastic_url, name)
    with pytest.raises(ProviderError, match=r"contains 9 of 10 documents — run the command again"):
        load(made, given=loses_one)
    assert load(loader(elastic_url, name))[0].sent == 1


def test_a_busy_server_gets_the_same_request_again(elastic_url, monkeypatch):
    from elasticsearch import Elasticsearch

    real, calls = Elasticsearch.bulk, []

    def bulk(self, **options):
        answer = real(self, **options)
        calls.append(len(options["operations"]))
        if len(calls) == 2:
            answer.body["items"][0]["index"] = {"status": 429, "error": {"type": "es_rejected_execution_exception"}}
        return answer

    monkeypatch.setattr(Elasticsearch, "bulk", bulk)
    place = IndexPlace(url=elastic_url, index=fresh_name(), batch=3)
    done, _ = load(Loader(place, ElasticIndexSettings(), CONTENTS, ElasticServer(place, pauses=(0.001, 0.001))))
    assert calls == [6, 6, 6, 6, 2]
    assert done.documents == 10


def test_an_index_loaded_in_part_is_searched_by_nobody(elastic_url):
    """A client that is killed leaves the mark; so does one that adds to an index that was whole."""

    def dies(start: int, stop: int) -> list[IndexDocument]:
        if start >= 6:
            raise RuntimeError("killed")
        return DOCUMENTS[start:stop]

    name = fresh_name()
    with pytest.raises(RuntimeError, match="killed"):
        load(loader(elastic_url, name), given=dies)
    place = IndexPlace(url=elastic_url, index=name)
    assert loader(elastic_url, name).standing().detail.endswith(", incomplete")
    for refuses in (lambda: ElasticIndex(place).need_whole(), lambda: IndexPassages(ElasticIndex(place)).content_hash):
        with pytest.raises(DataError, match=r"is incomplete: \d+ of 10 documents .* raggs index"):
            refuses()
    done, _ = load(loader(elastic_url, name))
    assert done.sent == 4
    ElasticIndex(place).need_whole()
    assert loader(elastic_url, name).standing() == ("begun", "10 documents")
    write(elastic_url, name, {"p3": None})
    with pytest.raises(RuntimeError, match="killed"):
        load(loader(elastic_url, name), given=dies)
    with pytest.raises(DataError, match="is incomplete"):
        ElasticIndex(place).need_whole()
    load(loader(elastic_url, name))
    state = ElasticIndex(place).state
    load(loader(elastic_url, name))
    assert ElasticIndex(place).state == state, "what is complete is left as it is"


def test_what_is_searched_is_clean_and_what_comes_back_is_raw(elastic_url):
    raw = Passage(doc_id="p0", title="Cafe\u0301", text="Tre\u0300s bon\u202f! 10² fois", span=span(1))
    plain = Passage(doc_id="p1", title="T", text="Nothing of it.")
    given = [IndexDocument(raw, None), IndexDocument(plain, None)]
    made = loader(elastic_url, fresh_name(), Contents(2, "hash-2"))
    load(made, given=lambda start, stop: given[start:stop])
    index = ElasticIndex(made.place)
    assert IndexPassages(index).get(["p0", "p1"]) == {"p0": raw, "p1": plain}
    assert [passage for _, passage in IndexPassages(index).scan()] == [raw, plain]
    (hits,) = index.search([{"query": {"match": {"text": "très"}}, "size": 5}])
    assert [hit["_id"] for hit in hits] == ["p0"]
    assert hits[0]["_source"]["text"] == "Très bon ! 10² fois"
    assert index.count({"match": {"title": "café"}}) == 1
