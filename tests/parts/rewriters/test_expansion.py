"""Query expansion: added texts, their vectors, words for BM25, runs, sweeps, costs and faults of the model."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.cli import call
from support.llm_bench import MODEL, PRICE
from support.llm_server import KEY, LLMServer, embedding
from support.paidsweeps import EMBEDDER, paid_sweep
from support.project import make_project

from raggs.base.artifacts import EmbedRecord, Query
from raggs.base.errors import ProviderError
from raggs.llm import LLM, BudgetSettings, LLMSettings
from raggs.parts.rewriters import RewriterContext
from raggs.parts.rewriters.clean import CleanRewriter
from raggs.parts.rewriters.expansion import HydeRewriter, MultiQueryRewriter, read_texts
from raggs.stages.embed import prepare, query_vectors

QUERY = Query(qid="q7", text="Hi! Where do herons nest?")
KINDS = {"hyde": HydeRewriter, "multi_query": MultiQueryRewriter}


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def expand(server, kind, **config) -> EmbedRecord:
    settings = LLMSettings(api_base=server.url, prices={MODEL: PRICE}, timeout_s=20, backoff_s=0.001, max_repairs=1)
    llm = LLM(settings, BudgetSettings(), None)
    rewriter = KINDS[kind](KINDS[kind].Config(model=MODEL, **config), RewriterContext(llm))

    async def main():
        try:
            return await prepare(QUERY, rewriter, "en")
        finally:
            await llm.close()

    return asyncio.run(main())


def test_passages_are_added_and_the_query_stays():
    with LLMServer() as server:
        found = expand(server, "hyde", repeat_query=2)
    passage = "hyde 1 of Where do herons nest?"
    assert (found.rewrite, found.hypothetical, found.variants) == ("Where do herons nest?", (passage,), ())
    assert found.bm25_text == f"Where do herons nest? Where do herons nest? {passage}"
    assert found.searched == ("Where do herons nest?", passage)


def test_one_call_returns_all_wordings():
    with LLMServer() as server:
        found = expand(server, "multi_query", texts=4)
        assert server.count == 1
        assert "q7" not in str(server.requests)
    assert [each.split(" of ")[0] for each in found.variants] == [f"multi_query {number}" for number in range(1, 5)]
    assert found.hypothetical == ()


@pytest.mark.parametrize("fault", ["few texts", "empty text", "texts in a word"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_unusable_answer_is_requested_again_once(kind, fault):
    with LLMServer(faults=[fault]) as server:
        assert len(expand(server, kind).searched) > 1
        assert server.count == 2
    with (
        LLMServer(faults=[fault] * 2) as server,
        pytest.raises(ProviderError, match="q7 could not be") as told,
    ):
        expand(server, kind)
    assert '"texts" must contain' in str(told.value)
    assert told.value.remedy


@given(st.lists(st.text(min_size=1)), st.integers(1, 5))
def test_texts_of_an_answer(texts, count):
    usable = len(texts) >= count and all(not each.isspace() for each in texts[:count])
    try:
        found = read_texts({"texts": texts}, count)
    except ValueError:
        assert not usable or any(not each.isprintable() for each in texts[:count])
    else:
        assert len(found) == count
        assert all(each.strip() and "\n" not in each for each in found)


def test_settings_that_cannot_work():
    for options in ({"texts": 0}, {"texts": 11}, {"repeat_query": 0}, {"model": ""}):
        with pytest.raises(ValidationError):
            HydeRewriter.Config(**{"model": MODEL, **options})


def test_causes_hold_all_that_changes_the_texts(tmp_path):
    with LLMServer() as server:
        llm = LLM(LLMSettings(api_base=server.url), BudgetSettings(), None)

        def causes(**options):
            config = HydeRewriter.Config(**{"model": MODEL, **options})
            return HydeRewriter(config, RewriterContext(llm)).causes()

        own = tmp_path / "own.md"
        own.write_text("Note.\n\n# user\n\n{{query}} {{count}}\n")
        found = [
            causes(),
            causes(texts=2),
            causes(repeat_query=2),
            causes(model="openai/other"),
            causes(prompt=str(own)),
        ]
        asyncio.run(llm.close())
    assert all(one != other for at, one in enumerate(found) for other in found[:at])


class Vectors:
    """An embedder that encodes queries and passages differently."""

    def embed(self, texts):
        return self._rows(f"passage: {each}" for each in texts)

    def embed_queries(self, texts):
        return self._rows(f"query: {each}" for each in texts)

    def _rows(self, texts):
        rows = np.array([embedding(each, 8) for each in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_vector_is_the_mean_of_the_query_and_its_texts_each_encoded_as_what_it_is():
    base = {"language": "en", "embedding": (), "embedder": "", "bm25_text": "", "text": "a"}
    plain = EmbedRecord(qid="q1", rewrite="a", **base)
    wide = EmbedRecord(qid="q2", rewrite="a", variants=("b",), hypothetical=("c", "d"), **base)
    vectors = Vectors()
    found = query_vectors([plain, wide, plain], vectors)
    assert found[0].tolist() == found[2].tolist() == vectors.embed_queries(["a"])[0].tolist()
    total = vectors.embed_queries(["a", "b"]).sum(axis=0) + vectors.embed(["c", "d"]).sum(axis=0)
    np.testing.assert_allclose(found[1], total / np.linalg.norm(total), rtol=1e-5)
    # passages are ordered by the sum of their similarities to all texts
    corpus = vectors.embed([f"passage {number}" for number in range(50)])
    sums = corpus @ total
    assert np.argsort(-(corpus @ found[1])).tolist() == np.argsort(-sums).tolist()


def test_records_without_added_texts_keep_their_bytes():
    record = asyncio.run(prepare(QUERY, CleanRewriter(CleanRewriter.Config()), "en"))
    assert not {"variants", "hypothetical"} & record.model_dump(mode="json").keys()


# --- in a run and in a sweep ---


def test_a_run_searches_with_the_texts_and_its_audit_repeats_what_it_can(tmp_path):
    with LLMServer() as server:
        rewrite = {"type": "hyde", "model": "openai/writer", "repeat_query": 3, "texts": 2}
        project = make_project(
            tmp_path / "demo",
            embed={"rewrite": rewrite},
            llm={"api_base": server.url, "prices": {"openai/writer": {"input": 1.0, "output": 2.0}}},
        )
        planned = json.loads(call("run", "--config", project.config, "--dry-run", "--json").output)
        (line,) = [line for line in planned["estimates"] if line["stage"] == "embed"]
        assert (line["who"], line["calls"]) == ("openai/writer", server.count + 4)
        call("run", "--config", project.config)
        assert server.count == 4
        rows = [json.loads(line) for line in (project.run / "embed.jsonl").read_text().splitlines()]
        assert all(len(row["hypothetical"]) == 2 and row["bm25_text"].count(row["rewrite"]) == 5 for row in rows)
        assert "Nothing to do" in call("run", "--config", project.config).output
        call("audit", project.run)
        assert server.count == 4
        path = project.run / "embed.jsonl"
        path.write_text(path.read_text().replace("hyde 1 of", "hyde 9 of", 1))
        call("audit", project.run, code=5)


def test_levels_of_a_sweep_have_their_own_costs_and_are_paid_once(tmp_path):
    writer = "openai/rewriter"
    levels = [
        "none",
        {"type": "hyde", "model": writer, "texts": [1, 3]},
        {"type": "multi_query", "model": writer},
    ]
    axes = {"rewrite": levels, "mode": ["dense", "lexical", "hybrid"], "reranker": "none"}
    with LLMServer() as server:
        project = paid_sweep(tmp_path, server, axes=axes)
        plan = json.loads(project.call("--dry-run", "--json").stdout)
        assert len(plan["systems"]) == 12
        assert sum(line["calls"] for line in plan["paid"] if line["model"] == writer) == 3 * 4
        project.call("--quiet")
        asked = [body for body in server.requests if "messages" in body]
        assert len(asked) == 3 * 4, "three expansions, each of four queries, shared by all modes"
        assert server.count <= sum(line["calls"] for line in plan["paid"])
        assert not server.paid_twice
        rows = {row["name"]: row for row in json.loads((project.out / "sweep.json").read_text())["systems"]}
        assert len(rows) == 12 and all(row["failed"] is None for row in rows.values())
        booked = [json.loads(line) for line in (project.out / "llm.ledger.jsonl").read_text().splitlines()]
        paid = {}
        for line in (line for line in booked if line["model"] == writer):
            paid.setdefault(line["stage"], []).append(line["usd"])
        assert len(paid) == 3
        means = sorted(1000 * sum(usd) / len(usd) for usd in paid.values())
        found = {
            cost["price"]
            for row in rows.values()
            for cost in row["cost"]["lines"]
            if cost["step"] == "embed" and cost["model"] == writer
        }
        assert sorted(found) == pytest.approx(means)
        assert len(set(means)) == 3, "one text costs less than three"
        dense = {row["levels"]["rewrite"]: row for row in rows.values() if row["levels"]["mode"] == "dense"}
        tokens = {
            name: cost["per_query"]
            for name, row in dense.items()
            for cost in row["cost"]["lines"]
            if cost["model"] == EMBEDDER
        }
        assert tokens["none"] < min(value for name, value in tokens.items() if name != "none")
        totals = [row["cost"]["total"] for row in dense.values()]
        assert totals.index(min(totals)) == [*dense].index("none")
        assert all(row["latency"]["embed"]["p50"] > 0 for row in rows.values() if writer in str(row["cost"]))
        assert "unchanged" in project.call().stdout
        assert len([body for body in server.requests if "messages" in body]) == len(asked)
