"""delta from a user's own answers: which were correct, by question and by the setting of the index that served them.

The file is a table of commas with the columns qid, setting and correct (0 or 1). A setting is an index as on the
command line, `hnsw:ef=16`; `flat` is the exact search, which each question needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import DataError
from raggs.base.inputs import read_text, table_rows
from raggs.chunking.specs import parse_spec
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.index.measuring import opened
from raggs.diagnosis.index.models import BinPart, DeltaPart
from raggs.diagnosis.index.worlds import Asked, World
from raggs.diagnosis.parts import MeanPart
from raggs.parts import indexes
from raggs.parts.indexes.base import IndexConfig
from raggs.stats.probes.answers import LEAST, Bin, accuracy_by_recall, choose_delta
from raggs.stats.probes.neighbours import kept

COLUMNS = ("qid", "setting", "correct")
EXACT = "flat"
TRUTHS = {"0": False, "1": True, "false": False, "true": True}
REMEDY = "a table of commas: qid,setting,correct; settings such as flat and hnsw:ef=16; correct is 0 or 1"


@dataclass
class Answers:
    """Which answers were correct: by setting, by question."""

    path: Path
    by_setting: dict[str, dict[str, bool]] = field(default_factory=dict)

    @property
    def exact(self) -> Mapping[str, bool]:
        """Those from the exact search."""
        return self.by_setting[EXACT]


def read_answers(path: Path) -> Answers:
    """The file.

    Raises:
        DataError: a column or a value is missing or wrong, a question twice at a setting, or nothing of `flat`.
        NotFoundError: it cannot be read.
    """
    rows, found = table_rows(read_text(path), path), Answers(path)
    _, head = next(rows, (1, []))
    names = [cell.strip().lower() for cell in head]
    if missing := [name for name in COLUMNS if name not in names]:
        raise DataError(f"there is no column {missing[0]}", where=path, line=1, remedy=REMEDY)
    places = [names.index(name) for name in COLUMNS]
    for line, row in rows:
        cells = [row[place].strip() if place < len(row) else "" for place in places]
        _put(found, *cells, line=line)
    if EXACT not in found.by_setting or len(found.by_setting) < 2:
        said = "it needs answers from the exact search (setting flat) and from one approximate index"
        raise DataError(said, where=path, remedy=REMEDY)
    return found


def _put(found: Answers, qid: str, setting: str, correct: str, *, line: int) -> None:
    truth = TRUTHS.get(correct.lower())
    if not qid or not setting or truth is None:
        raise DataError(f"not an answer: {qid},{setting},{correct}", where=found.path, line=line, remedy=REMEDY)
    mine = found.by_setting.setdefault(setting, {})
    if qid in mine:
        raise DataError(f"{qid} stands twice at {setting}", where=found.path, line=line, remedy="leave one")
    mine[qid] = truth


def delta_of(bench: Bench, world: World, asked: Asked, answers: Answers, k: int, near: float) -> DeltaPart:
    """How much recall answers need, over all settings.

    Raises:
        DataError: no question of the file was asked, or has an answer from the exact search.
        UsageError, PrerequisiteError: a setting is no index.
    """
    row_of = {qid: at for at, qid in enumerate(asked.qids)}
    recall: list[float] = []
    correct: list[bool] = []
    exact: list[bool] = []
    for setting, mine in answers.by_setting.items():
        if setting == EXACT:
            continue
        qids = [qid for qid in mine if qid in row_of and qid in answers.exact]
        recall += _recalls(bench, world, asked, setting, k)[[row_of[qid] for qid in qids]].tolist()
        correct += [mine[qid] for qid in qids]
        exact += [answers.exact[qid] for qid in qids]
    if not recall:
        remedy = f"the questions are {', '.join(asked.qids[:3])}, ..."
        raise DataError("none of its questions is among those that are asked", where=answers.path, remedy=remedy)
    bins = accuracy_by_recall(np.array(recall), np.array(correct), np.array(exact), seed=bench.seed)
    return DeltaPart(k=k, near=near, delta=choose_delta(bins, near, LEAST), bins=tuple(map(_part, bins)))


def _recalls(bench: Bench, world: World, asked: Asked, setting: str, k: int) -> Floats:
    config = parse_spec(setting, indexes.REGISTRY, IndexConfig)
    index = opened(bench, world, indexes.REGISTRY.of(config)(config))
    return kept(index.search(asked.vectors, k).positions, world.truth(asked, k)).recall


def _part(each: Bin) -> BinPart:
    ratio = MeanPart.of(each.ratio)
    return BinPart(recall=each.recall, answers=each.answers, accuracy=each.accuracy, exact=each.exact, ratio=ratio)
