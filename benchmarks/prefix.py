"""Measure prompt caching: cached tokens and cost per query, with `raggs run` and a local server.

The server caches prompts as providers do (`tests/support/llm_prefixes.py`): their prefixes in steps of 128 tokens, from
1,024 tokens on, as soon as an answer ends. It reports cached tokens in its usage, in OpenAI's format. raggs grades and
ranks twelve queries over passages of about 200 tokens. The prices are those of `gpt-5-mini` in litellm's list: a cached
token costs a tenth. The texts are synthetic. So prompts share only the parts that are the same for all queries.

    python benchmarks/prefix.py                                      print the tables, about two minutes
    python benchmarks/prefix.py --out benchmarks/results/prefix.md   also write them to the file
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

QUERIES, WORDS = 12, 150  # words per passage: about 200 tokens of 4 characters
LIKE = "openai/gpt-5-mini"
LATENCY_S = 0.05
MARKER = ("<!-- begin: tables -->", "<!-- end: tables -->")


@dataclass(frozen=True)
class Case:
    """Settings of one run.

    Attributes:
        rubric: tokens of the instructions for grades and orders; None: the default prompts.
        least, step: minimum length of a cached prefix, and its steps, in tokens.
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
    """Tokens and cost of one stage of a case, per query."""

    name: str
    stage: str
    calls: float
    sent: float
    cached: float
    common: float
    usd: float
    full_usd: float
    seconds: float

    def line(self) -> str:
        share, saving = self.cached / self.sent, 1 - self.usd / self.full_usd
        return (
            f"| {self.name} | {self.stage} | {self.calls:.1f} | {self.sent:,.0f} | {self.common / self.sent:.0%} | "
            f"{self.cached:,.0f} | {share:.0%} | {1000 * self.full_usd:.2f} | {1000 * self.usd:.2f} | {saving:.0%} |"
        )


HEAD = (
    "| setting | stage | calls | tokens sent | in a common prefix | cached tokens | share cached "
    "| USD per 1,000 queries, no caching | with caching | saving |\n|---|---|---|---|---|---|---|---|---|---|"
)


CASES = (
    Case("default"),
    Case("default, server with blocks of 16 tokens", least=16, step=16),
    Case("`batch_size: auto`", rank={"batch_size": "auto"}),
    Case("`grade@2`, `order@2`", judge={"prompt": "grade@2"}, rank={"prompt": "order@2"}),
    Case(
        "`grade@2`, `order@2`, `batch_size: auto`",
        judge={"prompt": "grade@2"},
        rank={"prompt": "order@2", "batch_size": "auto"},
    ),
    Case("rubric of 700 tokens", rubric=700),
    Case("rubric of 1,100 tokens", rubric=1100),
    Case("rubric of 2,000 tokens", rubric=2000),
    Case("rubric of 2,000 tokens, `batch_size: auto`", rubric=2000, rank={"batch_size": "auto"}),
    Case("rubric of 4,000 tokens", rubric=4000),
    Case("rubric of 2,000 tokens, `concurrency: 1`", rubric=2000, concurrency=1),
    Case("rubric of 2,000 tokens, `concurrency: 64`", rubric=2000, concurrency=64),
)
GROUPED = (
    Case("`group: 5`", judge={"group": 5}),
    Case("rubric of 2,000 tokens, `group: 5`", rubric=2000, judge={"group": 5}),
)


def rubric(folder: Path, task: str, tokens: int) -> str:
    """Write a prompt with about so many tokens before the query: the default prompt with worked examples."""
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
    """Write configuration and inputs of a run, and return the path of the configuration."""
    from raggs.llm.prices import list_price

    judge = {"judge": {"type": "litellm", "model": MODEL}, **case.judge}
    rank = {"options": {"saving": 0}, "max_calls": 40, **case.rank}
    if case.rubric:
        task, name = ("grades", "group_prompt") if "group" in case.judge else ("grade", "prompt")
        judge[name], rank["prompt"] = rubric(folder, task, case.rubric), rubric(folder, "order", case.rubric)
    llm = {"concurrency": case.concurrency, "api_base": url, "prices": {MODEL: list_price(LIKE).model_dump()}}
    return lay_out(folder, texts(200, WORDS, 1), texts(QUERIES, 16, 2), judge=judge, rank=rank, llm=llm)


def measured(case: Case) -> Iterator[Row]:
    """Run the case and yield the rows of its stages."""
    from support.llm_prefixes import Prefixes
    from support.llm_server import LLMServer

    prefixes = Prefixes(case.least, case.step)
    with tempfile.TemporaryDirectory() as folder, LLMServer(utility, delay_s=LATENCY_S, prefixes=prefixes) as server:
        config, began = project(Path(folder), case, server.url), time.perf_counter()
        raggs("run", "--config", str(config), "--yes", "--quiet")
        seconds = time.perf_counter() - began
        costs = json.loads(raggs("cost", str(Path(folder) / "runs" / "bench"), "--json"))["stage"]
    for stage, forms in (("judge", ("grade", "grades")), ("rank", ("order",))):
        seen, spent = [each for each in prefixes.seen if each.form in forms], costs[stage]
        sums = [sum(getattr(each, name) for each in seen) / QUERIES for name in ("sent", "cached", "common")]
        if spent.get("cached_tokens", 0) != sum(each.cached for each in seen):
            raise SystemExit(f"{case.name}: the cached tokens of the ledger differ from those of the server")
        usd, discount = spent["usd"] / QUERIES, spent.get("discount_usd", 0.0) / QUERIES
        yield Row(case.name, stage, len(seen) / QUERIES, *sums, usd, usd + discount, seconds)


def utility(query: str, passage: str) -> int:
    """Return a grade that depends on the texts only."""
    return random.Random(f"{query}|{passage}").choice((1, 2, 2, 3, 3, 4, 5))


def raggs(*arguments: str) -> str:
    """Return the output of a raggs command."""
    command = [sys.executable, "-m", "raggs", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"raggs {arguments[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    parser.add_argument("--only", default="", help="run only cases whose name contains this text")
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
    """Return the tasks of the prompts in raggs."""
    from raggs.prompts import TASKS

    return frozenset(TASKS)


if __name__ == "__main__":
    main()
