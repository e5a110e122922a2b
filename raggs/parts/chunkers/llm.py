"""A text cut where a language model says that the subject changes (Smith and Troynikov, "Evaluating Chunking Strategies
for Retrieval", 2024).

The model sees a window of small pieces, numbered from 1, and answers after which of them to cut; the next window begins
at the last cut. It never repeats the text, so that a chunk is a slice whatever it says. Numbers must ascend and be
those of pieces that are shown; of any other answer it is told what is wrong, as often as `llm.max_repairs` allows, and
then the text is cut at the window's end, which `ChunkBoundaries.lost` counts. Only a document's last window may do
without a cut.

The pieces are untrusted: each stands between marks that its author cannot guess, and nothing is read but the answer.
Pieces are numbered by window and not by document, so that a change in a document leaves the answers about its other
windows paid for.
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
LANGUAGE_CHARS = 2000  # characters that tell a document's language
SCHEMA = {
    "type": "object",
    "properties": {"split_after": {"type": "array", "items": {"type": "integer"}}},
    "required": ["split_after"],
    "additionalProperties": False,
}
# By the language of the prompt: what a piece is called, and what is said where the document ends.
PIECE_WORDS = {"en": ("Piece", "The document ends here."), "fr": ("Morceau", "Le document finit ici.")}


class PieceWindow(NamedTuple):
    """The pieces `first` to `end` (left out) of a document; whether they are its last."""

    first: int
    end: int
    last: bool


class LlmChunker(PaidChunker, MeasuringChunker):
    """Cuts where a language model says that the subject changes; paid once, by `raggs chunks make`."""

    TASK = TASK

    class Config(MeasuredConfig):
        type: Literal["llm"] = "llm"
        model: str = Field(min_length=1, description='provider and model, such as "openai/gpt-5-mini"')
        prompt: PromptName = Field("split@1", description="a prompt's name, or the path of a Markdown file")
        piece: int = Field(50, ge=1, le=100_000, description="the most that a piece holds, in `unit`")
        window: int = Field(800, ge=1, le=1_000_000, description="the most that is shown at once, in `unit`")
        parameters: Parameters = Field(default_factory=dict, description="sent with each call, over llm.parameters")

        @model_validator(mode="after")
        def _pieces_fit(self) -> Self:
            if self.window < 2 * self.piece:
                raise ValueError(f"a window of {self.window} does not hold two pieces of {self.piece}")
            return self

    config: Config

    @property
    def models(self) -> tuple[str, ...]:
        return (self.config.model,)

    def causes(self) -> Causes:
        """All that can change a cut: the text of the prompt, and what is sent to the model."""
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
                    f"{document.source} could not be cut: {reply.error}",
                    remedy="run again; what was answered is cached",
                )
            if found is None:
                lost += 1
                found = _fallback_boundaries(window, guess=guess)
            cuts += [window.first + number for number in found if window.first + number < len(pieces)]
            if window.last:
                break
        return ChunkBoundaries(at=tuple(pieces[number][0] for number in cuts), asked=asked, lost=lost)

    def _window(self, lengths: Sequence[int], first: int) -> PieceWindow | None:
        """The pieces from `first` that are shown together, two at least; None where there is nothing to cut."""
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
    """Pieces under their numbers, each between marks; and whether the document ends with them."""
    name, ends = PIECE_WORDS.get(language, PIECE_WORDS["en"])
    for number, piece in enumerate(shown, start=1):
        yield f"{name} {number}:\n{guard(clean_unicode(piece))}"
    if last:
        yield ends


def _fallback_boundaries(window: PieceWindow, *, guess: bool) -> tuple[int, ...]:
    """The cut of a window about which there is no answer."""
    count = window.end - window.first
    if window.last:
        return ()
    return (max(1, round(GUESSED_BOUNDARY_SHARE * count)),) if guess else (count,)


def check_split(answer: JsonObject, count: int, *, last: bool) -> tuple[int, ...]:
    """The numbers of the pieces after which to cut.

    Args:
        answer: of the model.
        count: of pieces that were shown.
        last: whether the document ends with them, so that there need be no cut.

    Raises:
        ValueError: no list of whole numbers, a number that is no piece's, one that does not ascend, or none at all.
    """
    found = answer.get("split_after")
    numbers = tuple(number for number in as_list(found) if type(number) is int)  # bool is an int to isinstance
    if not isinstance(found, list) or len(numbers) < len(found):
        raise ValueError('"split_after" must be a list of whole numbers')
    if any(not 1 <= number <= count for number in numbers):
        raise ValueError(f'each number in "split_after" must be that of a piece, from 1 to {count}')
    if any(one >= other for one, other in pairwise(numbers)):
        raise ValueError('each number in "split_after" must be greater than the one before')
    if not numbers and not last:
        raise ValueError('"split_after" must name at least one piece, since the document goes on')
    return numbers
