"""What headers say about limits, in all the forms in which they say it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.llm.faults import allowance, lower_headers, refused_for, retry_after

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("1s", 1),
        ("6m0s", 360),
        ("120ms", 0.12),
        ("1m30.5s", 90.5),
        ("8h0m0s", 28800),
        ("1d2h", 93600),
        ("12", 12),
        ("0.5", 0.5),
        ("2026-03-01T12:00:20Z", 20),
        ("2026-03-01T11:00:00Z", 0),
        (str(NOW.timestamp() + 5), 5),
    ],
)
def test_times_until_an_allowance_is_whole(reset, seconds):
    found = allowance({"x-ratelimit-remaining-requests": "7", "x-ratelimit-reset-requests": reset}, "requests", NOW)
    assert found == (7, pytest.approx(seconds, abs=1e-3))


@pytest.mark.parametrize(("remaining", "reset"), [("", "1s"), ("7", ""), ("7", "soon"), ("-1", "1s"), ("nan", "1s")])
def test_what_cannot_be_read_says_nothing(remaining, reset):
    headers = {"x-ratelimit-remaining-tokens": remaining, "x-ratelimit-reset-tokens": reset}
    assert allowance(headers, "tokens", NOW) is None


@given(st.text(), st.text())
def test_no_header_is_too_strange(remaining, reset):
    found = allowance({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": reset}, "requests", NOW)
    assert found is None or found.reset_s >= 0
    assert retry_after({"retry-after-ms": remaining, "retry-after": reset}, NOW) is None or remaining or reset


def test_units_and_makers_are_told_apart():
    headers = lower_headers(
        {
            "llm_provider-anthropic-ratelimit-tokens-remaining": 40,
            "llm_provider-anthropic-ratelimit-tokens-reset": "2026-03-01T12:00:03Z",
            "X-RateLimit-Remaining": "3",
            "X-RateLimit-Reset": "9",
        }
    )
    assert allowance(headers, "tokens", NOW) == (40, 3)
    assert allowance(headers, "requests", NOW) == (3, 9)


def test_milliseconds_are_more_exact():
    assert retry_after({"Retry-After": "1", "retry-after-ms": "250"}) == 0.25


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"remaining": "0", "reset": "24h"}, 86400),
        ({"remaining": "0", "reset": "30s"}, None),
        ({"remaining": "1", "reset": "24h"}, None),
        ({"remaining": "0"}, None),
    ],
)
def test_a_refusal_lasts_until_what_is_used_up_is_whole(headers, wait_s):
    told = {f"x-ratelimit-{name}-tokens": value for name, value in headers.items()}
    assert refused_for(told, NOW) == wait_s
    assert refused_for({**told, "retry-after": "2"}, NOW) == 2
