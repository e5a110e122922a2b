"""What the grades mean, in people's words: the lines of the prompt by which a run's judge grades.

People and judge are to answer the same question, so that a run's own prompt is shown, whoever wrote it. Where the five
lines cannot be told from its text, the text is shown as it is, rather than the meanings of another prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from raggs.base.artifacts import MAX_GRADE, MIN_GRADE
from raggs.base.errors import RaggsError
from raggs.prompts import Prompt, load_prompt
from raggs.runs.manifests.opened import OpenedRun

# "- 5: ...", "5 = ...", "**5** - ...", "Grade 5: ...", "* 5) ...", "| 5 | ... |"
BULLET, MARK = r"[ \t]*(?:[-*+•|][ \t]*)?(?:[^\W\d_]+[ \t]+)?[*`]*", r"[:=.)|–—]|-(?=[ \t])"
HEAD = rf"{BULLET}[1-5][*`]*[ \t]*(?:{MARK})"
LINE = re.compile(
    rf"^{BULLET}([1-5])[*`]*[ \t]*({MARK})[*`]*[ \t]*(\S.*(?:\n(?!{HEAD}|[ \t]*[-*+•][ \t]|[ \t]*\n).+)*)", re.MULTILINE
)
GRADES = range(MIN_GRADE, MAX_GRADE + 1)
USUAL = "grade@1"


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
    names = list(dict.fromkeys(_named(run) for run in runs))
    notes = [f"the runs were graded by several prompts ({', '.join(names)}): the page shows the first"] * (
        len(names) > 1
    )
    try:
        prompt = load_prompt(names[0], "grade")
    except RaggsError as error:
        said = f"the prompt of the run cannot be read ({error}): the page shows the meanings of {USUAL}"
        return Rubric(USUAL, rubric_of(load_prompt(USUAL, "grade")), notes=(*notes, said))
    sent = {*_digests(runs[0])}
    if sent and prompt.sha256 not in sent:
        notes.append(f"{names[0]} has changed since the judge graded by it")
    meanings = rubric_of(prompt)
    texts = {} if meanings else {language: part.system or part.user for language, part in prompt.templates.items()}
    shipped = names[0] == prompt.name
    return Rubric(prompt.name if shipped else f"{prompt.name}#{prompt.sha256[:8]}", meanings, texts, tuple(notes))


def _named(run: OpenedRun) -> str:
    """The name, or the path, of the prompt by which a run's judge graded, or is to grade."""
    lock = run.manifest.stages.get("judge")
    settings = run.manifest.config.get("judge") if lock is None else lock.params
    found = settings.get("prompt") if isinstance(settings, dict) else None
    return found if isinstance(found, str) else USUAL


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
