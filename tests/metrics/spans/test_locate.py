"""Chunks found by their text."""

from __future__ import annotations

import pytest

from raggs.metrics.spans import locate


@pytest.mark.parametrize(
    ("text", "document", "place"),
    [
        ("b c.", "a b c. d", (2, 5)),  # one full stop is left off
        ("x", "axbx", (1, 2)),  # the first place, though it may be another's
        ("B  C", "a b\nc", (2, 5)),
        ("z", "abc", None),
        (".", "abc", (0, 0)),
    ],
)
def test_a_text_is_found(text: str, document: str, place: tuple[int, int] | None) -> None:
    assert locate(text, document) == place
