"""Systems that measured alike: one line stands for all of them, so that what differs is seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from raggs.sweeps.models import SweepReport, SystemRow

NAMED = 3  # kinds of folded systems


def best_first(report: SweepReport) -> list[SystemRow]:
    """The systems by the measure that decides; among equals the choice, the front and the smaller k lead."""
    front = {name: place for place, name in enumerate(report.front)}

    def key(row: SystemRow) -> tuple[float, bool, int, int, str]:
        chosen = row.name == report.choice.winner
        return -mean(row, report.quality[0]), not chosen, front.get(row.name, len(front)), row.k, row.name

    return sorted(report.systems, key=key)


def mean(row: SystemRow, measure: str) -> float:
    """A system's mean; below all others where it has none."""
    score = row.scores.get(measure)
    return float("-inf") if score is None or score.mean is None else score.mean


def fold(report: SweepReport, ordered: Sequence[SystemRow]) -> dict[str, SystemRow]:
    """By the name of each system that may be left out, the one before it in `ordered` that it is alike to."""
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
    """Which systems stand behind others, by the levels in which they differ."""
    kinds = Counter(_differs(folded[row.name], row) for row in report.systems if row.name in folded)
    told = [f"{kind} ({count}x)" if count > 1 else kind for kind, count in kinds.most_common(NAMED)]
    more = sum(kinds.values()) - sum(count for _, count in kinds.most_common(NAMED))
    told += [f"{more} others"] if more else []
    same = f"the same scores and price, and within {report.jitter_ms:g} ms the same wait"
    return f"{len(folded)} folded into a line above them, with {same}: {', '.join(told)}"


def _figures(row: SystemRow) -> str:
    cost = None if row.cost is None else row.cost.total
    own = [item for item in sorted(row.scores.items()) if "proc_" not in item[0]]  # PROC is of its k candidates
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
