"""Questions with the ideal texts that they are compared to: raggs' own, or a golden set's with its best passages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from raggs.base.artifacts import Query
from raggs.base.languages import detect_language
from raggs.diagnosis.bench import Bench

OWN = "raggs' own questions and ideal texts"
GOLDEN = "the golden set's questions and their best passages"


@dataclass(frozen=True)
class Ideal:
    """A question, the text that answers it best, and the question's language."""

    key: str
    question: str
    text: str
    language: str


@cache
def own_questions(language: str) -> tuple[Ideal, ...]:
    """raggs' own, in the order of their file."""
    text = (files(__package__) / f"questions.{language}.txt").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line and not line.startswith("#")]
    return tuple(Ideal(f"{language}/{at}", question, ideal, language) for at, (question, ideal) in enumerate(rows))


def language_of(query: Query, usual: str) -> str:
    """The language that a question says, or looks like."""
    return query.language or detect_language(query.text, usual)


def usual_language(bench: Bench) -> str:
    """Of questions whose own cannot be told."""
    return "en" if bench.run is None else bench.run.embed.language


def golden_questions(bench: Bench, language: str) -> tuple[Ideal, ...]:
    """The golden set's questions of a language that have a relevant passage, with the best of them; by id.

    Raises:
        RaggsError: there is no golden set or no corpus.
    """
    found = list(_best(bench, language))
    texts = bench.passages.get([doc for _, doc in found])
    return tuple(Ideal(query.qid, query.text, texts[doc].content, language) for query, doc in found if doc in texts)


def _best(bench: Bench, language: str) -> Iterator[tuple[Query, str]]:
    """Each question with the passage of its highest grade, the first by id."""
    qrels = bench.judgments.qrels
    best: dict[str, tuple[int, str]] = {}
    for row in range(len(qrels.docs)):
        if (grade := int(qrels.grade[row])) >= qrels.scale.relevant:
            qid, found = qrels.qids[qrels.query[row]], (-grade, qrels.docs.text(row))
            best[qid] = min(best.get(qid, found), found)
    for qid, query in bench.queries.items():
        if qid in best and language_of(query, usual_language(bench)) == language:
            yield query, best[qid][1]
