"""The screen shows as much as there is room for, and cuts nothing."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from support.studies import GOOD, SYSTEMS, reported

from raggs.cli.documents import show
from raggs.evaluation.analyses.comparisons import Comparisons
from raggs.evaluation.analyses.losses import BottleneckAnalysis
from raggs.evaluation.analyses.unjudged import Pooling, UnjudgedBoundsAnalysis
from raggs.golden.sources import NamedSystem
from raggs.metrics.columns import Run

MANY = tuple(NamedSystem(f"system-{number}", "f", Run.of(GOOD)) for number in range(9))


def shown(width: int, *analyses, systems=SYSTEMS) -> list[str]:
    screen = Console(width=width, file=io.StringIO(), highlight=False, force_terminal=True, color_system=None)
    show(reported(*analyses, systems=systems), screen)
    return screen.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [200, 100, 80, 40])
def test_no_line_is_longer_than_the_screen_and_nothing_is_cut(width):
    for systems in (SYSTEMS, MANY):
        lines = shown(width, UnjudgedBoundsAnalysis(), systems=systems)
        assert max(map(len, lines)) <= width
        assert "…" not in "".join(lines)
        names = " ".join(lines)
        assert all(system.name in names for system in systems)


def test_ranges_stand_beside_their_score_then_below_it_and_intervals_go_last():
    wide, narrow = (shown(width, UnjudgedBoundsAnalysis()) for width in (120, 50))
    assert any("[" in line and "{" in line and line.startswith("recall@2") for line in wide)
    below = narrow.index(next(line for line in narrow if line.startswith("recall@2")))
    assert narrow[below + 1].strip().startswith("[")
    assert narrow[below + 2].strip().startswith("{")
    tiny = shown(30)
    assert any(line.startswith("measure   good") and "poor" in line for line in tiny)
    assert not any("[" in line for line in tiny)


@pytest.mark.parametrize("name", ["run[k1=0.9]", "[", "[/red]", "[bold]x[/bold]", "a|b"])
def test_brackets_in_names_are_no_markup(name, tmp_path):
    systems = tuple(NamedSystem(text, "f", Run.of(GOOD)) for text in (name, "other"))
    assert name in "\n".join(shown(80, Comparisons(name), systems=systems))
    assert f"against {name}" in "\n".join(shown(80, Comparisons(name), systems=systems))


@pytest.mark.parametrize("width", [80, 40])
def test_long_names_are_folded_and_their_numbers_stay_whole(width):
    names = ("x" * 300, "short", "a-name-of-some-length/with-parts/" * 4)
    systems = tuple(NamedSystem(name, "f", Run.of(GOOD)) for name in names)
    lines = shown(width, systems=systems)
    table = [line for line in lines if not line.startswith(tuple("[q"))]
    assert max(map(len, table)) <= width
    assert sum("1.0000" in line for line in table) >= 6
    assert "".join(lines).count("x") >= 300
    assert "…" not in "".join(lines)


def test_the_legend_explains_what_is_shown_and_nothing_else():
    alone = "\n".join(shown(200))
    assert "{ }" not in alone
    assert "against" not in alone
    judged = "\n".join(shown(200, Comparisons("good")))
    assert ("? inconclusive: too few queries" in judged, "▲" in judged) == (True, False)


@pytest.mark.parametrize("width", [80, 40])
def test_each_measure_that_is_shown_is_explained_in_a_line_and_no_other(width):
    lines = shown(width)
    begin = next(place for place, line in enumerate(lines) if line.startswith("recall  "))
    assert not any(line.startswith(("ndcg", "harm")) for line in lines)
    *said, glossary = lines[begin:]
    assert glossary.strip() == "words: raggs explain WORD"
    assert [line.split()[0] for line in said if not line.startswith(" ")] == ["recall", "mrr", "holes"]
    assert "recall  Share of the relevant passages that are in the top k" in " ".join(said).replace(" " * 9, " ")
    assert (len(said) == 3) == (width == 80)


def test_a_section_is_shown_once():
    systems = tuple(NamedSystem(name, "f", Run.of({"query-b": GOOD["query-b"]})) for name in "ab")
    assert (
        "\n".join(shown(200, BottleneckAnalysis(), Pooling(), systems=systems)).count("so the ceilings are too high")
        == 1
    )


def test_what_goes_into_a_pipe_has_one_line_a_sentence():
    screen = Console(width=30, file=io.StringIO(), highlight=False)
    show(reported(), screen)
    assert "qrels: 5 labels for 3 queries, grades 1 to 5, relevant from 4" in screen.file.getvalue().splitlines()
