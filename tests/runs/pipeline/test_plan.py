"""Plans: what runs, and the reasons."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from raggs.base.errors import UsageError
from raggs.runs.manifests.models import StageLock, StageOutput
from raggs.runs.manifests.reasons import (
    ComponentChanged,
    FailuresLeft,
    ForcedRerun,
    NeverRun,
    OutputEdited,
    OutputMissing,
    RunInterrupted,
)
from raggs.runs.plan import decide, fingerprint, select
from raggs.stages import GOLDEN

PARTS = {"code": "merge/1", "config": {"k": 60}}
TIME = datetime(2026, 1, 1, tzinfo=UTC)


def lock(**changes: Any) -> StageLock:
    values: dict[str, Any] = {
        "stage": "merge",
        "fingerprint": fingerprint(PARTS),
        "components": PARTS,
        "params": {},
        "inputs": {},
        "outputs": {"merge.jsonl": StageOutput(sha256="aa", rows=1, bytes=1)},
        "started": TIME,
        "ended": TIME,
    }
    return StageLock(**{**values, **changes})


INTACT = {"merge.jsonl": "aa"}


@pytest.mark.parametrize(
    ("old", "parts", "outputs", "options", "expected"),
    [
        (None, PARTS, {}, {}, NeverRun()),
        (None, PARTS, {}, {"interrupted": True}, RunInterrupted()),
        (lock(), {**PARTS, "config": {"k": 10}}, INTACT, {}, ComponentChanged("config.k", 60, 10)),
        (lock(), PARTS, {"merge.jsonl": None}, {}, OutputMissing("merge.jsonl")),
        (lock(), PARTS, {"merge.jsonl": "bb"}, {}, OutputEdited("merge.jsonl")),
        (lock(failed=3), PARTS, INTACT, {}, FailuresLeft(3)),
        (lock(), PARTS, INTACT, {"forced": True}, ForcedRerun()),
    ],
)
def test_one_reason_each(
    old: StageLock | None,
    parts: dict[str, Any],
    outputs: dict[str, str | None],
    options: dict[str, bool],
    expected: object,
) -> None:
    assert decide(old, parts, outputs, **options) == (expected,)


def test_no_reason_when_nothing_changed_even_after_an_interrupted_attempt() -> None:
    assert decide(lock(), PARTS, INTACT) == ()
    assert decide(lock(), PARTS, INTACT, interrupted=True) == ()


@pytest.mark.parametrize(
    ("options", "stages"),
    [
        ({}, GOLDEN.order),
        ({"start": "judge"}, ("judge", "prune", "rank")),
        ({"stop": "merge"}, ("embed", "retrieve", "merge")),
        ({"start": "merge", "stop": "judge"}, ("merge", "judge")),
        ({"only": "rank"}, ("rank",)),
    ],
)
def test_selections(options: dict[str, str], stages: tuple[str, ...]) -> None:
    assert select(GOLDEN, **options).stages == stages


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"only": "juge"}, "did you mean 'judge'"),
        ({"only": "rank", "start": "judge"}, "cannot be combined"),
        ({"start": "rank", "stop": "merge"}, "is after"),
    ],
)
def test_selections_that_make_no_sense(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        select(GOLDEN, **options)
