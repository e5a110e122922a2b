"""Diff: two golden sets beside each other, and the same systems scored under both.

Both are read first and compared by `raggs.evaluation.diffs`; systems are scored as `raggs eval` scores them, by each
set's own grades. Nothing is written, and nothing is judged: whoever asks decides what a difference is worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from raggs.base.errors import DataError, RaggsError, UsageError
from raggs.base.text import plural
from raggs.evaluation.diffs import content, figures
from raggs.evaluation.diffs import settings as trees
from raggs.evaluation.diffs.byquestion import moves
from raggs.evaluation.diffs.decisions import Column, decisions_part
from raggs.evaluation.diffs.grades import comparable
from raggs.evaluation.diffs.models import DecisionsPart, DiffReport
from raggs.evaluation.diffs.pairing import Pairing
from raggs.evaluation.diffs.sides import Side, read_side
from raggs.evaluation.gates import read_report
from raggs.evaluation.strangers import doubt_of
from raggs.evaluation.study import Scoring, Study, study_systems
from raggs.evaluation.unjudged import ends_between, unjudged_in
from raggs.evaluation.words import unjudged_tops
from raggs.golden.systems import System, open_systems
from raggs.metrics.columns import Run
from raggs.metrics.hits import Hits
from raggs.metrics.names import Named, at_cutoffs, needs_cutoff

GRADED = ("ndcg", "ra_nwg", "recall", "mrr")
OTHERS = ("ndcg", "recall", "mrr")
CUTOFF = 10
SHOWN = 3


@dataclass(frozen=True)
class DiffRequest:
    """A comparison.

    Attributes:
        old, new: run directories, folders of files or files of labels.
        runs: ``[NAME=]PATH`` each, the systems that are scored under both; the runs' retrievers where left out.
        measures: names; the usual ones where left out.
        confidence: of intervals, tests, and of what is beyond doubt, inside 0..1.
        seed: of every draw.
    """

    old: Path
    new: Path
    runs: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    confidence: float = 0.95
    seed: int = 1


def diff(request: DiffRequest) -> DiffReport:
    """Compare two golden sets.

    Raises:
        UsageError: both are the same folder or file, or something asked for does not exist.
        NotFoundError: there is no such set, or it has no grades yet.
        DataError: a file cannot be right, or the sets have no question in common.
    """
    if request.old.exists() and request.old.resolve() == request.new.resolve():
        raise UsageError(f"{request.old} and {request.new} are one and the same", remedy="raggs diff OLD NEW")
    old, new = _read(request.old), _read(request.new)
    questions, passages = content.questions(old, new), content.passages(old, new)
    pairing = Pairing(content.alias(questions), content.alias(passages))
    if not pairing.shared(old, new):
        raise _strangers(old, new)
    moved = moves(old, new, pairing, confidence=request.confidence, seed=request.seed)
    decisions, warnings = _decisions(request, old, new)
    runs = (old.manifest, new.manifest)
    told = trees.settings(runs[0], runs[1]) if runs[0] and runs[1] else ()
    return DiffReport(
        old=old.part,
        new=new.part,
        decisions=decisions,
        questions=questions,
        passages=passages,
        grades=moved.grades,
        orders=moved.orders,
        by_question=moved.by_question,
        coverage=figures.beside(figures.coverage(old), figures.coverage(new)),
        cost=figures.beside(figures.cost(old), figures.cost(new)),
        health=figures.differing(figures.beside(figures.health(old), figures.health(new))),
        settings=told,
        made=trees.made(runs[0], runs[1], told) if runs[0] and runs[1] else (),
        notes=tuple(_notes(old, new, pairing)),
        warnings=(*dict.fromkeys((*old.judgments.warnings, *new.judgments.warnings)), *warnings),
    )


def _read(path: Path) -> Side:
    """A set; a result of an evaluation is none, and names the one that it was made with."""
    try:
        return read_side(path)
    except DataError as error:
        source = ""
        with suppress(RaggsError):
            source = read_report(path).golden.source
        if source:
            raise UsageError(f"{path} holds scores, made with {source}", remedy=f"name {source} instead") from error
        raise


def _strangers(old: Side, new: Side) -> DataError:
    here, there = (", ".join(list(side.grades)[:SHOWN]) for side in (new, old))
    return DataError(
        f"has no question in common with {old.part.source}, by id or by text: here {here}, there {there}",
        where=new.part.source,
        remedy="make both name questions in the same way",
    )


def _notes(old: Side, new: Side, pairing: Pairing) -> Iterator[str]:
    for word, side in (("OLD", old), ("NEW", new)):
        if side.part.lacks:
            yield f"{word}: {side.part.lacks}"
    if not comparable(old, new):
        one, other = (f"{side.part.lowest} to {side.part.highest}" for side in (old, new))
        yield f"OLD has grades from {one}, NEW from {other}: which moved cannot be told"
    if count := len(pairing.questions) + len(pairing.passages):
        yield f"{plural(count, 'id')} changed and not the content: compared as the same, but lists name either id"


def _decisions(request: DiffRequest, old: Side, new: Side) -> tuple[DecisionsPart | None, tuple[str, ...]]:
    """What both say of the systems, and why their numbers may say nothing."""
    given = _systems(request.runs, old, new)
    if not given.old:
        return None, given.warnings
    measures = _measures(request.measures, old, new)
    scoring = Scoring(measures=measures, confidence=request.confidence, seed=request.seed)
    before = study_systems(old.judgments, given.old, scoring)
    after = study_systems(new.judgments, given.new, scoring)
    part = decisions_part(
        _columns(before), _columns(after), confidence=request.confidence, seed=request.seed, notes=given.notes
    )
    doubts = [
        f"under {word}: {doubt}"
        for word, study in (("OLD", before), ("NEW", after))
        for name, hits in study.hits.items()
        for doubt in filter(None, (_unlisted(name, hits), doubt_of(study, name)))
    ]
    return part, (*given.warnings, *doubts)


def _unlisted(name: str, hits: Hits) -> str:
    missing = int((~hits.returned).sum())
    return f"{name} has no list for {plural(missing, 'judged query')}: each scores 0" if missing else ""


def _measures(names: Sequence[str], old: Side, new: Side) -> list[Named]:
    both = old.judgments.qrels.scale.golden and new.judgments.qrels.scale.golden
    usual = GRADED if both else OTHERS
    wanted = [(name, [CUTOFF] if needs_cutoff(name) else []) for name in names] or [(name, [CUTOFF]) for name in usual]
    found = [one for name, cutoffs in wanted for one in at_cutoffs(name, cutoffs)]
    return list({named.name: named for named in found}.values())


def _columns(study: Study) -> dict[str, Column]:
    return {named.name: _column(study, named) for named in study.scoring.measures}


def _column(study: Study, named: Named) -> Column:
    """Values of one measure, and what unjudged passages could make of the difference of each pair of systems."""
    values = {name: each.column(named.name) for name, each in study.values.items()}
    bounds = {pair: ends_between(named, *map(study.shown, pair)) for pair in combinations(values, 2)}
    ends = {pair: each for pair, each in bounds.items() if each is not None}
    why = {pair: unjudged_tops(unjudged_in(named, {name: study.tops[name] for name in pair})) for pair in ends}
    return Column(study.judgments.qrels.qids, values, named.higher, ends, why)


@dataclass(frozen=True)
class _Given:
    """Systems as each set scores them, alike in number and names, and what is to be said of their lists."""

    old: list[System]
    new: list[System]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def _systems(specs: Sequence[str], old: Side, new: Side) -> _Given:
    if specs:
        systems = list(open_systems(list(specs)))
        return _Given(systems, systems)
    held = [
        {} if side.manifest is None else {system.name: system for system in open_systems([side.part.source])}
        for side in (old, new)
    ]
    if not any(held):
        return _Given([], [], (), ("neither is a run, so nothing is said of decisions; --run FILE names systems",))
    if not all(held):
        systems = list((held[0] or held[1]).values())
        return _Given(systems, systems, ("systems: the retrievers of the one run among both",))
    names = [name for name in held[0] if name in held[1]]
    if not names:
        return _Given([], [], (), ("the runs have no retriever in common; --run FILE names systems",))
    return _of_both([held[0][name] for name in names], [held[1][name] for name in names])


def _of_both(old: list[System], new: list[System]) -> _Given:
    """Retrievers of two runs: by the lists of NEW, and by those of OLD for the questions that only OLD asks."""
    if old[0].origin.other_corpus(new[0].origin):
        said = "the runs search other corpora: each retriever is scored under each set by that run's own lists"
        return _Given(old, new, (), (said,))
    joined = [replace(after, run=_joined(before.run, after.run)) for before, after in zip(old, new, strict=True)]
    alike = old[0].origin.retrieved == new[0].origin.retrieved
    said = "" if alike else ", for the runs retrieved other lists"
    return _Given(joined, joined, (f"systems: the retrievers that both runs hold, by the lists of NEW{said}",))


def _joined(old: Run, new: Run) -> Run:
    """The lists of `new`, and those of `old` for the queries that it lacks."""
    held = set(new.qids)
    if held.issuperset(old.qids):
        return new
    qids, docs, scores = [], [], []
    for run, wanted in ((new, held), (old, set(old.qids) - held)):
        rows = np.flatnonzero(np.array([run.qids[number] in wanted for number in run.query.tolist()]))
        qids += [run.qids[number] for number in run.query[rows].tolist()]
        docs += [doc.decode() for doc in run.docs.take(rows).tolist()]
        scores += run.score[rows].tolist()
    return Run.from_columns(qids, docs, scores)
