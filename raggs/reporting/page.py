"""Sections to one HTML file that needs nothing else: no address is asked, and no script runs but the page's own.

The policy names the hashes of the one style and the one script; whatever a passage may smuggle in would not run. The
same facts give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from raggs.base import __version__
from raggs.base.text import visible
from raggs.evaluation.document import GLOSSARY
from raggs.evaluation.models import ReportPart
from raggs.reporting import REGISTRY
from raggs.reporting.base import ReportFacts, ReportSection
from raggs.reporting.sheets import written

if TYPE_CHECKING:
    from jinja2 import Environment

MARKUP = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}  # as JSON writes what HTML would read


@dataclass(frozen=True)
class RenderedSection:
    """A section as it stands in the page."""

    name: str
    title: str
    html: str
    json: str


def report_page(facts: ReportFacts) -> str:
    """The page.

    Raises:
        DataError: a file of the run cannot be right.
        PrerequisiteError: a section of a package cannot be loaded.
    """
    kinds = [REGISTRY.load(name) for name in REGISTRY]
    found = [(kind, part) for kind in kinds if (part := kind().data(facts)) is not None]
    shown = [kind for kind, _ in found]
    style, script = (_joined(shown, ending) for ending in ("css", "js"))
    allowed = f"style-src {_digest(style)}; script-src {_digest(script)}"
    page = _templates().get_template("page.html")
    return page.render(
        policy=f"default-src 'none'; {allowed}; img-src data:; base-uri 'none'; form-action 'none'",
        title=facts.golden.name,
        place=facts.place,
        raggs=__version__,
        style=style,
        script=script,
        sections=[_drawn(kind, part) for kind, part in found],
        texts=facts.texts,
        glossary=GLOSSARY,
    )


def _drawn(kind: type[ReportSection], part: ReportPart) -> RenderedSection:
    template = _templates().from_string(kind.resource("html"))
    data = embedded(part.model_dump(mode="json")) if kind.SCRIPTED else ""
    return RenderedSection(kind.NAME, kind.TITLE, template.render(data=part, name=kind.NAME), data)


def embedded(value: object) -> str:
    """JSON that may stand in a page: nothing in it is markup, and what turns the order of letters is an escape."""
    text = written(value)
    for char, escape in MARKUP.items():
        text = text.replace(char, escape)
    return text


def _joined(kinds: Sequence[type[ReportSection]], ending: str) -> str:
    """The page's own style or script, then those of its sections."""
    own = (files("raggs.reporting") / "page" / f"page.{ending}").read_text(encoding="utf-8")
    return "\n".join(filter(None, [own, *(kind.resource(ending) for kind in kinds)]))


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("raggs.reporting", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )


def _shown(value: object) -> object:
    """Texts without what would turn the order of letters; markup of the page's own as it is."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else visible(value)
