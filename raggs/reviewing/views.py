"""An item as a reviewer sees it: question and passage, cleaned, and nothing of any machine's."""

from __future__ import annotations

import re

from raggs.base.frozen import Frozen
from raggs.base.languages import FUNCTION_WORDS, fold_accents
from raggs.base.text import clean_passage, clean_unicode
from raggs.reviewing.pool import Pool

WORD = re.compile(r"[^\W_]+")
COMMON = frozenset(word for words in FUNCTION_WORDS.values() for word in words.split())


class ItemView(Frozen):
    """An item as a reviewer sees it: nothing of any machine's."""

    item: str
    question: str
    title: str
    text: str
    source: str
    around: bool
    terms: tuple[str, ...]


def view_of(pool: Pool, number: int) -> ItemView:
    """An item as the page shows it."""
    item, passage = pool.items[number], pool.passage(number)
    question = pool.questions[item.question]
    return ItemView(
        item="".join(item.key),
        question=clean_unicode(question),
        title=clean_passage(passage.title),
        text=clean_passage(passage.text),
        source=passage.span.source if passage.span else "",
        around=any(pool.around(passage)),
        terms=terms_of(question),
    )


def terms_of(question: str) -> tuple[str, ...]:
    """The words of a question that say what it is about, in lower case and without accents."""
    words = WORD.findall(fold_accents(clean_unicode(question).lower()))
    return tuple(dict.fromkeys(word for word in words if word not in COMMON and (len(word) > 2 or word.isdigit())))
