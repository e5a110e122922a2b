"""Lines over a number: what several things score as it grows. Each is numbered at its end, and named below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raggs.evaluation.svg import LINE, WIDTH, Drawing, Scale, shortened, spread

LEFT, RIGHT, TOP, HIGH = 66, WIDTH - 24, 66, 300
WIDE = 100  # letters of a line of text
COLOURS = 6  # that a page has classes for


@dataclass(frozen=True)
class Curve:
    """One line.

    Attributes:
        names: of all things whose line this is; the first is shown.
        points: at least one (x, y), by growing x.
    """

    names: tuple[str, ...]
    points: tuple[tuple[float, float], ...]


def curves(
    title: str, lines: Sequence[Curve], titles: tuple[str, str], ticks: Sequence[float], *, coloured: bool = False
) -> str:
    """The plot as SVG.

    Args:
        lines: at least one.
        titles: of the number across, and of what is shown of it.
        ticks: across.
        coloured: whether lines have classes ``s0``, ``s1``, ... of a page's style, besides their numbers.
    """
    foot = TOP + HIGH
    across = Scale.of(ticks, LEFT, RIGHT - 26)
    up = Scale.of([y for line in lines for _, y in line.points], foot, TOP)
    drawing = Drawing(title, foot + 3.2 * LINE + len(lines) * LINE)
    drawing.frame(across, up, titles, ticks)
    ends = spread([up.at(line.points[-1][1]) + 4 for line in lines], 13, TOP, foot)
    for number, (line, end) in enumerate(zip(lines, ends, strict=True), start=1):
        own = f" s{(number - 1) % COLOURS}" if coloured else ""
        places = [(across.at(x), up.at(y)) for x, y in line.points]
        drawing.path(places, f"series{own}")
        for x, y in places:
            drawing.dot(x, y, f"front{own}", line.names[0], 3.5)
        drawing.line(places[-1][0] + 4, places[-1][1], RIGHT - 14, end - 4, "link")
        drawing.text(RIGHT - 11, end, str(number), "strong")
        alike = f" and {len(line.names) - 1} alike" if len(line.names) > 1 else ""
        words = f"{number}  {shortened(line.names[0], WIDE - 15)}{alike}"
        drawing.text(LEFT, foot + (2.4 + number) * LINE, words, f"named{own}" if coloured else "")
    return drawing.svg()
