"""What `raggs run --partial` shows. Computes nothing."""

from __future__ import annotations

from pathlib import Path

from raggs.cli.again import Asked, typed
from raggs.cli.plain import say_json
from raggs.cli.screen import open_console
from raggs.llm import BudgetSpent
from raggs.runs.manifests.bought import bought
from raggs.runs.manifests.opened import open_run
from raggs.runs.manifests.store import dump_json
from raggs.runs.pipeline.part import Part


def spent_json(folder: Path, error: BudgetSpent) -> str:
    """What a run has whose budget ended, what it lacks, and how it goes on."""
    run = open_run(folder)
    found = bought(run)
    lacks = {each.stage: {"left": list(each.left), "short": list(each.short)} for each in run.parts}
    told = {"run": str(folder), "bought": found and found.json, "lacks": lacks}
    return dump_json({**told, "error": error.message, "remedy": error.remedy})


def part_summary(part: Part, asked: Asked, *, as_json: bool, quiet: bool) -> None:
    """What was done of a run whose money ended, and what to do next."""
    folder, lacks = part.run.folder, part.run.lacks
    if as_json:
        left = {each.stage: list(each.left) for each in part.run.parts}
        say_json(dump_json({"run": str(folder), "stages": list(part.stages), "left": left}))
        return
    if quiet:
        return
    console, run = open_console(), typed(folder)
    done = " and ".join(part.stages)
    console.print(f"{done}: the queries that {part.stopped.stage} has done; {lacks}", soft_wrap=True)
    console.print(f"run: {folder}")
    console.print(f"next: {asked.going_on()}   (the whole run)", soft_wrap=True)
    console.print(
        f"  or: raggs eval -g {run} -r {run} && raggs export {run} --format beir --out golden", soft_wrap=True
    )
