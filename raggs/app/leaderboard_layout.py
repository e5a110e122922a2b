"""Leaderboard of judges as summary, report, plot and files. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from raggs.app.judge_check import confusion
from raggs.app.leaderboard import ALPHA, CONFIDENCE, HASH_DIGITS, LEADERBOARD, Leaderboard, leaderboard_json
from raggs.base.artifacts import MAX_GRADE, MIN_GRADE
from raggs.base.document import Cell, Legend, ReportDocument, Section, Summary, Table, formatted, markdown
from raggs.base.files import write_texts
from raggs.base.judge_health import is_people
from raggs.base.text import plural, shorten
from raggs.diagnosis.models import MeanPart
from raggs.evaluation.svg import SHARE, ChartAxis, Curve, chart

PAGE, PLOT = "leaderboard.md", "reliability.svg"
PAID_NAME_CHARS, FREE_NAME_CHARS = 25, 40  # of a judge's name on the screen, with and without cost
TERMS = (
    Legend("kappa", "agreement with the labels beyond chance, quadratic weights: 1 perfect, 0 chance"),
    Legend("exact", "share of grades equal to the label"),
    Legend("bias", "mean grade of the judge minus mean label"),
    Legend("retest", "share of pairs with the same grade in a second sample"),
    Legend("changed", "share of passage pairs whose order changes with the presentation order"),
    Legend("first wins", "share of changed pairs won by the passage shown first; 50%: no position bias"),
    Legend("USD", "per 1,000 grades; cached answers count with their original cost"),
    Legend("p50, p95", "latency of a grading call in seconds, at the configured concurrency"),
)


def headline(found: Leaderboard) -> tuple[str, ...]:
    """Return sentences on the judge that agrees best with the labels, and on its differences to the others."""
    if not found.entries:
        return ("No judge was compared.",)
    best, *others = found.entries
    figures, sample = best.shown, found.sample
    on = f"{plural(figures.cases, 'grade')} of {plural(figures.queries, 'query')}"
    lead = f"{best.judge} agrees best with the labels" if others else f"{best.judge} agrees with the labels"
    first = f"{lead} of {sample.name}: kappa {bounded_text(figures.kappa)} on {on}."
    results = [(each, found.result(best.judge, each.judge)) for each in others]
    beaten = [each.judge for each, result in results if result is not None and result.verdict == "better"]
    tied = [each.judge for each in others if each.judge not in beaten]
    if not others:
        return (first,)
    if not tied:
        return (first, f"It is significantly better than {'the other' if len(others) == 1 else 'all others'}.")
    against = ", ".join(tied[:2]) + (f" and {len(tied) - 2} more" if len(tied) > 2 else "")
    return (first, f"The difference to {against} is inconclusive.")


def bounded_text(part: MeanPart, form: str = "z.2f") -> str:
    """Return a value with its interval as text; a dash if it is undefined."""
    if part.mean is None or part.low is None or part.high is None:
        return formatted(part.mean, form)
    return f"{part.mean:{form}} [{part.low:{form}}, {part.high:{form}}]"


def limitations(found: Leaderboard) -> Iterator[str]:
    """Yield sentences about missing grades and about the labels."""
    sample = found.sample
    for each in found.entries:
        if each.failed:
            reason = f" ({shorten(each.errors[0], 60)})" if each.errors else ""
            yield f"{each.judge} failed on {each.failed:,} of {plural(len(each.grades), 'pair')}{reason}."
        if each.excluded:
            yield f"{each.judge}: {plural(len(each.excluded), 'pair')} excluded, as its calibration was fitted on them."
        if each.unknown_fit:
            yield f"{each.judge}: its calibration file does not name its labels (`fitted_on`), so none is excluded."
        if each.abstained:
            yield f"{each.judge} abstained on {each.abstained:,} of {plural(len(each.grades), 'pair')}."
    if sample.mapped:
        yield f"Labels are mapped to grades: {sample.mapped}."
    if models := {name: count for name, count in sample.graders.items() if not is_people(name)}:
        first = max(models, key=lambda name: models[name])
        yield f"{sum(models.values()):,} labels are grades by a model ({first}), not by humans."
    if sample.unused:
        yield "Not used: " + ", ".join(f"{plural(count, 'label')} {why}" for why, count in sample.unused.items()) + "."
    share = f"{len(sample.labels):,} of {plural(sample.available, 'labelled pair')}"
    if len(sample.labels) < sample.available:
        yield f"Sample stratified by label: {share}; rare labels are over-represented."


def summarise_leaderboard(found: Leaderboard, command: str) -> Summary:
    """Return the default output of `raggs judge bench`.

    Args:
        command: the command to run next.
    """
    paid = any(each.cost.calls for each in found.entries)
    names = short_names([each.judge for each in found.entries], PAID_NAME_CHARS if paid else FREE_NAME_CHARS)
    rows = [
        (
            name,
            bounded_text(each.shown.kappa),
            formatted(each.shown.exact.mean, ".0%"),
            formatted(each.shown.bias.mean, "+z.2f"),
            formatted(each.shown.retest.mean, ".0%"),
            *((formatted(each.cost.usd_per_1000, ".2f"), formatted(each.cost.p50_s, ".1f")) if paid else ()),
        )
        for name, each in zip(names, found.entries, strict=True)
    ]
    legend = "exact: same grade as the label, retest: same grade again, bias: judge minus label"
    return Summary(
        headline=headline(found),
        table=Table.of(("judge", "kappa", "exact", "bias", "retest", *(("USD", "p50 s") if paid else ())), rows),
        legend=f"{legend}; USD per 1,000 grades, p50 s: median latency" if paid else legend,
        trust=tuple(limitations(found)),
        next=command,
        details="--details: pairwise tests, bias by grade, confusion matrices, position bias",
    )


def short_names(names: Sequence[str], most: int) -> list[str]:
    """Return names of at most `most` characters: their beginnings, or their ends if two beginnings are equal."""
    found = [shorten(name, most) for name in names]
    if len(set(found)) == len(found):
        return found
    return [name if len(name) <= most else f"…{name[1 - most :]}" for name in names]


def lay_out_leaderboard(found: Leaderboard) -> ReportDocument:
    """Return the leaderboard as a document."""
    sections = [_stability(found), _by_grade(found), *([_pairs(found)] if found.pairs else []), *_calibrations(found)]
    sections += [
        Section(
            f"Grades of {each.judge} in rows, labels in columns", (), confusion(each.shown.confusion, "grade", "label")
        )
        for each in found.entries
    ]
    sample = found.sample
    notes = (
        *limitations(found),
        f"{100 * CONFIDENCE:g}% intervals from resampled queries (bootstrap)",
        f"labelled set {sample.set_hash[:HASH_DIGITS]}, sample {sample.sample_hash[:HASH_DIGITS]}, seed {sample.seed}: "
        "entries of other people with the same hashes can be added",
    )
    return ReportDocument("Judges on labelled data", _scores(found), tuple(sections), notes)


def _scores(found: Leaderboard) -> Section:
    head = ("", "judge", "kappa", "alpha", "exact", "within one", "bias", "graded", "USD", "p50", "p95")
    rows = (
        (
            rank,
            each.judge,
            bounded_text(each.shown.kappa),
            bounded_text(each.shown.alpha),
            bounded_text(each.shown.exact),
            bounded_text(each.shown.within_one),
            bounded_text(each.shown.bias, "+z.2f"),
            each.shown.cases,
            formatted(each.cost.usd_per_1000, ".3f"),
            formatted(each.cost.p50_s, ".2f"),
            formatted(each.cost.p95_s, ".2f"),
        )
        for rank, each in enumerate(found.entries, start=1)
    )
    return Section("Leaderboard", headline(found), Table.of(head, rows), terms=TERMS)


def _stability(found: Leaderboard) -> Section:
    head = ("judge", "graded twice", "retest", "retest kappa", "lists", "changed", "first wins", "no order")
    rows = (
        (
            each.judge,
            each.shown.repeated,
            bounded_text(each.shown.retest),
            bounded_text(each.shown.retest_kappa),
            each.shown.lists,
            bounded_text(each.shown.changed),
            bounded_text(each.shown.first_shown),
            each.shown.unordered,
        )
        for each in found.entries
    )
    said = ("second samples, and short lists of passages in two presentation orders",)
    return Section("Test-retest agreement and position bias", said, Table.of(head, rows))


def _by_grade(found: Leaderboard) -> Section:
    head = ("judge", *(f"label {grade}" for grade in range(MIN_GRADE, MAX_GRADE + 1)))
    rows = ((each.judge, *map(bounded_text, each.shown.by_grade)) for each in found.entries)
    return Section("Bias by grade: mean grade of the judge for each label", (), Table.of(head, rows))


def _calibrations(found: Leaderboard) -> Iterator[Section]:
    """Yield the accuracy of stated probabilities, and the reliability table of each judge that states them."""
    stated = [(each, held) for each in found.entries if (held := each.shown.calibration) is not None]
    said = ("ECE: mean difference of stated and observed probabilities; log score: 0 perfect, 1.61 for equal ones",)
    rows = (
        (each.judge, held.cases, formatted(held.error, ".3f"), formatted(held.log_score, ".3f"))
        for each, held in stated
    )
    if stated:
        yield Section("Calibration", said, Table.of(("judge", "pairs", "ECE", "log score"), rows))
    for each, held in stated:
        parts = (
            (f"{part.low:.1f}–{part.high:.1f}", f"{part.predicted:.2f}", f"{part.observed:.2f}", part.count)
            for part in held.reliability
        )
        head = ("stated", "mean stated", "observed", "predictions")
        yield Section(f"Reliability of {each.judge}", (), Table.of(head, parts))


def _pairs(found: Leaderboard) -> Section:
    said = (
        f"better or worse: p (Holm) below {ALPHA:g} and an interval that excludes 0; p from a randomisation test, "
        "corrected over all pairs of judges",
    )
    head = ("judge", "compared with", "pairs", "kappa difference", "p", "p (Holm)", "verdict")
    rows = (
        (
            each.first,
            each.second,
            each.cases,
            bounded_text(each.kappa, "+z.3f"),
            formatted(each.p, ".4f"),
            formatted(each.corrected, ".4f"),
            Cell(each.verdict, best=each.verdict == "better"),
        )
        for each in found.pairs
    )
    return Section("Pairwise comparison", said, Table.of(head, rows))


def write_leaderboard(found: Leaderboard, folder: Path) -> list[Path]:
    """Write leaderboard.json, leaderboard.md and, if judges state probabilities, reliability.svg to `folder`.

    Return the paths of the files.

    Raises:
        ProviderError: the folder cannot be written.
    """
    texts = {LEADERBOARD: leaderboard_json(found) + "\n", PAGE: markdown(lay_out_leaderboard(found))}
    plot = reliability_plot(found)
    return write_texts(folder, {**texts, **({PLOT: plot} if plot else {})})


def reliability_plot(found: Leaderboard) -> str:
    """Return the plot of predicted and observed probabilities as SVG; empty if no judge states probabilities."""
    lines = [
        Curve((each.judge,), tuple((part.predicted, part.observed) for part in held.reliability))
        for each in found.entries
        if (held := each.shown.calibration) is not None
    ]
    if not lines:
        return ""
    axes = ChartAxis("stated probability", SHARE), ChartAxis("share of true predictions", SHARE)
    notes = ("diagonal: correct probabilities", "four predictions per passage: the label is at least 2, 3, 4 or 5")
    return chart(
        "Are the stated probabilities correct?", axes, lines=lines, steps=((0.0, 0.0), (1.0, 1.0)), notes=notes
    )
