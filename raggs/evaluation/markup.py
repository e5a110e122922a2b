"""A document as a fragment of HTML, for notebooks. Everything that comes from outside is text in it, never markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from raggs.base.text import visible
from raggs.evaluation.document import Cell, Document, Section, Table


def fragment(document: Document) -> str:
    """The document without a page around it; the notebook's own style holds."""
    parts = [
        f"<h3>{_text(document.title)}</h3>",
        *(f"<p><strong>warning: {_text(warning)}</strong></p>" for warning in document.warnings),
        *_section(document.scores),
    ]
    for section in document.sections:
        parts += [f"<h4>{_text(section.title)}</h4>", *_section(section)]
    parts += _list("note: " + note for note in document.notes)
    return "<div>" + "\n".join(parts) + "</div>"


def _section(section: Section) -> Iterator[str]:
    yield from (f"<p>{_text(sentence)}</p>" for sentence in section.sentences)
    if section.table is not None:
        yield from _table(section.table)
    if section.legend:
        yield f"<p><small>{_text('; '.join(each.line for each in section.legend))}</small></p>"
    if section.terms:
        yield "<details><summary>what the names mean</summary>"
        yield from _list(f"{term.sign}: {term.text}" for term in section.terms)
        yield "</details>"


def _table(table: Table) -> Iterator[str]:
    yield "<table><thead><tr>" + "".join(f"<th>{_text(title)}</th>" for title in table.head) + "</tr></thead><tbody>"
    for row in table.rows:
        yield "<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>"
    yield "</tbody></table>"


def _cell(cell: Cell) -> str:
    text = _text(cell.text + cell.mark)
    ranges = "".join(f" <small>{_text(each.text)}</small>" for each in cell.ranges)
    return (f"<strong>{text}</strong>" if cell.best else text) + ranges


def _list(sentences: Iterable[str]) -> list[str]:
    items = [f"<li>{_text(sentence)}</li>" for sentence in sentences]
    return ["<ul>", *items, "</ul>"] if items else []


def _text(text: str) -> str:
    return escape(visible(text))
