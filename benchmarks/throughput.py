"""Compare elapsed time and processor time of `raggs run` with the limits of a provider.

A server with fixed latency runs in a separate process. `raggs run --only judge` (and `--only rank`) calls it. The
ideal time is calls * latency / concurrency. The targets are at most 1.05 times that plus one second, and at most 6 ms
of processor time per call, including start and imports.

    python benchmarks/throughput.py            2,000 calls at concurrency 64 and 0.5 s, about a minute
    python benchmarks/throughput.py --quick    400 calls
    python benchmarks/throughput.py --bare     the same calls with litellm only, for comparison
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from smallrun import MODEL, POOL, lay_out, texts

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

BATCHES = 20  # ranking calls per query
SLACK, START_S, CPU_MS = 1.05, 1.0, 6.0


@dataclass(frozen=True)
class Measured:
    """Calls and times of one run."""

    what: str
    calls: int
    wall_s: float
    command_s: float
    cpu_s: float

    def line(self, latency: float, concurrency: int) -> str:
        ideal = self.calls * latency / concurrency
        allowed, cpu = SLACK * ideal + START_S, 1000 * self.cpu_s / self.calls
        verdict = "pass" if self.wall_s <= allowed and cpu <= CPU_MS else "FAIL"
        return (
            f"{self.what:<8} {self.calls:>6,} {self.wall_s:>8.2f} {self.command_s:>9.2f} {ideal:>8.2f} "
            f"{self.wall_s / ideal:>6.3f} {allowed:>8.2f} {cpu:>9.2f}  {verdict}"
        )


@contextmanager
def server(latency: float) -> Iterator[str]:
    """Yield the address of a server in a separate process."""
    command = [sys.executable, __file__, "--serve", str(latency)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def serve(latency: float) -> None:
    """Run the server until standard input ends."""
    from support.llm_server import LLMServer

    with LLMServer(delay_s=latency) as running:
        print(running.url, flush=True)
        sys.stdin.read()


def make(folder: Path, queries: int, concurrency: int, url: str) -> Path:
    """Write a project in which each query makes all its calls."""
    return lay_out(
        folder,
        texts(400, 120, 1),
        texts(queries, 20, 2),
        rank={"max_calls": BATCHES, "options": {"saving": 0}},
        budget={"max_usd": None},
        llm={"concurrency": concurrency, "requests_per_minute": None, "api_base": url},
    )


def raggs(config: Path, *arguments: str) -> tuple[dict, float, float]:
    """Return the JSON output of `raggs run`, its elapsed seconds and its processor seconds."""
    command = [sys.executable, "-m", "raggs", "run", "--config", str(config), "--json", *arguments]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"raggs run ended with {process.returncode}")
    return json.loads(output), time.perf_counter() - began, used.ru_utime + used.ru_stime


def stage(config: Path, name: str) -> Measured:
    output, command_s, cpu_s = raggs(config, "--only", name)
    return Measured(name, output["stages"][name]["cost"]["calls"], output["seconds"], command_s, cpu_s)


async def bare(url: str, calls: int, concurrency: int) -> Measured:
    """Make the same number of calls with litellm only. Its import is not counted."""
    from raggs.llm.providers import library

    litellm, gate = library(), asyncio.Semaphore(concurrency)

    async def ask(number: int) -> None:
        async with gate:
            content = f"<data-00>\n{number}\n</data-00>\n\n<data-11>\nthis\n</data-11>"
            await litellm.acompletion(MODEL, [{"role": "user", "content": content}], api_base=url, max_retries=0)

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(ask(number) for number in range(calls)))
    wall = time.perf_counter() - began
    return Measured("litellm", calls, wall, wall, time.process_time() - cpu)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000, help="calls of the judge stage")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.5, help="latency of the server in seconds")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve is not None:
        serve(options.serve)
        return
    os.environ["OPENAI_API_KEY"] = "sk-bench"
    calls = 400 if options.quick else options.calls
    load, cores = os.getloadavg()[0], os.cpu_count()
    print(f"load {load:.1f} on {cores} cores; concurrency {options.concurrency}, latency {options.latency} s")
    print("stage     calls elapsed s command s  ideal s  ratio  allowed    CPU ms")
    with tempfile.TemporaryDirectory() as folder, server(options.latency) as url:
        config = make(Path(folder), calls // POOL, options.concurrency, url)
        raggs(config, "--to", "merge")
        print(stage(config, "judge").line(options.latency, options.concurrency), flush=True)
        raggs(config, "--only", "prune")
        print(stage(config, "rank").line(options.latency, options.concurrency), flush=True)
        if options.bare:
            measured = asyncio.run(bare(url, calls, options.concurrency))
            print(measured.line(options.latency, options.concurrency))
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
