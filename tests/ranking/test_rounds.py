"""What every engine owes its callers, whatever it computes."""

import math
import subprocess
import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.worlds import check, make_world, play

from raggs.ranking import REGISTRY, make_ranker

IDS = [f"d{number:02d}" for number in range(12)]
PATIENT = {"bayes": {"saving": 0}, "online": {"stability": 1000}}  # options that switch the usual stop off
GRADES = [5, 4, 4, 3, 3, 3, 2, 2, 2, 1, 1, 1]

pytestmark = pytest.mark.parametrize("engine", sorted(REGISTRY))


def fresh(engine, **options):
    return make_ranker(engine, IDS, GRADES, **options)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"ids": []}, "empty"),
        ({"ids": ["a", "b", "a"]}, "more than once: a"),
        ({"grades": [1, 2]}, "3 ids, 2 grades"),
        ({"grades": [1, 2, 6]}, "grade of c must be in 1 to 5"),
        ({"grades": [1, 2, math.inf]}, "grade of c"),
        ({"grades": [0, 2, 3]}, "grade of a"),
        ({"top": 0}, "top must be at least 1, not 0"),
        ({"batch_size": 1}, "batch_size must be at least 2, not 1"),
        ({"max_calls": -1}, "max_calls must be at least 0, not -1"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(engine, change, complaint):
    arguments = {"ids": ["a", "b", "c"], "grades": [1, 2, 3], **change}
    with pytest.raises(ValueError, match=complaint):
        make_ranker(engine, **arguments)


def test_unknown_options_are_refused(engine):
    with pytest.raises(TypeError, match="temperature"):
        fresh(engine, temperature=1)


def test_a_round_is_distinct_presentations_of_known_passages(engine):
    batches = fresh(engine, batch_size=4).next_batches(5)
    assert len(set(batches)) == 5
    for batch in batches:
        assert len(set(batch)) == 4 and set(batch) <= set(IDS)


def test_batches_are_shuffled_before_they_are_shown(engine):
    positions = [batch.index(min(batch)) for seed in range(10) for batch in fresh(engine, seed=seed).next_batches(4)]
    assert set(positions) == {0, 1, 2, 3, 4}


def test_a_round_must_be_finished_before_the_next(engine):
    ranker = fresh(engine)
    first, second = ranker.next_batches(2)
    ranker.observe(first)
    with pytest.raises(ValueError, match="1 batches of the last round"):
        ranker.next_batches(2)
    assert not ranker.done
    ranker.skip(second)
    assert ranker.next_batches(1)


def test_a_round_needs_a_batch(engine):
    with pytest.raises(ValueError, match="at least one batch"):
        fresh(engine).next_batches(0)


def test_only_outstanding_batches_are_answered(engine):
    ranker = fresh(engine)
    (batch,) = ranker.next_batches(1)
    stranger = next(name for name in IDS if name not in batch)
    for wrong in (batch[:-1], (*batch, batch[0]), (*batch[:-1], batch[0]), (*batch[:-1], stranger), ("nobody",), ()):
        with pytest.raises(ValueError, match="not a permutation of an outstanding batch"):
            ranker.observe(wrong)
    ranker.observe(batch[::-1])
    with pytest.raises(ValueError, match="not a permutation"):
        ranker.observe(batch)
    with pytest.raises(ValueError, match="not a permutation"):
        ranker.skip(batch)
    assert ranker.ranking().calls == 1


def test_skipped_batches_count_as_asked_and_teach_nothing(engine):
    ranker = fresh(engine, max_calls=6)
    before = ranker.ranking()
    while not ranker.done:
        for batch in ranker.next_batches(4):
            ranker.skip(batch)
    after = ranker.ranking()
    assert (after.calls, after.skipped, after.stop_reason) == (0, 6, "cap")
    assert (after.order, after.scores, after.locks) == (before.order, before.scores, ())


def test_without_calls_the_grades_decide(engine):
    ranking = make_ranker(engine, ["x", "y", "z"], [2, None, 5], max_calls=0).ranking()
    assert ranking.order == ("z", "y", "x")
    assert ranking.stop_reason == "cap" and ranking.exposures == (0, 0, 0)


def test_a_finished_ranker_asks_nothing(engine):
    ranker = fresh(engine, max_calls=0)
    assert ranker.done and ranker.next_batches(4) == ()


def test_one_passage_needs_no_judge(engine):
    ranking = play(make_ranker(engine, ["only"], [None]), sorted)
    assert (ranking.order, ranking.calls, ranking.stop_reason) == (("only",), 0, "nothing to judge")
    assert ranking.position_confidence == (1.0,) and ranking.membership == (1.0,)


@given(max_calls=st.integers(1, 15), parallel=st.integers(1, 9))
def test_the_cap_holds_in_any_round_size(engine, max_calls, parallel):
    ranker, asked = fresh(engine, max_calls=max_calls), 0
    while not ranker.done:
        for number, batch in enumerate(ranker.next_batches(parallel)):
            asked += 1
            if number % 3 == 2:
                ranker.skip(batch)
            else:
                ranker.observe(sorted(batch))
    ranking = ranker.ranking()
    assert ranking.calls + ranking.skipped == asked <= max_calls


@pytest.mark.nightly(keep=4)
@pytest.mark.parametrize(("size", "batch_size"), [(2, 5), (3, 5), (4, 5), (5, 5), (3, 2), (6, 2), (5, 3)])
def test_no_presentation_is_shown_twice_until_none_is_left(engine, size, batch_size):
    options = {"batch_size": batch_size, "max_calls": 150, **PATIENT[engine]}
    ranker, shown = make_ranker(engine, IDS[:size], [None] * size, **options), []
    random = Random(1)
    while not ranker.done:
        for batch in ranker.next_batches(4):
            shown.append(batch)
            ranker.observe(random.sample(batch, len(batch)))
    assert len(shown) == len(set(shown)) == math.perm(size, min(batch_size, size))
    assert ranker.ranking().stop_reason == "every presentation was shown"


def test_answers_fold_in_the_rounds_order_whatever_comes_first(engine):
    world = make_world(3, size=15)
    rankers = [make_ranker(engine, world.ids, list(world.grades.values()), max_calls=24) for _ in range(2)]
    judge = world.judge(beta=2)
    while not rankers[0].done:
        batches = rankers[0].next_batches(6)
        assert rankers[1].next_batches(6) == batches
        orders = [judge(batch) for batch in batches]
        distinct = len({frozenset(batch) for batch in batches}) == len(batches)
        for order in orders:
            rankers[0].observe(order)
        for order in orders[::-1] if distinct else orders:
            rankers[1].observe(order)
    assert rankers[0].ranking() == rankers[1].ranking()


@given(seed=st.integers(0, 50), shuffle=st.randoms(use_true_random=False))
def test_the_listing_of_the_pool_has_no_influence_on_what_is_learned(engine, seed, shuffle):
    world = make_world(seed, size=12)
    rankings = []
    for _ in range(2):
        ids = shuffle.sample(world.ids, k=12)
        ranker = make_ranker(engine, ids, [world.grades[name] for name in ids], seed=seed, max_calls=16)
        rankings.append(play(ranker, world.judge(beta=2, seed=seed)))
    one, other = (dict(zip(each.order, each.scores, strict=True)) for each in rankings)
    assert one == other and rankings[0].locks == rankings[1].locks


def test_names_in_the_same_sorted_order_are_only_names(engine):
    world = make_world(4, size=14)
    rename = {name: f"passage/{position:05d}/é" for position, name in enumerate(sorted(world.ids))}
    back = {new: old for old, new in rename.items()}
    grades = list(world.grades.values())
    plain = play(make_ranker(engine, world.ids, grades, max_calls=20), world.judge(2.0))
    judge = world.judge(2.0)
    renamed = play(
        make_ranker(engine, [rename[name] for name in world.ids], grades, max_calls=20),
        lambda batch: [rename[name] for name in judge([back[name] for name in batch])],
    )
    assert renamed.order == tuple(rename[name] for name in plain.order)
    assert (renamed.scores, renamed.sigma, renamed.calls) == (plain.scores, plain.sigma, plain.calls)


def test_replaying_a_journal_rebuilds_the_state_bit_for_bit(engine):
    world, journal = make_world(8), []
    judge = world.judge(beta=1.5)
    live = make_ranker(engine, world.ids, list(world.grades.values()), seed=2, max_calls=40)
    while not live.done:
        for slot, batch in enumerate(live.next_batches(4)):
            order = None if len(journal) % 7 == 5 else judge(batch)
            journal.append((slot, batch, order))
            live.skip(batch) if order is None else live.observe(order)
    replayed = make_ranker(engine, world.ids, list(world.grades.values()), seed=2, max_calls=40)
    entries = iter(journal)
    while not replayed.done:
        for slot, batch in enumerate(replayed.next_batches(4)):
            known_slot, shown, order = next(entries)
            assert (known_slot, shown) == (slot, batch)
            replayed.skip(batch) if order is None else replayed.observe(order)
    assert replayed.ranking() == live.ranking()
    assert live.ranking().skipped > 3


EXTREMES = {
    "bayes": [
        {},
        {"sigma": 0.01},
        {"sigma": 2.0},
        {"slip": 0.9},
        {"z": 1e-9},
        {"echo": 0.9},
        {"repeats": 0.5},
        {"saving": 0},
    ],
    "online": [{}, {"eta": 100, "clip": 100}, {"eta": 1e-9, "clip": 1e-9}, {"z": 0}, {"z": 1e9}, {"confirmations": 1}],
}
JUDGES = {
    "right": lambda batch, _: sorted(batch),
    "right or reversed": lambda batch, random: sorted(batch, reverse=random.random() < 0.5),
    "in the order shown": lambda batch, _: list(batch),
    "against the order shown": lambda batch, _: list(batch[::-1]),
    "guessing": lambda batch, random: random.sample(batch, len(batch)),
}


@given(
    grades=st.lists(st.sampled_from([1, 1, 1, 2, 2.5, 3, 5, None, math.nan]), min_size=1, max_size=22)
    | st.sampled_from([[3] * 21, [None] * 20, [5] + [1] * 18]),
    batch_size=st.sampled_from([2, 3, 5, 10, 50]),
    top=st.sampled_from([1, 5, 20, 100]),
    judge=st.sampled_from(sorted(JUDGES)),
    skips=st.sampled_from([0.0, 0.0, 0.5]),
    choice=st.integers(0, 99),
    seed=st.integers(0, 99),
)
def test_any_pool_and_any_judge_give_a_sound_ranking_at_every_moment(
    engine, grades, batch_size, top, judge, skips, choice, seed
):
    options, random = EXTREMES[engine][choice % len(EXTREMES[engine])], Random(seed)
    names = [f"d{number:02d}" for number in range(len(grades))]
    ranker = make_ranker(engine, names, grades, top=top, batch_size=batch_size, seed=seed, max_calls=12, **options)
    check(ranker.ranking(), len(grades), top)
    while not ranker.done:
        for batch in ranker.next_batches(random.randint(1, 5)):
            if random.random() < skips:
                ranker.skip(batch)
            else:
                ranker.observe(JUDGES[judge](batch, random))
        check(ranker.ranking(), len(grades), top)
    assert ranker.ranking().stop_reason is not None


def test_seeds_decide_the_batches(engine):
    assert fresh(engine, seed=1).next_batches(4) == fresh(engine, seed=1).next_batches(4)
    assert fresh(engine, seed=1).next_batches(4) != fresh(engine, seed=2).next_batches(4)


@pytest.mark.nightly(keep=1)
def test_hash_randomisation_has_no_influence(engine):
    code = (
        "from support.worlds import make_world, play\n"
        "from raggs.ranking import make_ranker\n"
        "world = make_world(1, 20)\n"
        f"ranker = make_ranker({engine!r}, world.ids, list(world.grades.values()), max_calls=20)\n"
        "print(play(ranker, world.judge(2.0)))"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(path for path in sys.path if path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1] and "order=" in outputs[0]


def test_engines_state_a_version(engine):
    assert REGISTRY.load(engine).VERSION >= 1
