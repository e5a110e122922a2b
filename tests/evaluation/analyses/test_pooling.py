from __future__ import annotations

from dataclasses import replace

from support.studies import GOOD, golden, scoring

from raggs.evaluation.analyses.losses import BottleneckAnalysis
from raggs.evaluation.analyses.unjudged import Pooling
from raggs.evaluation.report import make_report
from raggs.golden.judgments import DataOrigin
from raggs.golden.sources import NamedSystem
from raggs.metrics.columns import Run

MINE = DataOrigin("corpus", "lists")
OTHER = {"query-a": ["doc-1", "new-1"], "query-b": ["doc-4"], "query-c": ["new-2", "doc-5"]}


def said(*systems: NamedSystem, origin: DataOrigin = MINE) -> list[str]:
    report = make_report(replace(golden(), origin=origin), systems, scoring(), [BottleneckAnalysis(), Pooling()])
    section = Pooling().section(report)
    return [] if section is None else list(section.sentences)


def system(name: str, lists: dict[str, list[str]], origin: DataOrigin = MINE, **more: bool) -> NamedSystem:
    return NamedSystem(name, "f", Run.of(lists), origin, **more)


def test_a_set_pooled_from_the_systems_under_test_says_so_with_the_share_that_one_found() -> None:
    (sentence,) = said(system("a", GOOD), system("b", OTHER), system("fused", GOOD, derived=True))
    assert sentence == (
        "the set was pooled from a, b, fused: passages that all of them missed are unjudged, so the ceilings are "
        "too high; 25% of the 4 relevant passages they found are unique to one of them"
    )


def test_one_maker_has_no_share() -> None:
    (sentence,) = said(system("a", GOOD), system("b", OTHER, DataOrigin("corpus", "other")))
    assert sentence.endswith("so the ceilings are too high")
    assert sentence.startswith("the set was pooled from a:")


def test_files_whose_top_is_all_judged_look_like_makers() -> None:
    whole = {qid: docs for qid, docs in GOOD.items() if qid != "query-c"}
    (sentence,) = said(system("a", whole, DataOrigin()), system("b", OTHER, DataOrigin()), origin=DataOrigin())
    assert sentence.startswith("every top passage of a is judged, so the set was probably pooled from them")


def test_a_set_that_others_made_flatters_nobody() -> None:
    assert said(system("b", OTHER, DataOrigin("corpus", "other"))) == []
