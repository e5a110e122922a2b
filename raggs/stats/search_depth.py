"""Query routing: signals that a question is hard, and thresholds at which it is searched deeper.

Router (`fit`, `judge`): a router uses the deep list for a question if any of its signals reaches its threshold, else
the shallow list. Thresholds are fitted on one half of the questions and evaluated on the other half. Using the deep
list (escalating) costs the same for each question, so the baseline escalates equally many questions at random. The
baseline's expected gain is known exactly: the mean gain times the share. Source of the idea: "Practical RAG Evaluation"
(2025), sections 1, 5.2, 5.4 and 6, which gives no thresholds. Fit, comparisons and limits are raggs' own. All arrays
have one value per question, in the same order. "near" is the quality at the small cutoff, which must not decrease by
more than a set loss. "far" is the quality at the large cutoff, which should increase.

Signals are computed from a question's own lists: score margins, entropy, distance of the rewrite, names, agreement.
Sections 1, 5.2 and 6 of the source name these signals without formulas or thresholds, which are raggs' own. A signal
that cannot be computed (the list is too short, or no reranker is used) is None and never escalates a question. The
functions of the signals take Python sequences, because a run computes them for single questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from raggs.base.arrays import Flags, Floats
from raggs.stats.intervals import Interval, bootstrap_mean
from raggs.stats.order_agreement import rbo

HEAD_RANK = 10  # last rank of the head of a list


@dataclass(frozen=True)
class SignalKind:
    """Meaning of a signal's values.

    Attributes:
        high: whether large values indicate a hard question; if not, small values do.
        words: description of the measured value.
    """

    high: bool
    words: str


SIGNALS: Final[Mapping[str, SignalKind]] = {
    "head_margin": SignalKind(False, "dense score of rank 1 minus that of rank 10"),
    "tail_margin": SignalKind(False, "dense score of rank 10 minus that of the last rank of the shallow list"),
    "entropy": SignalKind(
        True, "entropy of the softmax of the reranker's scores, divided by the logarithm of their number"
    ),
    "rewrite": SignalKind(True, "1 - cosine of the question and its rewrite"),
    "name": SignalKind(True, "1 if the question contains a proper name, else 0"),
    "agreement": SignalKind(False, "rank-biased overlap of the dense and the lexical list"),
}

Readings = Mapping[str, float | None]  # value of each signal for one question


def head_margin(scores: Sequence[float]) -> float | None:
    """Return the score at rank 1 minus that at rank 10, from the scores of a list, best first.

    None if there are fewer than 10 scores.
    """
    return scores[0] - scores[HEAD_RANK - 1] if len(scores) >= HEAD_RANK else None


def tail_margin(scores: Sequence[float], base: int) -> float | None:
    """Return the score at rank 10 minus that at rank `base`, from the scores of a list, best first.

    None if there are fewer than `base` scores, or `base` is at most 10.
    """
    return scores[HEAD_RANK - 1] - scores[base - 1] if len(scores) >= base > HEAD_RANK else None


def entropy(scores: Sequence[float]) -> float | None:
    """Return -sum p ln p / ln n with p = softmax(scores), in 0..1; 1 if all scores are equal.

    The result is None with fewer than two scores, and finite for any finite scores.
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
    """Return 1 - cosine of two vectors, in 0..2; None if one of the vectors is zero.

    Raises:
        ValueError: the dimensions differ.
    """
    lengths = math.hypot(*question) * math.hypot(*rewrite)
    if not lengths:
        return None
    dot = math.fsum(one * two for one, two in zip(question, rewrite, strict=True))
    return min(2.0, max(0.0, 1.0 - dot / lengths))


def agreement(dense: Sequence[str], lexical: Sequence[str]) -> float | None:
    """Return the rank-biased overlap (extrapolated, p = 0.9) of two lists, in 0..1; None if a list is empty."""
    found = rbo(dense, lexical).extrapolated
    return None if math.isnan(found) else found


def fired_signals(found: Readings, when: Mapping[str, float]) -> tuple[str, ...]:
    """Return the signals that reach their threshold, in the order of `SIGNALS`.

    Args:
        found: signals of one question.
        when: thresholds by signal; a signal that equals its threshold reaches it.

    Raises:
        ValueError: `when` contains an unknown signal.
    """
    if strange := when.keys() - SIGNALS.keys():
        raise ValueError(f"unknown signal {min(strange)!r}; known: {', '.join(SIGNALS)}")
    return tuple(name for name, kind in SIGNALS.items() if name in when and _reaches(kind, found.get(name), when[name]))


def _reaches(kind: SignalKind, value: float | None, threshold: float) -> bool:
    if value is None:
        return False
    return value >= threshold if kind.high else value <= threshold


LEAST_SHARE = 0.05  # minimum share of the questions that each step of the fit adds
LEAST_QUESTIONS = 3
# minimum excess of a step over random escalation, in standard errors; `judge` evaluates the fit on other questions
MIN_STEP_STANDARD_ERRORS = 1.0


@dataclass(frozen=True)
class DepthWorth:
    """Quality of each question with the shallow and with the deep list; each of shape (questions,), finite."""

    near_shallow: Floats
    near_deep: Floats
    far_shallow: Floats
    far_deep: Floats

    @property
    def near_gain(self) -> Floats:
        """Change of the quality at the small cutoff if the deep list is used."""
        return self.near_deep - self.near_shallow

    @property
    def far_gain(self) -> Floats:
        """Change of the quality at the large cutoff if the deep list is used."""
        return self.far_deep - self.far_shallow

    def part(self, chosen: Flags) -> DepthWorth:
        """Return the values of the chosen questions."""
        return DepthWorth(
            self.near_shallow[chosen], self.near_deep[chosen], self.far_shallow[chosen], self.far_deep[chosen]
        )

    def __len__(self) -> int:
        return len(self.far_deep)


@dataclass(frozen=True)
class RouterFitStep:
    """A step of a fit: one signal gets a threshold, or a less strict one.

    Attributes:
        signal, threshold: the signal and its threshold, which replaces a stricter threshold of an earlier step.
        escalated: number of questions that use the deep list after the step.
        excess: summed gain at the large cutoff of the added questions, minus that of equally many random questions.
    """

    signal: str
    threshold: float
    escalated: int
    excess: float


@dataclass(frozen=True)
class DepthPolicy:
    """One way to choose depths, evaluated on some questions.

    Attributes:
        name: "shallow", "deep", "routed", "random", "oracle" (all questions that gain), "oracle, same share".
        share: share of the questions that use the deep list, in 0..1.
        near, far: mean quality at the two cutoffs, with intervals.
    """

    name: str
    share: float
    near: Interval
    far: Interval


@dataclass(frozen=True)
class RouterReport:
    """Evaluation of a router on questions that it was not fitted on.

    Attributes:
        policies: policies by name.
        near_change: routed minus shallow at the small cutoff, paired.
        far_change: routed minus shallow at the large cutoff, paired.
        above_random: routed minus random escalation of the same share at the large cutoff, paired.
        below_deep: routed minus deep at the large cutoff, paired.
        questions, escalated: number of questions, and number of questions that use the deep list.
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
        """Share of the questions that use the deep list."""
        return self.escalated / self.questions if self.questions else math.nan


def reached_values(values: Floats, signal: str, threshold: float) -> Flags:
    """Return which values of a signal reach a threshold; NaN (not computable) never reaches it."""
    return values >= threshold if SIGNALS[signal].high else values <= threshold


def escalated_questions(signals: Mapping[str, Floats], when: Mapping[str, float]) -> Flags:
    """Return which questions any signal escalates.

    Raises:
        KeyError: `when` contains a signal that `signals` lacks.
    """
    some = next(iter(signals.values()))
    found: Flags = np.zeros(len(some), dtype=bool)
    for name, threshold in when.items():
        found = found | reached_values(signals[name], name, threshold)
    return found


def fit(
    signals: Mapping[str, Floats], worth: DepthWorth, *, most: float = 0.5, loss: float = 0.01
) -> tuple[RouterFitStep, ...]:
    """Fit thresholds greedily: each step adds the signal and threshold with the largest excess over random.

    The excess is the gain of the added questions minus that of equally many random questions. A step must add at least
    5% of the questions (and three), respect `most` and `loss`, and beat random escalation by a standard error. If no
    step does, the fit ends. The threshold of a signal is that of its last step.

    Args:
        signals: by name, one value per question; NaN if the signal is not computable.
        worth: quality of the same questions.
        most: maximum share of the questions that use the deep list, in 0..1.
        loss: maximum decrease of mean quality at the small cutoff, over all questions.
    """
    steps: list[RouterFitStep] = []
    taken: Flags = np.zeros(len(worth), dtype=bool)
    while step := _best_step(signals, worth, taken, most, loss):
        taken = taken | reached_values(signals[step.signal], step.signal, step.threshold)
        steps.append(step)
    return tuple(steps)


def thresholds(steps: tuple[RouterFitStep, ...]) -> dict[str, float]:
    """Return each signal's threshold after the last step of a fit."""
    found = {step.signal: step.threshold for step in steps}
    return {name: found[name] for name in SIGNALS if name in found}


def judge(deep: Flags, worth: DepthWorth, *, seed: int, confidence: float = 0.95) -> RouterReport:
    """Evaluate which questions use the deep list, and compare this choice with other policies.

    The expected difference to random escalation of the same share p is the mean of (e - p)(g - mean g). Here, e is 1 if
    a question is escalated, else 0, and g is its gain. This quantity is resampled.

    Args:
        deep: which questions use the deep list.
        worth: quality of the same questions.
        seed: random seed of the resamples.
        confidence: confidence level of the intervals.
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
    """Return the escalated share and the mean quality at the large cutoff, before and after each step of a fit."""
    found: list[tuple[float, float]] = [(0.0, float(worth.far_shallow.mean()))]
    for last in range(1, len(steps) + 1):
        deep = escalated_questions(signals, thresholds(steps[:last]))
        found.append((float(deep.mean()), float((worth.far_shallow + deep * worth.far_gain).mean())))
    return tuple(found)


def oracle_path(worth: DepthWorth) -> tuple[tuple[float, float], ...]:
    """Return what `path` returns, for an oracle that knows each question's gain and escalates the largest first."""
    sums = np.concatenate(([0.0], np.cumsum(np.sort(worth.far_gain)[::-1])))
    start, count = float(worth.far_shallow.mean()), len(worth)
    return tuple((at / count, start + float(total) / count) for at, total in enumerate(sums))


def _chances(deep: Flags, gain: Floats) -> dict[str, Floats]:
    """Return, for each policy, the probability that each question is escalated."""
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
    """Return the step with the largest excess (the first if tied), or None if no step is allowed."""
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
    """Yield thresholds half way between neighbouring values, and the questions that each threshold would add.

    The last threshold is the last value itself. Each threshold adds more questions than the previous one, by at least
    5% of all questions and at least three.
    """
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
    """Return the gain of some questions minus that of equally many random ones.

    Also return whether this excess is at least one standard error.
    """
    count, total = int(new.sum()), len(gain)
    excess = float(gain[new].sum() - count * gain.mean())
    error = float(gain.std()) * math.sqrt(count * (total - count) / max(1, total - 1))
    return excess, excess > 0 and excess >= MIN_STEP_STANDARD_ERRORS * error
