"""Measure the noise that the rewriter `clean` removes from 200 queries, and the cosines with the clean queries.

    python benchmarks/rewriting.py              the table of benchmarks/results/diagnoses.md
    python benchmarks/rewriting.py --phrases    number of removed phrases of each noise

The queries are those of tests/parts/rewriters/noisy.txt, in which noise and information are marked. Half of them were
held out while the rules were written. Cosines are those of WordLlama with the query without noise.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from raggs.base.text import clean_unicode, one_line
from raggs.parts.embedders import Embedder
from raggs.parts.embedders.wordllama import WordLlamaEmbedder
from raggs.parts.noises import LANGUAGES, prepend_phrase
from raggs.parts.noises import phrases as digressions
from raggs.parts.noises import phrases as fillers
from raggs.parts.noises import phrases as greetings
from raggs.parts.noises import phrases as personal_context
from raggs.parts.rewriters.clean import strip_politeness

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.noisy import Noisy, read

QUESTIONS = {"en": "How do boats float?", "fr": "Comment les bateaux flottent-ils ?"}
KINDS = ("polite", "context", "typing", "mixed")


def rows(questions: Sequence[Noisy], embedder: Embedder) -> Iterable[str]:
    """Yield the lines of the table."""
    removed = "noise words removed | query words removed | names, numbers, negations removed"
    yield f"| noise | queries | {removed} | cosine before | cosine after |"
    yield "|---|---|---|---|---|---|---|"
    for held_out in (False, True):
        half = [each for each in questions if each.held_out is held_out]
        for kind in (*KINDS, "all"):
            chosen = [each for each in half if kind in (each.kind, "all")]
            yield _row(f"{kind}{', held out' if held_out else ''}", chosen, embedder)


def _row(name: str, questions: Sequence[Noisy], embedder: Embedder) -> str:
    asked = [one_line(clean_unicode(each.text)) for each in questions]
    rewritten = [strip_politeness(text) for text in asked]
    lacking = Counter[str]()
    for each, text in zip(questions, rewritten, strict=True):
        lacking += each.missing(text)
    noise, said, told = (sum(each.count(sort) for each in questions) for sort in ("noise", "said", "told"))
    clean = embedder.embed([each.clean for each in questions])
    before_, after = (float(np.mean((embedder.embed(texts) * clean).sum(axis=1))) for texts in (asked, rewritten))
    off = f"{lacking['noise']} of {noise} ({lacking['noise'] / noise:.0%})"
    lost = f"{lacking['said']} of {said} | {lacking['told']} of {told}"
    return f"| {name} | {len(questions)} | {off} | {lost} | {before_:.3f} | {after:.3f} |"


def phrases() -> Iterable[str]:
    """Yield the number of completely removed phrases for each noise and language."""
    for language in LANGUAGES:
        question = QUESTIONS[language]
        front = {"greetings": greetings.HELLOS, "fillers": fillers.FILLERS, "digressions": digressions.ASIDES}
        front["personal_context"] = personal_context.PERSONAL_SENTENCES
        for name, each in front.items():
            texts = [prepend_phrase(phrase, question) for phrase in each[language]]
            yield _known(f"{name}, {language}", texts, question)
        yield _known(f"thanks, {language}", [f"{question} {each}" for each in greetings.THANKS[language]], question)


def _known(name: str, texts: Sequence[str], question: str) -> str:
    known = sum(strip_politeness(text).lower() == question.lower() for text in texts)
    return f"| {name} | {known} of {len(texts)} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phrases", action="store_true")
    wordllama = WordLlamaEmbedder(WordLlamaEmbedder.Config())
    print("\n".join(phrases() if parser.parse_args().phrases else rows(read(), wordllama)))
