"""What making questions of documents needs of the world, and what it would cost."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from raggs.app.answerlengths import Answers, learned
from raggs.app.services import RunServices
from raggs.base.artifacts import Passage
from raggs.base.errors import UsageError
from raggs.base.hashing import hash_bytes, hash_value
from raggs.llm.prices import estimate_tokens
from raggs.parts import retrievers
from raggs.parts.workshop import Asker, Retriever, Task
from raggs.runs.manifests.models import Estimate
from raggs.runs.manifests.store import RunStore
from raggs.stages.base import Work
from raggs.stages.questions import QUESTIONS
from raggs.stages.questions.ask import assignment_of, rounds, shown_before
from raggs.stages.questions.base import Text
from raggs.stages.questions.filter import required_embedder
from raggs.stages.questions.records import SampleRecord
from raggs.stages.questions.sample import STAGE as SAMPLE

FILE = "runfile"  # the retriever that reads a file of hits, which has none for questions that are new
EARLIER = 20  # tokens of an earlier question
EXCERPTS = 2  # of a question
EXCERPT = 60  # tokens of an excerpt


class QuestionWorld(RunServices):
    """The parts of a run that makes questions (see `raggs.stages.questions.base.QuestionServices`)."""

    @cached_property
    def documents(self) -> Sequence[Text]:
        """All documents that hold a text, or passages where the corpus knows none."""
        found = [_text(each) if isinstance(each, Passage) else Text(each.source, each.body.text, each.begin)
                 for each in self.corpus.documents()]  # fmt: skip
        texts = [each for each in found if each.text.strip()]
        if not texts:
            raise self.corpus.empty()
        return texts

    @cached_property
    def asker(self) -> Asker:
        """Who asks."""
        return self.workshop.asker(self.config.questions.ask.asker)

    @cached_property
    def systems(self) -> Mapping[str, Retriever]:
        """The retrievers of the configuration that pay nobody, and do not read what others have found."""
        paid = bool(self.embedder and self.embedder.models)
        specs = []
        for spec in self.config.retrieve.retrievers:
            kind = retrievers.REGISTRY.of(spec)
            if not (kind.paid(spec) or spec.type == FILE or (kind.needs_vectors(spec) and paid)):
                specs.append(spec)
        return self.workshop.retrievers(specs, self.passages, (), self.embedder)

    def causes(self, part: str, task: Task | None = None) -> object:
        """As `RunServices.causes`, and of "documents", "asker" and "systems"."""
        if part == "systems":
            return {name: system.causes() for name, system in self.systems.items()}
        if part == "documents":
            rows = ((each.source, each.start, each.doc_id, hash_bytes(each.text.encode())) for each in self.documents)
            return hash_value([list(row) for row in rows])
        return self.asker.causes() if part == "asker" else super().causes(part, task)

    def check_inputs(self, stages: Collection[str] = QUESTIONS.order) -> None:
        """Find what is wrong before anything is asked.

        Raises:
            RaggsError: there is no document, the asker lacks something, or makes no question of the kinds wanted; or
                the filter has no embedder that works, or a retriever lacks something.
        """
        self.asker.check()
        wanted = [kind for kind, share in self.config.questions.sample.types.items() if share]
        if not set(wanted) & set(self.asker.kinds):
            raise UsageError(
                f"the asker {self.asker.name} makes no questions of the type {' or '.join(wanted)}",
                remedy=f"name one of {', '.join(self.asker.kinds)} in questions.sample.types, or another asker",
            )
        self.documents  # noqa: B018 - that there are any
        if "filter" in stages:
            required_embedder(self).check()
            for system in self.systems.values():
                system.check()

    def models(self, stages: Collection[str] = QUESTIONS.order) -> tuple[str, ...]:
        """The language models that some stages ask."""
        asked = self.asker.models if "ask" in stages else ()
        if "filter" in stages and self.embedder is not None:
            asked += tuple(self.embedder.models)
        return tuple(dict.fromkeys(asked))


def _text(passage: Passage) -> Text:
    """A passage as a text to ask about: at its place in its document, where it says so and holds nothing else."""
    span = passage.span
    if span is not None and span.end - span.start == len(passage.text):
        return Text(span.source, passage.text, span.start)
    return Text(passage.doc_id, passage.text, doc_id=passage.doc_id)


def estimate_questions(services: QuestionWorld, store: RunStore, *, looks: bool) -> Iterator[Estimate]:
    """What the stages would cost that ask someone. `looks`: leave out what is paid for already."""
    samples = list(SAMPLE.run(Work({}), services.config.questions.sample, services))
    answers = learned(services, store)
    if not services.asker.models:
        who = f"{services.asker.name} (local)"
        yield Estimate(stage="ask", calls=len(samples), input_tokens=0, output_tokens=0, usd=0.0, exact=True, who=who)
    known = _known(services, samples) if looks and services.asker.models else frozenset()
    for model in services.asker.models:
        yield _asked(services, model, samples, known, answers)
    for model in services.embedder.models if services.embedder else ():
        yield _embedded(services, model, len(samples))


def _asked(
    services: QuestionWorld, model: str, samples: Sequence[SampleRecord], known: Collection[str], answers: Answers
) -> Estimate:
    config, tokens = services.config.questions.ask, estimate_tokens
    length, hidden = answers.length(model, "ask")
    missing = [(number, sample) for number, sample in enumerate(samples) if sample.qid not in known]
    prompt, sent = tokens(services.asker.words), 0
    for number, sample in missing:
        shown = min(config.earlier, max(0, number - config.round // 2))
        sent += prompt + sum(tokens(window.text) for window in sample.windows) + shown * EARLIER
    price = services.llm.price(model)
    return Estimate(
        stage="ask",
        calls=len(missing),
        cached=len(known),
        input_tokens=sent,
        output_tokens=len(missing) * length,
        hidden_tokens=hidden,
        repairs=services.config.llm.max_repairs,
        usd=None if price is None else price.usd(sent, len(missing) * length),
        exact=True,
        who=model,
    )


def _known(services: QuestionWorld, samples: Sequence[SampleRecord]) -> frozenset[str]:
    """The questions whose answers are paid for; after the first that is not, what others would be shown is unknown."""
    config, llm = services.config.questions.ask, services.workshop.rehearsal()
    asker = services.workshop.asker(config.asker, llm)
    found: list[str] = []

    async def walk() -> None:
        said: list[str] = []
        for batch in rounds(samples, config.round):
            before = llm.missing
            shown = [assignment_of(sample, shown_before(said, config, sample.qid)) for sample in batch]
            for assignment in shown:
                missing = llm.missing
                if (question := await asker.ask(assignment)).text:
                    said.append(question.text)
                found.extend([assignment.qid] * (llm.missing == missing))
            if llm.missing > before:
                break
        await llm.close()

    services.loop.run(walk())
    return frozenset(found)


def _embedded(services: QuestionWorld, model: str, count: int) -> Estimate:
    """What the filter embeds at most: each question and its excerpts."""
    texts, price = count * (1 + EXCERPTS), services.llm.price(model)
    sent = count * (EARLIER + EXCERPTS * EXCERPT)
    batch = services.embedder.config.batch if services.embedder else 1
    return Estimate(
        stage="filter",
        calls=-(-texts // batch),
        input_tokens=sent,
        output_tokens=0,
        usd=None if price is None else price.usd(sent, 0),
        exact=False,
        who=model,
    )
