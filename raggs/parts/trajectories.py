"""Searches of agents, merged to one list per task: JSON lines with one search per line, or tables with one result per
line.

    {"qid": "t1", "step": 1, "query": "lift opening hours", "doc_ids": ["lift", "map"], "cost": 0.002}

    qid,step,docno,rank,score,cost
    t1,1,lift,1,7.5,0.002

`qid` is the id of the task. An agent reads the results of its searches one after the other, so the list of a task
contains the passages in the order of their first appearance: those of the first step, best first, then the new ones of
the second step, and so on. The lines of a task may be in any order. In JSON lines, each step occurs once. In tables,
the passages of a step are sorted by score, as in every run file; equal scores keep the order of the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from raggs.base.errors import DataError
from raggs.base.jsonl import read_objects
from raggs.base.tables import (
    NO_COLUMNS,
    RUN_ROLES,
    SPELLINGS,
    ColumnNames,
    fold_column_name,
    header_of,
    object_id,
    open_table,
)
from raggs.base.trec import INTEGER, RankOrder, SeenPairs, as_number
from raggs.metrics.columns import Run, TaskSearches
from raggs.parts.file_shapes import check_ids

STEP_KEY, PASSAGES_KEY, COST_KEY = "step", "doc_ids", "cost"
REMEDY = 'write {"qid": "t1", "step": 1, "query": "...", "doc_ids": ["a", "b"], "cost": 0.002}'
MAX_PASSAGES = 10_000  # per search


class _Search(NamedTuple):
    doc_ids: tuple[str, ...]
    cost: float | None


def is_trajectory(line: str) -> bool:
    """Return whether the first line of a file describes a search of a task."""
    if f'"{STEP_KEY}"' not in line or f'"{PASSAGES_KEY}"' not in line:
        return False  # a nested file may be a single long line, which is not parsed here
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and STEP_KEY in found and PASSAGES_KEY in found


def read_trajectories(path: Path) -> Run:
    """Return the merged list of each task, with the mean number of searches and the mean cost per task.

    The cost is unknown if any search states none.

    Raises:
        DataError: a line is invalid, a step of a task occurs twice, or a search returns a passage twice.
    """
    tasks: dict[str, dict[int, _Search]] = {}
    for line, row in read_objects(path):
        qid, step = _task_and_step(row, path, line)
        steps = tasks.setdefault(qid, {})
        if step in steps:
            raise DataError(f"task {qid}: step {step} occurs twice", where=path, line=line, remedy="number the steps")
        steps[step] = _Search(_passages(row, path, line), _cost(row.get(COST_KEY), path, line))
    if not tasks:
        raise DataError("contains no searches", where=path, remedy=REMEDY)
    return _merge_searches(tasks)


def has_steps(path: Path) -> bool:
    """Return whether a table has a column for the step of a task."""
    return STEP_KEY in map(fold_column_name, header_of(path))


def read_stepped_table(path: Path, columns: ColumnNames = NO_COLUMNS) -> Run:
    """Return the merged list of each task from a table with a column `step`; see `read_trajectories`.

    Args:
        path: table with the columns of a run file, `step`, and optionally `cost`, which all rows of a search repeat.
        columns: column names from `--column`.

    Raises:
        DataError: a column is missing, a row is invalid, a search returns a passage twice, its rows state different
            costs, or most scores rise with the rank.
    """
    hits: dict[str, dict[int, list[tuple[float, str]]]] = {}
    costs: dict[tuple[str, int], float | None] = {}
    seen, order = SeenPairs(path), RankOrder()
    for line, cells in open_table(path, (*RUN_ROLES, "rank", STEP_KEY, COST_KEY), (*RUN_ROLES, STEP_KEY), columns).rows:
        qid, doc_id, text, given = (cells[role].strip() for role in (*RUN_ROLES, STEP_KEY))
        check_ids(path, line, qid, doc_id)
        score = as_number(text)
        if not math.isfinite(score):
            raise DataError(f"score {text!r} is not a finite number", where=path, line=line, remedy="repair the row")
        if INTEGER.fullmatch(given) is None or (step := int(given)) < 0:
            said = f"task {qid}: its step {given!r} is not a whole number of at least 0"
            raise DataError(said, where=path, line=line, remedy="number the steps, or rename the column step")
        seen.note(f"{qid}, step {step}", doc_id, line)
        order.note(f"{qid} {step}", cells.get("rank", "").strip(), score)
        hits.setdefault(qid, {}).setdefault(step, []).append((-score, doc_id))
        stated = cells.get(COST_KEY, "").strip()
        cost = _cost(as_number(stated) if stated else None, path, line)
        if costs.setdefault((qid, step), cost) != cost:
            said = f"task {qid}, step {step}: two rows state different costs"
            raise DataError(said, where=path, line=line, remedy="write the cost of the search into each of its rows")
    if not hits:
        raise DataError("contains no searches", where=path, remedy="write the columns qid, step, docno, rank, score")
    note = order.checked(path)
    found = {
        qid: {
            step: _Search(tuple(doc_id for _, doc_id in sorted(rows, key=lambda row: row[0])), costs[qid, step])
            for step, rows in steps.items()
        }
        for qid, steps in hits.items()
    }
    return replace(_merge_searches(found), note=note)


def _merge_searches(tasks: Mapping[str, Mapping[int, _Search]]) -> Run:
    """Return the merged list of each task, with the mean number of searches and the mean cost."""
    merged = {
        qid: list(dict.fromkeys(doc_id for _, search in sorted(steps.items()) for doc_id in search.doc_ids))
        for qid, steps in tasks.items()
    }
    run = Run.of(merged)
    costs = [search.cost for steps in tasks.values() for search in steps.values()]
    known = [cost for cost in costs if cost is not None]
    searches = len(costs) / len(tasks)
    usd = math.fsum(known) / len(tasks) if len(known) == len(costs) else None
    return Run(run.qids, run.query, run.score, run.docs, tasks=TaskSearches(searches, usd))


def _task_and_step(row: Mapping[str, object], path: Path, line: int) -> tuple[str, int]:
    name = next((name for name in SPELLINGS["qid"] if name in row), None)
    if name is None:
        raise DataError("a search has no qid, the id of its task", where=path, line=line, remedy=REMEDY)
    qid, step = object_id(row[name], path, line), row.get(STEP_KEY)
    check_ids(path, line, qid)
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise DataError(
            f"task {qid}: its step is not a whole number of at least 0", where=path, line=line, remedy=REMEDY
        )
    return qid, step


def _passages(row: Mapping[str, object], path: Path, line: int) -> tuple[str, ...]:
    given = row.get(PASSAGES_KEY)
    if not isinstance(given, list) or len(given) > MAX_PASSAGES:
        said = f"{PASSAGES_KEY} is not a list of at most {MAX_PASSAGES:,} passage ids"
        raise DataError(said, where=path, line=line, remedy=REMEDY)
    found = tuple(object_id(each, path, line) for each in given)
    check_ids(path, line, *found)
    if len(set(found)) < len(found):
        raise DataError("the search returns a passage twice", where=path, line=line, remedy="list each passage once")
    return found


def _cost(cost: object, path: Path, line: int) -> float | None:
    if cost is None:
        return None
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < math.inf:
        raise DataError(f"{COST_KEY} is not a number of at least 0, in USD", where=path, line=line, remedy="correct it")
    return float(cost)
