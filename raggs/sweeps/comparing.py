"""How the systems stand to something, as sections: the exact index, the pool, the baseline, other questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from raggs.base.text import plural
from raggs.evaluation.document import Cell, Section, Table, interval
from raggs.evaluation.models import UnjudgedPart
from raggs.evaluation.words import inconclusive
from raggs.stats.decision.deltas import MOST
from raggs.sweeps.models import DeltaPart, SweepReport

ENOUGH = MOST  # of the exact index' quality that an index may lose
NAMED = 4
SEEN = 5e-4  # a fall that three decimals show
VERDICTS = {
    "win": "better",
    "loss": "worse",
    "tie": "as good",
    "unresolvable": "not told apart",
    "unjudged": "inconclusive",
}


def comparing(report: SweepReport, full: bool) -> Iterator[Section]:
    """The sections that there is something to say in; tables in full alone."""
    for section in (_deltas(report), _loyalty(report), _against(report), _wins(report)):
        if section is not None and (full or section.sentences):
            yield section if full else Section(section.title, section.sentences)


def first_of(sentences: Sequence[str]) -> list[str]:
    """The first inconclusive verdicts, and how many more there are."""
    more = len(sentences) - NAMED
    return [*sentences[:NAMED], *([f"{more} more are inconclusive"] if more > 0 else [])]


def next_commands(parts: Iterable[UnjudgedPart | None]) -> list[str]:
    """What has the unjudged passages of inconclusive verdicts judged, each command once."""
    return list(dict.fromkeys(f"next: {part.remedy}" for part in parts if part is not None))


def _deltas(report: SweepReport) -> Section | None:
    if not report.deltas:
        return None
    rows = tuple(
        (
            Cell(part.system),
            *(Cell(_percent(part.quality.get(name))) for name in report.quality),
            Cell(_percent(part.latency)),
            *((Cell(_enough(part)),) if any(each.unjudged for each in report.deltas) else ()),
        )
        for part in report.deltas
    )
    sure = [part for part in report.deltas if part.unjudged is None]
    far = [part.system for part in sure if part.loss is None or part.loss > ENOUGH]
    near, all_ = len(sure) - len(far), plural(len(report.deltas), "system")
    sentence = f"within {ENOUGH:.0%} of the exact index in every measure: {near} of {all_} with another index"
    if far:
        listed = ", ".join(far[:NAMED]) + (f" and {len(far) - NAMED} more" if len(far) > NAMED else "")
        sentence += f"; not {listed}: raise ef or nprobe, or stay exact"
    whys = [f"{part.system}: {inconclusive(part.unjudged)}" for part in report.deltas if part.unjudged is not None]
    head = ("system", *report.quality, "search", *(("verdict",) if whys else ()))
    said = (sentence, *first_of(whys), *next_commands(part.unjudged for part in report.deltas))
    return Section("Against the exact index", said, Table(head, rows))


def _enough(part: DeltaPart) -> str:
    """Whether an index is good enough, in words."""
    if part.unjudged is not None:
        return inconclusive(part.unjudged)
    return f"within {ENOUGH:.0%}" if part.loss is not None and part.loss <= ENOUGH else f"not within {ENOUGH:.0%}"


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{share:+.1%}"


def _loyalty(report: SweepReport) -> Section | None:
    """What systems owe to having been pooled, where any of them brought something alone."""
    owing = [part for part in report.loyalty if part.alone and part.score is not None and part.without is not None]
    if not owing:
        return None
    worst = owing[0]
    score, without = worst.score or 0.0, worst.without or 0.0
    said = "no system falls when the passages that it alone brought count as unjudged: the pool flatters none of them"
    if score - without >= SEEN:
        said = f"{worst.system} falls from {score:.3f} to {without:.3f} when the {plural(worst.alone, 'passage')} that "
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


def _against(report: SweepReport) -> Section | None:
    if not report.comparisons:
        return None
    counted = Counter(VERDICTS.get(part.verdict, part.verdict) for part in report.comparisons)
    told = ", ".join(f"{count} {verdict}" for verdict, count in counted.items())
    sentence = f"by {report.quality[0]}, of {plural(len(report.comparisons), 'system')}: {told} (p corrected by Holm)"
    rows = tuple(
        (
            Cell(part.system),
            Cell(part.difference, "signed", "", interval(part.low, part.high)),
            Cell(part.corrected.get("randomisation"), "score"),
            Cell(VERDICTS.get(part.verdict, part.verdict) if part.unjudged is None else inconclusive(part.unjudged)),
        )
        for part in report.comparisons
    )
    head = ("system", f"{report.quality[0]} against {report.baseline}", "p (Holm)", "verdict")
    reasons = [part for part in report.comparisons if part.unjudged is not None]
    why = [f"{part.system}: {inconclusive(part.unjudged)}" for part in reasons if part.unjudged is not None]
    said = (sentence, *first_of(why), *next_commands(part.unjudged for part in reasons))
    return Section(f"Against {report.baseline}", said, Table(head, rows))


def _wins(report: SweepReport) -> Section | None:
    """How often each would be the choice; on the screen a sentence on the choice says it."""
    if not report.wins:
        return None
    rows = tuple((Cell(part.system), Cell(f"{part.share:.0%}")) for part in report.wins)
    return Section("Were the questions drawn anew", (), Table(("system", "chosen"), rows))
