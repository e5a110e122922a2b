"""Human labels as a judge, with and without noise."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest
from support.judging import graded, judge, ordered, passage, query, written
from support.rich import rich_golden

from raggs.base.errors import DataError, NotFoundError
from raggs.golden import formats
from raggs.golden.formats import ExportOptions
from raggs.parts.file_shapes import GradeFormat

LABELS = ["q1 0 d1 5", "q1 0 d2 3", "q1 0 d3 1", "q2 0 d1 2", "q1 0 d4 -1"]
PASSAGES = [passage(f"d{number}", f"text {number}") for number in range(1, 6)]


def replay(folder: Path, *labels: str, **settings: Any) -> Any:
    return judge("qrels", path=written(folder / "qrels.txt", *(labels or LABELS)), **settings)


def grades(who: Any, question: Any, count: int) -> list[int]:
    found = [graded(who, question, passage(f"d{number}", "x")).grade for number in range(count)]
    assert all(grade is not None for grade in found)
    return [grade for grade in found if grade is not None]


def test_labels_are_replayed_and_the_rest_gets_the_default(tmp_path: Path) -> None:
    who = replay(tmp_path, default_grade=2)
    assert [graded(who, query("q1"), each).grade for each in PASSAGES] == [5, 3, 1, 2, 2], "-1 means unjudged"
    assert graded(who, query("q2"), PASSAGES[0]).grade == 2


def test_without_beta_orders_follow_the_grades_and_never_change(tmp_path: Path) -> None:
    who = replay(tmp_path, spread=0)
    assert ordered(who, query("q1"), PASSAGES[::-1]) == ["d1", "d2", "d3", "d4", "d5"]
    spread = replay(tmp_path, spread=0.35)
    truth = ordered(spread, query("q1"), PASSAGES)
    assert all(ordered(spread, query("q1"), shown) == truth for shown in list(permutations(PASSAGES))[::7])


@pytest.mark.parametrize("grade", [0, 6, 100])
def test_a_grade_beyond_the_scale_is_named_before_anything_is_judged(tmp_path: Path, grade: int) -> None:
    who = replay(tmp_path, "q1 0 d1 3", "# a comment", f"q1 0 d2 {grade}")
    with pytest.raises(DataError, match=rf"qrels\.txt:3: label {grade} has no grade.*mapping: {{{grade}: 1, ...}}"):
        who.check([query("q1")])


@pytest.mark.parametrize(("form", "name"), [("gain", "trec"), ("raw", "trec"), ("gain", "beir"), ("gain", "jsonl")])
def test_labels_that_raggs_exported_are_the_grades_that_they_were_written_for(
    form: Any, name: str, tmp_path: Path
) -> None:
    golden = rich_golden()
    files = formats.EXPORTERS.load(name)(ExportOptions(GradeFormat(form))).write(golden, tmp_path)
    labels = next(file for file in files if file.name in ("qrels.txt", "test.tsv", "judgments.jsonl"))
    who = judge("qrels", path=labels)
    wanted = {query.qid: {one.doc_id: one.grade for one in query.grades if one.grade} for query in golden.by_query()}
    assert who.labels() == wanted
    assert ("labels" in who.causes("grade")) is (form == "gain" and name != "jsonl")


def test_labels_of_yes_and_no_are_no_grades_until_a_mapping_says_which(tmp_path: Path) -> None:
    formats.EXPORTERS.load("trec")(ExportOptions(GradeFormat("binary"))).write(rich_golden(), tmp_path)
    with pytest.raises(DataError, match=r"so grades are unknown.*mapping: \{0: 1, 1: 4\}"):
        judge("qrels", path=tmp_path / "qrels.txt").labels()
    who = judge("qrels", path=tmp_path / "qrels.txt", mapping={0: 1, 1: 4})
    assert {grade for found in who.labels().values() for grade in found.values()} == {1, 4}


def test_a_mapping_changes_the_causes_and_nothing_else_does(tmp_path: Path) -> None:
    plain, mapped = replay(tmp_path), replay(tmp_path, mapping={1: 1, 2: 2, 3: 5, 5: 5})
    assert "mapping" not in plain.causes("grade") and "mapping" in mapped.causes("grade")
    assert mapped.labels()["q1"] == {"d1": 5, "d2": 5, "d3": 1}
    with pytest.raises(ValueError, match="label 0 maps to 6"):
        replay(tmp_path, mapping={0: 6})
    with pytest.raises(DataError, match=r"qrels\.txt:3: label 1 has no grade; known labels: 5, 3, 2"):
        replay(tmp_path, mapping={5: 5, 3: 3, 2: 2}).check([query("q1")])


def test_a_negative_label_has_the_grade_that_the_mapping_gives_it(tmp_path: Path) -> None:
    labels = ("q1 0 d1 2", "q1 0 d2 -2", "q1 0 d3 -1")
    who = replay(tmp_path, *labels, mapping={2: 5, -2: 2}, default_grade=1)
    assert who.labels() == {"q1": {"d1": 5, "d2": 2}}, "-1 has no grade, so it means unjudged"
    assert [graded(who, query("q1"), each).grade for each in PASSAGES[:3]] == [5, 2, 1]
    usual = replay(tmp_path, *labels, mapping={2: 5})
    assert who.causes("grade").keys() - usual.causes("grade").keys() == {"negative_labels"}, "locks notice the change"


def test_labels_of_other_queries_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no label for a query of this run .*q1, q2.*run: x1"):
        replay(tmp_path).check([query("x1")])
    replay(tmp_path).check([query("x1"), query("q2")])
    with pytest.raises(NotFoundError, match="no such file"):
        judge("qrels", path=tmp_path / "none").check([query()])


# --- noise of grades ---


@pytest.mark.parametrize(("true", "share"), [(3, 0.25), (1, 0.125), (5, 0.125)])
def test_a_share_of_the_grades_slips_by_one_within_the_scale(tmp_path: Path, true: int, share: float) -> None:
    """At the ends of the scale half of the slips have nowhere to go."""
    who = replay(tmp_path, default_grade=true, grade_noise=0.25, seed=1)
    found = Counter(grades(who, query("q1"), 4000)[10:])
    assert set(found) <= {max(1, true - 1), true, min(5, true + 1)}
    off = 1 - found[true] / found.total()
    assert abs(off - share) < 4 * math.sqrt(share * (1 - share) / found.total())
    if true == 3:
        assert abs(found[2] - found[4]) < 4 * math.sqrt(found[2] + found[4])


def test_noise_depends_on_seed_query_passage_and_sample_only(tmp_path: Path) -> None:
    def all_grades(seed: int = 1, qid: str = "q1", sample: int = 0, backwards: bool = False) -> dict[int, int | None]:
        who = replay(tmp_path, default_grade=3, grade_noise=0.5, seed=seed)
        numbers = range(100)
        order = reversed(numbers) if backwards else numbers
        found = {number: graded(who, query(qid), passage(f"x{number}", "x"), sample).grade for number in order}
        return dict(sorted(found.items()))

    first = all_grades()
    assert all_grades() == first == all_grades(backwards=True)
    assert first not in (all_grades(seed=2), all_grades(qid="q2"), all_grades(sample=1))


# --- Plackett-Luce orders ---


def test_first_places_and_pairs_follow_plackett_luce(tmp_path: Path) -> None:
    """P(first = i) = w_i / sum w and P(i before j) = w_i / (w_i + w_j), with w = exp(beta * grade)."""
    from scipy.stats import chisquare

    labels = {"d1": 1, "d2": 2, "d3": 2, "d4": 3}
    beta, rounds = 0.8, 3000
    who = replay(
        tmp_path, *(f"q{n} 0 {d} {g}" for n in range(rounds) for d, g in labels.items()), beta=beta, spread=0, seed=3
    )
    shown = [passage(name, "x") for name in labels]
    orders = [ordered(who, query(f"q{number}"), shown) for number in range(rounds)]
    weight = {name: math.exp(beta * grade) for name, grade in labels.items()}
    total = sum(weight.values())
    firsts = Counter(order[0] for order in orders)
    expected = [rounds * weight[name] / total for name in labels]
    assert chisquare([firsts[name] for name in labels], expected).pvalue > 0.001
    for one, other in combinations(labels, 2):
        rate = sum(order.index(one) < order.index(other) for order in orders) / rounds
        assert rate == pytest.approx(weight[one] / (weight[one] + weight[other]), abs=0.04)


def test_utilities_within_a_grade_have_the_stated_spread(tmp_path: Path) -> None:
    who = replay(tmp_path, default_grade=3, spread=0.35, seed=5)
    found = [who._utility("q1", f"x{number}") for number in range(3000)]
    mean = sum(found) / len(found)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in found) / len(found))
    assert mean == pytest.approx(3, abs=0.03)
    assert deviation == pytest.approx(0.35, abs=0.02)


def test_a_sharper_judge_agrees_more_with_the_labels(tmp_path: Path) -> None:
    def agreement(beta: float) -> float:
        who = replay(tmp_path, "q1 0 d1 4", "q1 0 d2 3", beta=beta, spread=0)
        pairs = [[passage("d1", "x"), passage("d2", "x"), passage(f"n{number}", "x")] for number in range(400)]
        return (
            sum(order.index("d1") < order.index("d2") for order in (ordered(who, query("q1"), p) for p in pairs)) / 400
        )

    assert agreement(0.5) < agreement(1.5) < agreement(6) == pytest.approx(1, abs=0.02)


def test_orders_do_not_depend_on_the_order_of_the_work(tmp_path: Path) -> None:
    batches = [[passage(f"x{number + step}", "x") for step in range(5)] for number in range(30)]
    settings = {"beta": 1.0, "default_grade": 3}
    who, again, other = (replay(tmp_path, seed=seed, **settings) for seed in (1, 1, 2))
    forth = [ordered(who, query("q1"), batch) for batch in batches]
    back = [ordered(again, query("q1"), batch) for batch in reversed(batches)][::-1]
    assert forth == back
    assert forth != [ordered(other, query("q1"), batch) for batch in batches]


def test_noise_of_grades_is_no_cause_of_orders_nor_the_other_way_round(tmp_path: Path) -> None:
    plain = replay(tmp_path, beta=2.0, grade_noise=0.1)
    assert plain.causes("grade") == replay(tmp_path, beta=3.0, spread=0.1, grade_noise=0.1).causes("grade")
    assert plain.causes("order") == replay(tmp_path, beta=2.0, grade_noise=0.2).causes("order")
    assert plain.causes("grade") != replay(tmp_path, beta=2.0, grade_noise=0.2).causes("grade")
    assert plain.causes("order") != replay(tmp_path, beta=3.0, grade_noise=0.1).causes("order")
    for task in ("grade", "order"):
        assert plain.causes(task) != replay(tmp_path, beta=2.0, grade_noise=0.1, seed=9).causes(task)
        assert plain.causes(task) != replay(tmp_path, beta=2.0, grade_noise=0.1, default_grade=2).causes(task)


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"path": written(folder / "labels.txt", "q0 0 d0 4", "q1 0 d1 5")}
