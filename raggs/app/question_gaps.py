"""Gaps of a golden set: the kinds of user queries that it misses, and the queries to label next.

The queries of users come from traces (`raggs.app.traces`). The definitions of coverage, kinds and choice are in
`raggs.stats.query_coverage`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from raggs.app.traces import checked_queries, open_trace_log
from raggs.base.arrays import Ints, Vectors
from raggs.base.document import Legend, ReportDocument, Section, Summary, Table
from raggs.base.errors import DataError, NotFoundError, UsageError
from raggs.base.text import plural, shorten
from raggs.chunking.models import parse_spec
from raggs.golden.sources import open_golden
from raggs.llm import BudgetSettings
from raggs.parts import embedders
from raggs.parts.embedders import EmbedderConfig
from raggs.parts.queries import format_of
from raggs.parts.queries.traces.log import LoggedQuery, TraceCounts, TraceOptions, logged_query
from raggs.parts.queries.writing import write_queries
from raggs.parts.workspace import Workspace
from raggs.runs.events import Listener, ignore_event, in_loop, run_in_thread
from raggs.stats.query_coverage import (
    ChosenQuery,
    KindTotals,
    QueryCoverage,
    choose_queries,
    coverage_of,
    kinds_of,
    nearest_in_set,
)

__all__ = ["GapsRequest", "GapsResult", "QueryKind", "find_gaps", "gaps_json", "summarise_gaps"]

# Of 472 queries about five corpora, 99% have a lower cosine (WordLlama) with all queries about other corpora
KIND_COSINE = 0.45
EXAMPLES = 3
SHOWN_KINDS, SHOWN_QUERIES, LISTED_KINDS = 6, 3, 50
SHARE_OF_KIND = 0.5  # a kind is missed if the set covers less than this share of its searches
EXAMPLE_CHARS, LONG_EXAMPLE_CHARS = 38, 60


@dataclass(frozen=True)
class GapsRequest:
    """Input and options of a search for gaps.

    Attributes:
        golden: golden set, or run directory.
        traces: files of traces.
        options: how to read the traces.
        count: number of queries to propose.
        similarity: minimum cosine at which a query of the set covers a query of the log.
        embedder: specification of the embedder, as on the command line.
        confidence: confidence level of the interval.
        out: file for the proposed queries; None for none.
        force: whether to overwrite the file.
        workspace: folder of the caches.
        max_usd: cost limit of the embedder, in USD.
    """

    golden: Path
    traces: Sequence[Path]
    options: TraceOptions = field(default_factory=TraceOptions)
    count: int = 20
    similarity: float = KIND_COSINE
    embedder: str = "wordllama"
    confidence: float = 0.95
    out: Path | None = None
    force: bool = False
    workspace: Path = Path()
    max_usd: float = 5.0


@dataclass(frozen=True)
class QueryKind:
    """Queries of users with a similar meaning.

    Attributes:
        searches: number of searches.
        share: share of all searches.
        covered: share of its searches whose query is covered by the set.
        signals: share of its searches with a failure signal.
        labelled: number of queries of the set that belong to it.
        queries: number of distinct queries.
        examples: up to three queries: those that are not covered first, then those with the most searches.
    """

    searches: int
    share: float
    covered: float
    signals: float
    labelled: int
    queries: int
    examples: tuple[str, ...]

    @property
    def missed(self) -> bool:
        """Whether the set covers less than half of its searches."""
        return self.covered < SHARE_OF_KIND


@dataclass(frozen=True)
class ProposedQuery:
    """A query to label next, and the reason.

    Attributes:
        query: the query of the log.
        kind: number of its kind, from 0.
        gain: reduction of the variance of the mean over searches, relative to the largest reduction by a proposal.
    """

    query: LoggedQuery
    kind: int
    gain: float


@dataclass(frozen=True)
class GapsResult:
    """Coverage of the queries of users, their kinds, and the queries to label next.

    Attributes:
        counts: counts of the log.
        labelled: number of queries of the set.
        logged: number of distinct queries of the log.
        coverage: share of searches whose query is covered.
        kinds: kinds, the most searches first.
        proposed: queries to label next, in the order of choice.
        embedder: identity of the embedder.
        file: file of the proposed queries; None if none is written.
    """

    counts: TraceCounts
    labelled: int
    logged: int
    coverage: QueryCoverage
    kinds: tuple[QueryKind, ...]
    proposed: tuple[ProposedQuery, ...]
    embedder: str
    file: Path | None = None

    @cached_property
    def missed(self) -> tuple[QueryKind, ...]:
        """The kinds that the set misses, the most uncovered searches first."""
        return tuple(sorted((kind for kind in self.kinds if kind.missed), key=_uncovered_searches))


def _uncovered_searches(kind: QueryKind) -> float:
    return -kind.searches * (1 - kind.covered)


def find_gaps(request: GapsRequest, listen: Listener = ignore_event) -> GapsResult:
    """Compare the queries of users with a golden set. This also works in notebooks.

    Raises:
        RaggsError: the set or a file of traces is missing or invalid, the file to write exists, or the embedder fails.
    """
    if in_loop():
        return run_in_thread(lambda hear: find_gaps(request, hear), listen)
    if request.out is not None:
        format_of(request.out)
        if request.out.exists() and not request.force:
            raise UsageError(f"{request.out} exists", remedy="name another file, or pass --force to replace it")
    specs = parse_spec(request.embedder, embedders.REGISTRY, EmbedderConfig)
    if not request.golden.exists():
        raise NotFoundError("no such golden set or run", where=request.golden, remedy="check the path")
    labelled = [query.text for query in open_golden(request.golden).queries()]
    if not labelled:
        raise DataError("the golden set has no queries", where=request.golden, remedy="use a set with query texts")
    with open_trace_log(request.traces, request.options, None, listen) as log:
        logged = checked_queries(log, request.traces)
    budget = BudgetSettings(max_usd=request.max_usd)
    with Workspace(request.workspace, budget=budget, hear=listen) as workspace:
        embedder = workspace.embedder(specs)
        of_log, of_set = embedder.embed_queries([each.text for each in logged]), embedder.embed_queries(labelled)
        identity = embedder.identity
    found = _compare(logged, of_log, of_set, request)
    proposed = [logged_query(each.query) for each in found[2]]
    if request.out is not None:
        write_queries(proposed, request.out)
    return GapsResult(log.counts, len(labelled), len(logged), *found, identity, request.out)


def _compare(
    logged: Sequence[LoggedQuery], of_log: Vectors, of_set: Vectors, request: GapsRequest
) -> tuple[QueryCoverage, tuple[QueryKind, ...], tuple[ProposedQuery, ...]]:
    searches = np.array([each.searches for each in logged], dtype=np.float64)
    signals = np.array([each.signals for each in logged], dtype=np.float64)
    closest, _ = nearest_in_set(of_log, of_set)
    covered = closest >= request.similarity
    kinds = kinds_of(of_log, searches, request.similarity)
    cosine, place = nearest_in_set(of_set, of_log)
    size = int(kinds.max()) + 1
    totals = KindTotals(
        np.bincount(kinds, searches, size).astype(np.float64),
        np.bincount(kinds, signals, size).astype(np.float64),
        np.bincount(kinds[place[cosine >= request.similarity]], minlength=size).astype(np.float64),
    )
    chosen = choose_queries(of_log, kinds, searches, signals, totals, closest, request.count)
    rows = np.split(np.argsort(kinds, kind="stable"), np.cumsum(np.bincount(kinds))[:-1])
    held = tuple(
        QueryKind(
            int(totals.searches[kind]),
            float(totals.searches[kind] / searches.sum()),
            float(searches[own][covered[own]].sum() / totals.searches[kind]),
            float(totals.signals[kind] / totals.searches[kind]),
            int(totals.labelled[kind]),
            len(own),
            tuple(logged[row].text for row in sorted(own, key=lambda row: (covered[row], row))[:EXAMPLES]),
        )
        for kind, own in enumerate(rows)
    )
    return coverage_of(covered, searches, request.confidence), held, _proposals(chosen, logged, kinds)


def _proposals(chosen: Sequence[ChosenQuery], logged: Sequence[LoggedQuery], kinds: Ints) -> tuple[ProposedQuery, ...]:
    most = max((each.gain for each in chosen), default=1.0)
    return tuple(ProposedQuery(logged[each.row], int(kinds[each.row]), each.gain / most) for each in chosen)


SIGNALS = "searches with negative feedback, no result, an error, a low score or a high latency"
TERMS = (
    Legend("searches", "number of searches in the log"),
    Legend("covered", "share of these searches whose query is similar to a query of the set"),
    Legend("signals", f"share of {SIGNALS}"),
    Legend("labelled", "number of queries of the set of this kind"),
    Legend("example", "the query with the most searches, if possible one that the set does not cover"),
    Legend("reduction", "reduction of the variance of the mean over searches, relative to that by the first query"),
)
HEAD = ("example", "searches", "covered", "signals", "labelled")


def summarise_gaps(found: GapsResult, command: str) -> Summary:
    """Return the default output of `raggs questions gaps`.

    Args:
        command: the command to run next.
    """
    shown = found.missed[:SHOWN_KINDS]
    return Summary(
        headline=(coverage_sentence(found), _kinds_sentence(found)),
        table=Table.of(HEAD, [_kind_row(kind, EXAMPLE_CHARS) for kind in shown]),
        legend="kinds that the set misses, the most uncovered searches first; signals: share with a failure signal"
        if shown
        else "",
        trust=(*_first_proposals(found), *_limitations(found)),
        next=command,
        details="--details: all kinds, the queries to label, and the rules",
    )


def coverage_sentence(found: GapsResult) -> str:
    """Return the coverage with its interval as a sentence."""
    part = found.coverage
    return (
        f"The {plural(found.labelled, 'query')} of the set cover {part.share:.0%} [{part.low:.0%}, {part.high:.0%}] of "
        f"{plural(sum(kind.searches for kind in found.kinds), 'search')} ({plural(found.logged, 'distinct query')})."
    )


def _kinds_sentence(found: GapsResult) -> str:
    if not found.missed:
        return f"The set misses none of {plural(len(found.kinds), 'kind')} of queries."
    failing = sum(kind.signals * kind.searches for kind in found.missed) / sum(kind.searches for kind in found.missed)
    return (
        f"The set misses {len(found.missed):,} of {plural(len(found.kinds), 'kind')} of queries; "
        f"{failing:.0%} of their searches have a failure signal."
    )


def _kind_row(kind: QueryKind, width: int) -> tuple[object, ...]:
    example = shorten(kind.examples[0], width)
    return (example, f"{kind.searches:,}", f"{kind.covered:.0%}", f"{kind.signals:.0%}", f"{kind.labelled:,}")


def _first_proposals(found: GapsResult) -> Iterator[str]:
    if found.proposed:
        first = "; ".join(shorten(each.query.text, EXAMPLE_CHARS) for each in found.proposed[:SHOWN_QUERIES])
        yield f"First of {plural(len(found.proposed), 'query')} to label: {first}"


def _limitations(found: GapsResult) -> Iterator[str]:
    if found.counts.masked_searches:
        yield f"Personal data is masked in {plural(found.counts.masked_searches, 'search')}."
    if left := (found.counts.dropped + found.counts.skipped).total():
        yield f"Omitted entries of the log: {left:,} (raggs questions import --dry-run states the reasons)."
    if found.counts.halvings:
        yield f"The log has too many queries: about 1 in {2**found.counts.halvings} is used."
    if not found.embedder.startswith("wordllama"):
        yield f"The similarity is calibrated for wordllama, not for {shorten(found.embedder, 40)}: check --similarity."


def lay_out_gaps(found: GapsResult) -> ReportDocument:
    """Return the findings as a document, with up to `LISTED_KINDS` kinds."""
    part = found.coverage
    kinds = Table.of(HEAD, [_kind_row(kind, LONG_EXAMPLE_CHARS) for kind in found.kinds[:LISTED_KINDS]])
    rows = [
        (
            shorten(each.query.text, LONG_EXAMPLE_CHARS),
            f"{each.query.searches:,}",
            f"{each.query.signals / each.query.searches:.0%}",
            f"{each.gain:.2f}",
        )
        for each in found.proposed
    ]
    proposals = Table.of(("query", "searches", "signals", "reduction"), rows)
    notes = (
        *_limitations(found),
        f"standard error of the coverage {part.standard_error:.3f}, {100 * part.confidence:g}% interval of Wilson; the "
        f"searches count as {part.effective:,.0f} independent queries",
        "rule of the choice: each step takes the kind in which a label reduces the variance of the mean over searches "
        "most, (share of searches)^2 x (1 + share of signals) / ((labelled + 1)(labelled + 2))",
        f"embedder: {found.embedder}",
    )
    scores = Section("Coverage", (coverage_sentence(found), _kinds_sentence(found)))
    sections = (
        Section("Kinds of queries", (), kinds, terms=TERMS[:5]),
        Section("Queries to label next", (), proposals, terms=(*TERMS[:1], TERMS[2], TERMS[5])),
    )
    return ReportDocument("Gaps of a golden set", scores, sections, notes)


def gaps_json(found: GapsResult) -> dict[str, object]:
    """Return the result as a JSON object."""
    return {
        "coverage": {**found.coverage.__dict__, "labelled": found.labelled, "queries": found.logged},
        "kinds": [{**kind.__dict__, "examples": list(kind.examples), "missed": kind.missed} for kind in found.kinds],
        "proposed": [
            {
                "qid": each.query.qid,
                "text": each.query.text,
                "kind": each.kind,
                "gain": each.gain,
                "searches": each.query.searches,
                "signals": each.query.signals,
            }
            for each in found.proposed
        ],
        "masked": dict(found.counts.masked),
        "omitted": dict(found.counts.dropped + found.counts.skipped),
        "embedder": found.embedder,
        "file": None if found.file is None else str(found.file),
    }
