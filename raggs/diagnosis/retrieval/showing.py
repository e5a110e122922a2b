"""What the diagnosis of retrieval found, as sentences, tables and plots; from that alone."""

from __future__ import annotations

from raggs.base.text import plural, shorten
from raggs.diagnosis.retrieval.models import EvidencePart, FindingPart, QuestionPart, RetrievalFound, TraitPart
from raggs.evaluation.document import Cell, Legend, Row, Section, Table, bounded
from raggs.evaluation.svg import ForestRow, forest

SHOWN = 8  # traits of a system that are shown, beside those that are clear
WIDTH = 70  # characters of a question
DOUBT = "?"
PLOTTED = 16


def sections(found: RetrievalFound) -> tuple[Section, ...]:
    """Findings, traits, systems, questions."""
    return (_findings(found), _traits(found), _systems(found), _questions(found))


def plots(found: RetrievalFound) -> dict[str, str]:
    """What questions share, for each system."""
    drawn = {}
    for number, system in enumerate(found.systems, start=1):
        parts = [part for part in found.traits if part.system == system.name]
        kept = sorted(sorted(parts, key=_doubtful)[:PLOTTED], key=lambda part: part.difference)
        rows = [ForestRow(part.name, part.difference, part.low, part.high, part.clear) for part in kept]
        if rows:
            title = f"{system.name}: {found.measure} of questions that …, against all others"
            told = f"difference of {found.measure}; grey: may be chance"
            drawn["traits" if number == 1 else f"traits-{number}"] = forest(title, rows, told, changes=True)
    return drawn


def _findings(found: RetrievalFound) -> Section:
    if not found.findings:
        return Section("Findings", ("no rule finds anything that could not be chance", *found.notes))
    sentences = tuple(f"{part.about}: {part.sentence} — {part.knob}" for part in found.findings)
    rows = tuple(row for part in found.findings for row in _finding(part))
    terms = (Legend("[ ]", "interval over resampled questions; all that one rule looks at hold together at 95%"),)
    table = Table(("about", "rule", "evidence", "mean"), rows)
    return Section("Findings", (*sentences, *found.notes), table, (), terms)


def _finding(part: FindingPart) -> list[Row]:
    """A row for each piece of evidence; the finding is named in the first."""
    names = [(part.about, part.rule), *[("", "")] * (len(part.evidence) - 1)]
    return [
        (Cell(about), Cell(rule), Cell(each.quantity), _mean(each))
        for (about, rule), each in zip(names, part.evidence, strict=True)
    ]


def _mean(part: EvidencePart) -> Cell:
    return bounded(part.mean, part.low, part.high, "signed")


def _doubtful(part: TraitPart) -> tuple[bool, float]:
    """Clear ones first, then the largest differences."""
    return not part.clear, -abs(part.effect or 0.0)


def _traits(found: RetrievalFound) -> Section:
    shown = [
        part
        for system in found.systems
        for part in sorted((part for part in found.traits if part.system == system.name), key=_doubtful)[:SHOWN]
    ]
    clear = [part for part in found.traits if part.clear]
    sentences = [
        f"{part.system}: questions that {part.name} do {'worse' if part.difference < 0 else 'better'} — {_advice(part)}"
        for part in clear
    ]
    sentences += [] if clear else ["nothing that questions share can be told from chance"]
    if found.untold:
        sentences.append(f"too few on one side to tell: {', '.join(part.name for part in found.untold)}")
    if found.words:
        sentences.append(f"rare words are counted over {found.words}")
    head = ("system", "questions that …", "with", "without", "difference", "in deviations", "p (Holm)", "worst")
    terms = [Legend("[ ]", "95% interval over questions resampled within both groups")]
    terms += [Legend(DOUBT, "may be chance, as so many traits are looked at")] if len(clear) < len(shown) else []
    title = f"What questions share, and what that makes of {found.measure}"
    return Section(title, tuple(sentences), Table(head, tuple(map(_trait, shown))) if shown else None, (), tuple(terms))


def _advice(part: TraitPart) -> str:
    return part.knob if part.difference < 0 else "nothing to turn for them"


def _trait(part: TraitPart) -> Row:
    return (
        Cell(part.system),
        Cell(part.name),
        Cell(f"{part.having_mean:z.4f} ({part.having})"),
        Cell(f"{part.lacking_mean:z.4f} ({part.lacking})"),
        bounded(part.difference, part.low, part.high, "signed", "" if part.clear else DOUBT),
        bounded(part.effect, part.effect_low, part.effect_high, "signed"),
        Cell(part.corrected, "score"),
        Cell(", ".join(part.examples[:3])),
    )


def _systems(found: RetrievalFound) -> Section:
    rows = tuple(
        (
            Cell(part.name),
            bounded(part.mean, part.low, part.high),
            Cell(f"{part.failing} of {part.questions} [{part.failing_low:.0%}, {part.failing_high:.0%}]"),
        )
        for part in found.systems
    )
    return Section("Systems", (), Table(("system", found.measure, f"below {found.failing_below:g}"), rows))


def _questions(found: RetrievalFound) -> Section:
    if not found.worst:
        return Section("Questions that fail", (f"none is below {found.failing_below:g}",))
    names = tuple(part.name for part in found.systems)
    rows = tuple(_question(part, names) for part in found.worst)
    head = ("question", *names, "they …", "text")
    said = f"{plural(len(rows), 'question')} where {names[0]} does worst"
    return Section("Questions that fail", (said,), Table(head, rows))


def _question(part: QuestionPart, names: tuple[str, ...]) -> Row:
    values = tuple(Cell(part.values.get(name), "score") for name in names)
    return (Cell(part.qid), *values, Cell(", ".join(part.traits)), Cell(shorten(part.text, WIDTH)))
