"""Import of traces: queries of users with masked personal data, and the logged retriever as a run file.

A run file has one line per retrieved document. JSON lines and CSV also state the latency of the search; TREC files
cannot. If a query was searched several times, its last list is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from raggs.base.artifacts import Query
from raggs.base.errors import DataError, NotFoundError, UsageError
from raggs.base.files import atomic_writer, disk
from raggs.base.text import did_you_mean, plural
from raggs.base.types import BuildProgress
from raggs.config.load import load_config
from raggs.golden.sources import open_golden
from raggs.parts.queries import format_of
from raggs.parts.queries.traces import TraceFormatName, detect_trace_format
from raggs.parts.queries.traces.log import (
    CorpusIds,
    LoggedList,
    LoggedQuery,
    TraceCounts,
    TraceLog,
    TraceOptions,
    logged_query,
)
from raggs.parts.queries.writing import spreadsheet_line, write_queries
from raggs.parts.workspace import Workspace
from raggs.runs.events import Listener, ignore_event
from raggs.stats.personal_data import KINDS, same_key

__all__ = [
    "TraceImportRequest",
    "TraceImportResult",
    "TraceOptions",
    "import_traces",
    "is_trace_import",
    "open_trace_log",
]

RUN_COLUMNS = ("qid", "doc_id", "rank", "score", "latency_ms")
TREC, JSON_LINES, TABLE = "trec", "jsonl", "csv"
RUN_FORMS = {".jsonl": JSON_LINES, ".csv": TABLE, ".trec": TREC, ".run": TREC, ".txt": TREC}
TAG = "logged"
QUANTILES = (0.5, 0.95)


@dataclass(frozen=True)
class TraceImportRequest:
    """Input and options of an import of traces.

    Attributes:
        files: files of traces.
        options: how to read them.
        out: file of the queries (.jsonl, .csv or .yaml); None to report the result without writing a file.
        run_file: run file of the logged retriever (.jsonl, .csv, .trec, .run or .txt); None for none. Written only
            with `out`.
        config: configuration whose corpus contains the retrieved documents; None to keep the logged ids.
        golden: golden set whose ids are used for queries with the same words; None for none.
        force: whether to overwrite files.
    """

    files: Sequence[Path]
    options: TraceOptions = field(default_factory=TraceOptions)
    out: Path | None = None
    run_file: Path | None = None
    config: Path | None = None
    golden: Path | None = None
    force: bool = False


@dataclass(frozen=True)
class TraceImportResult:
    """Result of an import.

    Attributes:
        counts: counts of the log.
        logged: queries with their signals, the most frequent first.
        lists: number of lists in the run file; 0 if none is written.
        latency_ms: median and 95th percentile, over queries, of their median latency; None if no latency is logged.
        in_golden: number of queries of the golden set that the log contains, and of all its distinct queries; None
            without a set.
        files: written files.
    """

    counts: TraceCounts
    logged: tuple[LoggedQuery, ...]
    lists: int
    latency_ms: tuple[float, float] | None
    in_golden: tuple[int, int] | None
    files: tuple[Path, ...]

    @property
    def queries(self) -> tuple[Query, ...]:
        """The imported queries."""
        return tuple(map(logged_query, self.logged))

    def sum_of(self, signal: str) -> int:
        """Return the number of searches with a signal of `LoggedQuery`."""
        return sum(getattr(each, signal) for each in self.logged)


def is_trace_import(files: Sequence[Path], form: TraceFormatName, column: str | None) -> bool:
    """Return whether files are traces, and not logs with one text per entry.

    Raises:
        UsageError: some files are traces and others are not, or a column is passed with a format of traces.
        NotFoundError: a file is missing or unreadable.
    """
    if form != "auto":
        if column is not None:
            raise UsageError("traces have no columns to choose", remedy="omit --column or --format")
        return True
    if column is not None:
        return False
    kinds = {path: detect_trace_format(path) is not None or _is_document(path) for path in files}
    if len({*kinds.values()}) > 1:
        one, other = (next(path for path, found in kinds.items() if found is wanted) for wanted in (True, False))
        raise UsageError(f"{one} contains traces, and {other} is a log", remedy="import them one after the other")
    return all(kinds.values())


def _is_document(path: Path) -> bool:
    """Return whether the suffix is that of a JSON document, which is not a log."""
    return [each.lower() for each in path.suffixes][-1:] == [".json"] or path.name.lower().endswith(".json.gz")


@contextmanager
def open_trace_log(
    files: Iterable[Path], options: TraceOptions, config: Path | None = None, listen: Listener = ignore_event
) -> Iterator[TraceLog]:
    """Yield the log of these files; its temporary data is deleted at the end of the block.

    Args:
        config: configuration whose corpus contains the retrieved documents; None to keep the logged ids.

    Raises:
        RaggsError: a file is missing or invalid, a kind of personal data is unknown, or the corpus cannot be read.
    """
    for kind in options.allow:
        if kind not in KINDS:
            raise UsageError(f"{kind!r} is not a kind of personal data", remedy=did_you_mean(kind, KINDS))
    if config is None:
        with TraceLog(options) as log:
            _read_files(log, files, listen)
            yield log
        return
    run = load_config(config).run
    with (
        Workspace(run.workspace, run.llm, run.budget, hear=listen) as workspace,
        TraceLog(options, CorpusIds(workspace.corpus(run.corpus).store)) as log,
    ):
        _read_files(log, files, listen)
        yield log


def _read_files(log: TraceLog, files: Iterable[Path], listen: Listener) -> None:
    named = list(files)
    for number, path in enumerate(named):
        listen(BuildProgress("traces", number, len(named)))
        log.read(path)


def import_traces(request: TraceImportRequest, listen: Listener = ignore_event) -> TraceImportResult:
    """Import queries and the logged lists from traces.

    Raises:
        UsageError: an option is invalid, or a file exists.
        NotFoundError, DataError: a file, the corpus or the golden set cannot be read, or the traces contain no query.
        ProviderError: a file cannot be written.
    """
    _check(request)
    with open_trace_log(request.files, request.options, request.config, listen) as log:
        logged, in_golden = _with_golden_ids(checked_queries(log, request.files), request.golden)
        files: list[Path] = []
        lists = 0
        if request.out is not None:
            write_queries([logged_query(each) for each in logged], request.out)
            files.append(request.out)
            if request.run_file is not None:
                lists = _write_run(log.lists(logged), request.run_file)
                files.append(request.run_file)
    found = [each.latency_ms for each in logged if each.latency_ms is not None]
    middle, high = np.quantile(found, QUANTILES).tolist() if found else (0.0, 0.0)
    latency_ms = (middle, high) if found else None
    return TraceImportResult(log.counts, logged, lists, latency_ms, in_golden, tuple(files))


def _with_golden_ids(
    logged: tuple[LoggedQuery, ...], golden: Path | None
) -> tuple[tuple[LoggedQuery, ...], tuple[int, int] | None]:
    """Return queries with the ids of golden queries that have the same words, and `TraceImportResult.in_golden`."""
    if golden is None:
        return logged, None
    if not golden.exists():
        raise NotFoundError("no such golden set or run", where=golden, remedy="check the path")
    ids: dict[str, str] = {}
    for query in open_golden(golden).queries():
        ids.setdefault(same_key(query.text), query.qid)
    named = tuple(replace(each, qid=ids.get(same_key(each.text), each.qid)) for each in logged)
    return named, (sum(same_key(each.text) in ids for each in named), len(ids))


def checked_queries(log: TraceLog, files: Sequence[Path]) -> tuple[LoggedQuery, ...]:
    """Return the queries of a log.

    Raises:
        DataError: there is none.
    """
    logged = tuple(log.queries())
    if not logged:
        counts = log.counts.dropped + log.counts.skipped
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in counts.most_common())
        said = "the traces contain no query of a user" + (f" ({reasons})" if reasons else "")
        names = ", ".join(sorted(log.counts.retrievers)[:5])
        remedy = f"check --retriever; the traces have: {names}" if log.counts.dropped and names else "check the file"
        raise DataError(said, where=files[0], remedy=remedy)
    return logged


def _check(request: TraceImportRequest) -> None:
    """Check the request before any file is read."""
    if request.out is not None:
        format_of(request.out)
    if request.run_file is not None:
        run_form(request.run_file)
    for path in (request.out, request.run_file):
        if path is not None and path.exists() and not request.force:
            raise UsageError(f"{path} exists", remedy="name another file, or pass --force to replace it")


def run_form(path: Path) -> str:
    """Return the format of a run file by its suffix.

    Raises:
        UsageError: the suffix is unknown.
    """
    found = RUN_FORMS.get(path.suffix.lower())
    if found is None:
        raise UsageError(f"{path}: unknown format of a run file", remedy=f"use one of {', '.join(RUN_FORMS)}")
    return found


def _write_run(lists: Iterable[LoggedList], path: Path) -> int:
    """Write the lists and return their number; empty lists are counted, but have no lines."""
    form, count = run_form(path), 0
    with disk(path, "write to another folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_writer(path) as file:
            if form == TABLE:
                file.write(f"{','.join(RUN_COLUMNS)}\n".encode())
            for count, each in enumerate(lists, start=1):  # noqa: B007 - counted for the result
                file.write("".join(_run_lines(each, form)).encode())
    return count


def _run_lines(found: LoggedList, form: str) -> Iterator[str]:
    for hit in found.hits:
        if form == TREC:
            yield f"{found.qid} Q0 {hit.doc_id} {hit.rank} {hit.score!r} {TAG}\n"
            continue
        values = (found.qid, hit.doc_id, hit.rank, hit.score, found.latency_ms)
        row: Mapping[str, object] = dict(zip(RUN_COLUMNS, values, strict=True))
        if form == JSON_LINES:
            yield json.dumps({name: value for name, value in row.items() if value is not None}) + "\n"
        else:
            yield spreadsheet_line("" if value is None else str(value) for value in row.values()) + "\n"


def import_sentences(found: TraceImportResult) -> Iterator[str]:
    """Yield sentences about an import: the number of its queries first, then what was omitted, masked or found."""
    counts = found.counts
    searches = f"{plural(counts.searches, 'search')} and {plural(counts.requests, 'request')} without a search"
    yield f"{plural(len(found.logged), 'query')} from {searches}"
    left = counts.dropped + counts.skipped
    if left:
        yield f"omitted: {_counts(left)}"
    if counts.halvings:
        yield f"the log has too many queries: about 1 in {2**counts.halvings} is kept, with all its searches"
    yield f"personal data masked: {_counts(counts.masked)}" if counts.masked else "no personal data found"
    signals = {name: found.sum_of(name) for name in ("negative", "positive", "empty", "failed", "low", "slow")}
    if any(signals.values()):
        yield f"signals: {_counts({name: count for name, count in signals.items() if count})}"
    documents = counts.documents
    if documents["id"] or documents["text"] or documents["unmapped"]:
        told = f"{documents['id']:,} found by id, {documents['text']:,} by text, {documents['unmapped']:,} not found"
        yield f"documents in the corpus: {told}"
    elif documents["logged"]:
        yield f"documents: {documents['logged']:,} with logged ids; to map them to a corpus, pass --config"
    if documents["repeated"]:
        yield f"repeated in a list: {plural(documents['repeated'], 'document')}, kept at the best rank"
    if len(counts.retrievers) > 1:
        yield f"retrievers: {_counts(dict(counts.retrievers.most_common(5)))}; to choose one, pass --retriever NAME"
    if counts.distances:
        yield "scores rise with the rank in most lists, so they are distances; run files have them negated"
    if counts.unordered:
        yield f"{plural(counts.unordered, 'list')} without scores in falling order: the negated rank is the score"
    if found.in_golden is not None:
        yield f"golden set: {found.in_golden[0]:,} of {plural(found.in_golden[1], 'query')} in the log"
    if found.latency_ms is not None:
        yield f"latency: median {found.latency_ms[0]:,.0f} ms, 95th percentile {found.latency_ms[1]:,.0f} ms"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def import_json(found: TraceImportResult) -> dict[str, object]:
    """Return the result of an import as a JSON object."""
    counts = found.counts
    return {
        "queries": len(found.logged),
        "searches": counts.searches,
        "requests": counts.requests,
        "feedback": counts.feedback,
        "omitted": dict(counts.dropped + counts.skipped),
        "masked": dict(counts.masked),
        "documents": dict(counts.documents),
        "retrievers": dict(counts.retrievers),
        "signals": {name: found.sum_of(name) for name in ("negative", "positive", "empty", "failed", "low", "slow")},
        "kept": 1 / 2**counts.halvings,
        "distances": counts.distances,
        "lists": found.lists,
        "in_golden": found.in_golden and {"logged": found.in_golden[0], "queries": found.in_golden[1]},
        "latency_ms": None if found.latency_ms is None else dict(zip(("p50", "p95"), found.latency_ms, strict=True)),
        "files": [str(path) for path in found.files],
    }
