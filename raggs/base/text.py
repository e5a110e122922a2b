"""Text as it should be before anything compares it: Unicode hygiene and small helpers on words.

How many tokens a text has. The vocabularies cl100k and o200k lie in litellm's package: no network is asked.

Models differ by some per cent; where a vocabulary cannot be read, `estimate` stands in and errs upwards.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from raggs.base.types import Json

if TYPE_CHECKING:
    from tiktoken import Encoding

HYGIENE = 1  # version of `clean_passage`, raised when the same text comes out otherwise
MAX_LISTED_NAMES = 24  # names that a remedy lists
SLIP = 0.7  # of a name's letters that a slip of the fingers leaves alone
WHITESPACE = re.compile(r"\s+")
BREAKS = "\v\f\x85"  # controls that part words: vertical tab, form feed, next line
# Format characters that change the meaning of a text rather than its looks: they shape letters of Indic and
# Arabic scripts and hold emoji together. Between anything else they are noise.
JOINERS = "\u200c\u200d"
JOINED_CHAR = f"[^\\s\u0000-\u024f{JOINERS}]"
# Controls but tab and line feed, lines' and paragraphs' ends, marks that turn the direction, halves of characters.
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
SUSPECT = re.compile(f"[^\\w\\n\\t -~{JOINERS}]")  # all that may be noise; what is kept at sight is not looked at
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
REPLACEMENT_CHAR, BYTE_ORDER_MARK = "\ufffd", "\ufeff"
FORMULA, GUARDED = re.compile(r"'*[=+\-@\t\r]"), re.compile(r"'+[=+\-@\t\r]")
# What stands raised or as a fraction behind a digit: put on the line it would make another number (10⁶ is not 106).
RAISED = re.compile("(?<=[0-9])([\u00b2\u00b3\u00b9\u00bc-\u00be\u2070\u2074-\u207e\u2150-\u215f\u2189]+)")
# Quotation marks, apostrophes, primes and hyphens that keyboards lack, and what models of language know instead.
QUOTES = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u2032\u2039\u203a\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u301d\u301e\u301f", '"'),
    **dict.fromkeys("\u2010\u2011", "-"),
}
FOLDING = 1  # version of `fold_quotes`, raised when the same text comes out otherwise
PARTED_ACCENT = " \u0301"  # what hygiene makes of U+00B4
ACCENT = re.compile(f"(?<=\\w){PARTED_ACCENT}(?=\\w)")
GUILLEMETS = re.compile("\u00ab([^\u00ab\u00bb]*+)\u00bb")  # French sets spaces inside of them
JOINER_RUN = re.compile(f"(?<={JOINED_CHAR})([{JOINERS}])[{JOINERS}]*(?={JOINED_CHAR})|[{JOINERS}]+")


def clean_unicode(text: str) -> str:
    """NFKC, without control, zero-width and surrogate characters, every kind of space made plain.

    Line breaks and tabs stay. A joiner (U+200C, U+200D) stays only between two non-space characters beyond
    Latin script, where it carries meaning.

    Returns:
        A text that `clean_unicode` leaves as it is.
    """
    if is_clean(text):
        return text
    # What one pass removes can bring characters together that the next one composes.
    while (clean := _clean_once(text)) != text:
        text = clean
    return text


def is_clean(text: str) -> bool:
    """Whether it is sure that `clean_unicode` leaves a text as it is: at the cost of a copy where it is ASCII.

    No character that can be printed is a control, a mark of format or a space but the usual one.
    """
    printed = text.replace("\n", "").replace("\t", "").isprintable()
    return printed and (text.isascii() or unicodedata.is_normalized("NFKC", text))


def clean_passage(text: str) -> str:
    """The hygiene of questions for a passage, in which raised digits and fractions behind a digit stay what they are.

    Returns:
        A text that `clean_passage` leaves as it is; `text` itself where nothing that can be seen would be left.
    """
    if is_clean(text):
        return text
    parts = RAISED.split(text)
    clean = "".join(part if number % 2 else clean_unicode(part) for number, part in enumerate(parts))
    return clean if clean.strip() else text


def fold_quotes(text: str) -> str:
    """`text` with typographic quotation marks, apostrophes and hyphens as keyboards have them.

    Searches compare texts in this form: a query from a word processor and one from a keyboard find the same passages.
    An acute accent between two letters is an apostrophe, also after hygiene, which parts it from the letter before.

    Returns:
        A text that `fold_quotes` leaves as it is; `text` itself if it holds no such character.
    """
    if text.isascii():
        return text
    if "\u00ab" in text:
        text = GUILLEMETS.sub(lambda match: f'"{match[1].strip()}"', text)
    text = text.replace("\u2032\u2032", '"')
    for char, plain in QUOTES.items():
        text = text.replace(char, plain)
    return ACCENT.sub("'", text) if PARTED_ACCENT in text else text


def _clean_once(text: str) -> str:
    normal = unicodedata.normalize("NFKC", text.replace("\r\n", "\n").replace("\r", "\n"))
    return JOINER_RUN.sub(lambda match: match[1] or "", SUSPECT.sub(_clean_char, normal))


def _clean_char(match: re.Match[str]) -> str:
    char = match[0]
    category = unicodedata.category(char)
    if category in ("Zl", "Zp") or char in BREAKS:
        return "\n"
    if category == "Zs":
        return " "
    return "" if category in ("Cc", "Cf", "Cs") else char


def replace_surrogates(text: str) -> str:
    """`text` as UTF-8 can hold it: each lone half of a surrogate pair, which is no character, becomes U+FFFD."""
    return text if text.isascii() else LONE_SURROGATE.sub(REPLACEMENT_CHAR, text)


def sound_value(value: Json) -> Json:
    """Replace surrogates in every text of a JSON value, keys too."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [sound_value(each) for each in value]
    if isinstance(value, dict):
        return {
            replace_surrogates(key) if isinstance(key, str) else key: sound_value(each) for key, each in value.items()
        }
    return value


def id_problem(name: str, *, first: bool = False) -> str | None:
    """Why `name` would not survive as an id in the files of the field; None where it does.

    Args:
        first: whether it begins lines, as ids of queries do.
    """
    if any(char.isspace() for char in name):
        return "holds white space, which TREC files cannot carry"
    if any(unicodedata.category(char) == "Cc" for char in name):
        return "holds a control character, which files cannot carry"
    if LONE_SURROGATE.search(name):
        return "holds half of a surrogate pair, which is no character"
    if BYTE_ORDER_MARK in name:
        return "holds a byte order mark, which files lose"
    if first and name.startswith("#"):
        return "begins with #, which TREC files take for a comment"
    return None


def spreadsheet_cell(text: str) -> str:
    """`text` as a cell that no spreadsheet runs as a formula: one that looks like it gets an apostrophe in front."""
    return f"'{text}" if FORMULA.match(text) else text


def of_spreadsheet_cell(cell: str) -> str:
    """The text that `spreadsheet_cell` made `cell` of."""
    return cell[1:] if GUARDED.match(cell) else cell


def escape_controls(text: str) -> str:
    r"""`text` as a terminal may show it: what would command the terminal or turn the order of letters is an escape.

    ``\x1b`` stands for the character that begins such commands; line breaks and tabs stay.
    """
    return COMMANDS.sub(lambda match: ascii(match[0])[1:-1], text)


def one_line(text: str) -> str:
    """`text` with every run of white space folded to one blank, trimmed."""
    return WHITESPACE.sub(" ", text).strip()


def shorten(text: str, width: int) -> str:
    """`text` on one line of at most `width` characters, cut with an ellipsis."""
    line = one_line(text)
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that resembles `name` most, or None when nothing does.

    A slip of the fingers is looked for first (letters left out, doubled or swapped), then a name that holds the other.
    """
    from rapidfuzz import fuzz, process  # late: only a mistake needs it
    from rapidfuzz.distance import OSA

    names = list(known)
    slip = min(SLIP, 0.999 - 1 / max(len(name), 3))  # one slip in a word of three letters is a slip, too
    found = process.extractOne(name, names, scorer=OSA.normalized_similarity, score_cutoff=slip)
    found = found or process.extractOne(name, names, scorer=fuzz.WRatio, score_cutoff=60)
    return None if found is None else str(found[0])


def similarity(one: str, other: str) -> float:
    """Return the share of letters, 0 to 1, that two names have in common in the same order; a swap is one slip."""
    from rapidfuzz.distance import OSA

    return float(OSA.normalized_similarity(one, other))


def did_you_mean(name: str, known: Iterable[str], listed: str | None = None) -> str:
    """The remedy for a name that does not exist: ``did you mean 'judge'? known: embed, retrieve, judge``.

    Args:
        listed: what stands instead of the list of all known names, e.g. the command that lists them.
    """
    known = list(known)
    close = nearest(name, known)
    hint = "" if close is None else f"did you mean {close!r}? "
    more = f" and {len(known) - MAX_LISTED_NAMES:,} more" if len(known) > MAX_LISTED_NAMES else ""
    return hint + (f"known: {', '.join(known[:MAX_LISTED_NAMES])}{more}" if listed is None else listed)


def plural(count: int, noun: str) -> str:
    """``1 query``, ``2 queries``, ``1,400 passages``."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}es" if noun.endswith(("ch", "sh", "s", "x")) else f"{count:,} {noun}s"


VOCABULARY = "cl100k_base"
FOLDER = "TIKTOKEN_CACHE_DIR"
BYTES_PER_TOKEN = 3
HALVES = re.compile("[\ud800-\udfff]")


def count_tokens(texts: Sequence[str], vocabulary: str = VOCABULARY) -> list[int]:
    """Tokens of each text."""
    found = encoding(vocabulary)
    return [estimate(text) if found is None else len(found.encode_ordinary(text)) for text in texts]


def token_borders(text: str, vocabulary: str = VOCABULARY) -> list[int] | None:
    """The character in which each token of a text begins, in order; None where the vocabulary cannot be read."""
    found = encoding(vocabulary)
    if found is None:
        return None
    whole = HALVES.sub("\ufffd", text)  # two halves would become one character, and move what follows
    return found.decode_with_offsets(found.encode_ordinary(whole))[1]


def estimate(text: str) -> int:
    """A conservative estimate: one token for every 3 bytes of UTF-8."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


@cache
def encoding(vocabulary: str) -> Encoding | None:
    """A vocabulary, or None where it cannot be read from this disk."""
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
    if not folder.is_dir():
        return None
    before = os.environ.get(FOLDER)
    os.environ[FOLDER] = str(folder)
    try:
        import tiktoken

        return tiktoken.get_encoding(vocabulary)
    except (ImportError, OSError, ValueError):
        return None
    finally:
        if before is None:
            del os.environ[FOLDER]
        else:
            os.environ[FOLDER] = before
