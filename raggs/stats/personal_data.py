"""Personal data in user queries, found by patterns and checksums, and masked. Also cleans and groups logged queries.

These are detected: e-mail addresses (also as "jane at example dot com"), IBANs and payment cards (by checksum), and
public IP addresses. The package phonenumbers detects phone numbers with a country code, and local numbers of the
regions of the text's language. Social security numbers are detected for the US (by format) and France (by check key).
Names are detected in typical contexts, for example after "my name is" or "Mr", or at the end of a letter.

Patterns do not find all names, and postal addresses are not detected. A text without findings may still contain
personal data. This module neither sends nor stores texts.

Logged lines become questions: lines that are not questions are dropped, and equal lines are merged and counted. Two
lines are equal if they have the same words in the same order, ignoring case, accents and punctuation. The most frequent
spelling is used. To find lines of similar meaning by their vectors, use `raggs.stats.question_filters.duplicates`. Only
lines with the same `near_duplicate_key` are compared: "error 404" is not "error 403", and "with" is not "without".
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

# Length of an IBAN by country, ISO 13616 registry.
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
CARD_STARTS = "23456"  # first digits of the networks' card numbers, ISO/IEC 7812


def is_iban(text: str) -> bool:
    """Return whether `text` (letters and digits without spaces) is an IBAN.

    It must have the length used in its country and the remainder 1 modulo 97 (ISO 7064).
    """
    code = text.upper()
    if not (code.isascii() and code.isalnum()) or IBAN_LENGTHS.get(code[:2]) != len(code):
        return False
    digits = "".join(str(int(char, 36)) for char in code[4:] + code[:4])
    return int(digits) % 97 == 1


def is_card(digits: str) -> bool:
    """Return whether `digits` is a payment card number: 13 to 19 digits, a network's first digit, and a valid Luhn sum.

    Numbers of one repeated digit are not card numbers.
    """
    if not (digits.isascii() and digits.isdecimal()) or len(digits) not in CARD_DIGITS:
        return False
    if digits[0] not in CARD_STARTS or len(set(digits)) == 1:
        return False
    doubled = (int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def is_nir(text: str) -> bool:
    """Return whether 15 characters are a French social security number with its key (97 minus the number modulo 97)."""
    plain = text.upper().replace("2A", "19", 1).replace("2B", "18", 1) if text[5:7].upper() in ("2A", "2B") else text
    if len(plain) != 15 or not (plain.isascii() and plain.isdecimal()) or plain[0] not in "12378":
        return False
    return 97 - int(plain[:13]) % 97 == int(plain[13:])


PersonalKind = Literal["email", "phone", "iban", "card", "ip", "ssn", "name"]
# If matches overlap, the kind that comes first here is used.
KINDS: tuple[PersonalKind, ...] = ("email", "iban", "card", "ssn", "ip", "phone", "name")
# Regions to which numbers without a country code are assigned, by language.
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
SIGNED = 60  # number of characters at the end of a text in which a signature is searched


@dataclass(frozen=True, order=True)
class PersonalSpan:
    """Range of characters that identifies a person.

    Attributes:
        start, end: character range.
        kind: kind of personal data.
    """

    start: int
    end: int
    kind: PersonalKind


TOP_LEVEL_DOMAINS = "com|org|net|edu|gov|io|eu|fr|de|uk|be|ch|es|it|nl|pt|ca|us|info|dev"
EMAIL = re.compile(
    r"(?<![\w.+'-])(?!git@)[\w.+'-]{1,64}@(?:[\w-]{1,63}\.)+[^\W\d_]{2,24}(?![\w@])"
    rf"|(?<!\w)[\w.+-]{{2,64}}\s?(?:\(at\)|\[at\]|\{{at\}}|\bat\b|\barobase\b)\s?(?!(?:the|a|le|la)\b)[\w-]{{2,63}}"
    rf"\s?(?:\(dot\)|\[dot\]|\{{dot\}}|\bdot\b|\bpoint\b|\.)\s?(?:{TOP_LEVEL_DOMAINS})(?!\w)",
    re.IGNORECASE,
)
IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,30}")
CARD = re.compile(r"(?<![\d.,-])\d(?:[ -]?\d){12,18}(?![\d-])")
SSN = re.compile(r"(?<![\d-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])")
NIR = re.compile(r"(?<!\d)[12378](?: ?\d){4} ?(?:\d ?\d|2 ?[AB])(?: ?\d){8}(?!\d)", re.IGNORECASE)
IPV4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)")
IPV6 = re.compile(r"(?<![\w:.])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?![\w:])", re.IGNORECASE)
VERSION = re.compile(r"\b(?:versions?|v|ver\.?|release|build)\s*$", re.IGNORECASE)

CAPITALIZED_WORD = r"[A-ZÀ-ÖØ-Þ][\w'’-]*\w"
FULL_NAME = (
    rf"{CAPITALIZED_WORD}(?: (?:de|du|van|von|le|la|el|bin|{CAPITALIZED_WORD}|[A-Z]\.)){{0,2}} "
    rf"{CAPITALIZED_WORD}"
)  # a full name has at least two words
ANY_NAME = rf"{CAPITALIZED_WORD}(?: (?:de|du|van|von|le|la|el|bin|{CAPITALIZED_WORD}|[A-Z]\.)){{0,3}}"
NAME_PATTERN = r"[^\W\d_][\w'’-]*"
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
LETTER_CLOSING = (
    "regards|sincerely|cheers|yours|thanks|thank you|cordialement|salutations|merci|bien à vous|bonne journée"
)
NAME_CONTEXTS = (
    re.compile(
        rf"(?i:\bmy (?:full |legal )?name(?: is|'s|:)|\bi am called|\bje m['’]appelle|\bmon nom(?: est| :|:))"
        rf" (?!(?i:{NO_NAME})\b)(?P<name>{ANY_NAME}|{NAME_PATTERN}(?: {NAME_PATTERN})?)"
    ),
    re.compile(
        rf"(?i:\bi am|\bi['’]m|\bthis is|\bje suis|\bici|\bc['’]est) (?P<name>{FULL_NAME})"
        r"(?=[.,;!?]| (?:from|de|at|and|et|here|speaking)\b|$)"
    ),
    re.compile(rf"(?<!\w)(?:{TITLE}|(?i:{LONG_TITLE})) (?P<name>{ANY_NAME})"),
    re.compile(rf"(?i:\b(?:{ROLE})),? (?P<name>{FULL_NAME})"),
    re.compile(rf"(?i:\b(?:first |last |full |sur|pré)?(?:name|nom))\s*[:=] ?(?P<name>{ANY_NAME})"),
    re.compile(rf"(?i:\b(?:{LETTER_CLOSING}))\s?[,.!\n]\s*(?P<name>{ANY_NAME})\s*$"),
)
SIGNATURE = NAME_CONTEXTS[-1]


def personal_data(text: str, *languages: str) -> tuple[PersonalSpan, ...]:
    """Return the personal data in a text, in text order, without overlaps.

    Args:
        languages: ISO 639-1 codes of the text and its context, which give the regions of phone numbers. Numbers with a
            country code are found in any language.
    """
    found: list[PersonalSpan] = []
    finders = _finders(languages)
    for kind in KINDS:
        for start, end in finders[kind](text):
            if start < end and not any(each.start < end and start < each.end for each in found):
                found.append(PersonalSpan(start, end, kind))
    return tuple(sorted(found))


def mask_personal_data(text: str, found: Collection[PersonalSpan]) -> str:
    """Return the text with each span replaced by its kind: ``write to [EMAIL]``."""
    for each in sorted(found, reverse=True):
        text = f"{text[: each.start]}[{each.kind.upper()}]{text[each.end :]}"
    return text


SpanIterator = Iterator[tuple[int, int]]


def _finders(languages: Collection[str]) -> dict[PersonalKind, Callable[[str], SpanIterator]]:
    return {
        "email": _emails,
        "iban": _ibans,
        "card": lambda text: _find_checked(CARD, text, is_card),
        "ssn": _ssns,
        "ip": _addresses,
        "phone": lambda text: _phones(text, [region for each in languages for region in REGIONS.get(each, ())]),
        "name": _find_names,
    }


def _emails(text: str) -> SpanIterator:
    if "@" in text or "at" in text.lower() or "arobase" in text.lower():
        yield from (match.span() for match in EMAIL.finditer(text))


def _find_checked(pattern: re.Pattern[str], text: str, holds: Callable[[str], bool]) -> SpanIterator:
    """Yield matches of a pattern whose checksum is valid after removing spaces and hyphens."""
    for match in pattern.finditer(text):
        if holds(re.sub(r"[ -]", "", match[0])):
            yield match.span()


def _ibans(text: str) -> SpanIterator:
    """Yield IBANs. An IBAN ends at the length used in its country, so capital letters after it are not included."""
    for match in IBAN.finditer(text):
        wanted, end = IBAN_LENGTHS.get(match[0][:2].upper(), 0), 0
        for place, char in enumerate(match[0]):
            wanted -= char not in " -"
            if not wanted:
                end = place + 1
                break
        if end and is_iban(re.sub(r"[ -]", "", match[0][:end])):
            yield match.start(), match.start() + end


def _ssns(text: str) -> SpanIterator:
    yield from (match.span() for match in SSN.finditer(text))
    yield from _find_checked(NIR, text, is_nir)


def _addresses(text: str) -> SpanIterator:
    """Yield globally routable IP addresses; private addresses do not identify a person.

    A match after a word such as "version" is ignored.
    """
    for pattern, mark in ((IPV4, "."), (IPV6, ":")):
        for match in pattern.finditer(text) if text.count(mark) > 1 else ():
            try:
                public = ipaddress.ip_address(match[0]).is_global
            except ValueError:
                continue
            if public and not VERSION.search(text, 0, match.start()):
                yield match.span()


def _phones(text: str, regions: Collection[str]) -> SpanIterator:
    """Yield valid phone numbers; numbers with a country code are found in any region."""
    if sum(char.isdecimal() for char in text) < PHONE_DIGITS:
        return
    from phonenumbers import Leniency, PhoneNumberMatcher  # imported lazily: few texts have so many digits

    for region in dict.fromkeys(regions or ("ZZ",)):
        for match in PhoneNumberMatcher(text, region, leniency=Leniency.VALID):
            yield match.start, match.end


def _find_names(text: str) -> SpanIterator:
    for pattern in NAME_CONTEXTS:
        first = max(0, len(text) - SIGNED) if pattern is SIGNATURE else 0
        yield from (match.span("name") for match in pattern.finditer(text, first))


Reason = Literal["empty", "no words", "small talk", "too short", "too long"]
MAX_QUESTION_CHARS = 2000  # longer lines are probably pasted documents
MIN_QUESTION_WORDS = 2
# scripts without spaces between words or with long words
WIDE_SCRIPT = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
WIDE_LEAST = 4  # minimum number of characters of a question in these scripts
ADDRESS = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
WORD_PATTERN = re.compile(r"[^\W_]+")
LETTER_PAIR = re.compile(r"[^\W\d_]{2,}")
NUMBER_PATTERN = re.compile(r"\d+(?:[.,]\d+)*")
TALK = """hi hello hey yo hiya howdy thanks thank you thx ty ok okay yes no yep nope bye goodbye good morning afternoon
    evening night day please help cool great nice perfect sure test testing there all everyone a lot so much very lol
    hmm how are doing bonjour salut coucou bonsoir merci beaucoup oui non au revoir bonne journée soirée nuit svp stp
    d accord ça va bien tout le monde super génial parfait aide essai s il te vous plaît"""
SMALL_TALK = frozenset(TALK.split())
DENYING = """not no never without cannot nor t ne pas sans jamais aucun aucune ni non plus
    nicht kein keine ohne nie"""
NEGATIONS = frozenset(DENYING.split())


@dataclass(frozen=True)
class QuestionLines:
    """Equal lines, merged into one question.

    Attributes:
        text: most frequent spelling; if tied, the first of these spellings.
        line: line number of the first occurrence.
        count: number of occurrences in all spellings.
    """

    text: str
    line: int
    count: int


def fault(text: str) -> Reason | None:
    """Return why a cleaned line is not a question; None if it may be one."""
    if not text:
        return "empty"
    if len(text) > MAX_QUESTION_CHARS:
        return "too long"
    words = WORD_PATTERN.findall(ADDRESS.sub(" ", text))
    if not any(LETTER_PAIR.search(word) or WIDE_SCRIPT.search(word) for word in words):
        return "no words"
    if all(word.lower() in SMALL_TALK for word in words):
        return "small talk"
    wide = len(WIDE_SCRIPT.findall(text))
    return "too short" if len(words) < MIN_QUESTION_WORDS and wide < WIDE_LEAST else None


def same_key(text: str) -> str:
    """Return the normalised words of a line; equal lines have equal keys."""
    plain = unicodedata.normalize("NFD", text.casefold())
    return " ".join(WORD_PATTERN.findall("".join(char for char in plain if not unicodedata.combining(char))))


def near_duplicate_key(text: str) -> str:
    """Return a key that near duplicates must share: their numbers, and whether they contain a negation."""
    words = set(same_key(text).split())
    return f"{' '.join(sorted(NUMBER_PATTERN.findall(text)))}|{bool(words & NEGATIONS)}"


def group_lines(lines: Iterable[QuestionLines]) -> tuple[QuestionLines, ...]:
    """Merge equal lines; return the most frequent question first, then by line number."""
    spelled: dict[str, dict[str, QuestionLines]] = {}
    for each in lines:
        spellings = spelled.setdefault(same_key(each.text), {})
        known = spellings.get(each.text)
        first = each.line if known is None else min(known.line, each.line)
        spellings[each.text] = QuestionLines(each.text, first, each.count + (known.count if known else 0))
    return tuple(sorted((_most_frequent(list(each.values())) for each in spelled.values()), key=_frequency_order))


def merge_near_lines(asked: Sequence[QuestionLines], into: Iterable[tuple[int, int]]) -> tuple[QuestionLines, ...]:
    """Merge near duplicates and return the remaining questions, in the order of `group_lines`.

    Args:
        asked: all questions.
        into: pairs of rows in `asked`: the question to remove, and the question to which its count is added.
    """
    counts = [each.count for each in asked]
    gone = set()
    for row, of in into:
        counts[of] += asked[row].count
        gone.add(row)
    kept = (QuestionLines(each.text, each.line, counts[row]) for row, each in enumerate(asked) if row not in gone)
    return tuple(sorted(kept, key=_frequency_order))


def _most_frequent(spellings: Sequence[QuestionLines]) -> QuestionLines:
    best = min(spellings, key=_frequency_order)
    return QuestionLines(best.text, min(each.line for each in spellings), sum(each.count for each in spellings))


def _frequency_order(asked: QuestionLines) -> tuple[int, int]:
    return -asked.count, asked.line
