"""Bars of what each perturber does to the name margin, a figure a language, with what was published beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from raggs.diagnosis.names.models import AblationPart, EndPart, NamesFound, SubjectPart
from raggs.diagnosis.names.targets import LARGE, published
from raggs.evaluation.curves import HIGH, LEFT, RIGHT, TOP
from raggs.evaluation.svg import LINE, WIDTH, Box, Drawing, Scale, place_label, shortened

START, END, HEAD = 300, WIDTH - 24, 52
BAR = 15.0  # of one scorer
GAP = 10.0  # between perturbers
LETTERS = 40


def plots(found: NamesFound) -> dict[str, str]:
    """SVG by name."""
    languages = dict.fromkeys(each.language for each in found.subjects)
    drawn = {language: _bars([each for each in found.subjects if each.language == language]) for language in languages}
    end = found.end_to_end
    if end is not None and end.changes:
        drawn["recall"] = _against(end.measure, end.changes)
    return drawn


# --- changes of the margin ------------------------------------------------------------------------------------


def _bars(subjects: Sequence[SubjectPart]) -> str:
    language, rows = subjects[0].language, [part.perturber for part in subjects[0].ablations]
    step = len(subjects) * BAR + GAP
    foot = HEAD + len(rows) * step
    across = Scale.of([*_ends(subjects), 0.0], START, END)
    drawing = Drawing(f"Change of the name margin in percent, {language}", foot + 4.6 * LINE)
    _grid(drawing, across, foot)
    for number, name in enumerate(rows):
        y = HEAD + number * step
        for at, subject in enumerate(subjects):
            _bar(drawing, across, y + at * BAR + BAR / 2, subject.ablations[number], _label(subjects, at, name))
        for place, (model, value) in enumerate(published(language, name).items()):
            _target(drawing, across, y + place * 6 + step / 2 - 8, value, model)
    _key(drawing, foot)
    return drawing.svg()


def _ends(subjects: Sequence[SubjectPart]) -> Iterator[float]:
    for subject in subjects:
        for part in subject.ablations:
            yield from (each for each in (part.percent.value, part.percent.low, part.percent.high) if each is not None)
            yield from published(subject.language, part.perturber).values()


def _grid(drawing: Drawing, across: Scale, foot: float) -> None:
    for value in across.ticks():
        drawing.line(across.at(value), foot, across.at(value), HEAD - 8, "grid")
        drawing.text(across.at(value), foot + LINE, f"{value:+,.4g}" if value else "0", "soft", "middle")
    drawing.line(across.at(0), foot, across.at(0), HEAD - 8, "axis")


def _label(subjects: Sequence[SubjectPart], at: int, name: str) -> str:
    """The perturber's name, and where there are several scorers, whose bar it is."""
    if len(subjects) == 1:
        return name
    return f"{name}: {subjects[at].scorer}" if at == 0 else subjects[at].scorer


def _bar(drawing: Drawing, across: Scale, y: float, part: AblationPart, label: str) -> None:
    drawing.text(START - 10, y + 4, shortened(label, LETTERS), "", "end")
    value, low, high = part.percent.value, part.percent.low, part.percent.high
    if value is None:
        return
    kind = "bar" if part.holds is not False else "limit"
    for shift in (-3.0, -1.0, 1.0, 3.0):
        drawing.line(across.at(0), y + shift, across.at(value), y + shift, kind)
    drawing.dot(across.at(value), y, "front", f"{label}: {value:+.1f}%", 3.5)
    if low is not None and high is not None:
        drawing.line(across.at(low), y, across.at(high), y, "axis")


def _target(drawing: Drawing, across: Scale, y: float, value: float, model: str) -> None:
    drawing.dot(across.at(value), y, "other" if model == LARGE else "chosen", f"{model}: {value:+.1f}%, published", 3)


def _key(drawing: Drawing, foot: float) -> None:
    lines = (
        "blue bars: measured here; dashed: beyond its limit",
        "grey dots: text-embedding-3-large, rings: voyage-3.5, as published, not repeated here",
    )
    for number, line in enumerate(lines):
        drawing.text(16, foot + (2.4 + number) * LINE, line, "soft")


# --- margin against recall ------------------------------------------------------------------------------------


def _against(measure: str, changes: Sequence[EndPart]) -> str:
    points = [
        (each, each.margin, each.difference)
        for each in changes
        if each.margin is not None and each.difference is not None
    ]
    foot = TOP + HIGH
    across = Scale.of([*(x for _, x, _ in points), 0.0], LEFT, RIGHT)
    up = Scale.of([*(y for _, _, y in points), 0.0], foot, TOP)
    drawing = Drawing(f"Name margin and {measure}", foot + 3.4 * LINE)
    drawing.frame(across, up, ("change of the name margin in percent", f"change of {measure}"))
    taken = [Box(across.at(x) - 5, up.at(y) - 5, across.at(x) + 5, up.at(y) + 5) for _, x, y in points]
    for each, x, y in points:
        told = f"{each.embedder}, {each.perturber}: {x:+.1f}%, {y:+.3f}"
        drawing.dot(across.at(x), up.at(y), "front", told)
        room = Box(LEFT, TOP, WIDTH, foot)
        if (place := place_label(across.at(x), up.at(y), each.perturber, taken, room)) is not None:
            drawing.text(*place, each.perturber, "soft")
    return drawing.svg()
