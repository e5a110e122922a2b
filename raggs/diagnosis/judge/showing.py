"""What the diagnosis of a judge found, as a verdict, sentences, tables and plots; from that alone."""

from __future__ import annotations

from raggs.base.text import plural
from raggs.diagnosis.judge.models import FavourPart, JudgeFound, PlacePart, PoolsPart, WayPart
from raggs.diagnosis.layout import said
from raggs.evaluation.document import Cell, Legend, Row, Section, Table, Value, bounded
from raggs.evaluation.svg import LINE, WIDTH, Drawing, ForestRow, Scale, forest

LEFT, RIGHT, TOP, FOOT = 60, WIDTH - 24, 78, 320
COIN = 0.5
NONE = "no order of a whole pool"


def verdict(found: JudgeFound) -> str:
    """How often its orders turn, in one prompt and by the rank stage; then whether that is worth its calls."""
    single, ranked = found.single, found.ranked
    if single.otherwise.mean is None and single.again.mean is None:
        told = f"{found.judge} gave {NONE} to compare, {single.failed} of {single.asked} asked for came back without"
        return said(told, "First look at why: the table says what it answered")
    if all(part.mean == 0 and not part.high for part in (single.again, single.otherwise, ranked.otherwise)):
        return said(f"{found.judge} orders the same {found.size} alike each time, however shown: nothing to buy")
    shown, turned = "shown otherwise", single.otherwise
    if turned.mean is None:
        shown, turned = "asked again", single.again
    told = f"{found.judge} turns {_share(turned)} of all pairs when the same {found.size} are {shown}"
    if ranked.otherwise.mean is not None:
        told += f", the rank stage {_share(ranked.otherwise)} for {_cost(ranked)} a pool, not {_cost(single)}"
    return said(told, _bought(found.gain))


def _bought(gain: PoolsPart) -> str:
    """What grades alone do not buy."""
    if gain.mean is None or gain.low is None or gain.high is None:
        return ""
    if gain.low == gain.high == 0:
        return "No pair turns once the grades are known, so there is nothing to buy"
    if gain.low > 0:
        return f"Rank with it: beside what the grades tell, that buys {_share(gain)} fewer"
    if gain.high < 0:
        return f"Do not rank with it: that buys nothing, and turns {-100 * gain.mean:.1f}% more than the grades alone"
    return f"Ask more pools first (--pools): {_share(gain)} fewer, beside what the grades tell, may be chance"


def _share(part: PoolsPart) -> str:
    if part.mean is None:
        return "–"
    held = "" if part.low is None or part.high is None else f" [{100 * part.low:.1f}, {100 * part.high:.1f}]"
    return f"{100 * part.mean:.1f}%{held}"


def _cost(part: WayPart) -> str:
    calls = f"{part.calls:.3g} {'call' if part.calls == 1 else 'calls'}"
    return f"{calls} and {part.usd:.2g} USD" if part.usd else calls


def sections(found: JudgeFound) -> tuple[Section, ...]:
    """The two ways, then where in the list, then what the place shown does, then failures."""
    return (_ways(found), _places(found), _favour(found), *_failures(found))


def _ways(found: JudgeFound) -> Section:
    head = ("way", "asked again", "shown otherwise", "tau", f"overlap@{found.top}", "calls", "tokens", "USD")
    rows = tuple(_way(part) for part in (found.single, found.informed, found.ranked))
    sentences = [
        f"{plural(found.pools, 'pool')}, each in {found.showings} orders of showing asked {found.repeats} times, and "
        f"ranked {found.rankings} times",
        f"one prompt and the rank stage agree with tau {_number(found.between)}",
    ]
    if found.grading.get("calls"):
        calls, usd = found.grading["calls"], found.grading["usd"]
        sentences.append(f"grades that the rank stage starts from took {calls:,.0f} calls, {usd:.2g} USD")
    terms = (
        Legend("[ ]", "95% interval over resampled pools; below ten pools it is too short"),
        Legend("asked again", "share of pairs in another order when the same list is shown the same way again"),
        Legend("shown otherwise", "the same for another order of showing; of the rank stage, ranked afresh"),
        Legend("calls, tokens, USD", "for one order of one pool"),
    )
    return Section("What an order is worth", tuple(sentences), Table(head, rows), (), terms)


def _way(part: WayPart) -> Row:
    usd: Value = f"{part.usd:.4g}" if part.usd else "0"
    means = (_cell(each) for each in (part.again, part.otherwise, part.tau, part.top))
    return (Cell(part.name), *means, Cell(f"{part.calls:.4g}"), Cell(f"{part.tokens:,.0f}"), Cell(usd))


def _places(found: JudgeFound) -> Section:
    head = ("places", "one prompt, asked again", "one prompt, in the rank stage's order", "rank stage, ranked afresh")
    rows = tuple(
        (Cell(f"{part.first}–{part.last + 1}"), _cell(part.again), _cell(part.against), _cell(part.ranked))
        for part in found.places
    )
    said = "how often two neighbours of an order stand in that order in another one; a coin has a half"
    return Section("How sharp it is, by place", (said, _sharp(found)), Table(head, rows))


def _sharp(found: JudgeFound) -> str:
    return (
        f"sharpness on the scale of the rank stage: {_number(found.sharpness)} in one prompt, "
        f"{_number(found.ranked_sharpness)} in its own batches (3 tells a grade apart 19 times in 20)"
    )


def _favour(found: JudgeFound) -> Section:
    favour = found.favour
    rows = (
        (Cell("one prompt: pairs that turned with the showing, the earlier won"), _cell(favour.toward), Cell("0.5")),
        (Cell("one prompt: shown first rather than last, grades"), _cell(favour.single), Cell("0")),
        (
            Cell("rank stage: batches that the first one shown wins"),
            _cell(favour.first),
            Cell(f"{favour.fair_first:.3g}"),
        ),
        (Cell("rank stage: shown first rather than last, grades"), _cell(favour.ranked), Cell("0")),
    )
    return Section("What the place shown does", (_tilt(favour.toward),), Table(("", "found", "fair"), rows))


def _fair(favour: FavourPart) -> str:
    return f"{favour.fair_first:.3g}"


def _tilt(part: PoolsPart) -> str:
    if part.low is None or part.high is None:
        return "too few pairs turned to tell whether a place is favoured"
    if part.low > COIN:
        return "in one prompt it favours what is shown early"
    return "in one prompt it favours what is shown late" if part.high < COIN else "in one prompt no favour can be told"


def _failures(found: JudgeFound) -> tuple[Section, ...]:
    parts = [part for part in (found.single, found.ranked) if part.failed]
    if not parts:
        return ()
    rows = tuple((Cell(part.name), Cell(part.asked), Cell(part.failed)) for part in parts)
    said = tuple(f"{count} times: {error}" for error, count in found.errors.items())
    return (Section("Without an order", said, Table(("way", "asked", "failed"), rows)),)


def _cell(part: PoolsPart) -> Cell:
    return bounded(part.mean, part.low, part.high)


def _number(part: PoolsPart) -> str:
    if part.mean is None:
        return "–"
    return f"{part.mean:.2f}" + ("" if part.low is None or part.high is None else f" [{part.low:.2f}, {part.high:.2f}]")


# --- plots ---


def plots(found: JudgeFound) -> dict[str, str]:
    """The share of pairs that turn, and how often neighbours are kept by their place."""
    ways = [(f"{found.single.name}, asked again", found.single.again)]
    ways += [(f"{part.name}, {how}", part.otherwise) for part, how in _hows(found)]
    rows = [ForestRow(name, part.mean, part.low, part.high) for name, part in ways if part.mean is not None]
    drawn = {}
    if rows:
        told = "share of all pairs in another order, 95% interval over pools"
        drawn["disagreement"] = forest(f"{found.judge}: the same passages ordered again", rows, told, changes=False)
    if any(part.again.mean is not None or part.ranked.mean is not None for part in found.places):
        drawn["places"] = _by_place(found)
    return drawn


def _hows(found: JudgeFound) -> tuple[tuple[WayPart, str], ...]:
    return (
        (found.single, "shown otherwise"),
        (found.informed, "shown otherwise"),
        (found.ranked, "ranked afresh"),
    )


def _by_place(found: JudgeFound) -> str:
    drawing = Drawing(f"{found.judge}: neighbours that keep their order", FOOT + 3.4 * LINE)
    across, up = Scale(0, len(found.places), LEFT, RIGHT), Scale(0.4, 1.02, FOOT, TOP)
    for value in up.ticks():
        drawing.line(LEFT, up.at(value), RIGHT, up.at(value), "grid")
        drawing.text(LEFT - 7, up.at(value) + 4, f"{value:g}", "soft", "end")
    drawing.line(LEFT, up.at(COIN), RIGHT, up.at(COIN), "limit")
    for at, part in enumerate(found.places):
        drawing.text(across.at(at + 0.5), FOOT + LINE, f"{part.first}–{part.last + 1}", "soft", "middle")
        for shift, kind, name, mean in _marks(part):
            _mark(drawing, across.at(at + shift), up, mean, (kind, name))
    drawing.text((LEFT + RIGHT) / 2, FOOT + 2.2 * LINE, "places in the order", "soft", "middle")
    drawing.text(
        LEFT, TOP - 26, "blue: one prompt, asked again · grey: rank stage, ranked afresh · dashes: a coin", "soft"
    )
    return drawing.svg()


def _marks(part: PlacePart) -> tuple[tuple[float, str, str, PoolsPart], ...]:
    return (0.4, "bar", "one prompt, asked again", part.again), (0.6, "doubt", "rank stage", part.ranked)


def _mark(drawing: Drawing, x: float, up: Scale, mean: PoolsPart, kinds: tuple[str, str]) -> None:
    kind, name = kinds
    if mean.mean is None:
        return
    if mean.low is not None and mean.high is not None:
        drawing.line(x, up.at(mean.low), x, up.at(mean.high), kind)
    drawing.dot(x, up.at(mean.mean), "front" if kind == "bar" else "doubtdot", f"{name}: {mean.mean:.3f}")
