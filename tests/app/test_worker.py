"""A worker's services: what it has from the client, and that it cannot spend."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.llm_server import LLMServer
from support.project import make_project

from raggs.app.worker import WorkerServices, run_shard
from raggs.base import registry
from raggs.base.errors import BudgetError, PrerequisiteError
from raggs.base.registry import Package
from raggs.config.load import load_config
from raggs.llm import ChatRequest
from raggs.runs.execution.channel import ShardJob


@pytest.fixture
def services(tmp_path: Path, server: LLMServer) -> Iterator[WorkerServices]:
    embedder = {"type": "litellm", "model": "openai/small", "dims": 4}
    project = make_project(tmp_path, embed={"embedder": embedder}, llm={"api_base": server.url})
    job = ShardJob(
        stage="retrieve",
        config=load_config(project.config).run.model_dump_json(),
        folder=tmp_path,
        passages=None,
        topic="",
        asks="somebody",
        embedder="litellm/openai/small/4/as the client knows it",
        dims=4,
        causes={},
        versions={},
    )
    made = WorkerServices(job)
    yield made
    made.close()


def test_vectors_are_those_of_the_client(services: WorkerServices, server: LLMServer) -> None:
    embedder = services.embedder
    assert embedder is not None
    assert (embedder.identity, embedder.dims) == ("litellm/openai/small/4/as the client knows it", 4)
    with pytest.raises(PrerequisiteError, match="cannot read the vectors"):
        embedder.embed(["a"])
    assert server.count == 0


def test_no_call_is_made(services: WorkerServices, server: LLMServer) -> None:
    request = ChatRequest(
        model="ollama/any",
        messages=(),
        schema={},
        schema_name="grade",
        check=lambda answer: answer,
        max_output_tokens=1,
    )
    with pytest.raises(BudgetError):
        services.workspace.loop.run(services.workspace.llm.ask(request))
    assert server.count == 0
    assert not services.workspace.cache.at("llm").folder.exists()


def test_a_judge_who_is_asked_at_the_client_has_his_name(services: WorkerServices) -> None:
    assert services.judge.name == "somebody"
    with pytest.raises(PrerequisiteError, match="no shard is in progress"):
        asyncio.run(services.judge.order(None, ()))  # type: ignore[arg-type]


def test_the_package_of_a_plugin_in_use_is_compared(services: WorkerServices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        registry, "_packages", {object(): Package("their-plugin", "1.2"), object(): Package("pip", "0")}
    )
    assert registry.loaded_versions() == {"pip": "0", "their-plugin": "1.2"}
    job = services.job.model_copy(update={"versions": {"their-plugin": "1.2"}})
    with pytest.raises(PrerequisiteError, match="a worker has their-plugin None"):
        run_shard(job.model_dump_json(), 0)
