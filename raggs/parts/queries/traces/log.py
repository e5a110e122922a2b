"""Searches of trace files, collected in a temporary database: masked, counted, and joined with their feedback.

Spans and feedback of a trace may be far apart, even in several files. A database on disk joins them, so memory does not
depend on the size of the files. Detected personal data is masked before a text enters the database. Texts of documents
are not stored.

At most `MAX_TEXTS` distinct texts are stored. If there are more, about half of the queries are omitted, chosen by the
hash of their words. This is repeated whenever the limit is exceeded again. All searches of the remaining queries
count, so shares of searches stay comparable.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

from pydantic import Field

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Query
from raggs.base.files import disk_fault
from raggs.base.hashing import hash_bytes
from raggs.base.languages import detect_language
from raggs.base.settings import InputPath
from raggs.base.text import clean_unicode, id_problem, one_line
from raggs.base.types import Number
from raggs.parts.indexes.passages import PassageStore, TextIds
from raggs.parts.queries import QueryReader
from raggs.parts.queries.fields import made_id
from raggs.parts.queries.traces import TraceFormatName, read_trace_events
from raggs.parts.queries.traces.payloads import TracedDocument, TracedSearch, TraceEvent, TraceFeedback
from raggs.stats.personal_data import fault, mask_personal_data, personal_data, same_key

MAX_TEXTS = 200_000
PENDING_SEARCHES = 1000  # searches per batch; the first batch determines the common languages of the log
MIN_LANGUAGE_SHARE = 0.05
MAX_CACHED_TEXTS = 50_000
MIN_FOR_QUANTILES = 20  # minimum number of logged values for a limit of low scores or high latencies
LOW_SCORE_SHARE, HIGH_LATENCY_SHARE = 0.1, 0.05
HASH_DIGITS = 12
NO_QUERY, OTHER_RETRIEVER, REPEATED_SPAN = "no query text", "another retriever", "repeated span"
NEGATIVE = 0.0  # feedback of at most this value is negative
SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT UNIQUE, key TEXT, spot INTEGER, language TEXT, times INTEGER,
    first INTEGER, place TEXT, personal TEXT);
CREATE TABLE searches (trace INTEGER, span INTEGER, text INTEGER, seq INTEGER, start REAL, latency REAL, top REAL,
    failed INTEGER, results INTEGER, hits TEXT, PRIMARY KEY (trace, span));
CREATE TABLE requests (trace INTEGER PRIMARY KEY, text INTEGER, seq INTEGER, start REAL, latency REAL, failed INTEGER,
    reason TEXT);
CREATE TABLE unusable (trace INTEGER PRIMARY KEY);
CREATE TABLE feedback (trace INTEGER, span INTEGER, value REAL);
CREATE TABLE spans (span INTEGER PRIMARY KEY, trace INTEGER);
"""
REQUEST = """
INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (trace) DO UPDATE SET text = excluded.text,
    seq = excluded.seq, start = excluded.start, latency = excluded.latency, failed = excluded.failed
WHERE requests.text IS NULL
"""
JOIN = """
CREATE INDEX by_text ON searches (text);
UPDATE feedback SET trace = (SELECT trace FROM spans WHERE spans.span = feedback.span) WHERE trace = 0;
UPDATE feedback SET trace = (SELECT trace FROM searches WHERE searches.span = feedback.span LIMIT 1)
    WHERE trace IS NULL OR trace = 0;
DELETE FROM requests WHERE trace IN (SELECT trace FROM searches UNION ALL SELECT trace FROM unusable);
CREATE TABLE opinions AS SELECT trace, MIN(value) AS low, MAX(value) AS high FROM feedback GROUP BY trace;
CREATE UNIQUE INDEX by_trace ON opinions (trace);
CREATE INDEX requested ON requests (text);
"""
ROWS = """
SELECT texts.key, texts.id, texts.text, texts.language, texts.place, texts.times, texts.first, found.latency, found.top,
    found.failed, found.results, opinions.low, opinions.high
FROM texts JOIN (
    SELECT trace, text, latency, top, failed, results FROM searches UNION ALL
    SELECT trace, text, latency, NULL, failed, NULL FROM requests
) AS found ON found.text = texts.id LEFT JOIN opinions ON opinions.trace = found.trace
ORDER BY texts.key, texts.times DESC, texts.first
"""
UNUSABLE_REQUESTS = "SELECT reason, COUNT(*) FROM requests WHERE text IS NULL AND reason != '' GROUP BY reason"
MASKED_KINDS = """
SELECT texts.personal, COUNT(*) FROM texts JOIN
    (SELECT text FROM searches UNION ALL SELECT text FROM requests) AS found ON found.text = texts.id
WHERE texts.personal != '' GROUP BY texts.personal
"""
LISTS = """
SELECT texts.key, searches.hits, searches.latency FROM texts JOIN searches ON searches.text = texts.id
ORDER BY texts.key, COALESCE(searches.start, 0) DESC, searches.seq DESC
"""


class LoggedHit(NamedTuple):
    """A document of a logged list: its id, its rank from 1, and its score, higher is better."""

    doc_id: str
    rank: int
    score: float


class LoggedList(NamedTuple):
    """The last logged list of a query, and the latency of its search in milliseconds, None if not logged."""

    qid: str
    hits: tuple[LoggedHit, ...]
    latency_ms: Number


@dataclass(frozen=True)
class LoggedQuery:
    """A query of the log, in its most frequent spelling, and the signals of its searches.

    Attributes:
        qid: id, derived from the text.
        text: text with personal data masked.
        language: ISO 639-1 code.
        place: file and line of the first search.
        first: number of the first search in the log, from 1.
        searches: number of searches, and of requests without a search.
        negative, positive: searches of traces with negative and with positive feedback.
        empty: searches that returned no results and did not fail.
        failed: searches that ended with an error.
        low: searches whose first document has a score among the worst tenth of the log.
        slow: searches whose latency is among the highest twentieth of the log.
        signals: searches with at least one of the signals negative, empty, failed, low or slow.
        latency_ms: median latency in milliseconds; None if not logged.
    """

    qid: str
    text: str
    language: str
    place: str
    first: int
    searches: int
    negative: int
    positive: int
    empty: int
    failed: int
    low: int
    slow: int
    signals: int
    latency_ms: Number


@dataclass
class TraceCounts:
    """Counts of a log.

    Attributes:
        searches, requests: stored searches, and stored requests of traces without a search.
        feedback: values of feedback.
        dropped: omitted searches and requests, by reason.
        skipped: skipped broken lines.
        masked: searches and requests with masked personal data, by kind.
        masked_searches: number of these searches and requests.
        documents: retrieved documents: "id" or "text" (found in the corpus by id or by text), "unmapped" (not in the
            corpus), "logged" (no corpus is given), "repeated" (twice in a list).
        retrievers: searches by the name of their span, also if the option `retriever` drops them.
        falling, rising: lists whose scores fall, and lists whose scores rise with the rank.
        unordered: lists whose scores are incomplete, or do not fit their order.
        halvings: how often half of the queries were omitted.
    """

    searches: int = 0
    requests: int = 0
    feedback: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    masked: Counter[str] = field(default_factory=Counter)
    masked_searches: int = 0
    documents: Counter[str] = field(default_factory=Counter)
    retrievers: Counter[str] = field(default_factory=Counter)
    falling: int = 0
    rising: int = 0
    unordered: int = 0
    halvings: int = 0

    @property
    def distances(self) -> bool:
        """Whether scores are distances: more lists have rising scores than falling ones."""
        return self.rising > self.falling


class CorpusIds:
    """Ids of logged documents in a corpus: by id, otherwise by text.

    Args:
        passages: the corpus. Its texts are read once, when the first document with a text is not found by its id.
    """

    def __init__(self, passages: PassageStore) -> None:
        self._passages = passages
        self._texts: TextIds | None = None

    def find(self, documents: Sequence[TracedDocument]) -> list[tuple[str, str]]:
        """Return the id of each document and how it was found: "id", "text" or "unmapped" (with an empty id)."""
        known = self._passages.known({each.doc_id for each in documents if each.doc_id})
        left = [each.text for each in documents if each.doc_id not in known and each.text.strip()]
        if left and self._texts is None:
            self._texts = TextIds(self._passages)
        found = dict(zip(left, self._texts.find(left), strict=True)) if self._texts is not None else {}
        return [
            (each.doc_id, "id") if each.doc_id in known
            else (text_id, "text") if (text_id := found.get(each.text))
            else ("", "unmapped")
            for each in documents
        ]  # fmt: skip


@dataclass(frozen=True)
class TraceOptions:
    """Options of a log.

    Attributes:
        form: format of the files.
        skip_invalid: whether broken lines are counted and skipped.
        retriever: name of the spans to read; None for all.
        feedback: names of the feedback to read; empty for all.
        allow: kinds of personal data that are not masked.
        language: language of all queries; None to detect it.
    """

    form: TraceFormatName = "auto"
    skip_invalid: bool = False
    retriever: str | None = None
    feedback: tuple[str, ...] = ()
    allow: Collection[str] = ()
    language: str | None = None


class TraceLog:
    """The log, a context manager: read files with `read`, then take `queries` and `lists`.

    Args:
        options: options of the log.
        ids: finds documents in the corpus; None to take the logged ids.
    """

    def __init__(self, options: TraceOptions, ids: CorpusIds | None = None) -> None:
        self.counts = TraceCounts()
        self._options, self._ids = options, ids
        self._folder = tempfile.TemporaryDirectory(prefix="raggs-")
        self._data = sqlite3.connect(Path(self._folder.name) / "traces.sqlite", isolation_level=None)
        self._data.executescript(SCHEMA)
        self._pending: list[tuple[TracedSearch, str]] = []
        self._languages: tuple[str, ...] | None = None
        self._masked: dict[str, tuple[str, str]] = {}
        self._seq = self._texts = 0
        self._joined = False

    def __enter__(self) -> TraceLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._data.close()
        self._folder.cleanup()

    def read(self, path: Path) -> None:
        """Read a file, and add its searches, requests and feedback.

        Raises:
            UsageError, NotFoundError, DataError: see `raggs.parts.queries.traces.read_trace_events`.
            ProviderError: the temporary database cannot be written, for example because the disk is full.
        """
        skipped = self.counts.skipped if self._options.skip_invalid else None
        with self._storing():
            self._data.execute("BEGIN")
            for event in read_trace_events(path, self._options.form, skipped):
                self._add(event, path)
            self._flush()
            self._data.execute("COMMIT")

    @contextmanager
    def _storing(self) -> Iterator[None]:
        """Convert an error of the database in the block into a ProviderError."""
        try:
            yield
        except sqlite3.Error as error:
            folder, remedy = Path(self._folder.name), "set TMPDIR to a folder with more space"
            raise disk_fault(error, folder, remedy) from error

    def _add(self, event: TraceEvent, path: Path) -> None:
        if isinstance(event, TracedSearch):
            if event.documents is not None:
                self.counts.retrievers[event.name] += 1
                if self._options.retriever not in (None, event.name):
                    self.counts.dropped[OTHER_RETRIEVER] += 1
                    return
            self._pending.append((event, f"{path.name}:{event.line}"))
            if len(self._pending) >= PENDING_SEARCHES:
                self._flush()
        elif isinstance(event, TraceFeedback):
            if not self._options.feedback or event.name in self._options.feedback:
                self.counts.feedback += 1
                row = (_number(event.trace), _number(event.span), event.value)
                self._data.execute("INSERT INTO feedback VALUES (?, ?, ?)", row)
        else:
            ids = (_number(event.span), _number(event.trace))
            self._data.execute("INSERT OR IGNORE INTO spans VALUES (?, ?)", ids)

    def _flush(self) -> None:
        """Store the pending searches."""
        texts = [one_line(clean_unicode(event.query or "")) for event, _ in self._pending]
        if self._languages is None and texts:
            spoken = Counter(detect_language(text) for text in texts if not fault(text))
            least = MIN_LANGUAGE_SHARE * spoken.total()
            self._languages = tuple(name for name, count in spoken.most_common() if count >= least)
        documents = [each for event, _ in self._pending for each in event.documents or ()]
        ids = iter(self._named(documents))
        for (event, place), text in zip(self._pending, texts, strict=True):
            found = [next(ids) for _ in event.documents or ()]
            reason = fault(text) if event.query else NO_QUERY
            if reason is not None:
                self._note_unusable(event, reason)
                continue
            self._seq += 1
            if (number := self._text_number(*self._without_personal_data(text), place)) is not None:
                self._store(event, number, found)
        self._pending.clear()

    def _note_unusable(self, event: TracedSearch, reason: str) -> None:
        """Count a search without a usable query, so that its request does not count as a request without a search.

        A request is counted at the end, if its trace has no search.
        """
        self._seq += 1
        if event.documents is None:
            self._store_request(event, None, reason)
        else:
            self.counts.dropped[reason] += 1
            self._data.execute("INSERT OR IGNORE INTO unusable VALUES (?)", (_number(event.trace),))

    def _store_request(self, event: TracedSearch, text: int | None, reason: str = "") -> None:
        """Store a request, unless its trace already has a usable one."""
        trace = _number(event.trace) or -self._seq
        values = (trace, text, self._seq, event.start_s, event.latency_ms, event.failed, reason)
        self._data.execute(REQUEST, values)

    def _named(self, documents: Sequence[TracedDocument]) -> list[tuple[str, str]]:
        """Return an id for each document, and how it was found (see `TraceCounts.documents`).

        Documents outside the corpus get an id with the prefix ``unmapped-``.
        """
        if self._ids is None:
            return [(_logged_id(each), "logged") for each in documents]
        found = zip(documents, self._ids.find(documents), strict=True)
        return [(name or f"unmapped-{_digest(each)}", how) for each, (name, how) in found]

    def _without_personal_data(self, text: str) -> tuple[str, str]:
        """Return a text with its personal data masked, and the kinds of this data, separated by spaces."""
        if (found := self._masked.get(text)) is None:
            language = self._options.language or detect_language(text)
            spans = personal_data(text, language, *(self._languages or ()))
            spans = tuple(each for each in spans if each.kind not in self._options.allow)
            found = (mask_personal_data(text, spans), " ".join(sorted({each.kind for each in spans})))
            if len(self._masked) >= MAX_CACHED_TEXTS:
                self._masked.clear()
            self._masked[text] = found
        return found

    def _text_number(self, text: str, personal: str, place: str) -> int | None:
        """Return the number of a text after counting it; None if its query is omitted."""
        row = self._data.execute("SELECT id FROM texts WHERE text = ?", (text,)).fetchone()
        if row is not None:
            self._data.execute("UPDATE texts SET times = times + 1 WHERE id = ?", row)
            return int(row[0])
        key = same_key(text)
        spot = int(hash_bytes(key.encode())[:15], 16)
        if spot % 2**self.counts.halvings:
            return None
        language = self._options.language or detect_language(text)
        values = (self._seq, text, key, spot, language, 1, self._seq, place, personal)
        self._data.execute("INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        self._texts += 1
        if self._texts > MAX_TEXTS:
            self._halve()
        return None if spot % 2**self.counts.halvings else self._seq

    def _halve(self) -> None:
        """Omit about half of the stored queries."""
        self.counts.halvings += 1
        self._data.execute("DELETE FROM texts WHERE spot % ? != 0", (2**self.counts.halvings,))
        for table in ("searches", "requests"):
            self._data.execute(f"DELETE FROM {table} WHERE text NOT IN (SELECT id FROM texts)")  # noqa: S608
        self._texts = int(self._data.execute("SELECT COUNT(*) FROM texts").fetchone()[0])

    def _store(self, event: TracedSearch, text: int, ids: Sequence[tuple[str, str]]) -> None:
        trace = _number(event.trace) or -self._seq
        span = _number(event.span) or -self._seq
        times = (event.start_s, event.latency_ms)
        if event.documents is None:
            self._store_request(event, text)
            return
        hits = _hits(event.documents, ids)
        top = event.documents[0].score if event.documents else None
        row = (trace, span, text, self._seq, *times, top, event.failed, len(hits), json.dumps(hits))
        done = self._data.execute("INSERT OR IGNORE INTO searches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        if not done.rowcount:
            self.counts.dropped[REPEATED_SPAN] += 1
            self._data.execute("UPDATE texts SET times = times - 1 WHERE id = ?", (text,))
            return
        self.counts.documents.update(how for _, how in ids)
        self.counts.documents["repeated"] += len(ids) - len(hits)
        scores = [each.score for each in event.documents]
        if len(set(scores)) > 1:
            self.counts.falling += _is_non_increasing(scores)
            self.counts.rising += _is_non_increasing([None if score is None else -score for score in scores])

    def _join(self) -> None:
        if not self._joined:
            with self._storing():
                self._data.executescript(JOIN)
            self.counts.searches = int(self._data.execute("SELECT COUNT(*) FROM searches").fetchone()[0])
            self.counts.requests = int(self._data.execute("SELECT COUNT(text) FROM requests").fetchone()[0])
            self.counts.dropped.update(dict(self._data.execute(UNUSABLE_REQUESTS)))
            for kinds, count in self._data.execute(MASKED_KINDS):
                self.counts.masked.update(dict.fromkeys(kinds.split(), count))
                self.counts.masked_searches += count
            self._joined = True

    def queries(self) -> list[LoggedQuery]:
        """Return the queries, the most frequent first; equally frequent ones are ordered by their first search."""
        self._join()
        low, slow = self._score_limit(), self._quantile("latency", 1 - HIGH_LATENCY_SHARE)
        sign = -1.0 if self.counts.distances else 1.0
        rows = groupby(self._data.execute(ROWS), key=lambda row: row[0])
        found = [_summarise_searches(group, low, slow, sign) for _, group in rows]
        return sorted(found, key=lambda each: (-each.searches, each.first))

    def lists(self, queries: Iterable[LoggedQuery]) -> Iterator[LoggedList]:
        """Yield the last list of each of these queries with a search, ordered by the key of the query (`same_key`).

        A list may be empty.
        """
        self._join()
        names = {same_key(each.text): each.qid for each in queries}
        for key, group in groupby(self._data.execute(LISTS), key=lambda row: row[0]):
            _, hits, latency = next(group)
            if key in names:
                yield LoggedList(names[key], self._scored(json.loads(hits)), latency)

    def _scored(self, hits: list[tuple[str, int, Number]]) -> tuple[LoggedHit, ...]:
        """Return hits with scores that fall with the rank: the logged scores, negated distances, or negated ranks."""
        sign = -1.0 if self.counts.distances else 1.0
        scores = [None if score is None else sign * score + 0.0 for _, _, score in hits]
        if hits and not _is_non_increasing(scores):
            self.counts.unordered += 1
            scores = [-float(rank) for _, rank, _ in hits]
        return tuple(LoggedHit(name, rank, score or 0.0) for (name, rank, _), score in zip(hits, scores, strict=True))

    def _quantile(self, column: str, share: float) -> Number:
        """Return a quantile of a column of the searches; None if there are too few values, or all are equal."""
        given = f"FROM searches WHERE {column} IS NOT NULL"
        count, least, most = self._data.execute(f"SELECT COUNT(*), MIN({column}), MAX({column}) {given}").fetchone()
        if count < MIN_FOR_QUANTILES or least == most:
            return None
        at = min(count - 1, int(share * count))
        row = self._data.execute(f"SELECT {column} {given} ORDER BY {column} LIMIT 1 OFFSET ?", (at,)).fetchone()
        return float(row[0])

    def _score_limit(self) -> Number:
        """Return the score below which a search has a low score, negated if scores are distances; None if undefined."""
        if not self.counts.distances:
            return self._quantile("top", LOW_SCORE_SHARE)
        limit = self._quantile("top", 1 - LOW_SCORE_SHARE)
        return None if limit is None else -limit


class TraceQueriesConfig(AdapterConfig):
    type: Literal["traces"] = "traces"
    path: InputPath = Field(description="file of traces: .json, .jsonl, .ndjson, .csv or .tsv; may be gzipped")
    format: TraceFormatName = Field("auto", description="format of the file; auto: detected by its first records")
    skip_invalid: bool = Field(False, description="skip broken lines, and count them")
    retriever: str | None = Field(None, description="name of the spans to read; null: all searches")
    min_searches: int = Field(1, ge=1, description="minimum number of searches of a query")


class TraceQueries(QueryReader):
    """Queries of logged traces (OTLP, Phoenix, Langfuse, LangSmith), with personal data masked."""

    Config = TraceQueriesConfig
    config: TraceQueriesConfig

    def queries(self) -> Iterator[tuple[int, Query]]:
        """Yield the queries, the most frequent first, with the number of their first search.

        Raises:
            UsageError, NotFoundError, DataError, ProviderError: see `TraceLog.read`.
        """
        config = self.config
        with TraceLog(TraceOptions(config.format, config.skip_invalid, config.retriever)) as log:
            log.read(config.path)
            for each in log.queries():
                if each.searches >= config.min_searches:
                    yield each.first, logged_query(each)


def logged_query(logged: LoggedQuery) -> Query:
    """Return a logged query with its signals as metadata; signals that did not occur are omitted."""
    signals = {name: getattr(logged, name) for name in SIGNALS[1:-1]}
    facts: dict[str, object] = {"frequency": logged.searches, "first": logged.place}
    facts.update({name: count for name, count in signals.items() if count})
    if logged.latency_ms is not None:
        facts["latency_ms"] = round(logged.latency_ms, 3)
    return Query(qid=logged.qid, text=logged.text, language=logged.language, metadata=facts)


SIGNALS = ("searches", "negative", "positive", "empty", "failed", "low", "slow", "signals")


def _summarise_searches(rows: Iterator[Sequence[object]], low: Number, slow: Number, sign: float) -> LoggedQuery:
    """Return the query that has these searches (see `ROWS`); the first row has the most frequent spelling.

    Args:
        low: limit below which a score, times `sign`, is low; None if undefined.
        slow: latency in milliseconds above which a latency is high; None if undefined.
        sign: factor that makes higher scores better: 1, or -1 for distances.
    """
    signals: Counter[str] = Counter()
    latencies: list[float] = []
    text, language, place, first = "", "", "", 0
    for _, _, spelling, spoken, where, _, number, latency, *rest in rows:
        flags = _signals(latency, rest, low, slow, sign)
        signals.update((*flags, "searches", *(("signals",) if flags - {"positive"} else ())))
        if isinstance(latency, float):
            latencies.append(latency)
        text, language = text or str(spelling), language or str(spoken)
        if isinstance(number, int) and (not first or number < first):
            first, place = number, str(where)
    middle = median(latencies) if latencies else None
    counts = {name: signals[name] for name in SIGNALS}
    return LoggedQuery(made_id(text), text, language, place, first, **counts, latency_ms=middle)


def _signals(latency: object, row: Sequence[object], low: Number, slow: Number, sign: float) -> set[str]:
    """Return the signals of a search; `row` contains first score, error, number of results, and range of feedback."""
    top, failed, results, least, most = row
    found = {
        "negative": isinstance(least, float) and least <= NEGATIVE,
        "positive": isinstance(most, float) and most > NEGATIVE,
        "empty": results == 0 and not failed,
        "failed": bool(failed),
        "low": low is not None and isinstance(top, float) and sign * top < low,
        "slow": slow is not None and isinstance(latency, float) and latency > slow,
    }
    return {name for name, holds in found.items() if holds}


def _hits(documents: Sequence[TracedDocument], ids: Sequence[tuple[str, str]]) -> list[tuple[str, int, Number]]:
    """Return id, rank and score of the documents; a document that is repeated is listed once, at its best rank."""
    found: dict[str, tuple[str, int, Number]] = {}
    for rank, ((name, _), each) in enumerate(zip(ids, documents, strict=True), start=1):
        found.setdefault(name, (name, rank, each.score))
    return list(found.values())


def _is_non_increasing(scores: Sequence[Number]) -> bool:
    """Return whether there are only numbers, none of which is greater than its predecessor."""
    return all(
        one is not None and other is not None and one >= other
        for one, other in zip(scores, scores[1:] or scores, strict=False)
    )


def _number(name: str) -> int:
    """Return a nonzero 63-bit number for an id; 0 for an empty one."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 1) or 1 if name else 0


def _digest(document: TracedDocument) -> str:
    text = document.doc_id or " ".join(document.text.split())
    return hash_bytes(text.encode("utf-8", "surrogatepass"))[:HASH_DIGITS]


def _logged_id(document: TracedDocument) -> str:
    """Return the logged id, or an id derived from it or from the text if run files cannot represent it."""
    if document.doc_id and id_problem(document.doc_id) is None:
        return document.doc_id
    return f"{'id' if document.doc_id else 'text'}-{_digest(document)}"
