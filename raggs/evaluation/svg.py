"""Plots as self-contained SVG, without a plotting library: curves and forest plots.

The output is deterministic. Texts are escaped, because names come from users. Colours follow the light or dark mode of
the reader, and no information depends on colour alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from raggs.base.text import escape_controls
from raggs.base.types import Number

WIDTH = 760
LETTER = 6.3  # approximate width of a letter, in drawing units
LINE = 17  # distance between lines of text
SCALE_MARGIN = 0.07  # margin of a scale on each side of its values, as a share of its range
MIN_LOG_TICKS = 3  # minimum number of ticks of a logarithmic scale
LOG_SCALE_FROM = 20  # minimum ratio of largest to smallest value for a logarithmic scale
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # forbidden in XML 1.0
STYLE = """
.page{fill:#fff} text{fill:#222;font:12px system-ui,sans-serif} .title{font-weight:600;font-size:14px}
.soft{fill:#666} .strong{font-weight:600} .grid{stroke:#e4e4e4} .axis{stroke:#888}
.limit{stroke:#b3261e;stroke-dasharray:6 4}
.other{fill:#b5b5b5} .front{fill:#0b6bcb} .frontline{stroke:#0b6bcb;fill:none;stroke-width:1.5}
.chosen{fill:none;stroke:#c2410c;stroke-width:2.5} .bar{stroke:#0b6bcb;stroke-width:2}
.doubt{stroke:#999;stroke-width:2}
.doubtdot{fill:#999} .series{stroke:#0b6bcb;fill:none;stroke-width:1.6} .link{stroke:#bbb;stroke-width:.7}
@media (prefers-color-scheme:dark){.page{fill:#16181c} text{fill:#e6e6e6} .soft{fill:#a0a0a0} .grid{stroke:#2e3238}
.axis{stroke:#777} .limit{stroke:#ff8a80} .other{fill:#666} .front{fill:#6cb6ff} .frontline,.bar,.series{stroke:#6cb6ff}
.chosen{stroke:#ffab70} .doubt{stroke:#777} .doubtdot{fill:#777} .link{stroke:#555}}
""".strip()


@dataclass(frozen=True)
class AxisScale:
    """Scale that maps values to positions in the drawing.

    Attributes:
        low, high: values at the ends; low < high.
        start, end: positions of the ends; `end` may be smaller than `start`.
        log: whether the scale is logarithmic.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    @classmethod
    def of(cls, values: Iterable[float], start: float, end: float, *, log: bool = False) -> AxisScale:
        """Return a scale around values; logarithmic if that is allowed and the values span a wide range."""
        found = sorted(values)
        low, high = found[0], found[-1]
        if log and low > 0 and high / low >= LOG_SCALE_FROM:
            room = (high / low) ** SCALE_MARGIN
            return cls(low / room, high * room, start, end, log=True)
        room = (high - low) * SCALE_MARGIN or abs(high) * SCALE_MARGIN or 1.0
        return cls(low - room, high + room, start, end)

    def at(self, value: float) -> float:
        """Return the position of a value."""
        low, high, own = (math.log(each) if self.log else each for each in (self.low, self.high, value))
        return self.start + (own - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return about five round values between the ends."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            for steps in ((1,), (1, 2, 5)):
                found = [each * 10.0**power for power in range(first, last + 1) for each in steps]
                inside = [value for value in found if self.low <= value <= self.high]
                if len(inside) >= MIN_LOG_TICKS:
                    return inside
        step = _round_step((self.high - self.low) / 5)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [round(number * step, 10) for number in range(first, last + 1)]


def _round_step(raw: float) -> float:
    power = 10.0 ** math.floor(math.log10(raw))
    return power * next(each for each in (1, 2, 2.5, 5, 10) if each * power >= raw * 0.999)


class Drawing:
    """A figure that is drawn from top to bottom.

    Args:
        title: title at the top.
        height: total height, in units of which the width is `WIDTH`.
    """

    def __init__(self, title: str, height: float) -> None:
        self._title, self._height = clean(title), height
        self._parts: list[str] = []
        self.text(16, 26, title, "title")

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        """Draw text; `kind` is a class of the style."""
        end = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{_class(kind)}{end}>{clean(words)}</text>')

    def line(self, x: float, y: float, to_x: float, to_y: float, kind: str) -> None:
        """Draw a straight line."""
        self._parts.append(f'<path d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}"{_class(kind)}/>')

    def path(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """Draw a line through points."""
        self._parts.append(f'<path d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"{_class(kind)}/>')

    def dot(self, x: float, y: float, kind: str, name: str, radius: float = 4) -> None:
        """Draw a dot with a tooltip."""
        told = f"<title>{clean(name)}</title>"
        self._parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"{_class(kind)}>{told}</circle>')

    def frame(
        self, across: AxisScale, up: AxisScale, titles: tuple[str, str], at: Sequence[float] | None = None
    ) -> None:
        """Draw ticks with values and the titles of both axes; `at` sets the horizontal ticks."""
        left, right, foot, top = across.start, across.end, up.start, up.end
        for value in across.ticks() if at is None else at:
            self.line(across.at(value), foot, across.at(value), top, "grid")
            self.text(across.at(value), foot + LINE, f"{value:,.6g}", "soft", "middle")
        for value in up.ticks():
            self.line(left, up.at(value), right, up.at(value), "grid")
            self.text(left - 7, up.at(value) + 4, f"{value:,.6g}", "soft", "end")
        self.line(left, foot, right, foot, "axis")
        self.line(left, foot, left, top, "axis")
        self.text((left + right) / 2, foot + 2.2 * LINE, titles[0], "soft", "middle")
        self.text(left, top - 8, titles[1], "soft")

    def svg(self) -> str:
        """Return the SVG file."""
        size = f'viewBox="0 0 {WIDTH} {self._height:g}" width="100%" style="max-width:{WIDTH * 1.25:g}px"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{self._title}">'
        page = f'<rect width="{WIDTH}" height="{self._height:g}" class="page"/>'
        return "\n".join([head, f"<style>{STYLE}</style>", page, *self._parts, "</svg>"]) + "\n"


@dataclass(frozen=True)
class Plot:
    """A figure that Jupyter displays; `svg` is the content of an SVG file."""

    title: str
    svg: str = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg


def inlined(svg: str) -> str:
    """Return an SVG element for embedding in a page, whose style sheet then applies to its classes."""
    head, _, rest = svg.partition(f"<style>{STYLE}</style>\n")
    return re.sub(r' width="100%" style="[^"]*"', "", head) + rest


def clean(words: str) -> str:
    """Return a text escaped for XML, without characters that XML forbids."""
    return escape(FORBIDDEN.sub("\ufffd", escape_controls(words)), quote=True)


def shortened(words: str, letters: int) -> str:
    """Return the text. If it is too long, its middle is replaced by an ellipsis."""
    if len(words) <= letters:
        return words
    head = (letters - 1) * 2 // 3
    return f"{words[:head]}…{words[len(words) - (letters - 1 - head) :]}"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


# --- labels that do not overlap -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Return whether two boxes overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def place_label(x: float, y: float, words: str, taken: list[Box], inside: Box) -> tuple[float, float] | None:
    """Return and reserve a free position for the label of the point (x, y); None if there is none."""
    wide, high = len(words) * LETTER * 1.15, 13.0
    for far in (7, 13, 20, 28):
        for dx, dy in ((1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1), (1, 0), (-1, 0)):
            left = x + dx * far - (wide if dx < 0 else wide / 2 if dx == 0 else 0)
            base = y + dy * far + (high if dy > 0 else high / 2 if dy == 0 else 0) - 2
            box = Box(left, base - high + 3, left + wide, base + 2)
            held = box.left >= inside.left and box.right <= inside.right and box.top >= inside.top
            if held and box.bottom <= inside.bottom and not any(box.meets(other) for other in taken):
                taken.append(box)
                return left, base
    return None


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return positions near the wanted positions, at least `gap` apart, in order and between `low` and `high` if
    possible.
    """
    order = sorted(range(len(wanted)), key=lambda at: (wanted[at], at))
    placed = [0.0] * len(wanted)
    floor = low
    for at in order:
        placed[at] = max(wanted[at], floor)
        floor = placed[at] + gap
    ceiling = high
    for at in reversed(order):
        placed[at] = min(placed[at], ceiling)
        ceiling = placed[at] - gap
    return placed


LEFT, RIGHT, TOP, HIGH = 66, WIDTH - 24, 66, 300
MAX_LINE_LETTERS = 100  # maximum number of letters per line of text
COLOURS = 6  # number of colour classes in the style sheet of a page


@dataclass(frozen=True)
class Curve:
    """One line of a plot.

    Attributes:
        names: names of all systems with this line; only the first name is shown.
        points: at least one (x, y), by increasing x.
    """

    names: tuple[str, ...]
    points: tuple[tuple[float, float], ...]


def curves(
    title: str, lines: Sequence[Curve], titles: tuple[str, str], ticks: Sequence[float], *, coloured: bool = False
) -> str:
    """Return the plot as SVG.

    Args:
        lines: at least one.
        titles: of the horizontal and the vertical axis.
        ticks: of the horizontal axis.
        coloured: whether lines have the classes ``s0``, ``s1``, ... of a page's style in addition to their numbers.
    """
    foot = TOP + HIGH
    across = AxisScale.of(ticks, LEFT, RIGHT - 26)
    up = AxisScale.of([y for line in lines for _, y in line.points], foot, TOP)
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
        words = f"{number}  {shortened(line.names[0], MAX_LINE_LETTERS - 15)}{alike}"
        drawing.text(LEFT, foot + (2.4 + number) * LINE, words, f"named{own}" if coloured else "")
    return drawing.svg()


FOREST_LEFT, FOREST_RIGHT, FOREST_TOP = 300, WIDTH - 24, 66
ROW_HEIGHT = LINE * 1.3  # distance between rows
MAX_LABEL_LETTERS = 42  # maximum number of letters of a shown name


@dataclass(frozen=True)
class ForestRow:
    """A row: a value with its interval, and whether it is significant."""

    name: str
    value: float
    low: Number
    high: Number
    clear: bool = True


def forest(title: str, rows: Sequence[ForestRow], told: str, *, changes: bool) -> str:
    """Return the plot as SVG.

    Args:
        rows: at least one.
        told: label of the scale.
        changes: whether values are differences, so that zero is marked and signs are shown.
    """
    foot = FOREST_TOP + len(rows) * ROW_HEIGHT + 8
    ends = [value for row in rows for value in (row.value, row.low, row.high) if value is not None]
    across = AxisScale.of([*ends, 0.0] if changes else ends, FOREST_LEFT, FOREST_RIGHT)
    drawing = Drawing(title, foot + 3.4 * LINE)
    for value in across.ticks():
        drawing.line(across.at(value), foot, across.at(value), FOREST_TOP, "grid")
        words = (f"{value:+,.4g}" if value else "0") if changes else f"{value:,.4g}"
        drawing.text(across.at(value), foot + LINE, words, "soft", "middle")
    if changes:
        drawing.line(across.at(0), foot, across.at(0), FOREST_TOP, "axis")
    for number, row in enumerate(rows):
        _row(drawing, row, across, FOREST_TOP + (number + 0.8) * ROW_HEIGHT)
    drawing.text((FOREST_LEFT + FOREST_RIGHT) / 2, foot + 2.2 * LINE, told, "soft", "middle")
    return drawing.svg()


def _row(drawing: Drawing, row: ForestRow, across: AxisScale, y: float) -> None:
    drawing.text(288, y + 4, shortened(row.name, MAX_LABEL_LETTERS), "", "end")
    if row.low is not None and row.high is not None:
        drawing.line(across.at(row.low), y, across.at(row.high), y, "bar" if row.clear else "doubt")
    drawing.dot(across.at(row.value), y, "front" if row.clear else "doubtdot", row.name)
