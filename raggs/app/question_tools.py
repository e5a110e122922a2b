"""Tools for questions: calibration of filter thresholds, import from logs, and configuration for a folder of documents.

Calibration shows how many questions each threshold would remove, and pairs of texts that help you choose the threshold.

The import turns logs of users into questions: cleaned and counted. Questions with detected personal data are masked or
set aside. The import runs locally: WordLlama finds near-duplicates, or LSA if WordLlama is not installed. From a log,
raggs reads one column. It stores the text of an entry, its language, its frequency, and where the text occurs first.
Each entry is counted once: as a question, as flagged, or under the reason for which it was dropped.

The configuration is created for users who have only documents. It is stored next to the questions, so that
`raggs questions`, `raggs run` and `raggs eval` use it.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from raggs.base.adapter import AdapterConfig
from raggs.base.arrays import Floats
from raggs.base.artifacts import Query
from raggs.base.errors import ConfigError, DataError, RaggsError, UsageError
from raggs.base.files import disk, write_atomic
from raggs.base.languages import detect_language
from raggs.base.text import clean_unicode, did_you_mean, one_line, plural
from raggs.base.types import BuildProgress
from raggs.chunking.models import parse_spec
from raggs.config.load import load_config
from raggs.config.models import RunConfig
from raggs.config.source import parse_value, read_source, split_key
from raggs.llm import BudgetSettings
from raggs.parts import askers, embedders
from raggs.parts import queries as formats
from raggs.parts.embedders import (
    FALLBACK_EMBEDDER,
    PACKAGED_EMBEDDER,
    Embedder,
    EmbedderConfig,
    FittingTexts,
    default_embedder,
)
from raggs.parts.queries import format_of
from raggs.parts.queries.fields import made_id
from raggs.parts.queries.logs import read_log
from raggs.parts.queries.writing import write_queries
from raggs.parts.workspace import Workspace, open_queries
from raggs.runs.events import Listener, ignore_event, in_loop, run_in_thread
from raggs.stats.personal_data import (
    KINDS,
    PersonalSpan,
    QuestionLines,
    fault,
    group_lines,
    mask_personal_data,
    merge_near_lines,
    near_duplicate_key,
    personal_data,
)
from raggs.stats.personal_data import PersonalKind as personal_Kind
from raggs.stats.question_filters import (
    Thresholds,
    ThresholdSearch,
    duplicates,
    excerpt_cosines,
    furthest_excerpt,
    histogram,
    irrelevant,
    nearest_earlier,
    thresholds_for,
)

__all__ = [
    "CalibrateRequest",
    "Kind",
    "ThresholdCalibration",
    "ThresholdPairs",
    "ThresholdSearch",
    "Thresholds",
    "calibrate",
]

Kind = Literal["duplicate", "excerpt"]
CORPUS = "corpus_id"


@dataclass(frozen=True)
class CalibrateRequest:
    """Input of a calibration.

    Attributes:
        questions: file of questions, optionally with excerpts.
        embedder: specification of the embedder, as on the command line; None for the default embedder.
        corpus: name of a corpus, to use only the questions about it; None for all questions.
        workspace: folder of the caches.
        max_usd: cost limit of the embedder, in USD.
    """

    questions: Path
    embedder: str | None = None
    corpus: str | None = None
    workspace: Path = Path()
    max_usd: float = 5.0


@dataclass(frozen=True)
class ThresholdPairs:
    """Pairs of texts whose similarity is compared with a threshold.

    Attributes:
        kind: "duplicate" for pairs of a question and its most similar predecessor; "excerpt" for pairs of a question
            and its least similar excerpt.
        texts: both texts of each pair.
        cosines: cosine similarity of each pair, shape (pairs,).
    """

    kind: Kind
    texts: tuple[tuple[str, str], ...]
    cosines: Floats

    @property
    def histogram(self) -> tuple[tuple[float, int], ...]:
        """Return the lower bound and the count of each bin of cosines (`raggs.stats.question_filters.histogram`)."""
        return histogram(self.cosines)


@dataclass(frozen=True)
class ThresholdCalibration:
    """Embedded questions, and their pairs with other texts.

    Attributes:
        questions: number of questions.
        embedder: identity of the embedder; cosines of other embedders have another scale.
        usual: default thresholds of this embedder; for a corpus of Chroma's report, the thresholds of that corpus.
        pairs: pairs by kind.
    """

    questions: int
    embedder: str
    usual: Thresholds
    pairs: Mapping[Kind, ThresholdPairs]
    _vectors: tuple[np.ndarray[tuple[int, ...], np.dtype[np.float32]], ...]
    _owner: tuple[int, ...]

    def gone(self, thresholds: Thresholds) -> dict[Kind, int]:
        """Return how many of all questions each threshold removes."""
        vectors, excerpts = self._vectors
        return {
            "duplicate": len(duplicates(vectors, thresholds.duplicate)),
            "excerpt": len(irrelevant(vectors, excerpts, self._owner, thresholds.excerpt)),
        }


def calibrate(request: CalibrateRequest, listen: Listener = ignore_event) -> ThresholdCalibration:
    """Embed questions and excerpts, and form the pairs for the thresholds. Works in notebooks.

    Raises:
        RaggsError: the file is invalid, the embedder is unknown or failed, or no question is about the corpus.
    """
    if in_loop():
        return run_in_thread(lambda hear: calibrate(request, hear), listen)
    specs = parse_spec(request.embedder or default_embedder()["type"], embedders.REGISTRY, EmbedderConfig)
    reader = formats.REGISTRY.load(format_of(request.questions)).Config.model_validate({"path": request.questions})
    queries = _questions_of_corpus(request, list(open_queries(reader, listen).values()))
    with Workspace(request.workspace, budget=BudgetSettings(max_usd=request.max_usd), hear=listen) as workspace:
        excerpts = FittingTexts.of([each.text for query in queries for each in query.references])
        embedder = workspace.embedder(specs).fitted(excerpts)
        return _pair_and_score(queries, embedder, thresholds_for(request.corpus or "", specs.type))


def _questions_of_corpus(request: CalibrateRequest, queries: list[Query]) -> list[Query]:
    """Return the questions about the corpus."""
    if request.corpus is None:
        return queries
    found = [query for query in queries if request.corpus in _corpora(query)]
    if not found:
        known = sorted({name for query in queries for name in _corpora(query)})
        if not known:
            raise DataError("no question names its corpus", where=request.questions, remedy="omit --corpus")
        remedy = did_you_mean(request.corpus, known)
        raise UsageError(f"no question is about {request.corpus!r}", remedy=remedy)
    return found


def _corpora(query: Query) -> set[str]:
    """Return the names of corpora and documents that a question refers to."""
    named = query.metadata.get(CORPUS)
    spans = {each.span.source for each in query.references if each.span is not None}
    return {*spans, *([named] if isinstance(named, str) else [])}


def _pair_and_score(queries: list[Query], embedder: Embedder, usual: Thresholds) -> ThresholdCalibration:
    texts = [query.text for query in queries]
    excerpts = [(number, each.text) for number, query in enumerate(queries) for each in query.references]
    owner = [number for number, _ in excerpts]
    vectors = embedder.embed_queries(texts)
    held = embedder.embed([text for _, text in excerpts]) if excerpts else np.empty((0, embedder.dims), np.float32)
    near, nearest = nearest_earlier(vectors)
    far, furthest = furthest_excerpt(excerpt_cosines(vectors, held, owner), owner)
    pairs: dict[Kind, ThresholdPairs] = {
        "duplicate": ThresholdPairs(
            "duplicate", tuple((texts[of], texts[row + 1]) for row, of in enumerate(nearest)), near
        ),
        "excerpt": ThresholdPairs("excerpt", tuple((texts[owner[row]], excerpts[row][1]) for row in furthest), far),
    }
    return ThresholdCalibration(len(queries), embedder.identity, usual, pairs, (vectors, held), tuple(owner))


MAX_LSA_DIMS = 1024
DEFAULT_NEAR_COSINE = 0.92  # WordLlama's cosine above which two questions count as the same
LINES_PER_PROGRESS = 5000
MIN_LANGUAGE_SHARE = 0.05
NO_TEXT = "no text"


@dataclass(frozen=True)
class ImportRequest:
    """Input and options of an import.

    Attributes:
        logs: log files; see `raggs.parts.queries.logs.read_log`.
        out: file of the questions (.jsonl, .csv or .yaml); None to report the result without writing a file.
        column: column with the texts, in tables and JSON lines.
        allow: kinds of personal data that may remain in questions.
        mask: whether other personal data is replaced by its kind; if not, questions with such data are set aside.
        near: cosine above which two questions count as the same; 1 keeps all distinct texts.
        language: language of all questions; None to detect it per question.
        force: whether to overwrite files.
    """

    logs: Sequence[Path]
    out: Path | None = None
    column: str | None = None
    allow: Collection[str] = ()
    mask: bool = False
    near: float = DEFAULT_NEAR_COSINE
    language: str | None = None
    force: bool = False


@dataclass(frozen=True)
class QuestionImportResult:
    """Result of an import.

    Attributes:
        entries: number of entries in all logs.
        dropped: number of entries that are not questions, by reason.
        questions: imported questions, the most frequent first.
        same, near: number of entries with the words of another entry, and of questions merged into a similar one.
        flagged: number of questions set aside, by kind of personal data; a question may have several kinds.
        flagged_questions, flagged_entries: number of all questions set aside, and of their entries.
        masked: number of distinct texts with replaced personal data, by kind.
        languages: number of questions by language, the most frequent first.
        files: written files.
    """

    entries: int
    dropped: Mapping[str, int]
    questions: tuple[Query, ...]
    same: int
    near: int
    flagged: Mapping[str, int]
    flagged_questions: int
    flagged_entries: int
    masked: Mapping[str, int]
    languages: Mapping[str, int]
    files: tuple[Path, ...]


@dataclass
class _Read:
    """Entries read so far, with each distinct text once.

    Attributes:
        entries: number of entries.
        dropped: number of dropped entries, by reason.
        asked: frequency of each distinct text, in order of first occurrence.
        lines: number of the entry in which each text first occurs, from 1.
        places: file and line of each of these entries, by its number.
    """

    entries: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    lines: dict[str, int] = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)

    def add(self, text: str | None, place: str) -> None:
        """Count one entry, and store its text if it is a question."""
        self.entries += 1
        clean = "" if text is None else one_line(clean_unicode(text))
        reason = NO_TEXT if text is None else fault(clean)
        if reason is not None:
            self.dropped[reason] += 1
            return
        self.asked[clean] += 1
        if self.asked[clean] == 1:
            self.lines[clean] = self.entries
            self.places[self.entries] = place


@dataclass
class _Sorted:
    """Distinct texts, separated by whether they contain personal data."""

    sound: list[QuestionLines] = field(default_factory=list)
    flagged: list[QuestionLines] = field(default_factory=list)
    kinds: dict[str, tuple[personal_Kind, ...]] = field(default_factory=dict)
    masked: Counter[str] = field(default_factory=Counter)


def flagged_file(out: Path) -> Path:
    """Return the path of the file for questions with personal data, next to the file of the other questions."""
    return out.with_name(f"{out.stem}.flagged.jsonl")


def import_logs(request: ImportRequest, listen: Listener = ignore_event) -> QuestionImportResult:
    """Import questions from logs.

    Raises:
        UsageError: a kind or format is unknown, or a file exists.
        NotFoundError, DataError: a log cannot be read, or contains no question.
        ProviderError: the file cannot be written.
    """
    _check(request)
    read = _read(request)
    told = _sort(read, request, listen)
    sound, flagged = group_lines(told.sound), group_lines(told.flagged)
    if not sound and not flagged:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in read.dropped.most_common())
        said = f"none of {plural(read.entries, 'entry')} is a question" + (f" ({reasons})" if reasons else "")
        raise DataError(said, where=request.logs[0], remedy="check the file, or pass --column NAME")
    kept = _merge_near_duplicates(sound, request)
    questions = tuple(_query(each, read, request) for each in kept)
    aside = tuple(_query(each, read, request, told.kinds.get(each.text, ())) for each in flagged)
    return QuestionImportResult(
        entries=read.entries,
        dropped=dict(read.dropped.most_common()),
        questions=questions,
        same=sum(each.count for each in (*sound, *flagged)) - len(sound) - len(flagged),
        near=len(sound) - len(kept),
        flagged=dict(Counter(kind for each in flagged for kind in told.kinds.get(each.text, ())).most_common()),
        flagged_questions=len(flagged),
        flagged_entries=sum(each.count for each in flagged),
        masked=dict(told.masked.most_common()),
        languages=dict(Counter(query.language or "" for query in questions).most_common()),
        files=tuple(_write_questions(request, questions, aside)),
    )


def _check(request: ImportRequest) -> None:
    """Check the request before any log is read."""
    for kind in request.allow:
        if kind not in KINDS:
            raise UsageError(f"{kind!r} is not a kind of personal data", remedy=did_you_mean(kind, KINDS))
    if request.out is not None:
        format_of(request.out)
        for path in (request.out, flagged_file(request.out)):
            if path.exists() and not request.force:
                raise UsageError(f"{path} exists", remedy="name another --out, or pass --force to replace it")


def _read(request: ImportRequest) -> _Read:
    read = _Read()
    for path in request.logs:
        for line, text in read_log(path, request.column):
            read.add(text, f"{path.name}:{line}")
    return read


def _sort(read: _Read, request: ImportRequest, listen: Listener) -> _Sorted:
    """Sort the distinct texts into those to keep (masked if requested) and those to set aside."""
    told = _Sorted()
    spoken = {text: request.language or detect_language(text) for text in read.asked}
    usual = _common_languages(Counter(spoken.values()))
    for number, (text, count) in enumerate(read.asked.items()):
        if number % LINES_PER_PROGRESS == 0:
            listen(BuildProgress("personal data", number, len(read.asked)))
        found = [each for each in personal_data(text, spoken[text], *usual) if each.kind not in request.allow]
        asked = QuestionLines(text, read.lines[text], count)
        if not found:
            told.sound.append(asked)
        elif request.mask:
            told.sound.append(QuestionLines(mask_personal_data(text, found), asked.line, count))
            told.masked.update({each.kind for each in found})
        else:
            told.flagged.append(asked)
            told.kinds[text] = _kinds(found)
    return told


def _common_languages(languages: Counter[str]) -> list[str]:
    """Return the languages of at least 5% of the texts, the most frequent first.

    In every text, raggs searches for phone numbers and names of all these languages.
    """
    total = languages.total()
    return [language for language, count in languages.most_common() if count >= MIN_LANGUAGE_SHARE * total]


def _kinds(found: Sequence[PersonalSpan]) -> tuple[personal_Kind, ...]:
    held = {each.kind for each in found}
    return tuple(kind for kind in KINDS if kind in held)


def _merge_near_duplicates(asked: Sequence[QuestionLines], request: ImportRequest) -> tuple[QuestionLines, ...]:
    """Merge questions into a similar, more frequent one, and add up their frequencies."""
    if request.near >= 1 or len(asked) < 2:
        return tuple(asked)
    with Workspace(Path()) as workspace:
        texts, found = [each.text for each in asked], default_embedder()["type"]
        # lsa with few dimensions takes questions for equal that differ only in a rare name
        spec = parse_spec(
            found if found == PACKAGED_EMBEDDER else f"{FALLBACK_EMBEDDER}:{MAX_LSA_DIMS}",
            embedders.REGISTRY,
            EmbedderConfig,
        )
        vectors = workspace.embedder(spec).fitted(FittingTexts.of(texts)).embed(texts)
    numbers: dict[str, int] = {}
    groups = [numbers.setdefault(near_duplicate_key(each.text), len(numbers)) for each in asked]
    return merge_near_lines(asked, [(gone.row, gone.of) for gone in duplicates(vectors, request.near, groups)])


def _query(asked: QuestionLines, read: _Read, request: ImportRequest, kinds: Sequence[personal_Kind] = ()) -> Query:
    facts: dict[str, object] = {"frequency": asked.count, "first": read.places[asked.line]}
    return Query(
        qid=made_id(asked.text),
        text=asked.text,
        language=request.language or detect_language(asked.text),
        metadata={**facts, **({"personal": list(kinds)} if kinds else {})},
    )


def _write_questions(request: ImportRequest, questions: Sequence[Query], aside: Sequence[Query]) -> Iterator[Path]:
    if request.out is None:
        return
    write_queries(questions, request.out)
    yield request.out
    path = flagged_file(request.out)
    if aside:
        write_queries(aside, path)
        yield path
    else:
        with disk(path, "write to another folder"):
            path.unlink(missing_ok=True)


FILE = "raggs.yaml"
QUESTIONS = Path("questions.jsonl")
TEMPLATE = """# Questions made of documents, and a golden set over them. Paths are relative to this file.
# Settings that are not listed have defaults: raggs config show --config <this file>

name: {name}

corpus:                           # documents, divided into passages; raggs chunks show --config <this file>
  type: folder
  path: {documents}

queries:                          # where `raggs questions` writes the questions and `raggs run` reads them
  type: {format}
  path: {questions}

questions:                        # raggs questions --config <this file>
  sample: {{n: 100}}                # number of questions to generate
  ask:
    asker: {{type: extractive}}     # offline rules; for a model: {{type: litellm, model: openai/gpt-5-mini}}

judge:                            # raggs run --config <this file>
  judge: {{type: reference}}        # grades passages by the excerpts that answer, without a key or network

# budget:
#   max_usd: 1                    # a run stops before it would spend more
"""


def config_for(
    documents: Path, config: Path | None, out: Path | None, asked: Sequence[str] = (), *, writes: bool = True
) -> tuple[Path, bool]:
    """Return the path of the configuration for a folder of documents, and whether the file is new.

    A configuration next to the questions is used if there is one; otherwise it is created.

    Args:
        out: file of the questions.
        asked: settings as ``key=value``. They are stored in a new file, so that the next command uses them, too.
        writes: whether a new file may be created next to the questions; if not, it is created in a temporary folder.

    Raises:
        UsageError: `config` is also given, `documents` is not a folder, or the existing file is about other documents.
        ConfigError: a setting is invalid.
        ProviderError: the file cannot be written.
    """
    if config is not None:
        raise UsageError("DOCS and --config cannot be combined: both define the documents", remedy="omit one of them")
    if not documents.is_dir():
        told = "is a file, not a folder of documents" if documents.exists() else "no such folder"
        raise UsageError(told, where=documents, remedy="name the folder that holds the documents")
    file = (out or QUESTIONS).parent / FILE
    if file.exists():
        _check_same(file, documents)
        return file, False
    where = file if writes else _passing() / FILE
    with disk(where, "name another folder with --out"):
        where.parent.mkdir(parents=True, exist_ok=True)
        text = _text(documents, out or QUESTIONS, where.parent if writes else None)
        write_atomic(where, text.encode())
        if asked and writes:
            _say_what_is_asked(where, text, asked)
    return where, True


def says_otherwise(file: Path, run: RunConfig) -> bool:
    """Return whether the settings in the file, without those of the command line, would lead to other questions than
    `run`.
    """
    told = load_config(file).run
    return (told.questions, told.corpus, told.embed) != (run.questions, run.corpus, run.embed)


def _say_what_is_asked(where: Path, text: str, asked: Sequence[str]) -> None:
    """Store command-line settings in a new file. If the file would then mean something else, it is restored. If a
    setting is invalid, the file is deleted.
    """
    try:
        meant = load_config(where, asked).run
    except RaggsError:
        where.unlink(missing_ok=True)  # otherwise the user's next attempt would find this file
        raise
    write_atomic(where, _with_sections(text, read_source(where, {}).values, asked).encode())
    try:
        same = load_config(where).run == meant
    except ConfigError:  # e.g. a setting addresses a list entry by name, which YAML cannot express
        same = False
    if not same:
        write_atomic(where, text.encode())


def _with_sections(text: str, values: dict[str, object], asked: Sequence[str]) -> str:
    """Return the file's text with the settings in its sections. Comments stay; each value takes as few lines as
    possible.
    """
    for setting in asked:
        key, _, value = setting.partition("=")
        *above, last = split_key(key.strip())
        level = values
        for step in above:
            found = level.setdefault(step, {})
            level = found if isinstance(found, dict) else {}
        level[last] = parse_value(value)
    blocks = text.rstrip("\n").split("\n\n")
    for section in dict.fromkeys(split_key(setting.partition("=")[0].strip())[0] for setting in asked):
        own = next((block for block in blocks if block.startswith(f"{section}:")), f"{section}:")
        comment = "#" + own.partition("\n")[0].partition("#")[2] if "#" in own.partition("\n")[0] else ""
        held = values[section]
        inner = held if isinstance(held, dict) else {}
        lines = [f"  {_flow(key)}: {_flow(each)}" for key, each in inner.items()]
        head = f"{section}:" if lines else f"{section}: {_flow(held)}"
        new = "\n".join([f"{head:<33} {comment}".rstrip(), *lines])
        blocks = [new if block == own else block for block in blocks] if own in blocks else [*blocks, new]
    return "\n\n".join(blocks) + "\n"


def _flow(value: object) -> str:
    """Return a value as YAML on one line; names are unquoted, and dollar signs are escaped."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    plain = isinstance(value, str) and re.fullmatch(r"[a-z_]+", value) and parse_value(value) == value
    return str(value) if plain else json.dumps(value, ensure_ascii=False).replace("$", "$$")


def _passing() -> Path:
    """Return a temporary folder that is deleted when the process ends."""
    folder = tempfile.mkdtemp(prefix="raggs-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def asker_setting(text: str) -> str:
    """Return the value of `questions.ask.asker` for a short specification such as ``litellm:openai/gpt-5-mini``.

    Raises:
        UsageError: the asker or the setting is unknown.
    """
    found = parse_spec(text, askers.REGISTRY, AdapterConfig)
    return json.dumps({"type": found.type, **found.model_dump(mode="json", exclude_unset=True)}, ensure_ascii=False)


def _check_same(file: Path, documents: Path) -> None:
    path = getattr(load_config(file).run.corpus, "path", None)
    if not isinstance(path, Path) or path.resolve() != documents.resolve():
        raise UsageError(
            f"exists, but its corpus is not {documents}",
            where=file,
            remedy=f"to use its corpus, pass --config {file}; to use {documents}, pass --out FILE in another folder",
        )


def _text(documents: Path, out: Path, beside: Path | None) -> str:
    """Return the text of a new configuration file. The path of the documents is relative to `beside`, or absolute if it
    is None; the questions are next to the file.
    """
    name = re.sub(r"[^\w.-]+", "-", documents.resolve().name).strip(".-") or "documents"
    folder = documents.resolve() if beside is None else Path(os.path.relpath(documents, beside))
    return TEMPLATE.format(
        name=json.dumps(name, ensure_ascii=False),
        documents=_flow(folder.as_posix()),
        format=format_of(out),
        questions=_flow(out.name),
    )
