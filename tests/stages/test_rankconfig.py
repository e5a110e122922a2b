"""The rank stage's settings: what may stand below `options`."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from raggs.stages.rank_config import RankConfig


def test_a_switch_of_the_engine_takes_true_and_false_and_a_number_does_not() -> None:
    told = RankConfig.model_validate({"options": {"favour": False, "echo": 0.3}})
    assert told.options == {"favour": False, "echo": 0.3}
    assert [type(value) for value in told.options.values()] == [bool, float]
    assert type(RankConfig.model_validate({"options": {"favour": 0}}).options["favour"]) is int, "as runs have it"
    with pytest.raises(ValidationError, match=r"options\.echo: expected a number, not true or false"):
        RankConfig.model_validate({"options": {"echo": True}})
