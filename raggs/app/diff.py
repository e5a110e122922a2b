"""Comparison of two golden sets, or of two runs.

`diff` compares the labels of two golden sets, and scores the same systems with each set, as `raggs eval` does. The
document lists the verdicts that flip, then the scores, then the causes. `diff` writes no file and judges no passage.

`compare_runs` compares the settings and the costs of two runs. It reads only the two run directories.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from pydantic import JsonValue

from raggs.base.document import UNDEFINED, Legend, ReportDocument, Section, Table, formatted, markdown, table_of
from raggs.base.errors import DataError, RaggsError, UsageError
from raggs.base.files import write_texts
from raggs.base.hashing import canonical_json
from raggs.base.text import plural, shorten
from raggs.base.types import Number
from raggs.evaluation import diff_results, diff_sets
from raggs.evaluation import diff_results as trees
from raggs.evaluation.diff_results import (
    RunsReport,
    ScoreColumn,
    SpentPart,
    StageDiffPart,
    decisions_part,
    health_words,
    runs_report,
)
from raggs.evaluation.diff_sets import (
    ChangedPart,
    ContentPart,
    DecisionsPart,
    DiffReport,
    EstimatePart,
    FigurePart,
    GoldenSide,
    GradesPart,
    IdPairing,
    OrdersPart,
    QuestionDiffPart,
    SettingDiffPart,
    SidePart,
    VerdictPart,
    comparable,
    grade_moves,
    read_side,
)
from raggs.evaluation.gates import read_report
from raggs.evaluation.messages import unjudged_tops, verdict_word
from raggs.evaluation.study import ScoringSettings, Study, doubt_of, ends_between, study_systems, unjudged_in
from raggs.golden.sources import NamedSystem, open_systems
from raggs.metrics.columns import Run
from raggs.metrics.hits import Hits
from raggs.metrics.names import MeasureSpec, at_cutoffs, needs_cutoff
from raggs.runs.manifests.costs import costs
from raggs.runs.manifests.open_run import open_run
from raggs.stats.comparison import Verdict

GRADED = ("ndcg", "ra_nwg", "recall", "mrr")
BINARY_MEASURES = ("ndcg", "recall", "mrr")
CUTOFF = 10
MAX_SHOWN_IDS = 3


@dataclass(frozen=True)
class DiffRequest:
    """Options of a comparison of golden sets.

    Attributes:
        old, new: run directories, folders of files, or files of labels.
        runs: ``[NAME=]PATH`` each, systems to score under both sets [default: the runs' retrievers].
        measures: names of measures [default: ndcg, recall and mrr at 10, and ra_nwg if both sets have grades 1 to 5].
        confidence: confidence level of intervals, tests and verdicts, between 0 and 1.
        seed: random seed.
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
        UsageError: both are the same folder or file, or a named system or measure does not exist.
        NotFoundError: a set is missing, or has no grades yet.
        DataError: a file is invalid, or the sets have no query in common.
    """
    if request.old.exists() and request.old.resolve() == request.new.resolve():
        raise UsageError(f"{request.old} and {request.new} are the same set", remedy="raggs diff OLD NEW")
    old, new = _read(request.old), _read(request.new)
    questions, passages = diff_sets.questions(old, new), diff_sets.passages(old, new)
    pairing = IdPairing(diff_sets.alias(questions), diff_sets.alias(passages))
    if not pairing.shared(old, new):
        raise _no_common_query_error(old, new)
    moved = grade_moves(old, new, pairing, confidence=request.confidence, seed=request.seed)
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
        coverage=diff_results.figure_parts(diff_results.coverage(old), diff_results.coverage(new)),
        cost=diff_results.figure_parts(diff_results.cost(old), diff_results.cost(new)),
        health=diff_results.differing_figures(
            diff_results.figure_parts(diff_results.health(old), diff_results.health(new))
        ),
        settings=told,
        made=trees.stage_input_diffs(runs[0], runs[1], told) if runs[0] and runs[1] else (),
        notes=tuple(_notes(old, new, pairing)),
        warnings=(*dict.fromkeys((*old.judgments.warnings, *new.judgments.warnings)), *warnings),
    )


def _read(path: Path) -> GoldenSide:
    """Read a golden set; for the result of an evaluation, raise an error that names its golden set."""
    try:
        return read_side(path)
    except DataError as error:
        source = ""
        with suppress(RaggsError):
            source = read_report(path).golden.source
        if source:
            raise UsageError(
                f"{path} contains scores, computed with {source}", remedy=f"name {source} instead"
            ) from error
        raise


def _no_common_query_error(old: GoldenSide, new: GoldenSide) -> DataError:
    here, there = (", ".join(list(side.grades)[:MAX_SHOWN_IDS]) for side in (new, old))
    return DataError(
        f"has no query in common with {old.part.source}, by id or by text: this set has {here}, the other {there}",
        where=new.part.source,
        remedy="use the same query ids in both sets",
    )


def _notes(old: GoldenSide, new: GoldenSide, pairing: IdPairing) -> Iterator[str]:
    for word, side in (("OLD", old), ("NEW", new)):
        if side.part.lacks:
            yield f"{word}: {side.part.lacks}"
    yield from lineage_sentences(old, new)
    if not comparable(old, new):
        one, other = (f"{side.part.lowest} to {side.part.highest}" for side in (old, new))
        yield f"OLD has grades from {one}, NEW from {other}: grades cannot be compared"
    if count := len(pairing.questions) + len(pairing.passages):
        yield f"{plural(count, 'id')} changed, but not the content: old and new id count as the same"


def lineage_sentences(old: GoldenSide, new: GoldenSide) -> Iterator[str]:
    """Yield how two sets are related if `raggs update` made one of them."""
    runs = (("OLD", old, "NEW", new), ("NEW", new, "OLD", old))
    for word, side, other, earlier in runs:
        lineage = None if side.manifest is None else side.manifest.lineage
        if lineage is None:
            continue
        yield f"{word} is {side.part.version}"
        before = None if earlier.manifest is None else earlier.manifest.version
        if before == lineage.parent:
            carried = f"carried labels are equal in both sets; labels made for {word} may differ"
            yield f"{other} is the parent of {word}: {carried}"
        elif before in lineage.ancestors:
            yield f"{other} is {lineage.ancestors.index(before) + 2} versions before {word}"


def _decisions(request: DiffRequest, old: GoldenSide, new: GoldenSide) -> tuple[DecisionsPart | None, tuple[str, ...]]:
    """Compare the verdicts on the same systems with the old and the new set, and warn if they are not comparable."""
    given = _systems(request.runs, old, new)
    if not given.old:
        return None, given.warnings
    measures = _measures(request.measures, old, new)
    scoring = ScoringSettings(measures=measures, confidence=request.confidence, seed=request.seed)
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
    return f"{name} has no list for {plural(missing, 'judged query')}, scored as an empty list" if missing else ""


def _measures(names: Sequence[str], old: GoldenSide, new: GoldenSide) -> list[MeasureSpec]:
    both = old.judgments.qrels.scale.golden and new.judgments.qrels.scale.golden
    usual = GRADED if both else BINARY_MEASURES
    wanted = [(name, [CUTOFF] if needs_cutoff(name) else []) for name in names] or [(name, [CUTOFF]) for name in usual]
    found = [one for name, cutoffs in wanted for one in at_cutoffs(name, cutoffs)]
    return list({named.name: named for named in found}.values())


def _columns(study: Study) -> dict[str, ScoreColumn]:
    return {named.name: _column(study, named) for named in study.scoring.measures}


def _column(study: Study, named: MeasureSpec) -> ScoreColumn:
    """Return the values of one measure, and for each pair of systems the range of its difference over unjudged
    passages.
    """
    values = {name: each.column(named.name) for name, each in study.values.items()}
    bounds = {pair: ends_between(named, *map(study.shown, pair)) for pair in combinations(values, 2)}
    ends = {pair: each for pair, each in bounds.items() if each is not None}
    why = {pair: unjudged_tops(unjudged_in(named, {name: study.tops[name] for name in pair})) for pair in ends}
    return ScoreColumn(study.judgments.qrels.qids, values, named.higher, ends, why)


@dataclass(frozen=True)
class _ScoredSets:
    """The systems to score with each set, and notes and warnings about their lists. Both sides have the same names."""

    old: list[NamedSystem]
    new: list[NamedSystem]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def _systems(specs: Sequence[str], old: GoldenSide, new: GoldenSide) -> _ScoredSets:
    if specs:
        systems = list(open_systems(list(specs)))
        return _ScoredSets(systems, systems)
    held = [
        {} if side.manifest is None else {system.name: system for system in open_systems([side.part.source])}
        for side in (old, new)
    ]
    if not any(held):
        return _ScoredSets([], [], (), ("no verdicts: neither set is a run; name systems with --run FILE",))
    if not all(held):
        systems = list((held[0] or held[1]).values())
        return _ScoredSets(systems, systems, ("systems: the retrievers of the run (the other set is not a run)",))
    names = [name for name in held[0] if name in held[1]]
    if not names:
        return _ScoredSets([], [], (), ("the runs have no retriever in common; name systems with --run FILE",))
    return _of_both([held[0][name] for name in names], [held[1][name] for name in names])


def _of_both(old: list[NamedSystem], new: list[NamedSystem]) -> _ScoredSets:
    """Return the retrievers of two runs with one list per query: the list of NEW, or of OLD if NEW lacks the query.

    If the runs search different corpora, each set is scored with the lists of its run.
    """
    if old[0].origin.other_corpus(new[0].origin):
        said = "the runs search different corpora: with each set, the lists of its run are scored"
        return _ScoredSets(old, new, (), (said,))
    joined = [replace(after, run=_joined_run(before.run, after.run)) for before, after in zip(old, new, strict=True)]
    alike = old[0].origin.retrieved == new[0].origin.retrieved
    said = "" if alike else ", because the runs retrieved different lists"
    return _ScoredSets(joined, joined, (f"systems: the retrievers of both runs, with the lists of NEW{said}",))


def _joined_run(old: Run, new: Run) -> Run:
    """Return the lists of `new`, and for queries that `new` lacks, the lists of `old`."""
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


MAX_NAMED_MOVERS = 3  # queries named per flip
MAX_LISTED = 10  # maximum number of flips or queries shown, or of ids in a sentence
VALUE = 32  # characters of a setting's value
ORDER_LEGENDS = (
    Legend("tau_AP", "AP correlation of the new order with the old one: 1 identical, 0 random"),
    Legend(
        "expected",
        "overlap of the tops (shared passages) if only the stated uncertainty changed the order",
    ),
    Legend("change", "beyond: the orders overlap less than their stated uncertainty explains"),
)


def lay_out_diff(report: DiffReport) -> ReportDocument:
    """Return the document of a comparison, without computing anything."""
    sections = tuple(section for section in _sections(report) if section.sentences or section.table)
    return ReportDocument(
        "Golden sets: OLD and NEW", _decisions_section(report), sections, report.notes, report.warnings
    )


def _decisions_section(report: DiffReport) -> Section:
    found = report.decisions
    sides = (_side("OLD", report.old), _side("NEW", report.new))
    same = ("both sets contain the same judgments",) if report.same else ()
    if found is None:
        return Section("Decisions", (*sides, *same))
    head = ("pair", "measure", "OLD", "NEW", "difference, OLD", "difference, NEW")
    said = (*flip_sentences(found), *sides, *same, *found.notes)
    return Section("Decisions", said, Table.of(head, map(_flip, found.flips)))


def flip_sentences(found: DecisionsPart) -> Iterator[str]:
    """Yield the number of verdicts that differ, and a sentence on each of the first `MAX_LISTED`."""
    if not found.verdicts:
        yield "one system: no verdicts to compare"
        return
    total, flips = plural(len(found.verdicts), "verdict"), found.flips
    yield f"{len(flips)} of {total} flip:" if flips else f"no verdict flips (of {total})"
    for each in flips[:MAX_LISTED]:
        old, new = (_verdict_text(*side) for side in ((each.old, each.old_unjudged), (each.new, each.new_unjudged)))
        how = f"reversed ({old} -> {new})" if each.reversed else f"{old} -> {new}"
        yield f"  {each.first} against {each.second} on {each.measure}: {how}{_movers(each)}"
    if len(flips) > MAX_LISTED:
        yield f"  … and {len(flips) - MAX_LISTED} more; see diff.json"


def _verdict_text(verdict: Verdict, unjudged: str | None) -> str:
    """Return a verdict as text. For an inconclusive verdict, add the cause: too few queries or unjudged passages."""
    if verdict == "inconclusive":
        return f"{verdict} (too few queries)"
    return f"{verdict_word(verdict)} ({unjudged})" if unjudged else verdict_word(verdict)


def _movers(each: VerdictPart) -> str:
    moved = ", ".join(f"{one.qid} {one.new - one.old:+.2f}" for one in each.moved_by[:MAX_NAMED_MOVERS])
    return f" (largest changes: {moved})" if moved else ""


def _flip(each: VerdictPart) -> tuple[str, ...]:
    verdicts = (_verdict_text(each.old, each.old_unjudged), _verdict_text(each.new, each.new_unjudged))
    differences = (_estimate(part, "+z.3f") for part in (each.old_difference, each.new_difference))
    return (f"{each.first} - {each.second}", each.measure, *verdicts, *differences)


def _side(word: str, side: SidePart) -> str:
    return (
        f"{word}: {side.source}, {plural(side.judgments, 'grade')} of {plural(side.queries, 'query')}, "
        f"digest {side.digest[:12]}"
    )


def _sections(report: DiffReport) -> Iterator[Section]:
    if report.decisions is not None:
        yield _scores(report.decisions)
    yield _grades(report.grades)
    yield _orders(report.orders, report.by_question)
    yield _content(report)
    yield _moved_questions_section(report.by_question)
    yield _figures("Coverage", report.coverage)
    yield _figures("Cost", report.cost)
    told = [part for part in report.health if ".interval." not in part.name]
    named = [part.model_copy(update={"name": health_words(part.name)}) for part in told]
    yield _figures("Differences in judge health", named)
    yield settings_section("Settings that differ", report.settings)
    yield settings_section("Other inputs of the results that differ", report.made)


def _scores(found: DecisionsPart) -> Section:
    return Section("Scores with both sets", table=table_of(found.scores, "system", "measure", "old", "new"))


def _grades(found: GradesPart | None) -> Section:
    title = "Grades that changed: OLD in rows, NEW in columns"
    if found is None:
        return Section(title, ("no grade can be compared",))
    moved = found.up + found.down
    said = (
        f"{moved:,} of {plural(found.compared, 'grade')} changed ({format_share(moved, found.compared)}): "
        f"{found.up:,} up, "
        f"{found.down:,} down, {found.far:,} by two or more; kappa {_estimate(found.kappa, 'z.3f')}",
        f"{found.to_relevant:,} became relevant, {found.from_relevant:,} not relevant; {found.added:,} are judged only "
        f"in NEW, {found.removed:,} only in OLD",
    )
    rows = (
        (f"OLD {label}", *(f"{count:,}" if count else "·" for count in row))
        for label, row in zip(found.labels, found.table, strict=True)
    )
    return Section(title, said, Table.of(("", *(f"NEW {label}" for label in found.labels)), rows))


def _orders(found: OrdersPart | None, questions: Sequence[QuestionDiffPart]) -> Section:
    title = "Orders that changed"
    if found is None:
        return Section(title, ("no query has two passages that both sets rank",))
    means = (
        f"tau_AP {_format_or_dash(found.tau_ap)}, RBO {_format_or_dash(found.rbo)}, overlap@{found.k} "
        f"{_format_or_dash(found.overlap)}"
    )
    said = [f"{means} (means over {plural(found.compared, 'query')})"]
    if not found.tested:
        return Section(title, (*said, "no query has enough shared passages with a stated uncertainty"))
    names = _list_clause([each.qid for each in questions if each.change == "beyond"])
    said.append(
        f"of {plural(found.tested, 'query')} with a stated uncertainty, {found.beyond} changed beyond it (by chance at "
        f"most {found.by_chance:.1f}){names}; the top passages that both rank overlap by "
        f"{_format_or_dash(found.shared)}, "
        f"expected {_format_or_dash(found.expected)}"
    )
    return Section(title, tuple(said))


def _content(report: DiffReport) -> Section:
    kinds = (("queries", report.questions), ("passages", report.passages))
    rows = ((name, part.same, *map(len, _lists(part))) for name, part in kinds)
    said = [sentence for name, part in kinds for sentence in _change_sentences(name, part)]
    head = ("", "same", "added", "removed", "changed", "renamed")
    return Section("Queries and passages", tuple(said), Table.of(head, rows))


def _lists(part: ContentPart) -> tuple[Sequence[object], ...]:
    return part.added, part.removed, part.changed, part.renamed


def _change_sentences(name: str, part: ContentPart) -> Iterator[str]:
    if not part.known:
        yield f"one set has no texts of {name}: only ids are compared"
    for what, found in (("added", part.added), ("removed", part.removed), ("changed", part.changed)):
        if found:
            yield f"{name} {what}{_list_clause([_change_text(each) for each in found])}"
    if part.renamed:
        yield f"{name} with another id{_list_clause([f'{each.old} -> {each.new}' for each in part.renamed])}"


def _change_text(each: str | ChangedPart) -> str:
    if isinstance(each, str):
        return each
    return each.id if each.fields == ("text",) else f"{each.id} ({', '.join(each.fields)})"


def _list_clause(names: Sequence[str]) -> str:
    """Return a clause such as `: a, b, … and 3 more`; empty if there are no names."""
    more = f", … and {len(names) - MAX_LISTED:,} more" if len(names) > MAX_LISTED else ""
    return f": {', '.join(names[:MAX_LISTED])}{more}" if names else ""


def _moved_questions_section(parts: Sequence[QuestionDiffPart]) -> Section:
    moved = [each for each in parts if each.moved or (each.overlap is not None and each.overlap < 1)][:MAX_LISTED]
    if not moved:
        return Section("")
    ranked = any(each.overlap is not None for each in moved)
    head = ("query", "grades changed", "mean change", *(("tau_AP", "overlap", "expected", "change") if ranked else ()))
    table = Table.of(head, (_moved_question_cells(each)[: len(head)] for each in moved))
    return Section("Queries that changed most", table=table, terms=ORDER_LEGENDS if ranked else ())


def _moved_question_cells(each: QuestionDiffPart) -> tuple[str | None, ...]:
    heads = map(_format_or_dash, (each.tau_ap, each.overlap, each.expected))
    return (each.qid, f"{each.moved} of {each.compared}", _format_or_dash(each.shift, "+z.2f"), *heads, each.change)


def _figures(title: str, parts: Sequence[FigurePart]) -> Section:
    rows = ((part.name, _figure(part.old), _figure(part.new)) for part in parts)
    return Section(title, table=Table.of(("figure", "OLD", "NEW"), rows))


def settings_section(title: str, parts: Sequence[SettingDiffPart], sides: tuple[str, str] = ("OLD", "NEW")) -> Section:
    """Return a section with a table that has one row per differing value."""
    rows = ((_place(part), _value(part, old=True), _value(part, old=False)) for part in parts)
    return Section(title, table=Table.of(("setting", *sides), rows))


def _place(part: SettingDiffPart) -> str:
    stage = getattr(part, "stage", "")
    return f"{stage}: {part.name}" if stage else part.name


def _value(part: SettingDiffPart, *, old: bool) -> str:
    if part.change == ("added" if old else "removed"):
        return UNDEFINED
    return format_setting(part.old if old else part.new)


def format_setting(value: JsonValue) -> str:
    """Return a setting as a table shows it; hashes are shortened to their beginning."""
    text = value if isinstance(value, str) else canonical_json(value)
    is_hash = len(text) == 64 and all(char in "0123456789abcdef" for char in text)
    return text[:8] if is_hash else shorten(text, VALUE) or repr(value)


def format_share(part: int, whole: int) -> str:
    """Return a share in per cent; a positive share below 1% is not shown as 0%."""
    share = part / whole if whole else 0.0
    return "less than 1%" if 0 < share < 0.01 else f"{share:.0%}"


def _figure(value: Number) -> str:
    if value is None:
        return UNDEFINED
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4f}".rstrip("0")


def _format_or_dash(value: Number, form: str = "z.3f") -> str:
    return formatted(value, form)


def _estimate(found: EstimatePart, form: str) -> str:
    value = _format_or_dash(found.value, form)
    return value if found.low is None or found.high is None else f"{value} [{found.low:{form}}, {found.high:{form}}]"


def diff_json(report: DiffReport) -> str:
    """Return the complete result as JSON, in the schema of `raggs schema diff`."""
    return report.model_dump_json(indent=2)


def write_diff(report: DiffReport, folder: Path) -> list[Path]:
    """Write diff.json and diff.md into `folder`, which is created if missing.

    Raises:
        ProviderError: the folder cannot be written.
    """
    return write_texts(folder, {"diff.json": diff_json(report) + "\n", "diff.md": markdown(lay_out_diff(report))})


MAX_REASONS = 6  # maximum number of reasons per stage in a sentence; the JSON output has all


def compare_runs(first: Path, second: Path) -> RunsReport:
    """Compare two runs.

    Raises:
        UsageError: both are the same run, or have different pipelines.
        NotFoundError: a run does not exist.
        DataError: a manifest or a ledger is damaged.
    """
    if first.exists() and first.resolve() == second.resolve():
        raise UsageError(f"{first} and {second} are the same run", remedy="raggs compare RUN_A RUN_B")
    one, two = open_run(first), open_run(second)
    if one.manifest.pipeline != two.manifest.pipeline:
        said = f"{first} is a run of the pipeline {one.manifest.pipeline}, {second} of {two.manifest.pipeline}"
        raise UsageError(said, remedy="compare runs of the same pipeline")
    spent = (costs(one.store), costs(two.store))
    return runs_report((str(first), str(second)), (one.manifest, two.manifest), spent)


def lay_out_runs(report: RunsReport) -> ReportDocument:
    """Return the document of a comparison of runs, without computing anything."""
    sections = (
        Section("Stages", table=_stages(report)),
        Section("Causes", tuple(_compare_why(report))),
        settings_section("Other inputs of the results that differ", report.made, ("A", "B")),
    )
    held = tuple(section for section in sections if section.sentences or section.table)
    return ReportDocument("Two runs: A and B", _settings(report), held, ())


def _settings(report: RunsReport) -> Section:
    counting = sum(part.counts for part in report.settings)
    differ = plural(len(report.settings), "setting")
    said = (
        f"A: {report.first}, {_money(report.total[0])}",
        f"B: {report.second}, {_money(report.total[1])}",
        f"{differ}, {counting} of them affect{'s' if counting == 1 else ''} results"
        if report.settings
        else "no setting differs",
    )
    rows = (
        (part.name, _value(part, old=True), _value(part, old=False), "yes" if part.counts else "no")
        for part in sorted(report.settings, key=lambda part: not part.counts)
    )
    return Section("Settings", said, Table.of(("setting", "A", "B", "affects results"), rows))


def _stages(report: RunsReport) -> Table | None:
    head = ("stage", "result", "calls, A", "calls, B", "USD, A", "USD, B")
    return Table.of(head, map(_stage, report.stages))


def _stage(part: StageDiffPart) -> tuple[str, ...]:
    sides = (part.first, part.second)
    calls, usd = (f"{side.calls:,}" for side in sides), (f"{side.usd:.4f}" for side in sides)
    return (part.stage, part.result, *calls, *usd)


def _compare_why(report: RunsReport) -> Iterator[str]:
    """Yield one clause per stage with another result, with the changed inputs and settings, as in `raggs why`."""
    for part in report.stages:
        if part.result == "other":
            more = f"; and {len(part.reasons) - MAX_REASONS} more" if len(part.reasons) > MAX_REASONS else ""
            reasons = "; ".join(part.reasons[:MAX_REASONS]) or "same inputs, but another result"
            yield f"{part.stage}: {reasons}{more}"


def _money(spent: SpentPart) -> str:
    return f"{plural(spent.calls, 'call')}, {spent.usd:.4f} USD"
