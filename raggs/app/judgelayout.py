"""What came of checking a judge, as a document: sentences first, then the table of grades, then where it errs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from raggs.app.judgecheck import Group, JudgeCheck
from raggs.app.judgeplaces import PLACE
from raggs.base.atomic import disk, write_atomic, write_texts
from raggs.base.text import plural
from raggs.evaluation.document import Cell, Document, Legend, Row, Section, Table
from raggs.evaluation.writers import markdown
from raggs.runs.manifests.store import dump_json
from raggs.stats.agreement import Checked, Estimate, Trust
from raggs.stats.agreement.clustered import FEWEST_CASES, FEWEST_CLUSTERS
from raggs.stats.correction import Calibration

FIGURES = ("kappa", "alpha", "exact", "within one", "bias", "leniency")
TERMS = (
    Legend("kappa", "agreement beyond chance, Cohen's, quadratic weights: 1 perfect, 0 chance"),
    Legend("alpha", "the same, Krippendorff's, for ordered grades"),
    Legend("exact", "share of equal grades; within one: at most one grade apart"),
    Legend("bias", "mean of the judge's grade less people's, in grades"),
    Legend("leniency", "share that the judge graded higher, less the share it graded lower"),
)


def lay_out_check(found: JudgeCheck) -> Document:
    """The document of a check; nothing is computed here."""
    return Document("The judge against people", _first(found), tuple(_sections(found)), tuple(_notes(found)))


def _first(found: JudgeCheck) -> Section:
    whole = found.whole
    judges = ", ".join(found.judges)
    said = (
        f"{judges}: {plural(whole.cases, 'grade')} of {plural(whole.clusters, 'question')} against people's",
        *map(trusted, found.trust),
    )
    return Section("Verdict", said)


def trusted(verdict: Trust) -> str:
    """A verdict in a sentence."""
    more = f", about {plural(verdict.more, 'more judgment')} would tell" if verdict.more else ""
    return f"usable for {verdict.use}: {verdict.answer}{more} ({verdict.rule})"


def _sections(found: JudgeCheck) -> Iterator[Section]:
    sides = (("judge and people", found.whole), *([("people", found.people)] if found.people else []))
    head = ("figure", *(name for name, _ in sides))
    figures = tuple((Cell(name), *(_figure(name, side) for _, side in sides)) for name in FIGURES)
    cases = (Cell("grades compared"), *(Cell(side.cases) for _, side in sides))
    said = () if found.people else ("no passage was graded by two people: how well they agree is not known",)
    yield Section("Agreement", said, Table(head, (*figures, cases)), terms=TERMS)
    yield Section("Grades: the judge's in rows, people's in columns", table=confusion(found.whole))
    yield _calibrated(found.calibration)
    for kind in dict.fromkeys(group.kind for group in found.groups):
        yield _divided(kind, [group for group in found.groups if group.kind == kind])
    if found.places:
        yield _placed(found.places)


def confusion(checked: Checked) -> Table:
    """The counts, and of each grade of the judge how many there are."""
    rows = (
        (Cell(f"judge {grade}"), *(Cell(count) if count else Cell("·") for count in row), Cell(sum(row)))
        for grade, row in enumerate(checked.table, 1)
    )
    return Table(("", *(f"people {grade}" for grade in range(1, 6)), "all"), tuple(rows))


def _calibrated(found: Calibration) -> Section:
    rows = (
        (Cell(str(grade)), Cell(f"{expected:.2f}"), Cell(cases))
        for grade, (expected, cases) in enumerate(zip(found.expected, found.cases, strict=True), 1)
    )
    before, after = f"{found.error:.2f}", "–" if math.isnan(found.error_mapped) else f"{found.error_mapped:.2f}"
    said = f"off by {before} grades as they are, {after} by this map on questions it was not learnt from"
    helps = "the map helps" if found.helps else "the map does not help"
    table = Table(("judge", "people, expected", "grades"), tuple(rows))
    more = () if math.isnan(found.error_by_mean) else (_by_mean(found),)
    return Section("What the judge's grades are worth in people's", (f"{said}: {helps}", *more), table)


def _by_mean(found: Calibration) -> str:
    kept = "--calibration has both maps" if found.by_mean else "no nearer, so that the map of the grade stands alone"
    return f"{found.error_by_mean:.2f} by a map of the mean of its answers: {kept}"


def _divided(kind: str, groups: list[Group]) -> Section:
    by_grade = kind == "grade of the judge"
    names = ("exact", "bias") if by_grade else ("kappa", "bias")  # all figures are in the JSON; these fit a screen
    rows = tuple(_row(group, names) for group in groups)
    return Section(f"By {kind}", table=Table((kind, "grades", *names), rows))


def _placed(groups: tuple[Group, ...]) -> Section:
    """Orders; grades are asked one passage a prompt, or in places drawn by lot."""
    said = ("pairs that people grade differently",)
    head, rows = (
        (PLACE, "pairs", "as people", "put above, less people's"),
        [_row(each, ("exact", "bias")) for each in groups],
    )
    return Section("Orders by place in the prompt", said, Table(head, tuple(rows)))


def _row(group: Group, names: tuple[str, ...]) -> Row:
    checked = group.checked
    if checked.few:
        return (Cell(group.name), Cell(checked.cases), Cell(f"too few ({checked.cases})"), Cell(""))
    return (Cell(group.name), Cell(checked.cases), *(_figure(name, checked) for name in names))


def _figure(name: str, checked: Checked) -> Cell:
    found = {
        "kappa": checked.kappa,
        "alpha": checked.alpha,
        "exact": checked.exact,
        "within one": checked.within_one,
        "bias": checked.bias,
        "leniency": checked.leniency,
    }[name]
    return Cell(written(found, signed=name in {"bias", "leniency"}))


def written(found: Estimate, *, signed: bool = False) -> str:
    """A figure with its interval, as far as they are defined."""
    form = "+z.2f" if signed else "z.2f"
    if math.isnan(found.value):
        return "–"
    value = format(found.value, form)
    return value if math.isnan(found.low) else f"{value} [{found.low:{form}}, {found.high:{form}}]"


def _notes(found: JudgeCheck) -> Iterator[str]:
    left, cases = found.left_out, found.whole.cases
    least = f"{plural(FEWEST_CASES, 'grade')} or {plural(FEWEST_CLUSTERS, 'question')}"
    yield f"{100 * found.whole.confidence:g}% intervals over questions (bootstrap); too few: below {least}"
    if found.drawn < cases:
        chosen = cases - found.drawn
        yield (
            f"{chosen} of {cases} were chosen rather than drawn at random; chosen ones are often the hard ones, so "
            "that the judge may be better than this"
        )
    if left.seen:
        yield f"left out: {plural(left.seen, 'passage')} whose reviewers had seen a machine's grade"
    if left.unsure:
        yield f"left out: {plural(left.unsure, 'passage')} on which nobody could tell"
    if left.ungraded:
        yield f"left out: {plural(left.ungraded, 'passage')} that the judge gave no grade"
    if left.by_people:
        yield f"left out: {plural(left.by_people, 'passage')} whose grade in the run is people's own"


def check_json(found: JudgeCheck) -> str:
    """All that is known, as JSON; what is not defined is null."""
    return dump_json(plain(asdict(found)))


def write_check(found: JudgeCheck, folder: Path) -> list[Path]:
    """check.json and check.md in `folder`, made if missing.

    Raises:
        ProviderError: the folder cannot be written.
    """
    texts = {"check.json": check_json(found) + "\n", "check.md": markdown(lay_out_check(found))}
    return write_texts(folder, texts)


def write_calibration(found: JudgeCheck, file: Path) -> None:
    """The map as JSON, for whoever wants to apply it; raggs does not.

    Raises:
        ProviderError: the file cannot be written.
    """
    said = {"v": 1, "run": found.run, "judges": list(found.judges), **asdict(found.calibration)}
    with disk(file, "choose another --calibration"):
        write_atomic(file, (dump_json(plain(said)) + "\n").encode())


def plain(value: object) -> object:
    """The same without numbers that JSON has not."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
