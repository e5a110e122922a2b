"""Names and topics of which bundles are made: raggs' own lists, or two fields of a corpus.

The own lists hold names of many origins, with diacritics, hyphens, particles and apostrophes, and the same topics in
each language. A name that is at home where a language is spoken is drawn as often as all others together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import cycle, product

from raggs.base.errors import DataError
from raggs.base.text import clean_unicode, one_line, plural

FEWEST = 20  # names, and topics, of which bundles can be drawn
LONGEST = 200  # letters of a topic: what is longer is a text, not a title
PARTED = ";"  # between the authors of a passage


@dataclass(frozen=True)
class Lists:
    """What bundles are drawn from.

    Attributes:
        home: names that are drawn half of the time.
        abroad: all others; may be empty.
        topics: each once.
        pairs: names with a topic that they wrote about; empty where any name goes with any topic.
    """

    home: tuple[str, ...]
    abroad: tuple[str, ...]
    topics: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...] = ()


@cache
def own_lists(language: str) -> Lists:
    """raggs' own names and topics for a language that it has templates for."""
    home: list[str] = []
    abroad: list[str] = []
    for line in _lines("people.txt"):
        _, languages, given, family = (part.strip() for part in line.split("|"))
        names = [f"{first} {last}" for first, last in product(_listed(given), _listed(family))]
        (home if language in languages.split() else abroad).extend(names)
    subjects, settings = _lines(f"topics.{language}.txt"), cycle(_lines(f"settings.{language}.txt"))
    topics = tuple(f"{subject} {setting}" for subject, setting in zip(subjects, settings, strict=False))
    return Lists(tuple(home), tuple(abroad), topics)


def corpus_lists(rows: Iterable[tuple[str, str]], fields: tuple[str, str]) -> Lists:
    """Names and topics of a corpus.

    Args:
        rows: of each passage the text of the field of names and that of the field of topics.
        fields: what these are called.

    Raises:
        DataError: fewer than 20 names, or fewer than 20 topics.
    """
    pairs: dict[tuple[str, str], None] = {}
    for names, topic in rows:
        about = one_line(clean_unicode(topic))
        if about and len(about) <= LONGEST:
            authors = (one_line(clean_unicode(name)) for name in names.split(PARTED))
            pairs.update(((author, about), None) for author in authors if author)
    people = tuple(dict.fromkeys(name for name, _ in pairs))
    topics = tuple(dict.fromkeys(topic for _, topic in pairs))
    for found, field, what in ((people, fields[0], "name"), (topics, fields[1], "topic")):
        if len(found) < FEWEST:
            told = plural(len(found), f"different {what}")
            raise DataError(
                f"the field {field!r} of the corpus gives {told}, and {FEWEST} are needed",
                remedy="name other fields by --name-field and --topic-field, or none for raggs' own lists",
            )
    return Lists(people, (), topics, tuple(pairs))


def field_text(metadata: Mapping[str, object], field: str) -> str | None:
    """What a passage's metadata say under a name: a text, or a list of texts joined; None where nothing does."""
    value = metadata.get(field)
    if isinstance(value, str):
        return value
    return PARTED.join(str(each) for each in value) if isinstance(value, list | tuple) else None


def _lines(file: str) -> list[str]:
    text = files(__package__).joinpath(file).read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]
