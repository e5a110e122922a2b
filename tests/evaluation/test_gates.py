from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.gating import regressions, under

from raggs.base.errors import DataError, NotFoundError
from raggs.evaluation.gates import read_report
from raggs.evaluation.models import EvalReport
from raggs.evaluation.report import make_report
from raggs.evaluation.study import ScoringSettings
from raggs.golden.judgments import Judgments
from raggs.golden.sources import NamedSystem
from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.names import parse_measures

QIDS = [f"query-{number:02}" for number in range(12)]
QRELS = Qrels.of({qid: {"good": 5, "poor": 1} for qid in QIDS}, GradeScale.of(1, 5))
MEASURES = ("mrr", "harm@1", "holes@2", "judged@2", "E[holes@2]", "range[mrr]", "bias[mrr]")


def report(first: dict[str, int] | int, name: str = "one", **more: object) -> EvalReport:
    """A system that puts the good passage first for some queries, and one that is not judged for the others."""
    lists = {qid: ["good", "poor"] if place < first else ["poor", "other", "good"] for place, qid in enumerate(QIDS)}
    scoring = ScoringSettings(measures=parse_measures(MEASURES), **more)
    return make_report(Judgments("qrels", QRELS), [NamedSystem(name, "file", Run.of(lists))], scoring)


def test_a_limit_is_met_at_the_limit_itself_in_the_measure_s_direction():
    found = report(6)
    assert found.systems[0].scores["mrr"].mean == pytest.approx((6 + 6 / 3) / 12)
    assert under(found, {"harm@1": 0.5, "mrr": 2 / 3 - 1e-12}) == []
    assert under(found, {"harm@1": 0.49, "mrr": 0.67}) == [
        "harm@1 of one is 0.5000, above 0.49",
        "mrr of one is 0.6667, below 0.67",
    ]


@given(st.integers(0, 12), st.integers(0, 12), st.floats(0, 1))
def test_nothing_is_a_regression_without_a_loss(before, after, drop):
    now, then = REPORTS[after], REPORTS[before]
    found = regressions(now, then, drop=drop, where="before")
    lost = then.systems[0].scores["mrr"].mean - now.systems[0].scores["mrr"].mean
    if lost <= 0:
        assert found == []
    elif lost > drop:
        assert found[0].startswith("mrr of one went from")


REPORTS = [report(first) for first in range(13)]


def test_only_what_tells_how_good_a_system_is_can_get_worse():
    sentences = regressions(REPORTS[0], REPORTS[12], drop=0.01, where="before")
    assert [sentence.partition(" ")[0] for sentence in sentences] == ["mrr", "harm@1"]
    assert "went from 0.0000 to 1.0000 on 12 queries, significantly worse" in sentences[1]


def test_a_drop_that_is_allowed_and_not_significant_passes():
    assert regressions(REPORTS[11], REPORTS[12], drop=0.1, where="before") == []
    (mrr, harm) = regressions(REPORTS[11], REPORTS[12], drop=0.05, where="before")
    assert "not significantly, but by more than 0.05" in mrr
    assert "harm@1" in harm


def test_single_systems_are_compared_whatever_their_names():
    assert regressions(report(0, "new"), report(12, "old"), drop=0.0, where="before")


def test_queries_of_one_side_only_are_left_out():
    then = REPORTS[12]
    half = {"one": {name: dict(list(column.items())[:4]) for name, column in then.per_query["one"].items()}}
    (mrr, *_) = regressions(REPORTS[0], then.model_copy(update={"per_query": half}), drop=0.01, where="before")
    assert "on 4 queries" in mrr


def test_other_judgments_are_refused():
    other = REPORTS[12].model_copy(update={"golden": REPORTS[12].golden.model_copy(update={"digest": "x"})})
    with pytest.raises(DataError, match="other judgments"):
        regressions(REPORTS[0], other, drop=0.01, where="before")


def test_a_report_is_read_back_and_nothing_else_is(tmp_path):
    path = tmp_path / "eval.json"
    path.write_text(REPORTS[3].model_dump_json())
    assert read_report(path) == REPORTS[3]
    for text in ("", "[]", "{}", '{"v": 2}', REPORTS[3].model_dump_json().replace('"v":1', '"v":1,"x":2')):
        path.write_text(text)
        with pytest.raises(DataError, match=r"eval\.json"):
            read_report(path)
    with pytest.raises(NotFoundError):
        read_report(tmp_path)
    with pytest.raises(NotFoundError, match="--out DIR"):
        read_report(tmp_path / "none.json")


def test_numbers_that_json_has_not_are_refused(tmp_path):
    path = tmp_path / "eval.json"
    value = np.format_float_positional(REPORTS[3].systems[0].scores["mrr"].mean)
    text = REPORTS[3].model_dump_json()
    assert value in text
    for bad in ("NaN", "Infinity", "1e999"):
        path.write_text(text.replace(value, bad))
        with pytest.raises(DataError):
            read_report(path)
