"""What the diagnosis of noise found, as sentences, tables and plots; from that alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from raggs.base.text import plural
from raggs.diagnosis.noise.models import NONE, EndPart, LevelPart, NoiseFound, ShufflePart
from raggs.diagnosis.noise.targets import LARGE, SMALL
from raggs.evaluation.curves import Curve, curves
from raggs.evaluation.document import Cell, Legend, Row, Section, Table
from raggs.evaluation.forest import ForestRow, forest

RESAMPLED = Legend("[ ]", "95% interval over resampled questions, which are paired")
BACK = Legend("back", "share of what noise costs that a rewriter brings back; – where that may be nothing")


def sections(found: NoiseFound) -> tuple[Section, ...]:
    """Cosines, what is found, the top of the lists, examples."""
    return (_cosines(found), *_ends(found), *_shuffles(found), _examples(found))


def plots(found: NoiseFound) -> dict[str, str]:
    """Cosine by level for each embedder, and what noise costs a search."""
    drawn = {}
    for number, name in enumerate(dict.fromkeys(part.embedder for part in found.cosines), start=1):
        parts = [part for part in found.cosines if part.embedder == name]
        drawn["cosine" if number == 1 else f"cosine-{number}"] = _curves(name, parts)
    if found.ends:
        drawn["search"] = _forest(found.ends)
    return drawn


# --- cosines ------------------------------------------------------------------------------------------------


def _cosines(found: NoiseFound) -> Section:
    counted = ", ".join(f"{count} in {language}" for language, count in found.questions.items())
    told = f"{found.source}: {counted}, noise drawn {plural(found.draws, 'time')}: {', '.join(found.noises)}."
    head = ("embedder", "language", "level", "rewriter", "cosine", "change", "change %", "back", LARGE, SMALL)
    rows = tuple(_cosine_row(part, _published(found, part)) for part in found.cosines)
    terms = (
        RESAMPLED,
        BACK,
        Legend("published", "of other models and questions, in the paper that this follows; not repeated here"),
    )
    return Section("Cosine to the ideal text", (told,), Table(head, rows), (), terms)


def _published(found: NoiseFound, part: LevelPart) -> dict[str, float]:
    at = part.language, part.level
    return {each.model: each.cosine for each in found.targets if (each.language, each.level) == at}


def _cosine_row(part: LevelPart, published: dict[str, float]) -> Row:
    base = part.level == 0 and part.rewriter == NONE
    return (
        Cell(part.embedder),
        Cell(part.language),
        Cell(str(part.level)),
        Cell(part.rewriter),
        part.cosine.cell(),
        Cell(None) if base else part.change.cell("signed"),
        Cell(None if base else part.percent, "percent"),
        part.regained.cell("share"),
        *(Cell(published.get(model) if part.rewriter == NONE else None) for model in (LARGE, SMALL)),
    )


# --- what is found ------------------------------------------------------------------------------------------


def _ends(found: NoiseFound) -> Iterator[Section]:
    if found.untold is not None:
        yield Section("What is found", (found.untold,))
        return
    others = f"; {found.strange} in other languages left out" if found.strange else ""
    told = f"{plural(found.searched, 'question')} of the golden set, as they are and with noise{others}."
    tried = [name for name in dict.fromkeys(part.rewriter for part in found.ends) if name != NONE]
    columns = [column for name in tried for column in (f"gained by {name}", f"back by {name}")]
    head = ("system", "level", "measure", "without noise", "with noise", "lost", *columns)
    noisy = [part for part in found.ends if part.level and part.rewriter == NONE]
    rows = tuple(_end_row(part, found.ends, tried) for part in noisy)
    yield Section("What is found", (told,), Table(head, rows), (), (RESAMPLED, BACK))
    if tried:
        yield _harm(found.ends)


def _end_row(part: EndPart, ends: Sequence[EndPart], tried: Sequence[str]) -> Row:
    own = {(each.level, each.rewriter): each for each in ends if _same(each, part)}
    rewritten = [own[part.level, name] for name in tried]
    return (
        Cell(part.system),
        Cell(str(part.level)),
        Cell(part.measure),
        own[0, NONE].mean.cell(),
        part.mean.cell(),
        part.change.cell("signed"),
        *(cell for each in rewritten for cell in (each.gained.cell("signed"), each.regained.cell("share"))),
    )


def _same(one: EndPart, other: EndPart) -> bool:
    return (one.system, one.measure) == (other.system, other.measure)


def _harm(ends: Sequence[EndPart]) -> Section:
    """What rewriting does to questions that hold no noise."""
    parts = [part for part in ends if part.level == 0 and part.rewriter != NONE]
    worse = [part for part in parts if part.change.high is not None and part.change.high < 0]
    named = ", ".join(f"{part.rewriter} ({part.system}, {part.measure})" for part in worse)
    told = (
        f"Rewriting questions without noise costs: {named}." if worse else "Rewriting them costs nothing that is clear."
    )
    rows = tuple(
        (Cell(part.system), Cell(part.rewriter), Cell(part.measure), part.change.cell("signed")) for part in parts
    )
    return Section(
        "Questions without noise", (told,), Table(("system", "rewriter", "measure", "change"), rows), (), (RESAMPLED,)
    )


def _shuffles(found: NoiseFound) -> Iterator[Section]:
    rows = tuple(_shuffle_row(part) for part in found.shuffles)
    if rows:
        head = ("system", "level", "rewriter", "k", "overlap", "tau")
        terms = (
            Legend("overlap", "share of the first k that are those of the question without noise"),
            Legend("tau", "Kendall's, over the passages that both lists have"),
            RESAMPLED,
        )
        yield Section("The top of the lists", (), Table(head, rows), (), terms)


def _shuffle_row(part: ShufflePart) -> Row:
    names = (part.system, str(part.level), part.rewriter, str(part.k))
    return (*map(Cell, names), part.overlap.cell(), part.tau.cell())


def _examples(found: NoiseFound) -> Section:
    tried = list(found.examples[0].rewritten) if found.examples else []
    head = ("language", "level", "question", *(f"by {name}" for name in tried))
    rows = tuple(
        (Cell(each.language), Cell(str(each.level)), Cell(each.text), *map(Cell, each.rewritten.values()))
        for each in found.examples
    )
    return Section("Examples", (), Table(head, rows))


# --- plots --------------------------------------------------------------------------------------------------


def _curves(name: str, parts: Sequence[LevelPart]) -> str:
    lines = dict.fromkeys((part.language, part.rewriter) for part in parts)
    levels = sorted({part.level for part in parts})
    drawn = [
        Curve(
            (f"{language}, {'as it is asked' if rewriter == NONE else f'rewritten by {rewriter}'}",),
            tuple(
                (float(part.level), part.cosine.mean or 0.0)
                for part in parts
                if (part.language, part.rewriter) == (language, rewriter)
            ),
        )
        for language, rewriter in lines
    ]
    title = f"Cosine of questions to their ideal texts by noise, {name}"
    return curves(title, drawn, ("level of noise", "mean cosine"), [float(level) for level in levels])


def _forest(ends: Sequence[EndPart]) -> str:
    """What the most noise costs each system, and what is still lost after each rewriter."""
    level, measure = max(part.level for part in ends), ends[0].measure
    shown = [part for part in ends if (part.level, part.measure) == (level, measure)]
    rows = [
        ForestRow(
            f"{part.system}, {'as it is asked' if part.rewriter == NONE else part.rewriter}",
            part.change.mean or 0.0,
            part.change.low,
            part.change.high,
            part.change.high is not None and part.change.high < 0,
        )
        for part in shown
    ]
    title = f"{measure} of questions with noise of level {level}, against the same without"
    return forest(title, rows, f"change of {measure}; grey: may be chance", changes=True)
