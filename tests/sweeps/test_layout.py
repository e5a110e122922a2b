"""What a reader of a sweep is told: the choice, what matters, and nothing twice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from support.sweeping import make_sweep

from raggs.app.sweep import load_sweep, plan_sweep
from raggs.base.document import Section, fragment
from raggs.sweeps.comparing import best_first, fold_similar_systems
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.deciding import decide
from raggs.sweeps.layout import CHOSEN_FRONT_SIGN, SYSTEMS, findings, lay_out, lay_out_plan
from raggs.sweeps.models import LatencyPart, LatencySpread, PlanLine, SweepPlan, SweepReport, SystemRow
from raggs.sweeps.plots import report_files
from raggs.sweeps.summary import front_table, summarise_sweep, system_names


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> SweepReport:
    """Three modes with 10 and 20 candidates; measures look at the first 10 at most, so k changes nothing."""
    return make_sweep(tmp_path_factory.mktemp("sweep")).sweep().report


def test_systems_that_measured_alike_are_one_line(report: SweepReport) -> None:
    folded = fold_similar_systems(report, best_first(report))
    assert {name: head.name for name, head in folded.items()} == {
        "dense+wordllama+k20": "dense+wordllama+k10",
        "lexical+k20": "lexical+k10",
        "hybrid+wordllama+k20": "hybrid+wordllama+k10",
    }
    table = systems(report).table
    assert table is not None
    assert len(table.rows) == 3
    assert "3 systems are not listed" in " ".join(systems(report).sentences)
    assert "k 20 like k 10 (3x)" in " ".join(systems(report).sentences)


def test_waits_that_differ_by_more_than_the_jitter_are_not_alike(report: SweepReport) -> None:
    ordered = best_first(report)
    slow = next(row for row in ordered if row.name == "lexical+k20")
    total = slow.latency.total
    assert total is not None
    later = total.model_copy(update={"p50": total.p50 + report.jitter_ms})
    slower = slow.model_copy(update={"latency": slow.latency.model_copy(update={"total": later})})
    folded = fold_similar_systems(report, [slower if row is slow else row for row in ordered])
    assert set(folded) == {"dense+wordllama+k20", "hybrid+wordllama+k20"}


def test_the_file_shows_every_system_and_the_screen_the_front(report: SweepReport) -> None:
    full, brief = systems(report, full=True).table, systems(report).table
    assert full is not None and brief is not None
    assert len(full.rows) == len(report.systems)
    names = " ".join(row[0].text for row in brief.rows)
    assert str(report.choice.winner) in names
    assert brief.rows[0][0].text.startswith(CHOSEN_FRONT_SIGN)


def systems(report: SweepReport, *, full: bool = False) -> Section:
    return next(each for each in lay_out(report, full=full).sections if each.title == SYSTEMS)


def section(report: SweepReport, title: str, *, full: bool = False) -> Section | None:
    return next((each for each in lay_out(report, full=full).sections if each.title == title), None)


@pytest.mark.parametrize("full", [False, True])
def test_each_configuration_has_its_ceiling_what_it_realises_of_it_and_its_efficiency(
    report: SweepReport, full: bool
) -> None:
    found = section(report, "Ceilings and efficiency", full=full)
    assert found is not None and found.table is not None
    head = found.table.head
    brief = ("system", "PROC@5", "%PROC@5", "PROC@10", "%PROC@10", "efficiency")
    both = [f"{form} {name}@{k}" for name in ("ra_nwg", "n_recall4") for k in (5, 10) for form in ("PROC", "%PROC")]
    assert head == (("system", *both, "efficiency", "end to end") if full else brief)
    assert len(found.table.rows) == (6 if full else 3)
    for line in found.table.rows:
        row = report.system(line[0].text)
        proc, share = row.scores["proc_ra_nwg@5"].mean, row.realised["ra_nwg@5"]
        assert proc is not None and share is not None and row.efficiency is not None
        assert line[1].value == proc
        assert line[2].text == f"{share:.1%}"
        assert share == pytest.approx((row.scores["ra_nwg@5"].mean or 0) / proc)
        assert float(line[-2 if full else -1].text.replace(",", "")) == pytest.approx(row.efficiency, rel=0.01)
    assert {"PROC", "%PROC", "efficiency"} <= {term.sign for term in found.terms}


def with_waits(report: SweepReport, waits: Mapping[str, float]) -> SweepReport:
    """The report of the same systems with other waits."""
    rows = []
    for row in report.systems:
        wait = LatencySpread(
            p50=waits[row.name] / 2,
            p95=waits[row.name],
            low=None,
            high=None,
            searches=150,
            p95_of_medians=waits[row.name] / 2,
            calls=150,
        )
        rows.append(row.model_copy(update={"latency": LatencyPart(total=wait)}))
    values = {row.name: {name: np.array([row.scores[name].mean]) for name in report.quality} for row in rows}
    config = SweepConfig.model_validate({"name": "s", "golden": ".", "slos": [350, 500]})
    decision = decide(config, report.quality, rows, values)
    changed = {"systems": tuple(rows), "frontiers": decision.frontiers, "front": decision.front}
    return report.model_copy(update={**changed, "choice": decision.choice})


@pytest.mark.parametrize("full", [False, True])
def test_the_frontier_for_each_slo_stands_side_by_side(report: SweepReport, full: bool) -> None:
    ordered = best_first(report)
    best, modes = ordered[0].name, list(dict.fromkeys(row.levels["mode"] for row in ordered))
    waits = {row.name: (900.0, 450.0, 300.0)[modes.index(row.levels["mode"])] for row in ordered}
    changed = with_waits(report, waits)
    found = section(changed, "Front for each SLO", full=full)
    assert found is not None and found.table is not None
    assert found.table.head == ("system", "p95 ≤ 350 ms", "p95 ≤ 500 ms", "no limit")
    places = {line[0].text: [cell.text for cell in line[1:]] for line in found.table.rows}
    assert places[best] == ["over", "over", "choice"]
    for column, limit in enumerate((350, 500, 1e9)):
        chosen = [name for name, cells in places.items() if cells[column] == "choice"]
        assert len(chosen) == 1 and waits[chosen[0]] <= limit
        assert all((cells[column] == "over") == (waits[name] > limit) for name, cells in places.items())
    page = report_files(changed)["sweep.md"]
    assert "## Front for each SLO" in page and "p95 ≤ 350 ms" in page
    assert "Front for each SLO" in fragment(lay_out(changed, full=True))


def test_frontiers_that_are_all_the_same_are_one_sentence(report: SweepReport) -> None:
    found = section(report, "Front for each SLO")
    assert found is not None and found.table is None
    assert found.sentences == ("the same for a p95 of at most 350 ms, 500 ms, and without a limit",)


def test_a_sign_is_explained_only_where_it_is_shown(report: SweepReport) -> None:
    terms = {term.sign for term in systems(report).terms}
    assert CHOSEN_FRONT_SIGN in terms
    assert "per 1,000" not in terms  # nothing costs anything, and a sentence says so
    assert any("no system has a cost" in said for said in systems(report).sentences)
    choice = report.choice.model_copy(update={"winner": report.systems[0].name})
    alone = report.model_copy(update={"systems": report.systems[:1], "front": (), "choice": choice})
    assert not {CHOSEN_FRONT_SIGN, "*"} & {term.sign for term in systems(alone).terms}


def test_the_choice_comes_first_then_what_changes_it_then_pictures_then_all_figures(report: SweepReport) -> None:
    titles = [section.title for section in lay_out(report).sections]
    assert titles[0] == "What changes the choice"
    page = report_files(report)["sweep.md"]
    places = [page.index(f"## {title}\n") for title in ("What changes the choice", "Plots", SYSTEMS, "Main effects")]
    assert places == sorted(places)
    lead, winner = lay_out(report).scores, system_names(report)[str(report.choice.winner)]
    assert summarise_sweep(report, "c", "f").headline[0].split(" (")[0].split(winner)[0] in lead.sentences[0]
    assert any(said.startswith(f"Why {winner}: it has the highest ra_nwg@5 of 6 systems") for said in lead.sentences)
    assert lead.table is not None and lead.table.rows[0][0].best
    assert [cell.text.rpartition(" (")[0] for cell, *_ in lead.table.rows if cell.best] == [winner]


def test_the_front_of_the_recommendation_has_six_rows_at_most_the_chosen_one_first(report: SweepReport) -> None:
    score, measure = report.systems[0].scores[report.quality[0]], report.quality[0]
    rows = tuple(
        report.systems[0].model_copy(
            update={"name": f"s{at}", "scores": {measure: score.model_copy(update={"mean": 0.5 - at / 100})}}
        )
        for at in range(9)
    )
    choice = report.choice.model_copy(update={"winner": "s8", "best": "s0"})
    changed = {"systems": rows, "front": tuple(row.name for row in rows[:8]), "choice": choice, "baseline": "s8"}
    lead = lay_out(report.model_copy(update=changed)).scores
    assert lead.table is not None
    assert lead.table.rows[0][0].text.startswith("s8 (") and len(lead.table.rows) == 6
    assert lead.table.head[0] == "choice and front (6 of 9)"
    assert "its ra_nwg@5 is equivalent to the highest (s0)" in lead.sentences[-1]
    assert lead.sentences[-1].endswith("It is also the baseline of the sweep.")


def test_equal_systems_are_one_row_of_the_front_and_digits_tell_rows_apart(report: SweepReport) -> None:
    def row(name: str, score: float, p95: float) -> SystemRow:
        first = report.systems[0]
        part = first.scores[report.quality[0]].model_copy(update={"mean": score})
        total = LatencySpread.model_construct(p50=p95, p95=p95, low=p95, high=p95)
        latency = first.latency.model_copy(update={"total": total})
        return first.model_copy(update={"name": name, "scores": {report.quality[0]: part}, "latency": latency})

    rows = (row("a+k20", 0.78, 1.58), row("a+k50", 0.78, 1.58), row("b+k20", 0.73, 1.55))
    choice = report.choice.model_copy(update={"winner": "a+k20", "best": "a+k20", "tied": ("a+k20", "a+k50")})
    changed = report.model_copy(update={"systems": rows, "front": ("a+k50", "b+k20"), "choice": choice})
    table = front_table(changed)
    assert table is not None
    assert [(name.text.partition(" (")[0], p95.text) for name, _, p95, *_ in table.rows] == [
        ("a, k20 or k50", "1.58 ms"),
        ("b+k20", "1.55 ms"),
    ]
    screen = front_table(changed, chars=30)
    assert screen is not None and screen.head[2] == "p95 (p50) ms"
    assert [(name.text, latency.text) for name, _, latency, *_ in screen.rows] == [
        ("> a, k20 or k50", "1.58 (1.58)"),
        ("b+k20", "1.55 (1.55)"),
    ]


def test_the_meaning_of_names_is_stated_if_raggs_named_the_systems(report: SweepReport) -> None:
    def meaning(found: SweepReport) -> list[str]:
        return [each.text for each in lay_out(found).scores.terms if each.sign == "names of systems"]

    (said,) = meaning(report)
    assert said.startswith("mode + embedder") and "k candidates" in said
    named = tuple(row.model_copy(update={"name": f"mine-{row.name}"}) for row in report.systems)
    renamed = report.model_copy(
        update={"systems": named, "front": (), "choice": report.choice.model_copy(update={"winner": None})}
    )
    assert meaning(renamed) == []


def test_steps_and_effects_that_change_nothing_are_a_sentence(report: SweepReport) -> None:
    found = {section.title: section for section in findings(report, full=False)}
    steps, effects = found["Effect of more candidates"], found["Main effects"]
    assert steps.table is None
    assert steps.sentences[0].startswith("k 10 → 20 changes ra_nwg@5, cost and latency in none of 3 systems")
    assert "no visible effect: k 10 → 20" in effects.sentences
    assert effects.table is not None
    assert all(row[0].text != "k" for row in effects.table.rows)


def test_a_plan_of_many_systems_is_told_by_axes(tmp_path: Path) -> None:
    project = make_sweep(tmp_path)
    plan = plan_sweep(load_sweep(project.config))
    few = lay_out_plan(plan).scores.table
    assert few is not None
    assert [row[0].text for row in few.rows] == list(plan.systems)
    project.change(axes={"mode": ["dense", "lexical", "hybrid"], "k": [5, 10, 15, 20, 25]}, systems={"mine": {}})
    plan = plan_sweep(load_sweep(project.config))
    many = lay_out_plan(plan).scores
    assert many.table is not None
    assert {row[0].text: row[1].text for row in many.table.rows} == {
        "mode": "dense, lexical, hybrid", "k": "5, 10, 15, 20, 25", "systems": "mine",
    }  # fmt: skip
    assert "all with rewrite clean, embedder wordllama" in many.sentences[1]


def test_what_is_as_good_on_every_question_is_no_rival_and_changes_nothing(report: SweepReport) -> None:
    """k 20 and k 10 give the same scores: a draw of other questions cannot tell them apart, nor can a limit."""
    winner = report.system(str(report.choice.winner))
    twin = winner.name.replace("k10", "k20")
    assert winner.k == 10
    assert not any(twin in said for said in (report.choice.sentence, *report.choice.changes, *report.choice.unknown))


def test_a_long_front_does_not_flood_the_screen(report: SweepReport) -> None:
    """Its best are shown, and how many more there are is said."""
    base = report.systems[0]
    score = base.scores["ra_nwg@5"]
    rows = tuple(
        base.model_copy(
            update={
                "name": f"system-{at}",
                "scores": {**base.scores, "ra_nwg@5": score.model_copy(update={"mean": at / 100})},
            }
        )
        for at in range(60)
    )
    names = tuple(row.name for row in rows[::-1])
    choice = report.choice.model_copy(update={"winner": "system-0"})
    crowd = report.model_copy(update={"systems": rows, "front": names, "choice": choice})
    scores = systems(crowd)
    assert scores.table is not None
    shown = [row[0].text.split()[-1] for row in scores.table.rows]
    assert shown == [*(f"system-{at}" for at in range(59, 35, -1)), "system-0"]
    assert "35 more, 35 of them on the front, in sweep.md and sweep.csv" in scores.sentences


def test_a_long_bill_is_a_line_for_each_model() -> None:
    lines = tuple(
        PlanLine(what=f"reranking {k} candidates ({mode})", model=model, calls=6, tokens=100, usd=usd)
        for k in (10, 20, 30)
        for mode in ("dense", "lexical", "hybrid")
        for model, usd in (("a", 0.5), ("b", None))
    )
    plan = SweepPlan(
        name="x", systems=("y",), questions=6, passages=9, left_out=(), kept=0, lists=18, paid=lines, hours=2
    )
    long, short = (lay_out_plan(each).sections[0] for each in (plan, plan.model_copy(update={"paid": lines[:4]})))
    assert long.table is not None and short.table is not None
    assert [[cell.text for cell in row] for row in long.table.rows] == [
        ["reranking, 9 times", "a", "54", "900", "4.5000"],
        ["reranking, 9 times", "b", "54", "900", "unknown"],
    ]
    assert len(short.table.rows) == 4
    assert long.sentences[0].startswith("unknown: set the missing prices")
