"""Passages found by their best unit: what the units are, that no better passage is missed, and runs and sweeps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from support.cli import call
from support.project import make_project, raggs
from support.sweeping import make_sweep

from raggs.base.artifacts import Passage
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.retrievers import REGISTRY
from raggs.parts.retrievers.parent import ParentRetriever

DENSE = {"type": "dense"}
LONG = [
    Passage(doc_id="a/1", title="Wings", text="A cat was there. The lift of a wing is known. The end."),
    Passage(doc_id="b", text="A cat sleeps. A wing and a cat and a plate are in one place. Nothing follows."),
    Passage(doc_id="c", title="Plate only", text=" "),
    Passage(doc_id="d", text="The plate was found. It was flat. It lay there."),
]

CONTRACT_VARIANTS = [
    {},
    {"of": {"type": "bm25"}},
    {"unit": {"type": "token", "size": 6}},
    {"window": 1},
]


def contract_case(folder, request):
    return {"of": DENSE}


@pytest.fixture
def longer(tmp_path, context):
    """The context over passages of several sentences."""
    with PassageStore.build(tmp_path / "long.sqlite", LONG) as store:
        yield replace(context, passages=store)


def make(context, **options) -> ParentRetriever:
    return ParentRetriever(ParentRetriever.Config(**{"of": DENSE, **options}), context)


def units(retriever) -> dict[str, str]:
    (passages,) = retriever.embedded()
    return {each.doc_id: each.content for each in passages}


def test_a_unit_is_a_sentence_with_the_title_and_a_passage_without_text_is_one_unit(longer):
    assert units(make(longer)) == {
        "a/1/0": "Wings\nA cat was there.",
        "a/1/1": "Wings\nThe lift of a wing is known.",
        "a/1/2": "Wings\nThe end.",
        "b/0": "A cat sleeps.",
        "b/1": "A wing and a cat and a plate are in one place.",
        "b/2": "Nothing follows.",
        "c/0": "Plate only\n ",
        "d/0": "The plate was found.",
        "d/1": "It was flat.",
        "d/2": "It lay there.",
    }


def test_a_window_has_the_sentences_on_both_sides(longer):
    found = [text for key, text in units(make(longer, window=1)).items() if key.startswith("d/")]
    assert found == [
        "The plate was found. It was flat.",
        "The plate was found. It was flat. It lay there.",
        "It was flat. It lay there.",
    ]


def test_a_chunker_makes_the_units(longer):
    found = units(make(longer, unit={"type": "sentence", "size": 40, "unit": "characters", "overlap": 0}))
    assert [text for key, text in found.items() if key.startswith("d/")] == [
        "The plate was found. It was flat.",
        "It lay there.",
    ]


def test_the_best_unit_decides_and_the_passage_is_returned_once(longer, ask):
    (hits,) = make(longer).search([ask("a cat")])
    assert [(hit.doc_id, hit.score) for hit in hits if hit.score > 0.6] == [
        ("b", 1.0),
        ("a/1", pytest.approx(0.5**0.5)),
    ]
    assert len(hits) == len({hit.doc_id for hit in hits})
    (dense,) = REGISTRY.load("dense")(REGISTRY.load("dense").Config(), longer).search([ask("a cat")])
    assert dense[0].score < 1, "no whole passage is about a cat alone"


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), k=st.integers(1, 8), depth=st.integers(1, 12))
def test_the_list_is_that_of_a_search_for_all_units(tmp_path_factory, context, ask, seed, k, depth):
    """Many units of few passages, many of them tied: deeper searches follow until nothing can change."""
    rng = np.random.default_rng(seed)
    words = ("wing", "plate", "cat", "sky")
    rows = [
        Passage(doc_id=f"p{at}", text=" ".join(f"The {words[of]} is here." for of in rng.integers(4, size=size)))
        for at, size in enumerate(rng.integers(1, 25, size=12))
    ]
    query = ask(" ".join(words[of] for of in rng.integers(3, size=2)))
    with PassageStore.build(tmp_path_factory.mktemp("p") / "p.sqlite", rows) as store:
        for of in ("dense", "bm25"):
            own = replace(context, passages=store)
            (some,) = make(own, of={"type": of, "k": depth}, k=k).search([query])
            (every,) = make(own, of={"type": of, "k": 10_000}, k=10_000).search([query])
            assert some == every[:k]


def test_the_units_and_their_index_are_made_once(longer, ask):
    made: list[str] = []
    own = replace(longer, embed=lambda texts: made.append("") or longer.embed(texts))
    context = replace(own, retriever=lambda spec, among: REGISTRY.of(spec)(spec, replace(own, passages=among)))
    for _ in range(2):
        list(make(context).search([ask("a cat")]))
    assert len(made) == 1
    assert [path.name[:6] for path in context.cache.at("corpora").folder.iterdir()] == ["units-"]
    list(make(context, window=1).search([ask("a cat")]))
    assert len(made) == 2


def test_causes_hold_units_and_retriever(longer):
    causes = [
        make(longer, **options).causes()
        for options in ({}, {"of": {"type": "bm25"}}, {"window": 1}, {"unit": {"type": "token"}}, {"k": 7})
    ]
    assert all(one != other for at, one in enumerate(causes) for other in causes[:at])
    assert not context_units(longer), "status and plan need no units"


def context_units(context) -> list[Path]:
    return list(context.cache.at("corpora").folder.glob("units-*"))


def test_altered_units_and_indexes_are_found_and_built_again(longer, ask):
    retriever = make(longer, of={"type": "bm25"})
    (hits,) = retriever.search([ask("a cat")])
    retriever.close()

    def faults() -> list[str]:
        return [fault for _, fault in ParentRetriever.index_faults(retriever.config, longer.store, longer.cache)]

    assert faults() == []
    (index,) = [path for path in longer.cache.at("bm25").folder.glob("*/*.npy") if "data" in path.name]
    index.write_bytes(index.read_bytes()[:-1] + b"\xff")
    assert len(faults()) == 1
    (folder,) = context_units(longer)
    file = folder / "passages.sqlite"
    file.write_bytes(file.read_bytes().replace(b"cat", b"dog"))
    assert len(faults()) == 1 and "passages.sqlite" in faults()[0]
    (again,) = make(longer, of={"type": "bm25"}).search([ask("a cat")])
    assert again == hits
    assert faults() == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"unit": {"type": "token"}, "window": 1}, "window applies only to unit: sentence"),
        ({"of": {"type": "reranked"}}, "unknown type 'reranked'"),
        ({"of": {"type": "parent", "of": DENSE}}, "unknown type 'parent'"),
        ({"of": {"type": "elasticsearch"}}, "unknown type 'elasticsearch'"),
        ({"unit": {"type": "llm", "model": "openai/m"}}, "unknown type 'llm'"),
        ({"unit": "word"}, "'sentence'"),
        ({"window": -1}, "greater than or equal to 0"),
    ],
)
def test_settings_that_mean_nothing(options, said):
    with pytest.raises(ValidationError, match=said):
        ParentRetriever.Config(**{"of": DENSE, **options})


def test_what_the_other_one_needs_is_said():
    for of, vectors in (("dense", True), ("bm25", False)):
        spec = ParentRetriever.Config(of={"type": of})
        assert ParentRetriever.whole_corpus(spec)
        assert ParentRetriever.needs_vectors(spec) == vectors
        assert ParentRetriever.reads(spec) == REGISTRY.load(of).reads(spec.of)


# --- in a run and in a sweep ---

SCORE = """
def rerank(query, passages):
    return [-float(len(text)) for text in passages]
"""


def test_a_run_pools_it_alone_and_reranked_and_its_audit_reads_its_index(tmp_path):
    parent = {"type": "parent", "of": DENSE, "unit": {"type": "token", "size": 8}, "k": 6}
    by = {"type": "python", "callable": "scores:rerank"}
    entries = [{"type": "bm25", "k": 10}, parent, {"type": "reranked", "of": parent, "by": by, "k": 4}]
    project = make_project(tmp_path / "demo", retrieve={"retrievers": entries})
    (project.folder / "scores.py").write_text(SCORE)
    done = raggs("run", "--config", project.config)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in (project.run / "retrieve.jsonl").read_text().splitlines()]
    deepest = {row["retriever"]: row["rank"] for row in sorted(rows, key=lambda row: row["rank"])}
    assert deepest == {"bm25": 10, "parent": 6, "reranked": 4}
    assert all("/" not in row["doc_id"] for row in rows), "passages, not their units"
    assert "Nothing to do" in raggs("run", "--config", project.config).stdout
    assert call("audit", project.run).exit_code == 0
    (vectors,) = (project.run.parent / ".cache" / "vectors").rglob("vectors.f32")
    vectors.write_bytes(vectors.read_bytes()[:-4] + b"\0\0\0\1")
    assert "vectors.f32" in call("audit", project.run, code=5).output


def test_a_sweep_compares_it_with_the_retriever_of_whole_passages(tmp_path):
    modes = ["dense", "lexical", {"type": "parent", "of": DENSE}, {"type": "parent", "of": {"type": "bm25"}}]
    project = make_sweep(tmp_path, axes={"mode": modes, "k": [5, 10]})
    planned = json.loads(project.call("--dry-run", "--json").stdout)
    assert len(planned["systems"]) == 8 and planned["paid"] == []
    project.call("--quiet")
    rows = {row["name"]: row for row in json.loads((project.out / "sweep.json").read_text())["systems"]}
    assert all(row["failed"] is None and row["latency"]["total"]["p50"] > 0 for row in rows.values())
    for name, row in rows.items():
        assert (row["memory"] is not None) == ("dense" in name), name
    raggs("audit", project.out)
