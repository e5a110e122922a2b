"""Personal data in texts: examples, and that masking takes out what is found and nothing else."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.stats.personal_data import mask_personal_data, personal_data

PIECES = st.sampled_from(
    [
        "jane@example.com",
        "06 12 34 56 78",
        "my name is",
        "Jane Doe",
        "8.8.8.8",
        "4111 1111 1111 1111",
        "Mr",
        "and",
        "??",
    ]
)


@pytest.mark.parametrize(
    ("text", "language", "shown"),
    [
        ("mail jane.doe+x@example.co.uk now", "en", "mail [EMAIL] now"),
        ("jane at example dot com", "en", "[EMAIL]"),
        ("clone git@github.com:a/b", "en", "clone git@github.com:a/b"),
        ("look at the dot", "en", "look at the dot"),
        ("appelez le 06 12 34 56 78", "fr", "appelez le [PHONE]"),
        ("call (212) 736-5000", "en", "call [PHONE]"),
        ("ruf +33 1 42 68 53 00 an", "de", "ruf [PHONE] an"),
        ("FR76 3000 6000 0112 3456 7890 189 PLEASE", "en", "[IBAN] PLEASE"),
        ("order 1234 5678 9012 3456", "en", "order 1234 5678 9012 3456"),
        ("card 4111-1111-1111-1111", "en", "card [CARD]"),
        ("from 8.8.8.8 and 192.168.1.1", "en", "from [IP] and 192.168.1.1"),
        ("version 1.2.3.4 fails", "en", "version 1.2.3.4 fails"),
        ("2001:4860:4860::8888 at 10:20:30", "en", "[IP] at 10:20:30"),
        ("my name is john smith", "en", "my name is [NAME]"),
        ("my name is not accepted", "en", "my name is not accepted"),
        ("je m'appelle Marie Dupont", "fr", "je m'appelle [NAME]"),
        ("Où est mon colis ? Merci, Jean Martin", "fr", "Où est mon colis ? Merci, [NAME]"),
        ("ask Dr. Jones about it", "en", "ask Dr. [NAME] about it"),
        ("ssn 123-45-6789", "en", "ssn [SSN]"),
        ("How do I reset my password?", "en", "How do I reset my password?"),
    ],
)
def test_what_is_found(text: str, language: str, shown: str) -> None:
    assert mask_personal_data(text, personal_data(text, language)) == shown


@given(st.lists(PIECES, max_size=8).map(" ".join) | st.text(max_size=60), st.sampled_from(["en", "fr", "xx"]))
def test_places_are_in_order_and_apart_and_the_rest_stays(text: str, language: str) -> None:
    found = personal_data(text, language)
    assert all(0 <= each.start < each.end <= len(text) for each in found)
    assert all(one.end <= next_.start for one, next_ in pairwise(found))
    rest, at = "", 0
    for each in found:
        rest += text[at : each.start] + f"[{each.kind.upper()}]"
        at = each.end
    assert mask_personal_data(text, found) == rest + text[at:]


LONG = ["a@" * 1000, "1 " * 1000, "Mr " + "A " * 900, "A" * 2000, ":a" * 900, "1." * 900, "my name is " + "De " * 600]


@pytest.mark.parametrize("text", LONG)
def test_no_text_takes_long(text: str) -> None:
    personal_data(text, "en")  # a pattern that tries everything would not end


def test_other_text_is_no_matter() -> None:
    assert personal_data("") == ()
