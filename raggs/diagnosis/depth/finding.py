"""From rows of questions to what is found: a fit on even questions, figures on odd ones, the swap, and a verdict.

Nothing is measured here, so that it costs nothing to do it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Flags, Floats
from raggs.diagnosis.depth.measuring import column
from raggs.diagnosis.depth.models import HalfPart, PolicyPart, QuestionRow, SignalPart, TakesRow
from raggs.diagnosis.verdicts import said
from raggs.evaluation.models import ScorePart
from raggs.evaluation.report import score_part
from raggs.stats.probes.depth import Report, Step, Worth, escalated, fit, judge, oracle_path, path, thresholds
from raggs.stats.probes.uncertainty import SIGNALS

POINTS = 60  # of the oracle's line


@dataclass(frozen=True)
class Limits:
    """What a router is held to.

    Attributes:
        most: share of the questions that may go deep.
        loss: by which quality at the small cutoff may fall.
        slo_ms: milliseconds that 95% of single searches must keep; None: any.
        seed: of the resamples.
    """

    most: float
    loss: float
    slo_ms: float | None
    seed: int


class Fitted:
    """A router fitted on one half of the questions and judged on the other.

    Args:
        rows: all questions with defined values, by id.
        names: the signals that can be read.
        limits: of the fit.
        even: whether even questions are fitted on.
    """

    def __init__(self, rows: Sequence[QuestionRow], names: Sequence[str], limits: Limits, *, even: bool = True) -> None:
        signals = {name: np.array(column(rows, name)) for name in names}
        seen: Flags = (np.arange(len(rows)) % 2 == 0) == even
        worth = _worth(rows)
        self._limits, self._seen = limits, {name: values[seen] for name, values in signals.items()}
        self._other: dict[str, Floats] = {name: values[~seen] for name, values in signals.items()}
        self._worth, self._judged = worth.part(seen), worth.part(~seen)
        self.steps = self._fit(names)
        self.when = thresholds(self.steps)
        self.report = self._judge(self.when)

    @property
    def half(self) -> HalfPart:
        """What is told of it."""
        found = self.report
        return HalfPart(
            questions=found.questions,
            escalated=found.escalated,
            thresholds=self.when,
            near_change=score_part(found.near_change),
            far_change=score_part(found.far_change),
            above_random=score_part(found.above_random),
            below_deep=score_part(found.below_deep),
        )

    @property
    def path(self) -> tuple[tuple[float, float], ...]:
        """Share and quality after each step, on the half that it was not fitted on."""
        return path(self.steps, self._other, self._judged)

    @property
    def oracle(self) -> tuple[tuple[float, float], ...]:
        """The same of one who knows each question's gain; some of its points."""
        whole = oracle_path(self._judged)
        kept = sorted({round(at * (len(whole) - 1) / POINTS) for at in range(POINTS + 1)})
        return tuple(whole[at] for at in kept)

    def policies(self, takes: Mapping[str, TakesRow], depths: tuple[int, int]) -> tuple[PolicyPart, ...]:
        """All ways to choose depths, on the half that the router was not fitted on."""
        base, deep = depths
        return tuple(
            PolicyPart(
                policy=name,
                share=each.share,
                mean_k=base + each.share * (deep - base),
                near=score_part(each.near),
                far=score_part(each.far),
                usd_per_1k=takes[name].usd_per_1k if name in takes else _mixed(takes, each.share),
                p50_ms=takes[name].p50_ms if name in takes else None,
                p95_ms=takes[name].p95_ms if name in takes else None,
            )
            for name, each in self.report.policies.items()
        )

    def signals(self) -> tuple[SignalPart, ...]:
        """Each signal, alone and with the others."""
        found: list[SignalPart] = []
        for name in self._seen:
            when = thresholds(self._fit([name]))
            report: Report | None = self._judge(when) if when else None
            found.append(
                SignalPart(
                    signal=name,
                    words=SIGNALS[name].words,
                    threshold=self.when.get(name),
                    alone=when.get(name),
                    share=None if report is None else report.share,
                    above_random=None if report is None else score_part(report.above_random),
                )
            )
        return tuple(found)

    def _fit(self, names: Sequence[str]) -> tuple[Step, ...]:
        chosen = {name: self._seen[name] for name in names}
        return fit(chosen, self._worth, most=self._limits.most, loss=self._limits.loss)

    def _judge(self, when: Mapping[str, float]) -> Report:
        return judge(escalated(self._other, when), self._judged, seed=self._limits.seed)


def defined(rows: Sequence[QuestionRow]) -> list[QuestionRow]:
    """The questions for which both measures are defined at both depths, by id."""
    return sorted((row for row in rows if None not in _values(row)), key=lambda row: row.qid)


def passed(half: HalfPart, limits: Limits, p95_ms: float | None) -> bool:
    """Whether a router pays: it loses no more than it may, beats random beyond doubt, and keeps the limit of time."""
    low, beats = half.near_change.low, half.above_random.low
    in_time = limits.slo_ms is None or (p95_ms is not None and p95_ms <= limits.slo_ms)
    return bool(
        half.escalated and low is not None and low >= -limits.loss and beats is not None and beats > 0 and in_time
    )


def verdict(
    half: HalfPart, limits: Limits, p95_ms: float | None, measures: tuple[str, str], depths: tuple[int, int]
) -> str:
    """One sentence."""
    (near, far), (base, deep) = measures, depths
    if not half.escalated:
        return _none(half, far, depths)
    begin = f"{half.share:.0%} of the questions searched {deep} deep"
    beyond = f"{_told(half.above_random)} in {far} above as many random ones"
    if passed(half, limits, p95_ms):
        return f"Routing pays: {begin}, the others {base}, gain {beyond}, and lose nothing that counts in {near}."
    low, beats = half.near_change.low, half.above_random.low
    if beats is None or beats <= 0:
        told = f"differ by {_told(half.above_random)} in {far} from as many random ones"
        worse = half.above_random.high is not None and half.above_random.high < 0
        return f"Routing does not pay: {begin} {told}{', for the worse' if worse else ', which may be chance'}."
    if low is None or low < -limits.loss:
        told = _told(half.near_change)
        return f"Routing does not pay: {begin} change {near} by {told}, and may lose more than {limits.loss:g}."
    wait = "no wait was measured" if p95_ms is None else f"5% of searches take longer than {p95_ms:,.0f} ms"
    return f"Routing does not pay: {begin} gain {beyond}, but {wait}, and the limit is {limits.slo_ms:,.0f} ms."


def _none(half: HalfPart, far: str, depths: tuple[int, int]) -> str:
    """The verdict where nobody is sent deep: what going deep would bring is the difference, the other way round."""
    base, deep = depths
    less = half.below_deep
    if less.mean is None or less.low is None or less.high is None or less.low == less.high == 0:
        return f"Routing does not pay: {deep} candidates change {far} of no question, so {base} for all will do."
    for_all = f"{deep} for all changes {far} by {-less.mean:+.4f} [{-less.high:+.4f}, {-less.low:+.4f}]"
    why = "no signal tells who gains" if not half.thresholds else "the signals send none of the other half deep"
    return said(f"Routing does not pay: {why}; {for_all}", f"First search all {deep} deep" if less.high < 0 else "")


def _told(part: ScorePart) -> str:
    if part.mean is None or part.low is None or part.high is None:
        return "nothing that could be told"
    return f"{part.mean:+.4f} [{part.low:+.4f}, {part.high:+.4f}]"


def _values(row: QuestionRow) -> tuple[float | None, ...]:
    return row.near_shallow, row.near_deep, row.far_shallow, row.far_deep


def _worth(rows: Sequence[QuestionRow]) -> Worth:
    return Worth(*np.array([_values(row) for row in rows], dtype=np.float64).reshape(-1, 4).T)


def _mixed(takes: Mapping[str, TakesRow], share: float) -> float | None:
    """What a question costs on average where a share of them, whichever, goes deep."""
    shallow, deep = takes["shallow"].usd_per_1k, takes["deep"].usd_per_1k
    return None if shallow is None or deep is None else shallow + share * (deep - shallow)
