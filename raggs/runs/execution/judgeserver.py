"""Where the client answers its workers: the one place of a run that asks judges, spends, and writes the journal.

Messages arrive in dask's thread and are worked on in the run's own event loop, where the judge, its budget, its rate
limits and its cache live. A judge's error that must stop the run stops it here; workers never see it. Where the money
might end, queries take turns here, as they do in one process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from raggs.base.artifacts import JournalRecord
from raggs.runs.execution.shards import Pools, Shards
from raggs.runs.execution.turns import Turns
from raggs.stages.base import Services, Work

BEAT_S = 30.0
STILL_S = 2.0  # without a question on its way, until those that hold up others are taken for lost


class JudgeServer:
    """Answers for one stage. Made inside the event loop that it works in.

    Args:
        services: the client's.
        work: of the stage, with its journal.
        shards: the queries of each shard.
        pools: the texts that the judge is shown.
        turns: which queries may be graded now; None: all.
        say: sends a message down to a mailbox; may block, so it is called from other threads.
    """

    def __init__(
        self,
        services: Services,
        work: Work,
        shards: Shards,
        pools: Pools,
        turns: Turns | None,
        say: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self._services = services
        self._work = work
        self._members = shards.members
        self._pools = pools
        self._turns = turns
        self._asking = self._asked = 0
        self._say = say
        self._mailboxes: set[str] = set()
        self._inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()

    def hear(self, event: tuple[float, dict[str, Any]]) -> None:
        """Take a message; called from dask's thread."""
        self._loop.call_soon_threadsafe(self._inbox.put_nowait, event[1])

    async def serve(self) -> None:
        """Answer until cancelled, or until an error must stop the run."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._beat())
            if self._turns is not None:
                group.create_task(self._go_on_without_the_lost(self._turns))
            while True:
                message = await self._inbox.get()
                if (note := message.get("note")) is not None:
                    self._work.journal.append(JournalRecord.model_validate_json(note))
                elif (done := message.get("done")) is not None:
                    if self._turns is not None:
                        self._turns.end(self._members[message["shard"]][:done])
                else:
                    self._mailboxes.add(message["mailbox"])
                    group.create_task(self._reply(message))

    async def close(self, topic: str) -> None:
        """Tell whoever still works on the stage that nobody waits for it."""
        for mailbox in self._mailboxes:
            await asyncio.to_thread(self._say, mailbox, {"closed": topic})

    async def _reply(self, message: Mapping[str, Any]) -> None:
        if self._turns is not None and message["ask"] != "hello":
            await self._turns.begin(message["qid"], self._pools.all(message["qid"]))
        self._asking, self._asked = self._asking + 1, self._asked + 1
        answer = await self._answer(message)
        self._asking -= 1  # an error ends the stage
        await asyncio.to_thread(self._say, message["mailbox"], {"id": message["id"], "answer": answer})

    async def _answer(self, message: Mapping[str, Any]) -> Any:
        if message["ask"] == "hello":
            qids = self._members[message["shard"]] if message["journal"] else ()
            return [entry.model_dump_json() for qid in qids for entry in self._work.journal.entries(qid)]
        qid = message["qid"]
        query, passages = self._services.queries[qid], self._pools.get(qid, message["passages"])
        if message["ask"] == "grade":
            return asdict(await self._services.judge.grade(query, passages[0], sample=message["sample"]))
        if message["ask"] == "grades":
            given = await self._services.judge.grades(query, passages, sample=message["sample"])
            return [asdict(each) for each in given]
        if message["ask"] == "known":
            return [asdict(order) for order in await self._services.judge.known(query, passages)]
        return asdict(await self._services.judge.order(query, passages))

    async def _go_on_without_the_lost(self, turns: Turns) -> None:
        """A worker that died may hold up all others, and its shard waits for one of them to be free."""
        while True:
            before = self._asked
            await asyncio.sleep(STILL_S)
            if not self._asking and self._asked == before:
                turns.let_one_in()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            for mailbox in list(self._mailboxes):
                await asyncio.to_thread(self._say, mailbox, {})
