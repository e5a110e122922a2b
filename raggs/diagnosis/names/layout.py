"""The findings as sections: base margins, what each perturber does to them, and what that does to recall."""

from __future__ import annotations

from collections.abc import Iterator

from raggs.base.jsontypes import Number
from raggs.base.text import plural
from raggs.diagnosis.names.models import AblationPart, EndPart, EndToEnd, MarginPart, NamesFound, SubjectPart
from raggs.evaluation.document import Cell, Form, Legend, Section, Table, bounded, formatted

FAMILIES = {"identity": "identity destroyed", "form": "another form", "layout": "another layout"}
MARKS = {True: "", False: "✗", None: "?"}
SMALL = "bundles whose base margin is under .02 have no percentage"
LEGEND = (
    Legend("[ ]", "95% interval over resampled questions"),
    Legend("✗", "beyond its limit"),
    Legend("?", "the interval holds the limit"),
)


def sections(found: NamesFound) -> tuple[Section, ...]:
    """All that is to be shown, the most important first."""
    several = (_beside(found),) if len(found.subjects) > 1 else ()
    return (*several, *(_changes(found, each) for each in found.subjects), _bases(found), *_ends(found))


def _beside(found: NamesFound) -> Section:
    """All scorers in all languages, a column each."""
    head = ("perturber", *(f"{each.scorer}, {each.language}" for each in found.subjects))
    rows = tuple(
        (Cell(parts[0].perturber), *(Cell(_percent(part.percent.value) + MARKS[part.holds]) for part in parts))
        for parts in zip(*(each.ablations for each in found.subjects), strict=True)
    )
    return Section("Change of the name margin in percent", (), Table(head, rows), LEGEND[1:])


def _changes(found: NamesFound, subject: SubjectPart) -> Section:
    rows = tuple(_row(part) for part in subject.ablations)
    left = max((part.left_out for part in subject.ablations), default=0)
    total = subject.questions * subject.runs
    limits = (
        f"A destroyed identity must cost the name margin {found.least_loss:g}% or more, another form or layout "
        f"{found.most_loss:g}% or less."
    )
    return Section(
        f"Name margin of {subject.scorer}, {subject.language}",
        (limits, f"{SMALL}: {left:,} of {total:,}.") if left else (limits,),
        Table(("perturber", "kind", "change %", "between runs", "of the means %", "change"), rows),
        LEGEND,
    )


def _row(part: AblationPart) -> tuple[Cell, ...]:
    return (
        Cell(part.perturber),
        Cell(FAMILIES[part.family]),
        bounded(part.percent.value, part.percent.low, part.percent.high, "percent", MARKS[part.holds]),
        Cell(_percent(part.percent.sd).removeprefix("+")),
        bounded(part.of_means, part.of_means_low, part.of_means_high, "percent"),
        _cell(part.absolute, "signed"),
    )


def _bases(found: NamesFound) -> Section:
    rows = tuple(
        (
            Cell(each.scorer),
            Cell(each.language),
            _cell(each.name),
            Cell(each.name.sd, "score"),
            _cell(each.topic),
            _cell(each.both),
            bounded(each.ratio, each.ratio_low, each.ratio_high),
        )
        for each in found.subjects
    )
    return Section(
        "Margins before any change",
        tuple(_drawn(found)),
        Table(("scorer", "language", "name", "between runs", "topic", "both", "name / topic"), rows),
        terms=(
            Legend("name", "score of the right author over the better of two others, on the same topic"),
            Legend("topic", "score of the right topic over another one, by the same author"),
            Legend("between runs", "standard deviation of the runs' means"),
        ),
    )


def _drawn(found: NamesFound) -> Iterator[str]:
    names = ", ".join(f"{count:,} ({language})" for language, count in found.names.items())
    read = "after Unicode hygiene" if found.cleaned else "as they stand, without Unicode hygiene"
    first = found.subjects[0]
    yield (
        f"{plural(first.questions, 'question')} a language, {plural(first.runs, 'run')}; names of {found.source}: "
        f"{names}; texts are read {read}."
    )


def _ends(found: NamesFound) -> Iterator[Section]:
    end = found.end_to_end
    if end is None:
        return
    title = f"What it does to {end.measure} of the golden set"
    if end.note is not None:
        yield Section(title, (end.note,))
        return
    head = ("embedder", "perturber", "before", "after", "change", "name margin %", "passages changed")
    yield Section(title, tuple(_told(end, found)), Table(head, tuple(map(_end, end.changes))), LEGEND[:1])


def _end(part: EndPart) -> tuple[Cell, ...]:
    return (
        Cell(part.embedder),
        Cell(part.perturber),
        Cell(part.before, "score"),
        Cell(part.after, "score"),
        bounded(part.difference, part.low, part.high, "signed"),
        Cell(part.margin, "percent"),
        Cell(f"{part.passages:,}"),
    )


def _told(end: EndToEnd, whole: NamesFound) -> Iterator[str]:
    yield (
        f"{end.questions:,} of {plural(end.judged, 'judged question')} hold names that stand in the corpus; "
        f"dense search in {plural(end.passages, 'passage')}."
    )
    probed = list(dict.fromkeys(each.language for each in whole.subjects))
    if end.language not in probed:
        yield f"Most of these questions are in {end.language}; the margins beside are those of {probed[0]}."
    found = end.prediction
    if found is not None and found.spearman is not None:
        bounds = "" if found.low is None or found.high is None else f" [{found.low:.2f}, {found.high:.2f}]"
        yield (
            f"Rank correlation of the change of the name margin with that of {end.measure}, over {found.points} "
            f"points: {found.spearman:.2f}{bounds}."
        )


def _cell(part: MarginPart, form: Form = "score") -> Cell:
    return bounded(part.value, part.low, part.high, form)


def _percent(value: Number) -> str:
    return formatted(value, "+z.1f")
