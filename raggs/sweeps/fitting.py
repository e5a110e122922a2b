"""The weight of a `boosted` reranker, chosen on half of the questions for the other half, and the other way round.

So no question is scored with a weight that it helped to choose. The weights tried are `WEIGHTS`; the best mean of the
first measure that decides wins, of equal means the smallest weight. The halves are drawn by a hash of the sweep's seed
and the question's id. The lists of each weight are kept beside the system's own, so an audit chooses again from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import DataError
from raggs.base.seeds import derive_seed
from raggs.golden.judgments import Judgments
from raggs.metrics.columns import Run
from raggs.parts.readers.runs import read_run
from raggs.parts.rerankers.base import RerankerConfig
from raggs.parts.rerankers.boosted import FIT, BoostedConfig
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.grid import CHUNKER
from raggs.sweeps.models import FitPart, SystemRow
from raggs.sweeps.projecting import Atlas
from raggs.sweeps.scoring import Scorer

V = TypeVar("V")
WEIGHTS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0)


def is_fitted(spec: RerankerConfig | None) -> bool:
    """Whether the reranker's weight is chosen by the sweep."""
    return isinstance(spec, BoostedConfig) and spec.weight == FIT


def weights_of(spec: BoostedConfig) -> tuple[float, ...]:
    """All weights whose lists are needed."""
    return WEIGHTS if spec.weight == FIT else (spec.weight,)


def scorer_for(config: SweepConfig, labels: Judgments, atlas: Atlas | None, levels: Mapping[str, str]) -> Scorer:
    """Who scores the lists of each weight."""
    return Scorer(config, labels, many=True, sheet=None if atlas is None else atlas.sheet(levels[CHUNKER]))


def fit(scorer: Scorer, name: str, k: int, seed: int, run_of: Callable[[float], Run]) -> FitPart:
    """Choose the weights.

    Args:
        scorer: of the system.
        name: of the system; `k`: its candidates.
        seed: of the halves.
        run_of: the lists of a weight.

    Raises:
        DataError: a half has no question on which the measure is defined.
    """
    measure, qids = scorer.quality[0], scorer.judgments.qrels.qids
    values: Floats = np.array([scorer.score(name, run_of(weight), k).values[measure] for weight in WEIGHTS])
    drawn = sorted(qids, key=lambda qid: (derive_seed(seed, "boost", qid), qid))
    first = frozenset(drawn[: len(drawn) // 2])
    inside = np.array([qid in first for qid in qids])
    return FitPart(
        measure=measure,
        seed=seed,
        first=tuple(sorted(first)),
        weights=WEIGHTS,
        chosen=(_best(values[:, ~inside], measure), _best(values[:, inside], measure)),
    )


def _best(values: Floats, measure: str) -> float:
    """The weight of the best mean, of equal ones the smallest; shape (weights, questions)."""
    known = values[:, np.isfinite(values).all(axis=0)]
    if not known.size:
        raise DataError(
            f"weight: fit needs questions in both halves on which {measure} is defined",
            remedy="write a weight, or ask more questions",
        )
    return WEIGHTS[int(np.argmax(known.mean(axis=1).round(12)))]


def composed(part: FitPart, by_weight: Mapping[float, Mapping[str, V]]) -> dict[str, V]:
    """What each question has at the weight that the other half chose, of what it has at each weight."""
    first = set(part.first)
    return {qid: by_weight[part.chosen[0 if qid in first else 1]][qid] for qid in by_weight[WEIGHTS[0]]}


def fit_faults(row: SystemRow, folder: Path, scorer: Scorer) -> Iterator[str]:
    """What is wrong with a fit, by the lists that were kept of each weight.

    Args:
        row: with a fit and a file.
        folder: of the sweep.

    Raises:
        DataError: a file cannot be read.
    """
    if (part := row.fit) is None or row.file is None:
        return
    if len(part.files) != len(WEIGHTS) or part.weights != WEIGHTS:
        yield "its fit does not have the lists of each weight"
        return
    paths = {weight: folder / name for weight, name in zip(WEIGHTS, part.files, strict=True)}
    again = fit(scorer, row.name, row.k, part.seed, lambda weight: read_run(paths[weight]))
    if again.model_copy(update={"files": part.files}) != part:
        yield "its weights are not what the lists of each weight give"
    elif _docs(folder / row.file) != composed(part, {weight: _docs(path) for weight, path in paths.items()}):
        yield "its lists are not those of its weights"


def _docs(path: Path) -> dict[str, list[str]]:
    """The passages of each question, as they stand in a file that the sweep wrote."""
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        qid, _, doc, *_ = line.split()
        found.setdefault(qid, []).append(doc)
    return found
