"""What a comparison of chunkers found, as chunks.json keeps it.

Parts as one word on the command line: ``recursive:400:overlap=200``, ``onnx:models/minilm``.

First the part's name; what follows without ``=`` is its main setting (a chunker's size, a model's path or name, a
vector's length, a function), everything else a setting by name. A setting that is a part itself is named by its type,
its settings behind a dot: ``cluster:200:embedder=onnx:embedder.path=models/minilm``. The part's own configuration
checks them.
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
from raggs.evaluation.models import ReportPart, Verdict

TITLES = {"recall": "recall", "precision": "precision", "iou": "IoU", "f1": "F1", "precision_omega": "precision_Ω"}
TORN = "~"
Unit = Literal["characters", "tokens"]
Values = Mapping[str, tuple[Number, ...]]  # by measure, one a question


def points(value: Number) -> str | None:
    """A difference in hundredths."""
    return None if value is None else f"{100 * value:+z.1f}"


class ChunkMeanPart(ReportPart):
    """Of one measure over questions."""

    mean: Number = Field(description="0 to 1; null where no question has a value")
    sd: Number = Field(description="population standard deviation over the questions")
    low: Number = Field(None, description="of the interval of the mean")
    high: Number = Field(None, description="of the interval of the mean")

    @property
    def plus_minus(self) -> str | None:
        """Mean and standard deviation in per cent."""
        return None if self.mean is None or self.sd is None else f"{self.mean:.1%} ± {self.sd:.1%}".replace("%", "")


class ChunkerPart(ReportPart):
    """How one chunker cut all documents."""

    chunker: Annotated[str, Column("chunker")]
    chunks: Annotated[int, Column("chunks", text="{:,}")]
    mean_length: Annotated[float, Column("mean {unit}", text="{:,.0f}")] = Field(description="in the report's unit")
    median_length: Annotated[float, Column("median", text="{:,.0f}")] = Field(description="in the report's unit")
    longest: Annotated[float, Column("longest", text="{:,.0f}")] = Field(description="in the report's unit")
    seconds: Annotated[float, Column("seconds", text="{:,.2f}")] = Field(
        description="that the chunker took for all documents"
    )
    megabytes: float = Field(description="of the documents, in UTF-8")

    @property
    def speed(self) -> Annotated[float, Column("MB/s", text="{:,.1f}")]:
        """Megabytes a second."""
        return self.megabytes / max(self.seconds, 1e-9)


class ChunkSystemPart(ReportPart):
    """A chunker and an embedder at one cutoff."""

    system: Annotated[str, Column("chunker")]
    chunker: str
    embedder: str
    cutoff: Annotated[str, Column("k", legend="chunks retrieved; min: as many as hold something of an excerpt")] = (
        Field(description="chunks that are retrieved: a number, or min: as many as hold something")
    )
    retrieved: float = Field(description="chunks a question, in the mean")
    retrieved_length: float = Field(description="of these together a question, in the report's unit, in the mean")
    scores: Mapping[str, ChunkMeanPart] = Field(description="by measure, over all questions")
    by_corpus: Mapping[str, Mapping[str, ChunkMeanPart]] = Field(description="by document, then by measure")
    per_question: Values = Field(description="by measure, a value for each of `questions`")


class ChunkComparisonPart(ReportPart):
    """A system against the baseline on one measure at one cutoff, paired by question."""

    system: Annotated[str, Column("system")]
    cutoff: Annotated[str, Column("k")]
    measure: Annotated[str, Column("measure", text=TITLES.__getitem__)]
    difference: Annotated[Number, Column("difference in points", text=points, bounds=("low", "high"))]
    low: Number
    high: Number
    p: Annotated[Number, Column("p", text="{:.4f}")] = Field(
        description="of the randomisation test, corrected over the systems"
    )
    verdict: Annotated[Verdict, Column("verdict")]
    wins: int
    ties: int
    losses: int

    @property
    def turns(self) -> Annotated[str, Column("wins/ties/losses")]:
        """On how many questions it is better, equal and worse."""
        return f"{self.wins}/{self.ties}/{self.losses}"


class ChunkReport(ReportPart):
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
    systems: tuple[ChunkSystemPart, ...]
    comparisons: tuple[ChunkComparisonPart, ...]
    notes: tuple[str, ...]


class ChunkRow(ReportPart):
    """One chunk of a file."""

    number: Annotated[int, Column("#")]
    start: int = Field(description="the first character, counted from 0")
    end: int = Field(description="the first character after it")
    tokens: Annotated[int, Column("tokens", text="{:,}")] = Field(description="of the vocabulary cl100k")
    first: Annotated[str, Column("begins")] = Field(description="its first words")
    last: str = Field(description="its last words")
    torn: bool = Field(description="whether its end falls into a sentence")
    title: str = Field("", description="its passage's title")

    @property
    def place(self) -> Annotated[str, Column("place")]:
        """From which character to which."""
        return f"{self.start}:{self.end}"

    @property
    def ending(self) -> Annotated[str, Column("ends")]:
        """Its last words, with a sign if it is torn."""
        return f"{self.last} {TORN}" if self.torn else self.last


class CutFile(ReportPart):
    """How one file is cut."""

    file: str
    characters: int
    lost: Annotated[
        int,
        Column("lost", text="{:,}", legend="characters that no chunk holds, white space aside"),
    ] = Field(description="characters other than white space that no chunk holds")
    repeated: Annotated[int, Column("repeated", text="{:,}", legend="characters that several hold")] = Field(
        description="characters that several chunks hold"
    )
    chunks: Annotated[tuple[ChunkRow, ...], Column("chunks", text=lambda chunks: f"{len(chunks):,}")]

    @property
    def sizes(self) -> list[int]:
        """The tokens of its chunks."""
        return [chunk.tokens for chunk in self.chunks] or [0]

    @property
    def median(self) -> Annotated[float, Column("median", text="{:,.0f}")]:
        """Of the sizes."""
        return median(self.sizes)

    @property
    def longest(self) -> Annotated[int, Column("longest", text="{:,}")]:
        """Of the sizes."""
        return max(self.sizes)

    @property
    def torn(self) -> Annotated[int, Column("torn", text="{:,}", legend="chunks that end inside of a sentence")]:
        """How many."""
        return sum(chunk.torn for chunk in self.chunks)


class CutReport(ReportPart):
    """How the files of a folder are cut."""

    files: tuple[CutFile, ...]
    notes: tuple[str, ...] = Field((), description="what was left out of the folder, a sentence each")


MAIN = ("size", "max_words", "max_size", "path", "model", "callable", "dims")
NULL_VALUE = "null"
TRUTHS = {"true": True, "false": False}

C = TypeVar("C", bound=AdapterConfig)


def split_names(given: Iterable[str], what: str, remedy: str) -> tuple[str, ...]:
    """The words of lists that are separated by commas.

    Raises:
        UsageError: there is none, or one stands twice.
    """
    found = [word.strip() for each in given for word in each.split(",") if word.strip()]
    if not found:
        raise UsageError(f"no {what} is named", remedy=remedy)
    if twice := next((word for word in found if found.count(word) > 1), None):
        raise UsageError(f"the {what} {twice} is named twice", remedy="name it once")
    return tuple(found)


def parse_spec(text: str, registry: Registry[Adapter], kind: type[C]) -> C:
    """The settings that one word stands for, of the class that all adapters of this kind have.

    Raises:
        UsageError: no such part, no such setting, or a value that does not fit.
        PrerequisiteError: the part's package is missing.
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
        raise TypeError(f"{name} has the settings of something else")
    return found


def spec_name(config: AdapterConfig) -> str:
    """The shortest word that says which part it is: its type, and its main setting where that is not the usual one."""
    fields = type(config).model_fields
    main = next((name for name in MAIN if name in fields), None)
    value = None if main is None else getattr(config, main)
    usual = main is None or value == fields[main].get_default(call_default_factory=True)
    return config.type if usual else f"{config.type}:{value}"


def _settings(text: str, parts: Sequence[str], config: type[AdapterConfig]) -> Iterator[tuple[str, str]]:
    """Names and values; the main setting may hold colons, as functions and some models' names do."""
    main = next((name for name in MAIN if name in config.model_fields), None)
    first = list(takewhile(lambda part: "=" not in part, parts)) if main else []
    if main and first:
        yield main, ":".join(first).strip()
    for part in parts[len(first) :]:
        key, equals, value = part.partition("=")
        if not equals:
            raise UsageError(f"{text}: {part!r} is no setting", remedy="write settings as name=value")
        yield key.strip(), value.strip()


def _set_value(values: dict[str, object], key: str, value: str, config: type[AdapterConfig], text: str) -> None:
    """Set one value.

    Raises:
        UsageError: there is no such setting, or it is set already.
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
    """The settings, with words as they are, or, where one does not fit, as the number or the truth that it writes.

    Raises:
        ValidationError: neither fits.
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
