"""How long a piece of text is: in characters, in tokens of a vocabulary that lies here, or by a tokenizer's file.

Nothing is downloaded. Where a vocabulary cannot be read, `raggs.base.text.estimate` stands in, and the causes say so.
A sum over pieces stands for the length of what they make together: tokens do not cross most cuts, so that the two
differ by a token or two.

Cutting a text that is too long at the best places that it has, and packing what is short.

Places here leave no gap: each piece reaches to the next one, so that nothing is lost whatever is packed, and lengths
add up. White space at the ends is taken off once a chunk is whole (`trim_range`).
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

ROOMY = 6  # characters by a token that most texts stay below
BORDER = re.compile(r"(?<=\S) (?=[A-Za-z])")  # a token of cl100k and o200k begins here, since one is " word"

SizeUnit = Literal["cl100k", "o200k", "characters"]


class MeasuredConfig(ChunkerConfig):
    """What the settings of a chunker hold that measures texts."""

    unit: SizeUnit = Field("cl100k", description="tokens of this vocabulary, or characters")
    tokenizer: Annotated[AnchoredPath | None, INPUT] = Field(
        None, description="a tokenizer.json, whose tokens are counted instead of `unit`; null: none"
    )
    special_tokens: bool = Field(
        False,
        description="whether marks that the tokenizer sets at the ends of a text are counted with each piece",
    )


class SizedConfig(MeasuredConfig):
    """The same of one that cuts to a size."""

    size: int = Field(200, ge=1, le=1_000_000, description="the most that a chunk holds, in `unit`")


class OverlappingConfig(SizedConfig):
    """The same of one whose chunks may overlap."""

    overlap: int = Field(0, ge=0, description="how much of a chunk's end the next one repeats at most, in `unit`")

    @model_validator(mode="after")
    def _overlap_below_size(self) -> Self:
        if self.overlap >= self.size:
            raise ValueError(f"an overlap of {self.overlap} leaves nothing new in chunks of {self.size}")
        return self


class TextSizer:
    """Measures texts as settings say."""

    def __init__(self, config: MeasuredConfig) -> None:
        self._config = config
        self._vocabulary = f"{config.unit}_base"

    def lengths(self, texts: Sequence[str], enough: int | None = None) -> list[int]:
        """The length of each text.

        Args:
            enough: whoever asks cuts what is as long as this: of a long text its beginning is measured, and where that
                suffices, its length is told.

        Raises:
            DataError: the tokenizer's file cannot be read.
        """
        if self._config.tokenizer is None and self._config.unit == "characters":
            return list(map(len, texts))
        unlike = list(dict.fromkeys(texts))  # a text without spaces is cut into letters, of which there are few
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
        """The character in which each unit of a text begins, in order.

        Raises:
            DataError: the tokenizer's file cannot be read.
            PrerequisiteError: the vocabulary cannot.
        """
        if self._config.tokenizer is not None:
            return [start for start, _ in self._tokenizer.encode(text, add_special_tokens=False).offsets]
        if self._config.unit == "characters":
            return list(range(len(text)))
        found = token_borders(text, self._vocabulary)
        if found is None:
            raise PrerequisiteError(
                f"the vocabulary {self._vocabulary} is not on this machine",
                remedy="reinstall litellm, which brings it, or name a tokenizer file",
            )
        return found

    def check(self) -> None:
        """Find what it lacks.

        Raises:
            DataError: the tokenizer's file cannot be read.
        """
        if self._config.tokenizer is not None:
            self._tokenizer.get_vocab_size()

    def causes(self) -> Causes:
        """What besides the settings can change a length."""
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
        """By which it measures."""
        return TextSizer(self.config)


class SizedChunker(MeasuringChunker):
    """A chunker that cuts to a size."""

    config: SizedConfig


def _text_beginning(text: str, least: int) -> str:
    """A text up to a place between two tokens, whatever follows, `least` characters from its beginning or later."""
    found = BORDER.search(text, least) if len(text) > least else None
    return text if found is None else text[: found.start()]


def _load(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        found = Tokenizer.from_file(str(path))
    except Exception as error:  # the reader raises plain Exception
        raise DataError(f"no tokenizer ({error})", where=path, remedy="name the tokenizer.json of a model") from error
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
    """A place itself where it fits into `room`, else its parts between the best kind of cuts that makes them fit.

    The last kind of cut is between any two characters, so that nothing but one character is longer than `room`.
    """
    yield from _split_all_to_fit(text, [place], room, ruler, cuts)


def _split_all_to_fit(
    text: str, places: Sequence[TextRange], room: int, ruler: TextSizer, cuts: Sequence[re.Pattern[str]]
) -> Iterator[TextRange]:
    """See `split_to_fit`; all places are measured together, which is faster."""
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
    """Neighbours put together as long as the sum of their lengths fits into `room`."""
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
    """A place without the white space at its ends; an empty one where there is nothing else."""
    part = text[slice(*place)]
    start = place[0] + len(part) - len(part.lstrip())
    return start, max(start, place[0] + len(part.rstrip()))


def drop_repeated_ranges(text: str, places: Iterable[TextRange]) -> Iterator[TextRange]:
    """Places without the white space at their ends, and without those that add nothing else to the one before."""
    reached = 0
    for place in places:
        start, end = trim_range(text, place)
        if end > max(start, reached):
            yield start, end
            reached = end
