"""What must be known where systems differ in how their corpus is cut: the cuts, who is scored by projected grades, and
which differences may be due to that. From the report alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from raggs.base.jsontypes import Number
from raggs.base.text import plural
from raggs.evaluation.document import Cell, Section, Table
from raggs.evaluation.projected import rule_words
from raggs.sweeps.excerpts import TERMS, is_reference
from raggs.sweeps.grid import CHUNKER
from raggs.sweeps.models import CutPart, EffectPart, SweepReport, SystemRow
from raggs.sweeps.words import ms

NAMED = 3  # differences between cuts that are doubted one by one
READ = ("span_recall4", "span_precision4")
LOST = 0.05  # of the judged characters; what is lost at cuts is white space


def span_columns(report: SweepReport) -> tuple[str, ...]:
    """The measures in characters that a table shows of each system."""
    marked = any(name.startswith(tuple(TERMS)) for name in report.measures)
    names = (f"{name}@{report.cutoffs[0]}" for name in (TERMS if marked else READ))
    return tuple(name for name in names if name in report.measures and name not in report.quality)


def cuts_section(report: SweepReport) -> Section | None:
    """The cuts, and how their systems are scored."""
    if not report.cuts:
        return None
    first = str(report.cutoffs[0])
    unjudged = unjudged_by_cut(report.systems, first)
    read = [f"{name}@{first}" for name in (*TERMS, *READ) if f"{name}@{first}" in report.measures]
    rows = tuple(
        (
            Cell(part.label),
            Cell(f"{part.passages:,}"),
            Cell(None if part.seconds is None else _took(part.seconds)),
            Cell("as judged" if part.golden else "by projection"),
            Cell(None if (share := unjudged.get(part.label)) is None else f"{share:.0%}"),
            Cell(None if (tokens := _context(report.systems, part.label)) is None else f"{tokens:,.0f}"),
            *(Cell(_mean(report.systems, part.label, name), "score") for name in read),
            Cell(part.chunker),
        )
        for part in report.cuts
    )
    head = ("cut", "passages", "cut in", "scored", f"unjudged characters@{first}", "context tokens", *read, "chunker")
    return Section("How the corpus is cut", tuple(_sentences(report)), Table(head, rows))


def _took(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds >= 1 else ms(1000 * seconds)


def _mean(rows: Sequence[SystemRow], label: str, measure: str) -> Number:
    """Of a measure, over the systems of a cut."""
    found = [row.scores[measure].mean for row in rows if row.levels.get(CHUNKER) == label and measure in row.scores]
    known = [mean for mean in found if mean is not None]
    return fmean(known) if known else None


def unjudged_by_cut(rows: Sequence[SystemRow], cutoff: str) -> Mapping[str, float]:
    """By cut, the share of the top's characters that nobody judged, mean over its systems."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if (share := row.unjudged_characters.get(cutoff)) is not None:
            found.setdefault(row.levels[CHUNKER], []).append(share)
    return {label: fmean(shares) for label, shares in found.items()}


def cut_notes(
    rows: Sequence[SystemRow], cuts: Sequence[CutPart], effects: Sequence[EffectPart], measure: str, cutoff: int
) -> Iterator[str]:
    """What a reader must know before comparing systems of different cuts.

    Args:
        rows: the systems with their scores.
        cuts: of the corpus.
        effects: what each axis buys in `measure`.
        measure: that decides first.
        cutoff: up to which unjudged characters are counted.
    """
    carried = [row for row in rows if row.projection is not None]
    if carried:
        yield (
            f"{plural(len(carried), 'system')} of {len(rows)} are scored by projection, for the golden set was judged "
            f"on another cut: {', '.join(part.label for part in cuts if not part.golden)}"
        )
    unjudged = unjudged_by_cut(rows, str(cutoff))
    doubted = [each for each in effects if each.axis == CHUNKER and _doubtful(each, unjudged)]
    if doubted and not is_reference(measure):
        told = "; ".join(_doubt(each, measure, unjudged) for each in doubted[:NAMED])
        more = f"; and {len(doubted) - NAMED} more" if len(doubted) > NAMED else ""
        yield (
            f"what a cut buys may be due to what nobody judged in the top {cutoff}: {told}{more}: a golden set that "
            "was judged deeper, or references of the questions, would tell"
        )
    alike: dict[str, list[str]] = {}
    for part in cuts:
        alike.setdefault(part.content, []).append(part.label)
    yield from (f"{' and '.join(labels)} cut these documents alike" for labels in alike.values() if len(labels) > 1)
    for part in cuts:
        lost = next((row.projection.lost for row in carried if row.levels[CHUNKER] == part.label and row.projection), 0)
        if lost > LOST:
            yield f"{lost:.0%} of the judged characters stand in no passage of {part.label}"


def _doubtful(effect: EffectPart, unjudged: Mapping[str, float]) -> bool:
    """Whether the difference of two cuts is no greater than that of what nobody judged of them."""
    if effect.quality is None or effect.level not in unjudged or effect.against not in unjudged:
        return False
    gap = abs(unjudged[effect.level] - unjudged[effect.against])
    return gap > 0 and abs(effect.quality) <= gap


def _doubt(effect: EffectPart, measure: str, unjudged: Mapping[str, float]) -> str:
    before, after = (f"{unjudged[label]:.0%}" for label in (effect.against, effect.level))
    changed = f"{effect.against} → {effect.level} changes {measure} by {effect.quality:+.3f}"
    return f"{changed}, and {before} and {after} of their characters are unjudged"


def _sentences(report: SweepReport) -> Iterator[str]:
    yield (
        "each cut has passages, vectors and indexes of its own; cutting is work of the index, for which no question "
        "waits; scores, unjudged characters and tokens are means over the systems of a cut"
    )
    rules = {rule_words(row.projection): None for row in report.systems if row.projection}
    yield from (f"projected: {rule}" for rule in rules)
    if any(name.startswith(tuple(TERMS)) for name in report.measures):
        yield "reference_recall and reference_precision count characters of references of questions, and favour no cut"
    yield (
        "span_recall4 and span_precision4 count characters of passages graded 4 or 5, whole ones of the cut that was "
        "judged, which favours it"
    )


def _context(rows: Sequence[SystemRow], label: str) -> Number:
    """Mean tokens that the generator reads, over the systems of a cut."""
    found = [row.cost.context_tokens for row in rows if row.cost and row.levels.get(CHUNKER) == label]
    known = [tokens for tokens in found if tokens is not None]
    return fmean(known) if known else None
