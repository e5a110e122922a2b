"""A user's own search function as a system: asked each judged question once, and held to what a list of passages is.

The function is its user's own code. Whatever it raises, and whatever it gives that is no list, is told with the
question at which it happened; nothing is guessed or mended.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from itertools import pairwise

from raggs.app.beside import beside, in_loop
from raggs.base.callables import told
from raggs.base.errors import DataError, UsageError
from raggs.base.loops import open_loop
from raggs.base.text import plural
from raggs.golden.base import GoldenSet
from raggs.golden.systems import System
from raggs.metrics.columns import Run
from raggs.parts.readers.rows import as_id, as_real, shown
from raggs.runs.pipeline.events import silent

Search = Callable[[str, int], object]
LISTED = 'give a list of ids, or of (id, score) pairs, best first: ["d3", "d1"] or [("d3", 2.5), ("d1", 1.0)]'


def named_functions(search: Search | Mapping[str, Search]) -> dict[str, Search]:
    """Functions by the names that reports give them; a single one is called as it is defined.

    Raises:
        UsageError: one cannot be called.
    """
    named = dict(search) if isinstance(search, Mapping) else {_name(search): search}
    for name, function in named.items():
        if not callable(function):
            said = f"system {name!r} is {shown(function)}, which cannot be called"
            raise UsageError(said, remedy="give a function of a question and k")
    return {str(name): function for name, function in named.items()}


def system_of(name: str, search: Search, golden: GoldenSet, qids: Sequence[str], depth: int) -> System:
    """What a function returns for some questions of a golden set; an async one is awaited, a question at a time.

    Args:
        qids: the questions that are asked.
        depth: how many passages are asked for; what is given beyond is kept.

    Raises:
        UsageError: the texts of questions are not known.
        ProviderError: the function raised.
        DataError: what it gave is no list of passages.
    """
    texts = _texts(golden, qids)
    if _waits(search) and in_loop():
        lists = beside(lambda _: _asked(name, search, texts, depth), silent)
    else:
        lists = _asked(name, search, texts, depth)
    return System(name, f"function {name}", Run.of(lists))


def _texts(golden: GoldenSet, qids: Sequence[str]) -> dict[str, str]:
    known = {query.qid: query.text for query in golden.queries()}
    if missing := [qid for qid in qids if qid not in known]:
        raise UsageError(
            f"{golden.source} does not hold the text of {plural(len(missing), 'judged question')}, {missing[0]} first",
            remedy='give them: queries={"q1": "How ...?"}, or a file of questions beside the labels',
        )
    return {qid: known[qid] for qid in qids}


def _asked(name: str, search: Search, texts: Mapping[str, str], depth: int) -> dict[str, dict[str, float]]:
    if not _waits(search):
        return {qid: _one(name, qid, partial(search, text, depth)) for qid, text in texts.items()}
    with open_loop() as runner:
        run = partial(_run, runner, search)
        return {qid: _one(name, qid, partial(run, text, depth)) for qid, text in texts.items()}


def _run(runner: asyncio.Runner, search: Search, text: str, depth: int) -> object:
    return runner.run(_awaited(search, text, depth))


async def _awaited(search: Search, text: str, depth: int) -> object:
    found = search(text, depth)
    return await found if inspect.isawaitable(found) else found


def _waits(search: Search) -> bool:
    return any(map(inspect.iscoroutinefunction, (search, getattr(search, "__call__", None))))  # noqa: B004 - of an object


def _one(name: str, qid: str, ask: Callable[[], object]) -> dict[str, float]:
    """What a question was given, as scores that fall."""
    about = f"question {qid}"
    with told(name, about):
        found = ask()
        if isinstance(found, Iterable) and not isinstance(found, Mapping | Set | str | bytes):
            found = list(found)  # a generator runs the user's code
    return _listed(found, f"{name}, {about}")


def _listed(found: object, at: str) -> dict[str, float]:
    if inspect.iscoroutine(found):
        found.close()
        raise DataError(f"{at}: it returned a coroutine", remedy="give the coroutine function itself, or await in it")
    if isinstance(found, Mapping):
        pairs = sorted(((key, as_real(value, at)) for key, value in found.items()), key=lambda pair: -pair[1])
        return _once([(as_id(key, at), score) for key, score in pairs], at)
    if not isinstance(found, list):
        raise DataError(f"{at}: it returned {shown(found)}, which is no list", remedy=LISTED)
    paired = [isinstance(each, tuple | list) and len(each) == 2 for each in found]
    if not any(paired):
        return _once([(as_id(each, at), -float(place)) for place, each in enumerate(found)], at)
    if not all(paired):
        raise DataError(f"{at}: it returned ids with scores and without, {shown(found)}", remedy=LISTED)
    return _falling([(as_id(each[0], at), as_real(each[1], at)) for each in found], at)


def _falling(pairs: Sequence[tuple[str, float]], at: str) -> dict[str, float]:
    for (_, better), (doc_id, score) in pairwise(pairs):
        if score > better:
            said = f"{at}: passage {doc_id} has the score {score:g} below one of {better:g}"
            raise DataError(said, remedy="higher is better: turn distances round, or give ids alone, best first")
    return _once(pairs, at)


def _once(pairs: Sequence[tuple[str, float]], at: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for doc_id, score in pairs:
        if doc_id in found:
            raise DataError(f"{at}: it returned passage {doc_id} twice", remedy="return each passage once")
        found[doc_id] = score
    return found


def _name(search: object) -> str:
    name = getattr(search, "__name__", None) or type(search).__name__
    return name if isinstance(name, str) and name.isidentifier() and name != "partial" else "search"
