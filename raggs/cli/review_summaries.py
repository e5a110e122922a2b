"""Default output of `raggs review status` and of `raggs judge check`, `compare` and `drift` as summaries."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import TYPE_CHECKING

from raggs.base.document import Summary, Table, formatted
from raggs.base.text import plural, shorten

if TYPE_CHECKING:
    from raggs.app.judge_check import JudgeCheck
    from raggs.app.judge_compare import GradeCosts, JudgeComparison
    from raggs.app.judge_drift import DriftCheck
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
    if found.evidence or found.evidence_conflicts or found.evidence_stale:
        differ = (
            f"; annotators differ on {plural(found.evidence_conflicts, 'query')}" if found.evidence_conflicts else ""
        )
        stale = f"; {plural(found.evidence_stale, 'query')} with changed texts" if found.evidence_stale else ""
        yield f"Evidence sets by annotators: {plural(found.evidence, 'query')}{differ}{stale}."
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


# --- raggs judge drift ----------------------------------------------------------------------------------------

DRIFT_RESULTS = {"drift": "fail", "no drift": "pass", "inconclusive": "inconclusive"}
DRIFT_HEADLINES = {
    "drift": "The judge has drifted",
    "no drift": "The judge has not drifted",
    "inconclusive": "Drift of the judge is inconclusive",
}


def summarise_drift(found: DriftCheck, command: str, config: str) -> Summary:
    """Return the default output of `raggs judge drift`: the verdict, the models that answered, and each change.

    Args:
        command: the same command, for `next`.
        config: configuration file of the run, as it is typed.
    """
    from raggs.app.judge_check import format_estimate

    drift = found.drift
    whole, limits = drift.agreement, drift.tolerance
    same = f"{plural(whole.cases, 'passage')} of {plural(whole.clusters, 'query')} graded again"
    shift = f"mean shift {format_estimate(whole.bias, signed=True)} grades (tolerance {limits.shift:g})"
    rows = [
        ("mean shift of grades", format_estimate(whole.bias, signed=True), f"±{limits.shift:g}", "shift"),
        (
            "lost equal grades, beyond noise",
            format_estimate(drift.lost_agreement, signed=True),
            f"{limits.agreement:g}",
            "agreement",
        ),
        ("lost canaries", format_estimate(drift.lost_canaries, signed=True), f"{limits.agreement:g}", "canaries"),
    ]
    results: dict[str, str] = {name: DRIFT_RESULTS[verdict] for name, verdict in drift.parts.items()}
    if drift.noise is None:
        results["agreement"] = "not run"
    if None in found.canaries:
        results["canaries"] = "not run"
    figures = [(title, value, limit, results[name]) for title, value, limit, name in rows]
    figures += [("equal grades, then and now", format_estimate(whole.exact), "", "")]
    figures += [("kappa, then and now", format_estimate(whole.kappa), "", "")]
    if drift.noise is not None:
        figures += [("equal grades, repeated", format_estimate(drift.noise.exact), "", "")]
    return Summary(
        headline=(f"{DRIFT_HEADLINES[drift.verdict]}: {shift}, {same}.", *_answered(found)),
        table=Table.of(("figure", "value", "tolerance", "result"), figures),
        legend=f"[ ] {100 * whole.confidence:g}% interval over queries; lost: earlier minus now",
        trust=tuple(_drift_notes(found)),
        next=_next_drift_command(found, command, config),
    )


def _answered(found: DriftCheck) -> Iterator[str]:
    """Yield for each model the snapshots that answered then and now."""
    for asked in dict.fromkeys((*found.before, *found.now)):
        then, now = (" and ".join(sorted(side.get(asked, {}))) for side in (found.before, found.now))
        if then == now:
            yield f"{asked} answers as {now}, as in the run."
        else:
            yield f"{asked} answered as {then or 'an unnamed model'}, and now answers as {now or 'an unnamed model'}."
    if not found.before and not found.now:
        yield "The provider names no model snapshot, so only the grades can show a change."


def _drift_notes(found: DriftCheck) -> Iterator[str]:
    """Yield the canaries, the source of the noise, failures and the cost."""
    before, now = found.canaries
    if now is not None:
        then = "not run" if before is None else f"{before.count} of {before.total}"
        yield f"Canaries passed: {then} in the run, {now.count} of {now.total} now."
    if found.noise_from:
        source = "several grades of the run" if found.noise_from == "run" else "repeated calls of this check"
        yield f"The judge's own noise is known from {source}."
    else:
        yield "The judge's own noise is unknown, so lost agreement is not tested: set --repeats."
    if found.failed:
        yield f"{plural(found.failed, 'judgment')} failed."
    yield f"The check {found.check} cost {found.usd:.4f} USD (budget {found.most_usd:g} USD)."


def _next_drift_command(found: DriftCheck, command: str, config: str) -> str:
    if found.drift.verdict == "no drift":
        return f"raggs audit {found.run}"
    if found.drift.verdict == "inconclusive":
        return f"{command} --passages {4 * max(1, len(found.grades))} --dry-run"
    if len(found.now) == 1 and found.judge.startswith("litellm "):
        ((asked, now),) = found.now.items()
        if len(now) == 1 and asked in found.before and not now.keys() & found.before[asked].keys():
            model = quote(f"{asked.partition('/')[0]}/{next(iter(now))}")
            return f"raggs run --config {config} --run-id {found.check} --set judge.judge.model={model} --dry-run"
    return f"raggs judge check {found.run}"
