"""Questions by rules, from headings and definitions, each with what answers it word for word: no model is asked.

Good enough to try a pipeline on, and said to be no more: such questions copy the words of what answers them, which
flatters lexical search (see `raggs.stats.asking.leakage`). Every excerpt is a slice of the text. Equal texts give equal
questions; a question comes once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from raggs.stats.asking.wording import WORDINGS, Asking, Kind, Wording, elided, subject

LONGEST = 600  # characters of an excerpt, roughly: it ends with a sentence
LEAST_WORDS = 4  # of an excerpt
LONGEST_TITLE = 80
PARAGRAPH = re.compile(r"\S(?:(?!\n[ \t]*\r?\n).)*", re.DOTALL)
CODE = re.compile(r"^(?:```|~~~|<|\|| {4}|\t|#|>|\[[^\]]*\]:|[-=*_]{3,}\s*$)")
FENCE = re.compile(r"^[ ]{0,3}(?:```|~~~)", re.MULTILINE)
ENDING = re.compile(r"[.!?]+[\"'”’»)\]]*(?=\s|\Z)")
BEGINS = re.compile(r"[`*_]|[^\W\d_a-zß-öø-ÿ]")
ABBREVIATED = re.compile(r"(?:\b(?:[A-Z]|e\.g|i\.e|etc|vs|cf|Dr|Mr|Mrs|Ms|St|No|Fig|p|pp|M|Mme))\.$")
ABBREVIATION = 8  # characters that are looked at for one
WORD = re.compile(r"\w+")
NUMBERED = re.compile(r"^(?:\d+(?:\.\d+)*[.)]?|[IVX]+\.|[A-Z]\))\s+")


@dataclass(frozen=True)
class Section:
    """A stretch of a text below one heading, or before the first.

    Attributes:
        path: the titles above it, the topmost first; empty before the first heading.
        start, end: its characters, without the heading and without sections below it.
    """

    path: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Extracted:
    """A question and the place that answers it.

    Attributes:
        question: on one line.
        start, end: of the excerpt; `text[start:end]` is its text.
        kind: fact, procedure or list.
        rule: what it was made of: "heading" or "sentence".
    """

    question: str
    start: int
    end: int
    kind: Kind
    rule: str


def extract(text: str, sections: Sequence[Section], language: str, *, document: str = "") -> tuple[Extracted, ...]:
    """The questions that the rules of a language find in a text, in its order.

    Args:
        sections: of the text, in order; one section without a path where it has no headings.
        language: "en" or "fr"; there are no rules for another.
        document: what the document is called, where no heading says so.
    """
    wording = WORDINGS.get(language)
    if wording is None:
        return ()
    found: dict[str, Extracted] = {}
    for section in sections:
        for each in _of_section(text, section, wording, document):
            found.setdefault(each.question.casefold(), each)
    return tuple(found.values())


def clipped(sections: Sequence[Section], start: int, end: int) -> tuple[Section, ...]:
    """The parts of sections that lie within a window; one whose beginning lies outside has lost its heading."""
    return tuple(
        Section(each.path if each.start >= start else (), max(start, each.start), min(end, each.end))
        for each in sections
        if each.start < end and each.end > start
    )


def _of_section(text: str, section: Section, wording: Wording, document: str) -> Iterator[Extracted]:
    paragraphs = list(_paragraphs(text, section))
    asked = _of_heading(section.path, wording, document)
    told = paragraphs if asked is None or asked[1] == "procedure" else _from_prose(text, paragraphs)
    if asked is not None and told:
        start, end = _answer(text, told)
        if len(WORD.findall(text, start, end)) >= LEAST_WORDS:
            yield Extracted(asked[0], start, end, asked[1], "heading")
    for start, end in paragraphs:
        if not CODE.match(text[start:end]):
            yield from _of_paragraph(text, start, end, wording)


def _of_paragraph(text: str, start: int, end: int, wording: Wording) -> Iterator[Extracted]:
    for first, last in _sentences(text, start, end):
        sentence = " ".join(text[first:last].split())
        if last - first > LONGEST or sentence[-1] not in ".!?" or not BEGINS.match(sentence):
            continue
        if _first(wording.sentences, sentence, wording, {}) is None:
            continue
        asked = _first(wording.sentences, _known(sentence, text), wording, {})
        if asked is not None:
            yield Extracted(asked[0], first, last, asked[1], "sentence")


def _known(sentence: str, text: str) -> str:
    """A sentence's first word small if the text has it so elsewhere: it is no name."""
    first = WORD.match(sentence)
    small = "" if first is None else first[0][:1].lower() + first[0][1:]
    return small + sentence[len(small) :] if small and re.search(rf"(?<![\w@.]){small}(?![\w@.])", text) else sentence


def _first(rules: Sequence[Asking], text: str, wording: Wording, names: Mapping[str, str]) -> tuple[str, Kind] | None:
    """The question of the first rule that fits a text, and its kind."""
    for rule in rules:
        match = rule.pattern.match(text)
        if match is None:
            continue
        groups = {name: value or "" for name, value in match.groupdict().items()}
        about = subject(groups["x"], wording) if rules is wording.sentences else groups.get("x", "")
        if about is None or ("{root}" in rule.template and not names.get("root")):
            continue
        question = rule.template.format(**names, **{**groups, "x": about})
        return _ended(question, wording), rule.kind
    return None


def _ended(question: str, wording: Wording) -> str:
    """A question on one line, with one mark at its end and, in French, elided."""
    plain = " ".join(question.split()).rstrip("?!. ") + wording.mark
    return elided(plain) if wording.mark != "?" else plain


def _of_heading(path: Sequence[str], wording: Wording, document: str) -> tuple[str, Kind] | None:
    """The question that a heading asks, and its kind."""
    titles = [NUMBERED.sub("", title).strip(" :#") for title in path]
    if not titles or max(map(len, titles)) > LONGEST_TITLE or not WORD.search(titles[-1]):
        return None
    if wording.silent.match(titles[-1]):
        return None
    root = titles[0] if len(titles) > 1 else document
    above = titles[-2] if len(titles) > 1 else ""
    names = {"root": root, "within": f" ({above})" if above else ""}
    if above and wording.platforms.match(titles[-1]):
        asked = _first(wording.headings, _small(above), wording, names)
        if asked is not None:
            question = asked[0].removesuffix(wording.mark)
            return f"{question}{wording.on}{titles[-1]}{wording.mark}", "procedure"
    asked = _first(wording.headings, _small(titles[-1]), wording, names)
    if asked is not None:
        return asked[0][:1].upper() + asked[0][1:], asked[1]
    template = wording.any_heading[0 if above else 1]
    first, space, rest = titles[-1].partition(" ")
    if first.lower() in wording.dangling:  # "What it costs"
        return None
    named = (first.lower() if first.lower() in wording.articles else first) + space + rest
    return _ended(template.format(x=named, above=above), wording), "fact"


def _small(title: str) -> str:
    """A heading's first word as it is written within a sentence, unless it is a name of its own."""
    first, space, rest = title.partition(" ")
    return (first.lower() if first[1:].islower() else first) + space + rest


def _paragraphs(text: str, section: Section) -> Iterator[tuple[int, int]]:
    """The places of what blank lines part; a fence of code is one paragraph."""
    at = section.start
    while match := PARAGRAPH.search(text, at, section.end):
        start, at = match.span()
        line = text.rfind("\n", section.start, start) + 1
        if FENCE.match(text[line : start + 3] if line >= section.start else text[start : start + 3]):
            close = FENCE.search(text, text.find("\n", start) + 1 or section.end, section.end)
            at = section.end if close is None else (text.find("\n", close.start(), section.end) + 1 or section.end)
            at = max(at, match.start() + 1)
        yield start, start + len(text[start:at].rstrip())


def _from_prose(text: str, paragraphs: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Paragraphs from the first on that is neither code nor a table."""
    first = next((place for place, (start, end) in enumerate(paragraphs) if not CODE.match(text[start:end])), None)
    return paragraphs[first:] if first is not None else ()


def _answer(text: str, paragraphs: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """What stands first below a heading, with what a colon announces, cut after a sentence."""
    start, end = paragraphs[0]
    if text[start:end].endswith(":") and len(paragraphs) > 1:
        end = paragraphs[1][1]
    if end - start <= LONGEST:
        return start, end
    ends = [last for _, last in _sentences(text, start, end) if last - start <= LONGEST]
    cut = ends[-1] if ends else text.rfind(" ", start, start + LONGEST)
    return (start, start + len(text[start:cut].rstrip())) if cut > start else (start, end)


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The places of sentences; what an abbreviation ends goes on."""
    first = start
    ends = [match.end() for match in ENDING.finditer(text, start, end)]
    for last in [*ends, end]:
        first += len(text[first:last]) - len(text[first:last].lstrip())
        if first < last and (last == end or not ABBREVIATED.search(text[max(first, last - ABBREVIATION) : last])):
            yield first, last
            first = last
