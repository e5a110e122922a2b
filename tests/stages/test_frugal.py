"""How many queries are graded side by side where the money may end."""

from __future__ import annotations

from typing import Any

from raggs.stages.frugal import Walks

POOL: Any = ("q1", [None] * 20)


def test_a_walk_asks_for_a_little_at_once_and_is_counted_as_a_whole_pool() -> None:
    left = 50.0
    walks = Walks(3, 1, 2, 1, lambda: left)
    assert walks.at_once(POOL) == 6
    assert walks.tight(1), "two pools may need 80 calls"
    left = 80.0
    assert not walks.tight(1)
    assert walks.tight(2)


def test_passages_of_a_call_and_members_of_a_panel_count() -> None:
    walks = Walks(4, 3, 1, 2, lambda: 28)
    assert walks.at_once(POOL) == 2
    assert not walks.tight(1)
    assert walks.tight(2)


def test_whole_pools_and_judges_whom_nobody_pays_are_never_held() -> None:
    for walks in (Walks(None, 1, 1, 1, lambda: 0.0), Walks(3, 1, 1, 0, lambda: 0.0)):
        walks.at_once(POOL)
        assert not walks.tight(5)
