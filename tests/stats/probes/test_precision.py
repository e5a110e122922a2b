"""Precision: published scores, ranges and biases against the definitions, reversals, signs; the gate on Cranfield."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from support.cranfield import _read, cranfield_labels, needs_cranfield

from raggs.base.arrays import round_to_dtype
from raggs.metrics import Run, parse_measure
from raggs.metrics.columns import GradeScale, IdColumn, Qrels
from raggs.metrics.hits import find_hits
from raggs.parts.embedders.wordllama import WordLlamaEmbedder
from raggs.stats.score_precision import (
    REGIMES,
    PrecisionRegime,
    TieSpread,
    TieSpreads,
    activated,
    best_with_ties,
    products,
    reversals,
    signs,
)

# Scores of one question's candidates with high-precision scoring, as "Reliable Evaluation Protocol for Low-Precision
# Retrieval" prints them in appendix B.
PUBLISHED = """
.99948066 .99933332 .99929035 .99919587 .99914408 .99883050 .99883050 .99875510 .99858958 .99829930 .99767691 .99767691
.99752742 .99752742 .99736834 .99719906 .99719906 .99701905 .99682730 .99662340 .99662340 .99592990 .99566853 .99566853
.99509466 .99509466 .99477994 .99444515 .99444515 .99408901 .99408901 .99408901 .99330717 .99330717 .99330717 .99242276
.99142247 .99142247 .99142247 .99087441 .99087441 .99029154 .98967183 .98901308 .98901308 .98831278 .98831278 .98756832
.98593640 .98409361 .98201376 .97838473 .97702265 .97404259 .97068775 .96885622 .96885622 .96885622 .96691406 .96691406
.96267307 .96036118 .96036118 .96036118 .95791227 .95791227 .95791227 .95791227 .95531917 .95257413 .95257413 .94966936
.94966936 .94659668 .94659668 .94659668 .93991333 .93991333 .93245327 .88720459 .88079703 .88079703 .87407720 .86703575
.77729988 .60766321 .51561993 .46879065 .34864515 .30735803 .28140560 .17328820 .08509904 .02442309
"""
BF16, SPARED = PrecisionRegime("bf16"), PrecisionRegime("bf16", hps=True)


def test_published_scores_are_sigmoids_of_logits_of_bf16_and_rounding_them_ties_nineteen():
    scores = np.array(PUBLISHED.split(), dtype=np.float64)
    logits = round_to_dtype(np.log(scores / (1 - scores)).astype(np.float32), "bf16")
    spared = activated("sigmoid", logits, SPARED)
    assert np.abs(spared - scores).max() < 1e-7
    assert max(Counter(spared.tolist()).values()) == 4
    ties = Counter(activated("sigmoid", logits, BF16).tolist())
    assert [ties.most_common(3)[place] for place in range(3)] == [(0.99609375, 19), (0.9921875, 13), (1.0, 10)]
    assert activated("score", scores.astype(np.float32), BF16).tolist() == round_to_dtype(spared, "bf16").tolist()


def test_a_softmax_over_two_logits_loses_what_each_of_them_loses():
    pairs = np.array([[-20.03, 1.0], [-20.0, 1.04], [0.0, 3.0]], dtype=np.float32)
    full, spared = (activated("softmax", pairs, regime) for regime in (REGIMES[0], SPARED))
    assert full[2] == pytest.approx(1 / (1 + np.exp(-3.0)))
    distance = round_to_dtype(pairs, "bf16")[:, 1] - round_to_dtype(pairs, "bf16")[:, 0]
    assert spared == pytest.approx(1 / (1 + np.exp(-distance.astype(np.float64))))
    assert activated("softmax", pairs, BF16)[:2].tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="has no logits"):
        activated("product", pairs, BF16)


def test_the_best_are_taken_with_all_that_tie_with_the_last():
    assert best_with_ties(np.array([1.0, 3.0, 2.0, 2.0, 0.5, 2.0], np.float32), 2).tolist() == [1, 2, 3, 5]
    assert best_with_ties(np.array([1.0, 3.0], np.float32), 2).tolist() == [0, 1]


def hits(found, judged):
    """Of lists with scores, equal ones in the order given."""
    return find_hits(Qrels.of(judged, GradeScale.of(1, 5)), Run.of(found), "file")


@pytest.mark.parametrize("measure", ["ndcg", "mrr", "recall", "map", "pct_proc_n_recall4", "holes"])
@pytest.mark.parametrize("k", [1, 2, 4, 9])
def test_spreads_are_the_measures_in_their_brackets(measure, k):
    """pct_proc and holes have extremes of their own."""
    judged = {"q": {"a": 5, "b": 1, "c": 4, "d": 2, "m": 5}, "r": {"a": 3, "b": 4}}
    found = {"q": {"a": 2.0, "x": 2.0, "c": 2.0, "b": 1.0, "d": 1.0}, "r": {"b": 1.0, "a": 1.0, "x": 0.5}}
    table = hits(found, judged)
    spread, name = TieSpreads(table, measure).at(k), f"{measure}@{k}"
    for got, mode in ((spread.oblivious, ""), (spread.expected, "E"), (spread.range, "range"), (spread.bias, "bias")):
        wanted = parse_measure(f"{mode}[{name}]" if mode else name).values(table)
        assert got == pytest.approx(wanted, nan_ok=True)


def test_without_ties_nothing_hangs_on_their_order():
    spread = TieSpreads(hits({"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 5, "b": 1}}), "ndcg").at(3)
    assert spread.range.tolist() == spread.bias.tolist() == [0.0]


def test_systems_change_places_where_one_owes_its_lead_to_the_order_of_ties():
    """As Qwen3-Reranker and gte are published: 75.04 and 74.48 as they stand, 68.38 and 74.22 by expectation."""

    def system(oblivious, expected):
        each = np.array([expected, np.nan])
        return TieSpread(np.array([oblivious, np.nan]), each, each, each)

    systems = {"gte": system(0.7448, 0.7422), "qwen": system(0.7504, 0.6838), "bge": system(0.7559, 0.7454)}
    (found,) = reversals(systems)
    assert (found.first, found.second) == ("qwen", "gte")
    assert (found.oblivious, found.expected) == pytest.approx((0.0056, -0.0584))
    assert list(reversals({"one": system(0.5, 0.5), "alike": system(0.5, 0.4)})) == []


@pytest.mark.parametrize(
    ("bias", "expected"),
    [
        ([0.1] * 5, (5, 0, 2 / 32)),
        ([0.1, -0.1, 0.0, float("nan")], (1, 1, 1.0)),
        ([-0.1] * 8 + [0.1], (1, 8, 20 / 512)),
    ],
)
def test_signs_of_biases(bias, expected):
    found = signs(bias)
    assert (found.up, found.down, found.p) == (expected[0], expected[1], pytest.approx(expected[2]))
    assert signs([0.0]).p == 1.0


@needs_cranfield
def test_the_ranges_of_bf16_on_cranfield():
    """Title and text in one line, in the order of the file; none is left with the last step in float32."""
    embedder = WordLlamaEmbedder(WordLlamaEmbedder.Config())
    asked, passages = _read("queries.jsonl"), _read("corpus.jsonl")
    queries = embedder.embed([query["text"] for query in asked])
    vectors = embedder.embed([f"{row['title']} {row['text']}" for row in passages])
    labels, number = Qrels.of(cranfield_labels(), GradeScale.of(1, 5)), np.repeat(np.arange(len(asked)), len(passages))
    docs = IdColumn.of(row["_id"] for _ in asked for row in passages)
    for regime, expected in ((BF16, [1.09, 2.38, 0.89]), (SPARED, [0.0, 0.0, 0.0])):
        scores = products(queries, vectors, regime).astype(np.float64).ravel()
        table = find_hits(labels, Run(tuple(query["_id"] for query in asked), number, scores, docs), "file")
        points = [100 * np.nanmean(TieSpreads(table, measure).at(10).range) for measure in ("ndcg", "mrr", "recall")]
        assert points == pytest.approx(expected, abs=0.005)
