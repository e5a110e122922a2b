"""A golden set's questions that hold names, and the passages in which they are searched for, perturbed alike.

Names are changed on both sides at once, as in the probes: those of the questions and all other names of the passages,
so that a mask masks everybody. Which words are names: see `people`. Dense search over all passages, exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats, Vectors
from raggs.base.artifacts import Passage
from raggs.base.languages import detect_language
from raggs.base.progress import Building
from raggs.base.seeds import generator
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.names.lists import PARTED
from raggs.diagnosis.names.people import People, by_question, runs_in
from raggs.diagnosis.names.reading import every, field_of
from raggs.diagnosis.names.scoring import STEP, Hygiene
from raggs.metrics.columns import Scale
from raggs.metrics.evaluate import evaluate
from raggs.parts.embedders.base import Embedder
from raggs.parts.perturbers.base import Perturber, Place
from raggs.parts.perturbers.bundles import Side

MEASURES = {True: "n_recall4", False: "recall"}  # by whether the grades are those of a golden set


def measure_of(scale: Scale, cutoff: int) -> str:
    """By which a search is judged."""
    return f"{MEASURES[scale.golden]}@{cutoff}"


@dataclass(frozen=True)
class Texts:
    """Questions and passages under one perturber; `changed`: how many passages it changed."""

    questions: list[str]
    passages: list[str]
    changed: int


class Scene:
    """What is searched for and where; read at once.

    Attributes:
        judged: questions with judgments.
        names: of each question that holds some, in the order of the questions' ids.
        docs: ids of the passages, sorted.
    """

    def __init__(self, bench: Bench, hygiene: Hygiene, name_field: str | None, most: int) -> None:
        self._bench, self._hygiene = bench, hygiene
        qrels = bench.judgments.qrels
        judged = {qid: query for qid, query in bench.queries.items() if qid in set(qrels.qids)}
        self.judged = len(judged)
        passages = self._chosen(most)
        self.docs = [passage.doc_id for passage in passages]
        self._texts = [passage.raw if hygiene.raw else passage.content for passage in passages]
        known = None if name_field is None else People(_of_field(passages, name_field))
        self._questions = {qid: hygiene.question(query.text) for qid, query in judged.items()}
        self.names = by_question(self._questions, self._texts, known)
        asked = [name for names in self.names.values() for name in names]
        others = known.names if known is not None else [run for text in self._texts for run in runs_in(text)]
        self.people = People([*asked, *others])
        self._held = [self.people.within(text) for text in self._texts]
        told = [judged[qid].language or detect_language(self._questions[qid]) for qid in self.names]
        self.language = Counter(told).most_common(1)[0][0] if told else "en"

    def under(self, perturber: Perturber | None) -> Texts:
        """The texts as a perturber leaves them, after hygiene."""
        questions = [self._questions[qid] for qid in self.names]
        if perturber is None:
            return Texts(questions, self._texts, 0)
        asked = self._changed(perturber, "question", questions, list(self.names.values()))
        shown = self._changed(perturber, "candidate", self._texts, self._held)
        questions = [self._hygiene.question(text) for text in asked]
        passages = [self._hygiene.passage(text) for text in shown]
        changed = sum(new != old for new, old in zip(passages, self._texts, strict=True))
        return Texts(questions, passages, changed)

    def values(self, embedder: Embedder, texts: Texts, cutoff: int) -> list[float]:
        """By question that holds names, what dense search is worth; NaN where the measure is not defined."""
        questions = embedder.embed_queries(texts.questions)
        lists = self._best(questions, self._vectors(embedder, texts.passages), cutoff)
        qrels = self._bench.judgments.qrels
        measure = measure_of(qrels.scale, cutoff)
        found = evaluate(qrels, dict(zip(self.names, lists, strict=True)), [measure])
        by_query = found.per_query[measure]
        return [by_query[qid] for qid in self.names]

    def rehearse(self, embedder: Embedder, texts: Texts) -> None:
        """Ask what `values` would ask."""
        embedder.embed_queries(texts.questions)
        self._vectors(embedder, texts.passages)

    def _vectors(self, embedder: Embedder, passages: Sequence[str]) -> Vectors:
        parts = []
        for at in range(0, len(passages), STEP):
            parts.append(embedder.embed(passages[at : at + STEP]))
            self._bench.hear(Building("passages embedded", min(at + STEP, len(passages)), len(passages)))
        return np.concatenate(parts)

    def _best(self, questions: Vectors, passages: Vectors, cutoff: int) -> list[list[str]]:
        """The ids of the nearest passages, best first; equal ones in the order of their ids."""
        found = []
        for question in questions:
            scores: Floats = np.einsum("pd,d->p", passages, question).astype(np.float64)
            found.append([self.docs[at] for at in np.argsort(-scores, kind="stable")[:cutoff]])
        return found

    def _changed(self, perturber: Perturber, side: Side, texts: Sequence[str], held: Sequence[list[str]]) -> list[str]:
        place = Place(side, self.language, self._bench.seed)
        renamed = perturber.renamed(self.people.names, place)
        return [perturber.text(text, renamed, names, place) for text, names in zip(texts, held, strict=True)]

    def _chosen(self, most: int) -> list[Passage]:
        """All passages, or those that are judged and some of the others, drawn; sorted by id."""
        qrels = self._bench.judgments.qrels
        judged = {qrels.docs.text(row) for row in range(len(qrels.docs))}
        found = list(every(self._bench.passages))
        if len(found) > most:
            rest = sorted(passage.doc_id for passage in found if passage.doc_id not in judged)
            drawn = generator(self._bench.seed, "names", "passages").permutation(len(rest))
            kept = judged | {rest[at] for at in drawn[: max(0, most - len(judged))]}
            found = [passage for passage in found if passage.doc_id in kept]
        return sorted(found, key=lambda passage: passage.doc_id)


def _of_field(passages: Sequence[Passage], field: str) -> list[str]:
    found = (field_of(passage, field) for passage in passages)
    return [name.strip() for text in found if text for name in text.split(PARTED) if name.strip()]
