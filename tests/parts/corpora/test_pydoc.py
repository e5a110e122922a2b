"""The reference that ships with Python, as passages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from pydoc_data.topics import topics
from types import ModuleType
from typing import Any

import pytest
from pydantic import ValidationError

from raggs.base.errors import PrerequisiteError
from raggs.parts.chunkers.sentence import TokenChunker
from raggs.parts.corpora.pydoc import PydocConfig, PydocCorpus


def test_some_hundred_passages_that_are_slices_of_the_topics() -> None:
    found = list(PydocCorpus(PydocConfig()).passages())
    assert 300 < len(found) < 1000
    assert len({passage.doc_id for passage in found}) == len(found)
    for passage in found:
        place = passage.span
        assert place is not None
        assert topics[place.source][place.start : place.end] == passage.text
        assert len(passage.text.split()) <= 200
        assert passage.doc_id.rpartition("#")[0] == place.source
    titles = {passage.doc_id: passage.title for passage in found}
    assert titles["yield#1"] == 'The "yield" statement'
    assert not [title for title in titles.values() if not title or set(title) <= set("*=-~")]


def test_every_word_of_every_topic_is_in_a_passage() -> None:
    words: dict[str, list[str]] = {}
    for passage in PydocCorpus(PydocConfig(max_words=50)).passages():
        assert passage.span is not None
        words.setdefault(passage.span.source, []).extend(passage.text.split())
    assert words == {topic: text.split() for topic, text in topics.items()}


def test_the_hash_follows_the_content(monkeypatch: pytest.MonkeyPatch) -> None:
    first = PydocCorpus(PydocConfig()).source_hash()
    assert PydocCorpus(PydocConfig(max_words=50)).source_hash() == first
    monkeypatch.setitem(topics, "yield", topics["yield"] + " more")
    assert PydocCorpus(PydocConfig()).source_hash() != first


def test_a_python_without_its_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = ModuleType("pydoc_data.topics")
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", empty)
    with pytest.raises(PrerequisiteError, match="pydoc_data") as caught:
        PydocCorpus(PydocConfig()).source_hash()
    assert caught.value.remedy


def test_the_texts_are_not_loaded_before_they_are_asked_for() -> None:
    """They are 700 kB, and every command imports this module to know its settings."""
    script = "import sys, raggs.parts.corpora.pydoc; print('pydoc_data.topics' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    return {}


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("chunker", [{"type": "markdown", "size": 100}, {"type": "recursive", "size": 100}])
def test_a_chunker_cuts_the_topics(chunker: dict[str, Any]) -> None:
    read = PydocCorpus(PydocConfig.model_validate({"chunker": chunker}))
    texts = {each.source: each.text for each in read.documents()}
    assert texts == topics
    found = [passage for passage in read.passages() if passage.span and passage.span.source in ("yield", "with")]
    assert len(found) > 2
    assert all(texts[each.span.source][each.span.start : each.span.end] == each.text for each in found if each.span)
    assert any(each.text.startswith('The "with" statement') for each in found)


def test_causes_are_those_of_before_until_a_chunker_is_named() -> None:
    plain = PydocCorpus(PydocConfig())
    assert plain.causes() == {"type": "pydoc", "max_words": 200, "version": 1, "packages": {}}
    cut = PydocCorpus(PydocConfig().recut(TokenChunker.Config(size=50)))
    assert cut.causes()["chunker"] == TokenChunker(TokenChunker.Config(size=50)).causes()


def test_two_sizes_are_one_too_many() -> None:
    with pytest.raises(ValidationError, match="set it in the chunker"):
        PydocConfig.model_validate({"max_words": 50, "chunker": {"type": "token"}})
