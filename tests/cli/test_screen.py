"""Tables on narrow screens: what is cut, what goes on in the next line, and what never is."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from raggs.cli.screen import hanging, table


def printed(made: Table, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(made)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def costs() -> Table:
    made = table("stage", "calls", "cached", "tokens in", "tokens out", "mean s", "USD", "saved USD", "records")
    made.add_row("judge", "2,089", "14", "2,422,000", "2,968,000", "1.52", "6.5415", "0.0441", "≤ 2,800,000")
    made.add_row("rank", "2,240", "0", "5,575,360", "2,329,600", "2.01", "16.0530", "0.0000", "≤ 2,240,000")
    return made


@pytest.mark.parametrize("width", [200, 80, 60, 40, 20])
def test_no_number_is_cut_at_any_width(width: int) -> None:
    lines = printed(costs(), width)
    assert not [line for line in lines if "…" in line]
    words = " ".join(lines)
    assert all(number in words for number in ("2,422,000", "16.0530", "≤ 2,240,000", "records"))


def test_what_is_too_wide_is_printed_in_parts_that_begin_with_the_first_column() -> None:
    assert len(printed(costs(), 120)) == 3
    lines = printed(costs(), 80)
    assert [line.split(" ")[0] for line in lines] == ["stage", "judge", "rank", "", "stage", "judge", "rank"]
    assert all(len(line) <= 80 for line in lines)


def test_texts_give_way_to_numbers() -> None:
    made = table("query", "#", "grade", "score", "conf.", "passage")
    made.add_row(
        "q1 What is the maximal length", "1", "5", "4.94", "99%", "reference-manual.md#12 The assert statement"
    )
    lines = printed(made, 66)
    assert all(len(line) <= 66 for line in lines)
    assert "1      5   4.94    99%" in lines[1]
    assert "…" in lines[1].split("  ")[0], "the question's words end in an ellipsis"
    assert "".join(line[42:].strip() for line in lines[1:]).startswith("reference-manual.md#12")


def test_a_state_is_never_cut() -> None:
    made = table("stage", "state", "records", "failed", "USD", "ended")
    made.add_row("prune", "would run: config.max_keep changed (16 -> 9)", "2,089", "", "", "2026-01-31 12:00")
    lines = printed(made, 80)
    assert "…" not in "".join(lines)
    assert "(16 -> 9)" in " ".join(line[7:40].strip() for line in lines)


def test_a_text_goes_on_below_its_first_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hanging("  name  ", "word " * 40) == "  name  " + "word " * 40, "a pipe gets one line"
    monkeypatch.setattr("raggs.cli.screen.open_console", lambda: Console(force_terminal=True, width=40))
    first, *others = hanging("  name  ", "some more words " * 6).splitlines()
    assert first.startswith("  name  some more")
    assert others and all(line.startswith(" " * 8) for line in others)
    assert all(len(line) <= 40 for line in (first, *others))
