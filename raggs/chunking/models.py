"""What a comparison of chunkers found, as chunks.json keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from raggs.base.types import Number
from raggs.evaluation.models import Part, Verdict

Unit = Literal["characters", "tokens"]
Values = Mapping[str, tuple[Number, ...]]  # by measure, one a question


class Mean(Part):
    """Of one measure over questions."""

    mean: Number = Field(description="0 to 1; null where no question has a value")
    sd: Number = Field(description="population standard deviation over the questions")
    low: Number = Field(None, description="of the interval of the mean")
    high: Number = Field(None, description="of the interval of the mean")


class ChunkerPart(Part):
    """How one chunker cut all documents."""

    chunker: str
    chunks: int
    mean_length: float = Field(description="in the report's unit")
    median_length: float = Field(description="in the report's unit")
    longest: float = Field(description="in the report's unit")
    seconds: float = Field(description="that the chunker took for all documents")
    megabytes: float = Field(description="of the documents, in UTF-8")


class SystemPart(Part):
    """A chunker and an embedder at one cutoff."""

    system: str
    chunker: str
    embedder: str
    cutoff: str = Field(description="chunks that are retrieved: a number, or min: as many as hold something")
    retrieved: float = Field(description="chunks a question, in the mean")
    retrieved_length: float = Field(description="of these together a question, in the report's unit, in the mean")
    scores: Mapping[str, Mean] = Field(description="by measure, over all questions")
    by_corpus: Mapping[str, Mapping[str, Mean]] = Field(description="by document, then by measure")
    per_question: Values = Field(description="by measure, a value for each of `questions`")


class ComparisonPart(Part):
    """A system against the baseline on one measure at one cutoff, paired by question."""

    system: str
    cutoff: str
    measure: str
    difference: Number
    low: Number
    high: Number
    p: Number = Field(description="of the randomisation test, corrected over the systems")
    verdict: Verdict
    wins: int
    ties: int
    losses: int


class ChunkReport(Part):
    """chunks.json."""

    v: int = 2
    unit: Unit = Field(description="what lengths and measures count")
    compat: bool = Field(description="whether the report's code is followed in place of its formulas")
    seed: int
    baseline: str | None
    documents: Mapping[str, int] = Field(description="characters of each document")
    questions: tuple[str, ...] = Field(description="ids")
    corpora: tuple[str, ...] = Field(description="of each question, the document of its first reference")
    chunkers: tuple[ChunkerPart, ...]
    systems: tuple[SystemPart, ...]
    comparisons: tuple[ComparisonPart, ...]
    notes: tuple[str, ...]


class ChunkRow(Part):
    """One chunk of a file."""

    number: int
    start: int = Field(description="the first character, counted from 0")
    end: int = Field(description="the first character after it")
    tokens: int = Field(description="of the vocabulary cl100k")
    first: str = Field(description="its first words")
    last: str = Field(description="its last words")
    torn: bool = Field(description="whether its end falls into a sentence")
    title: str = Field("", description="its passage's title")


class CutFile(Part):
    """How one file is cut."""

    file: str
    characters: int
    lost: int = Field(description="characters other than white space that no chunk holds")
    repeated: int = Field(description="characters that several chunks hold")
    chunks: tuple[ChunkRow, ...]


class CutReport(Part):
    """How the files of a folder are cut."""

    files: tuple[CutFile, ...]
    notes: tuple[str, ...] = Field((), description="what was left out of the folder, a sentence each")
