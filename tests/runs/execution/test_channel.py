"""A worker's channel: answers find their question; a client that is gone is given up."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import asdict
from typing import Any

import pytest

from raggs.base.artifacts import JournalRecord, Passage, Query
from raggs.base.errors import ProviderError
from raggs.parts.judges import Judgment, KnownOrder, Ordering
from raggs.runs.execution.channel import Mailbox, RemoteJudge, ShardJournal, WorkerChannel

QUERY = Query(qid="q1", text="what?")
PASSAGES = [Passage(doc_id=doc_id, text=f"secret {doc_id}") for doc_id in ("a", "b", "c")]


def entry(qid: str, slot: int) -> JournalRecord:
    return JournalRecord(qid=qid, state="s", engine="e/1", round=0, slot=slot, shown=("a", "b"), order=None)


class Client:
    """The other end: answers by a table, from another thread, as dask does."""

    def __init__(self, silence_s: float = 300, **answers: Any) -> None:
        self.mailbox = Mailbox()
        self.answers = answers
        self.deaf = 0
        self.heard: list[dict[str, Any]] = []
        self.channel = WorkerChannel("topic", self.hear, self.mailbox, silence_s=silence_s, knock_s=0.01)

    def hear(self, topic: str, message: dict[str, Any]) -> None:
        self.heard.append(message)
        if self.deaf:
            self.deaf -= 1
        elif message.get("ask") in self.answers:
            answer = {"id": message["id"], "answer": self.answers[message["ask"]]}
            threading.Thread(target=self.mailbox.receive, args=((0.0, answer),)).start()

    def close(self) -> None:
        self.mailbox.receive((0.0, {"closed": "topic"}))


def test_a_remote_judge_sends_ids_and_gives_back_what_the_judge_said() -> None:
    votes = {"first": Judgment(4, "fine"), "second": Judgment(None, error="no answer", raw="?")}
    graded, ordered = Judgment(4, "fine", votes=votes), Ordering((2, 0, 1))
    client = Client(grade=asdict(graded), order={**vars(ordered), "order": [2, 0, 1]})
    judge = RemoteJudge("somebody", lambda: client.channel)

    async def both() -> tuple[Judgment, Ordering]:
        return await judge.grade(QUERY, PASSAGES[0], sample=3), await judge.order(QUERY, PASSAGES)

    assert asyncio.run(both()) == (graded, ordered)
    assert [(message["ask"], message["qid"], message["passages"]) for message in client.heard] == [
        ("grade", "q1", ["a"]),
        ("order", "q1", ["a", "b", "c"]),
    ]
    assert client.heard[0]["sample"] == 3
    assert "secret" not in str(client.heard)


def test_orders_that_are_known_come_from_the_client_too() -> None:
    known = KnownOrder((("a", "b"), ("c",)), 4.5, "human: ada")
    client = Client(known=[{"groups": [["a", "b"], ["c"]], "sharpness": 4.5, "by": "human: ada"}])
    judge = RemoteJudge("somebody", lambda: client.channel)
    assert asyncio.run(judge.known(QUERY, PASSAGES)) == [known]
    assert client.heard[0]["passages"] == ["a", "b", "c"]


def test_hello_is_said_again_until_it_is_answered() -> None:
    client = Client(hello=[entry("q1", 0).model_dump_json()])
    client.deaf = 2
    assert client.channel.hello(5, journal=True) == [entry("q1", 0)]
    assert [(message["shard"], message["journal"]) for message in client.heard[:3]] == [(5, True)] * 3


def test_who_waits_is_told_that_the_stage_has_ended() -> None:
    client = Client()

    async def ask() -> Any:
        asyncio.get_running_loop().call_later(0.01, client.close)
        return await client.channel.ask("grade", qid="q1")

    with pytest.raises(ProviderError, match="ended the stage"):
        asyncio.run(ask())
    with pytest.raises(ProviderError, match="ended the stage"):
        client.channel.tell(note="late")


def test_a_silent_client_is_given_up_and_a_busy_one_is_not() -> None:
    client = Client(silence_s=0.1)
    began = client.mailbox.heard

    async def ask() -> Any:
        loop = asyncio.get_running_loop()
        for beat in range(1, 5):
            loop.call_later(0.05 * beat, client.mailbox.receive, (0.0, {}))
        return await client.channel.ask("grade", qid="q1")

    with pytest.raises(ProviderError, match="no longer responds"):
        asyncio.run(ask())
    assert client.mailbox.heard - began >= 0.19, "signs of life were heard until the last"


def test_the_journal_of_a_shard_tells_news_at_once_and_keeps_what_is_settled() -> None:
    client = Client()
    journal = ShardJournal(client.channel, [entry("q2", 1), entry("q1", 0)])
    assert journal.entries("q2") == [entry("q2", 1)]
    assert journal.entries("q3") == []
    journal.append(entry("q1", 1))
    assert [JournalRecord.model_validate_json(message["note"]) for message in client.heard] == [entry("q1", 1)]
    journal.settle("q2", [entry("q2", 1)])
    journal.settle("q1", [entry("q1", 1), entry("q1", 0)])
    assert list(journal.settled()) == [entry("q1", 0), entry("q1", 1), entry("q2", 1)]
