"""What came of comparing two judges, as a document: verdict and costs first, then figures, then where they differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from raggs.app.judgecompare import Compared, JudgeComparison
from raggs.app.judgelayout import plain, written
from raggs.app.judgesides import Bill, Side
from raggs.base.atomic import write_texts
from raggs.base.text import plural, shorten
from raggs.evaluation.document import UNDEFINED, Cell, Document, Legend, Row, Section, Table, formatted
from raggs.evaluation.writers import markdown
from raggs.runs.manifests.store import dump_json
from raggs.stats.agreement import Estimate
from raggs.stats.agreement.clustered import FEWEST_CASES, FEWEST_CLUSTERS
from raggs.stats.agreement.nearer import FEWEST_DIFFERING, Against, Nearer

NAMES = ("A", "B")
TITLE = 30  # characters of a passage's title on the screen
MOST_SETTINGS = 4  # named on the screen; all are in the JSON
TERMS = (
    Legend("kappa", "agreement beyond chance, Cohen's, quadratic weights: 1 perfect, 0 chance"),
    Legend("alpha", "the same, Krippendorff's, for ordered grades"),
    Legend("exact", "share of equal grades; within one: at most one grade apart"),
    Legend("bias", "mean of A's grade less B's, in grades"),
)
AGAINST = (
    Legend("off by", "mean distance from people's grade, in grades; it decides"),
    Legend("A's gain", "by how much A is better, paired; below 0: B is"),
)


def lay_out_comparison(found: JudgeComparison, shown: int = 10) -> Document:
    """The document of a comparison; nothing is computed here.

    Args:
        shown: of the passages on which the judges differ, how many are listed, the farthest apart first.
    """
    return Document("Two judges", _first(found), tuple(_sections(found, shown)), tuple(_notes(found)))


def _first(found: JudgeComparison) -> Section:
    whole = found.agreement
    told = f"{plural(whole.cases, 'passage')} of {plural(whole.clusters, 'question')} graded by both"
    same = f"the same grade on {whole.exact.value:.0%}, kappa {written(whole.kappa)}"
    named = (f"{name}: {', '.join(side.judges)} ({side.run})" for name, side in _sides(found).items())
    return Section("Verdict", (*named, *_apart(found.settings), f"{told}: {same}", verdict(found)))


def _apart(settings: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    told = [f"{name} ({shorten(one, 30)} / {shorten(other, 30)})" for name, (one, other) in settings.items()]
    more = [f"{len(told) - MOST_SETTINGS} more"] if len(told) > MOST_SETTINGS else []
    if told:
        yield f"they differ in {', '.join([*told[:MOST_SETTINGS], *more])}"


def verdict(found: JudgeComparison) -> str:
    """Which judge to use, in a sentence."""
    near = found.nearer
    if not _differ(found):
        return "they gave every passage the same grade: take the cheaper"
    if near is None:
        unread = len(found.unread)
        more = f"; the {plural(unread, 'passage')} on which they differ would tell (--plan FILE)" if unread else ""
        return f"nobody has read these passages blind, so which judge is nearer to people is not known{more}"
    gain = near.off.gain
    if near.winner is not None:
        name = NAMES[0] if near.winner == "first" else NAMES[1]
        by = f"{abs(gain.value):.2f} ± {gain.half:.2f} grades"
        return f"{name} is nearer to people by {by} ({_read(near)}): use {name}"
    return f"cannot tell which is nearer to people ({_read(near)}): {_wanted(near, len(found.unread))}"


def _read(near: Nearer) -> str:
    return f"{plural(near.cases, 'passage')} read, {near.differing:,} of them where the two differ"


def _wanted(near: Nearer, unread: int) -> str:
    least = (
        f"{FEWEST_CASES} passages of {FEWEST_CLUSTERS} questions are needed, the judges differing on {FEWEST_DIFFERING}"
    )
    if near.few:
        return f"{least}; nobody has read {unread:,} on which they differ (--plan FILE)" if unread else least
    gain = near.off.gain
    within = f"A's gain is within {gain.low:+z.2f} and {gain.high:+z.2f} grades"
    if near.more is None or not unread:
        return f"{within}; take the cheaper"
    return f"{within}; about {plural(near.more, 'more review')} would tell, most of all where they differ"


def _sections(found: JudgeComparison, shown: int) -> Iterator[Section]:
    yield _cost(found)
    if found.nearer is not None:
        yield _against(found.nearer)
    whole = found.agreement
    figures = {
        "kappa": whole.kappa,
        "alpha": whole.alpha,
        "exact": whole.exact,
        "within one": whole.within_one,
        "bias": whole.bias,
    }
    rows = tuple((Cell(name), Cell(written(each, signed=name == "bias"))) for name, each in figures.items())
    yield Section("Agreement of the two", table=Table(("figure", "A and B"), rows), terms=TERMS)
    yield Section("Grades: A's in rows, B's in columns", table=_confusion(whole.table))
    differing = [case for case in found.cases if case.apart]
    if differing and shown:
        more = len(differing) - shown
        said = (f"they differ on {plural(len(differing), 'passage')}" + (f"; the first {shown}" if more > 0 else ""),)
        head = ("A", "B", "people", "query", "id", "passage")
        yield Section(
            "Where they differ most", said, Table(head, tuple(_differing(case) for case in differing[:shown]))
        )


def _differing(case: Compared) -> Row:
    people = UNDEFINED if case.people is None else str(case.people)
    grades = (Cell(str(grade)) for grade in case.grades)
    return (*grades, Cell(people), Cell(case.qid), Cell(case.doc_id), Cell(shorten(case.title, TITLE)))


def _cost(found: JudgeComparison) -> Section:
    bills = {name: side.bill for name, side in _sides(found).items()}
    if not any(bill.calls or bill.cached for bill in bills.values()):
        return Section("What they cost", ("neither asks a language model: nothing is paid",))
    lines = {
        "grades": [f"{side.graded:,}" for side in _sides(found).values()],
        "USD paid": [formatted(bill.usd, ".4f") for bill in bills.values()],
        "USD for 1,000 grades": [formatted(bill.usd_per_1000, ".3f") for bill in bills.values()],
        "tokens a grade": [formatted(bill.tokens_per_grade, ",.0f") for bill in bills.values()],
        "seconds a call": [formatted(bill.seconds_per_call, ".2f") for bill in bills.values()],
        "calls": [f"{bill.calls:,}" for bill in bills.values()],
        "cached": [f"{bill.cached:,}" for bill in bills.values()],
    }
    said = tuple(_cheaper(bills))
    rows = tuple((Cell(name), *map(Cell, values)) for name, values in lines.items())
    return Section("What they cost", said, Table(("", *bills), rows))


def _cheaper(bills: Mapping[str, Bill]) -> Iterator[str]:
    one, other = (bill.usd_per_1000 for bill in bills.values())
    if one is None or other is None or one == other:
        return
    low, high = sorted((one, other))
    times = f", {high / low:.1f} times as much" if low else ""
    yield f"{NAMES[0] if one > other else NAMES[1]} costs {high - low:.3f} USD more for 1,000 grades{times}"


def _against(near: Nearer) -> Section:
    figures = {"off by": near.off, "kappa": near.kappa, "exact": near.exact}
    equal = near.differing - near.first - near.second
    neither = f", on {equal:,} neither" if equal else ""
    said = f"where they differ, A is nearer on {near.first:,}, B on {near.second:,}{neither}"
    rows = tuple(_row(name, each) for name, each in figures.items())
    return Section("Against people", (said,), Table(("figure", "A", "B", "A's gain"), rows), terms=AGAINST)


def _row(name: str, against: Against) -> Row:
    alone = (Estimate(each.value, math.nan, math.nan) for each in (against.first, against.second))
    return (Cell(name), *(Cell(written(each)) for each in alone), Cell(written(against.gain, signed=True)))


def _confusion(table: tuple[tuple[int, ...], ...]) -> Table:
    rows = (
        (Cell(f"A {grade}"), *(Cell(count) if count else Cell("·") for count in row), Cell(sum(row)))
        for grade, row in enumerate(table, 1)
    )
    return Table(("", *(f"B {grade}" for grade in range(1, 6)), "all"), tuple(rows))


def _sides(found: JudgeComparison) -> dict[str, Side]:
    return dict(zip(NAMES, (found.first, found.second), strict=True))


def _notes(found: JudgeComparison) -> Iterator[str]:
    left, near = found.unmatched, found.nearer
    yield f"{100 * found.agreement.confidence:g}% intervals over questions (bootstrap)"
    if near is not None and near.differing * found.agreement.cases > 1.5 * near.cases * len(_differ(found)):
        whole = len(_differ(found)) / found.agreement.cases
        yield (
            f"people read more often where the judges differ ({near.differing / near.cases:.0%} of what they read, "
            f"{whole:.0%} of all): over all passages the gain is that much smaller, its sign the same"
        )
    for name, count in zip(NAMES, (left.first_only, left.second_only), strict=True):
        if count:
            yield f"left out: {plural(count, 'passage')} in the pools of {name} alone"
    if left.ungraded:
        yield f"left out: {plural(left.ungraded, 'passage')} that a judge gave no grade"
    if left.by_people:
        yield f"left out: {plural(left.by_people, 'passage')} whose grade in a run is people's own"
    for name, side in _sides(found).items():
        if side.lacks:
            yield f"{name} is not finished: {side.lacks}"
    alike = not found.settings and found.first.judges.keys() == found.second.judges.keys()
    if alike and not (found.first.lacks or found.second.lacks):
        yield "both judges have the same settings: where they differ, the judge does not repeat itself"


def _differ(found: JudgeComparison) -> list[Compared]:
    return [case for case in found.cases if case.apart]


def comparison_json(found: JudgeComparison) -> str:
    """All that is known, as JSON; what is not defined is null. Of the passages those on which the judges differ."""
    told = asdict(found)
    near = (
        None if found.nearer is None else {**told["nearer"], "winner": _winner(found.nearer), "more": found.nearer.more}
    )
    listed = [{**asdict(case), "key": list(case.key)} for case in _differ(found)]
    del told["cases"]
    return dump_json(plain({**told, "nearer": near, "verdict": verdict(found), "differing": listed}))


def _winner(near: Nearer) -> str | None:
    return {"first": NAMES[0], "second": NAMES[1], None: None}[near.winner]


def write_comparison(found: JudgeComparison, folder: Path, shown: int = 10) -> list[Path]:
    """compare.json and compare.md in `folder`, made if missing.

    Raises:
        ProviderError: the folder cannot be written.
    """
    texts = {
        "compare.json": comparison_json(found) + "\n",
        "compare.md": markdown(lay_out_comparison(found, shown)),
    }
    return write_texts(folder, texts)
