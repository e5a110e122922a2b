"""Personal data in what users typed, found by patterns and checksums, and masked.

Found are e-mail addresses (also as "jane at example dot com"), phone numbers (valid ones of the regions of the text's
language, by phonenumbers), IBANs and payment cards (by checksum), public IP addresses, social security numbers (US by
form, French by key) and names where a pattern gives them away: after "my name is", "Mr", at the end of a letter.

No pattern knows all names, and addresses of houses are not looked for: what is not flagged is not proven clean.
Nothing here may send or keep a text.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from raggs.stats.asking.checksums import IBAN_LENGTHS, is_card, is_iban, is_nir

Kind = Literal["email", "phone", "iban", "card", "ip", "ssn", "name"]
# In the order in which they claim the same characters.
KINDS: tuple[Kind, ...] = ("email", "iban", "card", "ssn", "ip", "phone", "name")
# Where numbers without a country are dialled.
REGIONS: Mapping[str, tuple[str, ...]] = {
    "de": ("DE", "AT"),
    "en": ("US", "GB"),
    "es": ("ES",),
    "fr": ("FR", "BE", "CH"),
    "it": ("IT",),
    "nl": ("NL",),
    "pt": ("PT", "BR"),
}
PHONE_DIGITS = 7
SIGNED = 60  # characters at the end of a text where a signature stands


@dataclass(frozen=True, order=True)
class Personal:
    """Characters that tell who somebody is.

    Attributes:
        start, end: their place.
        kind: what they are.
    """

    start: int
    end: int
    kind: Kind


ENDINGS = "com|org|net|edu|gov|io|eu|fr|de|uk|be|ch|es|it|nl|pt|ca|us|info|dev"
EMAIL = re.compile(
    r"(?<![\w.+'-])(?!git@)[\w.+'-]{1,64}@(?:[\w-]{1,63}\.)+[^\W\d_]{2,24}(?![\w@])"
    rf"|(?<!\w)[\w.+-]{{2,64}}\s?(?:\(at\)|\[at\]|\{{at\}}|\bat\b|\barobase\b)\s?(?!(?:the|a|le|la)\b)[\w-]{{2,63}}"
    rf"\s?(?:\(dot\)|\[dot\]|\{{dot\}}|\bdot\b|\bpoint\b|\.)\s?(?:{ENDINGS})(?!\w)",
    re.IGNORECASE,
)
IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,30}")
CARD = re.compile(r"(?<![\d.,-])\d(?:[ -]?\d){12,18}(?![\d-])")
SSN = re.compile(r"(?<![\d-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])")
NIR = re.compile(r"(?<!\d)[12378](?: ?\d){4} ?(?:\d ?\d|2 ?[AB])(?: ?\d){8}(?!\d)", re.IGNORECASE)
IPV4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)")
IPV6 = re.compile(r"(?<![\w:.])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?![\w:])", re.IGNORECASE)
VERSION = re.compile(r"\b(?:versions?|v|ver\.?|release|build)\s*$", re.IGNORECASE)

UP = r"[A-ZÀ-ÖØ-Þ][\w'’-]*\w"
FULL = rf"{UP}(?: (?:de|du|van|von|le|la|el|bin|{UP}|[A-Z]\.)){{0,2}} {UP}"  # at least two words
ONE = rf"{UP}(?: (?:de|du|van|von|le|la|el|bin|{UP}|[A-Z]\.)){{0,3}}"
WORD = r"[^\W\d_][\w'’-]*"
NO_NAME = (
    "not|never|on|in|the|a|an|wrong|missing|spelled|misspelled|written|showing|shown|displayed|too|being|already|still|"
    "also|and|but|or|is|was|incorrect|different|pas|mal|dans|sur|le|la|un|une|et|mais|toujours|aussi|trop|incorrect"
)
TITLE = r"(?:Mr|Mrs|Ms|Miss|Dr|Prof|Mme|Mlle|Me|Sir)\.?|M\."
LONG_TITLE = "madame|monsieur|mademoiselle|docteur|doctor|professor|professeur|maître"
ROLE = (
    "customer|client|patient|employee|colleague|manager|boss|tenant|user|husband|wife|son|daughter|friend|cliente|"
    "patiente|employée?|salariée?|collègue|locataire|mari|femme|fils|fille|amie?"
)
CLOSING = "regards|sincerely|cheers|yours|thanks|thank you|cordialement|salutations|merci|bien à vous|bonne journée"
NAMES = (
    re.compile(
        rf"(?i:\bmy (?:full |legal )?name(?: is|'s|:)|\bi am called|\bje m['’]appelle|\bmon nom(?: est| :|:))"
        rf" (?!(?i:{NO_NAME})\b)(?P<name>{ONE}|{WORD}(?: {WORD})?)"
    ),
    re.compile(
        rf"(?i:\bi am|\bi['’]m|\bthis is|\bje suis|\bici|\bc['’]est) (?P<name>{FULL})"
        r"(?=[.,;!?]| (?:from|de|at|and|et|here|speaking)\b|$)"
    ),
    re.compile(rf"(?<!\w)(?:{TITLE}|(?i:{LONG_TITLE})) (?P<name>{ONE})"),
    re.compile(rf"(?i:\b(?:{ROLE})),? (?P<name>{FULL})"),
    re.compile(rf"(?i:\b(?:first |last |full |sur|pré)?(?:name|nom))\s*[:=] ?(?P<name>{ONE})"),
    re.compile(rf"(?i:\b(?:{CLOSING}))\s?[,.!\n]\s*(?P<name>{ONE})\s*$"),
)
SIGNATURE = NAMES[-1]


def personal_data(text: str, *languages: str) -> tuple[Personal, ...]:
    """The personal data in a text, in its order; no two overlap.

    Args:
        languages: ISO 639-1 codes, its own and those of its surroundings, for the regions of phone numbers; those with
            a country's code are found in any.
    """
    found: list[Personal] = []
    finders = _finders(languages)
    for kind in KINDS:
        for start, end in finders[kind](text):
            if start < end and not any(each.start < end and start < each.end for each in found):
                found.append(Personal(start, end, kind))
    return tuple(sorted(found))


def masked(text: str, found: Collection[Personal]) -> str:
    """The text with each of them replaced by its kind: ``write to [EMAIL]``."""
    for each in sorted(found, reverse=True):
        text = f"{text[: each.start]}[{each.kind.upper()}]{text[each.end :]}"
    return text


Places = Iterator[tuple[int, int]]


def _finders(languages: Collection[str]) -> dict[Kind, Callable[[str], Places]]:
    return {
        "email": _emails,
        "iban": _ibans,
        "card": lambda text: _checked(CARD, text, is_card),
        "ssn": _ssns,
        "ip": _addresses,
        "phone": lambda text: _phones(text, [region for each in languages for region in REGIONS.get(each, ())]),
        "name": _names,
    }


def _emails(text: str) -> Places:
    if "@" in text or "at" in text.lower() or "arobase" in text.lower():
        yield from (match.span() for match in EMAIL.finditer(text))


def _checked(pattern: re.Pattern[str], text: str, holds: Callable[[str], bool]) -> Places:
    """What fits a pattern and, without blanks and hyphens, its checksum."""
    for match in pattern.finditer(text):
        if holds(re.sub(r"[ -]", "", match[0])):
            yield match.span()


def _ibans(text: str) -> Places:
    """IBANs, of which each has the length of its country: what follows in capitals is no part of it."""
    for match in IBAN.finditer(text):
        wanted, end = IBAN_LENGTHS.get(match[0][:2].upper(), 0), 0
        for place, char in enumerate(match[0]):
            wanted -= char not in " -"
            if not wanted:
                end = place + 1
                break
        if end and is_iban(re.sub(r"[ -]", "", match[0][:end])):
            yield match.start(), match.start() + end


def _ssns(text: str) -> Places:
    yield from (match.span() for match in SSN.finditer(text))
    yield from _checked(NIR, text, is_nir)


def _addresses(text: str) -> Places:
    """Addresses that reach a machine from anywhere: those of one's own network tell nothing."""
    for pattern, mark in ((IPV4, "."), (IPV6, ":")):
        for match in pattern.finditer(text) if text.count(mark) > 1 else ():
            try:
                public = ipaddress.ip_address(match[0]).is_global
            except ValueError:
                continue
            if public and not VERSION.search(text, 0, match.start()):
                yield match.span()


def _phones(text: str, regions: Collection[str]) -> Places:
    """Valid phone numbers, those with a country's code in any region."""
    if sum(char.isdecimal() for char in text) < PHONE_DIGITS:
        return
    from phonenumbers import Leniency, PhoneNumberMatcher  # late: few texts have so many digits

    for region in dict.fromkeys(regions or ("ZZ",)):
        for match in PhoneNumberMatcher(text, region, leniency=Leniency.VALID):
            yield match.start, match.end


def _names(text: str) -> Places:
    for pattern in NAMES:
        first = max(0, len(text) - SIGNED) if pattern is SIGNATURE else 0
        yield from (match.span("name") for match in pattern.finditer(text, first))
