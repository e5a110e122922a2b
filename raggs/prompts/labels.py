"""Passages under labels, and the forms in which a model says something of each, or puts them in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence


def labels_for(count: int) -> tuple[str, ...]:
    """A, B, ..., Z, AA, AB, ...: as columns of a spreadsheet."""
    return tuple(_label(position) for position in range(count))


def labelled(texts: Sequence[str], guard: Callable[[str], str]) -> str:
    """All texts under their labels, each between marks that guard against orders in it."""
    labels = labels_for(len(texts))
    return "\n\n".join(f"Passage {label}:\n{guard(text)}" for label, text in zip(labels, texts, strict=True))


def schema_by_label(labels: Sequence[str], schema: Mapping[str, object]) -> dict[str, object]:
    """The form of one answer for each label: an object whose keys are the labels, so that each is there once."""
    return {
        "type": "object",
        "properties": {label: dict(schema) for label in labels},
        "required": list(labels),
        "additionalProperties": False,
    }


def order_schema(labels: Sequence[str]) -> dict[str, object]:
    """The form of an order. That labels must not repeat is beyond what providers enforce; whoever reads it checks."""
    return {
        "type": "object",
        "properties": {"order": {"type": "array", "items": {"type": "string", "enum": list(labels)}}},
        "required": ["order"],
        "additionalProperties": False,
    }


def _label(position: int) -> str:
    head, tail = divmod(position, 26)
    return (_label(head - 1) if head else "") + chr(ord("A") + tail)
