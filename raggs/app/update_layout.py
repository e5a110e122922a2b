"""Output of `raggs update`: the plan, and the result."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from raggs.app.update import UpdatePlan, VerdictRisk
from raggs.base.document import UNDEFINED, Cell, Row, Summary, Table
from raggs.base.files import relative_to_cwd
from raggs.base.text import plural
from raggs.evaluation.messages import verdict_word
from raggs.runs.manifests.lineage import VERSION_DIGITS, Lineage, PassageChanges, VersionCounts

CHANGE_COLUMNS = ("compared", "unchanged", "moved", "edited", "new", "gone")
MAX_QUERIES = 5  # dependent queries that are named
MAX_RISKS = 3  # verdicts that may flip and get a sentence each


def summarise_plan(plan: UpdatePlan, command: str) -> Summary:
    """Return the plan as the default output.

    Args:
        command: the command that runs the plan.
    """
    return Summary(
        headline=tuple(_headline(plan)),
        table=_changes(plan),
        legend="moved: same text, other id or place; queries: moved means renamed",
        trust=(*_risk_sentences(plan), *_dependent_sentences(plan.lineage), *plan.notes),
        next=command,
        details="--details: labels by reason, cost by stage, queries, verdicts that may flip",
    )


def _headline(plan: UpdatePlan) -> Iterator[str]:
    pools, folder = plan.pools, relative_to_cwd(plan.folder)
    if pools is None:
        yield f"{folder}: pools are unknown until retrieval, which costs money, has run."
    else:
        kept = sum(pools.carried.values())
        yield (
            f"{folder}: {kept:,} of {kept + pools.judging:,} labels are carried over; {len(pools.touched):,} of "
            f"{pools.total:,} queries change, with {plural(pools.judging, 'passage')} to judge."
        )
    yield _cost(plan)


def _cost(plan: UpdatePlan) -> str:
    paid = [line for line in plan.forecast.running if line.usd != 0]
    if not any(line.calls for line in paid):
        return "Cost: $0.0000, no call is paid."
    usd, likely = plan.forecast.usd, plan.forecast.usd_expected
    bound = "" if plan.forecast.exact else "up to "
    money = "at an unknown price" if usd is None else f"at most ${usd:,.4f}"
    expected = "" if likely is None or likely == usd else f" (expected: ${likely:,.4f})"
    return f"Cost: {bound}{sum(line.calls for line in paid):,} calls, {money}{expected}."


def _changes(plan: UpdatePlan) -> Table:
    counts = plan.queries.counts
    queries = (counts.unchanged, counts.renamed, counts.edited, counts.new, counts.gone)
    rows = [
        _row("passages", plan.lineage.corpus),
        _row("pooled passages", plan.lineage.pooled),
        (Cell("queries"), *(Cell(f"{count:,}") for count in queries)),
    ]
    return Table(CHANGE_COLUMNS, tuple(rows))


def _row(name: str, found: PassageChanges) -> Row:
    values = (found.unchanged, found.moved, found.edited, found.new, found.gone)
    return (Cell(name), *(Cell(UNDEFINED if value is None else f"{value:,}") for value in values))


def _risk_sentences(plan: UpdatePlan) -> Iterator[str]:
    if plan.risks is None:
        return
    if not plan.verdicts:
        return
    if not plan.risks:
        yield f"None of the {plural(plan.verdicts, 'verdict')} on the retrievers is likely to flip."
        return
    yield f"{len(plan.risks)} of {plural(plan.verdicts, 'verdict')} on the retrievers may flip (ndcg@10):"
    yield from map(risk_sentence, plan.risks[:MAX_RISKS])


def _dependent_sentences(lineage: Lineage) -> Iterator[str]:
    """Yield a sentence on the queries whose documents changed, if any."""
    if lineage.dependent:
        shown = [f"{qid} ({', '.join(documents)})" for qid, documents in lineage.dependent.items()][:MAX_QUERIES]
        more = ", …" if len(lineage.dependent) > MAX_QUERIES else ""
        yield f"Queries to check, whose documents changed or are gone: {', '.join(shown)}{more}"


def risk_sentence(risk: VerdictRisk) -> str:
    """Return a sentence on a verdict that may flip."""
    return (
        f"  {risk.first} against {risk.second}: {verdict_word(risk.verdict)}, difference {risk.difference:+.3f} "
        f"[{risk.low:.3f}, {risk.high:.3f}]; the update may move it by {risk.shift:.3f}"
    )


def plan_details(plan: UpdatePlan) -> Iterator[str]:
    """Yield lines: carried labels by reason, calls and cost by stage, changed queries, and verdicts that may flip."""
    if plan.pools is not None:
        for how, count in plan.pools.carried.items():
            yield f"labels carried over, {how}: {count:,}"
    yield f"labels of the parent: {plan.labels:,}"
    for line in plan.forecast.running:
        usd = "unknown price" if line.usd is None else f"${line.usd:,.4f}"
        yield f"{line.stage}: {'' if line.exact else 'up to '}{line.calls:,} calls, {usd}, {line.who}"
    for name, qids in (("edited", plan.queries.edited), ("new", plan.queries.new), ("gone", plan.queries.gone)):
        if qids:
            yield f"queries {name}: {', '.join(qids)}"
    for risk in plan.risks or ():
        yield risk_sentence(risk)


def plan_json(plan: UpdatePlan) -> dict[str, object]:
    """Return the plan as JSON."""
    pools = plan.pools
    return {
        "parent": str(plan.parent),
        "run": str(plan.folder),
        "lineage": plan.lineage.model_dump(mode="json"),
        "labels": plan.labels,
        "carried": None if pools is None else dict(pools.carried),
        "judging": None if pools is None else pools.judging,
        "touched": None if pools is None else sorted(pools.touched),
        "reused_ids": list(plan.passages.reused),
        "queries": {"edited": plan.queries.edited, "new": plan.queries.new, "gone": plan.queries.gone},
        "estimates": [line.model_dump() for line in plan.forecast.running],
        "usd": plan.forecast.usd,
        "usd_expected": plan.forecast.usd_expected,
        "risks": None if plan.risks is None else [risk.__dict__ for risk in plan.risks],
        "verdicts": plan.verdicts,
        "notes": list(plan.notes),
    }


def version_sentences(lineage: Lineage, version: str) -> Iterator[str]:
    """Yield sentences on the carried and new labels and orders of a finished version."""
    counts = lineage.counts or VersionCounts(carried={}, judged={}, orders_carried=0, orders_judged=0)
    carried, judged = sum(counts.carried.values()), sum(counts.judged.values())
    yield (
        f"Version {lineage.number} ({version[:VERSION_DIGITS]}): {carried:,} labels carried over from {lineage.name} "
        f"({lineage.origin}), {judged:,} made now."
    )
    if counts.orders_carried or counts.orders_judged:
        yield f"Orders: {counts.orders_carried:,} carried over, {counts.orders_judged:,} made now."


def diff_command(plan: UpdatePlan) -> str:
    """Return the command that compares the new version with its parent."""
    old, new = (quote(str(relative_to_cwd(each))) for each in (plan.parent, plan.folder))
    return f"raggs diff {old} {new}"
