"""Is it worth to search some questions deeper than others? Thresholds fitted on one half, judged on the other.

A router gives a question its deep list when any of its signals fires, else its shallow one. Escalating costs the same
for each question, so the yardstick is escalating as many at random: its expectation over all choices is known exactly,
the mean gain times the share. Source of the idea: "Practical RAG Evaluation" (2025), sections 1, 5.2, 5.4 and 6, which
gives no thresholds; fit, comparisons and limits are raggs' own.

Arrays hold one value a question, in one order. "near" is quality at the small cutoff, which must not fall; "far" is
quality at the great one, which is to rise. Nothing here knows what a signal measures.

Signals that a question is hard, read off its own lists: margins, entropy, what rewriting did, names, agreement.

Source: "Practical RAG Evaluation" (2025), sections 1, 5.2 and 6, which names them and gives neither formula nor
threshold; both are raggs' own. A signal that cannot be read, since a list is too short or there is no reranker, is None
and never fires. Pure Python, since a run reads them for each question.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from raggs.base.arrays import Flags, Floats
from raggs.stats.intervals import Interval, bootstrap_mean

HEAD_RANK = 10  # the rank between the head and the tail of a list


@dataclass(frozen=True)
class SignalKind:
    """What a signal is.

    Attributes:
        high: whether large values tell of doubt; else small ones do.
        words: what it measures, as a clause.
    """

    high: bool
    words: str


SIGNALS: Final[Mapping[str, SignalKind]] = {
    "head_margin": SignalKind(False, "dense score of rank 1 less that of rank 10"),
    "tail_margin": SignalKind(False, "dense score of rank 10 less that of the last rank of the base"),
    "entropy": SignalKind(True, "entropy of the softmax of the reranker's scores, by the logarithm of their number"),
    "rewrite": SignalKind(True, "1 - cosine of the question and its rewrite"),
    "name": SignalKind(True, "1 where the question holds a proper name, else 0"),
    "agreement": SignalKind(False, "rank-biased overlap of the dense and the lexical list"),
}

Readings = Mapping[str, float | None]  # by signal


def head_margin(scores: Sequence[float]) -> float | None:
    """s1 - s10 of a list, best first; None where it is shorter."""
    return scores[0] - scores[HEAD_RANK - 1] if len(scores) >= HEAD_RANK else None


def tail_margin(scores: Sequence[float], base: int) -> float | None:
    """s10 - s(base) of a list, best first; None where it is shorter than `base`, or `base` is no more than 10."""
    return scores[HEAD_RANK - 1] - scores[base - 1] if len(scores) >= base > HEAD_RANK else None


def entropy(scores: Sequence[float]) -> float | None:
    """-sum p ln p / ln n with p = softmax(scores), in 0..1: 1 where a reranker sees no difference.

    None below two scores. Finite for any finite scores.
    """
    if len(scores) < 2:
        return None
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    total = math.fsum(weights)
    parts = [weight / total for weight in weights]
    found = -math.fsum(part * math.log(part) for part in parts if part > 0)
    return min(1.0, max(0.0, found / math.log(len(scores))))


def rewrite_distance(question: Sequence[float], rewrite: Sequence[float]) -> float | None:
    """1 - cosine of two vectors, in 0..2; None where one has no length.

    Raises:
        ValueError: they have different dimensions.
    """
    lengths = math.hypot(*question) * math.hypot(*rewrite)
    if not lengths:
        return None
    dot = math.fsum(one * two for one, two in zip(question, rewrite, strict=True))
    return min(2.0, max(0.0, 1.0 - dot / lengths))


def agreement(dense: Sequence[str], lexical: Sequence[str]) -> float | None:
    """Rank-biased overlap (extrapolated, p 0.9) of two lists, in 0..1; None where one is empty."""
    from raggs.stats.order_agreement import rbo  # late: it brings numpy

    found = rbo(dense, lexical).extrapolated
    return None if math.isnan(found) else found


def fired_signals(found: Readings, when: Mapping[str, float]) -> tuple[str, ...]:
    """The signals that reach their threshold, in the order of `SIGNALS`.

    Args:
        found: the signals of one question.
        when: thresholds, by signal; at the threshold itself a signal fires.

    Raises:
        ValueError: a threshold of what is no signal.
    """
    if strange := when.keys() - SIGNALS.keys():
        raise ValueError(f"no signal {min(strange)!r}; there are {', '.join(SIGNALS)}")
    return tuple(name for name, kind in SIGNALS.items() if name in when and _reaches(kind, found.get(name), when[name]))


def _reaches(kind: SignalKind, value: float | None, threshold: float) -> bool:
    if value is None:
        return False
    return value >= threshold if kind.high else value <= threshold


LEAST_SHARE = 0.05  # of the questions, which a step of the fit escalates anew
LEAST_QUESTIONS = 3
MIN_STEP_STANDARD_ERRORS = (
    1.0  # standard errors by which a step beats random; chance is ruled out by the other half, not by this
)


@dataclass(frozen=True)
class DepthWorth:
    """What questions are worth shallow and deep, each of shape (questions,), finite."""

    near_shallow: Floats
    near_deep: Floats
    far_shallow: Floats
    far_deep: Floats

    @property
    def near_gain(self) -> Floats:
        """What going deep changes at the small cutoff."""
        return self.near_deep - self.near_shallow

    @property
    def far_gain(self) -> Floats:
        """What going deep changes at the great cutoff."""
        return self.far_deep - self.far_shallow

    def part(self, chosen: Flags) -> DepthWorth:
        """Of some questions."""
        return DepthWorth(
            self.near_shallow[chosen], self.near_deep[chosen], self.far_shallow[chosen], self.far_deep[chosen]
        )

    def __len__(self) -> int:
        return len(self.far_deep)


@dataclass(frozen=True)
class RouterFitStep:
    """A step of a fit: a signal is let to fire from a threshold on.

    Attributes:
        signal, threshold: what was set; an earlier step may have set the same signal tighter.
        escalated: questions that go deep after it.
        excess: gain at the great cutoff of those that it adds, above that of as many at random; summed.
    """

    signal: str
    threshold: float
    escalated: int
    excess: float


@dataclass(frozen=True)
class DepthPolicy:
    """One way to choose depths, over some questions.

    Attributes:
        name: "shallow", "deep", "routed", "random", "oracle" (all that gain), "oracle, same share".
        share: of the questions that go deep, in 0..1.
        near, far: mean quality at the two cutoffs, with intervals.
    """

    name: str
    share: float
    near: Interval
    far: Interval


@dataclass(frozen=True)
class RouterReport:
    """A router on questions that it was not fitted on.

    Attributes:
        policies: by name.
        near_change: routed less shallow at the small cutoff, paired.
        far_change: routed less shallow at the great cutoff, paired.
        above_random: routed less random of the same share at the great cutoff, paired.
        below_deep: routed less deep at the great cutoff, paired.
        questions, escalated: counts.
    """

    policies: Mapping[str, DepthPolicy]
    near_change: Interval
    far_change: Interval
    above_random: Interval
    below_deep: Interval
    questions: int
    escalated: int

    @property
    def share(self) -> float:
        """Of the questions that go deep."""
        return self.escalated / self.questions if self.questions else math.nan


def reached_values(values: Floats, signal: str, threshold: float) -> Flags:
    """Which values of a signal reach a threshold; NaN, a signal that could not be read, never does."""
    return values >= threshold if SIGNALS[signal].high else values <= threshold


def escalated_questions(signals: Mapping[str, Floats], when: Mapping[str, float]) -> Flags:
    """Which questions any signal sends deep.

    Raises:
        KeyError: a threshold of a signal that is not there.
    """
    some = next(iter(signals.values()))
    found: Flags = np.zeros(len(some), dtype=bool)
    for name, threshold in when.items():
        found = found | reached_values(signals[name], name, threshold)
    return found


def fit(
    signals: Mapping[str, Floats], worth: DepthWorth, *, most: float = 0.5, loss: float = 0.01
) -> tuple[RouterFitStep, ...]:
    """Thresholds, step by step: the signal and the threshold whose new questions gain most above random ones.

    A step must add at least 5% of the questions (and three), keep within `most` and `loss`, and beat random by a
    standard error; where none does, the fit ends. The last step of each signal holds its threshold.

    Args:
        signals: by name, a value a question; NaN where it could not be read.
        worth: of the same questions.
        most: share of the questions that may go deep, in 0..1.
        loss: by which quality at the small cutoff may fall, over all questions.
    """
    steps: list[RouterFitStep] = []
    taken: Flags = np.zeros(len(worth), dtype=bool)
    while step := _best_step(signals, worth, taken, most, loss):
        taken = taken | reached_values(signals[step.signal], step.signal, step.threshold)
        steps.append(step)
    return tuple(steps)


def thresholds(steps: tuple[RouterFitStep, ...]) -> dict[str, float]:
    """The thresholds that the steps of a fit end with, by signal."""
    found = {step.signal: step.threshold for step in steps}
    return {name: found[name] for name in SIGNALS if name in found}


def judge(deep: Flags, worth: DepthWorth, *, seed: int, confidence: float = 0.95) -> RouterReport:
    """What a choice of depths is worth beside the others.

    The difference to random escalation of the same share p is, over all choices, the mean of (e - p)(g - mean g), with
    e whether a question goes deep and g its gain: that is what is resampled.

    Args:
        deep: which questions go deep.
        worth: of the same questions.
        seed: of the resamples.
        confidence: of the intervals.
    """

    def mean(values: Floats) -> Interval:
        return bootstrap_mean(values, confidence=confidence, seed=seed)

    gain, count = worth.far_gain, len(worth)
    share = float(deep.mean()) if count else math.nan
    chances = _chances(deep, gain)
    return RouterReport(
        policies={
            name: DepthPolicy(
                name,
                float(chance.mean()) if count else math.nan,
                mean(worth.near_shallow + chance * worth.near_gain),
                mean(worth.far_shallow + chance * gain),
            )
            for name, chance in chances.items()
        },
        near_change=mean(deep * worth.near_gain),
        far_change=mean(deep * gain),
        above_random=mean((deep - share) * (gain - gain.mean())) if count else mean(gain),
        below_deep=mean((deep - 1.0) * gain),
        questions=count,
        escalated=int(deep.sum()),
    )


def path(
    steps: tuple[RouterFitStep, ...], signals: Mapping[str, Floats], worth: DepthWorth
) -> tuple[tuple[float, float], ...]:
    """Share escalated and mean quality at the great cutoff after each step, from none on."""
    found: list[tuple[float, float]] = [(0.0, float(worth.far_shallow.mean()))]
    for last in range(1, len(steps) + 1):
        deep = escalated_questions(signals, thresholds(steps[:last]))
        found.append((float(deep.mean()), float((worth.far_shallow + deep * worth.far_gain).mean())))
    return tuple(found)


def oracle_path(worth: DepthWorth) -> tuple[tuple[float, float], ...]:
    """The same for one who knows each question's gain and escalates the greatest first."""
    sums = np.concatenate(([0.0], np.cumsum(np.sort(worth.far_gain)[::-1])))
    start, count = float(worth.far_shallow.mean()), len(worth)
    return tuple((at / count, start + float(total) / count) for at, total in enumerate(sums))


def _chances(deep: Flags, gain: Floats) -> dict[str, Floats]:
    """By policy, the chance of each question to go deep."""
    count = len(gain)
    best = np.zeros(count)
    best[np.argsort(-gain, kind="stable")[: int(deep.sum())]] = 1.0
    return {
        "shallow": np.zeros(count),
        "deep": np.ones(count),
        "routed": deep.astype(np.float64),
        "random": np.full(count, float(deep.mean()) if count else 0.0),
        "oracle, same share": best,
        "oracle": (gain > 0).astype(np.float64),
    }


def _best_step(
    signals: Mapping[str, Floats], worth: DepthWorth, taken: Flags, most: float, loss: float
) -> RouterFitStep | None:
    """The step with the greatest excess; the first of equal ones, None where none may be taken."""
    best: RouterFitStep | None = None
    for name, values in signals.items():
        for threshold, new in _candidate_thresholds(name, values, taken):
            union = taken | new
            fits = union.mean() <= most and worth.near_gain[union].sum() >= -loss * len(worth)
            excess, sure = _excess(worth.far_gain, new)
            if fits and sure and (best is None or excess > best.excess):
                best = RouterFitStep(name, threshold, int(union.sum()), excess)
    return best


def _candidate_thresholds(name: str, values: Floats, taken: Flags) -> Iterator[tuple[float, Flags]]:
    """Thresholds half way between neighbouring values, and whom each would add; each adds enough more than the last."""
    least = max(LEAST_QUESTIONS, math.ceil(LEAST_SHARE * len(values)))
    known = np.unique(values[~np.isnan(values)])
    ordered = known[::-1] if SIGNALS[name].high else known
    before = 0
    for at, value in enumerate(ordered):
        last = at + 1 == len(ordered)
        threshold = float(value) if last else float(value + (ordered[at + 1] - value) / 2)
        new = reached_values(values, name, threshold) & ~taken
        if (count := int(new.sum())) >= before + least:
            before = count
            yield threshold, new


def _excess(gain: Floats, new: Flags) -> tuple[float, bool]:
    """The gain of some questions above as many random ones, and whether it is a standard error above 0."""
    count, total = int(new.sum()), len(gain)
    excess = float(gain[new].sum() - count * gain.mean())
    error = float(gain.std()) * math.sqrt(count * (total - count) / max(1, total - 1))
    return excess, excess > 0 and excess >= MIN_STEP_STANDARD_ERRORS * error
