"""On a cluster, too, few queries are in the middle of their pools where the money may end."""

from __future__ import annotations

import asyncio
from typing import Any

from raggs.runs.execution.channel import QueryTurns
from raggs.stages.base import Walks

POOL: Any = [None] * 10


def test_a_query_waits_while_the_money_might_end_in_the_middle_of_it() -> None:
    left, begun = 20.0, []

    async def ask(turns: QueryTurns, qid: str) -> None:
        await turns.begin(qid, POOL)
        begun.append(qid)

    async def main() -> None:
        nonlocal left
        turns = QueryTurns(Walks(3, 1, 1, 1, lambda: left))
        asked = [asyncio.create_task(ask(turns, qid)) for qid in ("q3", "q4", "q2", "q1")]
        await asyncio.sleep(0)
        await ask(turns, "q3")
        assert begun == ["q3", "q4", "q3"], "two walks may need 20 calls, and a query that has begun goes on"
        left = 19.0
        turns.end(["q3"])
        await asyncio.sleep(0)
        assert len(begun) == 3, "one is in the middle, and two might need more than there is"
        turns.end(["q3", "q4"])
        await asyncio.sleep(0)
        assert begun[3:] == ["q1"], "by their ids"
        turns.let_one_in()
        await asyncio.gather(*asked)
        assert begun[4:] == ["q2"], "q1 was lost with its worker"
        turns.let_one_in()

    asyncio.run(main())


def test_whole_pools_all_begin() -> None:
    async def main() -> None:
        turns = QueryTurns(Walks(None, 1, 1, 1, lambda: 0.0))
        await asyncio.gather(*(turns.begin(f"q{number}", POOL) for number in range(5)))

    asyncio.run(main())
