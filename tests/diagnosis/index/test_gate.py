"""At equal mean recall, lists leave fewer questions with next to nothing, and graphs leave more with nearly all.

Wang et al. 2025, observations 4 and 5, on 15,000 vectors: on a world that is made here, and on sentences by wordllama.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.cranfield import DATA, needs_cranfield
from support.vectors import crowds

from raggs.app.diagnose import DiagnosisResult, diagnose
from raggs.diagnosis.index.models import IndexFindings, MatchedPart
from raggs.parts.embedders.wordllama import WordLlamaEmbedder

INDEXES = ("hnsw:m=8:ef_construction=60", "ivf:lists=256")
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
LEAST = 20  # letters of a sentence


def diagnosed(folder: Path, vectors: np.ndarray, queries: np.ndarray, **settings: object) -> DiagnosisResult:
    np.save(folder / "v.npy", vectors)
    np.save(folder / "q.npy", queries)
    given = {"indexes": INDEXES, "k": (10,), "held_out": 0, "timed": 5, "rounds": 1, **settings}
    return diagnose("index", out=folder / "out", vectors=folder / "v.npy", queries=folder / "q.npy", **given)


def at(found: IndexFindings, level: float) -> MatchedPart:
    return next(part for part in found.matched if part.index.startswith("ivf") and part.level == level)


def assert_signs(found: IndexFindings, level: float) -> None:
    part = at(found, level)
    low, high = part.against["r0.3"], part.against["r0.9"]
    assert low.low is not None and low.low > 0, low
    assert high.high is not None and high.high < 0, high
    assert part.values["recall"].mean == pytest.approx(level)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> DiagnosisResult:
    return diagnosed(tmp_path_factory.mktemp("gate"), crowds(15_000, 32), crowds(1000, 32, seed=1))


def test_lists_serve_the_worst_better_and_graphs_the_best(made: DiagnosisResult) -> None:
    assert isinstance(made.found, IndexFindings)
    assert_signs(made.found, 0.9)
    assert re.match(
        r"At a mean recall@10 of 0.9 over questions, ivf:lists=256 gives more queries at least \d+% of the exact .* "
        r"and fewer queries at least 90% .* than hnsw:m=8:ef_construction=60: choose ivf:lists=256 if part",
        made.verdict,
    ), made.verdict


def test_mean_recall_is_the_area_under_the_curve_for_each(made: DiagnosisResult) -> None:
    """So that what one index has more at low deltas it must have less at high ones."""
    found = IndexFindings.model_validate(made.report.found)
    for part in found.points:
        means = [part.values[f"r{delta:g}"].mean or 0.0 for delta in found.deltas]
        assert means == sorted(means, reverse=True)
        assert part.values["mrr"].mean == pytest.approx(means[0])  # a hit comes first, since scores are exact
        assert part.values["map"].mean == pytest.approx(part.values["recall"].mean)


def test_levels_that_an_index_does_not_bracket_are_said_to_be_none(made: DiagnosisResult) -> None:
    found = IndexFindings.model_validate(made.report.found)
    for part in found.matched:
        recalls = [point.values["recall"].mean or 0.0 for point in found.points if point.index == part.index]
        assert part.bracketed == (min(recalls) <= part.level <= max(recalls))
        assert bool(part.values) == part.bracketed


def sentences() -> Iterator[str]:
    for file in sorted((DATA.parent / "chunking" / "corpora").iterdir()):
        yield from SENTENCE.split(file.read_text(encoding="utf-8"))
    for line in (DATA / "corpus.jsonl").read_text(encoding="utf-8").splitlines():
        yield from SENTENCE.split(json.loads(line)["text"] or "")


@needs_cranfield
def test_so_it_is_with_sentences(tmp_path: Path) -> None:
    texts = list(dict.fromkeys(text.strip() for text in sentences() if len(text.strip()) >= LEAST))
    vectors = WordLlamaEmbedder(WordLlamaEmbedder.Config()).embed(texts)
    order = np.random.default_rng(0).permutation(len(vectors))
    found = diagnosed(tmp_path, vectors[order[1500:]], vectors[order[:1500]], vary=["nprobe=8,11,16,23"]).found
    assert isinstance(found, IndexFindings)
    assert_signs(found, 0.9)
