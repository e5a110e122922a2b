"""What holds for every corpus, whoever wrote it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.elastic import fill

from raggs.artifacts import Passage
from raggs.corpora import REGISTRY
from raggs.corpora.elasticsearch import ElasticsearchConfig, ElasticsearchCorpus
from raggs.errors import NotFoundError


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """Makes a corpus with its smallest source; one that needs another kind of source says so by failing here."""

    def made(name: str) -> Any:
        if name == "elasticsearch":
            url = request.getfixturevalue("elastic_url")
            texts = {"b": {"text": "Some text.", "title": "One"}, "a": {"text": "Other text."}}
            return ElasticsearchCorpus(ElasticsearchConfig(url=url, index=fill(url, texts)))
        return from_files(name, tmp_path)

    return made


def from_files(name: str, folder: Path) -> Any:
    adapter: Any = REGISTRY.load(name)
    if "path" not in adapter.Config.model_fields:
        return adapter(adapter.Config())
    if name == "folder":
        path = folder / "texts"
        path.mkdir()
        (path / "b c.md").write_text("# One\n\nSome text.\n\n" + "More of it. " * 100)
        (path / "a.txt").write_text("Other text.")
    else:
        path = folder / "corpus"
        path.write_text('{"_id": "b", "text": "Some text.", "title": "One"}\n{"_id": "a", "text": "Other text."}\n')
    return adapter(adapter.Config(path=path))


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
    monkeypatch.setattr("raggs.settings.hash_file", lambda path: pytest.fail(f"reads {path}"))
    assert corpus.causes()["type"] == name
