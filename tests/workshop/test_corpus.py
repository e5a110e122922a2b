"""A corpus that was named: what is told of its passages."""

from __future__ import annotations

from pathlib import Path

from raggs.corpora.elasticsearch import ElasticsearchConfig
from raggs.elastic.passages import IndexPassages
from raggs.indexes.places import Places
from raggs.workshop.corpus import OpenCorpus

URL = "http://127.0.0.1:9"  # nobody is asked


def test_replaced_characters_of_single_passages_are_told_when_the_corpus_is_closed(tmp_path: Path) -> None:
    told: list[object] = []
    corpus = OpenCorpus(ElasticsearchConfig(url=URL, index="i"), Places.of(tmp_path), told.append)
    passages = corpus.passages(whole=False)
    assert isinstance(passages, IndexPassages)
    for number in range(5):
        passages.passage({"_id": f"d{number}", "_source": {"text": "half \ud800" if number else "fine"}})
    assert told == []
    corpus.close()
    corpus.close()
    (notice,) = map(str, told)
    assert "4 passages with U+FFFD in place of what is no character: d1, d2, d3, …" in notice


def test_nothing_is_told_of_sound_passages(tmp_path: Path) -> None:
    told: list[object] = []
    corpus = OpenCorpus(ElasticsearchConfig(url=URL, index="i"), Places.of(tmp_path), told.append)
    corpus.passages(whole=False)
    corpus.close()
    assert told == []
