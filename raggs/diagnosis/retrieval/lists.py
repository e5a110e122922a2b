"""The systems, scored once: their values, and the quantities that rules look at, question by question.

Systems are lists in files, the golden set's own retrievers, or the values that an earlier `raggs eval` wrote. The last
hold no lists, so that only changes against the baseline can be found in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import DataError, NotFoundError, UsageError
from raggs.base.hashing import hash_file
from raggs.base.text import did_you_mean
from raggs.diagnosis.retrieval import rules
from raggs.evaluation.gates import read_report
from raggs.evaluation.models import Report
from raggs.evaluation.strangers import stranger
from raggs.evaluation.study import Scoring, Study, study_systems
from raggs.golden.base import GoldenSet
from raggs.golden.judgments import Judgments
from raggs.golden.runs import RunGolden
from raggs.golden.systems import System, lists_in, open_systems, split_name
from raggs.metrics.columns import Scale
from raggs.metrics.hits import Hits
from raggs.metrics.ladder import found_by, ladder, steady
from raggs.metrics.names import Named, parse_measure, parse_measures
from raggs.stats.probes.findings import Quantities
from raggs.stats.probes.tops import copies_at, found_alone, missed_length

USUAL_K = 10
LISTS = ("retrieve.jsonl", "merge.jsonl")  # of a run, that hold its retrievers' lists


@dataclass(frozen=True)
class Asked:
    """What is to be measured.

    Attributes:
        measure: the one that tells which questions fail; more is better.
        pool: how many of its passages are a system's candidates.
        baseline: the system that others are held against; the first where none is named.
        seed: of the intervals.
    """

    measure: Named
    pool: int
    baseline: str | None
    seed: int

    @property
    def k(self) -> int:
        """The cutoff."""
        return self.measure.measure.k or USUAL_K

    @property
    def deep(self) -> str:
        """Recall of the whole pool."""
        return f"recall@{max(self.pool, self.k)}"


@dataclass(frozen=True)
class Measured:
    """What was measured.

    Attributes:
        qids: the questions, sorted.
        values: by system, shape (questions,), of the measure.
        one, two, against: what the tables of rules look at, by system, by pair, and by system against the baseline.
        notes: what a reader must know.
        strange: by system whose lists hardly meet the judgments, that they do not; nothing is found in those.
    """

    qids: tuple[str, ...]
    values: Mapping[str, Floats]
    one: Mapping[str, Quantities] = field(default_factory=dict)
    two: Mapping[str, Quantities] = field(default_factory=dict)
    against: Mapping[str, Quantities] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    strange: Mapping[str, str] = field(default_factory=dict)


def usual_measure(scale: Scale) -> str:
    """What is looked at where nothing is named."""
    return f"ra_nwg@{USUAL_K}" if scale.golden else f"ndcg@{USUAL_K}"


def lists_of(golden: GoldenSet, runs: Sequence[str]) -> list[str]:
    """The systems as `[NAME=]PATH`: those named, or the golden set's own.

    Raises:
        UsageError: none is named, and labels alone have none.
    """
    if runs or isinstance(golden, RunGolden):
        return list(runs) or [golden.source]
    raise UsageError(f"{golden.source} holds labels and no lists", remedy="name what systems returned: --run NAME=FILE")


def check_there(specs: Sequence[str]) -> None:
    """Find a system that is not there.

    Raises:
        NotFoundError: a file is missing.
    """
    for _, path in map(split_name, specs):
        if not path.exists():
            raise NotFoundError("no such file", where=path, remedy="name what a system returned: --run NAME=FILE")


def digests(specs: Sequence[str]) -> dict[str, object]:
    """What of each system's files can change what is found."""
    found: dict[str, object] = {}
    for spec in specs:
        name, path = split_name(spec)
        files = [path] if not path.is_dir() else [*filter(Path.is_file, map(path.joinpath, LISTS)), *lists_in(path)]
        found[name or path.name] = {file.name: hash_file(file) for file in files}
    return found


def measure_lists(judgments: Judgments, specs: Sequence[str], asked: Asked, letters: Mapping[str, int]) -> Measured:
    """Score the systems and measure their lists.

    Args:
        letters: by passage its length in characters, as far as it is known.

    Raises:
        UsageError, NotFoundError, DataError: a system cannot be read, or is of other questions or passages.
    """
    systems = list(open_systems(list(specs)))
    study = study_systems(judgments, systems, _scoring(asked))
    lengths = _lengths(judgments, letters)
    losing = asked.measure if steady(asked.measure) else parse_measure(f"ndcg@{asked.k}")
    base = baseline_of(tuple(study.values), asked.baseline)
    columns = {name: found.column for name, found in study.values.items()}
    strange = {name: said for name, hits in study.hits.items() if (said := stranger(judgments.source, name, hits))}
    near = [name for name in columns if name not in strange]
    changes = {name: _changes(columns[name], columns[base], asked) for name in near if name != base and base in near}
    return Measured(
        qids=judgments.qrels.qids,
        values={name: column(asked.measure.name) for name, column in columns.items()},
        one={name: _of_one(study, study.hits[name], losing, asked, lengths) for name in near},
        two=dict(_of_two(study, [system for system in systems if system.name in near], asked)),
        against=_against(changes, base),
        strange=strange,
    )


def read_values(file: Path, judgments: Judgments, asked: Asked) -> Measured:
    """The values that an earlier evaluation wrote.

    Raises:
        DataError: it is of other judgments, or lacks the measure.
    """
    report = read_report(file)
    if report.golden.digest != judgments.digest:
        raise DataError(
            "was scored against other judgments than these", where=file, remedy="run raggs eval again, and name that"
        )
    if asked.measure.name not in report.measures:
        remedy = did_you_mean(asked.measure.name, report.measures)
        raise DataError(f"does not hold {asked.measure.name}", where=file, remedy=remedy)
    qids, systems = judgments.qrels.qids, tuple(report.per_query)
    base = baseline_of(systems, asked.baseline)
    columns = {name: partial(_column, report, qids, name) for name in systems}
    changes = {name: _changes(columns[name], columns[base], asked) for name in systems if name != base}
    return Measured(
        qids=qids,
        values={name: column(asked.measure.name) for name, column in columns.items()},
        against=_against(changes, base),
        notes=("values of an earlier evaluation: its lists are not here, so nothing is found in them",),
    )


def baseline_of(systems: Sequence[str], named: str | None) -> str:
    """The system that others are held against.

    Raises:
        UsageError: there is none of that name.
    """
    if named is not None and named not in systems:
        raise UsageError(f"no system is called {named}", remedy=did_you_mean(named, systems))
    return named or systems[0]


Column = Callable[[str], Floats]
"""A system's values of a measure, NaN where it has none."""


def _scoring(asked: Asked) -> Scoring:
    names = (asked.measure.name, f"ndcg@{asked.k}", f"recall@{asked.k}", asked.deep)
    return Scoring(parse_measures(list(dict.fromkeys(names))), (asked.k,), seed=asked.seed)


def _lengths(judgments: Judgments, letters: Mapping[str, int]) -> Floats:
    """Shape (m,): the length of each judged passage."""
    docs = judgments.qrels.docs
    return np.array([letters.get(docs.text(row), np.nan) for row in range(len(docs))], dtype=np.float64)


def _of_one(study: Study, hits: Hits, losing: Named, asked: Asked, lengths: Floats) -> Quantities:
    several = len(study.hits) > 1
    found = found_by(study.hits.values(), max(asked.pool, asked.k)) if several else None
    losses = ladder(hits, losing, found, pool=asked.pool).losses.T
    lost = dict(zip(rules.LOST, losses, strict=True))
    if not several:
        del lost[rules.LOST[0]]  # what one system did not find is what its candidates lack
    return {
        **lost,
        rules.COPIES: copies_at(hits, asked.k),
        rules.DOUBLINGS: missed_length(hits, lengths, asked.pool),
    }


def _of_two(study: Study, systems: Sequence[System], asked: Asked) -> Iterator[tuple[str, Quantities]]:
    """Each system beside each other one; none is held against what it was fused of, or against its fusion."""
    names = [system.name for system in systems if not system.derived]
    for name in names:
        for other in names:
            if name != other:
                alone = found_alone(study.hits[other], study.hits[name], asked.pool)
                yield f"{name} beside {other}", {rules.ALONE: alone}


def _changes(system: Column, baseline: Column, asked: Asked) -> Quantities:
    names = {rules.NDCG: f"ndcg@{asked.k}", rules.RECALL: f"recall@{asked.k}", rules.DEEP: asked.deep}
    return {quantity: system(measure) - baseline(measure) for quantity, measure in names.items()}


def _against(changes: Mapping[str, Quantities], base: str) -> dict[str, Quantities]:
    return {f"{name} against {base}": change for name, change in changes.items()}


def _column(report: Report, qids: Sequence[str], system: str, measure: str) -> Floats:
    values = report.per_query[system].get(measure, {})
    return np.array([np.nan if (value := values.get(qid)) is None else value for qid in qids], dtype=np.float64)
