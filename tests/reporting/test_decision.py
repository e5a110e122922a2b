from __future__ import annotations

from dataclasses import replace

import pytest
from support.golden import PROVENANCE
from support.reports import facts
from support.studies import SYSTEMS, golden, reported, scoring

from raggs.evaluation.analyses.comparisons import Comparisons
from raggs.evaluation.messages import difference_sentence
from raggs.evaluation.models import ComparisonPart, EvalReport, ScorePart, UnjudgedPart, UnjudgedTopPart
from raggs.evaluation.report import make_report
from raggs.reporting.base import JudgeValidation, ReportedSweep, ReportFacts
from raggs.reporting.sections.decision import DecisionPart, DecisionSection, Recommendation
from raggs.stats.judge_agreement import JudgeValidity
from raggs.sweeps.models import ChoicePart, SweepReport, SystemRow, WinPart
from raggs.sweeps.summary import recommend


def box(found: ReportFacts) -> DecisionPart:
    return DecisionSection().data(found)


def recommended(found: ReportFacts) -> Recommendation:
    """Return the recommendation by the evaluation."""
    systems = box(found).systems
    assert systems is not None
    return systems


def comparison(**changed: object) -> ComparisonPart:
    part = next(part for part in reported(Comparisons("poor")).comparisons if part.measure == "ra_nwg@2")
    return part.model_copy(update=changed)


def with_comparisons(*parts: ComparisonPart) -> EvalReport:
    return reported().model_copy(update={"comparisons": parts})


@pytest.mark.parametrize(
    ("verdict", "needed", "answer"),
    [
        ("better", 3, "Replace poor with good. good scores "),
        ("worse", 3, "Keep poor. good scores "),
        ("equivalent", None, "good and poor are equivalent. "),
        ("inconclusive", 20, "Keep poor for now. good scores "),
        ("unjudged", None, "No decision yet. good scores "),
    ],
)
def test_the_verdict_of_the_evaluation_becomes_a_headline(verdict, needed, answer):
    part = comparison(verdict=verdict, queries_needed=needed)
    ship = recommended(facts(with_comparisons(part)))
    assert ship.headline.startswith(answer) and "3 queries)." in ship.headline
    assert ship.answer == ("inconclusive" if verdict == "unjudged" else verdict)
    assert ship.said[0] == difference_sentence(part, 3)
    assert ship.needed == (20 if verdict == "inconclusive" else None)


def test_the_best_of_several_is_asked_about_by_the_first_measure_alone():
    parts = (
        comparison(system="a", difference=0.1, verdict="equivalent"),
        comparison(system="b", difference=0.2, verdict="better"),
        comparison(system="c", difference=0.9, measure="mrr", verdict="better"),
    )
    ship = recommended(facts(with_comparisons(*parts)))
    assert ship.headline.startswith("Replace poor with b.")
    part = parts[0]
    assert f"other systems against poor: a +0.100 [{part.low:+.3f}, {part.high:+.3f}]" in ship.said


@pytest.mark.parametrize(
    ("verdict", "said"),
    [("better", "significantly less"), ("worse", "significantly more"), ("inconclusive", "no significant difference")],
)
def test_what_a_system_shows_that_misleads_stands_beside_its_gain(verdict, said):
    measured = make_report(golden(), SYSTEMS, scoring(("ra_nwg@2", "harm@2")), [Comparisons("poor")])
    parts = [part.model_copy(update={"verdict": verdict}) for part in measured.comparisons]
    ship = recommended(facts(measured.model_copy(update={"comparisons": tuple(parts)})))
    (harm,) = [each for each in ship.said if each.startswith("harm@2")]
    mean = next(system for system in measured.systems if system.name == "good").scores["harm@2"].mean
    assert f"grade 1 or 2: {mean:.3f}, " in harm and harm.endswith(f"against poor: {said}")
    assert not [each for each in recommended(facts(with_comparisons(comparison()))).said if "harm" in each]


def test_a_system_that_is_behind_is_not_shipped_though_that_may_be_chance():
    part = comparison(verdict="inconclusive", queries_needed=20, difference=-0.1)
    ship = recommended(facts(with_comparisons(part)))
    assert (
        ship.headline.startswith("Keep poor. good scores 10.0 points of 100 less, which may be chance")
        and not ship.needed
    )
    assert "its mean is below poor, although not significantly, so nothing supports the replacement" in ship.said


def test_lower_is_better_where_it_is():
    parts = [comparison(system=name, difference=value) for name, value in (("a", -0.2), ("b", 0.1))]
    report = with_comparisons(*parts).model_copy(update={"higher_is_better": {"ra_nwg@2": False}})
    assert recommended(facts(report)).said[0].startswith("a against poor: ")


def test_queries_that_would_tell_are_a_step_unless_they_are_far_too_many():
    near, far = (box(facts(with_comparisons(comparison(verdict="inconclusive", queries_needed=n)))) for n in (20, 40))
    assert "raggs questions DOCS --out questions.jsonl --n 17" in [step.command for step in near.steps]
    assert not [step for step in far.steps if "questions" in step.command]
    assert "such a small difference rarely matters in practice" in " ".join(far.systems.said)


@pytest.mark.parametrize("unsure", [True, False])
def test_that_no_system_holds_the_limits_is_no_answer_if_unjudged_passages_could_reverse_it(unsure: bool) -> None:
    part = UnjudgedPart(
        tops=(UnjudgedTopPart(system="s", cutoff=4, share=0.5),), low=0.2, high=0.7, remedy="judge them"
    )
    choice = ChoicePart(
        winner=None, sentence="None.", limits={"quality": 0.6}, inconclusive={"s": part} if unsure else {}
    )
    row = SystemRow(name="s", levels={}, fingerprint="s", file="s", k=10, questions=9)
    sweep = SweepReport.model_construct(
        name="a", questions=9, quality=("ndcg@4",), systems=(row,), choice=choice, confidence=0.95, cutoffs=(4,)
    )
    ship = box(facts(sweeps=(ReportedSweep(sweep),))).sweeps[-1]
    assert ship.answer == ("inconclusive" if unsure else "worse")
    reason = "Whether s reaches ndcg@4 of 0.600 is inconclusive: 50% of the top 4 of s is unjudged."
    assert ship.said == ("None.", *((reason, "Next: judge them.") if unsure else ()))


@pytest.mark.parametrize(
    ("shares", "inconclusive", "headline"),
    [
        (
            {"s": 0.5, "t": 0.46, "u": 0.04},
            False,
            "use s (the baseline of the sweep): it or an equivalent one is chosen in 96%",
        ),
        (
            {"s": 0.5, "t": 0.46, "u": 0.04},
            True,
            "use s (the baseline of the sweep) for now: it or an equivalent one is chosen",
        ),
        (
            {"t": 0.5, "u": 0.5},
            False,
            "no single best configuration; s (the baseline of the sweep) leads: it or a",
        ),
    ],
)
def test_the_decision_on_a_sweep_says_the_same_as_the_sweep(shares, inconclusive: bool, headline: str) -> None:
    """The share of systems tied with the choice counts, although resamples may choose only one of them."""
    part = UnjudgedPart(tops=(UnjudgedTopPart(system="u", cutoff=4, share=0.5),), low=0.2, high=0.7, remedy="judge")
    choice = ChoicePart(winner="s", tied=("s", "t"), sentence=".", inconclusive={"u": part} if inconclusive else {})
    score = ScorePart(mean=0.5, low=0.4, high=0.6, valid=30)
    row = SystemRow(name="s", levels={}, fingerprint="s", file="s", k=10, questions=30, scores={"ndcg@4": score})
    sweep = SweepReport.model_construct(
        name="a", questions=30, quality=("ndcg@4",), systems=(row,), choice=choice, confidence=0.95, cutoffs=(4,),
        baseline="s", wins=tuple(WinPart(system=name, share=share) for name, share in shares.items()),
    )  # fmt: skip
    found = box(facts(sweeps=(ReportedSweep(sweep),))).sweeps[-1]
    assert found.headline.startswith(f"Sweep a (1 configuration): {headline}")
    told = recommend(sweep).sentences[0]
    assert told.startswith("Recommended") == found.headline.startswith("Sweep a (1 configuration): use")
    assert ("for now" in told) == ("for now" in found.headline) == inconclusive


@pytest.mark.parametrize(
    ("above", "said"),
    [
        (0.0, "The sweep agrees: its best of 2 configurations has the score of poor."),
        (
            0.002,
            "The sweep of 2 configurations found no single best one. Its first choice is s, chosen in 60% of resamples "
            "of the queries. Compared with poor (t in the sweep), it has about the same score (0.2 points of 100 "
            "more). This does not justify a replacement of poor.",
        ),
        (
            0.2,
            "The sweep of 2 configurations found no single best one. Its first choice is s, chosen in 60% of resamples "
            "of the queries. Compared with poor (t in the sweep), it scores 20.0 points of 100 more. "
            "That may be chance.",
        ),
    ],
)
def test_a_sweep_is_joined_with_the_system_that_the_evaluation_keeps(above: float, said: str) -> None:
    report = with_comparisons(comparison(verdict="worse", difference=-0.1))
    measure = report.measures[0]
    kept = next(each.scores[measure] for each in report.systems if each.name == "poor")
    rows = tuple(
        SystemRow(name=name, levels={}, fingerprint=name, file=name, k=10, questions=3, scores={measure: score})
        for name, score in (("s", kept.model_copy(update={"mean": (kept.mean or 0) + above})), ("t", kept))
    )
    sweep = SweepReport.model_construct(
        name="a", questions=3, quality=(measure,), systems=rows, confidence=0.95, cutoffs=(2,), baseline="t",
        golden=report.golden, jitter_ms=0.3, choice=ChoicePart(winner="s", tied=("s",), sentence="."), front=("s",),
        wins=(WinPart(system="s", share=0.6), WinPart(system="t", share=0.4)),
    )  # fmt: skip
    assert box(facts(report, sweeps=(ReportedSweep(sweep),))).sweeps[0].joined.startswith(said)


def test_one_system_is_compared_with_nothing():
    found = box(facts(reported(systems=SYSTEMS[:1])))
    assert found.systems.answer == "nothing to compare"
    assert any("--run A=a.trec --run B=b.trec" in step.command for step in found.steps)
    unnamed = box(replace(facts(), report=None, missing="no system was named"))
    assert any("--run A=a.trec --run B=b.trec" in step.command for step in unnamed.steps)


def test_what_was_not_looked_at_is_never_fine_and_the_worst_check_decides():
    quiet = reported(systems=SYSTEMS[:1]).model_copy(update={"warnings": ()})
    found = box(facts(quiet))
    states = {check.name: check.state for check in found.checks}
    assert states == {"Completeness": "good", "Unjudged": "doubt", "Human labels": "unknown"}
    assert found.trusted == "doubt"
    stopped = box(facts(quiet.model_copy(update={"warnings": ("good: of another corpus",)})))
    assert stopped.trusted == "bad"
    assert stopped.blocks == ("Evaluation: good: of another corpus",)


def test_failed_judgments_are_a_doubt_and_a_set_without_grades_blocks():
    given = facts().golden
    given.provenance = PROVENANCE
    assert box(facts(golden=given)).checks[0].said == ("1 judgment failed (no grade)",)
    none = box(replace(facts(), report=None, missing="the set has no grades yet"))
    assert none.blocks[0] == "the set has no grades yet"
    assert (none.systems, none.sweeps, none.main) == (None, (), None)


@pytest.mark.parametrize(("answer", "state"), [("yes", "good"), ("no", "bad"), ("not yet", "doubt")])
def test_peoples_word_on_comparing_systems_counts_with_its_rule(answer, state):
    trust = (
        JudgeValidity("comparing systems", answer, "kappa at least 0.4", None),
        JudgeValidity("numbers", "no", "kappa", None),
    )
    said = ("usable for comparing systems (kappa at least 0.4)",)
    check = box(facts(people=JudgeValidation(trust, said))).checks[-1]
    assert (check.name, check.state, check.said) == ("Human labels", state, said)


def test_every_threshold_is_named():
    said = " ".join(box(facts()).thresholds)
    for figure in ("95%", "0.05", "0.01", "80%"):
        assert figure in said
    assert box(facts()).checks[2].threshold == "warning above 10%; above 50%, scores are unreliable"
