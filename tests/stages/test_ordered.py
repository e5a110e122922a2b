"""Working on many items at once: order, window, errors, cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.stages.ordered import MAX_HELD_WINDOWS, run_ordered


@pytest.fixture
def services() -> Iterator[Any]:
    with asyncio.Runner() as loop:
        yield SimpleNamespace(loop=loop, concurrency=3)


@given(delays=st.lists(st.integers(0, 3), max_size=30), window=st.integers(1, 8))
def test_results_come_in_the_order_of_the_items_and_the_window_holds(delays: list[int], window: int) -> None:
    running = most = 0

    async def work(item: tuple[int, int]) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(item[1]):
            await asyncio.sleep(0)
        running -= 1
        return item[0]

    with asyncio.Runner() as loop:
        services: Any = SimpleNamespace(loop=loop, concurrency=3)
        assert list(run_ordered(services, enumerate(delays), work, window=window)) == list(range(len(delays)))
    assert most <= window


def test_the_source_is_read_no_further_than_the_window(services: Any) -> None:
    read = []

    def source() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    async def work(item: int) -> int:
        return item

    results = run_ordered(services, source(), work, window=5)
    assert next(results) == 0
    assert len(read) == 5
    results.close()


def test_an_error_cancels_what_still_runs(services: Any) -> None:
    cancelled = []

    async def work(item: int) -> int:
        if item == 0:
            await asyncio.sleep(0.01)
            raise ValueError("no")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(item)
            raise
        return item

    with pytest.raises(ValueError, match="no"):
        list(run_ordered(services, range(4), work, window=4))
    assert cancelled == [1, 2, 3]


def test_the_next_item_begins_while_an_earlier_one_still_runs(services: Any) -> None:
    begun = []
    last = asyncio.Event()

    async def work(item: int) -> int:
        begun.append(item)
        if item == 9:
            last.set()
        if item == 0:
            await last.wait()
        return item

    assert list(run_ordered(services, range(10), work, window=3)) == list(range(10))
    assert begun == list(range(10))


def test_no_more_is_held_than_some_windows(services: Any) -> None:
    begun = []
    release = asyncio.Event()

    async def work(item: int) -> int:
        begun.append(item)
        if item == 0:
            await asyncio.wait_for(release.wait(), 60)
        elif item == 2 * MAX_HELD_WINDOWS - 1:
            asyncio.get_running_loop().call_later(0.05, release.set)
        return item

    results = run_ordered(services, range(1000), work, window=2)
    assert next(results) == 0
    assert len(begun) == 2 * MAX_HELD_WINDOWS
    results.close()


def test_items_count_by_their_size(services: Any) -> None:
    running = most = 0

    async def work(item: int) -> int:
        nonlocal running, most
        running += item
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= item
        return item

    sizes = [5, 1, 1, 1, 20, 3, 4, 4, 4]
    assert list(run_ordered(services, sizes, work, size=lambda item: item, window=6)) == sizes
    assert 6 <= most < 6 + 20


def test_an_error_of_the_source_is_raised(services: Any) -> None:
    def source() -> Iterator[int]:
        yield 1
        raise ValueError("damaged")

    async def work(item: int) -> int:
        await asyncio.sleep(0)
        return item

    with pytest.raises(ValueError, match="damaged"):
        list(run_ordered(services, source(), work))


def test_calls_are_expected_at_most_until_queries_teach_their_mean() -> None:
    from raggs.stages.rank import CountedCalls

    told: list[tuple[int, int, int, int]] = []
    calls = CountedCalls(lambda *far: told.append(far), total=10, most=80)
    calls.made(4)
    calls.made(4)
    calls.query_done(8)
    calls.given_out(1)
    calls.made(100)
    assert told == [(0, 10, 4, 800), (0, 10, 8, 800), (1, 10, 8, 80), (1, 10, 108, 108)]


def test_no_item_begins_beside_others_where_it_is_held(services: Any) -> None:
    running, most = 0, 0

    async def work(item: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return item

    assert list(run_ordered(services, range(9), work, holds=lambda unfinished: unfinished >= 2)) == list(range(9))
    assert most == 2
    assert list(run_ordered(services, range(9), work, holds=lambda _: True)) == list(range(9)), "the only one is free"
