from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.studies import SYSTEMS, golden, reported, scoring

from raggs.base.errors import UsageError
from raggs.evaluation.analyses.unjudged import LabelUncertaintyAnalysis
from raggs.evaluation.report import make_report
from raggs.metrics.unjudged import LabelUncertainty


def test_doubt_widens_intervals_and_says_so():
    known = golden()
    doubt = LabelUncertainty(np.full(5, 2.0), ((),) * 5)
    half = replace(scoring(), confidence=0.5)
    plain = make_report(known, SYSTEMS, half)
    wide = make_report(replace(known, doubt=doubt), SYSTEMS, half, [LabelUncertaintyAnalysis()])
    assert (plain.label_uncertainty, wide.label_uncertainty) == (False, True)
    pairs = [
        (score, after.scores[name])
        for before, after in zip(plain.systems, wide.systems, strict=True)
        for name, score in before.scores.items()
    ]
    for score, other in pairs:
        assert other.mean == score.mean
        assert other.low <= score.low <= score.high <= other.high
    assert any(other.high > score.high for score, other in pairs)
    with pytest.raises(UsageError, match="qrels does not record the uncertainty"):
        reported(LabelUncertaintyAnalysis())
