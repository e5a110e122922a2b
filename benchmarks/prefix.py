"""What providers' prefix caches remember of a run's prompts: tokens and USD a question, through `raggs run`.

A server on this machine remembers prompts as providers do (`tests/support/llm_prefixes.py`): their beginnings, in
steps of 128 tokens from 1,024 on, from when an answer ends; and says so in its usage, as OpenAI's protocol does.
Twelve questions over passages of about 200 tokens are graded and ranked. The prices are those of `gpt-5-mini` in
litellm's list: a remembered token costs a tenth. Texts are made up, so that only what is the same for all is common
to two prompts.

    python benchmarks/prefix.py                                      the tables, about two minutes
    python benchmarks/prefix.py --out benchmarks/results/prefix.md   and into the file
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from smallrun import MODEL, lay_out, texts

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

QUESTIONS, WORDS = 12, 150  # of a passage: some 200 tokens of 4 characters
LIKE = "openai/gpt-5-mini"
LATENCY_S = 0.05
MARKER = ("<!-- begin: tables -->", "<!-- end: tables -->")


@dataclass(frozen=True)
class Case:
    """One way to run.

    Attributes:
        rubric: tokens of the prompt's own words for grades and orders; None: as shipped.
        least, step: tokens from which on the server remembers a beginning, and by which.
    """

    name: str
    rubric: int | None = None
    concurrency: int = 16
    least: int = 1024
    step: int = 128
    judge: Mapping[str, object] = field(default_factory=dict)
    rank: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """What one task of a case took, a question."""

    name: str
    task: str
    calls: float
    sent: float
    cached: float
    common: float
    usd: float
    full_usd: float
    seconds: float

    def line(self) -> str:
        share, less = self.cached / self.sent, 1 - self.usd / self.full_usd
        return (
            f"| {self.name} | {self.task} | {self.calls:.1f} | {self.sent:,.0f} | {self.common / self.sent:.0%} | "
            f"{self.cached:,.0f} | {share:.0%} | {1000 * self.full_usd:.2f} | {1000 * self.usd:.2f} | {less:.0%} |"
        )


HEAD = (
    "| run | task | calls | tokens sent | begin like an earlier prompt | remembered | share | USD / 1,000, nothing "
    "remembered | as billed | less |\n|---|---|---|---|---|---|---|---|---|---|"
)


CASES = (
    Case("as shipped: lists of five"),
    Case("lists of five, before a server that remembers blocks of 16", least=16, step=16),
    Case("lists of open length", rank={"batch_size": "auto"}),
    Case("`grade@2` and `order@2`", judge={"prompt": "grade@2"}, rank={"prompt": "order@2"}),
    Case(
        "`grade@2` and `order@2`, lists of open length",
        judge={"prompt": "grade@2"},
        rank={"prompt": "order@2", "batch_size": "auto"},
    ),
    Case("own rubric of 700 tokens", rubric=700),
    Case("own rubric of 1,100 tokens", rubric=1100),
    Case("own rubric of 2,000 tokens", rubric=2000),
    Case("own rubric of 2,000 tokens, lists of open length", rubric=2000, rank={"batch_size": "auto"}),
    Case("own rubric of 4,000 tokens", rubric=4000),
    Case("own rubric of 2,000 tokens, 1 call at a time", rubric=2000, concurrency=1),
    Case("own rubric of 2,000 tokens, 64 calls at a time", rubric=2000, concurrency=64),
)
GROUPED = (
    Case("five grades a call", judge={"group": 5}),
    Case("own rubric of 2,000 tokens, five grades a call", rubric=2000, judge={"group": 5}),
)


def rubric(folder: Path, task: str, tokens: int) -> str:
    """A prompt whose own words before the question hold about so many tokens: the shipped one with worked examples."""
    from support.llm_prefixes import CHARACTERS

    from raggs.prompts import load_prompt

    template = load_prompt(f"{task}@1", task).template("en")
    system = template.system
    for number, example in enumerate(texts(1000, 40, 7)):
        if len(system) >= tokens * CHARACTERS:
            break
        system += f"\n\nExample {number + 1}: {example}"
    path = folder / f"{task}.md"
    path.write_text(f"Longer.\n\n# system\n\n{system}\n\n# user\n\n{template.user}\n")
    return path.name


def project(folder: Path, case: Case, url: str) -> Path:
    """The run's configuration with its inputs."""
    from raggs.llm.prices import list_price

    judge = {"judge": {"type": "litellm", "model": MODEL}, **case.judge}
    rank = {"options": {"saving": 0}, "max_calls": 40, **case.rank}
    if case.rubric:
        task, name = ("grades", "group_prompt") if "group" in case.judge else ("grade", "prompt")
        judge[name], rank["prompt"] = rubric(folder, task, case.rubric), rubric(folder, "order", case.rubric)
    llm = {"concurrency": case.concurrency, "api_base": url, "prices": {MODEL: list_price(LIKE).model_dump()}}
    return lay_out(folder, texts(200, WORDS, 1), texts(QUESTIONS, 16, 2), judge=judge, rank=rank, llm=llm)


def measured(case: Case) -> Iterator[Row]:
    """A run of the case, by the command line."""
    from support.llm_prefixes import Prefixes
    from support.llm_server import LLMServer

    prefixes = Prefixes(case.least, case.step)
    with tempfile.TemporaryDirectory() as folder, LLMServer(utility, delay_s=LATENCY_S, prefixes=prefixes) as server:
        config, began = project(Path(folder), case, server.url), time.perf_counter()
        raggs("run", "--config", str(config), "--yes", "--quiet")
        seconds = time.perf_counter() - began
        booked = json.loads(raggs("cost", str(Path(folder) / "runs" / "bench"), "--json"))["stage"]
    for stage, forms in (("judge", ("grade", "grades")), ("rank", ("order",))):
        seen, spent = [each for each in prefixes.seen if each.form in forms], booked[stage]
        sums = [sum(getattr(each, name) for each in seen) / QUESTIONS for name in ("sent", "cached", "common")]
        if spent.get("cached_tokens", 0) != sum(each.cached for each in seen):
            raise SystemExit(f"{case.name}: the ledger does not say what the server told")
        usd, less = spent["usd"] / QUESTIONS, spent.get("discount_usd", 0.0) / QUESTIONS
        yield Row(case.name, stage, len(seen) / QUESTIONS, *sums, usd, usd + less, seconds)


def utility(query: str, passage: str) -> int:
    """A grade that depends on nothing but the texts."""
    return random.Random(f"{query}|{passage}").choice((1, 2, 2, 3, 3, 4, 5))


def raggs(*arguments: str) -> str:
    """What the command says."""
    command = [sys.executable, "-m", "raggs", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"raggs {arguments[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file whose tables are written anew")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    options = parser.parse_args(arguments)
    os.environ["OPENAI_API_KEY"] = "sk-bench"
    rows = []
    for case in (*CASES, *(GROUPED if "grades" in prompts() else ())):
        if options.only in case.name:
            rows += list(measured(case))
            print("\n".join(row.line() for row in rows[-2:]), f"{rows[-1].seconds:.1f} s", flush=True)
    table = "\n".join((HEAD, *(row.line() for row in rows)))
    if options.out is not None:
        text = options.out.read_text()
        begin, end = MARKER
        inside = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
        options.out.write_text(inside.sub(lambda _: f"{begin}\n\n{table}\n\n{end}", text))


def prompts() -> frozenset[str]:
    """What the prompts that come with raggs are for."""
    from raggs.prompts import TASKS

    return frozenset(TASKS)


if __name__ == "__main__":
    main()
