"""What every configuration model refuses, whatever it is about."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import ValidationError

from raggs.base.settings import Settings


class Some(Settings):
    whole: int = 1
    number: float | None = None
    several: tuple[float, ...] = ()
    named: dict[str, float] = {}  # noqa: RUF012 - never changed
    yes: bool = False
    either: bool | int = 0
    one: Literal[1, 2] = 1
    free: dict[str, object] = {}  # noqa: RUF012 - never changed


@pytest.mark.parametrize(
    "values",
    [{"whole": True}, {"number": False}, {"several": [1, True]}, {"named": {"a": True}}, {"whole": True, "free": {}}],
)
def test_true_and_false_are_no_numbers(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="expected a number, not true or false") as caught:
        Some.model_validate(values)
    assert caught.value.errors()[0]["loc"] == (next(iter(values)),)


def test_where_they_belong_they_are_taken() -> None:
    made = Some.model_validate({"yes": True, "either": True, "number": None, "free": {"a": True}, "named": {"a": 1}})
    assert (made.yes, made.either, made.free) == (True, True, {"a": True})


def test_an_unknown_key_is_told_first() -> None:
    with pytest.raises(ValidationError, match="unknown key"):
        Some.model_validate({"wholes": True})
