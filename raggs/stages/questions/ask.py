"""Stage 2: generate a question for each line of sample.jsonl, with the excerpts that answer it.

Questions are generated in rounds. Questions of the same round are about different first windows and are generated
independently. The generator sees the questions of earlier rounds, or a sample if there are many, so that it does not
repeat them. This sample depends only on the questions of earlier rounds, their order, and the id of the new question. A
resumed run therefore makes the same calls and finds the paid answers in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Annotated

from pydantic import Field

from raggs.base.adapter import AdapterConfig, OneOf
from raggs.base.hashing import generator
from raggs.base.settings import Causes, Settings
from raggs.parts import askers
from raggs.parts.askers import Assignment
from raggs.stages.base import StageOf, StageWork
from raggs.stages.ordered import run_ordered
from raggs.stages.questions.records import AskRecord, QuestionServices, SampleRecord

AskerSpec = Annotated[AdapterConfig, OneOf(askers.REGISTRY)]


class AskConfig(Settings):
    """Settings of the ask stage: the question generator, and how many earlier questions it sees."""

    asker: AskerSpec = Field(
        {"type": "extractive"},
        validate_default=True,
        description="question generator; extractive: by rule, without a model",
    )
    earlier: int = Field(
        50, ge=0, description="maximum number of earlier questions shown to the generator, to prevent repetitions"
    )
    round: int = Field(10, ge=1, description="maximum number of questions generated independently in one round")
    seed: int = Field(0, description="random seed for the choice of earlier questions")


class AskStage(StageOf[AskConfig, QuestionServices]):
    NAME = "ask"
    READS = ("sample",)
    Config = AskConfig
    RECORD = AskRecord
    ASKS = "asker"

    def causes(self, config: AskConfig, services: QuestionServices) -> Causes:
        return {"asker": services.causes("asker")}

    def asked(self, services: QuestionServices) -> str | None:
        return services.asker.name

    def run(self, work: StageWork, config: AskConfig, services: QuestionServices) -> Iterator[AskRecord]:
        asker = services.asker
        samples = list(work.read("sample", SampleRecord))
        said: list[str] = []

        async def ask(assignment: Assignment) -> AskRecord:
            found = await asker.ask(assignment)
            return AskRecord(
                qid=assignment.qid,
                question=found.text,
                excerpts=found.excerpts,
                kind=found.kind,
                earlier=len(assignment.earlier),
                asker=asker.name,
                error=found.error,
                raw=found.raw if found.text is None else None,
            )

        done = count(1)
        for batch in rounds(samples, config.round):
            assigned = [assignment_of(sample, shown_before(said, config, sample.qid)) for sample in batch]
            for record in run_ordered(services.workspace, assigned, ask):
                yield record
                said += [record.question] if record.question else []
                work.progress(next(done), len(samples))


def rounds(samples: Sequence[SampleRecord], size: int) -> Iterator[list[SampleRecord]]:
    """Yield the samples in rounds of at most `size`. No first window occurs twice in a round, so that a later question
    about a window can be generated with knowledge of the earlier one.
    """
    batch: list[SampleRecord] = []
    for sample in samples:
        if len(batch) == size or any(sample.windows[0] == each.windows[0] for each in batch):
            yield batch
            batch = []
        batch.append(sample)
    if batch:
        yield batch


def assignment_of(sample: SampleRecord, earlier: tuple[str, ...]) -> Assignment:
    """Return the input of the question generator."""
    return Assignment(
        qid=sample.qid,
        windows=tuple(window.text for window in sample.windows),
        kind=sample.kind,
        language=sample.language,
        persona=sample.persona,
        style=sample.style,
        earlier=earlier,
    )


def shown_before(said: Sequence[str], config: AskConfig, qid: str) -> tuple[str, ...]:
    """Return the questions of earlier rounds, in their order; a sample of `config.earlier` if there are more."""
    if len(said) <= config.earlier:
        return tuple(said)
    chosen = generator(config.seed, "earlier", qid).choice(len(said), size=config.earlier, replace=False)
    return tuple(said[number] for number in sorted(chosen.tolist()))


STAGE = AskStage()
