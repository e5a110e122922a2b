"""Chunking by a language model that marks changes of topic (Smith and Troynikov, "Evaluating Chunking Strategies for
Retrieval", 2024).

The model sees a window of small pieces, numbered from 1, and returns the numbers after which to split. The next window
starts at the last split. The model does not repeat the text, so every chunk is an exact slice. The numbers must ascend
and refer to pieces in the window. If an answer breaks this rule, raggs returns the answer to the model for correction,
at most `llm.max_repairs` times. After that, the text is split at the window's end, except in the last window, and
`ChunkBoundaries.lost` counts the window. The model may return no split only in the last window of a document.

The pieces are untrusted: each is between random markers, and only the model's answer is parsed. Pieces are numbered per
window, not per document, so that a changed document reuses the cached answers of its unchanged windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from raggs.base.languages import detect_language
from raggs.base.settings import Causes, PromptName
from raggs.base.text import clean_unicode
from raggs.base.types import JsonObject, as_list
from raggs.llm import ChatRequest, Parameters
from raggs.parts.chunkers import Document
from raggs.parts.chunkers.paid import GUESSED_BOUNDARY_SHARE, ChunkBoundaries, NotCut, PaidChunker
from raggs.parts.chunkers.recursive import recursive
from raggs.parts.chunkers.sizes import MeasuredConfig, MeasuringChunker
from raggs.prompts import Prompt, PromptUse, load_prompt

if TYPE_CHECKING:
    from raggs.llm import LLM

TASK: PromptUse = "split"
ANSWER_TOKENS = 60
LANGUAGE_CHARS = 2000  # characters used for language detection
SCHEMA = {
    "type": "object",
    "properties": {"split_after": {"type": "array", "items": {"type": "integer"}}},
    "required": ["split_after"],
    "additionalProperties": False,
}
# By language of the prompt: label of a piece, and the note after the document's last piece.
PIECE_WORDS = {"en": ("Piece", "The document ends here."), "fr": ("Morceau", "Le document finit ici.")}


class PieceWindow(NamedTuple):
    """The pieces from `first` up to but not including `end`; `last`: whether the document ends with this window."""

    first: int
    end: int
    last: bool


class LlmChunker(PaidChunker, MeasuringChunker):
    """Splits at changes of topic that a language model detects, once per document (`raggs chunks make`)."""

    TASK = TASK

    class Config(MeasuredConfig):
        type: Literal["llm"] = "llm"
        model: str = Field(min_length=1, description='provider and model, for example "openai/gpt-5-mini"')
        prompt: PromptName = Field("split@1", description="name of a prompt, or path of a Markdown file")
        piece: int = Field(50, ge=1, le=100_000, description="maximum length of a piece, in `unit`")
        window: int = Field(800, ge=1, le=1_000_000, description="maximum length of a window, in `unit`")
        parameters: Parameters = Field(
            default_factory=dict, description="call parameters; they override llm.parameters"
        )

        @model_validator(mode="after")
        def _pieces_fit(self) -> Self:
            if self.window < 2 * self.piece:
                raise ValueError(f"window ({self.window}) must be at least twice piece ({self.piece})")
            return self

    config: Config

    @property
    def models(self) -> tuple[str, ...]:
        return (self.config.model,)

    def causes(self) -> Causes:
        """Return everything that affects the boundaries, including the prompt and the parameters of the calls."""
        found = {**super().causes(), "prompt": self._prompt.sha256}
        asking = self.context.asking
        return found if asking is None else {**found, "llm": asking.llm().settings.causes_for(self.models)}

    def check(self) -> None:
        super().check()
        self._prompt.text()

    async def ask(self, document: Document, llm: LLM, *, guess: bool) -> ChunkBoundaries:
        text = document.text
        pieces = list(recursive(text, (0, len(text)), self.ruler, self.config.piece))
        lengths = self.ruler.lengths([text[start:end] for start, end in pieces])
        language, cuts, asked, lost = detect_language(text[:LANGUAGE_CHARS]), list[int](), 0, 0
        while (window := self._window(lengths, cuts[-1] if cuts else 0)) is not None:
            asked += 1
            shown = [text[start:end] for start, end in pieces[window.first : window.end]]
            reply = await llm.ask(self._request(shown, language, llm.guard, last=window.last))
            found = reply.value
            if found is None and not reply.unusable and not guess:
                raise NotCut(
                    f"{document.source} could not be chunked: {reply.error}",
                    remedy="run the command again; answers so far are cached",
                )
            if found is None:
                lost += 1
                found = _fallback_boundaries(window, guess=guess)
            cuts += [window.first + number for number in found if window.first + number < len(pieces)]
            if window.last:
                break
        return ChunkBoundaries(at=tuple(pieces[number][0] for number in cuts), asked=asked, lost=lost)

    def _window(self, lengths: Sequence[int], first: int) -> PieceWindow | None:
        """Return the window that starts at piece `first` and has at least two pieces; None if fewer than two are
        left.
        """
        if len(lengths) - first < 2:
            return None
        end, room = first + 2, self.config.window - sum(lengths[first : first + 2])
        while end < len(lengths) and lengths[end] <= room:
            room -= lengths[end]
            end += 1
        return PieceWindow(first, end, end == len(lengths))

    def _request(
        self, shown: Sequence[str], language: str, guard: Callable[[str], str], *, last: bool
    ) -> ChatRequest[tuple[int, ...]]:
        return ChatRequest(
            model=self.config.model,
            messages=self._prompt.render(
                language, pieces="\n\n".join(_number_pieces(shown, language, guard, last=last))
            ),
            schema=SCHEMA,
            schema_name=TASK,
            check=lambda answer: check_split(answer, len(shown), last=last),
            max_output_tokens=ANSWER_TOKENS,
            parameters=self.config.parameters,
        )

    @cached_property
    def _prompt(self) -> Prompt:
        return load_prompt(self.config.prompt, TASK)


def _number_pieces(shown: Sequence[str], language: str, guard: Callable[[str], str], *, last: bool) -> Iterator[str]:
    """Yield the numbered pieces, each between markers, and a note if the document ends with these pieces."""
    name, ends = PIECE_WORDS.get(language, PIECE_WORDS["en"])
    for number, piece in enumerate(shown, start=1):
        yield f"{name} {number}:\n{guard(clean_unicode(piece))}"
    if last:
        yield ends


def _fallback_boundaries(window: PieceWindow, *, guess: bool) -> tuple[int, ...]:
    """Return the boundaries of a window for which the model gave no usable answer."""
    count = window.end - window.first
    if window.last:
        return ()
    return (max(1, round(GUESSED_BOUNDARY_SHARE * count)),) if guess else (count,)


def check_split(answer: JsonObject, count: int, *, last: bool) -> tuple[int, ...]:
    """Return the numbers of the pieces after which to split.

    Args:
        answer: answer of the model.
        count: number of pieces in the window.
        last: whether the document ends with the window, so that no split is required.

    Raises:
        ValueError: the answer is not a list of whole numbers, a number is outside the window, the numbers do not
            ascend, or the list is empty although a split is required.
    """
    found = answer.get("split_after")
    numbers = tuple(number for number in as_list(found) if type(number) is int)  # isinstance would accept a bool
    if not isinstance(found, list) or len(numbers) < len(found):
        raise ValueError('"split_after" must be a list of whole numbers')
    if any(not 1 <= number <= count for number in numbers):
        raise ValueError(f'each number in "split_after" must be that of a piece, from 1 to {count}')
    if any(one >= other for one, other in pairwise(numbers)):
        raise ValueError('each number in "split_after" must be greater than the one before')
    if not numbers and not last:
        raise ValueError('"split_after" must name at least one piece, since the document goes on')
    return numbers
