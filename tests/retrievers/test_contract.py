"""What holds for every retriever."""

from __future__ import annotations

import pytest

from raggs.retrievers import REGISTRY
from raggs.retrievers.base import Hit

RUN = "q1 Q0 cat 1 2.5 tag\nq1 Q0 copy 2 2.5 tag\nq1 Q0 wing 3 1 tag\nq2 Q0 plate 1 1 tag\n"


def make(name, context, tmp_path, **options):
    adapter = REGISTRY.load(name)
    if name == "runfile":
        (tmp_path / "run.trec").write_text(RUN)
        options["path"] = tmp_path / "run.trec"
    return adapter(adapter.Config(**options), context)


@pytest.fixture(params=list(REGISTRY))
def name(request):
    if request.param not in ("bm25", "dense", "runfile"):
        pytest.skip("needs a server or a model of its own")
    return request.param


def test_hits_are_sorted_by_score_then_doc_id(name, context, tmp_path, ask):
    (hits,) = make(name, context, tmp_path).search([ask("a cat near a wing")])
    assert hits
    assert all(isinstance(hit, Hit) for hit in hits)
    assert [(-hit.score, hit.doc_id) for hit in hits] == sorted((-hit.score, hit.doc_id) for hit in hits)
    assert [hit.doc_id for hit in hits if hit.doc_id in ("cat", "copy")] == ["cat", "copy"]


def test_one_list_a_query_in_order(name, context, tmp_path, ask):
    queries = [ask("a cat", "q1"), ask("flat plate", "q2"), ask("nothing", "q3"), ask("a cat", "q1")]
    lists = list(make(name, context, tmp_path).search(queries))
    assert len(lists) == 4
    assert lists[1][0].doc_id == "plate"
    assert lists[2] == []
    assert lists[3] == lists[0]
    assert list(make(name, context, tmp_path).search([])) == []


def test_at_most_k(name, context, tmp_path, ask):
    (hits,) = make(name, context, tmp_path, k=1).search([ask("a cat")])
    assert [hit.doc_id for hit in hits] == ["cat"]


def test_scores_read_back_as_they_are(name, context, tmp_path, ask):
    (hits,) = make(name, context, tmp_path).search([ask("a cat near a wing")])
    assert all(type(hit.score) is float and len(str(hit.score)) < 15 for hit in hits)


def test_a_second_instance_finds_the_same(name, context, tmp_path, ask):
    queries = [ask("a cat near a wing"), ask("boundary layer", "q2")]
    assert list(make(name, context, tmp_path).search(queries)) == list(make(name, context, tmp_path).search(queries))


@pytest.mark.parametrize("k", [0, -1])
def test_k_is_positive(name, context, tmp_path, k):
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        make(name, context, tmp_path, k=k)
