"""Documents that change, and a judge that reads only texts: the worlds of `living.py`.

A query has excerpts that answer it. The truth of a passage is a grade by the share of an excerpt that the passage
contains, in runs of five words. Passages without any get grade 1, or grade 2 if they contain most words of the query.
The judge errs on a share of all passages by one grade, and on a tenth of that share by any number of grades. Its
error depends on the query, the text and the seed. An unchanged text gets the same grade again, and an edited text a
new error. Orders are drawn from a Plackett-Luce model over the true grade and a fixed normal deviate of each text.

A history draws documents to change: half of them get other sentences, and the rest are split, merged in pairs or
removed in equal parts. New documents are not in the first version.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from raggs.base.hashing import derive_seed, generator
from raggs.parts.indexes.lexical import words_of
from raggs.parts.judges import grade_of

RUN = 5  # words of the shortest common run
THRESHOLDS = (0.25, 0.5, 0.8)
NEAR = 0.6  # share of the query's words from which a passage without an excerpt has grade 2
WILD = 10  # one of so many errors may be any grade
SECTION = 1500  # minimum characters of a section of a long document
SENTENCE = re.compile(r"(?<=[.!?])\s+")
REPLACED = (1, 3)  # sentences that an edit replaces, inserts or deletes


@dataclass(frozen=True)
class World:
    """Documents by name, queries by id, and for each query its excerpts with the grade of a complete one."""

    documents: Mapping[str, str]
    queries: Mapping[str, str]
    excerpts: Mapping[str, Sequence[tuple[str, int]]]


def sentences(text: str) -> list[str]:
    return [each for each in SENTENCE.split(text) if each.strip()]


def sections(name: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the sections of a document, each of whole sentences."""
    held: list[str] = []
    number = 0
    for sentence in sentences(text):
        held.append(sentence)
        if sum(map(len, held)) >= SECTION:
            yield f"{name}-{number:04}", " ".join(held)
            held, number = [], number + 1
    if held:
        yield f"{name}-{number:04}", " ".join(held)


def chunking_world(folder: Path, corpora: Sequence[str], most: int, seed: int) -> World:
    """Return the corpora of the chunking data as sections, with `most` of their questions."""
    documents = dict(
        each for name in corpora for each in sections(name, (folder / "corpora" / f"{name}.md").read_text())
    )
    with (folder / "questions.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["corpus_id"] in corpora]
    chosen = sorted(generator(seed, "questions").permutation(len(rows))[:most].tolist())
    queries, excerpts = {}, {}
    for number in chosen:
        qid = f"q{number:04}"
        queries[qid] = rows[number]["question"]
        excerpts[qid] = [(each["content"], 5) for each in json.loads(rows[number]["references"])]
    return World(documents, queries, excerpts)


def cranfield_world(folder: Path, most: int, seed: int) -> World:
    """Return Cranfield with `most` queries. The excerpt of a relevant abstract is its two best sentences."""
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    documents = {row["_id"]: f"{row['title']} . {row['text']}".replace(" . ", ". ") for row in rows}
    asked = {row["_id"]: row["text"] for row in map(json.loads, (folder / "queries.jsonl").read_text().splitlines())}
    labels: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.trec").read_text().splitlines():
        qid, _, doc_id, grade = line.split()
        labels.setdefault(qid, {})[doc_id] = int(grade)
    names = sorted(labels)
    chosen = sorted(names[number] for number in generator(seed, "questions").permutation(len(names))[:most].tolist())
    excerpts = {}
    for qid in chosen:
        words = set(words_of(asked[qid], "en"))
        excerpts[qid] = [
            (best_sentences(documents[doc_id], words), grade)
            for doc_id, grade in sorted(labels[qid].items())
            if grade > 1 and doc_id in documents
        ]
    return World(documents, {qid: asked[qid] for qid in chosen}, excerpts)


def best_sentences(text: str, words: set[str], count: int = 2) -> str:
    """Return the sentences with the most words of a query, in their order."""
    every = sentences(text)
    best = sorted(range(len(every)), key=lambda place: (-len(words & set(words_of(every[place], "en"))), place))[:count]
    return " ".join(every[place] for place in sorted(best))


def runs_of(text: str) -> set[tuple[str, ...]]:
    """Return all runs of `RUN` words; the whole text if it is shorter."""
    words = text.casefold().split()
    return {tuple(words[at : at + RUN]) for at in range(max(1, len(words) - RUN + 1))} if words else set()


@dataclass
class Judge:
    """The judge of a world. `noise` is the share of wrong grades, `beta` the sharpness of orders."""

    world: World
    seed: int
    noise: float = 0.2
    beta: float = 3.0
    spread: float = 0.35
    calls: dict[str, int] = field(default_factory=lambda: {"grade": 0, "order": 0})

    @cached_property
    def _asked(self) -> dict[str, str]:
        return {text: qid for qid, text in self.world.queries.items()}

    @cached_property
    def _runs(self) -> dict[str, list[tuple[set[tuple[str, ...]], int]]]:
        return {qid: [(runs_of(text), most) for text, most in each] for qid, each in self.world.excerpts.items()}

    @cached_property
    def _words(self) -> dict[str, set[str]]:
        return {qid: set(words_of(text, "en")) for qid, text in self.world.queries.items()}

    def truth(self, qid: str, text: str) -> int:
        """Return the grade without errors."""
        found = runs_of(text)
        best = 1
        for runs, most in self._runs[qid]:
            share = len(runs & found) / max(1, len(runs))
            best = max(best, min(most, grade_of(share, THRESHOLDS)) if share else 1)
        words = self._words[qid]
        if best == 1 and len(words & set(words_of(text, "en"))) >= NEAR * max(1, len(words)):
            return 2
        return best

    def graded(self, qid: str, text: str, seed: int | None = None) -> int:
        """Return the judge's grade; `seed`: of a judge that errs independently."""
        rng = generator(self.seed if seed is None else seed, "grade", qid, text)
        grade, draw = self.truth(qid, text), rng.random()
        if draw < self.noise / WILD:
            return int(rng.integers(1, 6))
        if draw < self.noise:
            return int(np.clip(grade + rng.choice((-1, 1)), 1, 5))
        return grade

    def grade(self, query: str, passage: str) -> int:
        self.calls["grade"] += 1
        return self.graded(self._asked[query], passage)

    def utility(self, qid: str, text: str) -> float:
        """Return the true utility: the true grade plus a fixed normal deviate."""
        return self.truth(qid, text) + self.spread * float(generator(0, "utility", qid, text).standard_normal())

    def order(self, query: str, passages: Sequence[str]) -> list[int]:
        self.calls["order"] += 1
        qid = self._asked[query]
        utility = np.array([self.utility(qid, text) for text in passages])
        rng = np.random.default_rng(derive_seed(self.seed, "order", qid, *passages))
        drawn = self.beta * utility + rng.gumbel(size=len(passages))
        return [int(place) for place in np.argsort(-drawn)]


@dataclass(frozen=True)
class History:
    """Two versions of the documents of a world. `changed`: number of documents by kind of change."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    changed: Mapping[str, int]


def change(world: World, churn: float, added: float, seed: int) -> History:
    """Draw a history.

    Args:
        churn: share of documents that are edited, split, merged or removed.
        added: number of documents that are added, as a share of those of the first version.
    """
    rng = generator(seed, "history", churn)
    names = sorted(world.documents)
    rng.shuffle(names)
    new = round(added * len(names) / (1 + added))
    fresh, old = names[:new], sorted(names[new:])
    after = {name: world.documents[name] for name in old}
    drawn = rng.permutation(old)[: round(churn * len(old))].tolist()
    half, third = len(drawn) // 2, (len(drawn) - len(drawn) // 2) // 3
    edited, split = drawn[:half], drawn[half : half + third]
    merged, removed = drawn[half + third : half + 2 * third], drawn[half + 2 * third :]
    pool = [each for name in names for each in sentences(world.documents[name])[:3]]
    for name in edited:
        after[name] = edit(after[name], pool, rng)
    for name in split:
        parts = sentences(after.pop(name))
        at = int(rng.integers(1, max(2, len(parts))))
        after |= {f"{name}.a": " ".join(parts[:at]), f"{name}.b": " ".join(parts[at:]) or parts[0]}
    for one, other in list(pairwise(merged))[::2]:
        after[f"{one}+{other}"] = f"{after.pop(one)} {after.pop(other)}"
    for name in removed:
        del after[name]
    after |= {name: world.documents[name] for name in fresh}
    counts = {"edited": half, "split": third, "merged": third, "removed": len(removed), "added": new}
    return History({name: world.documents[name] for name in old}, after, counts)


def edit(text: str, pool: Sequence[str], rng: np.random.Generator) -> str:
    """Return the text with some consecutive sentences replaced, deleted, or new ones inserted."""
    held = sentences(text)
    count, at = int(rng.integers(REPLACED[0], REPLACED[1] + 1)), int(rng.integers(0, max(1, len(held))))
    new = [pool[int(number)] for number in rng.integers(0, len(pool), count)]
    kind = rng.integers(3)
    if kind == 0:
        held[at : at + count] = new
    elif kind == 1 and len(held) > count:
        del held[at : at + count]
    else:
        held[at:at] = new
    return " ".join(held)


CURRENT: list[Judge] = []  # judge of the current history; raggs calls it through the functions below


def grade(query: str, passage: str) -> int:
    return CURRENT[0].grade(query, passage)


def order(query: str, passages: Sequence[str]) -> list[int]:
    return CURRENT[0].order(query, passages)
