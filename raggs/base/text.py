"""Unicode cleaning, helpers for texts and names, and token counts.

The vocabularies cl100k and o200k are part of litellm's package, so no network is needed. The counts of other
vocabularies differ by a few per cent. If a vocabulary cannot be read, `estimate` replaces it with a conservative value.
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

HYGIENE = 1  # version of `clean_passage`, increased when its results change
MAX_LISTED_NAMES = 24  # maximum number of names in a remedy
SLIP = 0.7  # minimum share of unchanged letters in a typo
WHITESPACE = re.compile(r"\s+")
BREAKS = "\v\f\x85"  # control characters that separate words: vertical tab, form feed, next line
# Format characters that change the meaning of a text: they shape letters of Indic and Arabic scripts and join emoji.
# Between other characters they are noise.
JOINERS = "\u200c\u200d"
JOINED_CHAR = f"[^\\s\u0000-\u024f{JOINERS}]"
# Control characters except tab and line feed, line and paragraph separators, direction marks, lone surrogates.
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
SUSPECT = re.compile(f"[^\\w\\n\\t -~{JOINERS}]")  # characters that may be noise; all others are kept without a check
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
REPLACEMENT_CHAR, BYTE_ORDER_MARK = "\ufffd", "\ufeff"
FORMULA, GUARDED = re.compile(r"'*[=+\-@\t\r]"), re.compile(r"'+[=+\-@\t\r]")
# Superscripts and fractions after a digit: as normal digits, they would change the number (10⁶ is not 106).
RAISED = re.compile("(?<=[0-9])([\u00b2\u00b3\u00b9\u00bc-\u00be\u2070\u2074-\u207e\u2150-\u215f\u2189]+)")
# Typographic quotation marks, apostrophes, primes and hyphens, and their keyboard equivalents.
QUOTES = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u2032\u2039\u203a\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u301d\u301e\u301f", '"'),
    **dict.fromkeys("\u2010\u2011", "-"),
}
FOLDING = 1  # version of `fold_quotes`, increased when its results change
PARTED_ACCENT = " \u0301"  # result of cleaning U+00B4
ACCENT = re.compile(f"(?<=\\w){PARTED_ACCENT}(?=\\w)")
GUILLEMETS = re.compile("\u00ab([^\u00ab\u00bb]*+)\u00bb")  # French puts spaces inside them
JOINER_RUN = re.compile(f"(?<={JOINED_CHAR})([{JOINERS}])[{JOINERS}]*(?={JOINED_CHAR})|[{JOINERS}]+")


def clean_unicode(text: str) -> str:
    """Return the NFKC form without control, zero-width and surrogate characters, with all spaces normalised.

    Line breaks and tabs are kept. A joiner (U+200C, U+200D) is kept only between two non-space characters beyond Latin
    script, where it carries meaning.

    Returns:
        A text that `clean_unicode` does not change again.
    """
    if is_clean(text):
        return text
    # Removals can bring characters together that the next pass composes.
    while (clean := _clean_once(text)) != text:
        text = clean
    return text


def is_clean(text: str) -> bool:
    """Return whether `clean_unicode` certainly does not change a text. For ASCII, this costs one copy.

    Printable characters are never control or format characters, and the only printable space is U+0020.
    """
    printed = text.replace("\n", "").replace("\t", "").isprintable()
    return printed and (text.isascii() or unicodedata.is_normalized("NFKC", text))


def clean_passage(text: str) -> str:
    """Clean a passage like a query, but keep superscripts and fractions after a digit.

    Returns:
        A text that `clean_passage` does not change again; `text` itself if nothing visible would remain.
    """
    if is_clean(text):
        return text
    parts = RAISED.split(text)
    clean = "".join(part if number % 2 else clean_unicode(part) for number, part in enumerate(parts))
    return clean if clean.strip() else text


def fold_quotes(text: str) -> str:
    """Return `text` with keyboard forms of typographic quotation marks, apostrophes and hyphens.

    Lexical search, embedders and local rerankers read texts in this form, so that queries from a word processor and
    from a keyboard find the same passages. An acute accent between two letters counts as an apostrophe, even after
    cleaning, which separates it from its letter.

    Returns:
        A text that `fold_quotes` does not change again; `text` itself if it contains no such character.
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
    """Return `text` with each lone surrogate, which UTF-8 cannot encode, replaced by U+FFFD."""
    return text if text.isascii() else LONE_SURROGATE.sub(REPLACEMENT_CHAR, text)


def sound_value(value: Json) -> Json:
    """Replace surrogates in every text of a JSON value, including keys."""
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
    """Return why `name` is not a safe id in common file formats, or None.

    Args:
        name: the id.
        first: whether the id starts lines, as query ids do.
    """
    if any(char.isspace() for char in name):
        return "contains white space, which TREC files cannot represent"
    if any(unicodedata.category(char) == "Cc" for char in name):
        return "contains a control character, which files cannot represent"
    if LONE_SURROGATE.search(name):
        return "contains a lone surrogate, which is not a character"
    if BYTE_ORDER_MARK in name:
        return "contains a byte order mark, which files do not keep"
    if first and name.startswith("#"):
        return "starts with #, which TREC files treat as a comment"
    return None


def spreadsheet_cell(text: str) -> str:
    """Return `text` as a cell that no spreadsheet runs as a formula: such a text gets an apostrophe in front."""
    return f"'{text}" if FORMULA.match(text) else text


def of_spreadsheet_cell(cell: str) -> str:
    """Return the text from which `spreadsheet_cell` made `cell`."""
    return cell[1:] if GUARDED.match(cell) else cell


def escape_controls(text: str) -> str:
    r"""Return `text` safe for a terminal: control sequences and direction marks are escaped.

    ``\x1b`` is the character that starts such sequences. Line breaks and tabs are kept.
    """
    return COMMANDS.sub(lambda match: ascii(match[0])[1:-1], text)


def one_line(text: str) -> str:
    """Return `text` on one line: runs of white space become one space, and the ends are trimmed."""
    return WHITESPACE.sub(" ", text).strip()


def shorten(text: str, width: int) -> str:
    """Return `text` on one line of at most `width` characters, truncated with an ellipsis."""
    line = one_line(text)
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


WRAP_WIDTHS = range(55, 161)  # characters; the longest line of a text that was wrapped by an editor or a program
FULL_LINE = 0.8  # of that width, which a line and the first word of the next one exceed
FEW_BREAKS = 3
WRAPPED_SHARE = 0.8  # of the breaks between lines of prose that follow full lines
LIST_ITEM = re.compile(r"[-*+•·–] |\(?\w{1,3}[.)] |\[\w+\] |\*\*")
NOT_PROSE = re.compile(r">>>|\.\.\.|[#$|%>/]|\W*$")
PROSE_CHARS = re.compile(r"[^\W\d_]|[ .,;:!?'\"’‘“”()«»–—-]")
QUOTATION = re.compile(r"\"[^\"]*\"|`[^`]*`")
CODE_SIGNS = re.compile(r"::=|\s(?:[=|]|->|[=!<>+*-]=)\s|  #|[{;]$")
WORDS_WITHOUT_SPACES = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u9fff\uf900-\uffef]")


def join_wrapped_lines(text: str) -> str:
    """Return a text for display, with lines joined that were broken only because they had reached a width.

    Code, tables, list items, blank lines and short lines keep their breaks. A text is unchanged in two cases: if its
    longest line of prose before a break does not have 55 to 160 characters, or if fewer than 80% of the breaks between
    lines of prose follow full lines. Only line breaks and the white space around them change.
    """
    lines = text.split("\n")
    breaks = [
        place for place in range(len(lines) - 1) if _may_continue(lines[place], lines[place + 1], first=not place)
    ]
    width = max((len(lines[place]) for place in breaks), default=0)
    if width not in WRAP_WIDTHS:
        return text
    if len(breaks) < FEW_BREAKS:  # too few to show that the text is wrapped: ends of sentences may be breaks
        breaks = [place for place in breaks if not lines[place].rstrip().endswith((".", "!", "?"))]
    full = {place for place in breaks if _is_full(lines[place], lines[place + 1], width)}
    if len(full) < WRAPPED_SHARE * len(breaks):
        return text
    joined = [lines[0]]
    for place, line in enumerate(lines[1:]):
        if place in full:
            hyphen = re.search(r"[^\W\d_]-$", joined[-1]) and line.lstrip()[:1].islower()
            joined[-1] = f"{joined[-1].rstrip()}{'' if hyphen else ' '}{line.lstrip()}"
        else:
            joined.append(line)
    return "\n".join(joined)


def _is_prose(line: str) -> bool:
    words = QUOTATION.sub("x", line.strip())
    if CODE_SIGNS.search(words):
        return False
    most = len(PROSE_CHARS.findall(words)) >= 0.85 * len(words)
    return len(words.split()) > 3 and most and not NOT_PROSE.match(words)


def _may_continue(line: str, after: str, *, first: bool) -> bool:
    """Return whether the second line may be of the same paragraph.

    Both lines are prose with the same indentation. The second one may be deeper in list items, and after the first line
    of a text, which may start inside an indented paragraph.
    """
    words, indent = after.strip(), len(after) - len(after.lstrip())
    if not words or not _is_prose(line) or line.rstrip().endswith(":"):
        return False
    if LIST_ITEM.match(words) or NOT_PROSE.match(words) or WORDS_WITHOUT_SPACES.search(line[-1] + words[0]):
        return False
    own = len(line) - len(line.lstrip())
    return indent == own or (indent > own and (first or LIST_ITEM.match(line.strip()) is not None))


def _is_full(line: str, after: str, width: int) -> bool:
    return len(line.rstrip()) + 1 + len(after.split()[0]) > FULL_LINE * width


FIGURE_TEXT_SIZE = 15.6  # height of text in a figure, as in figure.css
EM_WIDTHS = {0.36: " ijlI.,:;'|!`", 0.44: 'tfr()[]{}-/\\"', 1.0: "mwMWOQ@%+=<>~→←↑↓−…"}  # in a wide font
EM_OF = {letter: wide for wide, letters in EM_WIDTHS.items() for letter in letters}


def text_width(words: str, size: float = FIGURE_TEXT_SIZE) -> float:
    """Return an upper bound of the width of a text in usual fonts, in the unit of `size`."""
    return size * sum(EM_OF.get(letter) or _em(letter) for letter in escape_controls(words))


def _em(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    return 0.76 if letter.isupper() else 0.645


def fit(words: str, room: float, size: float = FIGURE_TEXT_SIZE) -> str:
    """Return a text with its middle replaced by an ellipsis if it is wider than `room`."""
    words = escape_controls(words)
    letters = len(words)
    while letters > 2 and text_width(shortened(words, letters), size) > room:
        letters -= 1
    return shortened(words, letters)


def wrap(words: str, room: float, size: float = FIGURE_TEXT_SIZE) -> list[str]:
    """Return a text in lines of at most the width `room`; a wider word is shortened."""
    lines: list[str] = []
    for word in escape_controls(words).split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(fit(word, room, size))
    return lines or [""]


def shortened(words: str, letters: int) -> str:
    """Return the text; if it has more than `letters` characters, an ellipsis replaces its middle."""
    if len(words) <= letters:
        return words
    head = (letters - 1) * 2 // 3
    return f"{words[:head]}…{words[len(words) - (letters - 1 - head) :]}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`, or None if none is similar.

    Typos are tried first (omitted, doubled or swapped letters), then names that contain each other.
    """
    from rapidfuzz import fuzz, process  # imported lazily: needed only for errors
    from rapidfuzz.distance import OSA

    names = list(known)
    slip = min(SLIP, 0.999 - 1 / max(len(name), 3))  # one typo in a word of three letters is accepted, too
    found = process.extractOne(name, names, scorer=OSA.normalized_similarity, score_cutoff=slip)
    found = found or process.extractOne(name, names, scorer=fuzz.WRatio, score_cutoff=60)
    return None if found is None else str(found[0])


def similarity(one: str, other: str) -> float:
    """Return the share of letters, 0 to 1, that two names have in common in the same order. A swap counts as one
    typo.
    """
    from rapidfuzz.distance import OSA

    return float(OSA.normalized_similarity(one, other))


def did_you_mean(name: str, known: Iterable[str], listed: str | None = None) -> str:
    """Return the remedy for an unknown name: ``did you mean 'judge'? known: embed, retrieve, judge``.

    Args:
        name: the unknown name.
        known: the known names.
        listed: text that replaces the list of known names, for example a command that lists them.
    """
    known = list(known)
    close = nearest(name, known)
    hint = "" if close is None else f"did you mean {close!r}? "
    more = f" and {len(known) - MAX_LISTED_NAMES:,} more" if len(known) > MAX_LISTED_NAMES else ""
    return hint + (f"known: {', '.join(known[:MAX_LISTED_NAMES])}{more}" if listed is None else listed)


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 query``, ``2 queries``, ``1,400 passages``."""
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
    """Return the number of tokens of each text, estimated if the vocabulary cannot be read."""
    found = encoding(vocabulary)
    return [estimate(text) if found is None else len(found.encode_ordinary(text)) for text in texts]


def token_borders(text: str, vocabulary: str = VOCABULARY) -> list[int] | None:
    """Return the start character of each token of a text, in order, or None if the vocabulary cannot be read."""
    found = encoding(vocabulary)
    if found is None:
        return None
    whole = HALVES.sub("\ufffd", text)  # two surrogates would become one character and shift the following positions
    return found.decode_with_offsets(found.encode_ordinary(whole))[1]


def estimate(text: str) -> int:
    """Return a conservative estimate: one token per 3 bytes of UTF-8."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


@cache
def encoding(vocabulary: str) -> Encoding | None:
    """Return a vocabulary, or None if it cannot be read from disk."""
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
