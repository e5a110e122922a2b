"""What the lists of several questions teach of a judge, and what its ranker makes of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from support.worlds import World, check, make_world, play, tau

from raggs.base.hashing import generator
from raggs.ranking import Profile, Ranker, make_ranker
from raggs.ranking.posterior import SHARPNESS
from raggs.ranking.profile import MIN_LOG_SHARPNESS_ERROR, _EvidenceSurface, fit_profile

CAREFUL: tuple[float, ...] = ()
COPIES = (1.0, 1.0, 1.0, 1.0, 0.0)  # of a judge that orders four with care, and leaves the rest as it was shown


def judge_of(
    world: World, seed: int, left: tuple[float, ...], beta: float = 4.0, bonus: float = 0.0
) -> Callable[..., list[str]]:
    """`bonus`: what the first of a list gains over the last, in grades."""
    rng = generator(seed, "tiring")

    def order(batch) -> list[str]:
        rest, found = list(batch), []
        gains = dict(zip(batch, np.linspace(bonus, 0, len(batch)), strict=True))
        while rest:
            care = left[min(len(found), len(left) - 1)] if left else 1.0
            keys = [
                beta * care * (world.utility[name] + gains[name]) + (rng.gumbel() if care else 0.0) for name in rest
            ]
            found.append(rest.pop(int(np.argmax(keys))))  # without care all keys are equal: the first of those left
        return found

    return order


def open_ranker(world: World, **options) -> Ranker:
    settings = {"seed": 1, "max_calls": 80, "saving": 0.0, "batch_size": None} | options
    return make_ranker("bayes", world.ids, list(world.grades.values()), **settings)


def taught(left: tuple[float, ...], questions: int = 3, spread: float = 0.35, bonus: float = 0.0, **options) -> Profile:
    pilots = []
    for seed in range(questions):
        world = make_world(seed, spread=spread)
        ranker, order = open_ranker(world, **options), judge_of(world, seed, left, bonus=bonus)
        for batch in ranker.pilot_batches():
            ranker.observe(order(batch))
        pilots.append(ranker.pilot())
    return fit_profile(pilots, 0.5)


def all_useful(world: World) -> World:
    """A grade better throughout: long lists tell more than short ones only if most of what they show is useful."""
    better = {name: value + 1 for name, value in world.utility.items()}
    return World(better, {name: min(5.0, grade + 1) for name, grade in world.grades.items()})


@pytest.fixture(scope="module")
def profiles() -> dict[str, Profile]:
    return {"careful": taught(CAREFUL), "copies": taught(COPIES), "favours": taught(CAREFUL, bonus=1.0)}


@pytest.mark.nightly
def test_a_judge_that_copies_the_tail_is_found_out_and_a_careful_one_is_believed(profiles):
    careful, copies = profiles["careful"], profiles["copies"]
    assert (careful.left, careful.strain, careful.overhead) == ((), 0.0, 0.5)
    assert 3 < careful.sharpness < 5 and 0.1 < careful.doubt < 0.4
    assert copies.left[0] == 1 and copies.left[3] > 0.5 and copies.left[6] < 0.2
    assert list(copies.left) == sorted(copies.left, reverse=True)


def test_a_sharpness_that_a_strain_could_stand_for_is_not_taken_for_sure():
    sharper, usual = SHARPNESS.index(4.5), SHARPNESS.index(3.0)
    land, rest = _EvidenceSurface([]), (0, 0, 0, 0)
    land._known = {(sharper, *rest, 2, 2, 2): 0.0, (usual, *rest, 2, 2, 2): -9.0}
    assert land.sharpness() == (pytest.approx(4.5, rel=0.01), MIN_LOG_SHARPNESS_ERROR)
    land._known[usual, *rest, 1, 2, 2] = -0.3  # with less strain it explains the answers nearly as well
    sharpness, doubt = land.sharpness()
    assert 3.6 < sharpness < 3.9 and 0.18 < doubt < 0.22


def test_a_favour_of_places_is_learned_where_there_is_one(profiles):
    assert profiles["careful"].favour == profiles["copies"].favour == ()
    assert {profile.echo for profile in profiles.values()} == {0.0}
    favours = profiles["favours"]
    gains = np.array(favours.favour) / favours.sharpness
    assert 0.8 < gains[0] - gains[-1] < 1.2 and all(gains[:-1] > gains[1:])
    assert favours.left == () and 3 < favours.sharpness < 5 and 0.1 < favours.favour_doubt < 0.3
    unlooked = taught(CAREFUL, questions=2, bonus=1.0, favour=False)
    assert (unlooked.favour, unlooked.favour_doubt) == ((), None)


def test_a_favour_that_is_believed_is_taken_out_of_the_first_answer(profiles):
    world, found = make_world(5), {}
    for name in ("careful", "favours"):
        ranker = open_ranker(world)
        ranker.believe(profiles[name])
        (batch,) = ranker.next_batches(1)[:1]
        ranker.observe(batch)  # as it was shown
        found[name] = ranker.posterior.mean[ranker._number[batch[0]]] - ranker.posterior.mean[ranker._number[batch[-1]]]
    assert found["favours"] < found["careful"]
    small = open_ranker(make_world(5, 3))
    small.believe(profiles["favours"])
    assert len(small.ranking().favour) == 3 and sum(small.ranking().favour) == pytest.approx(0)
    fair = open_ranker(world, favour=False)
    fair.believe(taught(CAREFUL, questions=1, bonus=1.0, favour=False))
    assert not any(fair.ranking().favour)


def test_errors_that_come_again_are_learned_and_what_somebody_knows_of_them_stays():
    """A judge with one outcome for each pair: of the passages of a list, those that win most come first."""
    pilots = []
    for seed in range(12):  # with few queries, the estimate varies from 0 to its maximum
        world, rng = make_world(seed), generator(seed, "stubborn")
        ranker, noise = open_ranker(world), rng.logistic(size=(40, 40))
        number = {name: at for at, name in enumerate(world.ids)}

        def beats(first: str, second: str, world=world, noise=noise, number=number) -> bool:
            error = noise[number[first], number[second]] - noise[number[second], number[first]]
            return 4.0 * (world.utility[first] - world.utility[second]) + error > 0

        for batch in ranker.pilot_batches():
            wins = {first: sum(beats(first, second) for second in batch if second != first) for first in batch}
            ranker.observe(sorted(batch, key=lambda name, wins=wins: (-wins[name], name)))
        pilots.append(ranker.pilot())
    profile = fit_profile(pilots)
    assert profile.echo > 0.5
    world = make_world(9)
    believing, knowing = open_ranker(world), open_ranker(world, echo=0.2)
    for ranker in (believing, knowing):
        ranker.believe(profile)
        for batch in ranker.next_batches(4):
            ranker.observe(world.judge(3.0)(batch))
    assert believing.ranking().echo >= profile.echo and knowing.ranking().echo == 0.2


@pytest.mark.nightly
def test_how_far_utilities_spread_around_grades_is_learned_and_believed():
    """Taken for wider than they are, they would make a careful judge look dull, or tired late in a list."""
    narrow, wide = taught(CAREFUL, spread=0.25), taught(CAREFUL, spread=1.0)
    assert narrow.sigma <= 0.35 and wide.sigma >= 0.7
    assert narrow.left == ()
    world = make_world(4)
    sure, unsure = (open_ranker(world), open_ranker(world))
    sure.believe(narrow)
    unsure.believe(wide)
    assert max(sure.ranking().sigma) < min(unsure.ranking().sigma)


@pytest.mark.parametrize(("count", "most"), [(1, 20), (4, 20), (8, 40)])
def test_a_round_shows_no_more_passages_than_so_many_lists_of_five(profiles, count, most):
    ranker, order = open_ranker(world := all_useful(make_world(9))), world.judge(3.0)
    ranker.believe(profiles["careful"])
    shown = []
    for _ in range(4):
        batches = ranker.next_batches(count)
        shown.append(sum(map(len, batches)))
        for batch in batches:
            ranker.observe(order(batch))
    assert min(shown) >= 5 and max(shown) <= most and max(shown) > most / 2


def lengths(profile: Profile, left: tuple[float, ...]) -> tuple[Counter[int], float]:
    world = all_useful(make_world(99))
    ranker, shown = open_ranker(world), Counter()
    ranker.believe(profile)
    order = judge_of(world, 99, left)
    while not ranker.done:
        for batch in ranker.next_batches(4):
            shown[len(batch)] += len(batch)
            ranker.observe(order(batch))
    ranking = ranker.ranking()
    check(ranking, 40)
    return shown, tau(ranking.order, world.truth)


def test_lists_are_long_where_care_lasts_and_short_where_it_does_not(profiles):
    careful, _ = lengths(profiles["careful"], CAREFUL)
    copies, _ = lengths(profiles["copies"], COPIES)
    assert careful[12] + careful[20] > 0.5 * careful.total()
    assert copies[5] > 0.8 * copies.total()


def test_late_picks_of_a_judge_that_copies_count_for_nothing():
    world = make_world(3, 12)
    believing, trusting = (make_ranker("bayes", world.ids, [3] * 12, batch_size=12) for _ in range(2))
    believing.believe(Profile(4.0, 0.2, (1.0, 1.0, 1e-9)))
    for ranker in (believing, trusting):
        (batch,) = ranker.next_batches(1)
        ranker.observe(batch)
        scores = dict(zip(ranker.ranking().order, ranker.ranking().scores, strict=True))
        tail = [scores[name] for name in batch[2:]]
        assert (max(tail) - min(tail) < 1e-3) == (ranker is believing)


@pytest.mark.parametrize("overhead", [0.0, 4.0])
def test_lists_of_any_length_cost_no_more_than_the_calls_of_five_that_are_allowed(overhead):
    world = make_world(7)
    ranker = open_ranker(world, max_calls=20, overhead=overhead)
    spent, order = 0.0, world.judge(3.0)
    while not ranker.done:
        for batch in ranker.next_batches(4):
            spent += (len(batch) + overhead) / (5 + overhead)
            ranker.observe(order(batch))
    assert 18 < spent <= 20 + 1e-9
    assert ranker.ranking().stop_reason == "cap"


@pytest.mark.parametrize("most", [13, 22])
def test_an_audit_of_a_long_list_is_left_out_where_it_would_cost_more_than_is_left(most):
    world = make_world(0)
    ranker, order = open_ranker(world, max_calls=most, repeats=0.5), judge_of(world, 0, CAREFUL)
    ranker.believe(Profile(6.0, 0.2, overhead=0.3))
    price = 0.0
    while not ranker.done:
        for batch in ranker.next_batches(4):
            price += (len(batch) + 0.3) / 5.3
            ranker.observe(order(batch))
    assert most - 1 < price <= most + 1e-9


@pytest.mark.nightly
def test_an_overhead_makes_lists_longer():
    world = make_world(8)

    def mean_length(overhead: float) -> float:
        ranker, order = open_ranker(world), world.judge(3.0)
        ranker.believe(Profile(3.0, 0.2, (1.0, 1.0, 0.8, 0.8, 0.6), 0.1, overhead))
        shown = []
        while not ranker.done:
            for batch in ranker.next_batches(4):
                shown.append(len(batch))
                ranker.observe(order(batch))
        return float(np.mean(shown))

    assert mean_length(20.0) > mean_length(0.0) + 2


def test_the_same_answers_give_the_same_ranking_bit_for_bit(profiles):
    found = []
    for _ in range(2):
        world = make_world(11)
        ranker, order = open_ranker(world), judge_of(world, 5, COPIES)
        for batch in reversed(ranker.pilot_batches()):
            ranker.observe(order(sorted(batch)))
        ranker.believe(profiles["copies"])
        found.append(play(ranker, lambda batch: sorted(batch, key=make_world(11).utility.__getitem__)))
    assert found[0] == found[1]


def test_who_cannot_learn_says_so():
    online = make_ranker("online", ["a", "b"], [1, 2])
    for ask in (online.pilot_batches, online.pilot, lambda: online.believe(Profile(3.0, 0.5))):
        with pytest.raises(TypeError, match="does not use judge parameters"):
            ask()
    with pytest.raises(ValueError, match="engine online needs a batch_size"):
        make_ranker("online", ["a", "b"], [1, 2], batch_size=None)
    ranker = open_ranker(make_world(1, 12))
    ranker.next_batches(1)
    with pytest.raises(ValueError, match="a round is open"):
        ranker.believe(Profile(3.0, 0.5))
    with pytest.raises(ValueError, match="before the first round"):
        ranker.pilot_batches()


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize("size", [1, 2, 3, 6, 21])
def test_pools_of_any_size_have_a_pilot(size):
    world = make_world(2, size)
    ranker = open_ranker(world)
    batches = ranker.pilot_batches()
    assert bool(batches) == (size > 1)
    for batch in batches:
        ranker.observe(world.judge(3.0)(batch))
    ranker.believe(Profile(3.0, 0.3, (1.0, 0.5)))
    check(play(ranker, world.judge(3.0)), size)
