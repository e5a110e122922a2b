"""YAML as raggs reads it everywhere: texts, numbers, truth values and null in lists and mappings, and nothing else.

PyYAML scans and composes; what a value is, is decided here. There are no tags (`!!str` alone, which makes nothing), no
dates (a date is the text that was written), and no key twice, since the last one would win in silence.
Depth, the length of a number and what aliases may stand for are limited, so that no text can crash or stall whoever
reads it. Every fault is a sentence with its line.

It must not expand variables or know settings: that is the configuration's business.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import yaml
from yaml.reader import ReaderError

from raggs.base.errors import DataError
from raggs.base.text import shorten
from raggs.base.types import Json

MAX_YAML_DEPTH = 64  # levels of lists and mappings
MAX_NUMBER_CHARS = 100  # characters of a number
MAX_ALIAS_VALUES = 100_000  # values that aliases stand for, beyond those that are written
CORE = "tag:yaml.org,2002:"
STR = f"{CORE}str"
UNTAGGED = (None, "!", STR)
PLAIN_TYPES = ("null", "bool", "int", "float")


class _NotPlainError(Exception):
    """What YAML allows and raggs does not, with its line."""


class _Composer(yaml.SafeLoader):
    """Nodes of a document, without tags and with a bottom."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as the base class has it
        first: [(tag, pattern) for tag, pattern in resolvers if tag.removeprefix(CORE) in (*PLAIN_TYPES, "merge")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.count = 0  # nodes that are written
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.check_event()  # fetches it
        event: yaml.Event = self.current_event
        tag, line = getattr(event, "tag", None), 0 if event.start_mark is None else event.start_mark.line + 1
        if tag not in UNTAGGED:
            raise _NotPlainError(f"tag {str(tag).replace(CORE, '!!')}: plain values only", line)
        if self._depth == MAX_YAML_DEPTH:
            raise _NotPlainError(f"nested more than {MAX_YAML_DEPTH} levels deep", line)
        self.count += 1
        self._depth += 1
        found = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(found, yaml.ScalarNode) and not _encodable(found.value):
            raise _NotPlainError("half of a surrogate pair, which is no character", line)
        return found


def _encodable(text: str) -> bool:
    """Whether a text is Unicode throughout: an escape can spell halves of characters."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


class PlainYaml:
    """One document: its `root` node (None where the text is empty), and the value of each node.

    Args:
        text: the document.
        where: its file, for messages.
        kind: the error that a fault raises.

    Raises:
        DataError: of `kind`; the text is not YAML, or not plain.
    """

    def __init__(self, text: str, where: Path | None = None, kind: type[DataError] = DataError) -> None:
        self._where, self._kind = where, kind
        try:
            self._composer = _Composer(text)
            self.root: yaml.Node | None = self._composer.get_single_node()
        except ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            said = f"not valid YAML (character {error.character:#04x})"
            raise self.fault(said, line, "take it out, or write it as an escape between double quotes") from error
        except _NotPlainError as error:
            said, line = error.args
            raise self.fault(f"not valid YAML here ({said})", line, "write it plainly") from error
        except yaml.MarkedYAMLError as error:
            line = 0 if error.problem_mark is None else error.problem_mark.line + 1
            said = f"not valid YAML ({shorten(error.problem or str(error), 160)})"
            raise self.fault(said, line, "fix the syntax") from error
        except (yaml.YAMLError, ValueError, OverflowError) as error:  # a code point that is none
            raise self.fault(f"not valid YAML ({shorten(str(error), 160)})", 0, "fix the syntax") from error
        self._left = self._composer.count + MAX_ALIAS_VALUES

    def fault(self, message: str, line: int, remedy: str) -> DataError:
        """An error in a line of this document; 0 for none."""
        return self._kind(message, where=self._where, line=line or None, remedy=remedy)

    def visit(self, node: yaml.Node, depth: int) -> int:
        """The line of a node; called once for each whose value is taken, `depth` levels below the root.

        Raises:
            DataError: an alias stands within what it stands for, or aliases stand for too much.
        """
        line: int = node.start_mark.line + 1
        self._left -= 1
        if depth > MAX_YAML_DEPTH:
            said = f"nested more than {MAX_YAML_DEPTH} levels deep by an alias, which cannot be written as JSON"
            raise self.fault(said, line, "write out what it stands for")
        if self._left < 0:
            raise self.fault(f"aliases stand for more than {MAX_ALIAS_VALUES:,} values", line, "use fewer of them")
        return line

    def pairs(self, node: yaml.MappingNode, merged: int | None = None) -> Iterator[tuple[str, int, yaml.Node]]:
        """Each key as it is written, its line, and its value's node; then what is merged in and not written.

        Args:
            merged: how many merges stand around this mapping; None where merge keys are refused.

        Raises:
            DataError: a key is no text, stands twice, or asks for a merge that is refused or cannot be.
        """
        seen: set[str] = set()
        others: list[yaml.Node] = []
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise self.fault("not valid YAML (a key is a list or a mapping)", line, "keys are texts")
            if key.tag == f"{CORE}merge":
                others += value.value if isinstance(value, yaml.SequenceNode) else [value]
                continue
            name = str(key.value)
            if name in seen:
                raise self.fault(f"key {shorten(name, 60)!r} stands twice", line, "keep one of them")
            seen.add(name)
            yield name, line, value
        for other in others:
            yield from (pair for pair in self._merged(node, other, merged) if pair[0] not in seen)

    def _merged(self, node: yaml.Node, other: yaml.Node, merged: int | None) -> Iterator[tuple[str, int, yaml.Node]]:
        line = self.visit(node, merged or 0)
        if merged is None:
            raise self.fault("YAML merge keys are not supported", line, "write the keys out")
        if not isinstance(other, yaml.MappingNode):
            raise self.fault("not valid YAML (a merge key stands for mappings)", line, "write the keys out")
        yield from self.pairs(other, merged + 1)

    def scalar(self, node: yaml.Node) -> bool | int | float | str | None:
        """The value of a node that is neither list nor mapping.

        Raises:
            DataError: a number that is too long, or that is none.
        """
        text, kind = str(node.value), node.tag.removeprefix(CORE)
        if kind not in PLAIN_TYPES or ":" in text:  # a time, which YAML 1.1 takes for a number to base 60
            return text
        if kind in ("int", "float") and len(text) > MAX_NUMBER_CHARS:
            raise self.fault(f"a number of {len(text):,} characters", node.start_mark.line + 1, "quote it, or round it")
        digits = text.replace("_", "")
        if kind == "int" and digits.lstrip("+-").isdecimal():  # 010 is ten, as in YAML 1.2; to YAML 1.1 it is eight
            return int(digits)
        try:
            value: bool | int | float | None = self._composer.construct_object(node)
        except (ValueError, OverflowError) as error:
            raise self.fault(f"{shorten(text, 60)!r} is no number", node.start_mark.line + 1, "quote it") from error
        return value

    def value(self, node: yaml.Node | None, texts: Collection[str] = (), depth: int = 0) -> Json:
        """The whole value of a node.

        Args:
            texts: keys whose values are the text that is written, whatever YAML takes it for: ids, questions.
            depth: how far below the root.

        Raises:
            DataError: as `visit`, `pairs` and `scalar`.
        """
        if node is None:
            return None
        self.visit(node, depth)
        if isinstance(node, yaml.MappingNode):
            found: dict[str, Json] = {}
            for key, _, inner in self.pairs(node, merged=0):
                plain = key in texts and isinstance(inner, yaml.ScalarNode)
                if key not in found:  # of two that are merged in, the first wins
                    found[key] = str(inner.value) if plain else self.value(inner, texts, depth + 1)
            return found
        if isinstance(node, yaml.SequenceNode):
            return [self.value(inner, texts, depth + 1) for inner in node.value]
        return self.scalar(node)


def load_plain(text: str, where: Path | None = None) -> Json:
    """The value of a document; None where it is empty.

    Raises:
        DataError: it is not plain YAML; with its line.
    """
    document = PlainYaml(text, where)
    return document.value(document.root)
