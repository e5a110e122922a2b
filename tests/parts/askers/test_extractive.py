"""Questions by rule, through the asker: of the window, none twice, in two languages."""

from __future__ import annotations

import asyncio

from raggs.llm import LLM, BudgetSettings, LLMSettings
from raggs.parts.askers import AskerContext, Assignment, Question
from raggs.parts.askers.offline import NO_QUESTION_ERROR, ExtractiveAsker

GUIDE = "# Ships\n\nA keel is a beam of oak that runs along a ship. The mast is a pole that carries sails.\n"
GUIDE_FR = "# Bateaux\n\nLa quille est une poutre de chêne. Le mât est un poteau qui porte les voiles.\n"


def asked(text: str, *earlier: str, language: str = "en") -> Question:
    context = AskerContext(LLM(LLMSettings(), BudgetSettings(), None))
    asker = ExtractiveAsker(ExtractiveAsker.Config(), context)
    return asyncio.run(asker.ask(Assignment("q1", (text,), language=language, earlier=earlier)))


def test_every_excerpt_stands_in_the_window_and_no_question_comes_twice() -> None:
    for text, language in ((GUIDE, "en"), (GUIDE_FR, "fr")):
        earlier: list[str] = []
        while (found := asked(text, *earlier, language=language)).text is not None:
            assert found.text not in earlier
            assert all(excerpt in text for excerpt in found.excerpts) and found.excerpts
            earlier.append(found.text)
        assert found.error == NO_QUESTION_ERROR and len(earlier) >= 2


def test_a_window_without_anything_to_ask_about_is_told() -> None:
    for text in ("", "...", "1 2 3\n", "| a | b |\n|---|---|\n| 1 | 2 |\n"):
        assert asked(text).error == NO_QUESTION_ERROR


def test_a_rule_above_a_title_is_no_word_of_it() -> None:
    """reStructuredText draws a line above a title as well."""
    text = "====\nLoom\n====\n\nIt weaves.\n\nWarp\n----\n\nThreads under tension run lengthwise here.\n"
    earlier: list[str] = []
    while (found := asked(text, *earlier).text) is not None:
        earlier.append(found)
    assert any("Loom" in each for each in earlier) and not any("=" in each for each in earlier), earlier
