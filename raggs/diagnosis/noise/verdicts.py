"""The one sentence: what the most noise costs, and what the best rewriter brings back of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from raggs.base.jsontypes import Number
from raggs.diagnosis.noise.models import NONE, EndPart, LevelPart
from raggs.diagnosis.noise.searching import HYBRID
from raggs.diagnosis.parts import MeanPart
from raggs.diagnosis.verdicts import capital, listed, said


def verdict(cosines: Sequence[LevelPart], ends: Sequence[EndPart], untold: str | None = None) -> str:
    """What noise costs a search and what to do first; where it costs nothing clear, the cosines of who loses most.

    Args:
        untold: why nothing was searched.
    """
    level, measure, system = _looked_at(ends) if ends else (0, "", "")
    parts = [part for part in ends if (part.system, part.level, part.measure) == (system, level, measure)]
    lost = next((part.change for part in parts if part.rewriter == NONE), MeanPart())
    if lost.mean is not None and lost.high is not None and lost.high < 0:
        costs = f"Noise of level {level} costs a {system} search {-lost.mean:.3f} {measure}"
        return said(*_with_rewriter(costs, parts))
    if lost.mean is not None:
        untold = f"What it costs a {system} search in {measure} may be nothing ({lost.mean:+.3f})"
    elif ends:
        untold = f"{capital(measure)} is defined for no question that was searched"
    return said(_of_embedder(cosines), "" if untold is None else untold.removesuffix("."))


def best_rewriter(parts: Iterable[tuple[str, Number]]) -> str | None:
    """The rewriter whose mean is highest; None without one."""
    sums: dict[str, list[float]] = {}
    for name, value in parts:
        if name != NONE and value is not None:
            sums.setdefault(name, []).append(value)
    return max(sums, key=lambda name: sum(sums[name]) / len(sums[name]), default=None)


def _of_embedder(cosines: Sequence[LevelPart]) -> str:
    level = max(part.level for part in cosines)
    noisy = [part for part in cosines if part.level == level]
    worst = min((part for part in noisy if part.rewriter == NONE), key=lambda part: part.percent or 0).embedder
    parts = [part for part in noisy if part.embedder == worst]
    costs = listed(f"{-(part.percent or 0):.0f}% in {part.language}" for part in parts if part.rewriter == NONE)
    told = f"Noise of level {level} takes {costs} from {worst}'s cosine to the ideal text"
    name = best_rewriter((part.rewriter, part.cosine.mean) for part in parts)
    if name is None:
        return told
    own = [part for part in parts if part.rewriter == name]
    return f"{told}, of which {name} brings back {listed(_back(part.regained, part.language) for part in own)}"


def _with_rewriter(costs: str, parts: Sequence[EndPart]) -> tuple[str, str]:
    name = best_rewriter((part.rewriter, part.mean.mean) for part in parts)
    back = next((part.regained for part in parts if part.rewriter == name), None)
    if name is None or back is None:
        return costs, "First try what a rewriter brings back: --rewriter NAME"
    helps = back.low is not None and back.low > 0
    then = f"First rewrite questions by it (embed.rewrite: {name})" if helps else "First try another: --rewriter NAME"
    return f"{costs}, of which {name} brings back {_back(back)}", then


def _looked_at(ends: Sequence[EndPart]) -> tuple[int, str, str]:
    return max(part.level for part in ends), ends[0].measure, _system(ends)


def _system(ends: Sequence[EndPart]) -> str:
    """The one that is looked at: the last that reranks, else the first that looks for words and vectors."""
    names = list(dict.fromkeys(part.system for part in ends))
    reranked = [name for name in names if name.startswith("reranked")]
    return (reranked[-1:] or [name for name in names if name.startswith(HYBRID)] or names)[0]


def _back(part: MeanPart, language: str = "") -> str:
    share = "an unknown share" if part.mean is None else f"{100 * part.mean:.0f}%"
    if part.low is not None and part.low <= 0:
        share = (
            "nothing that can be told from chance" if part.high is None or part.high >= 0 else "nothing, and costs more"
        )
    return f"{share} in {language}" if language else share
