"""Evaluation from Python: data in memory and search functions, against a golden set.

The numbers are the same as those of `raggs eval` for files with the same content, because both use the same code.

A search function is a system: raggs calls it once per judged question and validates the list of passages that it
returns. Exceptions and invalid results are reported with the question that caused them; raggs does not repair a result.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from raggs.app.eval_request import AnalysisRequest, EvalRequest, JudgedSystems, MeasureRequest, ScaleRequest
from raggs.app.evaluate import DEFAULT_CUTOFF, EvalResult
from raggs.app.evaluate import evaluate as evaluate_request
from raggs.app.gates import GateRequest
from raggs.base.adapter import wrap_user_errors
from raggs.base.errors import DataError, UsageError
from raggs.base.loops import open_loop
from raggs.base.text import plural
from raggs.golden.base import GoldenSet
from raggs.golden.files import GivenGolden, RewordedGolden, queries_of
from raggs.golden.sources import NamedSystem, open_golden, open_systems
from raggs.metrics.columns import GradeScale, Run
from raggs.metrics.names import at_cutoffs
from raggs.parts.run_files import as_id, as_real, describe_value, run_of
from raggs.runs.events import ignore_event, in_loop, run_in_thread

Search = Callable[[str, int], object]
LIST_REMEDY = 'return a list of ids, or of (id, score) pairs, best first: ["d3", "d1"] or [("d3", 2.5), ("d1", 1.0)]'


def named_functions(search: Search | Mapping[str, Search]) -> dict[str, Search]:
    """Return search functions by name. A single function gets its own name, or "search" if that is unusable.

    Raises:
        UsageError: a value is not callable.
    """
    named = dict(search) if isinstance(search, Mapping) else {_name(search): search}
    for name, function in named.items():
        if not callable(function):
            said = f"system {name!r} is {describe_value(function)}, not a function"
            raise UsageError(said, remedy="pass a function that takes a question and k")
    return {str(name): function for name, function in named.items()}


def system_of(name: str, search: Search, golden: GoldenSet, qids: Sequence[str], depth: int) -> NamedSystem:
    """Call a search function once per question and return its lists as a system. An async function is awaited each
    time.

    Args:
        qids: ids of the questions.
        depth: number of passages to request; if the function returns more, all are kept.

    Raises:
        UsageError: texts of questions are missing.
        ProviderError: the function raised an exception.
        DataError: the function returned an invalid list of passages.
    """
    texts = _texts(golden, qids)
    if _is_async(search) and in_loop():
        lists = run_in_thread(lambda _: _search_all(name, search, texts, depth), ignore_event)
    else:
        lists = _search_all(name, search, texts, depth)
    return NamedSystem(name, f"function {name}", Run.of(lists))


def _texts(golden: GoldenSet, qids: Sequence[str]) -> dict[str, str]:
    known = {query.qid: query.text for query in golden.queries()}
    if missing := [qid for qid in qids if qid not in known]:
        raise UsageError(
            f"{golden.source}: no text of {plural(len(missing), 'judged question')}, such as {missing[0]}",
            remedy='pass the texts as queries={"q1": "How ...?"}, or add a file of questions next to the labels',
        )
    return {qid: known[qid] for qid in qids}


def _search_all(name: str, search: Search, texts: Mapping[str, str], depth: int) -> dict[str, dict[str, float]]:
    if not _is_async(search):
        return {qid: _search_one(name, qid, partial(search, text, depth)) for qid, text in texts.items()}
    with open_loop() as runner:
        run = partial(_run, runner, search)
        return {qid: _search_one(name, qid, partial(run, text, depth)) for qid, text in texts.items()}


def _run(runner: asyncio.Runner, search: Search, text: str, depth: int) -> object:
    return runner.run(_await_search(search, text, depth))


async def _await_search(search: Search, text: str, depth: int) -> object:
    found = search(text, depth)
    return await found if inspect.isawaitable(found) else found


def _is_async(search: Search) -> bool:
    return any(map(inspect.iscoroutinefunction, (search, getattr(search, "__call__", None))))  # noqa: B004 - of an object


def _search_one(name: str, qid: str, ask: Callable[[], object]) -> dict[str, float]:
    """Return the passages found for one question with their scores, best first."""
    about = f"question {qid}"
    with wrap_user_errors(name, about):
        found = ask()
        if isinstance(found, Iterable) and not isinstance(found, Mapping | Set | str | bytes):
            found = list(found)  # errors of a generator must be caught here, too
    return _scores_from_list(found, f"{name}, {about}")


def _scores_from_list(found: object, at: str) -> dict[str, float]:
    if inspect.iscoroutine(found):
        found.close()
        raise DataError(f"{at}: the function returned a coroutine", remedy="pass the async function itself")
    if isinstance(found, Mapping):
        pairs = sorted(((key, as_real(value, at)) for key, value in found.items()), key=lambda pair: -pair[1])
        return _check_unique([(as_id(key, at), score) for key, score in pairs], at)
    if not isinstance(found, list):
        raise DataError(f"{at}: the function returned {describe_value(found)}, not a list", remedy=LIST_REMEDY)
    paired = [isinstance(each, tuple | list) and len(each) == 2 for each in found]
    if not any(paired):
        return _check_unique([(as_id(each, at), -float(place)) for place, each in enumerate(found)], at)
    if not all(paired):
        raise DataError(f"{at}: only some ids have scores: {describe_value(found)}", remedy=LIST_REMEDY)
    return _falling([(as_id(each[0], at), as_real(each[1], at)) for each in found], at)


def _falling(pairs: Sequence[tuple[str, float]], at: str) -> dict[str, float]:
    for (_, better), (doc_id, score) in pairwise(pairs):
        if score > better:
            said = f"{at}: passage {doc_id} with score {score:g} comes after one with {better:g}"
            raise DataError(said, remedy="return higher scores for better passages, or only ids, best first")
    return _check_unique(pairs, at)


def _check_unique(pairs: Sequence[tuple[str, float]], at: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for doc_id, score in pairs:
        if doc_id in found:
            raise DataError(f"{at}: the function returned passage {doc_id} twice", remedy="return each passage once")
        found[doc_id] = score
    return found


def _name(search: object) -> str:
    name = getattr(search, "__name__", None) or type(search).__name__
    return name if isinstance(name, str) and name.isidentifier() and name != "partial" else "search"


DEPTH = 100  # default number of passages to request from a function


@dataclass(frozen=True)
class EvalInputs:
    """A golden set and systems, given as Python objects.

    Attributes:
        golden: a run directory, a file of labels, an open set, or the judgments. Judgments are a mapping
            ``{qid: {doc_id: grade}}``, or rows or a table with the columns query, passage and grade.
        search: a function of a question's text and k, or several functions by name. It returns the ids of passages,
            best first, or pairs of id and score, or a mapping of ids to scores.
        runs: lists by name: a path, ``{qid: {doc_id: score}}``, ``{qid: [doc_id, ...]}``, rows or a table. Paths
            without names are also accepted, in the syntax of ``raggs eval --run``.
        queries: texts of the questions by id, as rows or as a table; needed if the golden set does not contain them.
        depth: number of passages to request from a function; raised to the largest cutoff if it is smaller.
    """

    golden: object
    search: Search | Mapping[str, Search] | None = None
    runs: Mapping[str, object] | Iterable[str | Path] | None = None
    queries: object = None
    depth: int = DEPTH

    def opened(self, ends: tuple[int, int] | None = None) -> JudgedSystems:
        """Return the golden set and the systems, after calling every function.

        Raises:
            RaggsError: an input is invalid, or a function failed.
        """
        golden = open_given(self.golden, self.queries)
        systems = [*_systems(self.runs)]
        functions = {} if self.search is None else named_functions(self.search)
        if functions:
            scale = None if ends is None else GradeScale.of(*ends)
            qids = golden.judgments(scale).qrels.qids
            systems += [system_of(name, each, golden, qids, self.depth) for name, each in functions.items()]
        names = [system.name for system in systems]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise UsageError(f"two systems have the name {twice}", remedy="give each system its own name")
        if not systems:
            raise UsageError("no system to evaluate", remedy="pass search=FUNCTION, or runs={name: lists}")
        return JudgedSystems(golden, tuple(systems))


def open_given(golden: object, queries: object = None) -> GoldenSet:
    """Open a golden set from a path or from judgments in memory, and add the texts of questions if they are given.

    Raises:
        RaggsError: the golden set or the questions cannot be read.
    """
    if isinstance(golden, GoldenSet):
        found = golden
    elif isinstance(golden, str | Path):
        found = open_golden(golden)
    else:
        return GivenGolden(golden, queries)
    return found if queries is None else RewordedGolden(found, queries_of(queries))


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
    """Score functions and lists against a golden set, as `raggs eval` scores files. Works in notebooks.

    Args:
        golden, search, runs, queries, depth: see `EvalInputs`.
        measures: names of measures, with or without a cutoff, e.g. "ndcg@10" [default: the usual measures].
        cutoffs: cutoffs of measures that are named without one [default: 10 for measures that need one].
        baseline: system that all others are tested against.
        scale: lowest and highest grade, if the labels do not define them.
        relevant: lowest relevant grade.
        gains: gain by grade, for some grades.
        confidence: confidence level of intervals and tests, between 0 and 1.
        seed: random seed of the bootstrap.

    Raises:
        UsageError, NotFoundError, DataError: a requested name or file does not exist, or an input is invalid.
        ProviderError: a function raised an exception; the message names the question.
    """
    named = (measures,) if isinstance(measures, str) else tuple(measures)
    asked = MeasureRequest(named, tuple(cutoffs))
    return evaluate_given(
        EvalInputs(golden, search, runs, queries, depth),
        EvalOptions(asked, ScaleRequest(scale, relevant, dict(gains or {})), AnalysisRequest(baseline=baseline)),
        confidence,
        seed,
    )


@dataclass(frozen=True)
class EvalOptions:
    """Measures, scale, analyses and gates of an evaluation."""

    measures: MeasureRequest = field(default_factory=MeasureRequest)
    scale: ScaleRequest = field(default_factory=ScaleRequest)
    analyses: AnalysisRequest = field(default_factory=AnalysisRequest)
    gates: GateRequest = field(default_factory=GateRequest)


def evaluate_given(given: EvalInputs, asked: EvalOptions, confidence: float = 0.95, seed: int = 1) -> EvalResult:
    """Score data in memory. Names of measures are validated before any function is called.

    Raises:
        RaggsError: as `evaluate`.
    """
    if not 0 < confidence < 1:
        raise UsageError(f"confidence {confidence:g} is not between 0 and 1", remedy="use, for example, 0.95")
    if given.depth < 1:
        raise UsageError(f"depth {given.depth} is less than 1", remedy="request at least one passage")
    deep = replace(given, depth=max(given.depth, *_cutoffs(asked.measures, asked.gates)))
    lists = deep.opened(asked.scale.ends)
    return evaluate_request(
        EvalRequest(lists, asked.measures, asked.scale, asked.analyses, asked.gates, confidence, seed)
    )


def _cutoffs(asked: MeasureRequest, gates: GateRequest) -> list[int]:
    named = [each for name in (*asked.names, *gates.limits) for each in at_cutoffs(name, asked.cutoffs)]
    return [DEFAULT_CUTOFF, *asked.cutoffs, *(each.measure.k or 0 for each in named)]


def _systems(runs: Mapping[str, object] | Iterable[str | Path] | None) -> Iterable[NamedSystem]:
    if runs is None:
        return
    if not isinstance(runs, Mapping):
        yield from open_systems([str(path) for path in ([runs] if isinstance(runs, str | Path) else runs)])
        return
    for name, lists in runs.items():
        if isinstance(lists, str | Path):
            yield from open_systems([f"{name}={lists}"])
        else:
            yield NamedSystem(str(name), "lists in memory", run_of(lists, str(name)))
