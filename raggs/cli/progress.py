"""Progress on stderr: live bars on a terminal, plain lines otherwise. Both receive the events of the runner."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console

from raggs.base.secrets import mask
from raggs.base.text import escape_controls, plural
from raggs.base.types import BuildProgress, Notice, WaitProgress
from raggs.cli.plain_text import is_quiet
from raggs.cli.screen import Screen
from raggs.runs.events import Event, StageFinished, StageProgress, StageSkipped, StageStarted
from raggs.runs.manifests.reasons import NeverRun
from raggs.stages.pipeline import Pipeline, pipeline_of

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

PLAIN_INTERVAL = 10.0  # minimum seconds between two progress lines of one stage
QUICK_S = 1.0  # stages that take less time share a line


class _Pace:
    """Rates and remaining times of items that are built (indexes, vectors). An item starts when the previous event
    ends.
    """

    def __init__(self) -> None:
        self._began: dict[str, float] = {}
        self._done: dict[str, int] = {}
        self._heard = time.monotonic()

    def rate(self, what: str, done: int) -> str:
        """Return the rate, such as ``12.5/s``."""
        return f"{done / self._passed(what, done):,.1f}/s"

    def left(self, what: str, done: int, total: int) -> str:
        """Return the remaining time, such as ``, 40 s left``; empty if the total is unknown, or nothing or all is
        done.
        """
        if not 0 < done < total:
            return ""
        return f", {self._passed(what, done) / done * (total - done):,.0f} s left"

    def _passed(self, what: str, done: int) -> float:
        if what not in self._began or done < self._done[what]:
            self._began[what] = self._heard
        self._heard, self._done[what] = time.monotonic(), done
        return max(self._heard - self._began[what], 1e-9)


def _bars(console: Console) -> Bars:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<9}", markup=False),
        BarColumn(bar_width=28),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]:>10}", markup=False),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
    )


class LiveProgress:
    """Live bars: one per stage, with rate, remaining time and cost. Outside of stages, one bar per item that is
    built.
    """

    def __init__(self, console: Console) -> None:
        self._bars = _bars(console)
        self._tasks: dict[str, TaskID] = {}
        self._began = 0.0
        self._stage = ""
        self._pace = _Pace()

    def __enter__(self) -> LiveProgress:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def _task(self, stage: str) -> TaskID:
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=None, rate="", note="")
        return self._tasks[stage]

    def __call__(self, event: Event) -> None:
        match event:
            case Notice(message):
                self._bars.console.print(f"note: {message}")
            case StageSkipped(stage, lock):
                rows = next(iter(lock.outputs.values())).rows
                self._bars.update(self._task(stage), total=1, completed=1, note=f"unchanged, {rows:,} records")
            case StageStarted(stage, reasons):
                self._began, self._stage = time.monotonic(), stage
                self._bars.update(self._task(stage), note="" if reasons == (NeverRun(),) else str(reasons[0]))
            case BuildProgress(what, done, total):
                pace = self._pace.rate(what, done)
                if self._stage:
                    self._bars.update(self._task(self._stage), note=f"building {what}: {done:,}/{total:,}")
                else:
                    self._bars.update(self._task(what), completed=done, total=total or None, rate=pace)
            case WaitProgress(what, done, total):
                self._bars.update(self._task(self._stage), note=f"waiting for {what}: {done:,}/{total:,}")
            case StageProgress(stage, done, total, usd, calls, cached, _, expected):
                part, whole = event.share
                rate = part / max(time.monotonic() - self._began, 1e-9)
                note = money(usd, calls, cached)
                if expected:
                    note = f"calls, {done:,}/{total:,} queries{money(usd, calls, cached, ', ')}"
                self._bars.update(self._task(stage), completed=part, total=whole, rate=f"{rate:,.1f}/s", note=note)
            case StageFinished(stage, lock, seconds):
                rows = next(iter(lock.outputs.values())).rows
                task = self._task(stage)
                end = self._bars.tasks[task].total or 1
                self._bars.update(task, total=end, completed=end, note=f"{rows:,} records in {seconds:.1f} s")


class PlainProgress:
    """Plain progress lines: the result of each stage, its progress every `interval` seconds, and why it runs again.

    Consecutive stages without changes share one line. So do consecutive stages that take less than `QUICK_S`.
    """

    def __init__(self, interval: float = PLAIN_INTERVAL, pipeline: Pipeline | None = None) -> None:
        self._interval, self._pipeline = interval, pipeline
        self._last = self._began = 0.0
        self._stage = ""
        self._pace = _Pace()
        self._unchanged: list[str] = []
        self._quick: dict[str, float] = {}

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._say_short_stages()

    def __call__(self, event: Event) -> None:
        match event:
            case Notice(message):
                self._say(f"note: {message}")
            case StageSkipped(stage, _):
                self._unchanged.append(stage)
            case StageStarted(stage, reasons):
                self._last = self._began = time.monotonic()
                self._stage = stage
                if reasons != (NeverRun(),):
                    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
                    self._say(f"{self._number(stage)} runs again: {reasons[0]}{more}")
            case StageFinished(stage, lock, seconds):
                self._finished(stage, next(iter(lock.outputs.values())).rows, seconds)
            case StageProgress(stage, done, total, usd, calls, cached, steps, expected):
                passed, (part, whole) = time.monotonic() - self._began, event.share
                if part and self._due():
                    ranked = f"{steps:,}/{expected:,} calls, " if expected else ""
                    left, spent = passed / part * (whole - part), money(usd, calls, cached, ", ")
                    self._say(f"{self._number(stage)} {ranked}{done:,}/{total:,} queries, {left:,.0f} s left{spent}")
            case BuildProgress(what, done, total):
                rate = self._pace.rate(what, done)
                if self._due():
                    more = self._pace.left(what, done, total)
                    # the total is unknown while a corpus is read
                    count = f"{done:,}/{total:,}" if total else f"{done:,}"
                    self._say(f"      building {what}: {count}" if self._stage else f"{what}: {count} ({rate}{more})")
            case WaitProgress(what, done, total):
                if self._due():
                    self._say(f"      waiting for {what}: {done:,}/{total:,}")

    def _due(self) -> bool:
        if time.monotonic() - self._last < self._interval:
            return False
        self._last = time.monotonic()
        return True

    def _finished(self, stage: str, rows: int, seconds: float) -> None:
        if seconds < QUICK_S:
            self._quick[stage] = seconds
        else:
            self._say(f"{self._number(stage)}: {plural(rows, 'record')} in {seconds:.1f} s")

    def _say_short_stages(self) -> None:
        unchanged, quick, self._unchanged, self._quick = self._unchanged, self._quick, [], {}
        if unchanged:
            self._say(f"unchanged: {', '.join(unchanged)}")
        if quick:
            self._say(f"done: {', '.join(quick)} in {sum(quick.values()):.1f} s")

    def _number(self, stage: str) -> str:
        return (self._pipeline or pipeline_of(stage)).number(stage)

    def _say(self, line: str) -> None:
        self._say_short_stages()
        sys.stderr.write(escape_controls(mask(line)) + "\n")
        sys.stderr.flush()


def money(usd: float, calls: int, cached: int, before: str = "") -> str:
    """Return the cost and calls so far as text; empty if no model was called."""
    if not calls and not cached:
        return ""
    return f"{before}${usd:,.4f}, {calls:,} calls, {cached:,} cached"


def listener(quiet: bool, pipeline: Pipeline | None = None) -> LiveProgress | PlainProgress | None:
    """Return the display for stderr: bars on a terminal, otherwise lines. With `quiet` or `--quiet`, return None.

    Args:
        pipeline: the pipeline whose stages are counted, as in ``[2/6]`` [default: the pipeline of the current stage].
    """
    if quiet or is_quiet():
        return None
    console = Screen(stderr=True)
    return LiveProgress(console) if console.is_terminal else PlainProgress(pipeline=pipeline)
