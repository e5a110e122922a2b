"""What the figures say; from the findings' parts alone.

The comparison is that of the first index with the one that differs most from it, at the level nearest to .9 that both
bracket, for the first K and the questions that are most. A share of questions counts as different when its interval
leaves 0 out, widened so that those of all indexes and deltas at one level hold together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from raggs.diagnosis.index.models import FrontPart, MatchedPart, PointPart, TunedPart
from raggs.diagnosis.parts import MeanPart
from raggs.diagnosis.verdicts import capital, said
from raggs.stats.probes.neighbours import robustness

USUAL_LEVEL = 0.9
HUNDRED = 100
THREE = 3


def verdict(
    points: Sequence[PointPart],
    matched: Sequence[MatchedPart],
    deltas: Sequence[float],
    tuned: Sequence[TunedPart],
    front: FrontPart | None,
) -> str:
    """What is chosen, and what is compared; the most useful first, two of them."""
    parts = [*_tuned(tuned), *([] if front is None else [_front(front)]), _compared(matched, deltas, points)]
    return said(*map(capital, parts[:2]))


def most_telling(matched: Sequence[MatchedPart], deltas: Sequence[float]) -> MatchedPart | None:
    """The comparison that the verdict is about; None where no two indexes were bracketed at one level."""
    if not matched:
        return None
    k, names = matched[0].k, [robustness(delta) for delta in deltas]
    there = [part for part in matched if part.k == k and part.against]
    if not there:
        return None
    origin = next(part.origin for part in matched if part in there)
    level = min({part.level for part in there}, key=lambda each: abs(each - USUAL_LEVEL))
    mine = [part for part in there if (part.origin, part.level) == (origin, level)]
    return max(mine, key=lambda part: max(abs(part.against[name].mean or 0.0) for name in names))


def _why_not(matched: Sequence[MatchedPart], points: Sequence[PointPart]) -> str:
    """Why no index is compared with another."""
    least = min((part.values["recall"].mean or 0.0 for part in points), default=0.0)
    if points and least > max(part.level for part in matched):
        return (
            f"every index finds at least {least:.1%} of the nearest with the least effort: there is little to lose here"
        )
    if len({part.index for part in points}) < 2:
        return "one index was measured, so that none is compared"
    met = Counter((part.k, part.origin, part.level) for part in matched if part.bracketed)
    if any(count > 1 for count in met.values()):
        return f"no index is compared: {matched[0].index} was measured around no mean recall that others have"
    return "no two indexes were measured around one mean recall, so that none is compared (not bracketed)"


def _compared(matched: Sequence[MatchedPart], deltas: Sequence[float], points: Sequence[PointPart]) -> str:
    found = most_telling(matched, deltas)
    if found is None:
        return _why_not(matched, points)
    first = next(part for part in matched if (part.k, part.origin) == (found.k, found.origin))
    clear = [(delta, found.against[robustness(delta)]) for delta in deltas if robustness(delta) in found.sure]
    better = [(delta, each) for delta, each in clear if (each.mean or 0) > 0]
    worse = [(delta, each) for delta, each in clear if (each.mean or 0) < 0]
    at = f"at a mean recall@{found.k} of {found.level:g} over {found.origin}"
    little, much = found.index, first.index
    if not clear:
        return f"{at}, {found.index} and {first.index} serve questions as evenly as each other, as far as these tell"
    said = [_share(found, delta, each, "more") for delta, each in better[:1]]
    said += [_share(found, delta, each, "fewer") for delta, each in worse[-1:]]
    advice = f": {little} where a little of the truth will do, {much} where nearly all is needed"
    told = f"{at}, {found.index} gives " + " and ".join(said) + f" than {first.index}"
    return told + (advice if better and worse and better[0][0] < worse[-1][0] else "")


def _share(found: MatchedPart, delta: float, each: MeanPart, word: str) -> str:
    value = found.values[robustness(delta)].mean or 0.0
    other = value - (each.mean or 0.0)
    return f"{word} questions at least {delta:.0%} of the truth ({value:.1%}, not {other:.1%}; {in_points(each)})"


def in_points(each: MeanPart) -> str:
    """A difference of shares in points with its interval: "+2.4 points [1.2, 3.6]"."""
    low, high = (HUNDRED * (bound or 0.0) for bound in (each.low, each.high))
    return f"{HUNDRED * (each.mean or 0.0):+.1f} points [{low:+.1f}, {high:+.1f}]"


def _tuned(tuned: Sequence[TunedPart]) -> list[str]:
    if not tuned:
        return []
    limit, known = tuned[0].limit, [part for part in tuned if part.effort is not None]
    if not known:
        return [f"no effort that was tried is sure to lose at most {limit:.2g} of what the exact search finds"]
    told = ", ".join(f"{part.index} with {part.setting} {part.effort}" for part in known)
    doubt = f", as far as {known[0].questions} questions tell" if few_asked(known[0]) else ""
    return [f"the least effort that is sure to lose at most {limit:.1%} of what the exact search finds: {told}{doubt}"]


def few_asked(part: TunedPart) -> bool:
    """Whether so few questions were asked that none of them losing anything would not settle the limit.

    Of n questions without a loss, up to 3 / n of all may have one (the rule of three, at 95%).
    """
    return part.questions * part.limit < THREE


def _front(front: FrontPart) -> str:
    if not front.front:
        return f"no point reaches a {front.what} of {front.least:g}"
    fastest = front.front[0]
    told = f"{fastest.index} with {fastest.setting} {fastest.effort}"
    return f"of the points with a {front.what} of {front.least:g} the fastest is {told}"
