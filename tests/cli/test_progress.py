"""The live display where nothing but building goes on, and while a stage runs."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from raggs.base.types import BuildProgress
from raggs.cli.progress import LiveProgress, PlainProgress
from raggs.runs.events import StageProgress, StageStarted


def shown(*events: object) -> str:
    """The last frame, without colours."""
    console = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    with LiveProgress(console) as display:
        for event in events:
            display(event)  # type: ignore[arg-type]
    assert isinstance(console.file, io.StringIO)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue())


def test_each_thing_that_is_built_has_a_bar_with_its_rate() -> None:
    text = shown(BuildProgress("vectors", 40, 40), BuildProgress("documents", 20, 40))
    assert re.search(r"vectors .* 40/40 +[\d,.]+/s", text)
    assert re.search(r"documents .* 20/40 +[\d,.]+/s", text)


def test_what_a_stage_builds_is_a_note_on_its_bar() -> None:
    text = shown(StageStarted("retrieve", ("first",)), BuildProgress("bm25", 5, 10))  # type: ignore[arg-type]
    assert re.search(r"retrieve .* building bm25: 5/10", text)


@pytest.mark.parametrize(("interval", "told"), [(0.0, (10, 20, 30, 40)), (5.0, (10,))])
def test_plain_lines_come_no_oftener_than_their_interval(
    capsys: pytest.CaptureFixture[str], interval: float, told: tuple[int, ...]
) -> None:
    display = PlainProgress(interval)
    for done in (10, 20, 30, 40):
        display(BuildProgress("documents", done, 40))
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" (")[0] for line in lines] == [f"documents: {done}/40" for done in told]
    assert all(re.search(r"\([\d,.]+/s(, [\d,]+ s left)?\)$", line) for line in lines)


RANKING = (
    StageStarted("rank", ("first",)),  # type: ignore[arg-type]
    StageProgress("rank", 0, 6, 0.25, 120, 3, steps=123, expected=480),
)


def test_a_ranking_tells_calls_of_those_expected_before_its_first_query_is_done() -> None:
    text = shown(*RANKING)
    assert re.search(r"rank .* 123/480 .* calls, 0/6 queries, \$0.2500, 120 calls, 3 cached", text)


def test_plain_lines_tell_the_time_left_by_calls(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("raggs.cli.progress.time.monotonic", lambda: clock[0])
    display = PlainProgress(5.0)
    for event in RANKING:
        display(event)
        clock[0] += 10
    assert capsys.readouterr().err.splitlines()[1] == (
        "[6/6] rank 123/480 calls, 0/6 queries, 29 s left, $0.2500, 120 calls, 3 cached"
    )
