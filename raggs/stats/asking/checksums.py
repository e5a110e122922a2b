"""Numbers that say by their own digits whether they can be real: IBANs, payment cards, French social security."""

from __future__ import annotations

from collections.abc import Mapping

# Characters of an IBAN by country, ISO 13616 registry.
IBAN_LENGTHS: Mapping[str, int] = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28,
    "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18,
    "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22,
    "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20,
    "LU": 20, "LV": 21, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18, "NO": 15,
    "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SE": 24, "SI": 19,
    "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
}  # fmt: skip
CARD_DIGITS = range(13, 20)
CARD_STARTS = "23456"  # of the networks' numbers, ISO/IEC 7812


def is_iban(text: str) -> bool:
    """Whether letters and digits without blanks are an IBAN: its country's length, and 1 modulo 97 (ISO 7064)."""
    code = text.upper()
    if not (code.isascii() and code.isalnum()) or IBAN_LENGTHS.get(code[:2]) != len(code):
        return False
    digits = "".join(str(int(char, 36)) for char in code[4:] + code[:4])
    return int(digits) % 97 == 1


def is_card(digits: str) -> bool:
    """Whether digits are the number of a payment card: 13 to 19, a network's first digit, Luhn's sum."""
    if not (digits.isascii() and digits.isdecimal()) or len(digits) not in CARD_DIGITS:
        return False
    if digits[0] not in CARD_STARTS or len(set(digits)) == 1:
        return False
    doubled = (int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def is_nir(text: str) -> bool:
    """Whether 15 characters are a French social security number with its key (97 less the number modulo 97)."""
    plain = text.upper().replace("2A", "19", 1).replace("2B", "18", 1) if text[5:7].upper() in ("2A", "2B") else text
    if len(plain) != 15 or not (plain.isascii() and plain.isdecimal()) or plain[0] not in "12378":
        return False
    return 97 - int(plain[:13]) % 97 == int(plain[13:])
