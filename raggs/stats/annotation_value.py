"""Choice of the passages that a human or the judge should label next.

Human labels that change verdicts (`choose`): a verdict states which of two systems is better. It is uncertain if human
labels of all passages could reverse it. The value of a label is the expected absolute change of the difference between
two systems, divided by the standard error from all missing human labels. The worth of a passage is this ratio, summed
over the verdicts, each weighted by its probability of reversal. Items with the highest worth per second are chosen in
blocks. The weights are updated after each block, so verdicts that are already certain attract no more labels. Label
errors are treated as independent and effects as additive. Both are approximations. To correct for them, plan again
after some labels.

Human grades predicted from the judge's grade (`believe`): without human labels, each further step away from the judge's
grade divides the probability by five. Human labels of randomly sampled passages update these probabilities for each
grade of the judge. If the judge was called several times, or is a panel, and the answers differ, the prior mixes the
priors of all answers. If the judge states probabilities, the prediction is their calibration by the labels.

Unjudged passages (`order_holes`): a passage that all systems have in their top affects all scores alike. A passage in
the top of half of the systems separates them most. If a query has few known useful passages, another useful passage has
a larger effect, because measures divide by the number of useful passages. This order does not predict whether a passage
is relevant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.stats.calibration import apply_calibration, fit_calibration
from raggs.stats.distributions import normal_cdf, normal_quantile

BLOCKS = 20
VERDICT_CONFIDENCE = 0.95


@dataclass(frozen=True)
class VerdictCertainty:
    """Certainty of the verdicts for each pair of systems and each measure.

    Attributes:
        turned: shape (measures, systems, systems), the probability that human labels of all passages would reverse the
            current (or expected) verdict.
        sure: shape (measures,), the (expected) number of verdicts whose probability of reversal is at most 5%.
        verdicts: number of verdicts per measure.
    """

    turned: Floats
    sure: Floats
    verdicts: int


@dataclass(frozen=True)
class LabelImpact:
    """Possible effects of human labels on the systems' scores.

    Attributes:
        now: shape (systems, measures), mean scores with the current labels.
        effects: shape (items, grades, systems, measures), by how much each possible label changes the value of the
            item's query.
        beliefs: shape (items, grades), the probability of each label.
        queries: number of queries in the means.
    """

    now: Floats
    effects: Floats
    beliefs: Floats
    queries: int

    @cached_property
    def differences(self) -> Floats:
        """Current mean of the first system minus that of the second, shape (measures, systems, systems)."""
        return _differences(self.now.T)

    @cached_property
    def expected(self) -> Floats:
        """Differences that are expected once all items have human labels, shape (measures, systems, systems)."""
        found: Floats = self.differences + self.moved()
        return found

    def moved(self, items: Flags | Ints | None = None) -> Floats:
        """Return by how much human labels of `items` (None: all) are expected to change the differences.

        Shape (measures, systems, systems).
        """
        chosen = slice(None) if items is None else items
        return _differences(np.einsum("pg,pgsm->ms", self.beliefs[chosen], self.effects[chosen]) / self.queries)

    def variance(self, items: Flags | Ints | None = None) -> Floats:
        """Return the variance of the differences due to unknown human labels of `items` (None: all).

        Labels are treated as independent, so the variances of the items add up. Shape (measures, systems, systems).
        """
        chosen = slice(None) if items is None else items
        beliefs = self.beliefs[chosen]
        effects = self.effects[chosen] - np.einsum("pg,pgsm->psm", beliefs, self.effects[chosen])[:, None]
        products = np.einsum("pg,pgsm,pgtm->mst", beliefs, effects, effects, optimize=True)
        own = np.einsum("mss->ms", products)
        spread = own[:, :, None] + own[:, None, :] - 2 * products
        found: Floats = np.maximum(spread, 0.0) / self.queries**2
        return found

    def worth(self, left: Floats, stands: Floats) -> Floats:
        """Return how much a human label of each item contributes to the certainty of all verdicts, shape (items,).

        Args:
            left: shape (measures, systems, systems), the variance due to items that remain without a human label.
            stands: same shape, the differences with the labels known so far.
        """
        weights = self._weights(left, stands)
        found = np.zeros(len(self.beliefs))
        for measure, one, other in zip(*np.nonzero(weights), strict=True):
            moved = np.abs(self.effects[:, :, one, measure] - self.effects[:, :, other, measure])
            found += weights[measure, one, other] * np.einsum("pg,pg->p", self.beliefs, moved)
        return found / self.queries

    def _weights(self, left: Floats, stands: Floats) -> Floats:
        """Return each verdict's weight: its probability of reversal, divided by the standard error of the difference.

        The weight is 0 if no label of a passage is missing.

        Shape (measures, systems, systems); each pair of systems has a weight in one order only.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(left > 0, _reversal_probability(stands, self.expected, left) / np.sqrt(left), 0.0)
        return np.triu(found, 1)

    def pulls(self, items: Ints) -> Ints:
        """Return the verdict that each of `items` helps most to make certain: a measure and two systems, shape
        (items, 3).
        """
        weights = self._weights(self.variance(), self.differences)
        found = np.empty((len(items), 3), dtype=np.int64)
        for row, item in enumerate(items.tolist()):
            effects = self.effects[item].transpose(0, 2, 1)
            moved = effects[:, :, :, None] - effects[:, :, None, :]
            gain = weights * np.einsum("g,gmst->mst", self.beliefs[item], np.abs(moved))
            found[row] = np.unravel_index(int(gain.argmax()), gain.shape)
        return found

    def outlook(self, read: Flags | Ints | None = None) -> VerdictCertainty:
        """Return the certainty of the verdicts now, or the expected certainty after human labels of the items in
        `read`.
        """
        total = self.variance()
        gone = np.zeros_like(total) if read is None else np.minimum(self.variance(read), total)
        stands = self.differences if read is None else self.differences + self.moved(read)
        left = total - gone
        upper = np.triu_indices(total.shape[1], 1)
        needed = normal_quantile(VERDICT_CONFIDENCE) * np.sqrt(left)
        # Labels change the expected difference by a normally distributed amount with the variance of these items.
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.sqrt(gone)
            above = normal_cdf((self.expected - needed) / scale) + normal_cdf((-self.expected - needed) / scale)
        sure = np.where(gone > 0, np.minimum(above, 1.0), np.sign(stands) * self.expected >= needed)
        pairs = sure[:, upper[0], upper[1]]
        return VerdictCertainty(
            _reversal_probability(stands, self.expected, left), pairs.sum(axis=1).astype(np.float64), pairs.shape[1]
        )


@dataclass(frozen=True)
class ChosenItem:
    """A chosen item: its number, and its worth for the verdicts when it was chosen (0 or more)."""

    item: int
    worth: float


def choose(
    impact: LabelImpact, seconds: Floats, budget: float, taken: Ints, blocks: int = BLOCKS
) -> Iterator[ChosenItem]:
    """Yield the items to label in blocks; in each block, the highest worth per second first.

    Args:
        impact: effects and probabilities of all items.
        seconds: shape (items,), time to read each item, above 0.
        budget: total seconds; items that would exceed the budget are skipped.
        taken: items that will be labelled in any case, without using the budget.
        blocks: number of blocks; the uncertainty of the verdicts is updated after each block.

    Yields:
        Items that can change a verdict and are not in `taken`.
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
    """Return the differences between all pairs of systems, shape (measures, systems, systems)."""
    found: Floats = means[:, :, None] - means[:, None, :]
    return found


def _reversal_probability(stands: Floats, expected: Floats, left: Floats) -> Floats:
    """Return the probability that the true difference and the current difference have opposite signs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.sign(stands) * expected / np.sqrt(left)
    certain = np.where(np.sign(stands) * expected < 0, 1.0, 0.0)
    found: Floats = np.where(left > 0, normal_cdf(-np.nan_to_num(distance)), certain)
    return found


PRIOR_GRADE_DECAY = 0.2  # prior: each step away from the judge's grade multiplies the probability by this factor
# prior of unjudged passages: each step above the lowest grade multiplies the probability by this factor
HOLE_STEP = 0.4
WEIGHT = 10.0  # number of human labels per judge grade that weigh as much as the prior
UNJUDGED, SINGLE_LABEL, AGREED, DISPUTED = range(4)
STATED_SHARES, KINDS, MIN_GRADE_DECAY = 4, 5, 1e-6


@dataclass(frozen=True)
class KnownGrades:
    """The judge's grades of passages; grades are counted from 0.

    Attributes:
        grade: shape (items,), the judge's grade; -1 if unjudged.
        voices: shape (items, grades), how many answers of the judge (or of a panel) gave each grade.
        sigma: shape (items,), standard error of the grade from the ranking; 0 if the passage was not ranked.
        stated: shape (items, grades), probabilities of the grades that the judge states; NaN for passages without them.
            None if the judge states none.
    """

    grade: Ints
    voices: Ints
    sigma: Floats
    stated: Floats | None = None

    @property
    def kind(self) -> Ints:
        """Kind of each item, shape (items,): unjudged (0), one answer (1), several equal (2) or different answers
        (3), or stated probabilities (4).
        """
        agree = self.voices.max(axis=1, initial=0) == self.voices.sum(axis=1)
        several = np.where(agree, AGREED, DISPUTED)
        found = np.where(self.grade < 0, UNJUDGED, np.where(self.voices.sum(axis=1) < 2, SINGLE_LABEL, several))
        return found if self.stated is None else np.where(np.isnan(self.stated[:, 0]), found, STATED_SHARES)


def believe(heard: KnownGrades, read: Ints, said: Ints) -> Floats:
    """Return the probability of each human grade for each passage, shape (items, grades).

    Probabilities that the judge states are calibrated by the labels (see `raggs.stats.calibration`).

    Args:
        heard: the judge's grades of all items.
        read: row numbers of the randomly sampled items with a human label; labels chosen otherwise would bias the
            result.
        said: shape as `read`, the human label of each of these items, from 0.
    """
    size, kind = heard.voices.shape[1], heard.kind
    counts = np.zeros((KINDS, size + 1, size))
    np.add.at(counts, (kind[read], heard.grade[read], said), 1.0)  # grade -1 (unjudged) is stored in the last row
    known = counts[kind, heard.grade]
    blended: Floats = known + WEIGHT * _prior(heard, _fit_grade_decay(kind[read], heard.grade[read] != said))
    found = _blur_by_uncertainty(blended / blended.sum(axis=1, keepdims=True), heard.sigma)
    if heard.stated is not None:
        stated, learned = np.flatnonzero(kind == STATED_SHARES), kind[read] == STATED_SHARES
        fit = fit_calibration(heard.stated[read[learned]].tolist(), (said[learned] + 1).tolist())
        found[stated] = [apply_calibration(row, fit) for row in heard.stated[stated].tolist()]
    return found


def _fit_grade_decay(kind: Ints, wrong: Flags) -> Floats:
    """Return, for each kind of item, the factor per step away from the judge's grade, shape (kinds,)."""
    count, errors = (np.bincount(kind, weights=each, minlength=KINDS) for each in (np.ones(len(kind)), wrong))
    # share of errors that follows from the prior's factor, except at the ends of the scale
    usual = 2 * PRIOR_GRADE_DECAY / (1 + PRIOR_GRADE_DECAY)
    share = (errors + WEIGHT * usual) / (count + WEIGHT)
    found: Floats = share / (2 - share)
    return found


def _prior(heard: KnownGrades, steps: Floats) -> Floats:
    """Return the prior probability of each human grade, shape (items, grades)."""
    size, kind = heard.voices.shape[1], heard.kind
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    rows = np.maximum(steps, MIN_GRADE_DECAY)[:, None, None] ** apart
    rows[DISPUTED] = PRIOR_GRADE_DECAY**apart  # the spread of the answers already shows the uncertainty
    rows[UNJUDGED] = HOLE_STEP ** np.arange(size)
    rows /= rows.sum(axis=2, keepdims=True)
    total = heard.voices.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, heard.voices / np.maximum(total, 1), np.eye(size)[heard.grade])
    found: Floats = np.einsum("pg,pgh->ph", shares, rows[kind])
    return found


def _blur_by_uncertainty(beliefs: Floats, sigma: Floats) -> Floats:
    """Spread each probability over the neighbouring grades by a normal kernel with the ranking's standard error."""
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
    """An unjudged passage in the top of at least one system.

    Attributes:
        qid, doc_id: query and passage.
        systems: number of systems that have the passage in their top, at the deepest cutoff.
        divides: probability that exactly one of two systems, drawn by their weights, has the passage in its top; the
            maximum over the cutoffs, in 0..0.5.
        worth: mean over the cutoffs of the same probability divided by min(useful + 1, cutoff). Here, `useful` is the
            number of known useful passages of the query. Unit: the measure's value for one query.
    """

    qid: str
    doc_id: str
    systems: int
    divides: float
    worth: float


@dataclass
class _SystemWeights:
    # one per cutoff: total weight of the systems that have the passage in their top
    weights: list[float] = field(default_factory=list)
    systems: int = 0


def order_holes(
    tops: Iterable[tuple[float, RankedPassages]],
    judged: Mapping[str, Collection[str]],
    useful: Mapping[str, int],
    cutoffs: Sequence[int],
) -> tuple[UnjudgedPassage, ...]:
    """Return the unjudged passages in the systems' tops, with the largest possible effect first.

    Args:
        tops: for each system, its weight (1, or the probability that it is chosen) and its passages by query, best
            first. The iterable is consumed once, and no list is stored.
        judged: graded passages by query. Queries that are missing here count as having no unjudged passages.
        useful: number of known useful passages by query; 0 for a missing query.
        cutoffs: cutoffs of the measures, each at least 1.

    Returns:
        Passages sorted by worth, then by number of systems, then by query and doc_id.

    Raises:
        ValueError: a weight is negative, all weights are 0, no cutoff is given, or a cutoff is below 1.
    """
    if not cutoffs or min(cutoffs) < 1:
        raise ValueError(f"cutoffs must be one or more integers of at least 1, got {list(cutoffs)}")
    held: dict[tuple[str, str], _SystemWeights] = {}
    total, systems = 0.0, 0
    for weight, top in tops:
        if weight < 0:
            raise ValueError(f"a system's weight must be at least 0, got {weight}")
        total, systems = total + weight, systems + 1
        for qid in top.keys() & judged.keys():
            for rank, doc_id in enumerate(top[qid][: max(cutoffs)]):
                if doc_id not in judged[qid]:
                    found = held.setdefault((qid, doc_id), _SystemWeights([0.0] * len(cutoffs)))
                    found.systems += 1
                    for place, cutoff in enumerate(cutoffs):
                        found.weights[place] += weight if rank < cutoff else 0.0
    if systems and not total:
        raise ValueError("all systems have weight 0")
    holes = [_unjudged_passage(*key, found, total, useful.get(key[0], 0), cutoffs) for key, found in held.items()]
    return tuple(sorted(holes, key=lambda hole: (-hole.worth, -hole.systems, hole.qid, hole.doc_id)))


def _unjudged_passage(
    qid: str, doc_id: str, held: _SystemWeights, total: float, useful: int, cutoffs: Sequence[int]
) -> UnjudgedPassage:
    shares = [min(weight / total, 1.0) for weight in held.weights]
    # rounded, because sums of weights in another order differ in their last digits
    divides = [round(2 * share * (1 - share), 12) for share in shares]
    worth = [each / min(useful + 1, cutoff) for each, cutoff in zip(divides, cutoffs, strict=True)]
    return UnjudgedPassage(qid, doc_id, held.systems, max(divides), sum(worth) / len(worth))
