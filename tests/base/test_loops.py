"""Event loops, where there is room for them and where there is not."""

from __future__ import annotations

import asyncio
import gc
import warnings

import pytest

from raggs.base import loops
from raggs.base.errors import ProviderError


async def work() -> int:
    await asyncio.sleep(0)
    return 7


def test_a_loop_is_open_and_works_and_closes() -> None:
    with loops.open_loop() as loop:
        assert loop.run(work()) == loop.run(work()) == 7


def test_without_room_nothing_is_half_made(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(loops, "lacks_handles", lambda: True)
    with (
        warnings.catch_warnings(record=True) as warned,
        pytest.raises(ProviderError, match=r"too many files.*ulimit -n"),
    ):
        loops.open_loop().run(work())
    gc.collect()
    assert (warned, capsys.readouterr().err) == ([], "")
