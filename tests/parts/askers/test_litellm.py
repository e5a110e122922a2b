"""A language model that asks: what it is told, and which of its answers are refused."""

from __future__ import annotations

from typing import Any

import pytest
from support.llm_asking import SPOILT, asked
from support.llm_server import LLMServer

from raggs.llm import LLMSettings
from raggs.parts.askers import REGISTRY, Assignment, Question
from raggs.parts.askers.litellm import check_question
from raggs.parts.workspace import Workspace

GOOD = {"oath": "one thing", "question": " What\nis  it? ", "references": ["It is a keel. "]}


def test_a_question_stands_on_one_line_and_excerpts_stay_as_they_are() -> None:
    assert check_question(GOOD, "fact") == ("What is it?", ("It is a keel. ",))
    assert check_question(GOOD | {"references": []}, "unanswerable")[1] == ()


@pytest.mark.parametrize("spoilt", SPOILT.values(), ids=list(SPOILT))
def test_an_answer_that_cannot_be_used_is_told_why(spoilt: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r'"(oath|question|references)" must'):
        check_question(GOOD | spoilt, "fact")


def test_an_unanswerable_question_has_no_excerpts() -> None:
    with pytest.raises(ValueError, match="stay empty"):
        check_question(GOOD, "unanswerable")


def ask(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, faults: list[str | None], **given: Any) -> tuple[Question, Any]:
    monkeypatch.setenv("OPENAI_API_KEY", "none-of-your-business")
    with LLMServer(faults=faults) as server:
        workspace = Workspace(tmp_path, LLMSettings(api_base=server.url, backoff_s=0.01))
        asker = workspace.asker(REGISTRY.load("litellm").Config(type="litellm", model="openai/gpt-5-nano"))
        found = workspace.loop.run(asker.ask(Assignment("q1", **given)))
        workspace.close()
        return found, server.requests


def test_it_sees_windows_and_earlier_questions_between_marks(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = ("The keel of the ship is a beam of oak.", "The mast of the ship is a beam of pine.")
    found, (body,) = ask(
        tmp_path,
        monkeypatch,
        [],
        windows=windows,
        kind="comparison",
        persona="a\nsailor",
        style="conversational",
        earlier=("What is a keel?",),
    )
    assert found.excerpts == windows
    system, user = (message["content"] for message in body["messages"])
    assert "untrusted" in system
    assert "Kind: comparison\nStyle: conversational\nAsked by: a sailor" in user
    assert user.count("<data-") == 3
    assert asked(user)["references"] == list(windows)


def test_french_windows_are_asked_about_in_french(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, (body,) = ask(tmp_path, monkeypatch, [], windows=("La quille est en chêne.",), language="fr")
    assert body["messages"][1]["content"].startswith("Genre : fact")


def test_a_cut_answer_is_asked_for_again_and_a_hopeless_one_says_so(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = ("The keel of the ship is a beam of oak.",)
    found, requests = ask(tmp_path / "1", monkeypatch, ["truncated", "no oath", None], windows=window)
    assert found.excerpts == window and len(requests) == 3
    found, _ = ask(tmp_path / "2", monkeypatch, ["no oath"] * 9, windows=window)
    assert found.text is None and '"oath" must' in (found.error or "") and found.raw
