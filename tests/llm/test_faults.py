"""Every error of a provider has its place, and no key gets out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from inspect import isclass
from types import SimpleNamespace

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.llm_server import KEY

from raggs.base.errors import AuthenticationError, DataError, ModelError, ProviderError, RaggsError
from raggs.llm.faults import TABLE, Treatment, fault_of, redact, retry_after
from raggs.llm.providers import exceptions, library


def litellm_classes():
    return {
        name: kind for name, kind in vars(library().exceptions).items() if isclass(kind) and issubclass(kind, Exception)
    }


def bare(kind, words="", **attributes):
    """An instance without the class's own constructor, whose signature differs from class to class."""
    error = kind.__new__(kind)
    Exception.__init__(error, words)
    error.message = words
    error.num_retries = error.max_retries = error.original_exception = None
    vars(error).update(attributes)
    return error


def nearest_row(kind):
    """The name of the class, or of its nearest base, that has a row; None if no class has one."""
    return next((base.__name__ for base in kind.__mro__ if base.__name__ in TABLE), None)


def test_every_exception_of_litellm_or_a_base_of_it_is_in_the_table_and_is_caught():
    """Later versions of litellm add subclasses, which get the rule of their base."""
    classes = litellm_classes()
    assert len(classes) > 25
    assert not [kind.__name__ for kind in classes.values() if nearest_row(kind) is None]
    assert all(issubclass(kind, exceptions()) for kind in classes.values())


def test_every_exception_of_litellm_becomes_one_typed_error():
    for kind in litellm_classes().values():
        fault = fault_of(bare(kind, "words", status_code=None), "openai/m")
        assert fault.rule is TABLE[nearest_row(kind)]
        assert type(fault.error) is fault.rule.error
        assert issubclass(fault.rule.error, RaggsError)
        assert "{" not in str(fault.error)


def test_what_stops_a_run_says_what_to_do():
    assert all(rule.remedy for rule in TABLE.values() if rule.treatment is Treatment.STOP)


@pytest.mark.parametrize(
    ("status", "treatment", "error"),
    [
        (400, Treatment.FAIL, DataError),
        (401, Treatment.STOP, AuthenticationError),
        (402, Treatment.STOP, ProviderError),
        (403, Treatment.STOP, AuthenticationError),
        (404, Treatment.STOP, ModelError),
        (408, Treatment.RETRY, ProviderError),
        (418, Treatment.FAIL, DataError),
        (429, Treatment.RETRY, ProviderError),
        (500, Treatment.RETRY, ProviderError),
        (529, Treatment.RETRY, ProviderError),
    ],
)
def test_a_vague_class_goes_by_its_status(status, treatment, error):
    fault = fault_of(bare(library().exceptions.APIError, "words", status_code=status), "openai/m")
    assert fault.treatment is treatment
    assert type(fault.error) is error


def test_a_class_that_nobody_knows_goes_by_its_parent():
    class Newer(library().exceptions.RateLimitError):
        pass

    assert fault_of(bare(Newer, "words"), "openai/m").rule is TABLE["RateLimitError"]


@pytest.mark.parametrize("error", [TimeoutError("late"), ConnectionResetError("reset"), OSError("disk")], ids=repr)
def test_errors_of_the_network_are_retried(error):
    assert fault_of(error, "openai/m").treatment is Treatment.RETRY


def test_a_phrase_that_is_quoted_far_into_an_error_is_not_heeded():
    words = "rejected: " + "word " * 100 + "you exceeded your current quota"
    assert fault_of(bare(library().exceptions.BadRequestError, words), "openai/m").treatment is Treatment.FAIL


def test_the_message_holds_the_provider_s_words_without_class_names():
    words = "litellm.BadRequestError: OpenAIException - Invalid 'seed'"
    told = str(fault_of(bare(library().exceptions.BadRequestError, words), "openai/m").error)
    assert told == "the provider rejected the request: Invalid 'seed'"


def test_the_wait_is_read_from_the_answer_s_headers():
    response = httpx.Response(429, headers={"Retry-After": "12"}, request=httpx.Request("POST", "http://x"))
    error = bare(library().exceptions.RateLimitError, "slow down", response=response)
    assert fault_of(error, "openai/m").retry_after_s == 12


NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        (" 1.5 ", 1.5),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
        (format_datetime(NOW - timedelta(seconds=90), usegmt=True), 0.0),
        ("Sun, 01 Mar 2026 12:00:05 -0000", 5.0),
        ("-3", None),
        ("soon", None),
        ("nan", None),
        ("", None),
    ],
)
def test_retry_after_as_seconds_or_date(value, seconds):
    assert retry_after({"retry-AFTER": value}, NOW) == seconds


@given(st.text())
def test_retry_after_never_fails_and_is_never_negative(value):
    found = retry_after({"Retry-After": value}, NOW)
    assert found is None or found >= 0


def test_no_header_no_wait():
    assert retry_after({"Date": "x"}) is None


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abc123DEF456_ghi789",
        "sk-ant-api03-xxxxyyyyzzzz",
        "sk-te***************cdef",
        "gsk_0123456789abcdef",
        "hf_0123456789abcdef",
        "AIzaSyA-0123456789_abcdefghijkl",
        "AKIAIOSFODNN7EXAMPLE",
    ],
)
def test_what_looks_like_a_key_is_taken_out(secret):
    told = redact(f"Incorrect API key provided: {secret}. See the docs.")
    assert secret not in told
    assert secret[:12] not in told
    assert told.startswith("Incorrect API key provided: [redacted]")


def test_keys_in_headers_and_addresses_are_taken_out():
    told = redact("Authorization: Bearer abc.def at https://user:pass@host/v1?key=12345&x=1")
    assert told == "Authorization: Bearer [redacted] at https://[redacted]@host/v1?key=[redacted]&x=1"


def test_values_of_secret_variables_are_taken_out_whatever_they_look_like(monkeypatch):
    monkeypatch.setenv("MY_PROVIDER_API_KEY", "plain words that are a key")
    assert redact("you sent 'plain words that are a key' to us") == "you sent '[redacted]' to us"


@pytest.mark.parametrize(
    "words", ["a task-oriented desk-bound risk", "max_tokens is 5", "the key-value store", "ask-me"]
)
def test_ordinary_words_stay(words):
    assert redact(words) == words


def test_no_key_in_an_error(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for kind in litellm_classes().values():
        assert KEY not in str(fault_of(bare(kind, f"the key {KEY} is bad", status_code=None), "openai/m").error)


def test_headers_may_be_missing_altogether():
    error = bare(library().exceptions.RateLimitError, "x", response=SimpleNamespace(headers=None))
    assert fault_of(error, "openai/m").retry_after_s is None


@pytest.mark.parametrize("value", ["1" + "0" * 20, "Wed, 01 Jan " + "9" * 20 + " 00:00:00 GMT", "9" * 400])
def test_a_retry_after_beyond_all_dates_is_no_traceback(value):
    found = retry_after({"Retry-After": value})
    assert found is None or found > 1e9
