"""Lengths of texts, and splitting and packing by length.

A length is in characters, in tokens of an installed vocabulary, or in tokens of a tokenizer file. Nothing is
downloaded. If a vocabulary cannot be read, lengths are estimated (`raggs.base.text.estimate`), and `causes` records
this; `TextSizer.borders` raises an error instead. The length of joined pieces is approximated by the sum of their
lengths. The error is small, because few tokens cross a boundary of pieces.

Ranges in this module are adjacent: each piece extends to the start of the next, so that packing loses nothing, and
lengths add up. White space at both ends is removed from finished chunks (`trim_range`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from raggs.base.errors import DataError, PrerequisiteError
from raggs.base.registry import installed
from raggs.base.settings import INPUT, AnchoredPath, Causes
from raggs.base.text import count_tokens, encoding, token_borders
from raggs.parts.chunkers import Chunker, ChunkerConfig, TextRange

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ROOMY = 6  # characters per token, as an upper bound for most texts
# In cl100k and o200k, a token starts here, because these vocabularies have tokens of the form " word".
BORDER = re.compile(r"(?<=\S) (?=[A-Za-z])")

SizeUnit = Literal["cl100k", "o200k", "characters"]


class MeasuredConfig(ChunkerConfig):
    """Settings of chunkers that measure texts."""

    unit: SizeUnit = Field("cl100k", description="unit of lengths: tokens of this vocabulary, or characters")
    tokenizer: Annotated[AnchoredPath | None, INPUT] = Field(
        None, description="path of a tokenizer.json whose tokens are the unit; null: `unit` applies"
    )
    special_tokens: bool = Field(
        False, description="count the special tokens that the tokenizer adds at the ends of each piece"
    )


class SizedConfig(MeasuredConfig):
    """Settings of chunkers with a maximum size."""

    size: int = Field(200, ge=1, le=1_000_000, description="maximum chunk size, in `unit`")


class OverlappingConfig(SizedConfig):
    """Settings of chunkers with a maximum size and an overlap."""

    overlap: int = Field(0, ge=0, description="maximum overlap with the previous chunk, in `unit`")

    @model_validator(mode="after")
    def _overlap_below_size(self) -> Self:
        if self.overlap >= self.size:
            raise ValueError(f"overlap ({self.overlap}) must be smaller than size ({self.size})")
        return self


class TextSizer:
    """Measures texts according to the settings."""

    def __init__(self, config: MeasuredConfig) -> None:
        self._config = config
        self._vocabulary = f"{config.unit}_base"

    def lengths(self, texts: Sequence[str], enough: int | None = None) -> list[int]:
        """Return the length of each text.

        Args:
            enough: length from which a lower bound suffices. If the beginning of a text already has this length, the
                length of that beginning is returned.

        Raises:
            DataError: the tokenizer file cannot be read.
        """
        if self._config.tokenizer is None and self._config.unit == "characters":
            return list(map(len, texts))
        unlike = list(dict.fromkeys(texts))  # a text without spaces is split into characters, many of which repeat
        known = dict(zip(unlike, self._tokens(unlike, enough), strict=True))
        return [known[text] for text in texts]

    def _tokens(self, texts: list[str], enough: int | None) -> list[int]:
        if self._config.tokenizer is None:
            begun = texts if enough is None else [_text_beginning(text, ROOMY * enough) for text in texts]
            found = count_tokens(begun, self._vocabulary)
            for place, (text, part) in enumerate(zip(texts, begun, strict=True)):
                if enough is not None and len(part) < len(text) and found[place] < enough:
                    found[place] = count_tokens([text], self._vocabulary)[0]
            return found
        special = self._config.special_tokens
        return [len(each.ids) for each in self._tokenizer.encode_batch(texts, add_special_tokens=special)]

    def borders(self, text: str) -> list[int]:
        """Return the offset at which each unit of a text starts, in order.

        Raises:
            DataError: the tokenizer file cannot be read.
            PrerequisiteError: the vocabulary cannot be read.
        """
        if self._config.tokenizer is not None:
            return [start for start, _ in self._tokenizer.encode(text, add_special_tokens=False).offsets]
        if self._config.unit == "characters":
            return list(range(len(text)))
        found = token_borders(text, self._vocabulary)
        if found is None:
            raise PrerequisiteError(
                f"vocabulary {self._vocabulary} is not installed",
                remedy="reinstall litellm, which includes it, or set a tokenizer file",
            )
        return found

    def check(self) -> None:
        """Load the tokenizer file, if the settings name one.

        Raises:
            DataError: the tokenizer file cannot be read.
        """
        if self._config.tokenizer is not None:
            self._tokenizer.get_vocab_size()

    def causes(self) -> Causes:
        """Return what affects lengths apart from the settings."""
        if self._config.tokenizer is not None:
            return {"tokenizers": installed("tokenizers")}
        if self._config.unit == "characters":
            return {}
        return {} if encoding(self._vocabulary) is not None else {"estimated": True}

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return _load(self._config.tokenizer or Path())


class MeasuringChunker(Chunker):
    """A chunker that measures texts."""

    config: MeasuredConfig

    def causes(self) -> Causes:
        return {**self.own_causes(), "ruler": self.ruler.causes()}

    def check(self) -> None:
        self.ruler.check()

    @cached_property
    def ruler(self) -> TextSizer:
        """Measures texts according to the settings of the chunker."""
        return TextSizer(self.config)


class SizedChunker(MeasuringChunker):
    """A chunker with a maximum size."""

    config: SizedConfig


def _text_beginning(text: str, least: int) -> str:
    """Return the beginning of a text: at least `least` characters, up to the next token boundary."""
    found = BORDER.search(text, least) if len(text) > least else None
    return text if found is None else text[: found.start()]


def _load(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        found = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise DataError(f"not a tokenizer ({error})", where=path, remedy="use the tokenizer.json of a model") from error
    found.no_truncation()
    found.no_padding()
    return found


LINES = re.compile(r"\n")
WORD_BREAK = re.compile(r"\s+")
SENTENCES = re.compile(r"[.!?…][\"'”’»)\]]*\s+|[。！？]")
BREAK_PATTERNS = (SENTENCES, LINES, WORD_BREAK)


def split_to_fit(
    text: str, place: TextRange, room: int, ruler: TextSizer, cuts: Sequence[re.Pattern[str]] = BREAK_PATTERNS
) -> Iterator[TextRange]:
    """Yield the range if it fits into `room`, otherwise its parts, split at the coarsest pattern that suffices.

    As a last resort, the text is split between characters, so that only a single character can exceed `room`.
    """
    yield from _split_all_to_fit(text, [place], room, ruler, cuts)


def _split_all_to_fit(
    text: str, places: Sequence[TextRange], room: int, ruler: TextSizer, cuts: Sequence[re.Pattern[str]]
) -> Iterator[TextRange]:
    """Yield the parts of all ranges (see `split_to_fit`); measuring all ranges together is faster."""
    lengths = ruler.lengths([text[start:end] for start, end in places], enough=room + 1)
    for (start, end), length in zip(places, lengths, strict=True):
        if end - start <= 1 or length <= room:
            yield start, end
        elif not cuts:
            yield from join_to_fit(((at, at + 1) for at in range(start, end)), text, room, ruler)
        else:
            edges = [start, *(found.end() for found in cuts[0].finditer(text, start, end) if found.end() < end), end]
            yield from _split_all_to_fit(text, list(pairwise(edges)), room, ruler, cuts[1:])


def join_to_fit(parts: Iterable[TextRange], text: str, room: int, ruler: TextSizer) -> Iterator[TextRange]:
    """Join neighbouring parts as long as the sum of their lengths fits into `room`, and yield the ranges."""
    listed = list(parts)
    start = end = total = 0
    for part, length in zip(listed, ruler.lengths([text[first:last] for first, last in listed]), strict=True):
        if end > start and total + length > room:
            yield start, end
            start = end
        if end == start:
            start, total = part[0], 0
        end, total = part[1], total + length
    if end > start:
        yield start, end


def trim_range(text: str, place: TextRange) -> TextRange:
    """Return a range without the white space at both ends; an empty range if there is nothing else."""
    part = text[slice(*place)]
    start = place[0] + len(part) - len(part.lstrip())
    return start, max(start, place[0] + len(part.rstrip()))


def drop_repeated_ranges(text: str, places: Iterable[TextRange]) -> Iterator[TextRange]:
    """Yield the ranges without white space at both ends, except empty ones and those that end within an earlier
    range.
    """
    reached = 0
    for place in places:
        start, end = trim_range(text, place)
        if end > max(start, reached):
            yield start, end
            reached = end
