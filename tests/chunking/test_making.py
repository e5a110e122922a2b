"""Documents cut by a paid chunker: many at once, whatever goes wrong on the way, and what it would take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.llm_bench import MODEL, PRICE
from support.llm_server import LLMServer

from raggs.base.errors import AuthenticationError, ProviderError
from raggs.chunking.documents import ChunkingResult, foresee, make_cuts
from raggs.llm import BudgetSettings, LLMSettings
from raggs.parts.chunkers import Document
from raggs.parts.chunkers.llm import LlmChunker
from raggs.parts.chunkers.paid import PaidChunker
from raggs.parts.workspace import Workspace

LINE = "In letter number {number} of volume {name} the keeper speaks of fog, of ships and of his cat."
NAMES = "abcdefgh"
DOCUMENTS = [
    Document("\n".join(LINE.format(name=name, number=number) for number in range(20)), f"{name}.md") for name in NAMES
]
FAULTS = ("500", "reset", "truncated", "split below", "split text", "prose", "cut body", None)
Open = Callable[..., tuple[Workspace, PaidChunker]]


@pytest.fixture
def opened(server: LLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Open:

    def make(**settings: Any) -> tuple[Workspace, PaidChunker]:
        given = {"api_base": server.url, "prices": {MODEL: PRICE}, "timeout_s": 20, "backoff_s": 0.001, **settings}
        workspace = Workspace(tmp_path / "runs", LLMSettings(**given), BudgetSettings(max_usd=5.0))
        request.addfinalizer(workspace.close)
        chunker = workspace.chunker(LlmChunker.Config(model=MODEL, piece=30, window=120))
        assert isinstance(chunker, PaidChunker)
        return workspace, chunker

    return make


def test_documents_are_cut_side_by_side(server: LLMServer, opened: Open) -> None:
    server.delay_s = 0.02
    workspace, chunker = opened(concurrency=4)
    told: list[int] = []
    made = make_cuts(chunker, DOCUMENTS, workspace, told.append)
    assert (made.cut, made.before, made.lost, made.failed) == (8, 0, 0, ())
    assert made.asked == server.count and told == list(range(1, 9))
    assert 1 < server.peak <= 4


def test_whatever_goes_wrong_the_cuts_are_those_of_an_undisturbed_hour(server: LLMServer, opened: Open) -> None:
    server.faults = [*FAULTS * 5, "429:0"]  # a refusal slows what comes after it, so it comes late
    workspace, chunker = opened(concurrency=2, max_repairs=8, max_attempts=20)
    made = make_cuts(chunker, DOCUMENTS, workspace)
    assert (made.cut, made.lost, made.failed) == (8, 0, ())
    found = [[chunk.text.count("letter") for chunk in chunker.chunk(document)] for document in DOCUMENTS]
    assert all(sizes == found[0] and set(sizes[:-1]) == {3} for sizes in found)
    assert not server.paid_twice and not server.faults


def test_a_refused_key_stops_at_once(server: LLMServer, opened: Open) -> None:
    server.fault_for = lambda *_: "401"
    workspace, chunker = opened(concurrency=1)
    with pytest.raises(AuthenticationError):
        make_cuts(chunker, DOCUMENTS, workspace)
    assert server.count <= 4, "those that were begun before the first answer was looked at"


def test_a_provider_that_is_gone_stops_and_what_was_answered_is_kept(server: LLMServer, opened: Open) -> None:
    server.fault_for = lambda number, _: "500" if number > 6 else None
    workspace, chunker = opened(concurrency=1, max_attempts=1, outage_after=3)
    with pytest.raises(ProviderError):
        make_cuts(chunker, DOCUMENTS, workspace)
    assert server.count <= 6 + 2 * 3
    workspace.loop.run(workspace.llm.arrive())  # as any command does: what was on its way is claimed until then
    server.fault_for = None
    workspace, chunker = opened()
    made = make_cuts(chunker, DOCUMENTS, workspace)
    assert made.cut + made.before == 8
    assert not server.paid_twice


def test_a_forecast_asks_nobody_and_knows_what_is_paid(server: LLMServer, opened: Open) -> None:
    workspace, chunker = opened()
    with workspace.rehearsal() as llm:
        assert foresee(chunker, DOCUMENTS, workspace, llm) == (8, 0)
        before = llm.asked(MODEL, chunker.TASK)
    assert (server.count, before.guessed) == (0, True)
    make_cuts(chunker, DOCUMENTS[:3], workspace)
    with workspace.rehearsal() as llm:
        assert foresee(chunker, DOCUMENTS, workspace, llm) == (5, 3)
        assert 0 < llm.asked(MODEL, chunker.TASK).calls < before.calls
    assert abs(before.calls - 8 * server.count / 3) <= 0.25 * 8 * server.count / 3


def test_documents_without_text_are_cut_already(server: LLMServer, opened: Open) -> None:
    workspace, chunker = opened()
    assert make_cuts(chunker, [Document(" \n"), Document("")], workspace).before == 2
    assert server.count == 0


def test_what_came_of_it_is_one_sentence() -> None:
    made = ChunkingResult(cut=2, before=1, asked=9, lost=1, failed=("b.md could not be cut",))
    assert str(made) == (
        "2 documents chunked, 1 already chunked; 9 windows sent to the model, of which 1 had no usable answer and were "
        "split at their ends; 1 document could not be chunked"
    )
