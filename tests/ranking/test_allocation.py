"""Whose next round is asked where rankings share a budget."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from raggs.ranking.bayes import NextRound, expected_loss_reduction, next_wave, wave_size

GAINS, PRICES = st.floats(0, 9), st.floats(0.01, 9)
OFFERS = st.dictionaries(st.text(min_size=1, max_size=3), st.tuples(GAINS, PRICES, st.booleans()), max_size=40).map(
    lambda found: [NextRound(name, *rest) for name, rest in found.items()]
)


def worth(offer: NextRound) -> float:
    return offer.gain / offer.price


@given(OFFERS, st.floats(0, 90), st.randoms(use_true_random=False))
def test_a_wave_can_be_paid_and_leaves_out_nothing_better_that_could(offers, left, random):
    taken = next_wave(offers, left, len(offers))
    assert sum(offer.price for offer in taken) <= left + 1e-6
    assert set(taken) <= set(offers) and len(set(taken)) == len(taken)
    shuffled = random.sample(offers, len(offers))
    assert next_wave(shuffled, left, len(offers)) == taken, "the order of the offers says nothing"
    rest = left - sum(offer.price for offer in taken)
    fresh = [offer for offer in offers if not offer.asked]
    if len(taken) < (len(fresh) or wave_size(len(offers))):
        assert all(offer.price > rest for offer in offers if offer not in taken), "all that can be paid is asked"
    elif taken and not fresh:
        worst = min(map(worth, taken))
        assert all(worth(offer) <= worst or offer.price > rest for offer in offers if offer not in taken)


def test_each_ranking_is_asked_once_before_any_is_asked_again():
    offers = [NextRound(f"q{number}", 9.0 if number < 5 else 0.1, 4.0, asked=number < 5) for number in range(30)]
    assert {offer.name for offer in next_wave(offers, 1000, 30)} == {f"q{number}" for number in range(5, 30)}
    again = [offer._replace(asked=True) for offer in offers]
    assert [offer.name for offer in next_wave(again, 1000, 30)[:5]] == [f"q{number}" for number in range(5)]
    assert len(next_wave(again, 1000, 30)) == 8
    assert [wave_size(count) for count in (1, 8, 50, 100, 1000)] == [1, 2, 13, 16, 100]
    assert (
        len(next_wave([offer._replace(name=f"{offer.name}-{at}") for offer in again for at in range(10)], 9e9, 300))
        == 30
    )


def test_what_was_heard_counts_against_a_question_and_a_small_top_for_it():
    assert (
        expected_loss_reduction(8, 20, 40, 20)
        > expected_loss_reduction(8, 40, 40, 20)
        > expected_loss_reduction(4, 40, 40, 20)
    )
    assert expected_loss_reduction(1, 20, 5, 20) > expected_loss_reduction(1, 20, 40, 20)
