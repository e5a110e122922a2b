"""Windows and what is asked about them: all parts in turn, shares kept, longer samples that begin with shorter ones."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.asking import document

from raggs.parts.askers import KINDS
from raggs.stages.base import StageWork
from raggs.stages.questions.records import SampleRecord, Text
from raggs.stages.questions.sample import STAGE, SampleConfig, interleaved_names, windows_of

FRENCH = "La quille est une poutre de chêne qui court sous le navire. Le mât est un poteau qui porte les voiles.\n" * 9


def sampled(texts: list[str], **settings: Any) -> list[SampleRecord]:
    documents = [Text(f"d{number}.md", text) for number, text in enumerate(texts)]
    services: Any = SimpleNamespace(documents=documents, asker=SimpleNamespace(kinds=KINDS))
    return list(STAGE.run(StageWork({}), SampleConfig(**settings), services))


TEXTS = [document(0), document(1) * 4, document(2), FRENCH]


def test_every_window_is_a_slice_and_every_part_has_its_turn() -> None:
    count = windows_of(TEXTS, 500)
    found = sampled(TEXTS, n=count, window=500, types={"fact": 1})
    seen = [set[int]() for _ in TEXTS]
    for record in found:
        (window,) = record.windows
        number = int(window.source[1])
        assert TEXTS[number][window.start : window.end] == window.text
        seen[number].update(range(window.start, window.end))
    for text, places in zip(TEXTS, seen, strict=True):
        assert len(places) > 0.95 * len(text.strip())


def test_a_longer_sample_begins_with_the_shorter_one() -> None:
    few, many = (sampled(TEXTS, n=n, window=400, conversational=0.3, personas=("a", "b")) for n in (7, 60))
    assert many[:7] == few
    assert [record.qid for record in many] == sorted(record.qid for record in many)
    assert [record.persona for record in few] == ["a", "b"] * 3 + ["a"]
    assert sampled(TEXTS, n=7, window=400, seed=1) != few


def test_types_come_by_their_shares_and_comparisons_have_two_windows_that_do_not_overlap() -> None:
    mix = {"fact": 5, "comparison": 3, "unanswerable": 2}
    found = sampled(TEXTS, n=50, window=400, types=mix)
    assert Counter(record.kind for record in found) == {"fact": 25, "comparison": 15, "unanswerable": 10}
    for record in found:
        assert len(record.windows) == (2 if record.kind == "comparison" else 1)
        first, *others = record.windows
        for other in others:
            assert first.source != other.source or first.end <= other.start or other.end <= first.start


def test_without_a_second_window_nothing_is_compared() -> None:
    assert [record.kind for record in sampled(["A keel is oak."], n=3, types={"comparison": 1})] == ["fact"] * 3


def test_a_window_speaks_its_own_language() -> None:
    assert {record.language for record in sampled([FRENCH], n=2)} == {"fr"}


@given(st.dictionaries(st.sampled_from(KINDS), st.integers(0, 9), min_size=1).filter(lambda mix: sum(mix.values()) > 0))
def test_each_beginning_keeps_the_shares(mix: dict[str, int]) -> None:
    names = interleaved_names(mix, 60)
    for length in (1, 7, 30, 60):
        for name, share in mix.items():
            assert abs(names[:length].count(name) - length * share / sum(mix.values())) <= len(mix)
            assert share or name not in names


@pytest.mark.parametrize("mix", [{}, {"fact": 0}, {"fact": -1, "list": 2}, {"fakt": 1}])
def test_a_mix_that_means_nothing_is_refused(mix: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        SampleConfig(types=mix)
