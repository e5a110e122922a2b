"""What a comparison of two golden sets found, as a document: what flips first, then what moved, then why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import JsonValue

from raggs.base.atomic import write_texts
from raggs.base.hashing import canonical_json
from raggs.base.jsontypes import Number
from raggs.base.text import plural, shorten
from raggs.evaluation.diffs.healthwords import health_words
from raggs.evaluation.diffs.models import (
    ChangedPart,
    ContentPart,
    DecisionsPart,
    DiffReport,
    EstimatePart,
    FigurePart,
    GradesPart,
    OrdersPart,
    QuestionPart,
    SettingPart,
    SidePart,
    VerdictPart,
)
from raggs.evaluation.document import UNDEFINED, Cell, Document, Legend, Row, Section, Table, formatted
from raggs.evaluation.words import VERDICTS
from raggs.evaluation.writers import markdown
from raggs.metrics.stats import Verdict

NAMED = 3  # questions behind a flip
MOST = 10  # questions, and ids in a sentence
VALUE = 32  # characters of a setting's value
BEYOND = (
    Legend("tau_AP", "AP correlation of the new order with the old one: 1 the same, 0 as by chance"),
    Legend("expected", "overlap of the shared passages if each order were off by its stated doubt alone"),
    Legend("change", "beyond: less overlap than the stated doubt explains"),
)


def lay_out_diff(report: DiffReport) -> Document:
    """The document of a comparison; nothing is computed here."""
    sections = tuple(section for section in _sections(report) if section.sentences or section.table)
    return Document("Golden sets: OLD and NEW", _first(report), sections, report.notes, report.warnings)


def _first(report: DiffReport) -> Section:
    found = report.decisions
    sides = (_side("OLD", report.old), _side("NEW", report.new))
    same = ("both hold the same judgments",) if report.same else ()
    if found is None:
        return Section("Decisions", (*sides, *same))
    rows = tuple(_flip(each) for each in found.flips)
    head = ("pair", "measure", "OLD", "NEW", "difference, OLD", "difference, NEW")
    said = (*flip_sentences(found), *sides, *same, *found.notes)
    return Section("Decisions", said, Table(head, rows) if rows else None)


def flip_sentences(found: DecisionsPart) -> Iterator[str]:
    """How many verdicts differ, and each of them."""
    if not found.verdicts:
        yield "one system: there is nothing to decide between"
        return
    total, flips = plural(len(found.verdicts), "verdict"), found.flips
    yield f"{len(flips)} of {total} flip:" if flips else f"no decision changes: none of {total} flips"
    for each in flips[:MOST]:
        old, new = (_why(*side) for side in ((each.old, each.old_unjudged), (each.new, each.new_unjudged)))
        how = "reversed" if each.reversed else f"{old} -> {new}"
        now = f", {each.first} is now {VERDICTS[each.new]}" if each.reversed else ""
        yield f"  {each.first} against {each.second} on {each.measure}: {how}{now}{_movers(each)}"
    if len(flips) > MOST:
        yield f"  … and {len(flips) - MOST} more, all of them in diff.json"


def _why(verdict: Verdict, unjudged: str | None) -> str:
    """A verdict, and why it is inconclusive where unjudged passages could reverse it."""
    return f"{VERDICTS[verdict]} ({unjudged})" if unjudged else VERDICTS[verdict]


def _movers(each: VerdictPart) -> str:
    moved = ", ".join(f"{one.qid} {one.new - one.old:+.2f}" for one in each.moved_by[:NAMED])
    return f" (most by {moved})" if moved else ""


def _flip(each: VerdictPart) -> Row:
    return (
        Cell(f"{each.first} - {each.second}"),
        Cell(each.measure),
        Cell(_why(each.old, each.old_unjudged)),
        Cell(_why(each.new, each.new_unjudged)),
        Cell(_estimate(each.old_difference, "+z.3f")),
        Cell(_estimate(each.new_difference, "+z.3f")),
    )


def _side(word: str, side: SidePart) -> str:
    return (
        f"{word}: {side.source}, {plural(side.judgments, 'grade')} of {plural(side.queries, 'question')}, "
        f"fingerprint {side.digest[:12]}"
    )


def _sections(report: DiffReport) -> Iterator[Section]:
    if report.decisions is not None:
        yield _scores(report.decisions)
    yield _grades(report.grades)
    yield _orders(report.orders, report.by_question)
    yield _content(report)
    yield _most(report.by_question)
    yield _figures("Coverage", report.coverage)
    yield _figures("Cost", report.cost)
    told = [part for part in report.health if ".interval." not in part.name]
    named = [part.model_copy(update={"name": health_words(part.name)}) for part in told]
    yield _figures("The judge's health, where it differs", named)
    yield settings_section("Settings that differ", report.settings)
    yield settings_section("What else results were made from", report.made)


def _scores(found: DecisionsPart) -> Section:
    rows = tuple(
        (Cell(each.system), Cell(each.measure), *(Cell(value, "score") for value in (each.old, each.new)))
        for each in found.scores
    )
    return Section("Systems under both", table=Table(("system", "measure", "OLD", "NEW"), rows))


def _grades(found: GradesPart | None) -> Section:
    title = "Grades that moved: OLD in rows, NEW in columns"
    if found is None:
        return Section(title, ("no grade can be compared",))
    moved = found.up + found.down
    said = (
        f"{moved:,} of {plural(found.compared, 'grade')} moved ({share(moved, found.compared)}): {found.up:,} up, "
        f"{found.down:,} down, {found.far:,} by two or more; kappa {_estimate(found.kappa, 'z.3f')}",
        f"{found.to_relevant:,} became relevant, {found.from_relevant:,} are so no longer; {found.added:,} judged in "
        f"NEW alone, {found.removed:,} in OLD alone",
    )
    rows = (
        (Cell(f"OLD {label}"), *(Cell(f"{count:,}") if count else Cell("·") for count in row))
        for label, row in zip(found.labels, found.table, strict=True)
    )
    return Section(title, said, Table(("", *(f"NEW {label}" for label in found.labels)), tuple(rows)))


def _orders(found: OrdersPart | None, questions: Sequence[QuestionPart]) -> Section:
    title = "Orders that moved"
    if found is None:
        return Section(title, ("no question is ranked in both",))
    means = f"tau_AP {_plain(found.tau_ap)}, RBO {_plain(found.rbo)}, overlap@{found.k} {_plain(found.overlap)}"
    said = [f"{means} (means over {plural(found.compared, 'question')})"]
    if not found.tested:
        return Section(title, (*said, "no question has enough shared passages whose doubt is stated"))
    names = _listed([each.qid for each in questions if each.change == "beyond"])
    said.append(
        f"of {plural(found.tested, 'question')} whose doubt is stated, {found.beyond} changed beyond it (at most "
        f"{found.by_chance:.1f} by chance){names}; the heads of what both rank overlap by {_plain(found.shared)}, "
        f"{_plain(found.expected)} was to be expected"
    )
    return Section(title, tuple(said))


def _content(report: DiffReport) -> Section:
    kinds = (("questions", report.questions), ("passages", report.passages))
    rows = tuple((Cell(name), *(Cell(count) for count in (part.same, *map(len, _lists(part))))) for name, part in kinds)
    said = [sentence for name, part in kinds for sentence in _named(name, part)]
    head = ("", "same", "added", "removed", "changed", "other id")
    return Section("Questions and passages", tuple(said), Table(head, rows))


def _lists(part: ContentPart) -> tuple[Sequence[object], ...]:
    return part.added, part.removed, part.changed, part.renamed


def _named(name: str, part: ContentPart) -> Iterator[str]:
    if not part.known:
        yield f"texts of {name} are not known on both sides: ids alone are compared"
    for what, found in (("added", part.added), ("removed", part.removed), ("changed", part.changed)):
        if found:
            yield f"{name} {what}{_listed([_one(each) for each in found])}"
    if part.renamed:
        yield f"{name} under another id{_listed([f'{each.old} -> {each.new}' for each in part.renamed])}"


def _one(each: str | ChangedPart) -> str:
    if isinstance(each, str):
        return each
    return each.id if each.fields == ("text",) else f"{each.id} ({', '.join(each.fields)})"


def _listed(names: Sequence[str]) -> str:
    """`: a, b, … and 3 more`; nothing where there is none."""
    more = f", … and {len(names) - MOST:,} more" if len(names) > MOST else ""
    return f": {', '.join(names[:MOST])}{more}" if names else ""


def _most(parts: Sequence[QuestionPart]) -> Section:
    moved = [each for each in parts if each.moved or (each.overlap is not None and each.overlap < 1)][:MOST]
    if not moved:
        return Section("")
    ranked = any(each.overlap is not None for each in moved)
    head = ("question", "grades moved", "mean move", *(("tau_AP", "overlap", "expected", "change") if ranked else ()))
    table = Table(head, tuple(tuple(_moved(each))[: len(head)] for each in moved))
    return Section("Questions that moved most", table=table, terms=BEYOND if ranked else ())


def _moved(each: QuestionPart) -> Iterator[Cell]:
    yield from (Cell(each.qid), Cell(f"{each.moved} of {each.compared}"), Cell(_plain(each.shift, "+z.2f")))
    yield from (Cell(_plain(value)) for value in (each.tau_ap, each.overlap, each.expected))
    yield Cell(each.change or UNDEFINED)


def _figures(title: str, parts: Sequence[FigurePart]) -> Section:
    rows = tuple((Cell(part.name), Cell(_figure(part.old)), Cell(_figure(part.new))) for part in parts)
    return Section(title, table=Table(("figure", "OLD", "NEW"), rows) if rows else None)


def settings_section(title: str, parts: Sequence[SettingPart], sides: tuple[str, str] = ("OLD", "NEW")) -> Section:
    """A row for each value that differs."""
    rows = tuple((Cell(_place(part)), Cell(_value(part, old=True)), Cell(_value(part, old=False))) for part in parts)
    return Section(title, table=Table(("setting", *sides), rows) if rows else None)


def _place(part: SettingPart) -> str:
    stage = getattr(part, "stage", "")
    return f"{stage}: {part.name}" if stage else part.name


def _value(part: SettingPart, *, old: bool) -> str:
    if part.change == ("added" if old else "removed"):
        return UNDEFINED
    return written(part.old if old else part.new)


def written(value: JsonValue) -> str:
    """A setting as a table shows it; of a hash, its beginning."""
    text = value if isinstance(value, str) else canonical_json(value)
    is_hash = len(text) == 64 and all(char in "0123456789abcdef" for char in text)
    return text[:8] if is_hash else shorten(text, VALUE) or repr(value)


def share(part: int, whole: int) -> str:
    """A share in per cent; one that rounds to nothing is not nothing."""
    share = part / whole if whole else 0.0
    return "less than 1%" if 0 < share < 0.01 else f"{share:.0%}"


def _figure(value: Number) -> str:
    if value is None:
        return UNDEFINED
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4f}".rstrip("0")


def _plain(value: Number, form: str = "z.3f") -> str:
    return formatted(value, form)


def _estimate(found: EstimatePart, form: str) -> str:
    value = _plain(found.value, form)
    return value if found.low is None or found.high is None else f"{value} [{found.low:{form}}, {found.high:{form}}]"


def diff_json(report: DiffReport) -> str:
    """All that is known, as `raggs schema diff` describes it."""
    return report.model_dump_json(indent=2)


def write_diff(report: DiffReport, folder: Path) -> list[Path]:
    """diff.json and diff.md in `folder`, made if missing.

    Raises:
        ProviderError: the folder cannot be written.
    """
    return write_texts(folder, {"diff.json": diff_json(report) + "\n", "diff.md": markdown(lay_out_diff(report))})
