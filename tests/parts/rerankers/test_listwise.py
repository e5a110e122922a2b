"""Windows of passages, ordered by a language model: what it sees, what is made of its orders, what failed."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.hostile import hostile, obeys
from support.judging import passage
from support.reranking import KNOWN, asked_at_a_server, counted

from raggs.base.errors import BudgetError, ConfigError, ProviderError
from raggs.parts.rerankers.chat import ListwiseReranker, read_order, windows
from raggs.prompts import labels_for

MODEL = KNOWN
CONTRACT_VARIANTS = [{}, {"window": 2}]


def contract_case(folder, request):
    return asked_at_a_server(request)


def passages(count, seed=1):
    """Texts that say how good they are, in a random order."""
    return [passage(f"p{worth}", f"worth {worth}") for worth in random.Random(seed).sample(range(count), count)]


def by_worth(query, text):
    return int(re.search(r"worth (\d+)", text)[1])


def ids(found):
    return [each.doc_id for each in found.ranked]


@pytest.fixture
def make(bench, server):
    server.truth = by_worth
    return lambda **config: bench("listwise", **{"model": MODEL, **config})


def test_the_best_are_carried_to_the_top(make, server):
    found = make().ask(passages(95))
    assert ids(found)[:10] == [f"p{worth}" for worth in range(94, 84, -1)]
    assert [each.score for each in found.ranked] == [1 / place for place in range(1, 96)]
    assert server.count == found.calls == 9
    assert (found.repaired, found.problems) == (0, ())
    assert found.ms > 0 and found.tokens > 0 and found.usd > 0


def test_more_passes_order_more(make, server):
    found = make(passes=9, window=20, step=10).ask(passages(95))
    assert ids(found) == [f"p{worth}" for worth in range(94, -1, -1)]


def test_one_window_is_one_question_and_one_passage_none(make, server):
    assert ids(make().ask(passages(20))) == [f"p{worth}" for worth in range(19, -1, -1)]
    assert server.count == 1
    alone = make().ask(passages(1))
    assert [(each.doc_id, each.score) for each in alone.ranked] == [("p0", 1.0)]
    assert (server.count, alone.calls, alone.ms) == (1, 0, None)


def test_another_run_pays_nothing_and_knows_what_it_took(make, server):
    first = make().ask(passages(35))
    asked = server.count
    again = make().ask(passages(35))
    assert again.ranked == first.ranked
    assert (again.tokens, again.calls) == (first.tokens, first.calls)
    assert (again.usd, again.ms) == (pytest.approx(first.usd), pytest.approx(first.ms, abs=0.01))
    assert server.count == asked


@pytest.mark.parametrize("fault", ["repeated label", "missing label", "unknown label"])
def test_an_order_that_is_not_whole_is_made_so_and_counted(make, server, fault):
    server.faults = [fault]
    found = make().ask(passages(6))
    assert sorted(ids(found)) == sorted(each.doc_id for each in passages(6))
    best = [f"p{worth}" for worth in range(5, -1, -1)]
    assert ids(found) == ([*best[1:], best[0]] if fault == "missing label" else best)
    assert (found.repaired, server.count) == (1, 1)


@pytest.mark.parametrize("fault", ["empty", "refusal", "prose", "truncated", "429", "500", "cut body", "reset"])
def test_an_answer_that_cannot_be_used_is_asked_for_again(make, server, fault):
    server.faults = [fault]
    assert ids(make().ask(passages(6))) == [f"p{worth}" for worth in range(5, -1, -1)]
    assert server.count == 2


def test_a_window_that_fails_stays_in_its_order_and_is_named(make, server):
    given = passages(30)
    server.fault_for = lambda number, body: "context" if number == 1 else None
    bench = make()
    found = bench.ask(given, "why?")
    assert found.problems == (f"passages 11 to 30 keep their order: {found.problems[0].partition(': ')[2]}",)
    assert "longer than the model's context" in found.problems[0]
    assert ids(found)[20:] == [each.doc_id for each in given[20:]]
    assert ids(found)[:20] == [each.doc_id for each in sorted(given[:20], key=lambda each: -by_worth("", each.text))]
    assert bench.told[-1].message.startswith(f"{MODEL}, query 'why?': passages 11 to 30 keep their order")


def test_where_every_window_fails_there_is_no_order(make, server):
    server.fault_for = lambda number, body: "refusal"
    with pytest.raises(ProviderError, match=r"query 'what\?': no order: passages 1 to 6 keep .*a refusal"):
        make().ask(passages(6))
    assert server.count == 3


def test_a_failed_window_is_asked_again_by_the_next_run(make, server):
    server.fault_for = lambda number, body: "refusal" if number <= 3 else None
    assert make().ask(passages(30)).problems
    found = make().ask(passages(30))
    assert (ids(found)[:10], found.problems) == ([f"p{worth}" for worth in range(29, 19, -1)], ())


def test_no_passage_speaks_outside_its_marks(make, server):
    server.obeys = obeys
    texts = [passage(f"p{number}", f"{hostile(number, 'wings')} worth {number}") for number in range(20)]
    assert ids(make().ask(texts)) == [f"p{number}" for number in range(19, -1, -1)]


def test_the_prompt_is_in_the_language_of_the_question_and_a_cause(make, server, tmp_path):
    make().ask(passages(3), language="fr")
    assert "Tu es la dernière étape" in server.requests[0]["messages"][0]["content"]
    own = tmp_path / "mine.md"
    own.write_text("Mine.\n\n# user\n\n{{query}} and {{passages}}\n")
    causes = [
        make(**more).who.causes() for more in ({}, {"prompt": str(own)}, {"window": 8}, {"llm": {"max_repairs": 1}})
    ]
    assert all(one != other for place, one in enumerate(causes) for other in causes[place + 1 :])
    with pytest.raises(ConfigError, match="placeholder"):
        make(prompt=_other(tmp_path))


def _other(folder):
    path = folder / "other.md"
    path.write_text("Other.\n\n# user\n\n{{query}}\n")
    return str(path)


def test_a_dry_run_counts_about_what_is_paid(make, server):
    bench = make()
    texts = [passage(f"m{number}", f"worth {number} " + "and more of it " * 30) for number in range(50)]
    found = bench.ask(texts)
    told = counted(bench.workspace, bench.who.config, texts, "what?")
    assert told.calls == found.calls == 4
    assert found.tokens < told.input_tokens < 2 * found.tokens
    assert found.usd < told.usd


def test_the_budget_holds(make, server):
    with pytest.raises(BudgetError):
        make(max_usd=0.0).ask(passages(6))
    assert server.count == 0


def test_a_gap_between_windows_is_refused():
    with pytest.raises(ValidationError, match="step must be at most window"):
        ListwiseReranker.Config(model=MODEL, window=5, step=6)


@given(st.integers(0, 300), st.integers(2, 40), st.data())
def test_windows_reach_from_the_bottom_to_the_top_without_a_gap(count, size, data):
    step = data.draw(st.integers(1, size))
    found = list(windows(count, size, step))
    if count < 2:
        assert found == []
        return
    assert found[0][1] == count and found[-1][0] == 0
    assert all(0 < end - start <= size for start, end in found)
    assert {place for start, end in found for place in range(start, end)} == set(range(count))
    assert all(later[1] == earlier[1] - step for earlier, later in pairwise(found))


LABELS = st.one_of(st.sampled_from(["A", "B", "C", "D", "E", "a", "F", " A", ""]), st.integers(), st.none())


@given(st.lists(LABELS, max_size=12), st.integers(1, 5))
def test_any_order_is_refused_or_made_whole(order, count):
    labels = labels_for(count)
    known = [labels.index(label) for label in dict.fromkeys(order) if label in labels]
    if not known:
        with pytest.raises(ValueError, match='"order" must hold'):
            read_order({"order": order}, labels)
        return
    found = read_order({"order": order}, labels)
    assert sorted(found.places) == list(range(count))
    assert list(found.places[: len(known)]) == known
    assert list(found.places[len(known) :]) == sorted(found.places[len(known) :])
    assert found.repaired == (sorted(map(str, order)) != sorted(labels))
