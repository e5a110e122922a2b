"""A diagnosis as a document: the verdict first, then the kind's own sections, drawn of the findings alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from raggs.base.errors import DataError
from raggs.diagnosis import REGISTRY
from raggs.diagnosis.base import Diagnosis, Found
from raggs.diagnosis.models import DiagnosisReport
from raggs.evaluation.document import Document, Section
from raggs.evaluation.writers import markdown

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
