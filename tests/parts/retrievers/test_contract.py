"""What holds for every retriever."""

from __future__ import annotations

import pytest
from support.contracts import cases, settings_of

from raggs.parts.retrievers import REGISTRY, Hit
from raggs.sweeps.config import Axes


@pytest.fixture(params=cases("retrievers", REGISTRY))
def make(request, tmp_path, context):
    """Makes the retriever with these options."""
    name, variant = request.param
    adapter = REGISTRY.load(name)
    source = {**settings_of("retrievers", name, tmp_path, request), **variant}
    return lambda **options: adapter(adapter.Config(**source, **options), context)


def test_hits_are_sorted_by_score_then_doc_id(make, ask):
    (hits,) = make().search([ask("a cat near a wing")])
    assert hits
    assert all(isinstance(hit, Hit) for hit in hits)
    assert [(-hit.score, hit.doc_id) for hit in hits] == sorted((-hit.score, hit.doc_id) for hit in hits)
    assert [hit.doc_id for hit in hits if hit.doc_id in ("cat", "copy")] == ["cat", "copy"]


def test_one_list_a_query_in_order(make, ask):
    queries = [ask("a cat", "q1"), ask("flat plate", "q2"), ask("nothing", "q3"), ask("a cat", "q1")]
    lists = list(make().search(queries))
    assert len(lists) == 4
    assert lists[1][0].doc_id == "plate"
    assert lists[2] == []
    assert lists[3] == lists[0]
    assert list(make().search([])) == []


def test_at_most_k(make, ask):
    (hits,) = make(k=1).search([ask("a cat")])
    assert [hit.doc_id for hit in hits] == ["cat"]


def test_scores_read_back_as_they_are(make, ask):
    (hits,) = make().search([ask("a cat near a wing")])
    assert all(type(hit.score) is float and len(str(hit.score)) < 15 for hit in hits)


def test_a_second_instance_finds_the_same(make, ask):
    queries = [ask("a cat near a wing"), ask("boundary layer", "q2")]
    assert list(make().search(queries)) == list(make().search(queries))


@pytest.mark.parametrize("k", [0, -1])
def test_k_is_positive(make, k):
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        make(k=k)


def test_as_a_level_of_a_sweep_its_settings_are_written_without_a_warning(make):
    config = make().config
    (written,) = Axes(mode=[config]).model_dump(mode="json")["mode"]
    assert written["type"] == config.type
