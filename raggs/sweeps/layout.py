"""From a sweep's report to its document: the systems, the choice, what each axis buys, and what is not known."""

from __future__ import annotations

from raggs.decision.deltas import MOST
from raggs.evaluation.document import Cell, Document, Legend, Range, Row, Section, Table
from raggs.evaluation.models import ScorePart
from raggs.sweeps.models import Plan, SweepReport, SystemRow
from raggs.sweeps.words import ms, usd

SHOWN = 12  # systems on the screen; files hold all
FRONT = "*"
ENOUGH = MOST  # of the exact index' quality that an index may lose


def lay_out(report: SweepReport, *, full: bool = False) -> Document:
    """The document of a sweep.

    Args:
        full: with all systems; else the front and the best of the others.
    """
    sections = (
        _choice(report),
        _effects(report),
        _steps(report),
        _wins(report),
        _memory(report),
        _deltas(report),
        _comparisons(report),
        _loyalty(report),
    )
    notes = (*report.left_out, *report.notes)
    return Document(f"Sweep {report.name}", _systems(report, full), tuple(filter(None, sections)), notes)


def lay_out_plan(plan: Plan) -> Document:
    """The document of a dry run."""
    rows = tuple(
        (
            Cell(line.what),
            Cell(line.model),
            Cell(f"{line.calls:,}"),
            Cell(f"{line.tokens:,}"),
            Cell("unknown" if line.usd is None else f"{line.usd:,.4f}"),
        )
        for line in plan.paid
    )
    money = "price unknown" if plan.usd is None else f"at most ${plan.usd:,.2f}"
    sentences = [
        f"{len(plan.systems)} systems on {plan.questions:,} questions and {plan.passages:,} passages; lists of "
        f"{plan.kept} are kept from before",
        f"to pay: {money}, some {plan.hours:.2g} hours of calls" if rows else "nothing to pay: no provider is asked",
        *plan.systems,
    ]
    table = Table(("part", "model", "calls", "tokens", "USD"), rows) if rows else None
    return Document(f"Plan of {plan.name}", Section("Plan", tuple(sentences), table), (), plan.left_out)


def _systems(report: SweepReport, full: bool) -> Section:
    primary = report.quality[0]
    ordered = sorted(report.systems, key=lambda row: (-_mean(row, primary), row.name))
    front = [row for row in ordered if row.name in report.front]
    rest = [row for row in ordered if row.name not in report.front]
    shown = (
        ordered
        if full
        else sorted([*front, *rest[: max(0, SHOWN - len(front))]], key=lambda row: (-_mean(row, primary), row.name))
    )
    head = ("system", *report.quality, "p50", "p95", "per 1,000", "holes")
    rows = tuple(_row(report, row) for row in shown)
    hidden = len(ordered) - len(shown)
    sentences = [f"{len(report.systems)} systems on {report.questions} questions, best {primary} first"]
    if hidden:
        sentences.append(f"{hidden} more in sweep.md and sweep.csv")
    legend = (
        Legend(FRONT, "no other system is at least as good, as fast and as cheap, and better in one of them"),
        Legend("[ ]", f"{report.confidence:.0%} interval of the mean"),
        Legend("p50, p95", "milliseconds before generation that half, and 95 % of the questions wait at most"),
        Legend("per 1,000", "USD for 1,000 questions"),
        Legend("holes", "share of the top that is not judged"),
    )
    return Section("Systems", tuple(sentences), Table(head, rows), legend)


def _row(report: SweepReport, row: SystemRow) -> Row:
    name = f"{row.name} {FRONT}" if row.name in report.front else row.name
    best = {measure: max(_mean(each, measure) for each in report.systems) for measure in report.quality}
    scores = [_score(row.scores.get(measure), best[measure]) for measure in report.quality]
    total, cost = row.latency.total, row.cost
    holes = [hole for hole in row.holes.values() if hole is not None]
    return (
        Cell(name),
        *scores,
        Cell(None if total is None else ms(total.p50)),
        Cell(None if total is None else ms(total.p95)),
        Cell(None if cost is None or cost.total is None else usd(cost.total)),
        Cell(f"{holes[0]:.0%}" if holes else None),
    )


def _score(score: ScorePart | None, best: float) -> Cell:
    if score is None or score.mean is None:
        return Cell(None)
    ranges = () if score.low is None or score.high is None else (Range(score.low, score.high, "[]"),)
    return Cell(score.mean, "score", "", ranges, score.mean == best)


def _mean(row: SystemRow, measure: str) -> float:
    score = row.scores.get(measure)
    return -1.0 if score is None or score.mean is None else score.mean


def _choice(report: SweepReport) -> Section:
    choice = report.choice
    return Section("Which to ship", (choice.sentence, *choice.changes, *choice.unknown))


def _effects(report: SweepReport) -> Section | None:
    if not report.effects:
        return None
    rows = tuple(
        (
            Cell(part.axis),
            Cell(f"{part.against} → {part.level}"),
            Cell(part.quality, "signed", "", _interval(part.low, part.high)),
            Cell(None if part.latency_ms is None else f"{part.latency_ms:+,.1f} ms"),
            Cell(None if part.usd_per_1k is None else f"{part.usd_per_1k:+,.2f}"),
            Cell(part.pairs),
        )
        for part in report.effects
    )
    head = ("axis", "from → to", report.quality[0], "p50", "USD per 1,000", "pairs")
    sentences = (
        "the mean change over pairs of systems that differ in nothing else",
        *(part.sentence for part in report.interactions),
    )
    return Section("What each axis buys", sentences, Table(head, rows))


def _interval(low: float | None, high: float | None) -> tuple[Range, ...]:
    return () if low is None or high is None else (Range(low, high, "[]"),)


def _steps(report: SweepReport) -> Section | None:
    if not report.steps:
        return None
    rows = tuple(
        (
            Cell(part.system),
            Cell(f"{part.from_k} → {part.k}"),
            Cell(part.quality, "signed"),
            Cell(
                None
                if part.ms is None
                else f"{part.ms:+,.1f} ms" + (" (as good as none)" if part.within_jitter else "")
            ),
            Cell(None if part.per_usd is None else f"{part.per_usd:+.4f}"),
        )
        for part in report.steps
    )
    head = ("system", "candidates", report.quality[0], "p50", "quality per USD")
    return Section("What more candidates bring", (), Table(head, rows))


def _wins(report: SweepReport) -> Section | None:
    if not report.wins:
        return None
    rows = tuple((Cell(part.system), Cell(f"{part.share:.0%}")) for part in report.wins)
    told = ", ".join(f"{part.system} {part.share:.0%}" for part in report.wins[:3])
    return Section(
        "Were the questions drawn anew", (f"the choice would be: {told}",), Table(("system", "chosen"), rows)
    )


def _memory(report: SweepReport) -> Section | None:
    seen: dict[str, Row] = {}
    for row in report.systems:
        part = row.memory
        if part is None:
            continue
        what = f"{row.levels.get('embedder', '')} in {row.levels.get('index', '')}"
        figures = (part.bytes, part.million, part.ten_million)
        built = Cell(f"{part.built_s:,.1f} s" if part.built_s else None)
        seen.setdefault(what, (Cell(what), *(Cell(_bytes(figure)) for figure in figures), built))
    if not seen:
        return None
    return Section(
        "Memory", (), Table(("vectors", "here", "1 million", "10 million", "built in"), tuple(seen.values()))
    )


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.3g} {unit}"
        count /= 1024
    return f"{count:,.3g} GiB"


def _deltas(report: SweepReport) -> Section | None:
    if not report.deltas:
        return None
    rows = tuple(
        (
            Cell(part.system),
            *(Cell(_percent(part.quality.get(name))) for name in report.quality),
            Cell(_percent(part.latency)),
        )
        for part in report.deltas
    )
    said = [part.system for part in report.deltas if part.loss is not None and part.loss <= ENOUGH]
    sentence = (
        f"within {ENOUGH:.0%} of the exact index in every measure: {', '.join(said)}"
        if said
        else f"no index is within {ENOUGH:.0%} of the exact one in every measure: raise ef or nprobe, or stay exact"
    )
    head = ("system", *report.quality, "search")
    return Section("Against the exact index", (sentence,), Table(head, rows))


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{share:+.1%}"


def _loyalty(report: SweepReport) -> Section | None:
    """What systems owe to having been pooled, where any of them brought something alone."""
    owing = [part for part in report.loyalty if part.alone and part.score is not None and part.without is not None]
    if not owing:
        return None
    worst = owing[0]
    said = f"{worst.system} falls from {worst.score:.3f} to {worst.without:.3f} when the {worst.alone} passages that "
    said += "it alone brought count as unjudged: so much may a set pooled from it flatter it"
    rows = tuple(
        (
            Cell(part.system),
            Cell(part.score, "score"),
            Cell(part.without, "score"),
            Cell(part.alone),
            Cell(", ".join(part.overtaken_by) or None),
        )
        for part in owing
    )
    head = ("system", report.quality[0], "without its own", "passages", "then behind")
    return Section("Were it not in the pool", (said,), Table(head, rows))


def _comparisons(report: SweepReport) -> Section | None:
    if not report.comparisons:
        return None
    rows = tuple(
        (
            Cell(part.system),
            Cell(part.difference, "signed", "", _interval(part.low, part.high)),
            Cell(part.corrected.get("randomisation"), "score"),
            Cell(part.verdict),
        )
        for part in report.comparisons
    )
    head = ("system", f"{report.quality[0]} against {report.baseline}", "p (Holm)", "verdict")
    return Section(f"Against {report.baseline}", (), Table(head, rows))
