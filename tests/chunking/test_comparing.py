"""Chunkers compared: what is retrieved from all documents, scores by document, verdicts, and the files."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from raggs.base.artifacts import Query, Reference, Span
from raggs.base.document import markdown
from raggs.base.errors import DataError
from raggs.chunking.comparing import ChunkStudy, EmbeddingFunctions, compare_chunkers
from raggs.chunking.documents import Documents, chunk_documents
from raggs.chunking.layout import lay_out, write_files
from raggs.chunking.models import ChunkReport, Unit
from raggs.chunking.questions import place_questions
from raggs.metrics.spans import MEASURES, Cutoff
from raggs.parts.chunkers import Chunker, ChunkerConfig, Document

WORDS = ("red", "green", "blue", "grey")
DOCUMENTS = Documents(Path("docs"), ("a.md", "b.md"), ("red red. green green.", "blue blue. grey. red red."))


class SentencesConfig(ChunkerConfig):
    type: Literal["sentences"] = "sentences"


class Sentences(Chunker):
    """Cuts behind each full stop."""

    def places(self, document: Document) -> Iterator[tuple[int, int]]:
        return (match.span() for match in re.finditer(r"\S[^.]*\.", document.text))


class Whole(Chunker):
    """Does not cut."""

    def places(self, document: Document) -> Iterator[tuple[int, int]]:
        yield 0, len(document.text)


class Nothing(Chunker):
    """Gives nothing."""

    def places(self, document: Document) -> Iterator[tuple[int, int]]:
        return iter(())


CUTTERS = {"sentences": Sentences(SentencesConfig()), "whole": Whole(SentencesConfig())}


def counts(texts: Sequence[str]) -> np.ndarray:
    """How often each of WORDS stands in a text, at unit length."""
    vectors = np.array([[text.count(word) for word in WORDS] for text in texts], dtype=np.float32)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def query(qid: str, word: str, source: str, start: int, end: int) -> Query:
    text = DOCUMENTS.texts[DOCUMENTS.names.index(source)][start:end]
    return Query(qid=qid, text=word, references=(Reference(text=text, span=Span(source=source, start=start, end=end)),))


QUERIES = {
    "q1": query("q1", "green", "a.md", 9, 21),
    "q2": query("q2", "grey", "b.md", 11, 16),
    "q3": query("q3", "red", "b.md", 17, 25),
}


def compared(*, cutoffs: Sequence[Cutoff] = (1,), compat: bool = False, unit: Unit = "characters") -> ChunkReport:
    study = ChunkStudy(
        documents=DOCUMENTS,
        asked=place_questions(QUERIES, DOCUMENTS, Path("q.csv")),
        cuts={name: chunk_documents(each, DOCUMENTS, compat=compat) for name, each in CUTTERS.items()},
        embeddings={"counts": EmbeddingFunctions(counts, counts)},
        cutoffs=cutoffs,
        compat=compat,
        unit=unit,
    )
    return compare_chunkers(study)


def values(report: ChunkReport, system: str, measure: str, cutoff: str = "1") -> tuple[float | None, ...]:
    [found] = [part for part in report.systems if (part.system, part.cutoff) == (system, cutoff)]
    return found.per_question[measure]


def test_chunks_of_all_documents_are_searched_together() -> None:
    report = compared()
    # "red red." stands first in a.md: another document's chunk, as good a match and no answer
    assert values(report, "sentences", "recall") == (1.0, 1.0, 0.0)
    assert values(report, "sentences", "precision") == (1.0, 1.0, 0.0)
    assert values(report, "whole", "recall") == (1.0, 1.0, 0.0)
    assert values(report, "whole", "precision_omega") == pytest.approx((12 / 21, 5 / 25, 8 / 25))


def test_every_cutoff_is_scored() -> None:
    report = compared(cutoffs=("min", 2))
    assert values(report, "sentences", "recall", "min") == (1.0, 1.0, 0.0)
    assert values(report, "sentences", "recall", "2") == (1.0, 1.0, 1.0)
    assert values(report, "sentences", "precision", "2")[2] == 0.5


def test_means_are_over_all_questions_and_by_document() -> None:
    part = compared().systems[0]
    assert part.scores["recall"].mean == pytest.approx(2 / 3)
    assert part.scores["recall"].sd == pytest.approx((2 / 9) ** 0.5)
    assert {name: scores["recall"].mean for name, scores in part.by_corpus.items()} == {"a.md": 1.0, "b.md": 0.5}


def test_others_meet_the_baseline_on_the_same_questions() -> None:
    found = {part.measure: part for part in compared().comparisons}
    assert set(found) == set(MEASURES)
    assert (found["recall"].wins, found["recall"].ties, found["recall"].losses) == (0, 3, 0)
    assert found["precision"].losses == 2
    assert found["precision"].verdict == "inconclusive"  # three questions prove nothing


def test_in_compat_a_chunk_stands_where_its_text_stands_first() -> None:
    plain, compat = (
        chunk_documents(CUTTERS["sentences"], DOCUMENTS),
        chunk_documents(CUTTERS["sentences"], DOCUMENTS, compat=True),
    )
    assert plain.spans.end.tolist() == [8, 21, 10, 16, 25]
    assert compat.spans.end.tolist() == [7, 20, 9, 15, 24]  # without its full stop
    twice = Documents(Path("docs"), ("a",), ("same. other. same.",))
    assert chunk_documents(CUTTERS["sentences"], twice, compat=True).spans.start.tolist() == [0, 6, 0]


def test_tokens_can_be_counted_and_change_shares_only() -> None:
    characters, tokens = compared(), compared(unit="tokens")
    assert values(tokens, "sentences", "recall") == values(characters, "sentences", "recall")
    assert tokens.chunkers[1].mean_length < characters.chunkers[1].mean_length
    assert tokens.unit == "tokens"


def test_a_chunker_that_gives_nothing_is_told() -> None:
    with pytest.raises(DataError, match="produced no chunks"):
        chunk_documents(Nothing(SentencesConfig()), DOCUMENTS)


def test_the_files_hold_the_report_each_value_and_the_tables(tmp_path: Path) -> None:
    report = compared(cutoffs=("min", 1))
    files = write_files(report, tmp_path / "new")
    plots = ["recall-over-length.svg", "iou.svg"]
    assert [file.name for file in files] == ["chunks.json", "chunks.csv", "chunks.md", *plots]
    assert all(f"({name})" in (tmp_path / "new" / "chunks.md").read_text() for name in plots)
    assert ChunkReport.model_validate(json.loads(files[0].read_text())) == report
    rows = list(csv.DictReader(files[1].open()))
    assert len(rows) == 2 * 2 * 3
    assert (rows[0]["system"], rows[0]["k"], rows[0]["qid"], rows[0]["document"]) == ("sentences", "min", "q1", "a.md")
    text = files[2].read_text()
    assert "## Compared with sentences" in text
    assert "## By document" in text
    assert "| whole | 1 | **66.7 ± 47.1** |" in text


def test_compat_is_said_on_the_page() -> None:
    assert "computed as in the code of Chroma's report" in markdown(lay_out(compared(compat=True)))
