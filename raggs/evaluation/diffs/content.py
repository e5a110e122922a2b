"""Questions and passages by their content: what is new, gone, changed, or the same under another id."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from raggs.base.artifacts import Query
from raggs.base.text import one_line
from raggs.evaluation.diffs.models import ChangedPart, ContentPart, RenamedPart
from raggs.evaluation.diffs.sides import Side

FIELDS = ("text", "language", "answer", "references", "nuggets")  # of a question, that can change a judge's mind
H = TypeVar("H", bound=Hashable)


def questions(old: Side, new: Side) -> ContentPart:
    """The questions that a run asks, or that have a label in files; where both sets hold their texts, also by these.

    A file of questions beside labels may hold those of other sets too.
    """
    known = bool(old.questions and new.questions)
    before, after = (_asked(side) for side in (old, new))
    names = _renamed(_spoken(before), _spoken(after)) if known else {}
    both = before.keys() & after.keys()
    changed = [
        ChangedPart(id=qid, fields=found) for qid in sorted(both) if (found := _differing(before[qid], after[qid]))
    ]
    return _part(before, after, names, changed, known)


def _asked(side: Side) -> dict[str, Query | None]:
    asked = side.questions if side.manifest is not None else {}
    return {**asked, **{qid: side.questions.get(qid) for qid in side.grades}}


def passages(old: Side, new: Side) -> ContentPart:
    """The passages of the pools; of sets without texts, those with a grade."""
    known = bool(old.texts and new.texts)
    if not known:
        sides = ({doc: b"" for judged in side.grades.values() for doc in judged} for side in (old, new))
        before, after = sides
        return _part(before, after, {}, [], known)
    both = old.texts.keys() & new.texts.keys()
    changed = [ChangedPart(id=doc, fields=("text",)) for doc in sorted(both) if old.texts[doc] != new.texts[doc]]
    return _part(old.texts, new.texts, _renamed(old.texts, new.texts), changed, known)


def alias(part: ContentPart) -> dict[str, str]:
    """By id of the new set, that of the old one, where these differ."""
    return {each.new: each.old for each in part.renamed}


def _spoken(found: Mapping[str, Query | None]) -> dict[str, str]:
    """The words of each question, in whatever spacing they stand."""
    return {qid: one_line(query.text) for qid, query in found.items() if query is not None}


def _renamed(before: Mapping[str, H], after: Mapping[str, H]) -> dict[str, str]:
    """By new id, the old one: of what each side alone names, pairs of the same content, in the order of their ids."""
    gone: dict[H, list[str]] = {}
    for name in sorted(before.keys() - after.keys(), reverse=True):
        gone.setdefault(before[name], []).append(name)
    return {name: gone[after[name]].pop() for name in sorted(after.keys() - before.keys()) if gone.get(after[name])}


def _differing(before: Query | None, after: Query | None) -> tuple[str, ...]:
    if before is None or after is None:
        return ()
    return tuple(name for name in FIELDS if getattr(before, name) != getattr(after, name))


def _part(
    before: Mapping[str, object],
    after: Mapping[str, object],
    names: Mapping[str, str],
    changed: list[ChangedPart],
    known: bool,
) -> ContentPart:
    gone = set(names.values())
    return ContentPart(
        known=known,
        same=len(before.keys() & after.keys()) - len(changed),
        added=tuple(sorted(after.keys() - before.keys() - names.keys())),
        removed=tuple(sorted(before.keys() - after.keys() - gone)),
        changed=tuple(changed),
        renamed=tuple(RenamedPart(old=names[name], new=name) for name in sorted(names)),
    )
