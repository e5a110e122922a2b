"""Which passages a person should read so that the verdicts, one system above another, become sure soonest.

A verdict is open as far as all labels by people would turn what the labels say as they stand. What a passage may turn
is how far its label moves the difference of two systems, over the standard error that all unread labels leave it, times
the probability of that label; summed over the verdicts by how open each is. The best for their seconds are taken
a block at a time, and what is open is looked at again after each: a verdict that is settled draws no more reading.

Labels are taken to be wrong independently, and effects to add up; both are approximations, which a new plan after
some reading makes good.

What a person would say of a passage, by what the judge said and how often people took another view.

Before anybody has read anything, each grade further off is five times less likely than the one before. Every passage
that was read at random moves that, for the judge's grade it had. A judge that was asked several times, or a panel, and
did not answer alike is believed by the shares of its answers.

Which unjudged passage to have judged next: the one that could change most between the systems.

A passage in the top of all systems, or of one in a thousand, moves them alike and decides little; one that divides them
in half decides most. Where few useful passages of a query are known, one more weighs more, since measures divide by how
many there are. Nothing is said about whether it will turn out useful: that is what the judge is for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from raggs.base.arrays import Flags, Floats, Ints

BLOCKS = 20
VERDICT_CONFIDENCE = 0.95


@dataclass(frozen=True)
class VerdictCertainty:
    """How sure the verdicts are, an entry for each pair of systems and measure.

    Attributes:
        turned: shape (measures, systems, systems), the probability that all labels by people would turn the verdict
            of the labels as they stand, or are expected to stand.
        sure: shape (measures,), of how many verdicts that is at most 5%, or is expected to be.
        verdicts: how many there are of each measure.
    """

    turned: Floats
    sure: Floats
    verdicts: int


@dataclass(frozen=True)
class LabelImpact:
    """What people's labels can change.

    Attributes:
        now: shape (systems, measures), means as the labels stand.
        effects: shape (items, grades, systems, measures), what a label of an item changes in the value of its query.
        beliefs: shape (items, grades), the probability of each label.
        queries: that means are over.
    """

    now: Floats
    effects: Floats
    beliefs: Floats
    queries: int

    @cached_property
    def differences(self) -> Floats:
        """Shape (measures, systems, systems): the first system's mean less the second's, as the labels stand."""
        return _differences(self.now.T)

    @cached_property
    def expected(self) -> Floats:
        """Shape (measures, systems, systems): the same by the labels that people are expected to give."""
        found: Floats = self.differences + self.moved()
        return found

    def moved(self, items: Flags | Ints | None = None) -> Floats:
        """Shape (measures, systems, systems): how people's labels of some items, or of all, are expected to move it."""
        chosen = slice(None) if items is None else items
        return _differences(np.einsum("pg,pgsm->ms", self.beliefs[chosen], self.effects[chosen]) / self.queries)

    def variance(self, items: Flags | Ints | None = None) -> Floats:
        """Shape (measures, systems, systems): of the differences, by the labels of some items, or of all."""
        chosen = slice(None) if items is None else items
        effects, beliefs = self.effects[chosen], self.beliefs[chosen]
        products = np.einsum("pg,pgsm,pgtm->mst", beliefs, effects, effects, optimize=True)
        own = np.einsum("mss->ms", products)
        spread = own[:, :, None] + own[:, None, :] - 2 * products
        found: Floats = np.maximum(spread, 0.0) / self.queries**2
        return found

    def worth(self, left: Floats, stands: Floats) -> Floats:
        """Shape (items,): what reading an item does for all verdicts.

        Args:
            left: shape (measures, systems, systems), the variance that unread labels leave.
            stands: the same shape, the differences as the labels stand.
        """
        weights = self._weights(left, stands)
        found = np.zeros(len(self.beliefs))
        for measure, one, other in zip(*np.nonzero(weights), strict=True):
            moved = np.abs(self.effects[:, :, one, measure] - self.effects[:, :, other, measure])
            found += weights[measure, one, other] * np.einsum("pg,pg->p", self.beliefs, moved)
        return found / self.queries

    def _weights(self, left: Floats, stands: Floats) -> Floats:
        """Shape (measures, systems, systems): how open each verdict is, over its standard error; each pair once."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(left > 0, _reversal_probability(stands, self.expected, left) / np.sqrt(left), 0.0)
        return np.triu(found, 1)

    def pulls(self, items: Ints) -> Ints:
        """Shape (items chosen, 3): measure, system and system of the verdict that each of some items does most for."""
        weights = self._weights(self.variance(), self.differences)
        found = np.empty((len(items), 3), dtype=np.int64)
        for row, item in enumerate(items.tolist()):
            effects = self.effects[item].transpose(0, 2, 1)
            moved = effects[:, :, :, None] - effects[:, :, None, :]
            gain = weights * np.einsum("g,gmst->mst", self.beliefs[item], np.abs(moved))
            found[row] = np.unravel_index(int(gain.argmax()), gain.shape)
        return found

    def outlook(self, read: Flags | Ints | None = None) -> VerdictCertainty:
        """How sure verdicts are now, or are expected to be once some items are read."""
        total = self.variance()
        gone = np.zeros_like(total) if read is None else np.minimum(self.variance(read), total)
        stands = self.differences if read is None else self.differences + self.moved(read)
        left = total - gone
        upper = np.triu_indices(total.shape[1], 1)
        needed = ndtri(VERDICT_CONFIDENCE) * np.sqrt(left)
        # Reading moves the expected difference by a normal deviate whose variance is what it takes away.
        with np.errstate(divide="ignore", invalid="ignore"):
            above = ndtr((self.expected - needed) / np.sqrt(gone)) + ndtr((-self.expected - needed) / np.sqrt(gone))
        sure = np.where(gone > 0, np.minimum(above, 1.0), np.sign(stands) * self.expected >= needed)
        pairs = sure[:, upper[0], upper[1]]
        return VerdictCertainty(
            _reversal_probability(stands, self.expected, left), pairs.sum(axis=1).astype(np.float64), pairs.shape[1]
        )


@dataclass(frozen=True)
class ChosenItem:
    """An item to read: its number, and its worth to the verdicts when it was chosen, in 0 and up."""

    item: int
    worth: float


def choose(
    impact: LabelImpact, seconds: Floats, budget: float, taken: Ints, blocks: int = BLOCKS
) -> Iterator[ChosenItem]:
    """The items to read, best for their time first.

    Args:
        impact: of all items.
        seconds: shape (items,), above 0, that reading each takes.
        budget: seconds in all; an item that would go beyond it is passed over.
        taken: items that are read in any case, and cost nothing here.
        blocks: how often what is open is looked at again.

    Yields:
        Items, none of `taken`; those that can change no verdict never.
    """
    free = np.ones(len(seconds), dtype=bool)
    free[taken] = False
    left = np.maximum(impact.variance() - impact.variance(~free), 0.0)
    stands = impact.differences + impact.moved(~free)
    step, rest = budget / blocks, budget
    while rest > 0 and free.any():
        worth = np.where(free, impact.worth(left, stands), 0.0)
        rate = worth / seconds
        order = np.argsort(-rate, kind="stable")
        order = order[(worth[order] > 0) & (seconds[order] <= rest)]
        spent = np.cumsum(seconds[order])
        block = order[: max(1, int(np.searchsorted(spent, min(step, rest), side="right")))]
        if not len(block):
            return
        yield from (ChosenItem(int(item), float(worth[item])) for item in block)
        free[block] = False
        rest -= float(seconds[block].sum())
        left = np.maximum(left - impact.variance(block), 0.0)
        stands = stands + impact.moved(block)


def _differences(means: Floats) -> Floats:
    """Shape (measures, systems, systems), of means of shape (measures, systems)."""
    found: Floats = means[:, :, None] - means[:, None, :]
    return found


def _reversal_probability(stands: Floats, expected: Floats, left: Floats) -> Floats:
    """The probability that the true difference lies on the other side of 0 than the one that stands."""
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.sign(stands) * expected / np.sqrt(left)
    certain = np.where(np.sign(stands) * expected < 0, 1.0, 0.0)
    found: Floats = np.where(left > 0, ndtr(-np.nan_to_num(distance)), certain)
    return found


PRIOR_GRADE_DECAY = 0.2  # of the prior: one grade further off is so much less likely
HOLE_STEP = 0.4  # the same from the lowest grade up, for passages that nobody judged
WEIGHT = 10.0  # reviews of a grade that weigh as much as the prior
UNJUDGED, SINGLE_LABEL, AGREED, DISPUTED = range(4)
KINDS, MIN_GRADE_DECAY = 4, 1e-6


@dataclass(frozen=True)
class KnownGrades:
    """What is known of some passages, grades counted from 0.

    Attributes:
        grade: shape (items,), the judge's; -1 where there is none.
        voices: shape (items, grades), how many of its answers, or of a panel's, were each grade.
        sigma: shape (items,), standard error of the grade by the ranking; 0 where it was not ranked.
    """

    grade: Ints
    voices: Ints
    sigma: Floats

    @property
    def kind(self) -> Ints:
        """Shape (items,): 0 nobody judged, 1 one answer, 2 several that agree, 3 several that do not."""
        agree = self.voices.max(axis=1, initial=0) == self.voices.sum(axis=1)
        several = np.where(agree, AGREED, DISPUTED)
        return np.where(self.grade < 0, UNJUDGED, np.where(self.voices.sum(axis=1) < 2, SINGLE_LABEL, several))


def believe(heard: KnownGrades, read: Ints, said: Ints) -> Floats:
    """Shape (items, grades): the probability of each grade, were a person to read the passage.

    Args:
        heard: of all items.
        read: the rows of those that people read and that were drawn at random: others would mislead.
        said: what people said of each, from 0.
    """
    size, kind = heard.voices.shape[1], heard.kind
    counts = np.zeros((KINDS, size + 1, size))
    np.add.at(counts, (kind[read], heard.grade[read], said), 1.0)  # grade -1 is the last row
    known = counts[kind, heard.grade]
    blended: Floats = known + WEIGHT * _prior(heard, _fit_grade_decay(kind[read], heard.grade[read] != said))
    return _blur_by_uncertainty(blended / blended.sum(axis=1, keepdims=True), heard.sigma)


def _fit_grade_decay(kind: Ints, wrong: Flags) -> Floats:
    """Shape (kinds,): how much less likely one grade further off is, by all that was read of a kind."""
    count, errors = (np.bincount(kind, weights=each, minlength=KINDS) for each in (np.ones(len(kind)), wrong))
    usual = (
        2 * PRIOR_GRADE_DECAY / (1 + PRIOR_GRADE_DECAY)
    )  # the share of errors that goes with it, away from the ends of the scale
    share = (errors + WEIGHT * usual) / (count + WEIGHT)
    found: Floats = share / (2 - share)
    return found


def _prior(heard: KnownGrades, steps: Floats) -> Floats:
    """Shape (items, grades)."""
    size, kind = heard.voices.shape[1], heard.kind
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    rows = np.maximum(steps, MIN_GRADE_DECAY)[:, None, None] ** apart
    rows[DISPUTED] = PRIOR_GRADE_DECAY**apart  # how far answers go apart says it already
    rows[UNJUDGED] = HOLE_STEP ** np.arange(size)
    rows /= rows.sum(axis=2, keepdims=True)
    total = heard.voices.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, heard.voices / np.maximum(total, 1), np.eye(size)[heard.grade])
    found: Floats = np.einsum("pg,pgh->ph", shares, rows[kind])
    return found


def _blur_by_uncertainty(beliefs: Floats, sigma: Floats) -> Floats:
    """The same with the ranking's doubt: a normal one around each grade."""
    size = beliefs.shape[1]
    steps = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    with np.errstate(divide="ignore"):
        kernel = np.exp(-0.5 * (steps / np.maximum(sigma, 1e-3)[:, None, None]) ** 2)
    kernel /= kernel.sum(axis=2, keepdims=True)
    found: Floats = np.einsum("pg,pgh->ph", beliefs, kernel)
    return found


RankedPassages = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class UnjudgedPassage:
    """An unjudged passage in the top of some system.

    Attributes:
        qid, doc_id: which.
        systems: how many systems have it in their top, at the deepest cutoff.
        divides: the probability that it stands in the top of just one of two systems, drawn by their weights; at the
            cutoff where that is greatest; 0..0.5.
        worth: the mean over cutoffs of that probability, over the useful passages that the query would have with it, of
            those that fit into the top; the unit is the value of a query.
    """

    qid: str
    doc_id: str
    systems: int
    divides: float
    worth: float


@dataclass
class _SystemWeights:
    weights: list[float] = field(default_factory=list)  # by cutoff, of the systems that have it in their top
    systems: int = 0


def order_holes(
    tops: Iterable[tuple[float, RankedPassages]],
    judged: Mapping[str, Collection[str]],
    useful: Mapping[str, int],
    cutoffs: Sequence[int],
) -> tuple[UnjudgedPassage, ...]:
    """The holes in the systems' tops, what could change most first.

    Args:
        tops: of each system its weight (1 for all, or how likely it is to be chosen) and by query its passages, best
            first; each system is looked at once, and none is kept.
        judged: by query, the passages that have a grade; a query that is not named has no judgments and no holes.
        useful: by query, how many useful passages are known; 0 where not named.
        cutoffs: of the measures; at least 1 each.

    Returns:
        By worth, then by how many systems have it, then by query and doc_id.

    Raises:
        ValueError: a weight below 0, none above 0 where there are systems, or no cutoff.
    """
    if not cutoffs or min(cutoffs) < 1:
        raise ValueError(f"cutoffs are one or more numbers from 1 up, got {list(cutoffs)}")
    held: dict[tuple[str, str], _SystemWeights] = {}
    total, systems = 0.0, 0
    for weight, top in tops:
        if weight < 0:
            raise ValueError(f"a system's weight is a number from 0 up, got {weight}")
        total, systems = total + weight, systems + 1
        for qid in top.keys() & judged.keys():
            for rank, doc_id in enumerate(top[qid][: max(cutoffs)]):
                if doc_id not in judged[qid]:
                    found = held.setdefault((qid, doc_id), _SystemWeights([0.0] * len(cutoffs)))
                    found.systems += 1
                    for place, cutoff in enumerate(cutoffs):
                        found.weights[place] += weight if rank < cutoff else 0.0
    if systems and not total:
        raise ValueError("no system weighs anything: name those that may be chosen")
    holes = [_unjudged_passage(*key, found, total, useful.get(key[0], 0), cutoffs) for key, found in held.items()]
    return tuple(sorted(holes, key=lambda hole: (-hole.worth, -hole.systems, hole.qid, hole.doc_id)))


def _unjudged_passage(
    qid: str, doc_id: str, held: _SystemWeights, total: float, useful: int, cutoffs: Sequence[int]
) -> UnjudgedPassage:
    shares = [min(weight / total, 1.0) for weight in held.weights]
    divides = [round(2 * share * (1 - share), 12) for share in shares]  # sums of weights differ by rounding
    worth = [each / min(useful + 1, cutoff) for each, cutoff in zip(divides, cutoffs, strict=True)]
    return UnjudgedPassage(qid, doc_id, held.systems, max(divides), sum(worth) / len(worth))
