"""What a question asks for, by its first words."""

from __future__ import annotations

import pytest

from raggs.stats.retrieval_traits import asked_by, holds_identifier, holds_number, length_of

KINDS = [
    ("en", "How many wings has it?", "how many"),
    ("en", "how does lift arise", "how"),
    ("en", "In which year was it built?", "which"),
    ("en", "What does anyone know of how it works?", "what"),
    ("en", "Is there a theory of how it works?", "yes or no"),
    ("en", "Show me the parameters of a boundary layer.", "otherwise"),
    ("en", "boundary layer parameters", "by keywords"),
    ("fr", "Qu’est-ce qu’un décorateur ?", "what"),
    ("fr", "Est-ce que Python est typé ?", "yes or no"),
    ("fr", "Python est-il typé ?", "yes or no"),
    ("fr", "En quelle année est-il né ?", "which"),
    ("fr", "De quoi parle-t-il ?", "what"),
    ("fr", "Qu’a-t-on mesuré ?", "what"),
    ("fr", "Où se trouve la gare ?", "where"),
    ("de", "Wie viele Räder hat es?", "how many"),
    ("es", "¿Por qué vuela?", "why"),
    ("it", "Chi ha scritto questo?", "who"),
    ("pt", "O que é um avião?", "what"),
    ("nl", "Hoeveel kost het?", "how many"),
    ("ja", "何ですか", ""),
]


@pytest.mark.parametrize(("language", "text", "kind"), KINDS)
def test_the_kind_of_a_question_is_read_off_its_opening(language: str, text: str, kind: str) -> None:
    assert asked_by(text, language) == kind


def test_numbers_and_identifiers_are_seen_and_words_are_not() -> None:
    assert holds_number("at Mach 2") and not holds_number("at Mach two")
    held = ["what is os.path", "use parse_args", "the JSON format", "what does fooBar do", "call open()", "with --yes"]
    assert all(map(holds_identifier, held))
    assert not any(
        map(holds_identifier, ["What is a wing?", "the end. Then what", "WHAT IS A WING?", "it's so", "a b-c"])
    )
    assert length_of("L'aile d’un avion, well-known") == 4
