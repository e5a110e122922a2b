"""What is known of each question and of what answers it: read off the golden set, and off its corpus where it is named.

Words are counted over at most `SAMPLE` passages, evenly over the corpus; without a corpus over the passages of the
pools, where those have texts. Of passages on a server only those are fetched that are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from raggs.base.artifacts import Passage
from raggs.base.errors import NotFoundError
from raggs.base.languages import detect_language
from raggs.base.naming import names_in
from raggs.base.text import plural
from raggs.diagnosis.bench import Bench
from raggs.golden.questions import Questions
from raggs.golden.runs import RunGolden
from raggs.golden.views import PassageView, QuestionView
from raggs.parts.indexes.analysis import words_of
from raggs.parts.indexes.passages import Passages
from raggs.parts.workshop import place_of
from raggs.stats.asking import WordWeights
from raggs.stats.probes.traits import Answer, Asked
from raggs.sweeps.world import refuse_foreign

SAMPLE = 10_000  # passages whose words are counted
ANSWERS = 20  # relevant passages of a question that are looked at, the best first
STEP = " > "  # between the steps of a path of titles


@dataclass(frozen=True)
class Known:
    """What is known of the questions.

    Attributes:
        asked: by question.
        letters: by passage its length in characters.
        weights: how rare words are.
        words: of which texts; empty where of none.
    """

    asked: Mapping[str, Asked]
    letters: Mapping[str, int]
    weights: WordWeights
    words: str


def passages_of(bench: Bench) -> Passages | None:
    """The corpus, known to be the golden set's; None where nobody says where it is.

    Raises:
        DataError: it is another one.
    """
    if not bench.has("corpus"):
        return None
    found = bench.workshop.corpus(bench.corpus).passages(whole=False)
    refuse_foreign(found, bench.judgments, bench.golden.source, place_of(bench.corpus))
    return found


def read_questions(bench: Bench, relevant: int) -> Known:
    """All that is known.

    Args:
        relevant: the lowest relevant grade.

    Raises:
        RaggsError: the golden set or the corpus cannot be read.
    """
    golden, corpus = bench.golden, passages_of(bench)
    views = _worded(list(Questions(golden, ())), bench)
    if corpus is not None:
        views = _with_texts(views, relevant, corpus)
    letters = {each.doc_id: len(each.text) for view in views for each in view.passages if each.text}
    of_run = isinstance(golden, RunGolden)
    asked = {view.qid: _asked(view, relevant, of_run) for view in views}
    weights, words = _weights(views, corpus)
    if corpus is not None and len(corpus) > SAMPLE:  # a word that the sample lacks is rare, not unknown
        held = {word: 1 for each in asked.values() for word in each.words}
        weights = replace(weights, holding={**held, **weights.holding})
    return Known(asked, letters, weights, words)


def _worded(views: list[QuestionView], bench: Bench) -> list[QuestionView]:
    """With the run's texts, where labels have none; without any nothing is known of how questions are put."""
    if all(view.text for view in views):
        return views
    try:
        queries = bench.queries
    except NotFoundError:
        return views
    found = [(view, queries.get(view.qid)) for view in views]
    return [
        view if view.text or query is None else replace(view, text=query.text, language=query.language or "")
        for view, query in found
    ]


def _best(view: QuestionView, relevant: int) -> list[PassageView]:
    """The relevant passages that are looked at."""
    found = [each for each in view.passages if each.grade is not None and each.grade >= relevant]
    return sorted(found, key=lambda each: -(each.grade or 0))[:ANSWERS]


def _with_texts(views: Iterable[QuestionView], relevant: int, corpus: Passages) -> list[QuestionView]:
    """With the texts of relevant passages, where the set has none."""
    kept = list(views)
    wanted = {each.doc_id for view in kept for each in _best(view, relevant) if not each.text}
    texts = corpus.get(sorted(wanted)) if wanted else {}
    return [replace(view, passages=tuple(_filled(each, texts) for each in view.passages)) for view in kept]


def _filled(view: PassageView, texts: Mapping[str, Passage]) -> PassageView:
    found = texts.get(view.doc_id)
    return view if found is None else replace(view, title=found.title, text=found.text)


def _asked(view: QuestionView, relevant: int, of_run: bool) -> Asked:
    language = view.language or detect_language(view.text, "")
    twins = {each.duplicate_of or "" for each in view.passages}
    best = _best(view, relevant)
    answers = tuple(_answer(each, each.duplicate_of is not None or each.doc_id in twins) for each in best)
    count = sum(each.grade is not None and each.grade >= relevant for each in view.passages)
    return Asked(
        text=view.text,
        language=language,
        words=frozenset(words_of(view.text, language)),
        names=len(names_in(view.text, language)),
        rewritten=bool(view.rewrite) if of_run else None,
        relevant=count,
        answers=answers,
    )


def _answer(view: PassageView, twin: bool) -> Answer:
    section = view.title.split(STEP)[0].strip() if STEP in view.title else ""
    if not view.text:
        return Answer(section=section, twin=twin)
    language = detect_language(view.text, "")
    return Answer(language, section, len(view.text), frozenset(words_of(_content(view), language)), twin)


def _weights(views: Iterable[QuestionView], corpus: Passages | None) -> tuple[WordWeights, str]:
    if corpus is not None:
        count = min(SAMPLE, len(corpus))
        of = f"{count:,} of {len(corpus):,} passages" if count < len(corpus) else plural(count, "passage")
        return WordWeights.of(map(_words, corpus.sample(SAMPLE))), f"{of} of the corpus"
    texts = dict(_pooled(views))
    return WordWeights.of(map(_words, texts.values())), f"{plural(len(texts), 'pooled passage')}" if texts else ""


def _pooled(views: Iterable[QuestionView]) -> Iterator[tuple[str, str]]:
    return ((each.doc_id, _content(each)) for view in views for each in view.passages if each.text)


def _content(view: PassageView) -> str:
    return f"{view.title}\n{view.text}"


def _words(text: str) -> list[str]:
    return words_of(text, detect_language(text, ""))
