"""Compare raggs' own code with the packages networkx, jsonlines and openai, each where raggs does not use it in a loop.

- Locks: rankings of simulated pools with the arrays of `LockGraph`, and with a graph of networkx that computes its
  closure after each change. Shares are of the processor time of the whole engine.
- Lines: the records of a judge stage, written and read by raggs, and by jsonlines with pydantic.
- Calls: chat completions with 64 in flight to a local server, by raggs' client and by `openai.AsyncOpenAI`.

python benchmarks/packages.py            about two minutes
python benchmarks/packages.py --quick    a fourth of the work
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import networkx as nx
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from smallrun import MODEL
from throughput import SLACK, START_S, server

from raggs.ranking import locks as lock_module
from raggs.ranking import make_ranker
from raggs.ranking import online as online_module

IN_FLIGHT, LATENCY_S = 64, 0.5


class NetworkxLockGraph(lock_module.LockGraph):
    """The same graph, whose closure and orders come from networkx. Adds its processor time to `seconds`."""

    seconds = 0.0

    def _connect(self, winner: int, loser: int) -> None:
        began = time.process_time()
        size = len(self.edges)
        closure = nx.transitive_closure_dag(self._as_networkx())
        self.reach[:] = nx.to_numpy_array(closure, nodelist=range(size), dtype=np.bool_)
        NetworkxLockGraph.seconds += time.process_time() - began

    def order(self, scores: Iterable[float]) -> list[int]:
        began = time.process_time()
        line = self._sorted_by_networkx(scores)
        NetworkxLockGraph.seconds += time.process_time() - began
        return line


class TimedLockGraph(lock_module.LockGraph):
    """The arrays of raggs. Adds the processor time of changes and orders to `seconds`."""

    seconds = 0.0

    def _connect(self, winner: int, loser: int) -> None:
        began = time.process_time()
        super()._connect(winner, loser)
        TimedLockGraph.seconds += time.process_time() - began

    def order(self, scores: Iterable[float]) -> list[int]:
        began = time.process_time()
        line = super().order(scores)
        TimedLockGraph.seconds += time.process_time() - began
        return line

    def final_order(self, scores: Iterable[float]) -> list[int]:
        began = time.process_time()
        line = super().final_order(scores)
        TimedFinal.seconds += time.process_time() - began
        return line


class TimedFinal:
    """Processor time of the final orders."""

    seconds = 0.0


def compare_locks(pools: int, size: int = 60, calls: int = 80) -> None:
    """Print the processor time per ranking of both engines, with arrays and with networkx."""
    from support.worlds import make_world, play

    worlds = [make_world(seed, size) for seed in range(pools)]
    print(f"\nLocks: {pools} pools of {size} passages, {calls} calls each, processor time in ms per ranking")
    print("| engine | graph | whole engine | graph | share | final order |\n|---|---|---|---|---|---|")
    for engine in ("bayes", "online"):
        orders = []
        for name, kind in (("arrays", TimedLockGraph), ("networkx", NetworkxLockGraph)):
            lock_module.LockGraph = online_module.LockGraph = kind
            kind.seconds = TimedFinal.seconds = 0.0
            began, found = time.process_time(), []
            for seed, world in enumerate(worlds):
                options = {"saving": 0.0} if engine == "bayes" else {"stability": 10**6}
                grades = [world.grades[name] for name in world.ids]
                ranker = make_ranker(engine, world.ids, grades, top=20, seed=seed, max_calls=calls, **options)
                found.append(play(ranker, world.judge(3.0, seed)).order)
            whole = time.process_time() - began
            orders.append(found)
            last = f"{1000 * TimedFinal.seconds / pools:.1f}" if kind is TimedLockGraph else "–"
            print(
                f"| {engine} | {name} | {1000 * whole / pools:.0f} | {1000 * kind.seconds / pools:.1f} "
                f"| {kind.seconds / whole:.1%} | {last} |"
            )
        assert orders[0] == orders[1], "both graphs must lead to the same rankings"


def compare_lines(rows: int) -> None:
    """Print the seconds to write and read records of a judge stage."""
    import jsonlines

    from raggs.base.artifacts import JudgeRecord
    from raggs.base.jsonl import read_records, write_records

    stated = {"reason": "States the rule and its exception: “durée” — 12 %, paragraph 3.", "judge": "m"}
    records = [
        JudgeRecord(qid=f"q{n // 50:04d}", doc_id=f"d{n:06d}", rank=n % 50 + 1, grade=n % 5 + 1, **stated)
        for n in range(rows)
    ]
    with tempfile.TemporaryDirectory() as folder:
        own, other = Path(folder) / "own.jsonl", Path(folder) / "other.jsonl"
        times = []
        for work in (
            lambda: write_records(own, records),
            lambda: write_by_jsonlines(other, records),
            lambda: sum(1 for _ in read_records(own, JudgeRecord)),
            lambda: sum(1 for value in jsonlines.open(own) if JudgeRecord.model_validate(value)),
        ):
            began = time.perf_counter()
            work()
            times.append(time.perf_counter() - began)
        same = own.read_bytes() == other.read_bytes()
    print(f"\nLines: {rows:,} records of the judge stage, seconds; the written bytes are {'' if same else 'not '}equal")
    print("| | raggs | jsonlines and pydantic | ratio |\n|---|---|---|---|")
    for name, ours, theirs in (("write", times[0], times[1]), ("read", times[2], times[3])):
        print(f"| {name} | {ours:.2f} | {theirs:.2f} | {theirs / ours:.1f} |")


def write_by_jsonlines(path: Path, records: Iterable[object]) -> None:
    """Write records by `jsonlines.Writer` with compact JSON."""
    import json

    import jsonlines

    def compact(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    with path.open("w", encoding="utf-8") as file, jsonlines.Writer(file, dumps=compact) as writer:
        for record in records:
            writer.write(record.model_dump(mode="json"))


async def ask_many(send: object, calls: int) -> tuple[float, float]:
    """Make `calls` calls with 64 in flight; return the seconds and the processor seconds."""
    gate = asyncio.Semaphore(IN_FLIGHT)

    async def ask(number: int) -> None:
        async with gate:
            content = f"<data-00>\n{number}\n</data-00>\n\n<data-11>\nthis\n</data-11>"
            await send([{"role": "user", "content": content}])

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(ask(number) for number in range(calls)))
    return time.perf_counter() - began, time.process_time() - cpu


async def compare_calls(calls: int) -> None:
    """Print seconds and processor time per call of raggs' client and of the openai package."""
    import openai  # noqa: TID251 - raggs itself does not use it

    from raggs.llm.providers import chat, prepare
    from raggs.llm.settings import LLMSettings

    ideal = calls * LATENCY_S / IN_FLIGHT
    print(
        f"\nCalls: {calls:,} with {IN_FLIGHT} in flight, latency {LATENCY_S} s, at most {SLACK * ideal + START_S:.2f} s"
    )
    print("| client | seconds | ms of processor time per call |\n|---|---|---|")
    with server(LATENCY_S) as url:
        settings = LLMSettings(api_base=url, concurrency=IN_FLIGHT)
        prepare("chat", MODEL, (), settings)
        wall, cpu = await ask_many(lambda messages: chat(MODEL, {"messages": messages}, settings), calls)
        print(f"| raggs | {wall:.2f} | {1000 * cpu / calls:.2f} |")
        client = openai.AsyncOpenAI(base_url=url, max_retries=0)
        name = MODEL.split("/", 1)[1]
        wall, cpu = await ask_many(
            lambda messages: client.chat.completions.create(model=name, messages=messages), calls
        )
        print(f"| openai {openai.__version__} | {wall:.2f} | {1000 * cpu / calls:.2f} |")


def main(arguments: list[str] | None = None) -> None:
    """Print three tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    os.environ["OPENAI_API_KEY"] = "sk-bench"
    share = 1 if options.quick else 4
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; networkx {nx.__version__}")
    compare_locks(3 * share)
    compare_lines(25_000 * share)
    asyncio.run(compare_calls(500 * share))


if __name__ == "__main__":
    main()
