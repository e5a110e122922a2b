"""Questions by rules: what they ask, and that every excerpt is what stands there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.parts.chunkers.markdown import Outline
from raggs.stats.question_wording import ExtractedQuestion, TextSection, extract

GUIDE = """# Raggs

Raggs (a tool) is a tool that measures search. It is a joy. A chunk is a slice of a text.

## Install

### Linux

Install it with pip:

```
pip install raggs
# a heading is not here
```

## Configure the judge

The judge stands in the configuration file, under judge.

## Which stack to ship

Ship what is quick and cheap enough.

## Limitations

Nuggets are patterns that users write.

## See also

Everything else that there is to read.
"""
GUIDE_FR = """# Guide

## Raggs

Raggs est un outil de mesure. Il est une fois. Le module est une partie. La tour Eiffel a été construite en 1889.

## Installation

### Linux

Lancez la commande dans un terminal.

## Configurer le juge

Le juge se configure dans le fichier YAML.
"""


def asked(text: str, language: str = "en", document: str = "") -> dict[str, ExtractedQuestion]:
    sections = [TextSection(*each) for each in Outline(text).sections()]
    return {each.question: each for each in extract(text, sections, language, document=document)}


def test_headings_and_definitions_become_questions() -> None:
    assert list(asked(GUIDE)) == [
        "What is said about Raggs?",
        "What is raggs?",
        "What is a chunk?",
        "How do you install Raggs on Linux?",
        "How do you configure the judge?",
        "Which stack to ship (Raggs)?",
        "What are the limitations of Raggs?",
        "What are Nuggets?",
    ]


def test_french_has_its_own_rules() -> None:
    found = asked(GUIDE_FR, "fr")
    assert "Qu'est-ce que le module ?" in found
    assert "Quand a été construite la tour Eiffel ?" in found
    assert "Comment configurer le juge ?" in found
    assert "Comment installer Guide sous Linux ?" in found
    assert not any("Il " in question for question in found)


def test_a_vowel_elides_in_french() -> None:
    assert list(asked("Un index est une table triée.", "fr")) == ["Qu'est-ce qu'un index ?"]


def test_what_a_colon_announces_belongs_to_the_answer() -> None:
    text = "# Guide\n\n## Install it\n\nInstall it with pip, like this:\n\n```\npip install raggs\n```\n\nThen go on.\n"
    found = asked(text)["How do you install it?"]
    assert text[found.start : found.end].endswith("pip install raggs\n```")
    assert (found.kind, found.rule) == ("procedure", "heading")


@pytest.mark.parametrize(
    "sentence",
    [
        "It is a tool.",
        "This tool is a joy.",
        "Below is a list of tools.",
        "The second is a list of tools.",
        "There is a tool that does it.",
        "the tool is a fragment.",
        "A tool that hurts is a burden to those who which.",
        "Tools, all of them, is a subject with commas.",
    ],
)
def test_what_points_elsewhere_asks_nothing(sentence: str) -> None:
    assert not any(each.rule == "sentence" for each in asked(sentence).values())


def test_headings_that_point_elsewhere_ask_nothing() -> None:
    body = "Ten words that say what there is to say here."
    text = f"# Guide\n\n## What it costs\n\n{body}\n\n## Add …\n\n{body}\n\n## Index\n\n{body}\n"
    assert list(asked(text)) == [
        "What is said about Add … in Guide?",
        "What is said about Index in Guide?",
    ]


def test_a_first_word_that_is_no_name_is_small() -> None:
    assert "What are cities?" in asked("Cities are places of work. Many cities grow.")
    assert "What is Virginia?" in asked("Virginia is a state. Write to virginia@example.org.")


def test_a_fact_is_told_in_prose_and_a_procedure_also_in_code() -> None:
    text = "# Guide\n\n## A seal\n\n| a | b |\n|---|---|\n\nHashes that find edits, not forgers.\n\n"
    text += "## Install\n\n```\npip install raggs now\n```\n\n## Code\n\n```\nonly code in here\n```\n"
    found = asked(text)
    answers = {question: text[each.start : each.end] for question, each in found.items()}
    assert answers == {
        "What is said about a seal in Guide?": "Hashes that find edits, not forgers.",
        "How do you install Guide?": "```\npip install raggs now\n```",
    }


def test_code_and_tables_define_nothing() -> None:
    assert asked("| Tool is a thing. |\n|---|\n") == {}
    assert asked("```\nTool is a thing.\n```\n") == {}


def test_a_language_without_rules_asks_nothing() -> None:
    assert extract("Ein Pool ist ein Ding.", [TextSection((), 0, 22)], "de") == ()


def test_a_long_answer_ends_with_a_sentence() -> None:
    text = "# Guide\n\n## Install it\n\n" + "This is how it is done, step by step. " * 40
    found = asked(text)["How do you install it?"]
    assert found.end - found.start <= 600
    assert text[found.start : found.end].endswith("by step.")


TEXT = st.lists(
    st.sampled_from(
        ["# A", "## Install X", "A pool is a set of texts.", "\n\n", "```", "is a", "X? ", "word.", " ", "\n"]
    ),
    max_size=30,
).map("".join)


@given(text=TEXT | st.text(max_size=80), language=st.sampled_from(["en", "fr"]))
def test_every_excerpt_is_in_its_section_word_for_word(text: str, language: str) -> None:
    sections = [TextSection(*each) for each in Outline(text).sections()]
    found = extract(text, sections, language, document="the guide")
    assert found == extract(text, sections, language, document="the guide")
    assert len({each.question.casefold() for each in found}) == len(found)
    for each in found:
        excerpt = text[each.start : each.end]
        assert excerpt.strip() == excerpt != ""
        assert any(one.start <= each.start < each.end <= one.end for one in sections)
        assert each.question.endswith("?") and "\n" not in each.question
