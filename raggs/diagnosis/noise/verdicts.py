"""The one sentence: what the most noise costs, and what the best rewriter brings back of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from raggs.diagnosis.noise.models import NONE, EndPart, LevelPart
from raggs.diagnosis.noise.searching import HYBRID
from raggs.diagnosis.parts import MeanPart
from raggs.jsontypes import Number


def verdict(cosines: Sequence[LevelPart], ends: Sequence[EndPart]) -> str:
    """One sentence on the cosines of each embedder, and on what is found where something was searched."""
    names = dict.fromkeys(part.embedder for part in cosines)
    told = [_of_embedder([part for part in cosines if part.embedder == name]) for name in names]
    said = "; ".join([*told, *([_of_search(ends)] if ends else [])])
    return f"{said[:1].upper()}{said[1:]}."


def best_rewriter(parts: Iterable[tuple[str, Number]]) -> str | None:
    """The rewriter whose mean is highest; None without one."""
    sums: dict[str, list[float]] = {}
    for name, value in parts:
        if name != NONE and value is not None:
            sums.setdefault(name, []).append(value)
    return max(sums, key=lambda name: sum(sums[name]) / len(sums[name]), default=None)


def _of_embedder(parts: Sequence[LevelPart]) -> str:
    level = max(part.level for part in parts)
    noisy = [part for part in parts if part.level == level and part.rewriter == NONE]
    costs = _listed(f"{-(part.percent or 0):.0f}% in {part.language}" for part in noisy)
    said = f"noise of level {level} takes {costs} from {parts[0].embedder}'s cosine to the ideal text"
    name = best_rewriter((part.rewriter, part.cosine.mean) for part in parts if part.level == level)
    if name is None:
        return said
    own = [part for part in parts if part.level == level and part.rewriter == name]
    return f"{said}, of which {name} brings back {_listed(_back(part.regained, part.language) for part in own)}"


def _of_search(ends: Sequence[EndPart]) -> str:
    level, measure, system = max(part.level for part in ends), ends[0].measure, _system(ends)
    parts = [part for part in ends if (part.system, part.level, part.measure) == (system, level, measure)]
    lost = next(part.change for part in parts if part.rewriter == NONE)
    if lost.mean is None:
        return f"{measure} is defined for no question that was searched"
    if lost.high is None or lost.high >= 0:
        return f"what it costs a {system} search in {measure} cannot be told from nothing ({lost.mean:+.3f})"
    said = f"it costs a {system} search {-lost.mean:.3f} {measure}"
    name = best_rewriter((part.rewriter, part.mean.mean) for part in parts)
    back = next((part.regained for part in parts if part.rewriter == name), None)
    return said if name is None or back is None else f"{said}, of which {name} brings back {_back(back)}"


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


def _listed(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
