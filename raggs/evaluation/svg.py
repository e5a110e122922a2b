"""All plots as self-contained SVG, without a plotting library: charts of lines and points, and forest plots.

The output is deterministic. Texts are escaped, because names come from users. Colours are those of
`raggs/base/theme.css`, light or dark; shapes and names repeat what colours show. Drawings are narrow, so that text is
at least 11 pixels high at the width of a phone (312 pixels in a card).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from importlib.resources import files
from itertools import pairwise

from raggs.base.text import escape_controls, fit, plural, text_width, wrap
from raggs.base.types import Number
from raggs.evaluation.label_positions import Box, free_height, place_label, spread

WIDTH, MARGIN = 440, 14
TITLE_SIZE = 17.0  # height of the title, as in figure.css
LINE = 20.0  # distance between lines of text
HIGH = 210.0  # height of the area of a chart
MAX_LINES = 6  # lines with a colour and a marker; the rest are grey
MAX_END_LABEL = 104.0  # width of a name that still fits at the end of a line
SCALE_MARGIN = 0.07  # margin of a scale on each side of its values, as a share of its range
MIN_LOG_TICKS = 3  # minimum number of ticks of a logarithmic scale
LOG_SCALE_FROM = 20  # minimum ratio of largest to smallest value for a logarithmic scale
NEAR_LIMIT = 0.35  # share of the data's range by which a limit may stretch the axis
ANY = (-math.inf, math.inf)  # possible range of values without bounds
SHARE = (0.0, 1.0)  # possible range of shares and scores
POSITIVE = (0.0, math.inf)  # possible range of times and costs
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # forbidden in XML 1.0


@cache
def style() -> str:
    """Return the style of a file: figure.css with the light and the dark colours of theme.css."""
    rules, theme = ((files("raggs.base") / name).read_text(encoding="utf-8") for name in ("figure.css", "theme.css"))
    rules = re.sub(r"/\*.*?\*/\s*", "", rules, flags=re.DOTALL)
    light, dark = (dict(re.findall(r"--([\w-]+): ([^;]+);", block)) for block in re.findall(r"{([^{}]*)}", theme)[:2])

    def coloured(colours: Mapping[str, str]) -> str:
        return re.sub(r"var\(--([\w-]+)\)", lambda found: colours[found[1]], rules)

    changed = [line for line, rule in zip(coloured(dark).splitlines(), rules.splitlines(), strict=True) if line != rule]
    return coloured(light) + "@media (prefers-color-scheme: dark) {\n" + "\n".join(changed) + "\n}"


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
    def of(
        cls,
        values: Iterable[float],
        start: float,
        end: float,
        *,
        log: bool = False,
        within: tuple[float, float] = ANY,
        limit: Number = None,
    ) -> AxisScale:
        """Return a scale around values.

        Args:
            log: whether the scale may be logarithmic; it is if the values span a wide range.
            within: possible range of values; the scale does not exceed it.
            limit: value that the scale includes if that stretches it only a little.
        """
        found = sorted(values)
        low, high = found[0], found[-1]
        log = log and low > 0 and high / low >= LOG_SCALE_FROM
        if limit is not None and (not log or limit > 0):
            near = [math.log(each) if log else each for each in (low, high, limit)]
            stretch = NEAR_LIMIT * ((near[1] - near[0]) or abs(near[1]))
            if near[0] - stretch <= near[2] <= near[1] + stretch:
                low, high = min(low, limit), max(high, limit)
        if log:
            room = (high / low) ** SCALE_MARGIN
            return cls(low / room, high * room, start, end, log=True)
        room = (high - low) * SCALE_MARGIN or abs(high) * SCALE_MARGIN or 1.0
        least, most = max(low - room, within[0]), min(high + room, within[1])
        return cls(min(low, least), max(high, most), start, end)

    def at(self, value: float) -> float:
        """Return the position of a value."""
        low, high, own = (math.log(each) if self.log else each for each in (self.low, self.high, value))
        return self.start + (own - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return round values between the ends, at least two and usually at most six."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            for steps in ((1,), (1, 2, 5)):
                found = [each * 10.0**power for power in range(first, last + 1) for each in steps]
                inside = [value for value in found if self.low <= value <= self.high]
                if len(inside) >= MIN_LOG_TICKS:
                    return inside
        for parts in (5, 10, 20):
            step = _round_step((self.high - self.low) / parts)
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            if last > first:
                break
        return [round(number * step, 10) for number in range(first, last + 1)]


def _round_step(raw: float) -> float:
    power = 10.0 ** math.floor(math.log10(raw))
    return power * next(each for each in (1, 2, 2.5, 5, 10) if each * power >= raw * 0.999)


# --- text -----------------------------------------------------------------------------------------------------------


def clean(words: str) -> str:
    """Return a text escaped for XML, without characters that XML forbids."""
    return escape(FORBIDDEN.sub("\ufffd", escape_controls(words)), quote=True)


# --- drawings -------------------------------------------------------------------------------------------------------

SHAPES = (
    "M-4.8 0a4.8 4.8 0 1 0 9.6 0a4.8 4.8 0 1 0-9.6 0z",
    "M-4.5-4.5h9v9h-9z",
    "M0-6L5.8 4.4H-5.8z",
    "M0-6.4L6.4 0L0 6.4L-6.4 0z",
    "M0 6L5.8-4.4H-5.8z",
    "M-2-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
)  # markers of lines: circle, square, triangle, diamond, reversed triangle, cross
SYMBOLS = (SHAPES[3], SHAPES[2], SHAPES[1])  # reference values of a forest plot
Swatch = Callable[[float, float], None]  # draws the sign of an entry of a legend, around the position


class Drawing:
    """A figure that is drawn from top to bottom. Its height follows from its text.

    Args:
        title: the question that the figure answers, or its finding.
    """

    def __init__(self, title: str) -> None:
        self._title, self._parts, self._foot = clean(title), list[str](), 0.0
        self.top = 24.0  # baseline of the next line of text
        for line in wrap(title, (WIDTH - 2 * MARGIN) / 1.08, TITLE_SIZE):
            self.text(MARGIN, self.top, line, "title")
            self.top += LINE + 1

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start", *, whole: str = "") -> None:
        """Draw text; `kind` is a class of the style, `whole` the full text of a shortened one."""
        end = "" if anchor == "start" else f' text-anchor="{anchor}"'
        told = f"<title>{clean(whole)}</title>" if whole and whole != words else ""
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{_class(kind)}{end}>{clean(words)}{told}</text>')
        self._foot = max(self._foot, y)

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

    def shape(self, x: float, y: float, shape: str, kind: str, name: str = "") -> None:
        """Draw one of `SHAPES` with a tooltip."""
        told = f"<title>{clean(name)}</title>" if name else ""
        self._parts.append(f'<path transform="translate({x:.1f} {y:.1f})" d="{shape}"{_class(kind)}>{told}</path>')

    def centred(self, x: float, y: float, words: str, kind: str = "soft") -> float:
        """Draw lines of text around `x`, inside the drawing; return the baseline of the next line."""
        for line in wrap(words, WIDTH - 2 * MARGIN):
            half = text_width(line) / 2
            self.text(min(max(x, MARGIN + half), WIDTH - MARGIN - half), y, line, kind, "middle")
            y += LINE
        return y

    def frame(
        self,
        across: AxisScale,
        up: AxisScale,
        title: str,
        at: Iterable[float] | None = None,
        names: Mapping[float, str] | None = None,
    ) -> float:
        """Draw ticks with values and the title of the horizontal axis; return the baseline of the next line.

        Args:
            at: horizontal ticks; labels that would overlap are omitted.
            names: labels of horizontal ticks.
        """
        left, right, foot, top = across.start, across.end, up.start, up.end
        free = 0.0
        for value in across.ticks() if at is None else at:
            if not across.low <= value <= across.high:
                continue
            words, x = (names or {}).get(value) or f"{value:,.6g}", across.at(value)
            self.line(x, foot, x, top, "grid")
            half = text_width(words) / 2
            if x - half >= free:
                self.text(x, foot + LINE, words, "soft", "middle")
                free = x + half + 6
        for value in up.ticks():
            self.line(left, up.at(value), right, up.at(value), "grid")
            self.text(left - 7, up.at(value) + 5, f"{value:,.6g}", "soft", "end")
        self.line(left, foot, right, foot, "axis")
        return self.centred((left + right) / 2, foot + 2.1 * LINE, title)

    def legend(self, entries: Iterable[tuple[Swatch, str]], y: float) -> float:
        """Draw signs with their names, as many per line as fit; return the baseline of the next line.

        An entry that is too wide takes two lines; if it is still too wide, it is shortened.
        """
        x, sign, started = float(MARGIN), 30.0, False
        room = WIDTH - 2 * MARGIN - sign
        for swatch, name in entries:
            first, *rest = wrap(name, room)
            lines = [first, fit(" ".join(rest), room)] if rest else [first]
            wide = sign + max(map(text_width, lines))
            if started and (x + wide > WIDTH - MARGIN or rest):
                x, y = float(MARGIN), y + LINE
            swatch(x + 11, y - 5)
            for number, line in enumerate(lines):
                self.text(x + sign, y + number * LINE, line, whole=name)
            y += LINE * (len(lines) - 1)
            x, started = x + wide + 12, True
        return y + LINE if started else y

    def notes(self, notes: Iterable[str], y: float) -> float:
        """Draw lines of soft text; return the baseline of the next line."""
        for line in (line for note in notes for line in wrap(note, WIDTH - 2 * MARGIN)):
            self.text(MARGIN, y, line, "soft")
            y += LINE
        return y

    def svg(self) -> str:
        """Return the SVG file."""
        size = f'viewBox="0 0 {WIDTH} {self._foot + 12:g}"{_size(self._foot + 12)}'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" {size} role="img" aria-label="{self._title}">'
        page = f'<rect width="{WIDTH}" height="{self._foot + 12:g}" class="page"/>'
        return "\n".join([head, f"<style>{style()}</style>", page, *self._parts, "</svg>"]) + "\n"


def _size(height: float) -> str:
    return f' width="{WIDTH}" height="{height:g}"'


@dataclass(frozen=True)
class Plot:
    """A figure that Jupyter displays; `svg` is the content of an SVG file."""

    title: str
    svg: str = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg


def inlined(svg: str) -> str:
    """Return an SVG element for embedding in a page, which has the style of figures and sets the size."""
    head, _, rest = svg.partition(f"<style>{style()}</style>\n")
    return re.sub(r' width="\d+" height="[\d.]+"', "", head) + rest


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


# --- charts of lines and points -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """One line of a chart.

    Attributes:
        names: names of all systems with this line.
        points: at least one (x, y), by increasing x.
        spans: interval of each point, or nothing.
        mark: number of the colour and marker, for a series that several charts show; from `MAX_LINES` on, the line is
            grey. None: the position in the list of lines.
    """

    names: tuple[str, ...]
    points: tuple[tuple[float, float], ...]
    spans: tuple[tuple[float, float] | None, ...] = ()
    mark: int | None = None

    @property
    def name(self) -> str:
        """Name in the chart."""
        return (
            " = ".join(self.names) if len(self.names) < 3 else f"{self.names[0]} and {len(self.names) - 1} equal ones"
        )


@dataclass(frozen=True)
class Point:
    """A point of a chart.

    Attributes:
        label: text next to the point, drawn if it fits; "" for none.
        tip: text of the tooltip.
        front: whether the point is emphasised; others are grey.
        chosen: whether the point has a ring.
    """

    x: float
    y: float
    label: str
    tip: str
    front: bool = True
    chosen: bool = False


@dataclass(frozen=True)
class AxisLimit:
    """A limit on an axis; `text` names it with its value."""

    value: float
    text: str


@dataclass(frozen=True)
class ChartAxis:
    """One axis of a chart.

    Attributes:
        title: name of the quantity, with its unit.
        within: possible range of values.
        ticks: positions of ticks of a horizontal axis; None: round values.
        names: labels of ticks of a horizontal axis.
        limit: value that is marked. If it is far outside the data, an arrow at the edge shows its direction.
        log: whether a horizontal axis may be logarithmic.
    """

    title: str
    within: tuple[float, float] = ANY
    ticks: Sequence[float] | None = None
    names: Mapping[float, str] | None = None
    limit: AxisLimit | None = None
    log: bool = False

    def scale(self, values: Iterable[float], start: float, end: float) -> AxisScale:
        """Return the scale around values."""
        limit = None if self.limit is None else self.limit.value
        return AxisScale.of(values, start, end, log=self.log, within=self.within, limit=limit)


def chart(
    title: str,
    axes: tuple[ChartAxis, ChartAxis],
    *,
    lines: Sequence[Curve] = (),
    points: Sequence[Point] = (),
    steps: Sequence[tuple[float, float]] = (),
    notes: Sequence[str] = (),
    other: str = "",
) -> str:
    """Return a chart as SVG; there is at least one line or point.

    Args:
        axes: the horizontal and the vertical one.
        lines: the most important first; after `MAX_LINES`, lines are grey.
        steps: corners of a line that joins points.
        notes: text below the chart.
        other: meaning of points without a label. If it is given, points with a label (at most `MAX_LINES`) get a
            marker each, and a legend with their tips.
    """
    drawing, marked = Drawing(title), _numbered_lines(lines)
    lines, shown = [line for _, line in marked], [(mark, line) for mark, line in marked if mark < MAX_LINES]
    places = [place for line in lines for place in line.points] + [(each.x, each.y) for each in points]
    ends = [end for line in lines for span in line.spans if span for end in span]
    at_end = len(lines) == len(shown) > 0 and not points
    at_end = at_end and all(text_width(line.name) <= MAX_END_LABEL for line in lines)
    top = drawing.notes([axes[1].title], drawing.top + 2) - 4
    up = axes[1].scale([*(y for _, y in places), *ends], top + HIGH, top)
    left = MARGIN + max(text_width(f"{value:,.6g}") for value in up.ticks()) + 7
    right = WIDTH - MARGIN - (30 + max(text_width(line.name) for line in lines) if at_end else 10)
    across = axes[0].scale([x for x, _ in places], left, right)
    scale = " (logarithmic)" if across.log else ""
    y = drawing.frame(across, up, axes[0].title + scale, axes[0].ticks, axes[0].names)
    marks = [Box.around(across.at(each.x), up.at(each.y), 10 if each.chosen else 6) for each in points]
    above = Box(MARGIN, top - 30, MARGIN + text_width(axes[1].title), top - 8)
    taken = [*_limits(drawing, across, up, (axes[0].limit, axes[1].limit), marks), *marks, above]
    taken += [Box.around(across.at(x), up.at(y), 5) for line in lines for x, y in line.points]
    corners = [(across.at(x), up.at(y)) for x, y in steps]
    if len(steps) > 1:
        drawing.path(corners, "steps")
        taken += [Box.of_line(*ends) for ends in pairwise(corners)]
    for line in (line for mark, line in marked if mark >= MAX_LINES):
        drawing.path([(across.at(x), up.at(y)) for x, y in line.points], "rest")
    for number, line in reversed(shown):
        _line(drawing, line, number, (across, up))
    _points(drawing, points, (across, up), taken, bool(other))
    y += 5
    if at_end:
        _end_labels(drawing, shown, (across, up))
    else:
        y = drawing.legend(_line_key(drawing, marked), y)
    y = drawing.legend(_point_key(drawing, points, other), y + (8 if other else 0))
    drawing.notes(notes, y)
    return drawing.svg()


def _numbered_lines(lines: Iterable[Curve]) -> list[tuple[int, Curve]]:
    """Return the lines by their marks, those with equal points as one, with the mark of the first."""
    found: dict[object, Curve] = {}
    for line in lines:
        key = (line.points, line.spans)
        found[key] = replace(found[key], names=(*found[key].names, *line.names)) if key in found else line
    marked = [(place if line.mark is None else line.mark, line) for place, line in enumerate(found.values())]
    return sorted(marked, key=lambda each: each[0])


def _line(drawing: Drawing, line: Curve, number: int, scales: tuple[AxisScale, AxisScale]) -> None:
    across, up = scales
    drawing.path([(across.at(x), up.at(y)) for x, y in line.points], f"series s{number}")
    for (x, _), span in zip(line.points, line.spans, strict=False):
        if span:
            drawing.line(across.at(x), up.at(span[0]), across.at(x), up.at(span[1]), f"span s{number}")
    for x, y in line.points:
        tip = f"{', '.join(line.names)}: {x:,.6g}, {y:,.4g}"
        drawing.shape(across.at(x), up.at(y), SHAPES[number], f"mark s{number}", tip)


def _end_labels(drawing: Drawing, lines: Sequence[tuple[int, Curve]], scales: tuple[AxisScale, AxisScale]) -> None:
    across, up = scales
    ends = spread([up.at(line.points[-1][1]) + 5 for _, line in lines], LINE - 2, up.end + 5, up.start)
    for (number, line), end in zip(lines, ends, strict=True):
        x, y = line.points[-1]
        drawing.line(across.at(x) + 6, up.at(y), across.end + 6, end - 5, "link")
        drawing.shape(across.end + 12, end - 5, SHAPES[number], f"mark s{number}")
        drawing.text(across.end + 22, end, line.name, "halo", whole=", ".join(line.names))


def _line_key(drawing: Drawing, lines: Sequence[tuple[int, Curve]]) -> Iterable[tuple[Swatch, str]]:
    def swatch(number: int) -> Swatch:
        def draw(x: float, y: float) -> None:
            drawing.line(x - 11, y, x + 11, y, f"series s{number}")
            drawing.shape(x, y, SHAPES[number], f"mark s{number}")

        return draw

    for number, line in lines:
        if number < MAX_LINES:
            yield swatch(number), line.name
    if rest := [line for number, line in lines if number >= MAX_LINES]:
        names = ", ".join(line.name for line in rest)
        yield lambda x, y: drawing.line(x - 11, y, x + 11, y, "rest"), f"{plural(len(rest), 'other')}: {names}"


def _point_key(drawing: Drawing, points: Sequence[Point], other: str) -> Iterable[tuple[Swatch, str]]:
    """Yield the named points with their values, then the others."""

    def swatch(point: Point, number: int) -> Swatch:
        return lambda x, y: _marker(drawing, x, y, point, number)

    if other:
        yield from ((swatch(each, number), each.tip) for number, each in enumerate(_labelled_points(points)))
        if any(not each.label for each in points):
            yield lambda x, y: drawing.dot(x, y, "other", other, 3.5), other


def _labelled_points(points: Iterable[Point]) -> list[Point]:
    return sorted((each for each in points if each.label), key=lambda each: not each.chosen)


def _marker(drawing: Drawing, x: float, y: float, point: Point, number: int) -> None:
    drawing.shape(x, y, SHAPES[number], f"mark s{number}", point.tip)
    if point.chosen:
        drawing.dot(x, y, "chosen", point.tip, 9)


def _dot(drawing: Drawing, x: float, y: float, kind: str, point: Point) -> None:
    drawing.dot(x, y, "dot" if kind == "front" else "other", point.tip, 5 if kind == "front" else 3.5)
    if point.chosen:
        drawing.dot(x, y, "chosen", point.tip, 9)


def _limits(
    drawing: Drawing,
    across: AxisScale,
    up: AxisScale,
    limits: tuple[AxisLimit | None, AxisLimit | None],
    marks: Sequence[Box],
) -> list[Box]:
    """Draw the limits, and return the boxes of their texts.

    Args:
        marks: boxes of the points. A text at the foot that would cover one is moved up.
    """
    taken: list[Box] = []

    def label(x: float, y: float, words: str, anchor: str) -> None:
        wide = text_width(words)
        left = x - wide if anchor == "end" else x
        if y == foot:
            y = free_height(left, y, wide, up.end + 13, marks)
        taken.append(Box(left, y - 13, left + wide, y + 4))
        drawing.text(x, y, words, "soft halo", anchor)

    (limit, target), foot = limits, up.start - 8
    if limit is not None and limit.value > across.high:
        label(across.end, foot, f"{limit.text} →", "end")
    elif limit is not None and limit.value < across.low:
        label(across.start + 6, foot, f"← {limit.text}", "start")
    elif limit is not None:
        x = across.at(limit.value)
        drawing.line(x, up.start, x, up.end, "limit")
        late = x > (across.start + across.end) / 2
        label(x - 6 if late else x + 6, foot, limit.text, "end" if late else "start")
    if target is not None and target.value > up.high:
        label(across.end, up.end + 14, f"↑ {target.text}", "end")
    elif target is not None and target.value < up.low:
        label(across.end, up.start - (28 if taken else 8), f"↓ {target.text}", "end")
    elif target is not None:
        y = up.at(target.value)
        drawing.line(across.start, y, across.end, y, "limit")
        label(across.end, y + 15 if y - 18 < up.end else y - 6, target.text, "end")
    return taken


def _points(
    drawing: Drawing, points: Sequence[Point], scales: tuple[AxisScale, AxisScale], taken: list[Box], marked: bool
) -> None:
    across, up = scales
    inside = Box(across.start + 2, up.end - 18, WIDTH - MARGIN, up.start - 2)
    for each in sorted(points, key=lambda point: (point.front, point.chosen)):
        if not marked or not each.label:
            _dot(drawing, across.at(each.x), up.at(each.y), "front" if each.front else "other", each)
    named = _labelled_points(points)
    for number, each in reversed(list(enumerate(named))):
        if marked:
            _marker(drawing, across.at(each.x), up.at(each.y), each, number)
    clusters: dict[Box, list[Point]] = {}  # points that cover each other share a label
    for each in named:
        spot = Box.around(across.at(each.x), up.at(each.y), 0 if marked else 4)
        clusters.setdefault(next(filter(spot.meets, clusters), spot), []).append(each)
    for each, *others in clusters.values():
        more = f", {others[0].label}" if len(others) == 1 else f" and {len(others)} more" if others else ""
        words, x, y = fit(each.label + more, 0.8 * (WIDTH - across.start)), across.at(each.x), up.at(each.y)
        if (place := place_label(x, y, words, taken, inside, 24 if marked else 200)) is not None:
            near = min(max(x, place[0]), place[0] + text_width(words))
            edge = min(max(y, place[1] - 12), place[1] + 4)
            if math.hypot(near - x, edge - y) > 13:
                drawing.line(x, y, near, edge, "link")
            whole = "; ".join(point.tip for point in (each, *others))
            drawing.text(*place, words, "strong halo" if each.chosen else "halo", whole=whole)


# --- forest plots ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ForestRow:
    """A row: a value with its interval.

    Attributes:
        value: None if undefined.
        clear: whether the value is significant.
        failed: whether the value violates a limit.
        references: further values to mark in the row, by name.
    """

    name: str
    value: Number
    low: Number
    high: Number
    clear: bool = True
    failed: bool = False
    references: Mapping[str, float] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Class of the style."""
        return "failed" if self.failed else "bar" if self.clear else "unclear"

    def values(self) -> list[float]:
        """Return all numbers of the row."""
        return [each for each in (self.value, self.low, self.high, *self.references.values()) if each is not None]


DOTS = {"bar": "dot", "unclear": "unclear-dot", "failed": "failed-dot"}
KINDS = {"bar": "significant", "unclear": "not significant", "failed": "limit not met"}
NOT_SIGNIFICANT = (
    "Not significant although the interval excludes 0: after correction for the number of comparisons, or because "
    "unjudged passages could reverse it."
)


def forest(
    title: str,
    rows: Sequence[ForestRow],
    told: str,
    *,
    changes: bool,
    zero: str = "no change",
    sides: tuple[str, str] = ("worse", "better"),
    within: tuple[float, float] = ANY,
    key: Mapping[str, str] = KINDS,
    notes: Sequence[str] = (),
) -> str:
    """Return a forest plot as SVG: a value with its interval per row.

    Args:
        rows: at least one.
        told: label of the scale.
        changes: whether values are differences, so that zero is marked and signs are shown.
        zero: meaning of zero.
        sides: meaning of negative and positive differences.
        within: possible range of values.
        key: meaning of blue, grey and failed rows.
    """
    drawing = Drawing(title)
    ends = [value for row in rows for value in row.values()]
    digits = 3 if max(map(abs, ends), default=0) < 10 else 1
    space = [*ends, 0.0] if changes or not ends else ends
    across = AxisScale.of(space, MARGIN + 2, WIDTH - MARGIN - 2, within=within)
    top = foot = drawing.top + (LINE - 6 if changes else -10)
    for row in rows:
        words = _value_text(row, digits, "+" if changes else "")
        beside = text_width(row.name) + text_width(words) + 12 <= WIDTH - 2 * MARGIN
        for line in [row.name] if beside else wrap(row.name, WIDTH - 2 * MARGIN):
            foot += LINE
            drawing.text(MARGIN, foot - 2, line, whole=row.name)
        foot += 0 if beside else LINE - 2
        drawing.text(WIDTH - MARGIN, foot - 2, words, anchor="end")
        for value in across.ticks():  # between the names, so that no line crosses text
            kind = "axis" if changes and not value else "grid"
            drawing.line(across.at(value), foot + 20, across.at(value), foot + 3, kind)
        _row(drawing, row, across, foot + 11)
        foot += 23
    if changes:
        drawing.centred(across.at(0), top - 5, f"0 = {zero}")
    drawing.line(across.start, foot, across.end, foot, "axis")
    labels = [f"{value:+,.4g}" if changes and value else f"{value:,.4g}" for value in across.ticks()]
    places = [*map(across.at, across.ticks())]
    step = 1 + any(other - x < max(map(text_width, labels)) + 6 for x, other in pairwise(places))
    first = (labels.index("0") if "0" in labels else 0) % step
    for x, label in [*zip(places, labels, strict=True)][first::step]:
        drawing.text(max(x, MARGIN + text_width(label) / 2), foot + LINE - 2, label, "soft", "middle")
    y = foot + 2.1 * LINE
    if changes:
        drawing.text(MARGIN, y, f"← {sides[0]}", "strong")
        drawing.text(WIDTH - MARGIN, y, f"{sides[1]} →", "strong", "end")
        y += LINE
    y = drawing.notes([told], y) + 3
    y = drawing.legend(_row_key(drawing, rows, key), y)
    unsure = changes and key is KINDS and any(row.kind == "unclear" and _excludes_zero(row) for row in rows)
    drawing.notes([*[NOT_SIGNIFICANT] * unsure, *notes], y)
    return drawing.svg()


def _value_text(row: ForestRow, digits: int, sign: str) -> str:
    if row.value is None:
        return "undefined"
    if row.low is None or row.high is None:
        return f"{row.value:{sign}.{digits}f}"
    return f"{row.value:{sign}.{digits}f} [{row.low:{sign}.{digits}f}, {row.high:{sign}.{digits}f}]"


def _excludes_zero(row: ForestRow) -> bool:
    return row.low is not None and row.high is not None and (row.low > 0 or row.high < 0)


def _row(drawing: Drawing, row: ForestRow, across: AxisScale, y: float) -> None:
    if row.low is not None and row.high is not None:
        drawing.line(across.at(row.low), y, across.at(row.high), y, row.kind)
    for number, (name, value) in enumerate(row.references.items()):
        drawing.shape(across.at(value), y, SYMBOLS[number % len(SYMBOLS)], "reference", f"{name}: {value:,.4g}")
    if row.value is not None:
        drawing.dot(across.at(row.value), y, DOTS[row.kind], row.name, 5)


def _row_key(drawing: Drawing, rows: Sequence[ForestRow], key: Mapping[str, str]) -> Iterable[tuple[Swatch, str]]:
    def swatch(kind: str) -> Swatch:
        def draw(x: float, y: float) -> None:
            drawing.line(x - 11, y, x + 11, y, kind)
            drawing.dot(x, y, DOTS[kind], key[kind], 5)

        return draw

    def symbol(number: int) -> Swatch:
        return lambda x, y: drawing.shape(x, y, SYMBOLS[number % len(SYMBOLS)], "reference")

    kinds = {row.kind for row in rows}
    if kinds != {"bar"}:
        yield from ((swatch(kind), words) for kind, words in key.items() if kind in kinds)
    for number, name in enumerate(dict.fromkeys(name for row in rows for name in row.references)):
        yield symbol(number), name
