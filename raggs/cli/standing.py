"""How a run stands, as a table: each stage, and what it does without. Computes nothing."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from raggs.base.text import shorten
from raggs.cli.screen import table
from raggs.runs.manifests.models import StageLock

if TYPE_CHECKING:
    from raggs.app.status import Status


def rows_of(lock: StageLock) -> int:
    """How many records a stage wrote."""
    return next(iter(lock.outputs.values())).rows


def standing(found: Status) -> Table:
    """Each stage: its state, and what it has done and cost; then those that the run does without."""
    rows = table("stage", "state", "records", "failed", "USD", "ended")
    for name, reasons in found.plan.items():
        lock = found.manifest.stages.get(name)
        state = "up to date" if not reasons else found.begun.get(name) or f"would run: {reasons[0]}"
        spent = found.spent.get(name)
        rows.add_row(
            name,
            shorten(state, 64),
            f"{rows_of(lock):,}" if lock else "",
            f"{lock.failed:,}" if lock and lock.failed else "",
            f"{spent.usd:,.4f}" if spent and spent.calls else "",
            f"{lock.ended:%Y-%m-%d %H:%M}" if lock else "",
        )
    for name, said in found.left_out.items():
        rows.add_row(name, said, "", "", "", "")
    return rows


def say_unlooked(console: Console, found: Status) -> None:
    """What was not compared, and how to do it; a command is never broken."""
    told = "corpus, questions and settings were not looked at; to compare them:"
    if found.unread:
        told = f"not compared with {found.config}: {found.unread}"
    console.print(told, soft_wrap=not console.is_terminal)
    if not found.unread:
        words = ["raggs", "status", str(found.run.folder), "--config", str(found.run.config_file)]
        console.print(shlex.join(words), soft_wrap=True)
