"""What holds for every corpus, whoever wrote it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.contracts import settings_of

from raggs.base.artifacts import Passage
from raggs.base.errors import NotFoundError
from raggs.parts.corpora import REGISTRY


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """Makes a corpus with its smallest source."""

    def made(name: str) -> Any:
        adapter: Any = REGISTRY.load(name)
        return adapter(adapter.Config(**settings_of("corpora", name, tmp_path, request)))

    return made


@pytest.mark.parametrize("name", list(REGISTRY))
def test_passages_have_ids_of_their_own_and_text(name: str, make: Callable[[str], Any]) -> None:
    passages = list(make(name).passages())
    assert len(passages) > 1
    assert all(isinstance(passage, Passage) and passage.text.strip() == passage.text for passage in passages)
    assert len({passage.doc_id for passage in passages}) == len(passages)
    assert all(len(passage.doc_id.split()) == 1 for passage in passages), "TREC files separate columns by white space"


@pytest.mark.parametrize("name", list(REGISTRY))
def test_two_readings_give_the_same(name: str, make: Callable[[str], Any]) -> None:
    corpus = make(name)
    before = corpus.source_hash()
    first = list(corpus.passages())
    assert list(corpus.passages()) == first
    assert corpus.source_hash() == before
    again = type(corpus)(corpus.config)
    assert (again.source_hash(), list(again.passages())) == (before, first)
    assert list(corpus.left_out) == []


@pytest.mark.parametrize("name", [name for name in REGISTRY if "path" in REGISTRY.load(name).Config.model_fields])
def test_the_hash_follows_the_source_and_a_missing_one_is_named(
    name: str, make: Callable[[str], Any], tmp_path: Path
) -> None:
    corpus = make(name)
    before = corpus.source_hash()
    path: Path = corpus.config.path
    changed = path / "a.txt" if path.is_dir() else path
    changed.write_text(changed.read_text().replace("Other", "Another"))
    assert corpus.source_hash() != before
    gone = type(corpus)(corpus.Config(path=tmp_path / "gone"))
    for act in (gone.source_hash, lambda: list(gone.passages())):
        with pytest.raises(NotFoundError, match="gone"):
            act()


@pytest.mark.parametrize("name", list(REGISTRY))
def test_the_settings_alone_read_no_source(
    name: str, make: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its content is the hash's business: a large source is read once, not twice, before a run begins."""
    corpus = make(name)
    monkeypatch.setattr("raggs.base.settings.hash_file", lambda path: pytest.fail(f"reads {path}"))
    assert corpus.causes()["type"] == name
