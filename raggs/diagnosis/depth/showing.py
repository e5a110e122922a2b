"""What was found as tables and a plot; computed from the findings alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from raggs.base.text import plural
from raggs.diagnosis.depth.models import DepthFound, HalfPart, PolicyPart
from raggs.evaluation.document import Cell, Legend, Range, Row, Section, Table, interval
from raggs.evaluation.models import ScorePart
from raggs.evaluation.svg import LINE, WIDTH, Drawing, Scale

LEFT, RIGHT, TOP, HIGH = 66, WIDTH - 40, 66, 300
ROUTED, SHALLOW, DEEP, RANDOM = "routed", "shallow", "deep", "random"


def sections(found: DepthFound) -> tuple[Section, ...]:
    """The tables, the most important first."""
    return _policies(found), _differences(found), _signals(found)


def plots(found: DepthFound) -> Mapping[str, str]:
    """Share escalated against quality."""
    return {"share": _plot(found)}


def _policies(found: DepthFound) -> Section:
    half = found.told
    told = [f"{half.questions:,} questions that the thresholds were not fitted on"]
    if found.undefined:
        told.append(f"{found.undefined:,} questions left out, for which a measure is not defined")
    if found.unknown:
        told.append(f"the embedder knows no word of {plural(found.unknown, 'question')}: vectors find nothing for them")
    if found.reranker is None:
        told.append(
            f"no reranker: the first hits are the same at any depth, so {found.far} looks at all of the deep list"
        )
    if found.passed:
        told.append(f"as a level of a sweep's k, or as retrieve.depth: {_as_setting(found)}")
    paid = any(each.usd_per_1k for each in found.policies)
    timed = any(each.p50_ms is not None for each in found.policies)
    head = ("depth", "go deep", "mean K", found.near, found.far, *(("per 1,000",) if paid else ()))
    rows = tuple(_policy(found, each, paid=paid, timed=timed) for each in found.policies)
    terms = (
        Legend("random", "as many questions as the router's, any of them: the expectation, not a draw"),
        Legend("oracle", "all questions that gain, by one who knows; and the best of the router's number"),
        Legend("[ ]", "95% interval over resampled questions"),
    )
    return Section("Depths", tuple(told), Table((*head, *(("p50", "p95") if timed else ())), rows), (), terms)


def _as_setting(found: DepthFound) -> str:
    """The router as a configuration has it, on one line."""
    when = {name: "true" if name == "name" else repr(value) for name, value in found.told.thresholds.items()}
    told = ", ".join(f"{name}: {value}" for name, value in when.items())
    return f"{{type: routed, base: {found.base}, deep: {found.deep}, when: {{{told}}}}}"


def _policy(found: DepthFound, part: PolicyPart, *, paid: bool, timed: bool) -> Row:
    name = {SHALLOW: f"{found.base} for all", DEEP: f"{found.deep} for all"}.get(part.policy, part.policy)
    return (
        Cell(name),
        Cell(None if part.share is None else f"{part.share:.0%}"),
        Cell(None if part.mean_k is None else f"{part.mean_k:.1f}"),
        _score(part.near),
        _score(part.far),
        *((Cell(None if part.usd_per_1k is None else f"${part.usd_per_1k:,.2f}"),) if paid else ()),
        *((_ms(part.p50_ms), _ms(part.p95_ms)) if timed else ()),
    )


def _ms(wait: float | None) -> Cell:
    return Cell(None if wait is None else f"{wait:,.1f} ms")


def _differences(found: DepthFound) -> Section:
    head = ("difference", "even → odd", "odd → even")
    rows = tuple(_difference(found, words, name) for words, name in _compared(found))
    told = (
        f"thresholds fitted on even questions: {_thresholds(found.told)}; on odd ones: {_thresholds(found.swapped)}",
        f"{found.told.share:.0%} of the odd questions go deep, by the swap {found.swapped.share:.0%} of the even ones",
    )
    terms = (Legend("→", "fitted on the questions before it, told on those behind; the verdict rests on the first"),)
    return Section("The router against the others", told, Table(head, rows), (), terms)


def _compared(found: DepthFound) -> Iterator[tuple[str, str]]:
    yield f"routed less {found.base} for all, {found.near}", "near_change"
    yield f"routed less random, {found.far}", "above_random"
    yield f"routed less {found.base} for all, {found.far}", "far_change"
    yield f"routed less {found.deep} for all, {found.far}", "below_deep"


def _difference(found: DepthFound, words: str, name: str) -> Row:
    parts: list[ScorePart] = [getattr(half, name) for half in (found.told, found.swapped)]
    return (Cell(words), *(Cell(part.mean, "signed", "", _ranges(part)) for part in parts))


def _thresholds(half: HalfPart) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in half.thresholds.items()) or "none"


def _signals(found: DepthFound) -> Section:
    rows = tuple(
        (
            Cell(part.signal),
            Cell(_number(part.threshold)),
            Cell(_number(part.alone)),
            Cell(None if part.share is None else f"{part.share:.0%}"),
            Cell(None) if part.above_random is None else _signed(part.above_random),
            Cell(part.words),
        )
        for part in found.signals
    )
    head = ("signal", "threshold", "alone", "go deep", f"{found.far} above random", "what it is")
    told = ("several are looked at, so one interval above 0 may be chance", *found.absent)
    terms = (Legend("alone", "its threshold without the others, what share it sends deep then, and what that gains"),)
    return Section("Signals", told, Table(head, rows), (), terms)


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.4g}"


def _score(part: ScorePart) -> Cell:
    return Cell(part.mean, "score", "", _ranges(part))


def _signed(part: ScorePart) -> Cell:
    return Cell(part.mean, "signed", "", _ranges(part))


def _ranges(part: ScorePart) -> tuple[Range, ...]:
    return interval(part.low, part.high)


def _plot(found: DepthFound) -> str:
    """The line of random escalation, the oracle's above it, the steps of the fit, and where the router stands."""
    places = {each.policy: (each.share or 0.0, each.far.mean or 0.0) for each in found.policies}
    ends = [places[SHALLOW], places[DEEP]]
    lines = {"random": ends, "oracle": list(found.oracle), "steps of the fit": list(found.path)}
    foot = TOP + HIGH
    across, up = Scale.of([0.0, 1.0], LEFT, RIGHT), Scale.of([y for line in lines.values() for _, y in line], foot, TOP)
    drawing = Drawing(f"What escalating buys: {found.far} over the share of questions that go deep", foot + 5.6 * LINE)
    drawing.frame(across, up, ("share of questions that go deep", found.far))
    for number, (name, points) in enumerate(lines.items(), start=1):
        spots = [(across.at(x), up.at(y)) for x, y in points]
        if len(spots) > 1:
            drawing.path(spots, "series")
        (x, y), (to_x, to_y) = spots[(len(spots) - 1) // 2], spots[len(spots) // 2]
        drawing.text((x + to_x) / 2 + 4, (y + to_y) / 2 - 6, str(number), "strong")
        drawing.text(LEFT, foot + (2.4 + number) * LINE, f"{number}  {name}")
    marks = {SHALLOW: f"{found.base} for all", DEEP: f"{found.deep} for all", ROUTED: ROUTED}
    for policy, words in marks.items():
        x, y = across.at(places[policy][0]), up.at(places[policy][1])
        drawing.dot(x, y, "front", words)
        down = -10 if policy == ROUTED else 16
        drawing.text(x + (-8 if policy == DEEP else 8), y + down, words, "strong", "end" if policy == DEEP else "start")
    return drawing.svg()
