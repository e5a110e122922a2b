"""Is what a stopped stage has done what its inputs lead to? No lock describes it, so it is held against the rest.

Every line is a valid record in its place, with the bytes that the record writes again. Grades are made once more of the
recorded answers, pools pruned once more, rankings replayed from the journal, whose entries may still stand in the order
in which they came, beside those of earlier settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

from pydantic import ValidationError

from raggs.base.artifacts import JournalRecord, PruneRecord, RankingRecord, RankRecord, Record
from raggs.base.errors import RaggsError
from raggs.base.jsonl import dump_line, first_fault, read_torn
from raggs.base.jsontypes import as_object
from raggs.runs.manifests.derive import DERIVATIONS, work_of
from raggs.runs.manifests.findings import Finding
from raggs.runs.manifests.opened import OpenedRun
from raggs.runs.manifests.params import fitting, parameters
from raggs.stages.rankconfig import RankConfig
from raggs.stages.rankrecords import rank_records
from raggs.stages.replay import Answers, kept_pool, replay

RANK, BESIDE = "rank", "rank.queries"
WRONG = "cannot be derived again"


def part_findings(run: OpenedRun) -> Iterator[Finding]:
    """What is wrong with the parts of stages that were stopped, the first line of each file; and with a journal."""
    sound = True
    for part in _begun(run):
        found = [*_lines(run, part)]
        yield from found
        if found or not sound:
            sound = False
            continue
        try:
            with fitting(part):
                yield from _ranked(run) if part == RANK else _derived(run, part)
        except RaggsError as error:
            yield Finding(run.store.partial(part).name, None, f"{WRONG}: {error}")
    if RANK in run.pipeline.order and RANK not in run.manifest.stages:
        try:
            _journal(run)
        except RaggsError as error:
            yield Finding(run.store.path("rank.journal").name, error.line, error.message)


def _begun(run: OpenedRun) -> list[str]:
    return [
        name
        for name in run.pipeline.order
        if name in DERIVATIONS and name not in run.manifest.stages and run.store.partial(name).exists()
    ]


def _lines(run: OpenedRun, stage: str) -> Iterator[Finding]:
    """The first line of each of a stage's files that its record would not write there."""
    for artifact, model in run.pipeline.stage(stage).artifacts().items():
        path = run.store.partial(artifact)
        if path.is_symlink() or not path.is_file():
            yield Finding(path.name, None, "is not a file of its own" if path.exists() else "the file is missing")
            continue
        if (fault := _first_fault(path, model)) is not None:
            yield Finding(path.name, *fault)


def _first_fault(path: Path, model: type[Record]) -> tuple[int, str] | None:
    previous: tuple[object, ...] | None = None
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                record = model.model_validate_json(line)
            except ValidationError as error:
                return number, first_fault(error)
            key = tuple(getattr(record, field) for field in model.ORDER)
            if previous is not None and key <= previous:
                return number, f"is not sorted by {', '.join(model.ORDER)}"
            if dump_line(record, given=True) != line:
                return number, "its bytes are not those that its record writes again"
            previous = key
    return None


def _derived(run: OpenedRun, stage: str) -> Iterator[Finding]:
    params = as_object(run.manifest.config.get(stage))
    left = next(part.left for part in run.parts if part.stage == stage)
    made = (record for record in DERIVATIONS[stage](work_of(run), params, lambda _: None) if record.qid not in left)
    yield from _compared(run.store.partial(stage).name, made, run.records(stage))


def _ranked(run: OpenedRun) -> Iterator[Finding]:
    """Each query's ranking against what its entries of one state lead to."""
    config = parameters(RankConfig, RANK, as_object(run.manifest.config.get(RANK)))
    work, journal = work_of(run), _journal(run)
    part = next(part for part in run.parts if part.stage == RANK)
    ranked, told = dict(work.by_query(RANK, RankRecord)), dict(work.by_query(BESIDE, RankingRecord))
    file = run.store.partial(RANK).name
    for qid, pruned in work.by_query("prune", PruneRecord):
        pool, records, word = kept_pool(qid, pruned), ranked.pop(qid, []), told.pop(qid, [])
        if qid in part.left:
            continue
        states, spent = journal.get(qid, {"": []}).values(), qid in part.short
        lists = [*states, []] if spent else states
        shared = config.budget is not None  # then whose turn it was is only known of all rankings together
        rankings = (replay(config.course(pool), Answers(each), spent=spent, shared=shared).ranking for each in lists)
        made = [[*rank_records(pool, ranking)] for ranking in rankings]
        if records not in ([each for each in one if isinstance(each, RankRecord)] for one in made):
            yield Finding(file, None, f"query {qid}: its order is not what the journal leads to")
            return
        if [*word, *records] not in made:
            yield Finding(run.store.partial(BESIDE).name, None, f"query {qid}: is not what the journal leads to")
            return
    if left := ranked.keys() | told.keys():
        yield Finding(file, None, f"query {min(left)} was not pruned")


def _journal(run: OpenedRun) -> Mapping[str, Mapping[str, list[JournalRecord]]]:
    """The entries by query and state."""
    found: dict[str, dict[str, list[JournalRecord]]] = {}
    for entry in read_torn(run.store.path("rank.journal"), JournalRecord, "delete the file to start this stage afresh"):
        found.setdefault(entry.qid, {}).setdefault(entry.state, []).append(entry)
    return found


def _compared(file: str, made: Iterator[Record], found: Iterator[Record]) -> Iterator[Finding]:
    for number, (expected, read) in enumerate(zip_longest(made, found), start=1):
        if expected != read:
            yield Finding(file, number, "is not what the records before it lead to")
            return
