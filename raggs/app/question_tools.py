"""What thresholds would take out of questions that are there, and the pairs by which to judge that.

Questions out of logs of real users: cleaned, counted, and without what tells who asked.

Everything happens on this machine; near-duplicates are told by WordLlama, which asks nobody. Of a log one column is
read, and of an entry only its text, how often it came and where first are written. Each entry of a log is counted
once: as a question, as flagged, or under the reason why it is neither.

A configuration for a folder of documents: where a user with nothing but documents begins.

It lies beside the questions, so that `raggs questions`, `raggs run` and `raggs eval` go on with it.
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
from raggs.parts.embedders import Embedder, EmbedderConfig
from raggs.parts.embedders.wordllama import WordLlamaEmbedder
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
    """What to look at.

    Attributes:
        questions: a file of questions, with excerpts where there are any.
        embedder: as on the command line.
        corpus: only questions about this one; None for all.
        workspace: below it lie the caches.
        max_usd: what the embedder may cost.
    """

    questions: Path
    embedder: str = "wordllama"
    corpus: str | None = None
    workspace: Path = Path()
    max_usd: float = 5.0


@dataclass(frozen=True)
class ThresholdPairs:
    """The pairs by which one threshold is judged.

    Attributes:
        kind: "duplicate": each question and its nearest before it; "excerpt": each and its furthest excerpt.
        texts: of both.
        cosines: of both, shape (pairs,).
    """

    kind: Kind
    texts: tuple[tuple[str, str], ...]
    cosines: Floats

    @property
    def histogram(self) -> tuple[tuple[float, int], ...]:
        """How many cosines begin where (`raggs.stats.question_filters.histogram`)."""
        return histogram(self.cosines)


@dataclass(frozen=True)
class ThresholdCalibration:
    """Questions, embedded.

    Attributes:
        questions: how many there are.
        embedder: identity of what embedded them: cosines of another are on another scale.
        usual: thresholds of that embedder, or of the report's corpus of that name.
        pairs: by kind.
    """

    questions: int
    embedder: str
    usual: Thresholds
    pairs: Mapping[Kind, ThresholdPairs]
    _vectors: tuple[np.ndarray[tuple[int, ...], np.dtype[np.float32]], ...]
    _owner: tuple[int, ...]

    def gone(self, thresholds: Thresholds) -> dict[Kind, int]:
        """How many questions each threshold takes out, of all."""
        vectors, excerpts = self._vectors
        return {
            "duplicate": len(duplicates(vectors, thresholds.duplicate)),
            "excerpt": len(irrelevant(vectors, excerpts, self._owner, thresholds.excerpt)),
        }


def calibrate(request: CalibrateRequest, listen: Listener = ignore_event) -> ThresholdCalibration:
    """Embed questions and excerpts, and pair them. Works in notebooks.

    Raises:
        RaggsError: the file cannot be used, the embedder is unknown or failed, no question is about the corpus.
    """
    if in_loop():
        return run_in_thread(lambda hear: calibrate(request, hear), listen)
    specs = parse_spec(request.embedder, embedders.REGISTRY, EmbedderConfig)
    reader = formats.REGISTRY.load(format_of(request.questions)).Config.model_validate({"path": request.questions})
    queries = _questions_of_corpus(request, list(open_queries(reader, listen).values()))
    with Workspace(request.workspace, budget=BudgetSettings(max_usd=request.max_usd), hear=listen) as workspace:
        return _pair_and_score(queries, workspace.embedder(specs), thresholds_for(request.corpus or "", specs.type))


def _questions_of_corpus(request: CalibrateRequest, queries: list[Query]) -> list[Query]:
    """The questions about the corpus."""
    if request.corpus is None:
        return queries
    found = [query for query in queries if request.corpus in _corpora(query)]
    if not found:
        known = sorted({name for query in queries for name in _corpora(query)})
        if not known:
            raise DataError("no question names its corpus", where=request.questions, remedy="leave --corpus out")
        remedy = did_you_mean(request.corpus, known)
        raise UsageError(f"no question is about {request.corpus!r}", remedy=remedy)
    return found


def _corpora(query: Query) -> set[str]:
    """The names by which a question says what it is about."""
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


DEFAULT_NEAR_COSINE = 0.92  # WordLlama's cosine above which two questions are one
LINES_PER_PROGRESS = 5000
MIN_LANGUAGE_SHARE = 0.05
NO_TEXT = "no text"


@dataclass(frozen=True)
class ImportRequest:
    """What to read and what to make of it.

    Attributes:
        logs: files, see `raggs.parts.queries.logs.read_log`.
        out: where the questions go: .jsonl, .csv or .yaml; None: nowhere, only the report is made.
        column: of tables and JSON lines.
        allow: kinds of personal data that may stay in questions.
        mask: whether other kinds are replaced by their name, rather than their questions set aside.
        near: cosine above which two questions are one; 1 keeps all that differ.
        language: of all questions; None: each is detected.
        force: whether files that exist are replaced.
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
    """What became of the entries.

    Attributes:
        entries: of all logs.
        dropped: entries that are no question, by reason.
        questions: that were written, the most frequent first.
        same, near: entries and questions that went into others: same words; near in meaning.
        flagged: questions set aside, by kind of personal data; one may have several.
        flagged_questions, flagged_entries: in all.
        masked: questions in which something was replaced, by kind.
        languages: questions by language, the most frequent first.
        files: that were written.
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
    """Entries as they are read, each distinct text once.

    Attributes:
        entries: read so far.
        dropped: by reason.
        asked: distinct texts in the order in which they came first, how often each came.
        places: of the first.
    """

    entries: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    lines: dict[str, int] = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)

    def add(self, text: str | None, place: str) -> None:
        """Take one entry in."""
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
    """Distinct texts, told apart by personal data."""

    sound: list[QuestionLines] = field(default_factory=list)
    flagged: list[QuestionLines] = field(default_factory=list)
    kinds: dict[str, tuple[personal_Kind, ...]] = field(default_factory=dict)
    masked: Counter[str] = field(default_factory=Counter)


def flagged_file(out: Path) -> Path:
    """Where questions with personal data go: beside the others, never among them."""
    return out.with_name(f"{out.stem}.flagged.jsonl")


def import_logs(request: ImportRequest, listen: Listener = ignore_event) -> QuestionImportResult:
    """Make questions out of logs.

    Raises:
        UsageError: a kind or format that does not exist, or a file stands in the way.
        NotFoundError, DataError: a log cannot be read, or holds no question.
        ProviderError: the disk refuses.
    """
    _check(request)
    read = _read(request)
    told = _sort(read, request, listen)
    sound, flagged = group_lines(told.sound), group_lines(told.flagged)
    if not sound and not flagged:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in read.dropped.most_common())
        said = f"none of {plural(read.entries, 'entry')} is a question" + (f" ({reasons})" if reasons else "")
        raise DataError(said, where=request.logs[0], remedy="check the file, or name its --column")
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
    """What can be told before a log is read."""
    for kind in request.allow:
        if kind not in KINDS:
            raise UsageError(f"no kind of personal data is called {kind!r}", remedy=did_you_mean(kind, KINDS))
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
    """Each distinct text set aside, masked or left as it is."""
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
    """The languages of at least a twentieth of the texts: whoever writes in one may have a phone where another is
    spoken.
    """
    total = languages.total()
    return [language for language, count in languages.most_common() if count >= MIN_LANGUAGE_SHARE * total]


def _kinds(found: Sequence[PersonalSpan]) -> tuple[personal_Kind, ...]:
    held = {each.kind for each in found}
    return tuple(kind for kind in KINDS if kind in held)


def _merge_near_duplicates(asked: Sequence[QuestionLines], request: ImportRequest) -> tuple[QuestionLines, ...]:
    """The questions without those near a more frequent one, which are counted with it."""
    if request.near >= 1 or len(asked) < 2:
        return tuple(asked)
    with Workspace(Path()) as workspace:
        vectors = workspace.embedder(WordLlamaEmbedder.Config()).embed([each.text for each in asked])
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
# What is left out has a default: raggs config show --config <this file>

name: {name}

corpus:                           # the documents, cut into passages; raggs chunks show --config <this file>
  type: folder
  path: {documents}

queries:                          # where `raggs questions` writes the questions and `raggs run` reads them
  type: {format}
  path: {questions}

questions:                        # raggs questions --config <this file>
  sample: {{n: 100}}                # questions that are asked for
  ask:
    asker: {{type: extractive}}     # by rule, offline; a model: {{type: litellm, model: openai/gpt-5-mini}}

judge:                            # raggs run --config <this file>
  judge: {{type: reference}}        # grades passages by the excerpts that answer: no key, no network

# budget:
#   max_usd: 1                    # a run stops in good order before it would spend more
"""


def config_for(
    documents: Path, config: Path | None, out: Path | None, asked: Sequence[str] = (), *, writes: bool = True
) -> tuple[Path, bool]:
    """The configuration for a folder of documents, and whether it is new: one that lies beside the questions, or made.

    Args:
        out: where the questions go.
        asked: settings, as ``key=value``, that a new one says, so that going on by it asks the same.
        writes: whether it may be made there; else in a folder that is gone with the process.

    Raises:
        UsageError: `config` is given too; or the file that is there is about other documents.
        ConfigError: what is asked cannot be.
        NotFoundError: there is no such folder.
    """
    if config is not None:
        raise UsageError("DOCS and --config both say what is asked about", remedy="leave one out")
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
    """Whether going on by the file alone would make other questions than those of `run`."""
    told = load_config(file).run
    return (told.questions, told.corpus, told.embed) != (run.questions, run.corpus, run.embed)


def _say_what_is_asked(where: Path, text: str, asked: Sequence[str]) -> None:
    """Put settings into a new file; it stays as it is where they cannot be put in so that it says the same."""
    try:
        meant = load_config(where, asked).run
    except RaggsError:
        where.unlink(missing_ok=True)  # or the call that mends it would find a file that says something else
        raise
    write_atomic(where, _with_sections(text, read_source(where, {}).values, asked).encode())
    try:
        same = load_config(where).run == meant
    except ConfigError:  # a list's entry by its name
        same = False
    if not same:
        write_atomic(where, text.encode())


def _with_sections(text: str, values: dict[str, object], asked: Sequence[str]) -> str:
    """The file's text with sections that say what is asked, their comments kept; each in few lines."""
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
    """On one line, as YAML reads it; names stand bare, and a dollar is no variable."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    plain = isinstance(value, str) and re.fullmatch(r"[a-z_]+", value) and parse_value(value) == value
    return str(value) if plain else json.dumps(value, ensure_ascii=False).replace("$", "$$")


def _passing() -> Path:
    """A folder that is gone with the process."""
    folder = tempfile.mkdtemp(prefix="raggs-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def asker_setting(text: str) -> str:
    """The value of `questions.ask.asker` that one word stands for: ``litellm:openai/gpt-5-mini``.

    Raises:
        UsageError: no such asker, or no such setting.
    """
    found = parse_spec(text, askers.REGISTRY, AdapterConfig)
    return json.dumps({"type": found.type, **found.model_dump(mode="json", exclude_unset=True)}, ensure_ascii=False)


def _check_same(file: Path, documents: Path) -> None:
    path = getattr(load_config(file).run.corpus, "path", None)
    if not isinstance(path, Path) or path.resolve() != documents.resolve():
        raise UsageError(
            f"is there already, and its corpus is not {documents}",
            where=file,
            remedy=f"pass --config {file} for its own corpus, or --out FILE in another folder",
        )


def _text(documents: Path, out: Path, beside: Path | None) -> str:
    """The file's text. `beside`: the folder that its paths start from; None: they are absolute."""
    name = re.sub(r"[^\w.-]+", "-", documents.resolve().name).strip(".-") or "documents"
    folder = documents.resolve() if beside is None else Path(os.path.relpath(documents, beside))
    return TEMPLATE.format(
        name=json.dumps(name, ensure_ascii=False),
        documents=_flow(folder.as_posix()),
        format=format_of(out),
        questions=_flow(out.name),
    )
