"""Stage 2: a question about each window, with the excerpts that answer it, as the asker gives them.

Questions are asked round by round. Those of a round are about different windows and do not see each other; each sees
a sample of those of the rounds before, so that it does not repeat them. What is shown depends on nothing but these, in
their order: a run that was killed asks the same again, and finds the answers that were paid for.
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
    """Who asks, and what of earlier questions is shown."""

    asker: AskerSpec = Field(
        {"type": "extractive"}, validate_default=True, description="makes a question of a window; extractive: by rule"
    )
    earlier: int = Field(50, ge=0, description="earlier questions that are shown, so that none is repeated")
    round: int = Field(10, ge=1, description="questions that are asked side by side and do not see each other")
    seed: int = Field(0, description="of the choice of earlier questions")


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
    """The samples in rounds of at most `size`; no window comes twice in one, so that its questions see each other."""
    batch: list[SampleRecord] = []
    for sample in samples:
        if len(batch) == size or any(sample.windows[0] == each.windows[0] for each in batch):
            yield batch
            batch = []
        batch.append(sample)
    if batch:
        yield batch


def assignment_of(sample: SampleRecord, earlier: tuple[str, ...]) -> Assignment:
    """What the asker is told."""
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
    """A sample of what was asked in the rounds before, in its order."""
    if len(said) <= config.earlier:
        return tuple(said)
    chosen = generator(config.seed, "earlier", qid).choice(len(said), size=config.earlier, replace=False)
    return tuple(said[number] for number in sorted(chosen.tolist()))


STAGE = AskStage()
