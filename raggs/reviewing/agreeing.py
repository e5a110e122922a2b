"""Agreement of annotators with each other and with themselves, and the rubric that is shown to them.

Agreement is reported only as aggregates, without single labels.

The rubric is taken from the prompt of the run's judge, so that annotators and judge answer the same question. If the
five grade definitions cannot be extracted from its text, the full text is shown. If the prompt cannot be read, the
default prompt replaces it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from sys import intern
from typing import NamedTuple

import numpy as np

from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, Frozen
from raggs.base.document import shade_pairs
from raggs.base.errors import RaggsError
from raggs.parts.reviews import GradeReview, Key, Review, lines_in_force
from raggs.prompts import Prompt, load_prompt
from raggs.reviewing.pool import ReviewPool
from raggs.runs.manifests.open_run import OpenedRun
from raggs.stats.agreement import Agreement, cohen_kappa, count_pairs, krippendorff_alpha

SEED = 0


class AgreementCoefficient(Frozen):
    """A coefficient with its 95% interval; null if undefined."""

    value: float | None
    low: float | None
    high: float | None
    cases: int


class ReviewerAgreement(Frozen):
    """Statistics of an annotator.

    Attributes:
        graded, unsure: number of valid labels with and without a grade.
        mean: mean grade.
        lenient: mean of the annotator's grades minus those of others on the same passages; null without others.
        again, same: number of repeated passages, and of those with the same grade.
        drift: mean of the second grades minus the first; null without repetitions.
    """

    who: str
    graded: int
    unsure: int
    mean: float | None
    lenient: float | None
    again: int
    same: int
    drift: float | None


class ReviewerPair(Frozen):
    """Two annotators: Cohen's kappa with quadratic weights, and the contingency table of their grades with the class of
    each cell.
    """

    one: str
    other: str
    kappa: AgreementCoefficient
    table: tuple[tuple[int, ...], ...]
    shades: tuple[tuple[str, ...], ...]


class AgreementReport(Frozen):
    """Agreement of all annotators.

    Attributes:
        alpha: Krippendorff's alpha, ordinal, over all annotators.
        stale: number of labels for passages or queries whose text has changed; they are not used.
    """

    alpha: AgreementCoefficient
    stale: int
    people: tuple[ReviewerAgreement, ...]
    pairs: tuple[ReviewerPair, ...]


class LabelKey(NamedTuple):
    """Fields of a line from which agreement is computed. They are few, because this happens while annotators work.

    `of` is the number of the item, its key if the text has changed, or None for lines on other pools.
    """

    who: str
    replaces: str | None
    takes_back: bool
    of: int | Key | None = None
    grade: int | None = None
    blind: bool = True


LabelsByItem = dict[int | Key, dict[str, LabelKey]]  # valid label by item and annotator


def agreed(pool: ReviewPool, lines: Iterable[Review]) -> AgreementReport:
    """Return the agreement of annotators on a pool, from an iterator over lines."""
    present = {(item.qid, item.doc_id) for item in pool.items}
    said = [(line.id, _label_key(pool, line, present)) for line in lines]
    held = [*lines_in_force(said, [])]
    words = _latest(held)
    blind = _latest(lines_in_force([each for each in said if each[1].blind], []))
    here = [of for of in words if isinstance(of, int)]
    names = sorted({who for of in here for who in words[of]})
    grades = {who: _grades(here, words, blind, who) for who in names}
    ratings = np.array([[grades[who].get(of, math.nan) for of in here] for who in names], np.float64)
    alpha = None if len(names) < 2 else krippendorff_alpha(ratings, seed=SEED)
    return AgreementReport(
        alpha=_figure(alpha),
        stale=sum(len(spoken) for of, spoken in words.items() if not isinstance(of, int)),
        people=tuple(_reviewer_agreement(sum(who in words[of] for of in here), held, who, grades) for who in names),
        pairs=tuple(_pairs(grades)),
    )


def _label_key(pool: ReviewPool, line: Review, present: Collection[tuple[str, str]]) -> LabelKey:
    who = intern(line.who)
    if not isinstance(line, GradeReview) or line.settles:
        return LabelKey(who, line.replaces, line.takes_back, blind=line.blind)
    here = pool.numbers.get(line.key)
    stale = line.key if (line.qid, line.doc_id) in present else None
    return LabelKey(who, line.replaces, False, stale if here is None else here, line.grade, line.blind)


def _latest(held: Iterable[LabelKey]) -> LabelsByItem:
    found: LabelsByItem = {}
    for word in held:
        if word.of is not None:
            found.setdefault(word.of, {})[word.who] = word
    return found


def _grades(here: Sequence[int], words: LabelsByItem, blind: LabelsByItem, who: str) -> dict[int, int]:
    """Return the grades of an annotator by item; labels from before seeing a model's grade have priority."""
    said = ((of, blind.get(of, {}).get(who, words[of][who])) for of in here if who in words[of])
    return {of: word.grade for of, word in said if word.grade is not None}


def _reviewer_agreement(
    spoken: int, held: Sequence[LabelKey], who: str, grades: dict[str, dict[int, int]]
) -> ReviewerAgreement:
    mine = grades[who]
    apart = [mine[of] - grades[other][of] for other in grades if other != who for of in mine.keys() & grades[other]]
    twice = [*_repeated(held, who)]
    return ReviewerAgreement(
        who=who,
        graded=len(mine),
        unsure=spoken - len(mine),
        mean=_mean([*mine.values()]),
        lenient=_mean(apart),
        again=len(twice),
        same=sum(one == other for one, other in twice),
        drift=_mean([other - one for one, other in twice]),
    )


def _repeated(held: Sequence[LabelKey], who: str) -> Iterator[tuple[int, int]]:
    """Yield consecutive grades of repeated passages of an annotator; only valid blind lines count."""
    said: dict[int, list[int]] = {}
    for word in held:
        if word.who == who and word.blind and word.grade is not None and isinstance(word.of, int):
            said.setdefault(word.of, []).append(word.grade)
    for row in said.values():
        yield from pairwise(row)


def _pairs(grades: dict[str, dict[int, int]]) -> Iterator[ReviewerPair]:
    for one, other in combinations(grades, 2):
        both = sorted(grades[one].keys() & grades[other].keys())
        first, second = ([float(grades[who][of]) for of in both] for who in (one, other))
        if both:
            table = tuple(map(tuple, count_pairs(Counter(zip(first, second, strict=True))).counts))
            yield ReviewerPair(
                one=one,
                other=other,
                kappa=_figure(cohen_kappa(first, second, weights="quadratic", seed=SEED)),
                table=table,
                shades=shade_pairs(table),
            )


def _figure(found: Agreement | None) -> AgreementCoefficient:
    if found is None:
        return AgreementCoefficient(value=None, low=None, high=None, cases=0)
    value, low, high = (None if math.isnan(each) else round(each, 3) for each in (found.value, found.low, found.high))
    return AgreementCoefficient(value=value, low=low, high=high, cases=found.units)


def _mean(values: Sequence[int]) -> float | None:
    return round(sum(values) / len(values), 2) if values else None


# "- 5: ...", "5 = ...", "**5** - ...", "Grade 5: ...", "* 5) ...", "| 5 | ... |"
BULLET, MARK_PATTERN = r"[ \t]*(?:[-*+•|][ \t]*)?(?:[^\W\d_]+[ \t]+)?[*`]*", r"[:=.)|–—]|-(?=[ \t])"
START = rf"{BULLET}[1-5][*`]*[ \t]*(?:{MARK_PATTERN})"
LINE = re.compile(
    rf"^{BULLET}([1-5])[*`]*[ \t]*({MARK_PATTERN})[*`]*[ \t]*(\S.*(?:\n(?!{START}|[ \t]*[-*+•][ \t]|[ \t]*\n).+)*)",
    re.MULTILINE,
)
GRADES = range(MIN_GRADE, MAX_GRADE + 1)
DEFAULT_PROMPT = "grade@1"


@dataclass(frozen=True)
class Rubric:
    """Rubric shown next to a passage.

    Attributes:
        name: name of the prompt, with the start of its digest for a file.
        meanings: meaning of each grade by language; empty if the prompt does not list them.
        texts: full text of the prompt by language, if there are no meanings.
        notes: remarks for the person who starts the server.
    """

    name: str
    meanings: dict[str, dict[int, str]]
    texts: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def rubric_of(prompt: Prompt) -> dict[str, dict[int, str]]:
    """Return the meaning of each grade by language, best first; languages without all five are omitted."""
    found = {language: _lines(part.system) or _lines(part.user) for language, part in prompt.templates.items()}
    return {language: lines for language, lines in found.items() if lines}


def rubric_of_runs(runs: Sequence[OpenedRun]) -> Rubric:
    """Return the rubric of the first run's judge, with a note if other runs use another prompt."""
    names = list(dict.fromkeys(_prompt_name(run) for run in runs))
    notes = [f"the runs used several grading prompts ({', '.join(names)}); the page shows the first"] * (len(names) > 1)
    try:
        prompt = load_prompt(names[0], "grade")
    except RaggsError as error:
        said = f"the prompt of the run cannot be read ({error}); the page shows {DEFAULT_PROMPT}"
        return Rubric(DEFAULT_PROMPT, rubric_of(load_prompt(DEFAULT_PROMPT, "grade")), notes=(*notes, said))
    sent = {*_digests(runs[0])}
    if sent and prompt.sha256 not in sent:
        notes.append(f"{names[0]} has changed since the judge used it")
    meanings = rubric_of(prompt)
    texts = {} if meanings else {language: part.system or part.user for language, part in prompt.templates.items()}
    shipped = names[0] == prompt.name
    return Rubric(prompt.name if shipped else f"{prompt.name}#{prompt.sha256[:8]}", meanings, texts, tuple(notes))


def _prompt_name(run: OpenedRun) -> str:
    """Return the name or path of the grading prompt of a run's judge."""
    lock = run.manifest.stages.get("judge")
    settings = run.manifest.config.get("judge") if lock is None else lock.params
    found = settings.get("prompt") if isinstance(settings, dict) else None
    return found if isinstance(found, str) else DEFAULT_PROMPT


def _digests(run: OpenedRun) -> Iterator[str]:
    """Yield the digests of the prompts of the judge or its members."""
    lock = run.manifest.stages.get("judge")
    yield from () if lock is None else _prompts_in(lock.components.get("judge"))


def _prompts_in(causes: object) -> Iterator[str]:
    if isinstance(causes, dict):
        if isinstance(causes.get("prompt"), str):
            yield causes["prompt"]
        yield from _prompts_in(causes.get("judges"))
    elif isinstance(causes, list):
        for each in causes:
            yield from _prompts_in(each)


def _lines(text: str) -> dict[int, str]:
    found = LINE.findall(text)
    lines = {int(grade): " ".join(words.split()).rstrip("| ") for grade, _, words in found}
    if len(found) != len(GRADES) or set(lines) != set(GRADES):
        return {}
    # a numbered list of steps, not of grades
    steps = all(mark in (".", ")") for _, mark, _ in found) and list(lines) == [*GRADES]
    return {} if steps else lines
