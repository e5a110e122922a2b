"""Measure whether golden sets that are projected to other chunks preserve grades and the order of systems.

    python benchmarks/projection.py FOLDER [--noise 0.2] [--draws 200]

FOLDER has the data of Chroma's report on chunking: `corpora/*.md` and `questions.csv`. The chunker is `recursive`
with 100, 200 and 400 tokens of cl100k. The judge uses the share of the best excerpt that a passage contains. It is 1
for none of it, and grades 3, 4 and 5 begin at 25, 50 and 80%. It errs by one grade on a share of the passages, and
gives a random grade to another tenth of that share. A golden set has the best 20 passages of BM25 and of WordLlama.

Each golden set is projected to other chunks by each rule, and compared with the set that was judged on those chunks.
The tables contain the quadratically weighted kappa of the passages with both grades, and the mean difference of their
grades. They also contain Kendall's tau-b of the orders of eight systems by each metric at 10, with the mean
difference of their scores. `across` orders the systems of all chunk sizes and compares with the excerpts' recall and
precision. Standard errors come from a bootstrap over queries.

All random numbers depend on `--seed`. The tables are in results/projection.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import bm25s
import numpy as np
from chunks import Data, columns

from raggs.base.arrays import Flags, Floats, Ints
from raggs.base.artifacts import Passage, Span
from raggs.base.hashing import generator
from raggs.chunking.documents import chunk_documents
from raggs.golden.judgments import Judgments
from raggs.golden.places import JudgedPlaces, JudgedText, Projection, project_onto
from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.evaluate import measure_hits
from raggs.metrics.hits import find_hits
from raggs.metrics.names import parse_measures
from raggs.metrics.spans import UNJUDGED_GRADE, ChunkTargets, LengthScale, ProjectionRule, SpanIndex, score
from raggs.parts.chunkers.recursive import RecursiveChunker
from raggs.parts.embedders.wordllama import WordLlamaEmbedder
from raggs.parts.judges import grade_of
from raggs.ranking.fusion import fuse, make_fusion
from raggs.stats.order_agreement import kendall_tau_b

DEPTH, POOL, K = 50, 20, 10
WILD = 10  # one random grade is added to so many errors by one grade
THRESHOLDS = (0.25, 0.5, 0.8)
MEASURES = ("ra_nwg@10", "n_recall4@10", "ndcg@10", "span_recall4@10", "span_precision4@10")
RULES = {
    "cover 0.5": ProjectionRule(),
    "cover 0.8": ProjectionRule(least=0.8),
    "cover 0.3": ProjectionRule(least=0.3),
    "share 0.5": ProjectionRule("share"),
    "share 0.25": ProjectionRule("share", least=0.25),
    "mean": ProjectionRule("mean"),
    "max": ProjectionRule("max"),
    "cover 0.5, no holes": ProjectionRule(known=0.0),
    "cover 0.5, holes for any grade": ProjectionRule(proof=6),
    "cover 0.5, at least 0.8 judged": ProjectionRule(known=0.8),
}
TRUE = {"span_recall4@10": "recall", "span_precision4@10": "precision"}  # metrics of the excerpts
Lists = list[list[tuple[str, float]]]


@dataclass(frozen=True)
class Chunking:
    """The chunks of one setting, the judge's grade of each chunk, and the runs of eight systems."""

    name: str
    passages: tuple[Passage, ...]
    grades: Ints
    systems: Mapping[str, Run]
    target: ChunkTargets

    @cached_property
    def truth(self) -> dict[str, Floats]:
        """Recall and precision of the excerpts at 10, each of shape (systems, queries)."""
        found = [score(self.target, self.retrieved(run), K).values for run in self.systems.values()]
        return {name: np.stack([each[name] for each in found]) for name in ("recall", "precision")}

    def retrieved(self, run: Run) -> Ints:
        """Return the rows of the best passages, shape (queries, K)."""
        rows = np.array([int(each) for each in run.docs.take(np.arange(len(run.docs))).tolist()])
        place = np.arange(len(rows)) - np.searchsorted(run.query, run.query)
        best = np.full((len(self.grades), K), -1, dtype=np.int64)
        best[run.query[place < K], place[place < K]] = rows[place < K]
        return best

    @cached_property
    def pool(self) -> Flags:
        """Whether a passage is among the best 20 of BM25 or WordLlama, shape (queries, passages)."""
        found = np.zeros(self.grades.shape, dtype=bool)
        for name in ("bm25", "dense 256"):
            run = self.systems[name]
            rows = np.array([int(each) for each in run.docs.take(np.arange(len(run.docs))).tolist()])
            place = np.arange(len(rows)) - np.searchsorted(run.query, run.query)
            found[run.query[place < POOL], rows[place < POOL]] = True
        return found

    def golden(self, qids: Sequence[str]) -> JudgedPlaces:
        """Return the golden set that is judged on these chunks."""
        query, passage = np.nonzero(self.pool)
        canvas = JudgedText(self.name)
        for row in np.unique(passage).tolist():
            canvas.paint(self.passages[row])
        grade = self.grades[query, passage]
        labels = [str(row) for row in passage.tolist()]
        qrels = Qrels.from_columns([qids[row] for row in query.tolist()], labels, grade, GradeScale.of(1, 5))
        spans = tuple(span for row in passage.tolist() if (span := self.passages[row].span))
        return JudgedPlaces(Judgments(self.name, qrels), query, grade, spans, canvas)

    def projected(self, places: JudgedPlaces, rule: ProjectionRule) -> Projection:
        """Project a golden set to these chunks."""
        return project_onto(places, self.passages, self.name, self.name, rule)


def chunking_of(data: Data, seed: int, noise: float, size: int, overlap: int = 0) -> Chunking:
    """Chunk the documents, judge the chunks and retrieve them."""
    name = f"{size}" + (f"/{overlap}" if overlap else "")
    found = chunk_documents(RecursiveChunker(RecursiveChunker.Config(size=size, overlap=overlap)), data.documents)
    rows = zip(found.texts, *(each.tolist() for each in columns(found.spans)), strict=True)
    passages = tuple(
        Passage(doc_id=str(row), text=text, span=Span(source=data.documents.names[document], start=start, end=end))
        for row, (text, document, start, end) in enumerate(rows)
    )
    line, references = data.line, data.asked.questions.references
    index = SpanIndex(line.starts(found.spans), line.ends(found.spans))
    reference, passage = index.overlapping(line.starts(references), line.ends(references))
    both = np.minimum(references.end[reference], found.spans.end[passage])
    both = both - np.maximum(references.start[reference], found.spans.start[passage])
    share = np.zeros((data.asked.questions.count, len(passages)))
    length = (references.end - references.start)[reference]
    np.maximum.at(share, (data.asked.questions.question[reference], passage), both / length)
    plain = np.vectorize(lambda each: grade_of(each, THRESHOLDS))(share)
    draw, wild = generator(seed, "judge", name), generator(seed, "wild", name)
    off = np.where(draw.random(plain.shape) < noise, draw.choice([-1, 1], size=plain.shape), 0)
    grades = np.where(
        wild.random(plain.shape) < noise / WILD, wild.integers(1, 6, plain.shape), np.clip(plain + off, 1, 5)
    )
    target = ChunkTargets(data.asked.questions, found.spans, line, LengthScale.characters())
    return Chunking(name, passages, grades, dict(systems(data.asked.texts, found.texts)), target)


def systems(questions: Sequence[str], texts: Sequence[str]) -> Iterator[tuple[str, Run]]:
    """Yield eight systems: two with BM25, three with vectors, three with a fusion of both."""
    lists: dict[str, Lists] = {}
    for name, k1, b in (("bm25", 1.5, 0.75), ("bm25 k1=.6 b=0", 0.6, 0.0)):
        index = bm25s.BM25(k1=k1, b=b)
        index.index(bm25s.tokenize(list(texts), stopwords="en", show_progress=False), show_progress=False)
        asked = bm25s.tokenize(list(questions), stopwords="en", show_progress=False)
        rows, scores = index.retrieve(asked, k=DEPTH, show_progress=False)
        lists[name] = [ranked(*each) for each in zip(rows, scores, strict=True)]
    embedder = WordLlamaEmbedder(WordLlamaEmbedder.Config(dims=256))
    passages, asked_ = embedder.embed(list(texts)), embedder.embed(list(questions))
    for dims in (256, 128, 64):
        own, theirs = asked_[:, :dims], passages[:, :dims]
        scores = own @ (theirs / np.linalg.norm(theirs, axis=1, keepdims=True)).T
        best = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
        lists[f"dense {dims}"] = [ranked(rows, scores[query, rows]) for query, rows in enumerate(best)]
    for name, dense, weight in (("rrf 256", "256", 1.0), ("rrf 64", "64", 1.0), ("rrf words", "256", 3.0)):
        lists[name] = [
            fused(one, other, weight) for one, other in zip(lists["bm25"], lists[f"dense {dense}"], strict=True)
        ]
    for name, found in lists.items():
        yield name, Run.of({f"q{query:03d}": dict(each) for query, each in enumerate(found)})


def ranked(rows: Ints, scores: Floats) -> list[tuple[str, float]]:
    return [(str(row), float(score)) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]


def fused(words: list[tuple[str, float]], vectors: list[tuple[str, float]], weight: float) -> list[tuple[str, float]]:
    found = fuse({"words": words, "vectors": vectors}, make_fusion("rrf"), weights={"words": weight}, depth=DEPTH)
    return [(each.doc_id, each.score) for each in found]


def values(chunking: Chunking, projection: Projection) -> dict[str, Floats]:
    """Return the scores by metric, each of shape (systems, queries)."""
    rows = []
    for name, run in chunking.systems.items():
        hits = find_hits(projection.judgments.qrels, run)
        hits = replace(hits, reading=projection.reading(run, "trec", name))
        rows.append(measure_hits(hits, parse_measures(MEASURES)).values)
    stacked = np.stack(rows, axis=1)
    return {name: stacked[number] for number, name in enumerate(MEASURES)}


def tau(one: Floats, other: Floats, weights: Floats) -> float:
    """Return tau-b of the orders of systems by their means, with `weights` of the queries."""
    means = [np.nansum(side * weights, axis=1) / (np.isfinite(side) * weights).sum(axis=1) for side in (one, other)]
    return kendall_tau_b(*({str(row): float(value) for row, value in enumerate(each)} for each in means))


def kappa(tables: Ints) -> float:
    """Return the quadratically weighted kappa of a table of counts."""
    costs = (np.arange(5)[:, None] - np.arange(5)) ** 2
    expected = np.outer(tables.sum(axis=1), tables.sum(axis=0)) / tables.sum()
    return float(1 - (costs * tables).sum() / (costs * expected).sum())


@dataclass(frozen=True)
class Compared:
    """Counts of the grade pairs of both sets by query, and shares of passages without and with a projected grade."""

    tables: Ints
    holes: float
    known: float

    @classmethod
    def of(cls, projection: Projection, direct: Ints, pool: Flags) -> Compared:
        found = projection.projected
        mine = pool[found.query, found.passage]
        graded = found.grade != UNJUDGED_GRADE
        query, passage = found.query[graded & mine], found.passage[graded & mine]
        tables = np.zeros((len(pool), 5, 5), dtype=np.int64)
        np.add.at(tables, (query, found.grade[graded & mine] - 1, direct[query, passage] - 1), 1)
        reached = int(pool.sum())
        return cls(tables, 1 - len(query) / reached, len(query) / reached)

    @property
    def bias(self) -> float:
        """Mean of the projected minus the judged grade."""
        counts, grades = self.tables.sum(axis=0), np.arange(5)
        return float(((grades[:, None] - grades) * counts).sum() / counts.sum())


def row(name: str, projection: Projection, target: Chunking, direct: Mapping[str, Floats], draws: Floats) -> str:
    """Return a row of the table."""
    both = Compared.of(projection, target.grades, target.pool)
    found = values(target, projection)
    spread = np.std([kappa(np.tensordot(each, both.tables, 1)) for each in draws])
    cells = [f"{kappa(both.tables.sum(axis=0)):.3f} ± {spread:.3f}", f"{both.bias:+.2f}", f"{both.holes:.0%}"]
    for measure in MEASURES:
        plain = tau(found[measure], direct[measure], np.ones(draws.shape[1]))
        spread = np.std([tau(found[measure], direct[measure], each) for each in draws])
        off = np.abs(np.nanmean(found[measure], axis=1) - np.nanmean(direct[measure], axis=1)).mean()
        cells.append(f"{plain:.2f} ± {spread:.2f} ({off:.3f})")
    for measure, true in TRUE.items():
        cells.append(f"{tau(found[measure], target.truth[true], np.ones(draws.shape[1])):.2f}")
    return f"| {name} | {' | '.join(cells)} |"


def across(source: Chunking, cuts: Sequence[Chunking], draws: Floats, rules: Mapping[str, ProjectionRule]) -> None:
    """Print tau of the order of all systems with all chunks and the order by the excerpts' recall and precision."""
    qids = [f"q{query:03d}" for query in range(len(source.grades))]
    places = source.golden(qids)
    print(f"\n### {source.name} to {', '.join(each.name for each in cuts)}: {8 * len(cuts)} systems in one order\n")
    print("| rule | " + " | ".join(f"{name} by {true}" for name in MEASURES for true in ("recall", "precision")) + " |")
    print("|" + "---|" * (1 + 2 * len(MEASURES)))
    truth = {true: np.concatenate([each.truth[true] for each in cuts]) for true in ("recall", "precision")}
    for name, rule in rules.items():
        found = [values(each, each.projected(places, rule)) for each in cuts]
        cells = []
        for measure in MEASURES:
            joined = np.concatenate([each[measure] for each in found])
            for true in truth.values():
                spread = np.std([tau(joined, true, each) for each in draws])
                cells.append(f"{tau(joined, true, np.ones(draws.shape[1])):.2f} ± {spread:.2f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def report(
    source: Chunking,
    target: Chunking,
    draws: Floats,
    rules: Mapping[str, ProjectionRule],
    other: Chunking | None = None,
) -> None:
    """Print the table of one projection."""
    qids = [f"q{query:03d}" for query in range(len(source.grades))]
    places, own = source.golden(qids), target.projected(target.golden(qids), ProjectionRule())
    direct = values(target, own)
    print(f"\n### {source.name} to {target.name}\n")
    print(f"| rule | kappa | bias | not graded | {' | '.join(MEASURES)} | {' | '.join(TRUE.values())} |")
    print("|" + "---|" * (4 + len(MEASURES) + len(TRUE)))
    if other is not None:
        print(row("judged again", other.projected(other.golden(qids), ProjectionRule()), target, direct, draws))
    for name, rule in rules.items():
        print(row(name, target.projected(places, rule), target, direct, draws), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--noise", type=float, default=0.2, help="share of passages with an error of one grade")
    parser.add_argument("--draws", type=int, default=200, help="resamples of the queries")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    data = Data.of(given.folder)
    count = data.asked.questions.count
    draws = generator(given.seed, "questions").multinomial(count, np.full(count, 1 / count), size=given.draws)
    draws = draws.astype(np.float64)
    cuts = {size: chunking_of(data, given.seed, given.noise, size) for size in (100, 200, 400)}
    for size in (400, 100):
        again = chunking_of(data, given.seed + 1, given.noise, size)
        report(cuts[200], cuts[size], draws, RULES, again)
    several = [cuts[size] for size in (100, 200, 400)]
    report(cuts[100], cuts[200], draws, {"cover 0.5": ProjectionRule()})
    report(cuts[100], cuts[400], draws, {"cover 0.5": ProjectionRule()})
    for size in (100, 200, 400):
        across(cuts[size], several, draws, {name: RULES[name] for name in ("cover 0.5", "mean", "max")})
    for overlap in (50, 100):
        windows = chunking_of(data, given.seed, given.noise, 200, overlap=overlap)
        some = {"highest": ProjectionRule(overlap="highest"), "lowest": ProjectionRule()}
        for size in (400, 100):
            report(windows, cuts[size], draws, some)
        across(windows, several, draws, some)


if __name__ == "__main__":
    main()
