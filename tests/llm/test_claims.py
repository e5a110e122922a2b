"""Two runs over one cache pay once; one that was killed blocks nobody."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

from support.llm_bench import question

from raggs.llm.cache import AnswerClaims

HOLDER = """
import sys, time
from pathlib import Path
from raggs.llm.cache import AnswerClaims
claims = AnswerClaims(Path(sys.argv[1]))
print(claims.take(["key"]), flush=True)
time.sleep(60)
"""


def test_two_runs_at_once_pay_once(bench):
    async def work(*layers):
        asked = [llm.ask(question(text=str(n))) for n in range(8) for llm in layers]
        found = await asyncio.gather(*asked)
        for llm in layers:
            await llm.close()
        return found

    with bench(delay_s=0.1) as b:
        layers = [b.llm(max_usd=None) for _ in range(2)]
        replies = asyncio.run(work(*layers))
        assert all(reply.error is None for reply in replies)
        assert b.server.count == 8
        assert sum(llm.spent.calls for llm in layers) == sum(llm.spent.cached for llm in layers) == 8


def test_who_fails_lets_the_other_one_ask(bench):
    async def work(*layers):
        found = await asyncio.gather(*(llm.ask(question()) for llm in layers))
        for llm in layers:
            await llm.close()
        return found

    with bench(faults=["400"], delay_s=0.1) as b:
        replies = asyncio.run(work(b.llm(), b.llm()))
        assert sorted(reply.error is None for reply in replies) == [False, True]
        assert b.server.count == 2


def test_of_two_that_find_the_claim_of_a_dead_session_one_takes_it(tmp_path, monkeypatch):
    first, second = AnswerClaims(tmp_path), AnswerClaims(tmp_path)
    first._rows.execute("INSERT INTO claims VALUES ('key', 'dead')")
    alive = second._alive
    monkeypatch.setattr(second, "_alive", lambda session: first.take(["key"]) == set() or alive(session))
    assert second.take(["key"]) == set()
    for claims in (first, second):
        claims.close()


def test_a_claim_ends_with_its_session_even_if_it_is_killed(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "{'key'}\n"
        mine = AnswerClaims(tmp_path)
        assert not mine.take(["key"])
        assert mine.take(["other"]) == {"other"}
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
    assert mine.take(["key"]) == {"key"}
    second = AnswerClaims(tmp_path)
    assert not second.take(["key"])
    mine.release(["key"])
    assert second.take(["key"]) == {"key"}
    assert not second.take(["other"])
    mine.close()
    assert second.take(["other"]) == {"other"}
    second.close()


def test_where_claims_cannot_be_kept_nobody_waits(tmp_path):
    (tmp_path / "claims").write_text("a file")
    claims = AnswerClaims(tmp_path)
    assert claims.take(["key"]) == {"key"}
    claims.release(["key"])
    claims.close()
