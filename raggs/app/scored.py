"""Evaluate from Python: what is in memory, and functions, against a golden set.

The same numbers as `raggs eval` gives for files with the same content: what is given becomes the same columns, and the
same use case scores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from raggs.app.evaluate import (
    DEFAULT_CUTOFF,
    AnalysisRequest,
    EvalRequest,
    EvalResult,
    JudgedLists,
    MeasureRequest,
    ScaleRequest,
)
from raggs.app.evaluate import evaluate as evaluate_request
from raggs.app.functions import Search, named_functions, system_of
from raggs.app.gating import GateRequest
from raggs.base.errors import UsageError
from raggs.golden.base import GoldenSet
from raggs.golden.given import GivenGolden, queries_of
from raggs.golden.opened import open_golden
from raggs.golden.systems import System, open_systems
from raggs.golden.worded import Worded
from raggs.metrics.columns import Scale
from raggs.metrics.names import at_cutoffs
from raggs.parts.readers.rows import run_of

DEPTH = 100  # passages that a function is asked for


@dataclass(frozen=True)
class Given:
    """A golden set and systems as somebody has them in Python.

    Attributes:
        golden: a run directory or a file of labels, an open set, or the judgments themselves: ``{qid: {doc_id:
            grade}}``, rows or a table with a query, a passage and a grade each.
        search: a function of a question's text and k that gives the ids of passages, best first, or pairs of id and
            score, or a mapping of these; or several by name.
        runs: lists by name: a path, ``{qid: {doc_id: score}}``, ``{qid: [doc_id, ...]}``, rows or a table; or paths
            alone, as ``raggs eval --run`` takes them.
        queries: the texts of the questions by id, rows or a table, where the golden set does not hold them.
        depth: how many passages a function is asked for; never fewer than the greatest cutoff.
    """

    golden: object
    search: Search | Mapping[str, Search] | None = None
    runs: Mapping[str, object] | Iterable[str | Path] | None = None
    queries: object = None
    depth: int = DEPTH

    def opened(self, ends: tuple[int, int] | None = None) -> JudgedLists:
        """The set and the systems; every function has been asked.

        Raises:
            RaggsError: what is given cannot be right, or a function failed.
        """
        golden = open_given(self.golden, self.queries)
        systems = [*_systems(self.runs)]
        functions = {} if self.search is None else named_functions(self.search)
        if functions:
            scale = None if ends is None else Scale.of(*ends)
            qids = golden.judgments(scale).qrels.qids
            systems += [system_of(name, each, golden, qids, self.depth) for name, each in functions.items()]
        names = [system.name for system in systems]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise UsageError(f"two systems are called {twice}", remedy="name them apart")
        if not systems:
            raise UsageError("no system to evaluate", remedy="give search=a function, or runs={name: lists}")
        return JudgedLists(golden, tuple(systems))


def open_given(golden: object, queries: object = None) -> GoldenSet:
    """A golden set from a path, from judgments in memory, or as it is; with texts of questions where they are given.

    Raises:
        RaggsError: it cannot be read.
    """
    if isinstance(golden, GoldenSet):
        found = golden
    elif isinstance(golden, str | Path):
        found = open_golden(golden)
    else:
        return GivenGolden(golden, queries)
    return found if queries is None else Worded(found, queries_of(queries))


def evaluate(
    golden: object,
    search: Search | Mapping[str, Search] | None = None,
    *,
    runs: Mapping[str, object] | Iterable[str | Path] | None = None,
    queries: object = None,
    measures: Sequence[str] = (),
    cutoffs: Sequence[int] = (),
    depth: int = DEPTH,
    baseline: str | None = None,
    scale: tuple[int, int] | None = None,
    relevant: int | None = None,
    gains: Mapping[int, float] | None = None,
    confidence: float = 0.95,
    seed: int = 1,
) -> EvalResult:
    """Score functions and lists against a golden set, as `raggs eval` scores files. Works in notebooks too.

    Args:
        golden, search, runs, queries, depth: see `Given`.
        measures: names of measures, with or without a cutoff ("ndcg@10"); the usual ones where left out.
        cutoffs: of measures named without one; 10 where left out.
        baseline: the system that all others are tested against.
        scale: the lowest and the highest grade, where labels do not tell it.
        relevant: the lowest relevant grade.
        gains: of some grades.
        confidence: of intervals and tests, inside 0..1.
        seed: of the bootstrap.

    Raises:
        UsageError, NotFoundError, DataError: something asked for does not exist, or what is given cannot be right.
        ProviderError: a function raised; the question is named.
    """
    named = (measures,) if isinstance(measures, str) else tuple(measures)
    asked = MeasureRequest(named, tuple(cutoffs))
    return evaluate_given(
        Given(golden, search, runs, queries, depth),
        Asked(asked, ScaleRequest(scale, relevant, dict(gains or {})), AnalysisRequest(baseline=baseline)),
        confidence,
        seed,
    )


@dataclass(frozen=True)
class Asked:
    """What is measured and held against what; see `EvalRequest`."""

    measures: MeasureRequest = field(default_factory=MeasureRequest)
    scale: ScaleRequest = field(default_factory=ScaleRequest)
    analyses: AnalysisRequest = field(default_factory=AnalysisRequest)
    gates: GateRequest = field(default_factory=GateRequest)


def evaluate_given(given: Given, asked: Asked, confidence: float = 0.95, seed: int = 1) -> EvalResult:
    """Score what is given; wrong names of measures are told before any function is asked.

    Raises:
        RaggsError: as `evaluate`.
    """
    if not 0 < confidence < 1:
        raise UsageError(f"a confidence of {confidence:g}", remedy="inside 0 to 1, e.g. 0.95")
    if given.depth < 1:
        raise UsageError(f"a depth of {given.depth}", remedy="1 or more passages")
    deep = replace(given, depth=max(given.depth, *_cutoffs(asked.measures, asked.gates)))
    lists = deep.opened(asked.scale.ends)
    return evaluate_request(
        EvalRequest(lists, asked.measures, asked.scale, asked.analyses, asked.gates, confidence, seed)
    )


def _cutoffs(asked: MeasureRequest, gates: GateRequest) -> list[int]:
    named = [each for name in (*asked.names, *gates.limits) for each in at_cutoffs(name, asked.cutoffs)]
    return [DEFAULT_CUTOFF, *asked.cutoffs, *(each.measure.k or 0 for each in named)]


def _systems(runs: Mapping[str, object] | Iterable[str | Path] | None) -> Iterable[System]:
    if runs is None:
        return
    if not isinstance(runs, Mapping):
        yield from open_systems([str(path) for path in ([runs] if isinstance(runs, str | Path) else runs)])
        return
    for name, lists in runs.items():
        if isinstance(lists, str | Path):
            yield from open_systems([f"{name}={lists}"])
        else:
            yield System(str(name), "lists in memory", run_of(lists, str(name)))
