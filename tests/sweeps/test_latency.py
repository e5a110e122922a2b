"""From timings to waits: the usual wait of a query and the tail of single searches are different figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.sweeping import make_sweep

from raggs.app.sweep import choose_again, load_sweep
from raggs.sweeps.models import LatencyPart, LatencySpread, Timing
from raggs.sweeps.store import SweepStore
from raggs.sweeps.timing import latency_of, tail_interval, tail_latency

QUERIES = [f"q{number:02}" for number in range(50)]


def timing(step: str, number: int, ms: Mapping[str, float], *, paid: bool = False) -> Timing:
    return Timing(step=step, kind="retrieve", what=step, round=number, paid=paid, ms=ms)


def waits(timings: Iterable[Timing], *steps: str, queries: list[str] = QUERIES) -> LatencyPart:
    return latency_of({"retrieve": steps}, timings, queries, confidence=0.95, seed=1)


def total(timings: Iterable[Timing], *steps: str, queries: list[str] = QUERIES) -> LatencySpread:
    found = waits(timings, *steps, queries=queries).total
    assert found is not None
    return found


def rare_pauses(rounds: int = 3, share: float = 0.1) -> list[Timing]:
    """Each round 12 ms, but for a tenth of the queries, which are others each time, 42 ms."""
    slow = round(share * len(QUERIES))
    return [
        timing("s", number, {qid: 42.0 if slow * (number - 1) <= at < slow * number else 12.0})
        for number in range(1, rounds + 1)
        for at, qid in enumerate(QUERIES)
    ]


def by_round(timings: Iterable[Timing]) -> list[Timing]:
    rounds: dict[int, dict[str, float]] = {}
    for each in timings:
        rounds.setdefault(each.round, {}).update(each.ms)
    return [timing("s", number, ms) for number, ms in rounds.items()]


def test_a_pause_that_medians_hide_is_in_the_tail() -> None:
    found = total(by_round(rare_pauses()), "s")
    assert (found.p50, found.p95_of_medians) == (12.0, 12.0)
    assert found.p95 == 42.0
    assert (found.searches, found.calls) == (150, 150)


def test_the_tail_is_the_least_time_within_which_95_percent_of_searches_ended() -> None:
    ms = np.random.default_rng(3).gamma(2, 10, (4, 25))
    rounds = [timing("s", at + 1, dict(zip(QUERIES[:25], row.tolist(), strict=True))) for at, row in enumerate(ms)]
    found = total(rounds, "s", queries=QUERIES[:25])
    assert (ms <= found.p95).mean() >= 0.95 > (ms < found.p95).mean()
    assert found.p95 == tail_latency(ms) in ms


def test_steps_are_summed_search_by_search() -> None:
    """Slow in both steps in one and the same search, or never together: medians cannot tell, the tail can."""
    fast = dict.fromkeys(QUERIES, 10.0)
    slow = {**fast, **dict.fromkeys(QUERIES[:15], 50.0)}
    together = [timing("a", 1, slow), timing("b", 1, slow), timing("a", 2, fast), timing("b", 2, fast)]
    apart = [timing("a", 1, slow), timing("b", 1, fast), timing("a", 2, fast), timing("b", 2, slow)]
    assert total(together, "a", "b").p95 == 100.0
    assert total(apart, "a", "b").p95 == 60.0


def test_what_is_timed_once_counts_in_every_round_and_only_for_the_queries_that_it_was_timed_for() -> None:
    local = by_round(rare_pauses())
    paid = timing("p", 1, dict.fromkeys(QUERIES[:10], 100.0), paid=True)
    found = total([*local, paid], "s", "p")
    assert found.searches == 30, "of the other queries nobody knows a whole search"
    assert found.p95 == 142.0 and found.p50 == 112.0
    assert found.paid


@pytest.mark.nightly
def test_the_interval_covers_the_true_tail_about_as_often_as_it_says() -> None:
    """Searches with an effect of the query, of the round, and of neither."""
    rng, rounds, queries = np.random.default_rng(7), 8, 60

    def draw(many_rounds: int, many_queries: int) -> Any:
        by_query, by_round_ = rng.gamma(4, 5, many_queries), rng.gamma(8, 0.5, many_rounds)
        return by_query + by_round_[:, None] + rng.exponential(3, (many_rounds, many_queries))

    truth = float(np.quantile(draw(400, 4000), 0.95))
    met = 0
    for seed in range(200):
        low, high = tail_interval(draw(rounds, queries), 0.95, seed)
        assert low is not None and high is not None and low <= high
        met += low <= truth <= high
    assert 0.88 <= met / 200 <= 1.0


@pytest.mark.parametrize(("queries", "bounded"), [(71, False), (72, True)])
def test_few_searches_bound_no_tail(queries: int, bounded: bool) -> None:
    low, high = tail_interval(np.arange(1.0, queries + 1)[None, :], 0.95, 1)
    assert low is not None and (high is not None) == bounded


def test_a_step_that_was_never_timed_leaves_the_sum_unknown() -> None:
    assert waits(by_round(rare_pauses()), "s", "other").total is None


def test_a_limit_is_held_against_the_tail_of_single_searches(tmp_path: Path) -> None:
    """The usual wait of all queries keeps the limit, 5% of the searches do not."""
    project = make_sweep(
        tmp_path,
        axes={"mode": "lexical", "k": [10]},
        latency={"passes": 3, "warmup": 1, "queries": 6},
    )
    project.call("--quiet")
    store = SweepStore(project.out)
    lines = [each.model_dump(mode="json") for each in store.timings()]
    for line in lines:
        slow = sorted(line["ms"])[line["round"] - 1]
        line["ms"] = {qid: 42.0 if qid == slow and line["kind"] == "retrieve" else 1.0 for qid in line["ms"]}
    (project.out / "timings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    row = store.systems()[0]
    asked = sorted(lines[0]["ms"])
    fresh = latency_of(row.steps, store.timings(), asked, confidence=0.95, seed=1)
    assert fresh.total is not None and fresh.total.p50 < 10 < 42 <= fresh.total.p95
    edited = row.model_copy(update={"latency": fresh})
    (project.out / "systems.jsonl").write_text(edited.model_dump_json() + "\n")
    chosen = choose_again(load_sweep(project.config, ["limits.latency_ms=20"])).report.choice
    assert chosen.winner is None
    assert chosen.excluded == {row.name: f"p95 {fresh.total.p95:.0f} ms, above 20 ms"}
    assert choose_again(load_sweep(project.config, ["limits.latency_ms=50"])).report.choice.winner == row.name
