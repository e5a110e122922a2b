"""Findings and measurements of the diagnosis `precision`. Measures are in 0 to 1; an undefined number is null.

Ranked lists with scores at each precision come from dense retrieval, rerankers or run files. The rows of a list are in
the order of the corpus, or of the lines of the file. The "oblivious" score is computed with equal scores in this order.
A list of dense retrieval contains the best passages, and all others that tie with the last of them. A reranker's list
contains all its candidates. The mean of each measure is computed at every cutoff. Values per query are computed at
one cutoff.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import Field

from raggs.base.arrays import Dtype, Floats, Vectors
from raggs.base.document import Column, score
from raggs.base.errors import DataError
from raggs.base.hashing import hash_bytes
from raggs.base.languages import detect_language
from raggs.base.precision import PrecisionSettings
from raggs.base.text import clean_unicode, one_line, plural
from raggs.base.types import Number, finite_or_none
from raggs.diagnosis.base import Bench, DiagnosisFindings
from raggs.evaluation.models import ReportPart
from raggs.evaluation.study import foreign_lists_warning
from raggs.golden.judgments import Judgments
from raggs.golden.sources import NamedSystem
from raggs.metrics.columns import IdColumn, Qrels, Run
from raggs.metrics.hits import Hits, find_hits
from raggs.metrics.names import parse_measure
from raggs.parts.embedders import Embedder
from raggs.parts.indexes.passages import PassageStore
from raggs.parts.rerankers import Reranker, Reranking
from raggs.stats.comparison import holm
from raggs.stats.intervals import bootstrap_mean, bootstrap_means
from raggs.stats.score_precision import (
    REGIMES,
    PrecisionRegime,
    ScoreForm,
    TieSpread,
    TieSpreads,
    activated,
    best_with_ties,
    largest_tie,
    products,
    reversals,
    signs,
)


class CurvePart(ReportPart):
    """A measure at every cutoff, starting at 1, as the mean over the queries."""

    measure: str
    oblivious: tuple[Number, ...] = Field(description="score with ties in the order of the file")
    expected: tuple[Number, ...] = Field(description="mean over all orders of ties")
    least: tuple[Number, ...]
    most: tuple[Number, ...]


class TiedPart(ReportPart):
    """A measure at the selected cutoff, as the mean over the queries, with 95% intervals."""

    measure: Annotated[str, Column("measure")]
    oblivious: Annotated[Number, Column("file order", "score")]
    expected: Annotated[Number, Column("expected", "score")]
    least: Number
    most: Number
    range: Annotated[Number, Column("range, points", "points", bounds=("range_low", "range_high"), scale=100)] = Field(
        description="maximum minus minimum over all orders of ties"
    )
    range_low: Number
    range_high: Number
    across: Annotated[Number, Column("at k", "points", scale=100)] = Field(
        description="range over the orders of the one tie group at the cutoff"
    )
    bias: Annotated[Number, Column("bias, points", "points", bounds=("bias_low", "bias_high"), scale=100)] = Field(
        description="score in file order minus expected score"
    )
    bias_low: Number
    bias_high: Number
    moved: Annotated[int, Column("questions")] = Field(description="queries whose value depends on the order of ties")
    up: int = Field(description="queries that score higher in file order")
    down: int
    p: float = Field(description="p-value of the two-sided sign test")

    @property
    def ends(self) -> Annotated[str, Column("minimum to maximum")]:
        """Range of the measure over the orders of equal scores."""
        return f"{score(self.least)} to {score(self.most)}"


class PrecisionSystemPart(ReportPart):
    """One system at one precision."""

    name: Annotated[str, Column("system")]
    form: ScoreForm = Field(
        description="function that computes the score; score: it is unknown, so the given score is rounded"
    )
    dtype: Dtype
    hps: bool = Field(description="whether the last step is in float32 without rounding (HPS)")
    configured: bool = Field(description="whether this is the configured precision")
    sorted: bool = Field(
        description="whether the file is sorted by score (then its order is explained by the scores, not by labels)"
    )
    largest: int = Field(description="size of the largest group of equal scores")
    curves: tuple[CurvePart, ...]
    at: tuple[TiedPart, ...]

    @property
    def precision(self) -> Annotated[str, Column("precision")]:
        """Precision, such as ``bf16+HPS``."""
        return PrecisionRegime(self.dtype, self.hps).name

    @property
    def label(self) -> str:
        """Name and precision of the system."""
        return f"{self.name}, {self.precision}"


class ReversalPart(ReportPart):
    """Two systems whose order by score in file order is the reverse of their order by expected score."""

    first: Annotated[str, Column("better in file order")] = Field(description="better system in file order")
    second: Annotated[str, Column("better on average")] = Field(description="better system on average over tie orders")
    precision: Annotated[str, Column("precision")]
    measure: Annotated[str, Column("measure")]
    oblivious: Annotated[float, Column("file order", "points", scale=100)] = Field(
        description="first minus second, scored in file order"
    )
    expected: Annotated[float, Column("expected", "points", bounds=("low", "high"), scale=100)] = Field(
        description="first minus second, by expected scores"
    )
    low: Number = Field(description="bound of the 95% interval of the expected difference")
    high: Number
    hps: Annotated[Number, Column("HPS", "points", scale=100)] = Field(
        description="first minus second, by expected scores with high-precision scoring (HPS); null if not measured"
    )


class LeakPart(ReportPart):
    """Bias of a measure through the order of ties in the file, for one system and precision."""

    system: Annotated[str, Column("system")]
    precision: Annotated[str, Column("precision")]
    measure: Annotated[str, Column("measure")]
    bias: Annotated[Number, Column("bias, points", "points", scale=100)]
    up: Annotated[int, Column("queries up")]
    down: Annotated[int, Column("queries down")]
    p: Annotated[float, Column("p (signs, Holm)", "score")] = Field(
        description="p-value with Holm correction over all rows"
    )


class PrecisionFindings(DiagnosisFindings):
    """Findings of the diagnosis `precision`."""

    cutoff: int
    queries: int
    systems: tuple[PrecisionSystemPart, ...]
    reversals: tuple[ReversalPart, ...]
    leaks: tuple[LeakPart, ...] = Field(
        description="biases at every low precision without HPS; files that are sorted by score are omitted"
    )
    favours: int = Field(
        description="effect of the file order on ties: 1 if relevant passages come first, -1 if they come last, 0 if "
        "there is no significant effect"
    )


class PrecisionRow(ReportPart):
    """A system at one precision, with the values that reversals are computed from, as stored."""

    part: PrecisionSystemPart
    oblivious: tuple[tuple[Number, ...], ...] = Field(description="scores with ties in file order, by metric and query")
    expected: tuple[tuple[Number, ...], ...]


QUERIES = 64  # queries processed at a time
PASSAGES = 65_536


@dataclass(frozen=True)
class PrecisionLists:
    """A system's lists at one precision.

    Attributes:
        form: function that computes the score from the model's output.
        regime: the precision.
        run: the lists, rows in the order of the corpus or the file.
        largest: size of the largest group of equal scores.
        sorted: whether the rows of the file are sorted by score.
    """

    form: ScoreForm
    regime: PrecisionRegime
    run: Run
    largest: int
    sorted: bool = False


@dataclass(frozen=True)
class JudgedQueries:
    """The judged queries, their languages, and the passages to search."""

    texts: Mapping[str, str]
    languages: Mapping[str, str]
    store: PassageStore
    ids: Sequence[str]


def asked_of(bench: Bench) -> JudgedQueries:
    """Return the judged queries of the golden set, without rewriting, and the passages of its corpus.

    Raises:
        RaggsError: no query is judged, or the corpus is not local.
    """
    store = bench.store("--run FILE")
    judged = set(bench.judgments.qrels.qids)
    queries = {qid: query for qid, query in bench.queries.items() if qid in judged}
    if not queries:
        raise DataError("none of the queries has labels", remedy="use the same ids in queries and labels")
    texts = {qid: one_line(clean_unicode(query.text)) for qid, query in queries.items()}
    spoken = {qid: query.language or detect_language(query.text) for qid, query in queries.items()}
    return JudgedQueries(texts, spoken, store, store.ids())


# --- dense retrieval -------------------------------------------------------------------------------------------


def dense(bench: Bench, embedder: Embedder, asked: JudgedQueries, depth: int) -> Iterator[PrecisionLists]:
    """Yield the lists of dense retrieval at each precision.

    Raises:
        DataError: the embedder returns no vector for any query.
    """
    matrix = bench.workspace.vectors(asked.store, embedder).vectors
    questions = embedder.embed_queries(list(asked.texts.values()))
    if not questions.any():
        said = f"the embedder returns no vector for any of {plural(len(questions), 'query')}"
        raise DataError(said, remedy="pass another --embedder, or queries in a language that it knows")
    for regime in REGIMES:
        rows = _rows(questions, matrix, regime, depth)
        yield _listed("product", regime, asked, [([asked.ids[at] for at in each.tolist()], own) for each, own in rows])


def _rows(
    questions: Vectors, matrix: Vectors, regime: PrecisionRegime, depth: int
) -> Iterator[tuple[np.ndarray, Vectors]]:
    """Yield positions and scores of each query's list; the list is empty if the query's vector is zero."""
    for start in range(0, len(questions), QUERIES):
        some = questions[start : start + QUERIES]
        scores = np.empty((len(some), len(matrix)), dtype=np.float32)
        for first in range(0, len(matrix), PASSAGES):
            block = slice(first, first + PASSAGES)
            scores[:, block] = products(some, np.asarray(matrix[block]), regime)
        for vector, row in zip(some, scores, strict=True):
            places = best_with_ties(row, depth) if vector.any() else np.empty(0, dtype=np.int64)
            yield places, row[places]


# --- rerankers -------------------------------------------------------------------------------------------------


def reranked(
    bench: Bench, reranker: Reranker, embedder: Embedder, asked: JudgedQueries, candidates: int
) -> Iterator[PrecisionLists]:
    """Yield a reranker's lists of the best candidates of dense retrieval, at each precision.

    The reranker's output determines what is rounded: two logits per passage (softmax), one logit (sigmoid), or only
    scores.
    """
    matrix = bench.workspace.vectors(asked.store, embedder).vectors
    questions = embedder.embed_queries(list(asked.texts.values()))
    found: list[tuple[list[str], Vectors]] = []
    form: ScoreForm = "score"
    for qid, vector in zip(asked.texts, questions, strict=True):
        nearest = np.argsort(-(matrix @ vector), kind="stable")[:candidates]
        ids = [asked.ids[place] for place in np.sort(nearest).tolist()]
        passages = list(asked.store.get(ids).values())
        told = bench.workspace.loop.run(reranker.rerank(asked.texts[qid], asked.languages[qid], passages))
        form, numbers = numbers_of(told, ids)
        found.append((ids, numbers))
    for regime in regimes_of(form):
        yield _listed(form, regime, asked, [(ids, activated(form, numbers, regime)) for ids, numbers in found])


def numbers_of(found: Reranking, ids: Sequence[str]) -> tuple[ScoreForm, Vectors]:
    """Return the function that computes the score, and the model's output for each passage in the order of `ids`.

    If the score is the logit itself, no function is applied, so HPS has no effect. The output then counts as a plain
    score.
    """
    each = {one.doc_id: one for one in found.ranked}
    ordered = [each[doc_id] for doc_id in ids]
    if ordered and all(len(one.numbers) == 2 for one in ordered):
        return "softmax", np.array([one.numbers for one in ordered], dtype=np.float32)
    if ordered and all(one.logit not in (None, one.score) for one in ordered):
        return "sigmoid", np.array([one.logit for one in ordered], dtype=np.float32)
    return "score", np.array([one.score for one in ordered], dtype=np.float32)


# --- files -----------------------------------------------------------------------------------------------------


def lists_of_file(system: NamedSystem, form: ScoreForm, numbers: Vectors) -> Iterator[PrecisionLists]:
    """Yield the lists of a run file at each precision.

    HPS applies only to logits, since it is unknown how other scores were computed.

    Args:
        system: the lists.
        form: function that computes the score.
        numbers: for each row of the file, a score, a logit, or two logits.
    """
    for regime in regimes_of(form):
        run = replace(system.run, score=activated(form, numbers, regime).astype(np.float64))
        largest = max((largest_tie(run.score[run.query == query]) for query in range(len(run.qids))), default=0)
        same = run.query[1:] == run.query[:-1]
        falls = not bool((system.run.score[1:][same] > system.run.score[:-1][same]).any())
        yield PrecisionLists(form, regime, run, largest, falls)


def check_queries_known(system: NamedSystem, judgments: Judgments) -> None:
    """Check that the lists are for the judged queries and passages.

    Raises:
        DataError: none of the queries is judged, or hardly any list contains a judged passage.
    """
    if not set(system.run.qids) & set(judgments.qrels.qids):
        raise DataError(
            f"has no query in common with {judgments.source}",
            where=system.source,
            remedy="use the same ids in lists and labels",
        )
    if said := foreign_lists_warning(judgments.source, system.name, find_hits(judgments.qrels, system.run)):
        raise DataError(
            said, where=system.source, remedy="pass run files over the golden set's corpus: --run NAME=FILE"
        )


def content_of(system: NamedSystem, numbers: Vectors) -> str:
    """Return a hash of the lists that does not depend on the file's name or format.

    If there are two numbers per row, `numbers` are included.
    """
    run = system.run
    parts = ["\0".join(run.qids).encode(), run.query.astype("<i8").tobytes(), run.score.astype("<f8").tobytes()]
    parts += [numbers.astype("<f4").tobytes()] if numbers.ndim > 1 else []
    return hash_bytes(b"\0".join([*parts, run.docs.lasting_keys().tobytes()]))


def regimes_of(form: ScoreForm) -> tuple[PrecisionRegime, ...]:
    """Return the precisions that apply to scores of a form. HPS does not apply to plain scores."""
    return tuple(regime for regime in REGIMES if not (form == "score" and regime.hps))


def _listed(
    form: ScoreForm, regime: PrecisionRegime, asked: JudgedQueries, lists: Sequence[tuple[Sequence[str], Vectors]]
) -> PrecisionLists:
    sizes = [len(ids) for ids, _ in lists]
    scores: Floats = np.concatenate([scores for _, scores in lists]).astype(np.float64) if lists else np.empty(0)
    ids = IdColumn.of(doc_id for ids, _ in lists for doc_id in ids)
    run = Run(tuple(asked.texts), np.repeat(np.arange(len(sizes)), sizes), scores, ids)
    return PrecisionLists(form, regime, run, max((largest_tie(scores) for _, scores in lists), default=0))


DIGITS = 6
SIGNIFICANCE_LEVEL = 0.05  # significance threshold for a corrected p-value


@dataclass(frozen=True)
class ListScoring:
    """Settings for scoring lists.

    Attributes:
        qrels: the judgments.
        measures: names of measures without cutoffs.
        cutoff: cutoff of the values per query.
        deepest: last cutoff of the curves.
        seed: random seed of the intervals.
    """

    qrels: Qrels
    measures: Sequence[str]
    cutoff: int
    deepest: int
    seed: int

    def weigh(self, name: str, listed: PrecisionLists, configured: PrecisionSettings) -> PrecisionRow:
        """Return the results of one system at one precision."""
        hits = find_hits(self.qrels, listed.run, "file")
        spreads = {measure: TieSpreads(hits, measure) for measure in self.measures}
        at = {measure: each.at(self.cutoff) for measure, each in spreads.items()}
        regime = listed.regime
        at_f32 = configured.dtype == "f32"  # in f32 nothing is rounded, so HPS has no effect
        part = PrecisionSystemPart(
            name=name,
            form=listed.form,
            dtype=regime.dtype,
            hps=regime.hps,
            configured=regime == PrecisionRegime(configured.dtype, configured.high_precision and not at_f32),
            sorted=listed.sorted,
            largest=listed.largest,
            curves=tuple(self._curve(measure, each) for measure, each in spreads.items()),
            at=tuple(self._tied(measure, each, hits) for measure, each in at.items()),
        )
        return PrecisionRow(
            part=part,
            oblivious=tuple(tuple(map(finite_or_none, each.oblivious.tolist())) for each in at.values()),
            expected=tuple(tuple(map(finite_or_none, each.expected.tolist())) for each in at.values()),
        )

    def _curve(self, measure: str, spreads: TieSpreads) -> CurvePart:
        each = [spreads.at(k) for k in range(1, self.deepest + 1)]
        return CurvePart(
            measure=measure,
            oblivious=tuple(_mean(one.oblivious) for one in each),
            expected=tuple(_mean(one.expected) for one in each),
            least=tuple(_mean(one.least) for one in each),
            most=tuple(_mean(one.most) for one in each),
        )

    def _tied(self, measure: str, spread: TieSpread, hits: Hits) -> TiedPart:
        width, bias = bootstrap_means(np.stack([spread.range, spread.bias]), seed=self.seed)
        split, name = signs(spread.bias), f"{measure}@{self.cutoff}"
        return TiedPart(
            measure=name,
            oblivious=_mean(spread.oblivious),
            expected=_mean(spread.expected),
            least=_mean(spread.least),
            most=_mean(spread.most),
            range=_rounded_number(width.mean),
            range_low=_rounded_number(width.low),
            range_high=_rounded_number(width.high),
            across=_mean(parse_measure(f"range_at_k[{name}]").values(hits)),
            bias=_rounded_number(bias.mean),
            bias_low=_rounded_number(bias.low),
            bias_high=_rounded_number(bias.high),
            moved=int((spread.range > 0).sum()),
            up=split.up,
            down=split.down,
            p=split.p,
        )

    def turned(self, kept: Sequence[PrecisionRow]) -> tuple[ReversalPart, ...]:
        """Return the pairs of systems whose order is reversed, for each precision and measure with a reversal."""
        found: list[ReversalPart] = []
        for precision in dict.fromkeys(each.part.precision for each in kept):
            alike = {each.part.name: each for each in kept if each.part.precision == precision}
            spares = {each.part.name: each for each in kept if each.part.precision == f"{precision}+HPS"}
            for place, measure in enumerate(self.measures):
                spreads = {}
                for name, each in alike.items():
                    expected = _array(each.expected[place])
                    spreads[name] = TieSpread(_array(each.oblivious[place]), expected, expected, expected)
                spared = {name: _array(each.expected[place]) for name, each in spares.items()}
                for turn in reversals(spreads):
                    interval = bootstrap_mean(turn.differences, seed=self.seed)
                    known = turn.first in spared and turn.second in spared
                    found.append(
                        ReversalPart(
                            first=turn.first,
                            second=turn.second,
                            precision=precision,
                            measure=f"{measure}@{self.cutoff}",
                            oblivious=turn.oblivious,
                            expected=turn.expected,
                            low=finite_or_none(interval.low),
                            high=finite_or_none(interval.high),
                            hps=_mean(spared[turn.first] - spared[turn.second]) if known else None,
                        )
                    )
        return tuple(found)


def leaks_of(kept: Sequence[PrecisionRow]) -> tuple[LeakPart, ...]:
    """Return the biases through the file's order, for low precision without HPS.

    Files that are sorted by score are omitted, because the scores explain their order. Measures that no tie changes are
    omitted, too.
    """
    parts = [each.part for each in kept if each.part.dtype != "f32" and not each.part.hps and not each.part.sorted]
    rows = [(part, tied) for part in parts for tied in part.at if tied.moved]
    corrected = holm([tied.p for _, tied in rows])
    return tuple(
        LeakPart(
            system=part.name,
            precision=part.precision,
            measure=tied.measure,
            bias=tied.bias,
            up=tied.up,
            down=tied.down,
            p=p,
        )
        for (part, tied), p in zip(rows, corrected, strict=True)
    )


def favoured(leaks: Sequence[LeakPart]) -> int:
    """Return 1 if all biases are positive, or -1 if all are negative, and at least one is significant; else 0."""
    found = {1 if leak.bias > 0 else -1 for leak in leaks if leak.bias}
    sure = any(leak.p < SIGNIFICANCE_LEVEL for leak in leaks)
    return found.pop() if len(found) == 1 and sure else 0


def _array(values: Sequence[Number]) -> Floats:
    return np.array(values, dtype=np.float64)


def _mean(values: Floats) -> Number:
    known = values[np.isfinite(values)]
    return _rounded_number(float(known.mean())) if len(known) else None


def _rounded_number(value: float) -> Number:
    return finite_or_none(round(value, DIGITS))
