"""What unjudged passages make of a sweep's verdicts: effects, comparisons and the choice."""

from __future__ import annotations

import numpy as np
import pytest

from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.hits import find_hits
from raggs.metrics.names import parse_measure
from raggs.metrics.unjudged import ShownPassages, top_of
from raggs.sweeps import effects as module
from raggs.sweeps.comparing import comparing
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.deciding import decide
from raggs.sweeps.deriving import index_deltas
from raggs.sweeps.effects import OF_LABELS, SweepUncertainty, effects, golden_remedy
from raggs.sweeps.layout import findings, rivals
from raggs.sweeps.models import ChoicePart, CostPart, SweepReport, SystemRow

MEASURE = "precision@4"
QUERIES = 24
CONFIG = SweepConfig.model_validate({"name": "s", "golden": ".", "axes": {"mode": ["dense"]}})
JUDGED = {f"q{n:02}": {"a": 5, "b": 4, "c": 1, "d": 2} for n in range(QUERIES)}
QRELS = Qrels.of(JUDGED, GradeScale.of(1, 5))


def shown(*docs: str) -> ShownPassages:
    """The same list for every query; {n} is the query's number."""
    run = Run.of({f"q{n:02}": [doc.format(n=n) for doc in docs] for n in range(QUERIES)})
    hits = find_hits(QRELS, run)
    return ShownPassages(hits, top_of(hits, run, "trec", 10))


def measured(levels: dict[str, dict[str, str]] | None = None, **lists: ShownPassages):
    """Rows of two levels of an axis (or of `levels` by name), their values, and the doubts about them."""
    values = {name: parse_measure(MEASURE).values(each.hits) for name, each in lists.items()}
    rows = [
        SystemRow.model_validate(
            {
                "name": name,
                "levels": (levels or {}).get(name, {"mode": name, "k": "10"}),
                "fingerprint": name,
                "file": name,
                "k": int((levels or {}).get(name, {}).get("k", 10)),
                "questions": QUERIES,
                "scores": {MEASURE: {"mean": float(values[name].mean()), "low": None, "high": None, "valid": QUERIES}},
            }
        )
        for name in lists
    ]
    return rows, values, SweepUncertainty(MEASURE, lists, "judge them")


def test_an_effect_that_unjudged_passages_could_reverse_is_not_clear_and_says_why() -> None:
    rows, values, doubts = measured(dense=shown("a", "b", "c"), sparse=shown("x{n}", "c", "y{n}", "d"))
    (plain,), _ = effects(CONFIG, rows, values)
    assert (plain.quality, plain.clear, plain.unjudged) == (-0.5, True, None)
    (found,), _ = effects(CONFIG, rows, values, doubts)
    assert (found.quality, found.clear) == (-0.5, False)
    assert found.unjudged is not None
    assert (found.unjudged.low, found.unjudged.high, found.unjudged.remedy) == (-0.5, 0.0, "judge them")
    assert [(part.system, part.cutoff, part.share) for part in found.unjudged.tops] == [("sparse", 4, 0.5)]


@pytest.mark.parametrize("most", [module.MAX_PAIRS, 0])
def test_an_effect_that_they_cannot_reverse_stays(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """One of a thousand is unjudged; beyond the pairs whose bounds are computed, the widest ones decide."""
    monkeypatch.setattr(module, "MAX_PAIRS", most)
    rows, values, doubts = measured(dense=shown("a", "b", "c"), sparse=shown("x{n}", "c", "d"))
    (found,), _ = effects(CONFIG, rows, values, doubts)
    assert (found.clear, found.unjudged is None) == ((True, True) if most else (False, False))


def test_the_choice_names_the_systems_that_unjudged_passages_could_put_before_it() -> None:
    rows, values, doubts = measured(dense=shown("a", "b", "c"), sparse=shown("x{n}", "a", "y{n}"), poor=shown("c"))
    by_measure = {name: {MEASURE: column} for name, column in values.items()}
    decision = decide(CONFIG, [MEASURE], rows, by_measure, doubts)
    choice = decision.choice
    assert (choice.winner, list(choice.inconclusive)) == ("dense", ["sparse"])
    named = [part for part in decision.frontiers if part.choice]
    assert named and [list(part.inconclusive) for part in named] == [["sparse"]] * len(named)
    assert decide(CONFIG, [MEASURE], rows, by_measure).choice.inconclusive == {}
    report = type("Report", (), {"choice": choice, "systems": ()})
    assert [*rivals(report)] == [
        "Whether sparse is better than dense is inconclusive: 67% of the top 4 of sparse is unjudged.",
        "Next: judge them.",
    ]


def test_the_mean_over_pairs_lies_between_the_ends_of_each(tmp_path) -> None:
    _, _, doubts = measured(one=shown("a", "x{n}"), two=shown("b", "c"), three=shown("c"))
    one, two = doubts.ends("one", "two"), doubts.mean_ends([("one", "two"), ("two", "three")])
    assert one is not None and two is not None
    assert doubts.ends("two", "three") is None
    np.testing.assert_allclose(two.low, (one.low + 0.25) / 2)
    np.testing.assert_allclose(two.high, (one.high + 0.25) / 2)
    assert golden_remedy(tmp_path) == OF_LABELS


def report_of(rows, **parts) -> SweepReport:
    empty = {"name": "g", "judgments": 0, "queries": QUERIES}
    return SweepReport.model_construct(
        name="s", golden=empty, questions=QUERIES, systems=tuple(rows), jitter_ms=75.0, confidence=0.95,
        ceilings=(), measures=(), cutoffs=(4,),
        **{"choice": ChoicePart(winner=None, sentence=""), "quality": (MEASURE,), **parts},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("exact", "other", "verdict"),
    [
        (("a", "b", "c"), ("a", "b", "c"), "within 2%"),
        (("a", "x{n}", "b"), ("a", "b", "c"), "inconclusive: 33% of the top 4 of exact is unjudged"),
        (("a", "b", "c"), ("a", "x{n}", "y{n}"), "inconclusive: 67% of the top 4 of other is unjudged"),
        (("a", "b", "x{n}"), ("c", "d"), "not within 2%"),
        (("a", "b"), ("a", "b", "x{n}"), "within 2%"),
    ],
)
def test_an_index_delta_that_unjudged_passages_could_reverse_is_inconclusive(exact, other, verdict: str) -> None:
    levels = {name: {"mode": "dense", "index": index} for name, index in (("exact", "flat"), ("other", "hnsw"))}
    rows, _, doubts = measured(levels, exact=shown(*exact), other=shown(*other))
    deltas = tuple(index_deltas(rows, [MEASURE], {MEASURE: doubts}))
    (section,) = comparing(report_of(rows, deltas=deltas), full=True)
    assert section.table is not None
    unsure = "inconclusive" in verdict
    assert (deltas[0].unjudged is not None) == unsure
    assert (f"other: {verdict}" in section.sentences, "next: judge them" in section.sentences) == (unsure, unsure)
    near = int(verdict == "within 2%")
    assert section.sentences[0].startswith(f"within 2% of the exact index on every measure: {near} of 1 system")
    assert ("not within: other" in section.sentences[0]) == (verdict == "not within 2%")


@pytest.mark.parametrize(
    ("small", "large", "change", "unsure"),
    [
        (("a", "b"), ("a", "x{n}"), -0.25, True),
        (("a", "b"), ("a", "b", "x{n}"), 0.0, True),
        (("a", "c"), ("a", "b", "x{n}"), 0.25, False),
        (("a", "x{n}"), ("a", "x{n}"), 0.0, False),
    ],
)
def test_a_step_of_k_that_unjudged_passages_could_reverse_is_inconclusive(small, large, change, unsure: bool) -> None:
    levels = {"small": {"mode": "dense", "k": "10"}, "large": {"mode": "dense", "k": "20"}}
    rows, values, doubts = measured(levels, small=shown(*small), large=shown(*large))
    by_measure = {name: {MEASURE: column} for name, column in values.items()}
    (step,) = decide(CONFIG, [MEASURE], rows, by_measure, doubts).steps
    assert (step.quality, step.unjudged is not None) == (pytest.approx(change), unsure)
    (section,) = findings(report_of(rows, steps=(step,)), full=False)
    why = [text for text in section.sentences if text.startswith("large from k 10: inconclusive: ")]
    assert (len(why), "next: judge them" in section.sentences) == (unsure, unsure)
    assert not (unsure and any("changes no" in text for text in section.sentences))
    if section.table is not None:
        assert (section.table.rows[0][2].mark == "?") == unsure


@pytest.mark.parametrize(("last", "unsure"), [("x{n}", True), ("d", False)])
def test_an_interaction_that_unjudged_passages_could_reverse_is_inconclusive(last: str, unsure: bool) -> None:
    """More candidates bring a passage with one reranker alone, unless what the other shows is relevant as well."""
    levels = {f"{mode}{k}": {"mode": mode, "k": str(k)} for mode in ("dense", "hybrid") for k in (10, 20)}
    lists = {"dense10": shown("a", "c"), "dense20": shown("a", "c", last),
             "hybrid10": shown("a", "c"), "hybrid20": shown("a", "b", "c")}  # fmt: skip
    rows, values, doubts = measured(levels, **lists)
    _, (plain,) = effects(CONFIG, rows, values)
    _, (found,) = effects(CONFIG, rows, values, doubts)
    assert plain.clear and plain.unjudged is None
    assert (found.clear, found.unjudged is not None) == (not unsure, unsure)
    assert found.strength == pytest.approx(plain.strength)
    if not unsure:
        assert found == plain
        return
    assert found.unjudged is not None
    assert (found.unjudged.low, found.unjudged.high) == (0.0, 0.25)
    assert "inconclusive: 33% of the top 4 of dense20 is unjudged" in found.sentence
    (section,) = findings(
        report_of(rows, effects=effects(CONFIG, rows, values, doubts)[0], interactions=(found,)), False
    )
    assert found.sentence in section.sentences and "next: judge them" in section.sentences


@pytest.mark.parametrize(
    ("target", "lists", "winner", "sentences"),
    [
        # what is below the target could reach it, and costs less
        (0.5, {"dear": ("a", "b"), "cheap": ("a", "x{n}")}, "dear",
         ["Whether cheap reaches precision@4 of 0.500 is inconclusive: 50% of the top 4 of cheap is unjudged."]),
        # ... could not reach it
        (0.5, {"dear": ("a", "b"), "cheap": ("c", "x{n}")}, "dear", []),
        # ... could reach it, but costs more than the choice
        (0.25, {"dear": ("c", "x{n}"), "cheap": ("a",)}, "cheap", []),
        # nothing reaches it as labels stand
        (0.75, {"dear": ("a", "b", "x{n}"), "cheap": ("a", "b")}, None,
         ["Whether dear reaches precision@4 of 0.750 is inconclusive: 33% of the top 4 of dear is unjudged."]),
    ],
)  # fmt: skip
def test_a_choice_by_a_target_that_unjudged_passages_could_reverse_says_so(target, lists, winner, sentences) -> None:
    rows, values, doubts = measured(**{name: shown(*docs) for name, docs in lists.items()})
    cost = dict.fromkeys(("embed", "rerank", "generate", "question_tokens"), 0.0)
    rest = dict.fromkeys(("candidate_tokens", "candidate_tokens_sd", "context_tokens"))
    rows = [row.model_copy(update={"cost": CostPart(**cost, **rest, total=1.0 + (row.name == "dear"))}) for row in rows]
    by_measure = {name: {MEASURE: column} for name, column in values.items()}
    config = CONFIG.model_copy(update={"limits": CONFIG.limits.model_copy(update={"quality": target})})
    choice = decide(config, [MEASURE], rows, by_measure, doubts).choice
    assert choice.winner == winner
    assert [*rivals(report_of(rows, choice=choice))] == [*sentences, *(["Next: judge them."] if sentences else [])]


def test_a_choice_that_unjudged_passages_could_put_below_its_target_says_so() -> None:
    """A relevant passage that stands low makes the best possible list better, and the score lower."""
    measure = "ndcg@10"
    lists = {"cheap": shown("a", "b", "d", "c", "x{n}")}
    rows, _, _ = measured(**lists)
    values = parse_measure(measure).values(lists["cheap"].hits)
    score = {"mean": float(values.mean()), "low": None, "high": None, "valid": QUERIES}
    rows = [SystemRow.model_validate({**rows[0].model_dump(), "scores": {measure: score}})]
    config = CONFIG.model_copy(update={"limits": CONFIG.limits.model_copy(update={"quality": 0.99})})
    found = decide(
        config, [measure], rows, {"cheap": {measure: values}}, SweepUncertainty(measure, lists, "judge them")
    ).choice
    assert found.winner == "cheap"
    assert [*rivals(report_of(rows, choice=found, quality=(measure,)))] == [
        "Whether cheap reaches ndcg@10 of 0.990 is inconclusive: 20% of the top 10 of cheap is unjudged.",
        "Next: judge them.",
    ]
