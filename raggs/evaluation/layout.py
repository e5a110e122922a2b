"""Output of an evaluation: the document of its report, the files eval.json, eval.csv and eval.md, and the summary.

The summary is the default output of `raggs eval`: verdicts on one measure, a table of a few measures, and the limits of
the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from raggs.base.document import (
    Cell,
    Legend,
    ReportDocument,
    Row,
    ScoreRange,
    Section,
    Summary,
    Table,
    bounded,
    csv_text,
    markdown,
)
from raggs.base.files import write_texts
from raggs.base.text import plural
from raggs.base.types import Number
from raggs.evaluation.analyses import REGISTRY, Analysis
from raggs.evaluation.messages import MARKS, interval_words, judgments, unjudged_tops
from raggs.evaluation.models import ComparisonPart, EvalReport, ScorePart, SystemPart, Verdict
from raggs.evaluation.report import projections
from raggs.metrics.names import glossary


def lay_out(report: EvalReport) -> ReportDocument:
    """Return the document of a report, without computing anything.

    Raises:
        UsageError: the report contains findings of an analysis that is not installed.
    """
    analyses: list[Analysis] = [REGISTRY.load(name)() for name in dict.fromkeys((*REGISTRY.builtin, *report.analyses))]
    sections = tuple(section for analysis in analyses if (section := analysis.section(report)))
    ranged = any(score.low is not None for _, score in _all_scores(report))
    signs = (
        Legend("[ ]", interval_words(report)) if ranged else None,
        *(analysis.legend(report) for analysis in analyses),
    )
    legend = tuple(filter(None, signs))
    said = (judgments(report.golden), *projections(report))
    scores = Section("Scores", said, _scores(report), legend, _terms(report))
    return ReportDocument("Evaluation", scores, sections, report.notes, report.warnings)


def _terms(report: EvalReport) -> tuple[Legend, ...]:
    """Return the definitions of the measures in the report."""
    return tuple(Legend(name, said) for name, said in glossary(report.measures).items())


def _scores(report: EvalReport) -> Table:
    """Return a table with one row per measure and one column per system. A column with the number of valid queries
    is added if a measure is not defined for all queries.
    """
    partial = any(score.valid < report.golden.queries for _, score in _all_scores(report))
    head = ("measure", *(system.name for system in report.systems), *(["valid queries"] if partial else []))
    rows = [_row(report, measure, partial) for measure in report.measures]
    if any(system.tasks for system in report.systems):
        columns = zip(*map(_task_cells, report.systems), strict=True)
        blank = [Cell("")] if partial else []
        rows += [(Cell(name), *cells, *blank) for name, cells in zip(TASK_HEAD, columns, strict=True)]
    if any(system.latency for system in report.systems):
        columns = zip(*map(_latency_cells, report.systems), strict=True)
        blank = [Cell("")] if partial else []
        rows += [(Cell(name), *cells, *blank) for name, cells in zip(LATENCY_ROWS, columns, strict=True)]
    return Table(head, tuple(rows))


def _row(report: EvalReport, measure: str, partial: bool) -> Row:
    scores = {system.name: system.scores[measure] for system in report.systems}
    best = _best_mean(report, measure, [score.mean for score in scores.values()])
    marks = {part.system: MARKS[part.verdict] for part in report.comparisons if part.measure == measure}
    cells = (_cell(score, marks.get(name, ""), score.mean == best) for name, score in scores.items())
    return (Cell(measure), *cells, *([Cell(_valid(report, list(scores.values())))] if partial else []))


def _best_mean(report: EvalReport, measure: str, means: list[Number]) -> Number:
    """Return the best mean; None if there is only one system, if all are equal, or if no mean is defined."""
    better: Callable[[list[float]], float] = max if report.higher_is_better[measure] else min
    known = [mean for mean in means if mean is not None]
    return better(known) if len({*known}) > 1 or (known and None in means) else None


def _cell(score: ScorePart, mark: str, best: bool) -> Cell:
    ranges = []
    if score.low is not None and score.high is not None:
        ranges.append(ScoreRange(score.low, score.high, "[]"))
    if score.lowest is not None and score.highest is not None:
        ranges.append(ScoreRange(score.lowest, score.highest, "{}"))
    return Cell(score.mean, "score", mark, tuple(ranges), best and score.mean is not None)


def _valid(report: EvalReport, scores: list[ScorePart]) -> str:
    """Return ``26 of 28``; if the systems differ, the text has one number for each, in their order."""
    counts = [score.valid for score in scores]
    said = str(counts[0]) if len(set(counts)) == 1 else "/".join(map(str, counts))
    return f"{said} of {report.golden.queries}"


def _all_scores(report: EvalReport) -> Iterator[tuple[str, ScorePart]]:
    for system in report.systems:
        yield from system.scores.items()


RESULT = "eval.json"


def write_report(report: EvalReport, folder: Path) -> list[Path]:
    """Write all files into `folder`, which is created if missing; each file is written completely or not at all.

    Raises:
        ProviderError: the folder cannot be written.
    """
    texts = {
        RESULT: report_json(report) + "\n",
        "eval.csv": per_query_csv(report),
        "eval.md": markdown(lay_out(report)),
    }
    return write_texts(folder, texts)


def report_json(report: EvalReport) -> str:
    """Return the report as JSON; `raggs schema eval` describes it."""
    return report.model_dump_json(indent=2)


def per_query_head(report: EvalReport) -> list[str]:
    """Return the column titles of `per_query_rows`."""
    return ["system", "qid", *report.measures]


def per_query_rows(report: EvalReport) -> Iterator[tuple[str, str, list[Number]]]:
    """Yield a row for each system and query, with one value per measure. The value is None if it is not defined.
    Queries are sorted.
    """
    for system, by_measure in report.per_query.items():
        for qid in sorted({qid for values in by_measure.values() for qid in values}):
            yield system, qid, [by_measure[measure].get(qid) for measure in report.measures]


def per_query_csv(report: EvalReport) -> str:
    """Return one CSV row per system and query and one column per measure; an empty cell means "not defined"."""
    rows = ((system, qid, *values) for system, qid, values in per_query_rows(report))
    return csv_text(per_query_head(report), rows)


# --- the default output of `raggs eval` ---

# measures of the table if the user names none, in this order
TABLE_MEASURES = ("ndcg", "recall", "mrr", "holes", "ra_nwg")
MAX_SENTENCES = 2  # up to this number, each comparison has its own sentence; more comparisons are grouped by verdict
MAX_NAMES = 3  # maximum number of systems that a sentence lists
MAX_NAME_CHARS = 24
LATENCY_ROWS = ("latency p50 (ms)", "latency p95 (ms)")
TASK_HEAD = ("searches/task", "USD/task")
MAX_WITH_TASKS = 3  # maximum number of measures next to the columns of `TASK_HEAD`
UNJUDGED_UNKNOWN = "The labels list only relevant passages: passages without a label count as not relevant."
DETAILS = "--details: all measures, intervals, ceilings (PROC), ties, definitions"


@dataclass(frozen=True)
class SummaryContext:
    """Facts that a summary needs and the report does not contain.

    Attributes:
        measures: canonical names of the measures that the user named; empty for the default measures.
        comparisons: comparisons with one baseline on the primary measure.
        makers: systems that the golden set was pooled from. The value is True if the set itself records this.
        lacks: why the golden set is incomplete; empty if it is complete.
        model_versions: sentences about models of which several versions gave the grades.
        outcomes: total number of gates, and number of failed gates.
        digits: number of decimals of scores in sentences.
        lowest_label: lowest grade of the labels if no label has the lowest grade of the scale, else None.
    """

    measures: Sequence[str] = ()
    comparisons: Sequence[ComparisonPart] = ()
    makers: Mapping[str, bool] = field(default_factory=dict)
    lacks: str = ""
    model_versions: Sequence[str] = ()
    outcomes: tuple[int, int] = (0, 0)
    digits: int = 3
    lowest_label: int | None = None

    @property
    def binary_at(self) -> int | None:
        """Value of `--binary-at` for labels that list only relevant passages, if unjudged passages decide a verdict."""
        return self.lowest_label if any(part.unjudged is not None for part in self.comparisons) else None


def summarise(report: EvalReport, context: SummaryContext) -> Summary:
    """Return the default output of an evaluation, without computing anything."""
    measures = shown_measures(report, context.measures)
    notes = f", {plural(len(report.notes), 'note')}" if report.notes else ""
    return Summary(
        headline=(*_gates(*context.outcomes), *_headline(report, measures[0], context)),
        table=_table(report, measures),
        legend=f"[ ] {interval_words(report)}",
        trust=(
            *([f"The golden set is incomplete: {context.lacks}"] if context.lacks else []),
            *([f"Golden set: {report.golden.version}."] if report.golden.version is not None else []),
            *context.model_versions,
            *_labels_hint(context),
            *_limits(report, context.makers),
        ),
        details=DETAILS + notes,
        warnings=report.warnings,
    )


def shown_measures(report: EvalReport, named: Sequence[str] = ()) -> list[str]:
    """Return the measures of the table; the first one is the primary measure, which the headline is about.

    Args:
        named: canonical names of the measures that the user named. If empty, the measures are nDCG, recall, MRR, holes
            and RA-nWG, each at its largest cutoff. If the report has none of them, all its measures are shown.
    """
    if named:
        return [*dict.fromkeys(name for name in named if name in report.measures)] or list(report.measures)
    largest: dict[str, str] = {}
    for name in sorted(report.measures, key=_cutoff):
        largest[name.partition("@")[0]] = name
    return [largest[name] for name in TABLE_MEASURES if name in largest] or list(report.measures)


def _cutoff(measure: str) -> int:
    """Return the cutoff of a measure. Return 0 if it has none, and for ``@k``, which stands for the cutoff of each
    sample.
    """
    found = re.search(r"@(\d+)", measure)
    return int(found[1]) if found else 0


def _gates(count: int, failed: int) -> Iterator[str]:
    if count:
        yield f"{failed} of {plural(count, 'gate')} failed." if failed else f"All gates passed ({count})."


def _headline(report: EvalReport, measure: str, context: SummaryContext) -> Iterator[str]:
    parts = context.comparisons
    if not parts:
        yield from _score_sentences(report, measure, context.digits)
    elif len(parts) <= MAX_SENTENCES:
        yield from (verdict_sentence(part, context.digits) for part in parts)
    else:
        yield from grouped_verdicts(parts, context.digits)


def _score_sentences(report: EvalReport, measure: str, digits: int) -> Iterator[str]:
    """Yield a sentence with the scores of the systems, for a single system and for systems that are not compared."""
    queries = plural(report.golden.queries, "query")
    texts = []
    for system in report.systems:
        score = system.scores[measure]
        value = _number(score.mean, digits) + _interval(score.low, score.high, digits)
        texts.append((shorten_name(system.name), value))
    if len(texts) == 1:
        yield f"{texts[0][0]} has {measure} {texts[0][1]} on {queries}."
        return
    more = f" and {len(texts) - MAX_NAMES} more" if len(texts) > MAX_NAMES else ""
    yield f"{measure} on {queries}: {', '.join(f'{name} {value}' for name, value in texts[:MAX_NAMES])}{more}."


def verdict_sentence(part: ComparisonPart, digits: int) -> str:
    """Return the verdict of one comparison: ``dense is worse than bm25 on ndcg@10 by 0.084 [0.020, 0.150].``"""
    system, baseline, on = shorten_name(part.system), shorten_name(part.baseline), f"on {part.measure}"
    if part.difference is None:
        return f"{system} and {baseline} cannot be compared {on}: it is not defined for any shared query."
    seen = f"(difference {_number(part.difference, digits)}{_interval(part.low, part.high, digits)})"
    if part.unjudged is not None:
        return f"{system} against {baseline} {on} is inconclusive: {unjudged_tops(part.unjudged.tops)} {seen}."
    if part.verdict in ("better", "worse"):
        word = "better" if part.verdict == "better" else "worse"
        small = ", a difference too small to matter" if part.negligible else ""
        return f"{system} is {word} than {baseline} {on} by {_size(part, digits)}{small}."
    if part.verdict == "equivalent":
        return f"{system} and {baseline} are equivalent {on} {seen}."
    # With few queries, the bootstrap interval can exclude zero although the test is not significant.
    excludes_zero = part.low is not None and part.high is not None and (part.low > 0 or part.high < 0)
    if excludes_zero and part.holm is not None:
        seen = f"{seen[:-1]}, but p = {part.holm:.2g})"
    return f"{system} and {baseline} are statistically tied {on} {seen}."


GROUPS: dict[Verdict, str] = {
    "better": "Better than {} on {}",
    "worse": "Worse than {} on {}",
    "equivalent": "Equivalent to {} on {}",
    "inconclusive": "Statistically tied with {} on {}",
    "unjudged": "Inconclusive against {} on {} (unjudged passages)",
}


def grouped_verdicts(parts: Sequence[ComparisonPart], digits: int) -> Iterator[str]:
    """Yield one sentence per verdict, which lists the systems with this verdict."""
    for verdict, words in GROUPS.items():
        found = [part for part in parts if part.verdict == verdict]
        if not found:
            continue
        sized = verdict in ("better", "worse")
        names = (f"{shorten_name(part.system)}{f' by {_size(part, digits)}' if sized else ''}" for part in found)
        yield f"{words.format(shorten_name(parts[0].baseline), parts[0].measure)}: {', '.join(names)}."


def _size(part: ComparisonPart, digits: int) -> str:
    """Return the absolute difference with its interval: ``0.084 [0.020, 0.150]``."""
    value, low, high = part.difference or 0.0, part.low, part.high
    if value < 0 and low is not None and high is not None:
        low, high = -high, -low
    return f"{_number(abs(value), digits)}{_interval(low, high, digits)}"


def _number(value: float | None, digits: int) -> str:
    return "undefined" if value is None else f"{value:z.{digits}f}"


def _interval(low: float | None, high: float | None, digits: int) -> str:
    return "" if low is None or high is None else f" [{low:z.{digits}f}, {high:z.{digits}f}]"


def shorten_name(name: str, most: int = MAX_NAME_CHARS) -> str:
    """Return the name. If it has more than `most` characters, its middle is replaced by an ellipsis."""
    return name if len(name) <= most else f"{name[: most // 2]}…{name[1 - most // 2 :]}"


def _table(report: EvalReport, measures: Sequence[str]) -> Table:
    first, *others = measures
    tasked = any(system.tasks for system in report.systems)
    others = others[: MAX_WITH_TASKS - 1] if tasked else others
    rows = []
    for system in report.systems:
        lead = system.scores[first]
        cells = (Cell(system.scores[name].mean, "score") for name in others)
        row = (Cell(shorten_name(system.name)), bounded(lead.mean, lead.low, lead.high), *cells)
        rows.append((*row, *(_task_cells(system) if tasked else ())))
    return Table(("system", first, *others, *(TASK_HEAD if tasked else ())), tuple(rows))


def _task_cells(system: SystemPart) -> tuple[Cell, Cell]:
    """Return the mean number of searches and the mean cost per task; empty if they are unknown."""
    tasks = system.tasks
    usd = None if tasks is None else tasks.usd
    return Cell("" if tasks is None else f"{tasks.searches:.1f}"), Cell("" if usd is None else f"{usd:.4f}")


def _latency_cells(system: SystemPart) -> tuple[Cell, Cell]:
    """Return the median and the 95th percentile of the latency; empty if it is unknown."""
    latency = system.latency
    return (Cell(""), Cell("")) if latency is None else (Cell(f"{latency.p50_ms:,.0f}"), Cell(f"{latency.p95_ms:,.0f}"))


def _limits(report: EvalReport, makers: Mapping[str, bool]) -> Iterator[str]:
    yield from _validity(report)
    if report.golden.version and (dependent := report.golden.version.dependent):
        yield f"Queries to check, whose documents changed or are gone: {_names(dependent)}."
    yield from _unjudged(report)
    if makers:
        yield _pool_sentence(list(makers), any(makers.values()), len(report.systems))
    if missing := [f"{shorten_name(system.name)} ({system.missing})" for system in report.systems if system.missing]:
        yield f"Queries without results, scored as empty lists: {_names(missing)}."
    if any(system.projection for system in report.systems):
        yield "Grades were projected onto chunks that were not judged themselves."


def _validity(report: EvalReport) -> Iterator[str]:
    """Yield a sentence on queries and labels that are not valid, if any."""
    part = report.validity
    if part is None or not (part.queries or part.labels):
        return
    counts = ((len(part.queries), "query"), (part.labels, "label"))
    parts = " and ".join(plural(count, what) for count, what in counts if count)
    if part.excluded:
        yield f"Excluded, because not valid on {part.day}: {parts}."
    else:
        yield f"Not valid on {part.day}, but counted: {parts}. To exclude them, pass --as-of {part.day}."


def _labels_hint(context: SummaryContext) -> Iterator[str]:
    """Yield a hint about `--binary-at` if unjudged passages decide a verdict and the labels may list only relevant
    passages.
    """
    if context.binary_at is not None:
        yield (
            f"Unjudged passages decide the verdict, and no label is below {context.binary_at}. If your labels list "
            f"all relevant passages, pass --binary-at {context.binary_at}."
        )


def _pool_sentence(makers: Sequence[str], stated: bool, count: int) -> str:
    """Return a sentence on which systems the pool comes from.

    Args:
        makers: systems that the set was pooled from.
        stated: whether the set itself records its pool.
        count: number of systems in the evaluation.
    """
    names = _names(makers) if len(makers) <= MAX_NAMES else f"{len(makers)} of the {count} systems"
    origin = f"The pool {'' if stated else 'probably '}comes from {names}"
    if len(makers) == count:
        return f"{origin}: relevant passages that all of them missed are unknown."
    return f"{origin}: others may score too low."


def _unjudged(report: EvalReport) -> Iterator[str]:
    if report.condensed:
        yield "Unjudged passages were removed from all lists (--condensed)."
        return
    if not report.shown:
        yield UNJUDGED_UNKNOWN
        return
    name = [each for each in report.measures if each.startswith("holes@")][-1]
    shares = {system.name: system.scores[name].mean or 0.0 for system in report.systems}
    top = f"the top {name.partition('@')[2]}"
    if not any(shares.values()):
        yield f"All passages in {top} are judged."
    elif len(shares) <= MAX_NAMES:
        listed = ", ".join(f"{shorten_name(system)} {_percent(share)}" for system, share in shares.items())
        yield f"Unjudged passages in {top}: {listed}."
    else:
        most = max(shares, key=lambda system: shares[system])
        yield (
            f"Unjudged passages in {top}: {_percent(min(shares.values()))} to {_percent(shares[most])} "
            f"(most: {shorten_name(most)})."
        )


def _percent(share: float) -> str:
    return f"{share:.0%}" if share == 0 or share >= 0.01 else f"{100 * share:.2g}%"


def _names(names: Sequence[str]) -> str:
    listed = [shorten_name(name) for name in names[:MAX_NAMES]]
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(listed) + more
