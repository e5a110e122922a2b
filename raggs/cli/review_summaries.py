"""Default output of `raggs review status`, `raggs judge check` and `raggs judge compare` as summaries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from raggs.base.document import Summary, Table, formatted
from raggs.base.text import plural, shorten

if TYPE_CHECKING:
    from raggs.app.judge_check import JudgeCheck
    from raggs.app.judge_compare import GradeCosts, JudgeComparison
    from raggs.app.review import AnnotatorAgreement, ReviewStatus

MAX_ANNOTATORS = 8  # maximum number of rows of the table; --details prints all
MAX_JUDGE_CHARS = 24
CHECK_RESULTS = {"yes": "pass", "no": "fail", "not yet": "inconclusive"}
FIGURES = {"kappa": "kappa", "exact": "same grade", "within one": "at most one grade apart", "bias": "bias (grades)"}


# --- raggs review status --------------------------------------------------------------------------------------


def summarise_reviews(found: ReviewStatus, agreement: AnnotatorAgreement, place: str) -> Summary:
    """Return the default output of `raggs review status`.

    Args:
        agreement: how far annotators agree on the passages that several of them labelled.
        place: the run directory, as it is typed.
    """
    labelled = f"{found.graded:,} of {plural(found.pooled, 'passage')} have a human label"
    share = f" ({found.graded / found.pooled:.0%})" if found.graded and found.pooled else ""
    headline = [f"{labelled}{share}."]
    if agreement.shared:
        same = f"{agreement.equal / agreement.shared:.0%} of {plural(agreement.shared, 'passage')}"
        headline.append(f"Annotators agree on {same} with several labels.")
    rows = [(name, f"{count:,}") for name, count in found.reviewers.items()]
    more = len(rows) - MAX_ANNOTATORS
    serve = f"raggs review serve {place}"
    return Summary(
        headline=tuple(headline),
        table=Table.of(("annotator", "labels"), rows[:MAX_ANNOTATORS]),
        legend=f"{more:,} more annotators: --details" if more > 0 else "",
        trust=tuple(_review_notes(found)),
        next=f"raggs judge check {place}" if found.blind and not found.conflicts else serve,
        details="--details: folder of the labels" + (" and all annotators" if more > 0 else ""),
    )


def _review_notes(found: ReviewStatus) -> Iterator[str]:
    """Yield what limits the labels, the most important first."""
    if found.conflicts:
        settle = "raggs review set ... --settle adjudicates"
        yield f"{plural(found.conflicts, 'passage')} with different grades: {settle}."
    if found.blind < found.graded:
        yield f"{found.blind:,} are blind (given before seeing the judge's grade); only these validate the judge."
    if found.unsure:
        yield f"{plural(found.unsure, 'passage')} without a grade: every annotator answered `cannot tell`."
    if found.stale:
        yield f"{plural(found.stale, 'label')} not used: the text of the query or passage changed."
    if found.torn:
        yield "The last line of the label file is incomplete and is ignored."


# --- raggs judge check ----------------------------------------------------------------------------------------


def summarise_check(found: JudgeCheck, place: str) -> Summary:
    """Return the default output of `raggs judge check`: agreement with human labels, and each check's result."""
    from raggs.app.judge_check import check_figure

    whole, answers = found.whole, [each.answer for each in found.trust]
    kappa = check_figure("kappa", whole)
    compared = f"kappa {kappa}, {plural(whole.cases, 'label')} of {plural(whole.clusters, 'query')}"
    if all(answer == "yes" for answer in answers):
        headline = f"Judge agrees with human labels: {compared}."
    elif "no" in answers:
        headline = f"Judge disagrees with human labels: {compared}."
    else:
        headline = f"Agreement of judge and human labels is inconclusive: {compared}."
    results = ["not run" if whole.few else CHECK_RESULTS[answer] for answer in answers]
    checks = [f"  {result:<12}  {each.use}: {each.rule}" for each, result in zip(found.trust, results, strict=True)]
    rows = [
        (title, check_figure(name, whole), *([check_figure(name, found.people)] if found.people else []))
        for name, title in FIGURES.items()
    ]
    head = ("figure", "judge and annotators", *(["two annotators"] if found.people else []))
    more = max((each.more or 0 for each in found.trust), default=0)
    notes = [f"About {plural(more, 'more label')} would decide the inconclusive checks."] if more else []
    if found.drawn < whole.cases:
        chosen = f"{whole.cases - found.drawn:,} of {plural(whole.cases, 'label')}"
        notes.append(f"{chosen} are not from a random sample, so the judge's true agreement may differ.")
    if found.left_out.fitted:
        notes.append(f"Excluded: {plural(found.left_out.fitted, 'label')} that the calibration was fitted on.")
    if found.left_out.unknown_fit:
        notes.append(f"Labels that the calibration was fitted on may be included: {found.left_out.unknown_fit}.")
    if "no" in answers:
        command = f"raggs judge check {place} --details"
    else:
        command = f"raggs eval -g {place} -r {place}" if "not yet" not in answers else f"raggs review serve {place}"
    return Summary(
        headline=(headline, *checks),
        table=Table.of(head, rows),
        legend="kappa: agreement beyond chance (quadratic weights, 1 perfect); bias: judge minus annotators",
        trust=tuple(notes),
        next=command,
        details="--details: confusion matrix, calibration, and agreement by language, length and rank",
    )


# --- raggs judge compare --------------------------------------------------------------------------------------


def summarise_comparison(found: JudgeComparison, command: str) -> Summary:
    """Return the default output of `raggs judge compare`: which judge to use, with agreement and cost of each.

    Args:
        command: the same command, for `next`.
    """
    from raggs.app.judge_check import format_estimate
    from raggs.app.judge_compare import SIDE_NAMES, verdict

    whole, near, sides = found.agreement, found.nearer, (found.first, found.second)
    same = f"same grade on {whole.exact.value:.0%} of {plural(whole.cases, 'passage')}"
    verdict_text = verdict(found)
    bills = [side.bill for side in sides]
    rows = [
        ("run", *(shorten(side.run, MAX_JUDGE_CHARS) for side in sides)),
        ("judge", *(shorten(", ".join(side.judges), MAX_JUDGE_CHARS) for side in sides)),
        ("grades", *(f"{side.graded:,}" for side in sides)),
        *_bill_rows(bills),
    ]
    if near is not None:
        for title, gain in (("distance to human grade", near.off), ("kappa with human labels", near.kappa)):
            rows.append((title, f"{gain.first.value:.2f}", f"{gain.second.value:.2f}"))
    unread = len(found.unread)
    plan = f"{command} --plan plan.jsonl" if unread and (near is None or near.winner is None) else ""
    return Summary(
        headline=(
            f"{verdict_text[0].upper()}{verdict_text[1:]}.",
            f"A and B give the {same}, kappa {format_estimate(whole.kappa)}.",
        ),
        table=Table.of(("", *SIDE_NAMES), rows),
        trust=tuple(
            f"{name} is not finished: {side.lacks}." for name, side in zip(SIDE_NAMES, sides, strict=True) if side.lacks
        ),
        next=plan,
        details="--details: settings, confusion matrix and the passages on which they differ most",
    )


def _bill_rows(bills: list[GradeCosts]) -> Iterator[tuple[str, ...]]:
    """Yield the cost of both judges; nothing if neither calls a model."""
    if any(bill.calls or bill.cached for bill in bills):
        yield ("USD per 1,000 grades", *(formatted(bill.usd_per_1000, ".3f") for bill in bills))
        yield ("seconds per call", *(formatted(bill.seconds_per_call, ".2f") for bill in bills))
