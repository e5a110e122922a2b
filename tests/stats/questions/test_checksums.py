"""Checksums: published examples, and that one wrong digit is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.stats.personal_data import IBAN_LENGTHS, is_card, is_iban, is_nir

IBANS = ["GB82WEST12345698765432", "DE89370400440532013000", "FR1420041010050500013M02606", "NO9386011117947"]
CARDS = ["4111111111111111", "5555555555554444", "378282246310005", "6011111111111117"]


@pytest.mark.parametrize("code", IBANS)
def test_an_iban_holds_and_a_changed_one_does_not(code: str) -> None:
    assert is_iban(code) and is_iban(code.lower())
    assert not is_iban(code[:-1] + ("1" if code[-1] == "0" else "0"))
    assert not is_iban(code[:-1])


@given(st.sampled_from(CARDS), st.integers(0, 12), st.integers(1, 9))
def test_one_wrong_digit_makes_no_card(digits: str, place: int, step: int) -> None:
    assert is_card(digits)
    wrong = str((int(digits[place]) + step) % 10)
    assert not is_card(digits[:place] + wrong + digits[place + 1 :])


@pytest.mark.parametrize("digits", ["", "0" * 16, "1234567890123456", "12", "٤١١١١١١١١١١١١١١١"])
def test_no_cards(digits: str) -> None:
    assert not is_card(digits)


@pytest.mark.parametrize("number", ["184127645108946", "269054958815780", "2550914168025" + "38", "180012A004001"])
def test_a_french_number_has_its_key(number: str) -> None:
    key = 97 - int(number[:13].upper().replace("2A", "19")) % 97 if len(number) >= 13 else 0
    assert is_nir(f"{number[:13]}{key:02}")
    assert not is_nir(f"{number[:13]}{key % 97 + 1:02}")


def test_lengths_are_those_of_the_registry() -> None:
    assert all(15 <= length <= 34 for length in IBAN_LENGTHS.values())
