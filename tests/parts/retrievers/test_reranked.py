"""Another retriever's hits in a reranker's order: which are read, what counts, and what a run makes of it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest
from support.cli import call
from support.contracts import write_module
from support.project import Project, make_project, raggs

from raggs.app.catalog import json_schema
from raggs.base.errors import ConfigError, ProviderError
from raggs.llm.messages import ChatRequest
from raggs.parts import rerankers
from raggs.parts.rerankers import Reranker, RerankerConfig, Reranking
from raggs.parts.retrievers import REGISTRY
from raggs.parts.retrievers.reranked import RerankedRetriever
from raggs.stages.retrieve import STAGE, RetrieveConfig

SCORE = """
READ = []

def rerank(query, passages):
    READ.append(list(passages))
    return [float(sum(word in text.lower() for word in query.lower().split())) for text in passages]

def shortest(query, passages):
    return [-float(len(text)) for text in passages]
"""


def contract_case(folder, request):
    by = {"type": "python", "callable": f"{write_module(folder, request, SCORE)}:rerank", "folder": folder}
    return {"of": {"type": "bm25"}, "by": by, "duplicates": None}


@pytest.fixture
def make(request, tmp_path, context):
    source = contract_case(tmp_path, request)
    return lambda **options: RerankedRetriever(RerankedRetriever.Config(**{**source, **options}), context)


def read(tmp_path) -> list[list[str]]:
    (name,) = (path.stem for path in tmp_path.glob("user_*.py"))
    found: list[list[str]] = sys.modules[name].READ
    return found


def test_the_candidates_are_the_others_first_hits_and_k_is_the_end(make, ask, tmp_path):
    (hits,) = make(of={"type": "bm25", "k": 2}).search([ask("a cat near a wing")])
    assert len(read(tmp_path)[-1]) == len(hits) == 2
    (hits,) = make(k=1).search([ask("a cat near a wing")])
    assert len(read(tmp_path)[-1]) == 3
    assert len(hits) == 1


def test_a_copy_is_neither_read_nor_given(make, ask, tmp_path):
    (hits,) = make(duplicates=0.95).search([ask("a cat near a wing")])
    assert [hit.doc_id for hit in hits] == ["cat", "wing"]
    assert len(read(tmp_path)[-1]) == 2


def test_the_rewritten_question_is_what_is_read(make, ask):
    (hits,) = make().search([ask("a cat near a wing").model_copy(update={"rewrite": "slipstream"})])
    assert hits[0].doc_id == "wing"


def test_one_reranked_is_candidates_of_another(make, ask, request, tmp_path):
    inner = contract_case(tmp_path, request)
    shortest = {**inner["by"], "callable": inner["by"]["callable"].replace("rerank", "shortest")}
    cascade = make(of={"type": "reranked", "k": 2, **inner}, by=shortest)
    (hits,) = cascade.search([ask("a cat sleeps near a wing")])
    assert [hit.doc_id for hit in hits] == ["cat", "copy"]
    shared = json_schema("config")["$defs"]

    def properties_by_type(choices):
        whole = (shared[each["$ref"].rpartition("/")[2]] if "$ref" in each else each for each in choices)
        return {each["properties"]["type"]["const"]: each["properties"] for each in whole}

    found = properties_by_type(shared["RetrieveConfig"]["properties"]["retrievers"]["items"]["oneOf"])
    below = properties_by_type(found["reranked"]["of"]["oneOf"])
    assert below.keys() == found.keys()
    assert below["reranked"]["of"]["type"] == "object", "the schema ends somewhere"


def test_causes_hold_both_parts(make, request, tmp_path):
    before = make().causes()
    assert before == make().causes()
    assert make(of={"type": "bm25", "k": 7}).causes() != before
    (file,) = tmp_path.glob("user_*.py")
    file.write_text(SCORE + "\n# a word more\n")
    assert make().causes() != before


def test_what_the_other_one_needs_is_said(make, tmp_path):
    for settings, whole, vectors in (({"type": "bm25"}, True, False), ({"type": "dense"}, True, True)):
        retriever = make(of=settings)
        assert retriever.whole_corpus(retriever.config) == whole
        assert retriever.needs_vectors(retriever.config) == vectors
    server = {"type": "elasticsearch", "index": "passages"}
    spec = make(of=server).config
    assert not RerankedRetriever.whole_corpus(spec)
    assert RerankedRetriever.index_place(spec) == REGISTRY.load("elasticsearch").index_place(spec.of)


def test_both_are_looked_at_before_anything_is_paid_for(make, request, tmp_path):
    lost = {"type": "python", "callable": "no_such_module:f", "folder": tmp_path}
    with pytest.raises(ConfigError, match="no_such_module"):
        make(by=lost).check()
    with pytest.raises(ConfigError, match="no_such_module"):
        make(of=lost).check()


def test_what_fails_is_one_sentence_and_none_is_left_running(make, ask, tmp_path):
    retriever = make()
    list(retriever.search([ask("a cat")]))
    (name,) = (path.stem for path in tmp_path.glob("user_*.py"))
    sys.modules[name].READ = None
    with pytest.raises(ProviderError, match=r"rerank raised AttributeError on the query 'a cat' with 2 passages"):
        list(retriever.search([ask("a cat"), ask("a wing", "q2")]))


def test_how_far_it_is_is_told(make, ask, context):
    told = []
    retriever = make()
    retriever.context = replace(context, progress=lambda *news: told.append(news))
    list(retriever.search([ask("a cat"), ask("a wing", "q2")]))
    assert told[-1] == ("reranked lists", 2, 2)


# --- in a run ---


def demo(folder: Path, **reranked: Any) -> Project:
    by = {"type": "python", "callable": "scores:rerank"}
    entry = {"type": "reranked", "of": {"type": "dense", "k": 12}, "by": by, "k": 8, **reranked}
    project = make_project(folder / "demo", retrieve={"retrievers": [{"type": "bm25", "k": 10}, entry]})
    (project.folder / "scores.py").write_text(SCORE)
    return project


def test_a_run_holds_its_hits_and_runs_again_when_the_reranker_changes(tmp_path):
    project = demo(tmp_path)
    done = raggs("run", "--config", project.config)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in (project.run / "retrieve.jsonl").read_text().splitlines()]
    assert {row["retriever"] for row in rows} == {"bm25", "reranked"}
    assert max(row["rank"] for row in rows if row["retriever"] == "reranked") == 8
    assert "Nothing to do" in raggs("run", "--config", project.config).stdout
    assert raggs("audit", project.run).returncode == 0
    (project.folder / "scores.py").write_text(SCORE + "\n# a word more\n")
    told = raggs("status", project.run, "--config", project.config).stdout
    assert "reranked" in told and "retrieve" in told


def test_without_an_embedder_dense_below_it_is_refused(tmp_path):
    project = demo(tmp_path)
    project.change(embed={"embedder": None})
    told = call("run", "--config", project.config, code=5).output
    assert "retriever reranked needs embed.embedder" in told


class PaidReranker(Reranker):
    """Stands for whoever asks a model."""

    PAID = True

    class Config(RerankerConfig):
        type: Literal["paid"] = "paid"

    @property
    def models(self):
        return ("openai/reranker",)

    async def rerank(self, query, language, passages):
        for passage in passages:
            request = ChatRequest(self.models[0], [{"role": "user", "content": passage.content}], {}, "relevance", dict)
            await self.context.llm.ask(request)
        return Reranking.of(passages, [0.0] * len(passages))


@pytest.fixture
def paid(tmp_path, monkeypatch):
    module = ModuleType("paid_reranker")
    module.Paid = PaidReranker
    monkeypatch.setitem(sys.modules, "paid_reranker", module)
    monkeypatch.setitem(rerankers.REGISTRY._entries, "paid", "paid_reranker:Paid")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    project = demo(tmp_path, by={"type": "paid"})
    project.change(llm={"prices": {"openai/reranker": {"input": 1.0, "output": 2.0}}})
    return project


def test_the_dry_run_counts_its_calls(paid):
    found = json.loads(call("run", "--config", paid.config, "--dry-run", "--json").output)
    (line,) = [line for line in found["estimates"] if line["stage"] == "retrieve"]
    assert (line["who"], line["calls"], line["exact"]) == ("openai/reranker", 4 * 12, False)
    assert line["usd"] == pytest.approx((line["input_tokens"] + 2 * line["output_tokens"]) / 1e6)
    assert found["usd"] >= line["usd"]


def test_its_key_is_looked_for_before_the_first_stage(paid):
    lack = "openai/reranker needs OPENAI_API_KEY, which is not set"
    assert lack in call("run", "--config", paid.config, code=3).output
    assert not (paid.run / "embed.jsonl").exists()
    assert lack in call("doctor", "--config", paid.config, code=3).output
    call("run", "--config", paid.config, "--to", "embed")


def test_one_that_pays_works_where_the_keys_are(paid):
    entries = paid.settings()["retrieve"]["retrievers"]
    assert not STAGE.by_query(RetrieveConfig.model_validate({"retrievers": entries}))
    assert STAGE.by_query(RetrieveConfig.model_validate({"retrievers": entries[:1]}))


def test_its_key_goes_to_no_new_address_unasked(paid, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(paid.folder))
    entry = paid.settings()["retrieve"]["retrievers"][0]
    named = {"type": "litellm", "model": "openai/embedder", "dims": 3}
    paid.change(embed={"embedder": named}, retrieve={"retrievers": [entry]}, llm={"api_base": "https://odd.example/v1"})
    told = call("run", "--config", paid.config, "--only", "retrieve", code=3).output
    assert "OPENAI_API_KEY would be sent to https://odd.example/v1" in told
