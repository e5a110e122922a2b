"""A diagnosis as a document: the verdict first, then the kind's own sections, drawn of the findings alone.

How every kind says its verdict: at most two sentences, what was found and what is to be done first.

All other figures stand in the tables beneath. Where a claim rests on few, the verdict says so before anything else; no
kind has words of its own for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from raggs.base.errors import DataError
from raggs.base.text import plural
from raggs.diagnosis import REGISTRY
from raggs.diagnosis.base import Diagnosis, Found, P
from raggs.diagnosis.models import DiagnosisReport
from raggs.evaluation.document import Document, Section
from raggs.evaluation.layout import markdown
from raggs.stats.decision.halving import FEWEST as FEWEST

AGAIN = "run raggs diagnose again"


def kind_of(name: str) -> Diagnosis[Found]:
    """A kind with the settings that it has by itself: enough to draw its findings.

    Raises:
        UsageError: there is none of this name.
    """
    kind = REGISTRY.load(name)
    return kind(kind.Config.model_validate({"type": name}))


def found_in(report: DiagnosisReport, where: Path | None = None) -> Found:
    """The kind's findings, read from its report.

    Raises:
        UsageError: there is no such kind any more.
        DataError: they are of another form than this version's.
    """
    try:
        return REGISTRY.load(report.kind).Result.model_validate(report.found)
    except ValidationError as error:
        raise DataError(
            f"not the findings of {report.kind} as raggs has them now", where=where, remedy=AGAIN
        ) from error


def shows_passages(report: DiagnosisReport) -> bool:
    """Whether texts of passages stand in its tables."""
    return REGISTRY.load(report.kind).PASSAGES


def lay_out(report: DiagnosisReport) -> Document:
    """The document of a report.

    Raises:
        UsageError, DataError: as `found_in`.
    """
    found = found_in(report)
    return Document(
        title=report.title,
        scores=Section("Verdict", (found.verdict,)),
        sections=kind_of(report.kind).sections(found),
        notes=tuple(f"{what}: {', '.join(names)}" for what, names in report.subject.items() if names),
    )


def plots(report: DiagnosisReport) -> dict[str, str]:
    """SVG files by name.

    Raises:
        UsageError, DataError: as `found_in`.
    """
    drawn = kind_of(report.kind).plots(found_in(report))
    return {f"{report.kind}-{name}.svg": svg for name, svg in drawn.items()}


def others(report: DiagnosisReport) -> Mapping[str, str]:
    """Other files by name.

    Raises:
        UsageError, DataError: as `found_in`.
    """
    return kind_of(report.kind).files(found_in(report))


def page(report: DiagnosisReport, drawn: Mapping[str, str]) -> str:
    """The same as Markdown, with its plots."""
    figures = [f"![{name.removesuffix('.svg')}]({name})" for name in drawn]
    text = markdown(lay_out(report), glossary=False)
    return "\n".join([text.rstrip("\n"), *(["", *figures] if figures else [])]) + "\n"


NAMED = 2  # of many things alike, that a verdict names


def said(found: str, then: str = "") -> str:
    """One sentence, or two: what was found, and what to do first."""
    return " ".join(f"{each}." for each in (found, then) if each)


def capital(text: str) -> str:
    """With a capital where a sentence begins."""
    return f"{text[:1].upper()}{text[1:]}"


def listed(words: Iterable[str]) -> str:
    """``a, b and c``."""
    *some, last = words
    return f"{', '.join(some)} and {last}" if some else last


def some_of(words: Sequence[str]) -> str:
    """The first of them; the others are counted: ``a, b and 3 more``."""
    more = [f"{len(words) - NAMED} more"] if len(words) > NAMED else []
    return listed([*words[:NAMED], *more])


def hedged(kind: Diagnosis[P], found: P) -> P:
    """The findings, whose verdict says where it rests on fewer questions than a claim can bear."""
    count = kind.rests_on(found)
    if count >= FEWEST:
        return found
    few = f"A hint by {plural(count, kind.OVER)}, where a claim takes {FEWEST}"
    return found.model_copy(update={"verdict": f"{few}: {found.verdict}"})
