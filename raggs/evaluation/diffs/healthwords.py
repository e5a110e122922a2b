"""What the figures of a judge's health are called where two sets are compared; JSON keeps their places in the locks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

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
