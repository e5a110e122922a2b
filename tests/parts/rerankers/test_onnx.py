"""Cross-encoders: the numbers of a small model made here, beside the same sums by NumPy; what is kept, what is said."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import sys

import numpy as np
import pytest
from support.judging import passage
from support.onnx_models import cross_logit, write_cross_encoder, write_embedder
from support.project import make_project, raggs

from raggs.app.housekeeping import clear, survey
from raggs.base import errors
from raggs.parts.rerankers.local import OnnxReranker
from raggs.parts.workspace import Workspace

QUERY = "How is the lift of a wing measured?"
TEXTS = {
    "cat": "A cat sleeps on the mat for most of the day.",
    "plate": "Transition of the boundary layer on a flat plate.",
    "wing": "The lift of a wing in a slipstream was measured.",
}
PASSAGES = [passage(doc_id, text, title="wing" if doc_id == "wing" else "") for doc_id, text in TEXTS.items()]
CONTRACT_VARIANTS = [{}, {"batch": 8}, {"scoring": {"dtype": "bf16", "high_precision": False}}, {"activation": "none"}]


def contract_case(folder, request):
    write_cross_encoder(folder)
    return {"path": folder}


@pytest.fixture
def make(tmp_path):
    """Makes a reranker over the model in `tmp_path/model`; `keeps`: whether it may look things up."""
    workspace = Workspace(tmp_path / "runs")

    def made(folder=tmp_path / "model", keeps=True, **options):
        return workspace.reranker(OnnxReranker.Config(path=folder, **options), keeps=keeps)

    yield made
    workspace.close()


@pytest.fixture
def tokenizer(tmp_path):
    return write_cross_encoder(tmp_path / "model")


def ask(who, passages=PASSAGES, query=QUERY):
    return asyncio.run(who.rerank(query, "en", passages))


def expected(tokenizer, passages=PASSAGES, **options):
    return {each.doc_id: cross_logit(tokenizer, QUERY, each.content, **options) for each in passages}


def sigmoid(value):
    return 1 / (1 + np.exp(-value))


def test_scores_are_the_sigmoid_of_the_models_own_logits(make, tokenizer):
    found, wanted = ask(make()), expected(tokenizer)
    assert {each.doc_id: each.logit for each in found.ranked} == pytest.approx(wanted, rel=1e-5)
    assert {each.doc_id: each.score for each in found.ranked} == pytest.approx(
        {doc_id: sigmoid(logit) for doc_id, logit in wanted.items()}, rel=1e-5
    )
    assert [each.doc_id for each in found.ranked] == sorted(wanted, key=lambda doc_id: -wanted[doc_id])
    assert found.tokens == sum(len(tokenizer.encode(QUERY, each.content).ids) for each in PASSAGES)
    assert found.ms > 0 and found.calls == 0 and found.usd == 0


def test_of_two_numbers_the_second_is_yes(make, tmp_path):
    tokenizer = write_cross_encoder(tmp_path / "two", outputs=2)
    wanted = expected(tokenizer)
    for each in ask(make(tmp_path / "two")).ranked:
        no, yes = -wanted[each.doc_id] / 2, wanted[each.doc_id]
        assert each.score == pytest.approx(np.exp(yes) / (np.exp(yes) + np.exp(no)), rel=1e-5)
        assert each.logit == pytest.approx(yes - no, rel=1e-5)


def test_read_together_they_are_as_if_read_alone(make, tokenizer):
    alone, together = ask(make()), ask(make(batch=3))
    assert [each.doc_id for each in alone.ranked] == [each.doc_id for each in together.ranked]
    assert [each.score for each in together.ranked] == pytest.approx([each.score for each in alone.ranked], rel=1e-5)
    assert together.tokens == alone.tokens


def test_typographic_quotes_are_read_as_keyboards_have_them(make, tokenizer):
    plain = [passage("typed", "The wing's lift on a 5\" mat"), PASSAGES[0]]
    typed = [passage("typed", "The wing’s lift on a 5′′ mat"), PASSAGES[0]]
    wanted = ask(make(keeps=False), plain, 'the 5" wing')
    assert ask(make(keeps=False), typed, "the 5′′ wing").ranked == wanted.ranked
    assert ask(make(), typed, "the 5′′ wing").ranked == wanted.ranked
    assert ask(make(), plain, 'the 5" wing').ranked == wanted.ranked, "from the cache"


def test_what_is_too_long_is_cut_to_the_models_length(make, tokenizer):
    tokenizer.enable_truncation(12)
    found = ask(make(max_length=12), [passage("long", "the wing " * 500)])
    assert found.tokens == 12
    assert found.ranked[0].logit == pytest.approx(cross_logit(tokenizer, QUERY, "the wing " * 500), rel=1e-5)


# --- precision ---


def test_half_precision_rounds_the_logits_and_then_the_score_or_not(make, tokenizer, tmp_path):
    many = [passage(f"p{n}", f"The lift of {'the ' * n} wing on a {'flat ' * (n % 7)} plate") for n in range(60)]
    full = {each.doc_id: each for each in ask(make(), many).ranked}

    def scores(**scoring):
        return {each.doc_id: each.score for each in ask(make(scoring=scoring), many).ranked}

    careful, plain = scores(dtype="bf16"), scores(dtype="bf16", high_precision=False)
    for doc_id, each in full.items():
        logit = bf16(each.logit)
        assert careful[doc_id] == pytest.approx(float(sigmoid(np.float32(logit))), rel=1e-6)
        assert plain[doc_id] == pytest.approx(bf16(sigmoid(np.float32(logit))), rel=1e-6)
    assert len(set(plain.values())) < len(set(careful.values())) <= len({each.score for each in full.values()})
    assert scores(dtype="f16")["p3"] == pytest.approx(
        float(sigmoid(np.float32(np.float16(full["p3"].logit)))), rel=1e-6
    )


def bf16(value):
    bits = np.array([value], dtype=np.float32).view(np.uint32)
    return float(((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)[0])


# --- what is kept ---


class Reads:
    """Counts the pairs that a reranker reads."""

    def __init__(self, who, monkeypatch):
        self.count = 0
        run = who.model.run

        def counted(batch):
            self.count += len(batch)
            return run(batch)

        monkeypatch.setattr(who.model, "run", counted)


def test_a_pair_is_read_once_whatever_is_made_of_it(make, tokenizer, monkeypatch):
    first = ask(make())
    for options in ({}, {"activation": "none"}, {"scoring": {"dtype": "bf16"}}, {"threads": 1}):
        who = make(**options)
        reads = Reads(who, monkeypatch)
        again = ask(who)
        assert reads.count == 0
        assert {each.doc_id: each.logit for each in again.ranked} == {each.doc_id: each.logit for each in first.ranked}
        assert again.ms == pytest.approx(first.ms, abs=0.01) and again.tokens == first.tokens


@pytest.mark.parametrize("options", [{"max_length": 64}, {"batch": 2}])
def test_how_it_is_read_is_part_of_its_name(make, tokenizer, monkeypatch, options):
    ask(make())
    who = make(**options)
    reads = Reads(who, monkeypatch)
    ask(who)
    assert reads.count == 3


def test_more_candidates_read_only_what_is_new(make, tokenizer, monkeypatch):
    ask(make(), PASSAGES[:2])
    who = make()
    reads = Reads(who, monkeypatch)
    found = ask(who)
    assert reads.count == 1
    assert found == ask(make())
    ask(who, query="another wing")
    assert reads.count == 4


def test_a_model_counts_by_its_content_and_not_by_its_place(make, tokenizer, tmp_path, monkeypatch):
    before, found = make().causes(), ask(make())
    moved = make(shutil.copytree(tmp_path / "model", tmp_path / "moved"))
    reads = Reads(moved, monkeypatch)
    assert moved.causes() == before
    assert ask(moved) == found
    assert reads.count == 0
    write_cross_encoder(tmp_path / "moved", seed=2)
    other = make(tmp_path / "moved")
    assert other.causes() != before
    assert ask(other).ranked != found.ranked
    (tmp_path / "moved" / "model.onnx_data").write_bytes(b"weights beside it")
    assert make(tmp_path / "moved").causes() != other.causes()


def test_whoever_wants_the_time_of_the_work_keeps_nothing(make, tokenizer, monkeypatch, tmp_path):
    who = make(keeps=False)
    reads = Reads(who, monkeypatch)
    ask(who)
    ask(who)
    assert reads.count == 6
    assert not (tmp_path / "runs" / ".cache" / "rerank").exists()


def test_whoever_is_stopped_or_fails_keeps_what_was_read(make, tokenizer, monkeypatch):
    many = [passage(f"p{n}", f"The lift of {'the ' * n} wing") for n in range(50)]
    who, cut = make(), []
    run = who.model.run
    monkeypatch.setattr(who.model, "run", lambda batch: cut.append(1) or (run(batch) if len(cut) < 41 else run([])))
    with pytest.raises(ValueError, match="empty"):
        ask(who, many)

    async def stopped():
        task = asyncio.ensure_future(again.rerank(QUERY, "en", many))
        while reads.count < 3:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    again = make()
    reads = Reads(again, monkeypatch)
    asyncio.run(stopped())
    assert 3 <= reads.count <= 4
    last = make()
    left = Reads(last, monkeypatch)
    assert len(ask(last, many).ranked) == 50
    assert left.count == 50 - 40 - reads.count


def test_one_query_is_read_after_the_other(make, tokenizer, monkeypatch):
    who, read = make(), []
    encode = who.model.encode
    monkeypatch.setattr(who.model, "encode", lambda query, text: read.append(query) or encode(query, text))

    async def both():
        await asyncio.gather(*(who.rerank(query, "en", PASSAGES) for query in ("a wing", "a cat")))

    asyncio.run(both())
    assert read == ["a wing"] * 3 + ["a cat"] * 3
    asyncio.run(both())
    assert len(read) == 6


def rows_of(tmp_path):
    (file,) = (tmp_path / "runs" / ".cache" / "rerank").glob("pairs-*.sqlite")
    return sqlite3.connect(file)


def test_a_spoilt_row_is_read_again(make, tokenizer, monkeypatch, tmp_path):
    found = ask(make())
    for spoilt in (b"[[1.5],7,1.25]", b"[" * 5000, b"{}", b""):
        with rows_of(tmp_path) as rows:
            rows.execute("UPDATE rows SET value = ?", (spoilt,))
        who = make()
        reads = Reads(who, monkeypatch)
        assert ask(who).ranked == found.ranked
        assert reads.count == 3


def test_scores_kept_for_another_query_are_not_used(make, tokenizer, monkeypatch, tmp_path):
    one, other = ask(make(), PASSAGES[:1]), ask(make(), PASSAGES[:1], "another")
    with rows_of(tmp_path) as rows:
        (first, *value), (second, *exchanged) = rows.execute("SELECT key, value, sum FROM rows").fetchall()
        for key, row in ((first, exchanged), (second, value)):
            rows.execute("UPDATE rows SET value = ?, sum = ? WHERE key = ?", (*row, key))
    who = make()
    reads = Reads(who, monkeypatch)
    assert ask(who, PASSAGES[:1]).ranked == one.ranked != other.ranked
    assert ask(who, PASSAGES[:1], "another").ranked == other.ranked
    assert reads.count == 2


def test_the_cache_is_listed_and_cleared_by_name(make, tokenizer, tmp_path):
    ask(make())
    ask(make(), query="another")
    (part,) = [part for part in survey(tmp_path / "runs") if part.name == "rerank"]
    assert part.entries == 1 and part.bytes > 0
    assert clear(tmp_path / "runs", "rerank") == ["rerank"]


# --- what is said ---


def test_a_folder_that_is_none_or_lacks_a_file(make, tmp_path, tokenizer):
    with pytest.raises(errors.NotFoundError, match="model folder not found") as caught:
        make(tmp_path / "nowhere").check()
    assert "does not download" in caught.value.remedy
    (tmp_path / "model" / "tokenizer.json").unlink()
    for act in (lambda who: who.check(), lambda who: who.causes(), ask):
        with pytest.raises(errors.NotFoundError, match=r"lacks tokenizer\.json"):
            act(make())
    shutil.move(tmp_path / "model" / "model.onnx", tmp_path / "model" / "model_int8.onnx")
    with pytest.raises(errors.NotFoundError, match=r"lacks model\.onnx or onnx/model\.onnx") as caught:
        make().check()
    assert caught.value.remedy == "set `file` to one of: model_int8.onnx"


def test_the_models_file_may_be_named_or_lie_where_hubs_put_it(make, tmp_path, tokenizer):
    found = ask(make())
    (tmp_path / "hub" / "onnx").mkdir(parents=True)
    shutil.copy(tmp_path / "model" / "tokenizer.json", tmp_path / "hub")
    shutil.copy(tmp_path / "model" / "model.onnx", tmp_path / "hub" / "onnx" / "model.onnx")
    assert ask(make(tmp_path / "hub")) == found
    shutil.copy(tmp_path / "model" / "model.onnx", tmp_path / "hub" / "mine.onnx")
    assert ask(make(tmp_path / "hub", file="mine.onnx")) == found


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_a_file_that_is_garbage(make, tmp_path, tokenizer, file):
    (tmp_path / "model" / file).write_bytes(b"\x00garbage")
    with pytest.raises(errors.DataError) as caught:
        ask(make())
    assert caught.value.where.endswith(file)
    assert caught.value.remedy


def test_a_model_of_another_kind(make, tmp_path):
    write_embedder(tmp_path / "model")
    with pytest.raises(errors.ProviderError, match=r"returned 'last_hidden_state' of shape .* not a cross-encoder"):
        ask(make())
    write_embedder(tmp_path / "picture", inputs=("input_ids", "pixel_values"))
    with pytest.raises(errors.DataError, match="needs the unsupported input 'pixel_values'"):
        ask(make(tmp_path / "picture"))
    write_cross_encoder(tmp_path / "three", outputs=3)
    with pytest.raises(errors.ProviderError, match="not one or two numbers per pair"):
        ask(make(tmp_path / "three"))


def test_numbers_that_are_none_end_in_a_sentence_and_are_not_kept(make, tmp_path):
    write_cross_encoder(tmp_path / "model", scale=float("nan"))
    for _ in range(2):
        with pytest.raises(errors.RaggsError, match="NaN"):
            ask(make())


def test_a_tokenizer_of_another_model(make, tmp_path, tokenizer):
    text = (tmp_path / "model" / "tokenizer.json").read_text()
    (tmp_path / "model" / "tokenizer.json").write_text(text.replace('"wing": 15', '"wing": 15000'))
    with pytest.raises(errors.ProviderError, match="the model failed on 1 texts") as caught:
        ask(make())
    assert "belong together" in caught.value.remedy


def test_an_activation_that_does_not_fit(make, tmp_path, tokenizer):
    with pytest.raises(errors.ConfigError, match="has 1 outputs per pair, which activation softmax does not support"):
        ask(make(activation="softmax"))
    write_cross_encoder(tmp_path / "two", outputs=2)
    with pytest.raises(errors.ConfigError, match="activation sigmoid does not support"):
        ask(make(tmp_path / "two", activation="sigmoid"))


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_without_the_extra_the_line_to_install_it_is_told(make, tokenizer, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(errors.PrerequisiteError) as caught:
        ask(make())
    assert caught.value.remedy == 'pip install ".[local]" in a clone of raggs'
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == package else object())
    with pytest.raises(errors.PrerequisiteError, match=package):
        make().check()


# --- in a run ---


def test_a_run_reads_each_pair_once_and_again_when_the_model_is_another(tmp_path):
    entry = {"type": "reranked", "of": {"type": "bm25", "k": 10}, "by": {"type": "onnx", "path": "model"}, "k": 6}
    project = make_project(tmp_path / "demo", queries=2, corpus=24, retrieve={"retrievers": [entry]})
    told = raggs("run", "--config", project.config, "--to", "retrieve")
    assert told.returncode == 4
    assert "model folder not found" in told.stderr
    write_cross_encoder(project.folder / "model")
    for _ in range(2):
        done = raggs("run", "--config", project.config, "--to", "retrieve", "--force")
        assert done.returncode == 0, done.stderr
    before = (project.run / "retrieve.jsonl").read_bytes()
    rows = [json.loads(line) for line in before.splitlines()]
    assert len(rows) == 12 and all(0 < row["score"] < 1 for row in rows)
    assert "Nothing to do" in raggs("run", "--config", project.config, "--to", "retrieve").stdout
    write_cross_encoder(project.folder / "model", seed=2)
    raggs("run", "--config", project.config, "--to", "retrieve")
    assert (project.run / "retrieve.jsonl").read_bytes() != before
