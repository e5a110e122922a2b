"""Stage 1: sample windows of the documents, each with a requested kind of question.

The sequences of windows, kinds, styles and personas are prefix-stable: a longer sequence starts with the shorter one.
A higher `n` therefore changes none of the earlier requests, and nothing is paid twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from raggs.base.adapter import unknown_name
from raggs.base.languages import detect_language
from raggs.base.settings import Causes, Settings
from raggs.parts.askers import KINDS, QuestionKind
from raggs.stages.base import StageOf, StageWork
from raggs.stages.questions.records import QuestionServices, SampleRecord, Text, Window
from raggs.stats.question_filters import SIZE, stratified_windows
from raggs.stats.question_filters import TextWindow as Place

PARTNERS = 64  # candidate windows for the second window of a comparison
DIGITS = 6  # digits of the number in a question's id; a fixed width keeps ids sorted


def _known_kinds(mix: Mapping[str, float]) -> Mapping[str, float]:
    for name, share in mix.items():
        if name not in KINDS:
            raise unknown_name("type of question", name, list(KINDS))
        if share < 0:
            raise ValueError(f"the share of {name} is negative")
    if not sum(mix.values()):
        raise ValueError("all shares of question types are 0")
    return mix


Mix = Annotated[Mapping[str, float], AfterValidator(_known_kinds)]


class SampleConfig(Settings):
    """Settings of the sample stage: number of questions, window size and kinds of questions."""

    n: int = Field(
        100, ge=1, le=10**DIGITS - 1, description="number of questions before later stages, limited by per_window"
    )
    window: int = Field(SIZE, ge=200, description="window size in characters")
    per_window: int = Field(10, ge=1, description="maximum number of questions per window of the documents, on average")
    types: Mix = Field(
        {"fact": 0.5, "procedure": 0.2, "list": 0.2, "comparison": 0.1},
        description="share of each type of question: fact, procedure, comparison, list, unanswerable",
    )
    conversational: float = Field(0.0, ge=0, le=1, description="share of questions in conversational style")
    personas: tuple[str, ...] = Field(
        (), description='descriptions of askers, such as "a new customer", used in turn; empty: no persona'
    )
    seed: int = Field(0, description="random seed for the choice of windows")


class SampleStage(StageOf[SampleConfig, QuestionServices]):
    NAME = "sample"
    Config = SampleConfig
    RECORD = SampleRecord

    def causes(self, config: SampleConfig, services: QuestionServices) -> Causes:
        return {"documents": services.causes("documents"), "kinds": sorted(services.asker.kinds)}

    def run(self, work: StageWork, config: SampleConfig, services: QuestionServices) -> Iterator[SampleRecord]:
        documents = services.documents
        texts = [document.text for document in documents]
        count = min(config.n, config.per_window * windows_of(texts, config.window))
        most = max(count, PARTNERS)
        places = stratified_windows(texts, most, config.seed, size=config.window)
        kinds = interleaved_names(
            {kind: share for kind, share in config.types.items() if kind in services.asker.kinds}, count
        )
        styles = interleaved_names({"plain": 1 - config.conversational, "conversational": config.conversational}, count)
        for number in range(count):
            shown = [places[number]]
            kind = as_kind(kinds[number])
            if kind == "comparison" and (partner := _partner(places, number, texts)):
                shown.append(partner)
            kind = kind if kind != "comparison" or len(shown) > 1 else "fact"
            windows = tuple(_window(place, documents[place.document]) for place in shown)
            yield SampleRecord(
                qid=f"q{number + 1:0{DIGITS}}",
                kind=kind,
                style="conversational" if styles[number] == "conversational" else "plain",
                persona=config.personas[number % len(config.personas)] if config.personas else "",
                language=detect_language(windows[0].text),
                windows=windows,
            )
            work.progress(number + 1, count)


def windows_of(texts: Sequence[str], size: int) -> int:
    """Return how many windows cover all characters of the documents without overlap."""
    return sum(-(-len(text.strip()) // size) for text in texts)


def interleaved_names(shares: Mapping[str, float], count: int) -> list[str]:
    """Return a list of names. In each prefix of the list, the count of each name is proportional to its share, to
    within one or two.

    Raises:
        ValueError: all shares are 0.
    """
    total = sum(shares.values())
    if not total:
        raise ValueError("all shares are 0")
    given = dict.fromkeys(shares, 0)
    found = []
    for number in range(1, count + 1):
        name = max(shares, key=lambda each: shares[each] / total * number - given[each])
        given[name] += 1
        found.append(name)
    return found


def as_kind(name: str) -> QuestionKind:
    """Return the kind of question with this name."""
    return next(kind for kind in KINDS if kind == name)


def _partner(places: Sequence[Place], number: int, texts: Sequence[str]) -> Place | None:
    """Return the window with the largest share of long words in common with window `number`. Only those of the first
    `PARTNERS` windows that do not overlap it are compared. Return None if all overlap it.
    """
    first = places[number]
    words = _long_words(texts[first.document][first.start : first.end])
    able = [place for place in places[:PARTNERS] if _are_disjoint(first, place)]

    def shared(place: Place) -> float:
        other = _long_words(texts[place.document][place.start : place.end])
        return len(words & other) / max(1, len(words | other))

    return max(able, key=shared, default=None)


def _long_words(text: str) -> frozenset[str]:
    return frozenset(word for word in text.casefold().split() if len(word) > 4)


def _are_disjoint(one: Place, other: Place) -> bool:
    return one.document != other.document or one.end <= other.start or other.end <= one.start


def _window(place: Place, document: Text) -> Window:
    return Window(
        source=document.source,
        start=document.start + place.start,
        end=document.start + place.end,
        text=document.text[place.start : place.end],
        doc_id=document.doc_id,
    )


STAGE = SampleStage()
