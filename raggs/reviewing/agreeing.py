"""How far people agree: with each other, and with themselves where a passage came twice. Aggregates, no single word.

What the grades mean, in people's words: the lines of the prompt by which a run's judge grades.

People and judge are to answer the same question, so that a run's own prompt is shown, whoever wrote it. Where the five
lines cannot be told from its text, the text is shown as it is, rather than the meanings of another prompt.
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
from raggs.base.errors import RaggsError
from raggs.parts.reviews import GradeReview, Key, Review, lines_in_force
from raggs.prompts import Prompt, load_prompt
from raggs.reviewing.pool import ReviewPool
from raggs.runs.manifests.open_run import OpenedRun
from raggs.stats.agreement import Agreement, cohen_kappa, count_pairs, krippendorff_alpha

SEED = 0


class AgreementCoefficient(Frozen):
    """A coefficient with its interval of 95%; null where it is not defined."""

    value: float | None
    low: float | None
    high: float | None
    cases: int


class ReviewerAgreement(Frozen):
    """One reviewer.

    Attributes:
        graded, unsure: words that hold, with a grade and without.
        mean: of the grades.
        lenient: mean of the grades less those of others on the same passages; null where nobody else spoke.
        again, same: passages that came twice, and those of them with the same grade.
        drift: mean of the second grades less the first; null where none came twice.
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
    """Two reviewers: Cohen's kappa with quadratic weights, and the table of their grades on the same passages."""

    one: str
    other: str
    kappa: AgreementCoefficient
    table: tuple[tuple[int, ...], ...]


class AgreementReport(Frozen):
    """All of it.

    Attributes:
        alpha: Krippendorff's, ordinal, over everybody.
        stale: words on passages, or for questions, whose text is another one now; they count nowhere.
    """

    alpha: AgreementCoefficient
    stale: int
    people: tuple[ReviewerAgreement, ...]
    pairs: tuple[ReviewerPair, ...]


class LabelKey(NamedTuple):
    """What of a line agreement is told by, in little memory: a page is asked for while many grade.

    `of`: the number of the item; its key, where the text is another one now; None where it says nothing of this pool.
    """

    who: str
    replaces: str | None
    takes_back: bool
    of: int | Key | None = None
    grade: int | None = None
    blind: bool = True


LabelsByItem = dict[int | Key, dict[str, LabelKey]]  # by item and reviewer, the word that holds


def agreed(pool: ReviewPool, lines: Iterable[Review]) -> AgreementReport:
    """How far people agree on the passages of a pool; each line is looked at once and let go."""
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
    """By item what somebody said before they saw a machine's grade, where they said that; else what they say."""
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
    """First and next grade of one's passages that came again; what was taken back or replaced is none."""
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
            table = count_pairs(Counter(zip(first, second, strict=True))).counts
            yield ReviewerPair(
                one=one,
                other=other,
                kappa=_figure(cohen_kappa(first, second, weights="quadratic", seed=SEED)),
                table=tuple(map(tuple, table)),
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
HEAD = rf"{BULLET}[1-5][*`]*[ \t]*(?:{MARK_PATTERN})"
LINE = re.compile(
    rf"^{BULLET}([1-5])[*`]*[ \t]*({MARK_PATTERN})[*`]*[ \t]*(\S.*(?:\n(?!{HEAD}|[ \t]*[-*+•][ \t]|[ \t]*\n).+)*)",
    re.MULTILINE,
)
GRADES = range(MIN_GRADE, MAX_GRADE + 1)
DEFAULT_PROMPT = "grade@1"


@dataclass(frozen=True)
class Rubric:
    """What is shown beside a passage.

    Attributes:
        name: of the prompt, with the beginning of its digest where it is a file.
        meanings: by language, what each grade means; none where the prompt does not say it line by line.
        texts: by language, the prompt's own text, where there are no meanings.
        notes: what whoever serves the page must know.
    """

    name: str
    meanings: dict[str, dict[int, str]]
    texts: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def rubric_of(prompt: Prompt) -> dict[str, dict[int, str]]:
    """By language, the meaning of each grade, best first; without the languages that do not tell all five."""
    found = {language: _lines(part.system) or _lines(part.user) for language, part in prompt.templates.items()}
    return {language: lines for language, lines in found.items() if lines}


def rubric_of_runs(runs: Sequence[OpenedRun]) -> Rubric:
    """The rubric by which the judge of the first run grades, and a note where that of another run is another one."""
    names = list(dict.fromkeys(_prompt_name(run) for run in runs))
    notes = [f"the runs were graded by several prompts ({', '.join(names)}): the page shows the first"] * (
        len(names) > 1
    )
    try:
        prompt = load_prompt(names[0], "grade")
    except RaggsError as error:
        said = f"the prompt of the run cannot be read ({error}): the page shows the meanings of {DEFAULT_PROMPT}"
        return Rubric(DEFAULT_PROMPT, rubric_of(load_prompt(DEFAULT_PROMPT, "grade")), notes=(*notes, said))
    sent = {*_digests(runs[0])}
    if sent and prompt.sha256 not in sent:
        notes.append(f"{names[0]} has changed since the judge graded by it")
    meanings = rubric_of(prompt)
    texts = {} if meanings else {language: part.system or part.user for language, part in prompt.templates.items()}
    shipped = names[0] == prompt.name
    return Rubric(prompt.name if shipped else f"{prompt.name}#{prompt.sha256[:8]}", meanings, texts, tuple(notes))


def _prompt_name(run: OpenedRun) -> str:
    """The name, or the path, of the prompt by which a run's judge graded, or is to grade."""
    lock = run.manifest.stages.get("judge")
    settings = run.manifest.config.get("judge") if lock is None else lock.params
    found = settings.get("prompt") if isinstance(settings, dict) else None
    return found if isinstance(found, str) else DEFAULT_PROMPT


def _digests(run: OpenedRun) -> Iterator[str]:
    """Of the prompts that the judge, or the members of a panel, were asked by."""
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
    steps = all(mark in (".", ")") for _, mark, _ in found) and list(lines) == [*GRADES]  # 1. do this 2. do that
    return {} if steps else lines
