"""Questions out of logs of real users: cleaned, counted, and without what tells who asked.

Everything happens on this machine; near-duplicates are told by WordLlama, which asks nobody. Of a log one column is
read, and of an entry only its text, how often it came and where first are written. Each entry of a log is counted
once: as a question, as flagged, or under the reason why it is neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from raggs.base.artifacts import Query
from raggs.base.errors import DataError, UsageError
from raggs.base.files import disk
from raggs.base.languages import detect_language
from raggs.base.text import clean_unicode, did_you_mean, one_line, plural
from raggs.base.types import Building
from raggs.parts.embedders.wordllama import WordLlamaEmbedder
from raggs.parts.queries.base import format_of
from raggs.parts.queries.fields import made_id
from raggs.parts.queries.logs import read_log
from raggs.parts.queries.writing import write_queries
from raggs.parts.workshop import Workshop
from raggs.runs.pipeline.events import Listener, silent
from raggs.stats.asking.filters import duplicates
from raggs.stats.asking.personal import (
    KINDS,
    Asked,
    Kind,
    Personal,
    fault,
    grouped,
    guard,
    masked,
    merged,
    personal_data,
)

NEAR = 0.92  # WordLlama's cosine above which two questions are one
STEP = 5000
SHARE = 0.05
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
    near: float = NEAR
    language: str | None = None
    force: bool = False


@dataclass(frozen=True)
class Imported:
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

    sound: list[Asked] = field(default_factory=list)
    flagged: list[Asked] = field(default_factory=list)
    kinds: dict[str, tuple[Kind, ...]] = field(default_factory=dict)
    masked: Counter[str] = field(default_factory=Counter)


def flagged_file(out: Path) -> Path:
    """Where questions with personal data go: beside the others, never among them."""
    return out.with_name(f"{out.stem}.flagged.jsonl")


def import_logs(request: ImportRequest, listen: Listener = silent) -> Imported:
    """Make questions out of logs.

    Raises:
        UsageError: a kind or format that does not exist, or a file stands in the way.
        NotFoundError, DataError: a log cannot be read, or holds no question.
        ProviderError: the disk refuses.
    """
    _check(request)
    read = _read(request)
    told = _sort(read, request, listen)
    sound, flagged = grouped(told.sound), grouped(told.flagged)
    if not sound and not flagged:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in read.dropped.most_common())
        said = f"none of {plural(read.entries, 'entry')} is a question" + (f" ({reasons})" if reasons else "")
        raise DataError(said, where=request.logs[0], remedy="check the file, or name its --column")
    kept = _joined(sound, request)
    questions = tuple(_query(each, read, request) for each in kept)
    aside = tuple(_query(each, read, request, told.kinds.get(each.text, ())) for each in flagged)
    return Imported(
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
        files=tuple(_written(request, questions, aside)),
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
    usual = _usual(Counter(spoken.values()))
    for number, (text, count) in enumerate(read.asked.items()):
        if number % STEP == 0:
            listen(Building("personal data", number, len(read.asked)))
        found = [each for each in personal_data(text, spoken[text], *usual) if each.kind not in request.allow]
        asked = Asked(text, read.lines[text], count)
        if not found:
            told.sound.append(asked)
        elif request.mask:
            told.sound.append(Asked(masked(text, found), asked.line, count))
            told.masked.update({each.kind for each in found})
        else:
            told.flagged.append(asked)
            told.kinds[text] = _kinds(found)
    return told


def _usual(languages: Counter[str]) -> list[str]:
    """The languages of at least a twentieth of the texts: whoever writes in one may have a phone where another is
    spoken.
    """
    total = languages.total()
    return [language for language, count in languages.most_common() if count >= SHARE * total]


def _kinds(found: Sequence[Personal]) -> tuple[Kind, ...]:
    held = {each.kind for each in found}
    return tuple(kind for kind in KINDS if kind in held)


def _joined(asked: Sequence[Asked], request: ImportRequest) -> tuple[Asked, ...]:
    """The questions without those near a more frequent one, which are counted with it."""
    if request.near >= 1 or len(asked) < 2:
        return tuple(asked)
    workshop = Workshop(Path())
    try:
        vectors = workshop.embedder(WordLlamaEmbedder.Config()).embed([each.text for each in asked])
    finally:
        workshop.close()
    numbers: dict[str, int] = {}
    groups = [numbers.setdefault(guard(each.text), len(numbers)) for each in asked]
    return merged(asked, [(gone.row, gone.of) for gone in duplicates(vectors, request.near, groups)])


def _query(asked: Asked, read: _Read, request: ImportRequest, kinds: Sequence[Kind] = ()) -> Query:
    facts: dict[str, object] = {"frequency": asked.count, "first": read.places[asked.line]}
    return Query(
        qid=made_id(asked.text),
        text=asked.text,
        language=request.language or detect_language(asked.text),
        metadata={**facts, **({"personal": list(kinds)} if kinds else {})},
    )


def _written(request: ImportRequest, questions: Sequence[Query], aside: Sequence[Query]) -> Iterator[Path]:
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
