from __future__ import annotations

import pytest
from support.studies import elsewhere, reported

from raggs.base.errors import DataError
from raggs.evaluation.analyses.answers import GivenAnswers


def test_answers_count_where_the_evidence_was_shown():
    correct = {"query-a": True, "query-b": False, "query-c": True, "query-x": True}
    report = reported(GivenAnswers(correct))
    good, poor = (system.answers for system in report.systems)
    assert (good.measure, good.hits, good.correct, good.queries) == ("hit_all@2", 3, 2, 3)
    assert (poor.hits, poor.accuracy) == (0, None)
    section = GivenAnswers().section(report)
    assert len(section.table.rows) == 2
    (sentence,) = section.sentences
    assert sentence.startswith("good: Acc|hit_all@2 0.6667 [")
    assert sentence.endswith("2 of 3 queries with all evidence")
    assert elsewhere(GivenAnswers(correct)).systems[0].answers.measure == "hit@2"
    with pytest.raises(DataError, match="no judged query has a known answer"):
        reported(GivenAnswers({"query-x": True}))
