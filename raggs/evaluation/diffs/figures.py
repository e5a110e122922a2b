"""Figures of two sets beside each other: what they cover, what they cost, and how their judges did.

What the figures of a judge's health are called where two sets are compared; JSON keeps their places in the locks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from raggs.base.types import leaves
from raggs.evaluation.diffs.models import FigurePart
from raggs.evaluation.diffs.sides import Side
from raggs.runs.manifests.models import RunManifest

Figures = Mapping[str, float | None]


def beside(old: Figures, new: Figures) -> tuple[FigurePart, ...]:
    """A part for each figure that one of both has."""
    names = dict.fromkeys([*old, *new])
    return tuple(FigurePart(name=name, old=old.get(name), new=new.get(name)) for name in names)


def differing(parts: Iterable[FigurePart]) -> tuple[FigurePart, ...]:
    """Those that are not the same in both."""
    return tuple(part for part in parts if part.old != part.new)


def coverage(side: Side) -> dict[str, float | None]:
    """How much was judged, and with what result."""
    counts = Counter(grade for judged in side.grades.values() for grade in judged.values())
    queries = len(side.grades)
    stages = {} if side.manifest is None else side.manifest.stages
    found: dict[str, float | None] = {
        "questions": queries,
        "passages judged": sum(counts.values()),
        "judged per question": sum(counts.values()) / queries if queries else None,
        "questions ranked": len(side.orders),
        "judgments that failed": sum(lock.failed for lock in stages.values()) if stages else None,
    }
    grades = range(side.part.highest, side.part.lowest - 1, -1)
    return found | {f"grade {grade}, per question": counts[grade] / queries if queries else None for grade in grades}


def cost(side: Side) -> dict[str, float | None]:
    """Calls and USD, in all and by stage; empty for files."""
    if side.costs is None:
        return {}
    found: dict[str, float | None] = {"calls": side.costs.total.calls, "USD": side.costs.total.usd}
    for stage, each in side.costs.stage.items():
        found |= {f"{stage} calls": each.calls, f"{stage} USD": each.usd}
    return found


def health(side: Side) -> dict[str, float | None]:
    """Every figure of the judge's health, by its place in the locks; empty for files."""
    return dict(_health(side.manifest)) if side.manifest else {}


def _health(manifest: RunManifest) -> Iterator[tuple[str, float | None]]:
    for stage, lock in manifest.stages.items():
        if lock.health is None:
            continue
        for place, value in leaves(lock.health.model_dump(mode="json")):
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield ".".join((stage, *map(str, place))), float(value)


RATES: Mapping[str, tuple[str, str]] = {
    "judge.noise": ("grades that simulated noise changed", "grades with a label"),
    "judge.canaries.passed": ("canaries passed", "canaries asked"),
    "judge.cascade.asked": ("passages on which the good judge was asked", "passages of the cascade"),
    "judge.cascade.overruled": ("cheap grades that the good judge changed", "cheap grades with one of the good judge"),
    "judge.cascade.missed": ("high grades among those asked at random", "passages asked at random"),
    "rank.first": ("batches won by the passage shown first", "batches ordered"),
    "rank.flips": ("pairs that changed places when shown again", "pairs shown again"),
    "rank.cycles": ("triples that go round", "triples that could"),
    "rank.invalid": ("batches without an order", "batches asked"),
}
WORDS: Mapping[str, str] = {
    "judge.depth.stop_after": "low grades in a row that end a walk",
    "judge.depth.asked": "judgments asked for",
    "judge.depth.saved": "judgments saved by the depth",
    "judge.depth.stopped": "queries whose walk ended early",
    "judge.samples.asked": "grades of each passage",
    "judge.samples.passages": "passages with several grades",
    "judge.samples.unanimous": "passages with one and the same grade, of those with several: share",
    "judge.samples.exact": "pairs of grades of a passage that are equal: share",
    "judge.samples.kappa": "kappa of the judge with itself",
    "judge.place.grades": "what a grade moves by being shown first in a call",
    "judge.place.questions": "questions that tell what the place does",
    "judge.samples.company.grades": "what a grade moves for each grade that its company is better",
    "judge.samples.company.questions": "questions that tell what company does",
    "judge.cascade.by_rule": "passages asked of the good judge by their cheap grade",
    "judge.cascade.by_chance": "passages asked of the good judge at random",
    "judge.cascade.unseen.share": "high grades that the good judge would give and was not asked about: share",
    "judge.cascade.lost": "passages on which a judge of the cascade failed",
    "judge.cascade.ask_from": "cheap grade from which on the good judge is asked",
    "judge.people.kappa": "kappa with people",
    "judge.people.grades": "grades compared with people's",
    "judge.people.questions": "questions of these",
    "judge.people.by_people": "grades that are people's own",
    "judge.silent": "passages on which the judge abstained",
    "judge.replaced": "answers with what is no character",
    "rank.fair_first": "batches that a fair judge would give to the first shown: share",
    "rank.sharpness": "sharpness of the judge",
    "rank.echo": "echo: how far the judge repeats its own errors",
    "rank.position_bias": "gain by being shown first rather than last, in grades",
    "rank.expected_inversions": "wrongly ordered pairs expected in a top",
}
GOOD = {str(number): f"a good judge's {number + 1}" for number in range(5)}
NAMED: Mapping[str, Mapping[str, str]] = {
    r"judge\.panel\.members\.(.+)": {"mean": "mean grade", "given": "grades given", "missing": "grades missing"},
    r"judge\.panel\.agreement\.(.+)": {"pairs": "passages", "exact": "equal grades: share", "kappa": "kappa"},
    r"judge\.cascade\.grades\.(.+)": {"given": "passages", "agree": "share on which the good judge agrees"},
    r"judge\.cascade\.grades\.(.+)\.by_rule": GOOD,
    r"judge\.cascade\.grades\.(.+)\.by_chance": GOOD,
    r"judge\.canaries\.kinds\.(.+)": {"rate": "passed: share", "count": "passed", "total": "asked"},
    r"judge\.canaries\.company\.(.+)": {"grades": "what a grade moves", "questions": "questions"},
}
HEADS = (
    "{} of the panel",
    "pair {} of the panel",
    "cheap grade {}",
    "cheap grade {}, sent for",
    "cheap grade {}, at random",
    "canaries of kind {}",
    "company of kind {}",
)
SOURCES = "judge.sources."


def health_words(place: str) -> str:
    """A figure in words by its place in the locks; one that nobody has named yet with spaces for its dots."""
    if place.startswith(SOURCES):
        return f"grades by {place.removeprefix(SOURCES)}"
    return next(_found(place), place.replace(".", " "))


def _found(place: str) -> Iterator[str]:
    if place in WORDS:
        yield WORDS[place]
    rest, _, last = place.rpartition(".")
    if rest in RATES:
        count, total = RATES[rest]
        yield {"rate": f"{count}: share", "count": count, "total": total}.get(last, place)
    for head, (pattern, words) in zip(HEADS, NAMED.items(), strict=True):
        match = re.fullmatch(pattern, rest)
        if match is not None and last in words:
            yield f"{head.format(match[1])}: {words[last]}"
