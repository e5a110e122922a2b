"""Two judges against people: figures by their definitions, and a verdict only where there is enough to tell."""

from __future__ import annotations

import numpy as np
import pytest

from raggs.base.arrays import Ints
from raggs.base.hashing import generator
from raggs.stats.agreement import check_labels
from raggs.stats.judge_agreement import JudgesVersusHumans, judges_versus_humans


def world(questions: int, seed: int, off: tuple[float, float]) -> tuple[Ints, Ints, Ints, list[str]]:
    """Two judges that are a grade off in a share of cases each, eight cases a question."""
    rng = generator(seed, "nearer")
    people = rng.integers(2, 5, questions * 8)
    sides = [people + rng.choice([-1, 1], people.size) * (rng.random(people.size) < share) for share in off]
    return sides[0], sides[1], people, [f"q{number // 8}" for number in range(people.size)]


def test_the_figures_are_those_of_their_definitions() -> None:
    first, second, people, clusters = world(20, 1, (0.2, 0.5))
    found = judges_versus_humans(first, second, people, clusters, seed=1)
    ours, theirs = np.abs(first - people), np.abs(second - people)
    assert (found.cases, found.clusters, found.differing) == (160, 20, int((first != second).sum()))
    assert (found.first, found.second) == (int((ours < theirs).sum()), int((theirs < ours).sum()))
    assert found.off.first.value == pytest.approx(ours.mean())
    assert found.off.gain.value == pytest.approx((theirs - ours).mean())
    alone = check_labels(second, people, clusters, seed=1)
    assert found.kappa.second == alone.kappa
    assert found.kappa.gain.value == pytest.approx(found.kappa.first.value - found.kappa.second.value)
    assert found.exact.first.value == pytest.approx((ours == 0).mean())
    assert (found.winner, found.more) == ("first", None)
    turned = judges_versus_humans(second, first, people, clusters, seed=1)
    assert turned.winner == "second"
    assert (turned.off.gain.low, turned.off.gain.high) == pytest.approx((-found.off.gain.high, -found.off.gain.low))


@pytest.mark.nightly
def test_judges_alike_are_told_apart_as_seldom_as_promised() -> None:
    told = [verdict.winner is not None for verdict in (_alike(seed) for seed in range(200))]
    assert 2 <= sum(told) <= 20


def _alike(seed: int) -> JudgesVersusHumans:
    return judges_versus_humans(*world(40, seed, (0.4, 0.4)), draws=300, seed=seed)


def test_too_little_is_no_verdict_and_says_how_much_more() -> None:
    first, second, people, clusters = world(20, 1, (0.0, 1.0))
    few = judges_versus_humans(first[:12], second[:12], people[:12], clusters[:12], seed=1)
    assert (few.winner, few.more) == (None, 8)
    same = judges_versus_humans(first, first, people, clusters, seed=1)
    assert (same.winner, same.differing, same.more) == (None, 0, 10)
    open_ = judges_versus_humans(*world(20, 3, (0.3, 0.36)), seed=1)
    assert open_.winner is None
    assert open_.more is not None
    assert open_.more > 100


def test_what_is_no_triple_is_refused() -> None:
    with pytest.raises(ValueError, match="lengths must be equal"):
        judges_versus_humans([1, 2], [1], [1, 2], ["q", "q"], seed=1)
    with pytest.raises(ValueError, match="1 to 5"):
        judges_versus_humans([1], [6], [1], ["q"], seed=1)
