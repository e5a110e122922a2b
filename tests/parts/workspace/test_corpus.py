"""A corpus that was named: what is told of its passages."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from raggs.base.cache import Cache
from raggs.base.types import Notice, ignore_progress
from raggs.parts.corpora.elasticsearch import ElasticsearchConfig
from raggs.parts.corpora.folder import FolderConfig
from raggs.parts.elastic.passages import IndexPassages
from raggs.parts.workspace import OpenCorpus

URL = "http://127.0.0.1:9"  # nobody is asked


def test_replaced_characters_of_single_passages_are_told_when_the_corpus_is_closed(tmp_path: Path) -> None:
    told: list[object] = []
    corpus = OpenCorpus(ElasticsearchConfig(url=URL, index="i"), Cache.of(tmp_path), told.append)
    passages = corpus.passages(whole=False)
    assert isinstance(passages, IndexPassages)
    for number in range(5):
        passages.passage({"_id": f"d{number}", "_source": {"text": "half \ud800" if number else "fine"}})
    assert told == []
    corpus.close()
    corpus.close()
    (notice,) = map(str, told)
    assert "4 passages with invalid characters, replaced by U+FFFD: d1, d2, d3, …" in notice


def test_nothing_is_told_of_sound_passages(tmp_path: Path) -> None:
    told: list[object] = []
    corpus = OpenCorpus(ElasticsearchConfig(url=URL, index="i"), Cache.of(tmp_path), told.append)
    corpus.passages(whole=False)
    corpus.close()
    assert told == []


def test_what_was_left_out_is_told_whenever_the_corpus_is_opened(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in {"a.md": "words", "b.md": " ", "c.docx": "x"}.items():
        (folder / name).write_text(text)
    heard: list[list[str]] = []
    for _ in range(2):
        heard.append([])
        corpus = OpenCorpus(
            FolderConfig(path=folder),
            Cache.of(tmp_path / "runs"),
            lambda news: heard[-1].append(news.message) if isinstance(news, Notice) else None,
        )
        assert len(corpus.store) == 1
        corpus.close()
    assert heard[0] == heard[1] == ["skipped 1 file: 1 .docx (no reader: c.docx)", "1 file without text skipped: b.md"]


def test_documents_are_told_of_as_passages_are_and_nothing_twice(tmp_path: Path) -> None:
    for name, text in {"docs/a.md": "words", "docs/b.md": " ", "docs/c.docx": "x"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    told: list[object] = []
    corpus = OpenCorpus(FolderConfig(path=tmp_path / "docs"), Cache.of(tmp_path / "runs"), told.append)
    assert len(list(corpus.documents())) == 2
    assert len(corpus.store) == 1
    corpus.close()
    assert len([each for each in told if isinstance(each, Notice)]) == 2


def test_passages_of_another_corpus_are_not_searched_under_its_name(tmp_path: Path) -> None:
    heard: list[str] = []

    def passages(name: str) -> tuple[list[str], Path]:
        corpus = OpenCorpus(
            FolderConfig(path=tmp_path / name),
            Cache.of(tmp_path / "runs", heard.append),
            ignore_progress,
        )
        found = [passage.text for passage in corpus.store], corpus.store.path
        corpus.close()
        return found

    for name, text in {"one": "a wing", "two": "a tail"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(text)
    (texts, one), (others, two) = passages("one"), passages("two")
    one.rename(tmp_path / "aside")
    two.rename(one)
    (tmp_path / "aside").rename(two)
    assert (passages("one")[0], passages("two")[0]) == (texts, others)
    said = "the passage store is damaged (passages.sqlite does not match its recorded checksum), so it is built again"
    assert [line.partition(": ")[2] for line in heard] == [said] * 2
    one.write_bytes(b"no database")
    assert passages("one")[0] == texts
    assert heard[2].endswith(said)


def test_an_altered_text_is_never_searched(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("a wing")
    heard: list[object] = []
    for _ in range(2):
        corpus = OpenCorpus(
            FolderConfig(path=tmp_path / "docs"), Cache.of(tmp_path / "runs", heard.append), ignore_progress
        )
        assert [passage.text for passage in corpus.store] == ["a wing"]
        path = corpus.store.path
        corpus.close()
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE passages SET text = 'a tail'")
    assert len(heard) == 1
