"""One of the two golden sets, read once into what a comparison needs of it; texts are kept as hashes.

Questions that both sets judge, with the ids of the new set put into the words of the old one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.artifacts import Passage, Query, RankRecord
from raggs.evaluation.diffs.models import SidePart
from raggs.golden.base import GoldenSet
from raggs.golden.judgments import Judgments
from raggs.golden.lines import LinesGolden
from raggs.golden.opened import open_golden
from raggs.golden.runs import RunGolden
from raggs.runs.manifests.costs import Costs, costs
from raggs.runs.manifests.models import RunManifest

SIZE = 16  # bytes of a text's hash


@dataclass(frozen=True)
class Ranked:
    """The order of one question.

    Attributes:
        docs: best first.
        score, sigma: shape (passages,), of the ranking; sigma is 0 where none was stated.
    """

    docs: tuple[str, ...]
    score: Floats
    sigma: Floats


@dataclass(frozen=True)
class Side:
    """A golden set.

    Attributes:
        part: what it is, for reports.
        judgments: its grades as columns.
        grades: by question, the grade of each passage that has one.
        questions: by id; empty where only labels are known.
        texts: by id, a hash of the content of each passage of the pools; empty where texts are not at hand.
        orders: by question; empty where nothing was ranked.
        top: how many ranks of an order are meant to be sure.
        manifest, costs: of a run; None for files.
    """

    part: SidePart
    judgments: Judgments
    grades: Mapping[str, Mapping[str, int]]
    questions: Mapping[str, Query] = field(default_factory=dict)
    texts: Mapping[str, bytes] = field(default_factory=dict)
    orders: Mapping[str, Ranked] = field(default_factory=dict)
    top: int = 0
    manifest: RunManifest | None = None
    costs: Costs | None = None


def read_side(path: Path) -> Side:
    """Read a run directory, a folder of files, or a file of labels.

    Raises:
        NotFoundError: there is none, or it has no grades yet.
        DataError: it cannot be right.
    """
    golden = open_golden(path)
    judgments = golden.judgments()
    grades = _grades(judgments)
    if not isinstance(golden, RunGolden | LinesGolden):
        questions = {query.qid: query for query in golden.queries()}
        return Side(_part(golden, judgments), judgments, grades, questions)
    side = Side(_part(golden, judgments), judgments, grades, *_contents(golden), golden.top)
    run = golden.run if isinstance(golden, RunGolden) else None
    return side if run is None else replace(side, manifest=run.manifest, costs=costs(run.store))


def _contents(golden: GoldenSet) -> tuple[dict[str, Query], dict[str, bytes], dict[str, Ranked]]:
    questions: dict[str, Query] = {}
    texts: dict[str, bytes] = {}
    orders: dict[str, Ranked] = {}
    for each in golden.by_query("pool", "order"):
        if each.query is not None:
            questions[each.qid] = each.query
        texts.update((passage.doc_id, _hash(passage)) for passage in each.pool)
        if each.order:
            orders[each.qid] = _ranked(each.order)
    return questions, texts, orders


def _ranked(order: tuple[RankRecord, ...]) -> Ranked:
    return Ranked(
        tuple(record.doc_id for record in order),
        np.array([record.score for record in order]),
        np.array([record.sigma for record in order]),
    )


def _hash(passage: Passage) -> bytes:
    return hashlib.blake2b(f"{passage.title}\0{passage.text}".encode(), digest_size=SIZE).digest()


def _grades(judgments: Judgments) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for qid, doc_id, grade in _rows(judgments):
        if grade >= 0:
            found.setdefault(qid, {})[doc_id] = grade
    return found


def _rows(judgments: Judgments) -> Iterator[tuple[str, str, int]]:
    qrels = judgments.qrels
    docs = qrels.docs.take(np.arange(len(qrels.docs))).tolist()
    for query, doc, grade in zip(qrels.query.tolist(), docs, qrels.grade.tolist(), strict=True):
        yield qrels.qids[query], doc.decode(), grade


def _part(golden: GoldenSet, judgments: Judgments) -> SidePart:
    scale = judgments.qrels.scale
    return SidePart(
        source=golden.source,
        name=golden.name,
        queries=len(judgments.qrels.qids),
        judgments=int((judgments.qrels.grade >= 0).sum()),
        lowest=scale.low,
        highest=scale.high,
        relevant=scale.relevant,
        digest=judgments.digest,
        corpus=judgments.origin.corpus,
        lacks=golden.lacks,
    )


@dataclass(frozen=True)
class Pairing:
    """Ids of the new set that mean something of the old one under another id.

    Attributes:
        questions, passages: by new id, the old one, where these differ.
    """

    questions: Mapping[str, str] = field(default_factory=dict)
    passages: Mapping[str, str] = field(default_factory=dict)

    def shared(self, old: Side, new: Side) -> dict[str, str]:
        """By old id, the new one: the questions that both judge, sorted."""
        found = {self.questions.get(qid, qid): qid for qid in new.grades}
        return {qid: found[qid] for qid in sorted(found) if qid in old.grades}

    def grades(self, new: Side, qid: str) -> dict[str, int]:
        """The grades of a question of the new set, by old ids."""
        return {self.passages.get(doc, doc): grade for doc, grade in new.grades[qid].items()}

    def order(self, new: Side, qid: str) -> Ranked | None:
        """The order of a question of the new set, by old ids."""
        found = new.orders.get(qid)
        if found is None or not self.passages:
            return found
        return Ranked(tuple(self.passages.get(doc, doc) for doc in found.docs), found.score, found.sigma)
