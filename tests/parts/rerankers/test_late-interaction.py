"""Late interaction: MaxSim over the vectors of a small model made here, beside the same sums by NumPy."""

from __future__ import annotations

import asyncio
import string

import numpy as np
import pytest
from support.judging import passage
from support.onnx_models import SPECIAL, VOCABULARY, vectors, write_cross_encoder, write_embedder

from raggs.base import errors
from raggs.parts.rerankers.local import LateReranker
from raggs.parts.workspace import Workspace

MARKERS = {"query_marker": "[Q]", "passage_marker": "[D]"}
CONTRACT_VARIANTS = [{}, {"scoring": {"dtype": "bf16"}}]
QUERY = "How is the lift of a wing measured?"
PASSAGES = [
    passage("cat", "A cat sleeps on the mat for most of the day."),
    passage("wing", "The lift of a wing in a slipstream was measured."),
    passage("plate", "Transition of the boundary layer on a flat plate."),
]


def contract_case(folder, request):
    write_embedder(folder)
    return {"path": folder, **MARKERS}


@pytest.fixture
def tokenizer(tmp_path):
    return write_embedder(tmp_path / "model")


@pytest.fixture
def make(tmp_path):
    workspace = Workspace(tmp_path / "runs")

    def made(folder=tmp_path / "model", **options):
        return workspace.reranker(LateReranker.Config(path=folder, **{**MARKERS, **options}))

    yield made
    workspace.close()


def ask(who, passages=PASSAGES, query=QUERY):
    return asyncio.run(who.rerank(query, "en", passages))


def unit(ids):
    found = vectors().astype(np.float64)[ids]
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def expected(tokenizer, text, length=32, mask="[MASK]", punctuation=False, markers=True):
    asked, read = tokenizer.encode(QUERY).ids, tokenizer.encode(text).ids
    if markers:
        asked, read = [asked[0], VOCABULARY["[Q]"], *asked[1:]], [read[0], VOCABULARY["[D]"], *read[1:]]
    tokens = max(len(asked), length if mask else 0) + len(read)
    if mask:
        asked = asked + [VOCABULARY[mask]] * (length - len(asked))
    if not punctuation:
        read = [each for each in read if each not in {VOCABULARY.get(sign) for sign in string.punctuation}]
    return float((unit(asked) @ unit(read).T).max(axis=1).sum()), tokens


@pytest.mark.parametrize(
    ("options", "how"),
    [
        ({}, {}),
        ({"query_length": 40}, {"length": 40}),
        ({"query_length": 4}, {"length": 4}),
        ({"mask": None}, {"mask": None}),
        ({"punctuation": True}, {"punctuation": True}),
        ({"query_marker": None, "passage_marker": None}, {"markers": False}),
    ],
)
def test_a_score_is_the_sum_of_the_greatest_cosines(make, tokenizer, options, how):
    found = ask(make(**options))
    wanted = {each.doc_id: expected(tokenizer, each.content, **how) for each in PASSAGES}
    assert {each.doc_id: each.score for each in found.ranked} == pytest.approx(
        {doc_id: score for doc_id, (score, _) in wanted.items()}, rel=1e-5
    )
    assert {each.doc_id: each.logit for each in found.ranked} == {each.doc_id: each.score for each in found.ranked}
    assert found.tokens == sum(tokens for _, tokens in wanted.values())
    assert found.ranked[0].doc_id == "wing" or options


def test_with_its_marker_a_text_is_no_longer_than_the_model_reads(make, tokenizer):
    longest = []
    who = make(max_length=12, mask=None)
    run = who.model.run
    who.model.run = lambda batch: longest.extend(map(len, batch)) or run(batch)
    ask(who, [passage("long", "the wing " * 100)], query="the wing " * 50)
    assert longest == [12, 12]


def test_vectors_are_rounded_before_they_meet_and_the_sum_not_again(make, tokenizer):
    full, half = ask(make()), ask(make(scoring={"dtype": "bf16"}))
    again = ask(make(scoring={"dtype": "bf16", "high_precision": False}))
    by_id = [{each.doc_id: each for each in found.ranked} for found in (full, half, again)]
    for doc_id, exact in by_id[0].items():
        assert 0 < abs(by_id[1][doc_id].score - exact.score) < 0.1
        bits = np.array([by_id[2][doc_id].score], dtype=np.float32).view(np.uint32)
        assert bits[0] & 0xFFFF == 0
        assert by_id[2][doc_id].logit == by_id[1][doc_id].logit


def test_what_was_read_is_kept(make, tokenizer, monkeypatch):
    found = ask(make())
    who = make()
    monkeypatch.setattr(who.model, "run", None)
    assert ask(who) == found


def test_what_cannot_be_is_a_sentence(make, tokenizer, tmp_path):
    with pytest.raises(errors.DataError, match=r"has no token '\[unused0\]'"):
        ask(make(query_marker="[unused0]"))
    write_embedder(tmp_path / "pooled", pooled=True)
    with pytest.raises(errors.ProviderError, match="not one vector per token"):
        ask(make(tmp_path / "pooled"))
    write_cross_encoder(tmp_path / "pairs")
    with pytest.raises(errors.ProviderError, match="returned 'logits'"):
        ask(make(tmp_path / "pairs"))
    assert "[Q]" in SPECIAL
