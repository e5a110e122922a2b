"""Results of a comparison of chunkers as stored in chunks.json, and the command-line syntax of chunkers and embedders.

A chunker or embedder is one argument, such as ``recursive:400:overlap=200`` or ``onnx:models/minilm``. Its name comes
first. A value without ``=`` is its main setting: a chunker's size, a model's path or name, the length of a vector, or a
function. All other settings have the form ``name=value``. A setting may be a chunker or embedder itself. In this case,
its value is a name, and the inner settings follow after a dot:
``cluster:200:embedder=onnx:embedder.path=models/minilm``. The configuration class of the chunker or embedder validates
the settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from statistics import median
from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError

from raggs.base.adapter import Adapter, AdapterConfig, OneOf
from raggs.base.document import Column
from raggs.base.errors import UsageError
from raggs.base.jsonl import first_fault
from raggs.base.registry import Registry
from raggs.base.text import did_you_mean
from raggs.base.types import Number
from raggs.evaluation.messages import verdict_word
from raggs.evaluation.models import ReportPart, Verdict

TITLES = {"recall": "recall", "precision": "precision", "iou": "IoU", "f1": "F1", "precision_omega": "precision_Ω"}
TORN = "~"
Unit = Literal["characters", "tokens"]
Values = Mapping[str, tuple[Number, ...]]  # values by measure, one value per question


def points(value: Number) -> str | None:
    """Return a difference in points (hundredths), as text."""
    return None if value is None else f"{100 * value:+z.1f}"


class ChunkMeanPart(ReportPart):
    """Mean of one measure over questions."""

    mean: Number = Field(description="mean, 0 to 1; null if no question has a value")
    sd: Number = Field(description="population standard deviation over the questions")
    low: Number = Field(None, description="lower bound of the 95% interval of the mean")
    high: Number = Field(None, description="upper bound of the 95% interval of the mean")

    @property
    def plus_minus(self) -> str | None:
        """Mean and standard deviation in per cent, as text."""
        return None if self.mean is None or self.sd is None else f"{self.mean:.1%} ± {self.sd:.1%}".replace("%", "")


class ChunkerPart(ReportPart):
    """Chunks that one chunker made of all documents: number, lengths and time."""

    chunker: Annotated[str, Column("chunker")]
    chunks: Annotated[int, Column("chunks", text="{:,}")]
    mean_length: Annotated[float, Column("mean {unit}", text="{:,.0f}")] = Field(
        description="mean length of a chunk, in the unit of the report"
    )
    median_length: Annotated[float, Column("median", text="{:,.0f}")] = Field(
        description="median length of a chunk, in the unit of the report"
    )
    longest: Annotated[float, Column("longest", text="{:,.0f}")] = Field(
        description="length of the longest chunk, in the unit of the report"
    )
    seconds: Annotated[float, Column("seconds", text="{:,.2f}")] = Field(
        description="duration of the chunking of all documents"
    )
    megabytes: float = Field(description="size of the documents in UTF-8, in MB")

    @property
    def speed(self) -> Annotated[float, Column("MB/s", text="{:,.1f}")]:
        """Chunked text in megabytes per second."""
        return self.megabytes / max(self.seconds, 1e-9)


class ChunkSystemPart(ReportPart):
    """A chunker and an embedder at one cutoff."""

    system: Annotated[str, Column("chunker")]
    chunker: str
    embedder: str
    cutoff: Annotated[str, Column("k", legend="chunks retrieved; min: as many as overlap an excerpt")] = Field(
        description="number of chunks retrieved, or min: as many as overlap a reference excerpt"
    )
    retrieved: float = Field(description="mean number of chunks retrieved per question")
    retrieved_length: float = Field(
        description="mean total length of these chunks per question, in the unit of the report"
    )
    scores: Mapping[str, ChunkMeanPart] = Field(description="scores by measure, over all questions")
    by_corpus: Mapping[str, Mapping[str, ChunkMeanPart]] = Field(description="scores by document, then by measure")
    per_question: Values = Field(description="by measure, one value per entry of `questions`")


class ChunkComparisonPart(ReportPart):
    """Comparison of a system with the baseline on one measure at one cutoff, paired by question."""

    system: Annotated[str, Column("system")]
    cutoff: Annotated[str, Column("k")]
    measure: Annotated[str, Column("measure", text=TITLES.__getitem__)]
    difference: Annotated[Number, Column("difference in points", text=points, bounds=("low", "high"))]
    low: Number
    high: Number
    p: Annotated[Number, Column("p", text="{:.4f}")] = Field(
        description="p value of the randomisation test, corrected over the systems"
    )
    verdict: Annotated[Verdict, Column("verdict", text=verdict_word)]
    wins: int
    ties: int
    losses: int

    @property
    def turns(self) -> Annotated[str, Column("wins/ties/losses")]:
        """Numbers of questions on which the system is better than, equal to, and worse than the baseline."""
        return f"{self.wins}/{self.ties}/{self.losses}"


class ChunkReport(ReportPart):
    """Contents of chunks.json."""

    v: int = 2
    unit: Unit = Field(description="unit of lengths and measures")
    compat: bool = Field(description="whether the code of Chroma's report is followed instead of its formulas")
    seed: int
    baseline: str | None
    documents: Mapping[str, int] = Field(description="length of each document in characters")
    questions: tuple[str, ...] = Field(description="question ids")
    corpora: tuple[str, ...] = Field(description="for each question, the document that contains its first reference")
    chunkers: tuple[ChunkerPart, ...]
    systems: tuple[ChunkSystemPart, ...]
    comparisons: tuple[ChunkComparisonPart, ...]
    notes: tuple[str, ...]


class ChunkRow(ReportPart):
    """One chunk of a file."""

    number: Annotated[int, Column("#")]
    start: int = Field(description="offset of the first character, counted from 0")
    end: int = Field(description="offset of the first character after the chunk")
    tokens: Annotated[int, Column("tokens", text="{:,}")] = Field(description="number of tokens (cl100k)")
    first: Annotated[str, Column("begins")] = Field(description="first words")
    last: str = Field(description="last words")
    torn: bool = Field(description="whether the chunk ends within a sentence")
    title: str = Field("", description="title of the passage")

    @property
    def place(self) -> Annotated[str, Column("place")]:
        """Character range of the chunk, as ``start:end``."""
        return f"{self.start}:{self.end}"

    @property
    def ending(self) -> Annotated[str, Column("ends")]:
        """Last words of the chunk, with a mark if the chunk ends within a sentence."""
        return f"{self.last} {TORN}" if self.torn else self.last


class CutFile(ReportPart):
    """Chunks of one file."""

    file: str
    characters: int
    lost: Annotated[
        int,
        Column("lost", text="{:,}", legend="characters in no chunk, without white space"),
    ] = Field(description="characters in no chunk, without white space")
    repeated: Annotated[int, Column("repeated", text="{:,}", legend="characters in several chunks")] = Field(
        description="characters in several chunks"
    )
    chunks: Annotated[tuple[ChunkRow, ...], Column("chunks", text=lambda chunks: f"{len(chunks):,}")]

    @property
    def sizes(self) -> list[int]:
        """Sizes of the file's chunks in tokens; a single 0 if it has none."""
        return [chunk.tokens for chunk in self.chunks] or [0]

    @property
    def median(self) -> Annotated[float, Column("median", text="{:,.0f}")]:
        """Median size of the file's chunks in tokens."""
        return median(self.sizes)

    @property
    def longest(self) -> Annotated[int, Column("longest", text="{:,}")]:
        """Size of the file's largest chunk in tokens."""
        return max(self.sizes)

    @property
    def torn(self) -> Annotated[int, Column("torn", text="{:,}", legend="chunks that end within a sentence")]:
        """Number of chunks that end within a sentence."""
        return sum(chunk.torn for chunk in self.chunks)


class CutReport(ReportPart):
    """Chunks of the files of a folder."""

    files: tuple[CutFile, ...]
    notes: tuple[str, ...] = Field((), description="sentences about files that were skipped")


MAIN = ("size", "max_words", "max_size", "path", "model", "callable", "dims")
NULL_VALUE = "null"
TRUTHS = {"true": True, "false": False}

C = TypeVar("C", bound=AdapterConfig)


def split_names(given: Iterable[str], what: str, remedy: str) -> tuple[str, ...]:
    """Return the items of comma-separated lists.

    Raises:
        UsageError: no item is given, or an item is given twice.
    """
    found = [word.strip() for each in given for word in each.split(",") if word.strip()]
    if not found:
        raise UsageError(f"no {what} is given", remedy=remedy)
    if twice := next((word for word in found if found.count(word) > 1), None):
        raise UsageError(f"the {what} {twice} is given twice", remedy="give it once")
    return tuple(found)


def parse_spec(text: str, registry: Registry[Adapter], kind: type[C]) -> C:
    """Return the configuration that one argument describes, an instance of `kind`.

    Raises:
        UsageError: the chunker or embedder, or a setting, is unknown; or a value is invalid.
        PrerequisiteError: the package that the chunker or embedder needs is not installed.
    """
    name, *rest = text.split(":")
    config = registry.load(name).Config
    values: dict[str, object] = {"type": name}
    for key, value in _settings(text, rest, config):
        _set_value(values, key, value, config, text)
    try:
        found = _validated(config, values)
    except ValidationError as error:
        raise UsageError(f"{text}: {first_fault(error)}", remedy=f"see: raggs list {registry.group}") from error
    if not isinstance(found, kind):
        raise TypeError(f"the settings of {name} are not a {kind.__name__}")
    return found


def spec_name(config: AdapterConfig) -> str:
    """Return a short argument for a chunker or embedder.

    This is its type, followed by its main setting if that setting does not have its default value. Other settings are
    omitted.
    """
    fields = type(config).model_fields
    main = next((name for name in MAIN if name in fields), None)
    value = None if main is None else getattr(config, main)
    usual = main is None or value == fields[main].get_default(call_default_factory=True)
    return config.type if usual else f"{config.type}:{value}"


def _settings(text: str, parts: Sequence[str], config: type[AdapterConfig]) -> Iterator[tuple[str, str]]:
    """Yield names and values of settings. The main setting may contain colons, as functions and some model names do."""
    main = next((name for name in MAIN if name in config.model_fields), None)
    first = list(takewhile(lambda part: "=" not in part, parts)) if main else []
    if main and first:
        yield main, ":".join(first).strip()
    for part in parts[len(first) :]:
        key, equals, value = part.partition("=")
        if not equals:
            raise UsageError(f"{text}: {part!r} is not a setting", remedy="write settings as name=value")
        yield key.strip(), value.strip()


def _set_value(values: dict[str, object], key: str, value: str, config: type[AdapterConfig], text: str) -> None:
    """Set one value.

    Raises:
        UsageError: the setting does not exist or is already set.
    """
    outer, dot, inner = key.partition(".")
    if outer not in config.model_fields:
        known = did_you_mean(outer, config.model_fields)
        raise UsageError(f"{text}: {values['type']} has no setting {outer!r}", remedy=known)
    part = any(isinstance(mark, OneOf) for mark in config.model_fields[outer].metadata)
    held = values.setdefault(outer, {}) if part else values
    name = inner if part and dot else "type" if part else key
    if not isinstance(held, dict) or name in held:
        raise UsageError(f"{text}: {key} is set twice", remedy="set it once")
    held[name] = None if value == NULL_VALUE else value


def _validated(config: type[AdapterConfig], values: dict[str, object]) -> AdapterConfig:
    """Return the validated settings. If a value is invalid as a string, it is tried as an integer or a boolean.

    Raises:
        ValidationError: a value is also invalid as an integer or a boolean.
    """
    try:
        return config.model_validate(values)
    except ValidationError as error:
        wrong = {str(each["loc"][0]) for each in error.errors(include_url=False) if each["loc"]}
        return config.model_validate({key: _read(each) if key in wrong else each for key, each in values.items()})


def _read(value: object) -> object:
    if isinstance(value, dict):
        return {key: _read(each) for key, each in value.items()}
    if not isinstance(value, str):
        return value
    try:
        return int(value)
    except ValueError:
        return TRUTHS.get(value, value)
