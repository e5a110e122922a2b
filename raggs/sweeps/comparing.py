"""Sections of a sweep's report: comparisons with the exact index, the pool and the baseline, ceilings, fronts,
chunkings.

Dallaire, "Practical RAG Evaluation", 2025: a low ceiling (PROC) calls for better retrieval. A high ceiling with a low
realised share (%PROC) calls for a better order (section 6). Use efficiency only to make a shortlist; which systems are
on the front depends on the latency limit (section 5.4). All figures come from the report. Only counts, and means over
the systems of a chunking, are computed here.

If systems use different chunks, the report counts the systems with projected grades and names their chunkings. It also
names the differences that unjudged text could explain. On the screen, systems with the same figures share one line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean

from raggs.base.document import Column, ColumnSpec, Legend, Section, Table, table_of, terms_of
from raggs.base.text import plural
from raggs.base.types import Number
from raggs.evaluation.messages import inconclusive, verdict_word
from raggs.evaluation.models import ComparisonPart, UnjudgedPart
from raggs.evaluation.report import rule_words
from raggs.stats.front import MAX_LOSS
from raggs.sweeps.grid import CHUNKER
from raggs.sweeps.judgments import TERMS, is_reference
from raggs.sweeps.messages import ms, next_step
from raggs.sweeps.models import CutPart, EffectPart, FrontierPart, SweepReport, SystemRow

MAX_INDEX_LOSS = MAX_LOSS  # share of the exact index's quality that an index may lose
MAX_COMPARED = 4
MIN_SHOWN_FALL = 5e-4  # smallest loss that is visible in numbers with three decimals


def comparing(report: SweepReport, full: bool, config: str | None = "FILE") -> Iterator[Section]:
    """Yield the sections for which the report has results. Unless `full`, tables are removed, and a section without
    sentences is omitted.
    """
    found = (_deltas(report, config), _contribution_section(report), _baseline_section(report, config), _wins(report))
    for section in found:
        if section is not None and (full or section.sentences):
            yield section if full else Section(section.title, section.sentences)


def first_of(sentences: Sequence[str]) -> list[str]:
    """Return the first inconclusive verdicts, and the number of the remaining ones."""
    more = len(sentences) - MAX_COMPARED
    return [*sentences[:MAX_COMPARED], *([f"{more} more are inconclusive"] if more > 0 else [])]


def next_steps(parts: Iterable[UnjudgedPart | None], config: str | None) -> list[str]:
    """Return how to get the unjudged passages behind inconclusive verdicts judged, without duplicates.

    Args:
        config: as for `next_step`.
    """
    found = dict.fromkeys(next_step(part, config) for part in parts if part is not None)
    return [f"next: {step}" for step in found if step]


def _deltas(report: SweepReport, config: str | None) -> Section | None:
    if not report.deltas:
        return None
    sure = [part for part in report.deltas if part.unjudged is None]
    far = [part.system for part in sure if part.loss is None or part.loss > MAX_INDEX_LOSS]
    near, all_ = len(sure) - len(far), plural(len(report.deltas), "system")
    sentence = (
        f"within {MAX_INDEX_LOSS:.0%} of the exact index on every measure: {near} of {all_} with an approximate index"
    )
    if far:
        listed = ", ".join(far[:MAX_COMPARED]) + (
            f" and {len(far) - MAX_COMPARED} more" if len(far) > MAX_COMPARED else ""
        )
        sentence += f"; not within: {listed} (raise ef or nprobe, or use the exact index)"
    whys = [f"{part.system}: {inconclusive(part.unjudged)}" for part in report.deltas if part.unjudged is not None]
    qualities = (("quality", name) for name in report.quality)
    table = table_of(report.deltas, "system", *qualities, "latency", *(["verdict"] if whys else []))
    said = (sentence, *first_of(whys), *next_steps((part.unjudged for part in report.deltas), config))
    return Section("Against the exact index", said, table)


def _contribution_section(report: SweepReport) -> Section | None:
    """Return the section on how much scores depend on passages that only one system, or a group of similar systems,
    contributed to the pool. Return None if there are no such passages.
    """
    owing = [part for part in report.loyalty if part.alone and part.score is not None and part.without is not None]
    if not owing:
        return None
    worst = owing[0]
    score, without = worst.score or 0.0, worst.without or 0.0
    said = "no score drops when the passages unique to a system count as unjudged, so the pool favours no system"
    if score - without >= MIN_SHOWN_FALL:
        said = (
            f"{worst.system} drops from {score:.3f} to {without:.3f} when the {plural(worst.alone, 'passage')} unique "
        )
        said += "to it count as unjudged: the golden set may favour this system by that much"
    columns = ("system", "score", "without", "alone", "overtaken_by")
    return Section(
        "Scores without each system's unique contributions to the pool",
        (said,),
        table_of(owing, *columns, quality=report.quality[0]),
    )


def _baseline_section(report: SweepReport, config: str | None) -> Section | None:
    if not report.comparisons:
        return None
    counted = Counter(verdict_word(part.verdict) for part in report.comparisons)
    told = ", ".join(f"{count} {verdict}" for verdict, count in counted.items())
    sentence = f"{report.quality[0]} of {plural(len(report.comparisons), 'system')}: {told} (p corrected by Holm)"
    title = f"{report.quality[0]} against {report.baseline}"
    table = table_of(
        report.comparisons,
        "system",
        (Column(title, "signed", bounds=("low", "high")), lambda part: part.difference),
        "holm",
        (Column("verdict"), _verdict_text),
    )
    reasons = [part for part in report.comparisons if part.unjudged is not None]
    why = [f"{part.system}: {inconclusive(part.unjudged)}" for part in reasons if part.unjudged is not None]
    said = (sentence, *first_of(why), *next_steps((part.unjudged for part in reasons), config))
    return Section(f"Against {report.baseline}", said, table)


def _verdict_text(part: ComparisonPart) -> str:
    return verdict_word(part.verdict) if part.unjudged is None else inconclusive(part.unjudged)


def _wins(report: SweepReport) -> Section | None:
    """Return the section on the share of resamples in which each system is chosen."""
    if not report.wins:
        return None
    return Section("Stability of the choice (bootstrap over queries)", table=table_of(report.wins, "system", "share"))


MAX_DIFFERENCES = 3  # Maximum number of differences between chunkings that are reported one by one.
READ = ("span_recall4", "span_precision4")
# Smaller shares of judged characters outside all chunks are not reported: they are usually white space at chunk
# boundaries.
MAX_LOST_SHARE = 0.05


def span_columns(report: SweepReport) -> tuple[str, ...]:
    """Return the measures in characters that a table shows for each system."""
    marked = any(name.startswith(tuple(TERMS)) for name in report.measures)
    names = (f"{name}@{report.cutoffs[0]}" for name in (TERMS if marked else READ))
    return tuple(name for name in names if name in report.measures and name not in report.quality)


def cuts_section(report: SweepReport) -> Section | None:
    """Return the section on chunkings, or None if all systems use the same chunks."""
    if not report.cuts:
        return None
    first = str(report.cutoffs[0])
    unjudged = unjudged_by_cut(report.systems, first)
    read = [f"{name}@{first}" for name in (*TERMS, *READ) if f"{name}@{first}" in report.measures]
    systems = report.systems
    table = table_of(
        report.cuts,
        *("label", "passages", "seconds", "golden"),
        (Column(f"unjudged characters@{first}", text="{:.0%}"), lambda part: unjudged.get(part.label)),
        (Column("context tokens", text="{:,.0f}"), lambda part: _context(systems, part.label)),
        *((Column(name, "score"), partial(_mean, systems, name)) for name in read),
        "chunker",
    )
    return Section("Chunking", tuple(_sentences(report)), table)


def _mean(rows: Sequence[SystemRow], measure: str, cut: CutPart) -> Number:
    """Return the mean of a measure over the systems of a chunking."""
    found = [row.scores[measure].mean for row in rows if row.levels.get(CHUNKER) == cut.label and measure in row.scores]
    known = [mean for mean in found if mean is not None]
    return fmean(known) if known else None


def unjudged_by_cut(rows: Sequence[SystemRow], cutoff: str) -> Mapping[str, float]:
    """Return the unjudged share of characters in the top, by chunking, as a mean over the chunking's systems."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if (share := row.unjudged_characters.get(cutoff)) is not None:
            found.setdefault(row.levels[CHUNKER], []).append(share)
    return {label: fmean(shares) for label, shares in found.items()}


def cut_notes(
    rows: Sequence[SystemRow], cuts: Sequence[CutPart], effects: Sequence[EffectPart], measure: str, cutoff: int
) -> Iterator[str]:
    """Yield notes on the limits of comparing systems with different chunkings.

    Args:
        rows: the systems with their scores.
        cuts: chunkings of the corpus.
        effects: main effects of the axes on `measure`.
        measure: the primary measure.
        cutoff: cutoff up to which unjudged characters are counted.
    """
    carried = [row for row in rows if row.projection is not None]
    if carried:
        yield (
            f"{plural(len(carried), 'system')} of {len(rows)} are scored by projected grades, because the golden set "
            f"was judged on other chunks: {', '.join(part.label for part in cuts if not part.golden)}"
        )
    unjudged = unjudged_by_cut(rows, str(cutoff))
    doubted = [each for each in effects if each.axis == CHUNKER and _is_within_unjudged(each, unjudged)]
    if doubted and not is_reference(measure):
        told = "; ".join(_unjudged_sentence(each, measure, unjudged) for each in doubted[:MAX_DIFFERENCES])
        more = f"; and {len(doubted) - MAX_DIFFERENCES} more" if len(doubted) > MAX_DIFFERENCES else ""
        yield (
            f"differences between chunkings may be due to unjudged text in the top {cutoff}: {told}{more}. To separate "
            "them, judge deeper pools or add references to the questions"
        )
    alike: dict[str, list[str]] = {}
    for part in cuts:
        alike.setdefault(part.content, []).append(part.label)
    yield from (f"{' and '.join(labels)} produce the same chunks" for labels in alike.values() if len(labels) > 1)
    for part in cuts:
        lost = next((row.projection.lost for row in carried if row.levels[CHUNKER] == part.label and row.projection), 0)
        if lost > MAX_LOST_SHARE:
            yield f"{lost:.0%} of the judged characters are in no chunk of {part.label}"


def _is_within_unjudged(effect: EffectPart, unjudged: Mapping[str, float]) -> bool:
    """Return whether the difference between two chunkings is at most the difference between their unjudged shares."""
    if effect.quality is None or effect.level not in unjudged or effect.against not in unjudged:
        return False
    gap = abs(unjudged[effect.level] - unjudged[effect.against])
    return gap > 0 and abs(effect.quality) <= gap


def _unjudged_sentence(effect: EffectPart, measure: str, unjudged: Mapping[str, float]) -> str:
    before, after = (f"{unjudged[label]:.0%}" for label in (effect.against, effect.level))
    changed = f"{effect.against} → {effect.level} changes {measure} by {effect.quality:+.3f}"
    return f"{changed}, and {before} and {after} of their characters are unjudged"


def _sentences(report: SweepReport) -> Iterator[str]:
    yield (
        "each chunking has its own passages, vectors and index; chunking adds no latency to queries; scores, unjudged "
        "characters and tokens are means over the systems of a chunking"
    )
    rules = {rule_words(row.projection): None for row in report.systems if row.projection}
    yield from (f"projected: {rule}" for rule in rules)
    if any(name.startswith(tuple(TERMS)) for name in report.measures):
        yield "reference_recall and reference_precision count characters of references, which favours no chunking"
    yield (
        "span_recall4 and span_precision4 count characters of judged chunks graded 4 or 5, which favours the chunking "
        "that was judged"
    )


def _context(rows: Sequence[SystemRow], label: str) -> Number:
    """Return the mean number of tokens that the generator reads, over the systems of a chunking."""
    found = [row.cost.context_tokens for row in rows if row.cost and row.levels.get(CHUNKER) == label]
    known = [tokens for tokens in found if tokens is not None]
    return fmean(known) if known else None


MAX_FOLDED_KINDS = 3  # maximum number of kinds of omitted systems that a sentence names


def best_first(report: SweepReport) -> list[SystemRow]:
    """Return the systems by the primary measure, best first. Among equals, the choice comes first, then systems on the
    front, then smaller k.
    """
    front = {name: place for place, name in enumerate(report.front)}

    def key(row: SystemRow) -> tuple[float, bool, int, int, str]:
        chosen = row.name == report.choice.winner
        return -mean(row, report.quality[0]), not chosen, front.get(row.name, len(front)), row.k, row.name

    return sorted(report.systems, key=key)


def mean(row: SystemRow, measure: str) -> float:
    """Return a system's mean of a measure, or minus infinity if it has none."""
    score = row.scores.get(measure)
    return float("-inf") if score is None or score.mean is None else score.mean


def fold_similar_systems(report: SweepReport, ordered: Sequence[SystemRow]) -> dict[str, SystemRow]:
    """Return the systems that need no line of their own: by name, the earlier system with the same figures."""
    heads: dict[str, list[SystemRow]] = {}
    folded: dict[str, SystemRow] = {}
    for row in ordered:
        if not row.scores:
            continue
        alike = heads.setdefault(_figures(row), [])
        head = next((each for each in alike if _as_fast(each, row, report.jitter_ms)), None)
        if head is None:
            alike.append(row)
        else:
            folded[row.name] = head
    return folded


def folded_sentence(report: SweepReport, folded: Mapping[str, SystemRow]) -> str:
    """Return a sentence about the systems that are not listed, grouped by the levels in which they differ."""
    kinds = Counter(_differs(folded[row.name], row) for row in report.systems if row.name in folded)
    told = [f"{kind} ({count}x)" if count > 1 else kind for kind, count in kinds.most_common(MAX_FOLDED_KINDS)]
    more = sum(kinds.values()) - sum(count for _, count in kinds.most_common(MAX_FOLDED_KINDS))
    told += [f"{more} others"] if more else []
    same = f"the same scores and price, and the same latency within {report.jitter_ms:g} ms"
    return f"{len(folded)} systems are not listed, as they have {same}: {', '.join(told)}"


def _figures(row: SystemRow) -> str:
    cost = None if row.cost is None else row.cost.total
    # PROC depends on the number of candidates
    own = [item for item in sorted(row.scores.items()) if "proc_" not in item[0]]
    return repr((own, sorted(row.holes.items()), cost))


def _as_fast(one: SystemRow, other: SystemRow, jitter: float) -> bool:
    first, second = one.latency.total, other.latency.total
    if first is None or second is None:
        return first is second
    return first.p50 == second.p50 or abs(first.p50 - second.p50) < jitter


def _differs(head: SystemRow, row: SystemRow) -> str:
    axes = [axis for axis in row.levels if row.levels[axis] != head.levels.get(axis)]
    if not axes or set(head.levels) != set(row.levels):
        return f"{row.name} like {head.name}"
    ours, theirs = ([f"{axis} {each.levels[axis]}" for axis in axes] for each in (row, head))
    return f"{' and '.join(ours)} like {' and '.join(theirs)}"


MAX_SHOWN_SYSTEMS = 12  # maximum number of systems on the screen
CHOICE, OPEN_CHOICE, FRONT_MARK, OVER_LIMIT_MARK = "choice", "choice?", "front", "over"


def ceilings_section(report: SweepReport, full: bool) -> Section | None:
    """Return the section on ceilings (PROC), realised shares (%PROC), and quality per second."""
    rows = [row for row in _rows(report, full) if row.scores]
    if not rows:
        return None
    names = report.ceilings if full else report.ceilings[:1]
    cutoffs = sorted({report.cutoffs[0], report.cutoffs[-1]})
    measures = [f"{name}@{cutoff}" for name in names for cutoff in cutoffs]
    timed = any(row.efficiency is not None for row in rows)
    if not measures and not timed:
        return None
    ends = ["efficiency", *(["efficiency_all"] if full else [])] if timed else []
    ceilings = [each for measure in measures for each in _ceiling(measure, len(names) > 1)]
    terms = (*_terms(report, full), *terms_of(rows, *ends))
    return Section(
        "Ceilings and efficiency", tuple(_advice(report)), table_of(rows, "name", *ceilings, *ends), terms=terms
    )


def _ceiling(measure: str, several: bool) -> tuple[ColumnSpec, ColumnSpec]:
    """Return the columns of a measure's ceiling and of its realised share."""
    said = f" {measure}" if several else f"@{measure.rpartition('@')[2]}"
    name = f"proc_{measure}"
    return (
        (Column(f"PROC{said}", "score"), lambda row: row.scores[name].mean if name in row.scores else None),
        (Column(f"%PROC{said}", text="{:.1%}"), lambda row: row.realised.get(measure)),
    )


def _advice(report: SweepReport) -> Iterator[str]:
    if report.ceilings:
        yield "improve retrieval if PROC is low; improve the order if PROC is high and %PROC is low"


def _terms(report: SweepReport, full: bool) -> Iterator[Legend]:
    if report.ceilings:
        said = "" if full else f" {report.ceilings[0]}"
        yield Legend("PROC", f"the best{said} that any order of the system's candidates reaches, mean over queries")
        yield Legend("%PROC", "the system's score as a share of its PROC")


def frontiers_section(report: SweepReport, full: bool) -> Section | None:
    """Return the section with the front and the choice for each latency limit, side by side. Unless `full`, limits with
    the same front and choice become one sentence. Return None without latency limits or latencies.
    """
    parts = report.frontiers
    limits = [part.slo_ms for part in parts if part.slo_ms is not None]
    if not limits or all(row.latency.total is None for row in report.systems):
        return None
    if len({(part.front, part.choice, bool(part.inconclusive)) for part in parts}) == 1 and not full:
        said = ", ".join(map(ms, limits))
        return Section("Front for each SLO", (f"the same for a p95 of at most {said}, and without a limit",))
    named = {name for part in parts for name in (*part.front, part.choice)}
    shown = [row for row in _rows(report, full) if full or row.name in named]
    head = ("system", *(f"p95 ≤ {ms(limit)}" for limit in limits), "no limit")
    table = Table.of(head, ((row.name, *(_place(row, part) for part in parts)) for row in shown))
    sentences = tuple(map(_frontier_sentence, parts)) if full else ()
    signs = {_place(row, part) for row in shown for part in parts}
    terms = {
        CHOICE: "chosen under that limit",
        OPEN_CHOICE: "chosen under that limit, but inconclusive: unjudged passages could change the choice",
        FRONT_MARK: "no other system within the limit is better in one of cost, latency and quality and worse in none",
        OVER_LIMIT_MARK: "the system's p95 is above the limit, or unknown",
    }
    legend = tuple(Legend(sign, text) for sign, text in terms.items() if sign in signs)
    return Section("Front for each SLO", sentences, table, (), legend)


def _frontier_sentence(part: FrontierPart) -> str:
    limit = "no limit" if part.slo_ms is None else f"p95 ≤ {ms(part.slo_ms)}"
    chosen = f"choice {part.choice}" if part.choice else "no choice"
    return f"{limit}: {plural(part.allowed, 'system')}, {len(part.front)} on the front, {chosen}"


def _place(row: SystemRow, part: FrontierPart) -> str | None:
    if row.name == part.choice:
        return OPEN_CHOICE if part.inconclusive else CHOICE
    if row.name in part.front:
        return FRONT_MARK
    return OVER_LIMIT_MARK if row.name in part.over else None


def _rows(report: SweepReport, full: bool) -> list[SystemRow]:
    """Return all systems, best first. Unless `full`, return only the choice, the front and the best other systems,
    without repeated figures, and at most `MAX_SHOWN_SYSTEMS`.
    """
    ordered = best_first(report)
    if full:
        return ordered
    folded = fold_similar_systems(report, ordered)
    lines = [row for row in ordered if row.name not in folded]
    first = [row for row in lines if row.name in report.front or row.name == report.choice.winner][:MAX_SHOWN_SYSTEMS]
    names = {
        row.name for row in (*first, *[row for row in lines if row not in first][: MAX_SHOWN_SYSTEMS - len(first)])
    }
    return [row for row in lines if row.name in names]
