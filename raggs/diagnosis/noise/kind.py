"""The kind: questions made noisy, rewritten, compared to ideal texts, and searched where there is a golden set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from raggs.base.errors import PrerequisiteError
from raggs.base.hashing import hash_value
from raggs.base.settings import Causes
from raggs.base.text import plural
from raggs.chunking.specs import spec_name
from raggs.diagnosis.base import Diagnosis, Forecast
from raggs.diagnosis.bench import Bench, reranking
from raggs.diagnosis.noise import showing
from raggs.diagnosis.noise.asking import (
    GOLDEN,
    OWN,
    Condition,
    Cosines,
    Ideal,
    Questions,
    golden_questions,
    own_questions,
)
from raggs.diagnosis.noise.losses import Asking, Losses, conditions, questions_of
from raggs.diagnosis.noise.models import NONE, ExamplePart, NoiseDiagnosisConfig, NoiseFound
from raggs.diagnosis.noise.showing import targets, verdict
from raggs.evaluation.document import Section
from raggs.runs.manifests.models import Estimate
from raggs.runs.pipeline.plan import line_of

FEWEST = 5  # questions of a language, below which nothing is compared
SHOWN = 2  # questions of each language and level that are shown
SAMPLE = 200  # passages by which their tokens are estimated
NO_GOLDEN = "Nothing was searched: there is no golden set (name one: --golden RUN|FILE; raggs run makes one)."
NO_CORPUS = "Nothing was searched: nobody says where the golden set's corpus is (name the run's file: --config FILE)."
NOT_WANTED = "Nothing was searched: --cosine-only."
REWRITE = "rewrite"  # the ledger's name of the task
REWRITTEN = 40  # tokens of a rewrite


class NoiseDiagnosis(Diagnosis[NoiseFound]):
    """What conversational noise costs a search, and what a rewriter brings back."""

    Config = NoiseDiagnosisConfig
    Result = NoiseFound
    TITLE = "What does conversational noise cost, and what does rewriting bring back?"
    NEEDS = ("embedder",)
    TAKES = ("golden", "reranker")
    TIME = "a minute"
    config: NoiseDiagnosisConfig

    def causes(self, bench: Bench) -> Causes:
        """With what noises and rewriters depend on, and raggs' own questions."""
        questions = Questions(bench, self.config)
        asked = [questions.causes(each) for each in conditions(self.config)]
        own = hash_value([[each.question, each.text] for code in self.config.languages for each in own_questions(code)])
        corpus = bench.workshop.corpus(bench.corpus).key if bench.has("corpus") else None
        return {**super().causes(bench), "questions": own, "asked": asked, "passages": corpus}

    def models(self, bench: Bench) -> tuple[str, ...]:
        """Those of rewriters, too."""
        return tuple(dict.fromkeys([*super().models(bench), *Questions(bench, self.config).models]))

    def check(self, bench: Bench) -> None:
        """Refuse a golden set that is asked for and is not there, or has too few questions of a language.

        Raises:
            RaggsError: with the remedy.
        """
        if self.config.of == "golden":
            bench.require(("golden", "corpus"))
            for language in self.config.languages:
                self._ideals(bench, language)

    def forecast(self, bench: Bench) -> Forecast:
        """Embed and rewrite on a bench that only remembers; what rerankers would read is estimated."""
        questions = Questions(bench, self.config)
        paid = questions.models or any(each.models for each in bench.embedders.values())
        for cosines in self._cosines(bench, questions) if paid else ():
            cosines.ask()
        asking, untold = self._searched(bench)
        if untold is None and paid:
            self._rehearse(bench, questions, asking)
        rewriting = tuple(self._rewriting(bench, questions))
        reranking = tuple(self._reranking(bench, asking)) if untold is None else ()
        return Forecast(tuple(self._what(bench, asking, untold)), (*bench.asked(), *rewriting, *reranking))

    def measure(self, bench: Bench) -> NoiseFound:
        questions = Questions(bench, self.config)
        found = tuple(part for cosines in self._cosines(bench, questions) for part in cosines.parts())
        asking, untold = self._searched(bench)
        losses = Losses(bench, questions, self.config, asking) if untold is None else None
        ends = () if losses is None else tuple(losses.ends())
        return NoiseFound(
            verdict=verdict(found, ends, untold),
            passed=None,
            source=OWN if self.config.of == "own" else GOLDEN,
            questions={code: len(self._ideals(bench, code)) for code in self.config.languages},
            draws=self.config.draws,
            noises=tuple(spec_name(spec) for spec in self.config.noises),
            cosines=found,
            targets=targets(self.config.languages),
            searched=0 if losses is None else len(asking.questions),
            strange=asking.strange,
            ends=ends,
            shuffles=() if losses is None else tuple(losses.shuffles()),
            untold=untold,
            examples=tuple(self._examples(bench, questions)),
        )

    def rests_on(self, found: NoiseFound) -> int:
        return found.searched if found.ends else min(found.questions.values())

    def sections(self, found: NoiseFound) -> tuple[Section, ...]:
        return showing.sections(found)

    def plots(self, found: NoiseFound) -> Mapping[str, str]:
        return showing.plots(found)

    # --- what is asked ---

    def _ideals(self, bench: Bench, language: str) -> Sequence[Ideal]:
        if self.config.of == "own":
            return own_questions(language)
        found = golden_questions(bench, language)
        if len(found) < FEWEST:
            raise PrerequisiteError(
                f"{bench.golden.source} holds {plural(len(found), 'question')} in {language!r} with labels, "
                f"and {FEWEST} are needed",
                remedy="leave the language out: --language CODE, or take raggs' own questions: --of own",
            )
        return found

    def _searched(self, bench: Bench) -> tuple[Asking, str | None]:
        """The golden set's questions that are searched; else why none is."""
        nothing = Asking((), 0)
        if not self.config.retrieval:
            return nothing, NOT_WANTED
        if not bench.has("golden"):
            return nothing, NO_GOLDEN
        if not bench.has("corpus"):
            return nothing, NO_CORPUS
        asking = questions_of(bench, self.config.languages)
        if len(asking.questions) < FEWEST:
            spoken = ", ".join(self.config.languages)
            judged = plural(len(asking.questions), "judged question")
            told = f"{bench.golden.source} has {judged} in {spoken}, and {FEWEST} are needed"
            return nothing, f"Nothing was searched: {told}."
        return asking, None

    def _cosines(self, bench: Bench, questions: Questions) -> Iterator[Cosines]:
        for name in bench.embedders:
            for language in self.config.languages:
                yield Cosines(bench, questions, self.config, name, self._ideals(bench, language))

    def _examples(self, bench: Bench, questions: Questions) -> Iterator[ExamplePart]:
        from raggs.base.artifacts import Query

        for language in self.config.languages:
            for at, each in enumerate(self._ideals(bench, language)[:SHOWN]):
                level = self.config.levels[-1 - at % 2]
                asked = [(Query(qid=each.key, text=each.question, language=language), language)]
                prepared = {
                    spec_name(spec): questions.prepared(asked, Condition(level, spec))[0]
                    for spec in self.config.rewriters
                }
                rewritten = {name: record.rewrite for name, record in prepared.items() if name != NONE}
                yield ExamplePart(language=language, level=level, text=prepared[NONE].text, rewritten=rewritten)

    # --- what it would take ---

    def _what(self, bench: Bench, asking: Asking, untold: str | None) -> Iterator[str]:
        count = sum(len(self._ideals(bench, code)) for code in self.config.languages)
        noisy = (len(self.config.levels) - 1) * self.config.draws + 1
        tried = plural(len(self.config.rewriters), "rewriter")
        yield f"{plural(count * noisy, 'question')}, {tried}, {plural(len(bench.embedders), 'embedder')} by cosine"
        searches = len(asking.questions) * len(conditions(self.config))
        yield untold or f"{plural(searches, 'question')} searched, by words, by vectors and by both"

    def _rehearse(self, bench: Bench, questions: Questions, asking: Asking) -> None:
        for embedder in bench.embedders.values():
            if embedder.models:
                embedder.embed(bench.passages.sample(len(bench.passages)))
        for condition in conditions(self.config):
            texts = [record.rewrite for record in questions.prepared(asking.questions, condition)]
            for embedder in bench.embedders.values():
                if embedder.models:
                    embedder.embed_queries(texts)

    def _rewriting(self, bench: Bench, questions: Questions) -> Iterator[Estimate]:
        if (rehearsal := bench.rehearsal) is None:
            return
        for model in questions.models:
            asked, price = rehearsal.asked(model, REWRITE), bench.workshop.llm.price(model)
            yield line_of(REWRITE, model, asked, price, answer=REWRITTEN)

    def _reranking(self, bench: Bench, asking: Asking) -> Iterator[Estimate]:
        asked = [query.text for query, _ in asking.questions]
        times = len(asked) * len(conditions(self.config))
        for reranker in bench.rerankers.values():
            if reranker.models:
                yield from reranking(reranker, times, self.config.depth, asked, bench.passages.sample(SAMPLE))
