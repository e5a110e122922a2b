"""Restricted YAML: texts, numbers, booleans and null in lists and mappings.

PyYAML parses the text into nodes; this module computes their values. There are no tags except `!!str`, which makes any
plain value a text. There are no dates (a date is a text), and no duplicate keys: the last key would win silently.
Nesting depth, the length of numbers and the expansion of aliases are limited, so that no text can crash or stall the
reader. Every error names its line if the line is known.

This module must not expand variables or know settings; `raggs.config` does that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import yaml
from yaml.reader import ReaderError

from raggs.base.errors import DataError
from raggs.base.text import shorten
from raggs.base.types import Json

MAX_YAML_DEPTH = 64  # maximum nesting of lists and mappings
MAX_NUMBER_CHARS = 100  # maximum length of a number
MAX_ALIAS_VALUES = 100_000  # maximum number of values that aliases add to the values in the text
CORE = "tag:yaml.org,2002:"
STR = f"{CORE}str"
UNTAGGED = (None, "!", STR)
PLAIN_TYPES = ("null", "bool", "int", "float")


class _NotPlainError(Exception):
    """Valid YAML that raggs does not allow, with its line."""


class _Composer(yaml.SafeLoader):
    """Composer of nodes without tags other than `!!str`, and with a limited depth."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as in the base class
        first: [(tag, pattern) for tag, pattern in resolvers if tag.removeprefix(CORE) in (*PLAIN_TYPES, "merge")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.count = 0  # number of nodes in the text, without expanding aliases
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.check_event()  # fetches the event
        event: yaml.Event = self.current_event
        tag, line = getattr(event, "tag", None), 0 if event.start_mark is None else event.start_mark.line + 1
        if tag not in UNTAGGED:
            raise _NotPlainError(f"tag {str(tag).replace(CORE, '!!')}: only plain values are allowed", line)
        if self._depth == MAX_YAML_DEPTH:
            raise _NotPlainError(f"nested more than {MAX_YAML_DEPTH} levels deep", line)
        self.count += 1
        self._depth += 1
        found = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(found, yaml.ScalarNode) and not _encodable(found.value):
            raise _NotPlainError("a lone surrogate, which is not a character", line)
        return found


def _encodable(text: str) -> bool:
    """Return whether a text is valid Unicode: escapes can produce lone surrogates."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


class PlainYaml:
    """One document: its `root` node (None if the text is empty), and the value of each node.

    Args:
        text: the document.
        where: its file, for messages.
        kind: type of the raised errors.

    Raises:
        DataError: of type `kind`; the text is not YAML, or not restricted YAML.
    """

    def __init__(self, text: str, where: Path | None = None, kind: type[DataError] = DataError) -> None:
        self._where, self._kind = where, kind
        try:
            self._composer = _Composer(text)
            self.root: yaml.Node | None = self._composer.get_single_node()
        except ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            said = f"not valid YAML (character {error.character:#04x})"
            raise self.fault(said, line, "remove it, or write it as an escape in double quotes") from error
        except _NotPlainError as error:
            said, line = error.args
            raise self.fault(f"not valid YAML here ({said})", line, "use plain values") from error
        except yaml.MarkedYAMLError as error:
            line = 0 if error.problem_mark is None else error.problem_mark.line + 1
            said = f"not valid YAML ({shorten(error.problem or str(error), 160)})"
            raise self.fault(said, line, "fix the syntax") from error
        except (yaml.YAMLError, ValueError, OverflowError) as error:  # an invalid code point
            raise self.fault(f"not valid YAML ({shorten(str(error), 160)})", 0, "fix the syntax") from error
        self._left = self._composer.count + MAX_ALIAS_VALUES

    def fault(self, message: str, line: int, remedy: str) -> DataError:
        """Return an error for a line of this document. If `line` is 0, the error names no line."""
        return self._kind(message, where=self._where, line=line or None, remedy=remedy)

    def visit(self, node: yaml.Node, depth: int) -> int:
        """Count a node against the limits, at `depth` levels below the root, and return its line.

        Raises:
            DataError: an alias contains itself, or aliases expand to too many values.
        """
        line: int = node.start_mark.line + 1
        self._left -= 1
        if depth > MAX_YAML_DEPTH:
            said = f"nested more than {MAX_YAML_DEPTH} levels deep by an alias, which cannot be written as JSON"
            raise self.fault(said, line, "write the value itself instead of the alias")
        if self._left < 0:
            raise self.fault(f"aliases expand to more than {MAX_ALIAS_VALUES:,} values", line, "use fewer of them")
        return line

    def pairs(self, node: yaml.MappingNode, merged: int | None = None) -> Iterator[tuple[str, int, yaml.Node]]:
        """Yield each key of a mapping with its line and the node of its value, then further keys from merges.

        Args:
            node: the mapping.
            merged: how many merges this mapping is nested in; None if merge keys are not allowed.

        Raises:
            DataError: a key is not a text or occurs twice, or a merge is invalid or not allowed.
        """
        seen: set[str] = set()
        others: list[yaml.Node] = []
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise self.fault("not valid YAML (a key is a list or a mapping)", line, "write keys as texts")
            if key.tag == f"{CORE}merge":
                others += value.value if isinstance(value, yaml.SequenceNode) else [value]
                continue
            name = str(key.value)
            if name in seen:
                raise self.fault(f"key {shorten(name, 60)!r} occurs twice", line, "remove one of them")
            seen.add(name)
            yield name, line, value
        for other in others:
            yield from (pair for pair in self._merged(node, other, merged) if pair[0] not in seen)

    def _merged(self, node: yaml.Node, other: yaml.Node, merged: int | None) -> Iterator[tuple[str, int, yaml.Node]]:
        line = self.visit(node, merged or 0)
        if merged is None:
            raise self.fault("YAML merge keys are not supported", line, "write the keys out")
        if not isinstance(other, yaml.MappingNode):
            raise self.fault(
                "not valid YAML (a merge key refers to something other than mappings)", line, "write the keys out"
            )
        yield from self.pairs(other, merged + 1)

    def scalar(self, node: yaml.Node) -> bool | int | float | str | None:
        """Return the value of a node that is neither a list nor a mapping.

        Raises:
            DataError: a number is invalid or too long.
        """
        text, kind = str(node.value), node.tag.removeprefix(CORE)
        if kind not in PLAIN_TYPES or ":" in text:  # a time, which YAML 1.1 reads as a base-60 number
            return text
        if kind in ("int", "float") and len(text) > MAX_NUMBER_CHARS:
            raise self.fault(f"a number of {len(text):,} characters", node.start_mark.line + 1, "quote it, or round it")
        digits = text.replace("_", "")
        if kind == "int" and digits.lstrip("+-").isdecimal():  # 010 is ten, as in YAML 1.2; YAML 1.1 reads it as eight
            return int(digits)
        try:
            value: bool | int | float | None = self._composer.construct_object(node)
        except (ValueError, OverflowError) as error:
            raise self.fault(f"{shorten(text, 60)!r} is not a number", node.start_mark.line + 1, "quote it") from error
        return value

    def value(self, node: yaml.Node | None, texts: Collection[str] = (), depth: int = 0) -> Json:
        """Return the complete value of a node.

        Args:
            node: the node.
            texts: keys whose values are always texts, such as ids and queries.
            depth: levels below the root.

        Raises:
            DataError: see `visit`, `pairs` and `scalar`.
        """
        if node is None:
            return None
        self.visit(node, depth)
        if isinstance(node, yaml.MappingNode):
            found: dict[str, Json] = {}
            for key, _, inner in self.pairs(node, merged=0):
                plain = key in texts and isinstance(inner, yaml.ScalarNode)
                if key not in found:  # of two merged keys, the first wins
                    found[key] = str(inner.value) if plain else self.value(inner, texts, depth + 1)
            return found
        if isinstance(node, yaml.SequenceNode):
            return [self.value(inner, texts, depth + 1) for inner in node.value]
        return self.scalar(node)


def load_plain(text: str, where: Path | None = None) -> Json:
    """Return the value of a document, or None if it is empty.

    Raises:
        DataError: the document is not restricted YAML. The error names the line if it is known.
    """
    document = PlainYaml(text, where)
    return document.value(document.root)
