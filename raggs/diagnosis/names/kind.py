"""The kind: bundles are drawn, perturbed, scored by all embedders and rerankers, and told as margins and changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from raggs.base.arrays import Floats
from raggs.base.hashing import hash_value
from raggs.base.settings import Causes
from raggs.base.text import plural
from raggs.diagnosis.base import Diagnosis, Forecast
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.names.drawing import Lists, corpus_lists, draw, field_rows, own_lists
from raggs.diagnosis.names.endtoend import lacking, perturb_golden, rehearse_golden, unsearched
from raggs.diagnosis.names.models import AblationPart, EndToEnd, NamesConfig, NamesFound, SubjectPart
from raggs.diagnosis.names.scoring import (
    ByEmbedder,
    ByReranker,
    Hygiene,
    Runs,
    Scorer,
    ablation_part,
    kept_scores,
    mean_part,
    name_by_topic,
    small_share,
)
from raggs.diagnosis.names.showing import passed, plots, sections, verdict
from raggs.evaluation.document import Section
from raggs.parts import perturbers
from raggs.parts.perturbers.base import Perturber
from raggs.runs.manifests.models import Estimate
from raggs.stats.probes.names import Margins, change, margins, mean_of

OWN = "raggs' own lists"


class Names(Diagnosis[NamesFound]):
    """How much of a score hangs on who is named, and what destroys that."""

    Config = NamesConfig
    Result = NamesFound
    TITLE = "Does it still find the right person?"
    NEEDS = ("embedder",)
    TAKES = ("reranker", "golden")
    TIME = "a minute"
    VERSION = 1
    config: NamesConfig
    _of_corpus: Lists | None = None

    @cached_property
    def perturbers(self) -> tuple[Perturber, ...]:
        """What is done to the texts, in the order in which it was named."""
        return tuple(perturbers.REGISTRY.of(spec)(spec) for spec in self.config.perturbers)

    def causes(self, bench: Bench) -> Causes:
        done: Causes = {each.config.type: each.causes() for each in self.perturbers}
        searched = bench.causes("corpus") if self._ends(bench) else None
        return {**super().causes(bench), "perturbers": done, "lists": self._list_causes(bench), "searched": searched}

    def check(self, bench: Bench) -> None:
        """Draw the names: too few of them are told before anything is embedded."""
        for language in self.config.languages:
            self._lists(bench, language)

    def forecast(self, bench: Bench) -> Forecast:
        """Embedders are asked in rehearsal, which knows what was paid for; rerankers are reckoned."""
        paid = [scorer for scorer in self._scorers(bench) if isinstance(scorer, ByEmbedder) and scorer.paid]
        for scorer in paid:
            for language in self.config.languages:
                drawn = self._drawn(bench, language)
                for each in (None, *self.perturbers):
                    scorer.score(self._perturbed(each, drawn, bench.seed))
        if self._ends(bench):
            rehearse_golden(bench, self.config, self.perturbers)
        return Forecast((self._what(bench),), (*bench.asked(), *self._reranking(bench)))

    def _reranking(self, bench: Bench) -> Iterator[Estimate]:
        conditions = len(self.config.languages) * (1 + len(self.perturbers))
        for scorer in self._scorers(bench):
            if isinstance(scorer, ByReranker):
                drawn = self._drawn(bench, self.config.languages[0])[: scorer.runs]
                yield from scorer.outlays(drawn, conditions)

    def measure(self, bench: Bench) -> NamesFound:
        found = [
            self._subject(bench, scorer, language)
            for scorer in self._scorers(bench)
            for language in self.config.languages
        ]
        least, most = self.config.least_loss, self.config.most_loss
        return NamesFound(
            verdict=verdict(found, least, most),
            passed=passed(found),
            source=OWN if self.config.name_field is None else f"the corpus' field {self.config.name_field}",
            names={language: self._names(bench, language) for language in self.config.languages},
            cleaned=not self.config.raw,
            least_loss=least,
            most_loss=most,
            subjects=tuple(found),
            end_to_end=self._end(bench, found),
        )

    def rests_on(self, found: NamesFound) -> int:
        return min(each.questions for each in found.subjects)

    def sections(self, found: NamesFound) -> tuple[Section, ...]:
        return sections(found)

    def plots(self, found: NamesFound) -> Mapping[str, str]:
        return plots(found)

    def _end(self, bench: Bench, found: Sequence[SubjectPart]) -> EndToEnd | None:
        if not (self.config.end_to_end and bench.has("golden")):
            return None
        if (note := lacking(bench)) is not None:
            return unsearched(bench, self.config, note)
        return perturb_golden(bench, self.config, self.perturbers, found)

    def _ends(self, bench: Bench) -> bool:
        """Whether a golden set is there to be perturbed, with its questions and its corpus."""
        return self.config.end_to_end and bench.has("golden") and lacking(bench) is None

    # --- what is drawn ---

    def _lists(self, bench: Bench, language: str) -> Lists:
        if self.config.name_field is None or self.config.topic_field is None:
            return own_lists(language)
        if self._of_corpus is None:
            fields = self.config.name_field, self.config.topic_field
            self._of_corpus = corpus_lists(field_rows(bench.passages, *fields), fields)
        return self._of_corpus

    def _list_causes(self, bench: Bench) -> object:
        if self.config.name_field is not None:
            return bench.causes("corpus")
        found = [own_lists(language) for language in self.config.languages]
        return hash_value([[each.home, each.abroad, each.topics] for each in found])

    def _names(self, bench: Bench, language: str) -> int:
        lists = self._lists(bench, language)
        return len(lists.home) + len(lists.abroad)

    def _drawn(self, bench: Bench, language: str) -> Runs:
        lists, config = self._lists(bench, language), self.config
        return draw(lists, language, questions=config.questions, runs=config.runs, seed=bench.seed)

    @staticmethod
    def _perturbed(perturber: Perturber | None, drawn: Runs, seed: int) -> Runs:
        return drawn if perturber is None else [[perturber.bundle(each, seed) for each in run] for run in drawn]

    # --- who scores ---

    def _scorers(self, bench: Bench) -> Iterator[Scorer]:
        hygiene, runs = Hygiene(self.config.raw), self.config.runs
        for name, embedder in bench.embedders.items():
            yield ByEmbedder(name, embedder, runs, hygiene, bench)
        for name, reranker in bench.rerankers.items():
            yield ByReranker(name, reranker, min(runs, self.config.reranker_runs), hygiene, bench)

    def _what(self, bench: Bench) -> str:
        config, conditions = self.config, 1 + len(self.perturbers)
        bundles = config.questions * config.runs * len(config.languages) * conditions
        who = plural(len(bench.embedders), "embedder")
        more = f" and {plural(len(bench.rerankers), 'reranker')}" if bench.rerankers else ""
        return f"{plural(bundles, 'bundle')} of a question and five candidates, scored by {who}{more}"

    # --- what they find ---

    def _subject(self, bench: Bench, scorer: Scorer, language: str) -> SubjectPart:
        drawn, seed = self._drawn(bench, language)[: scorer.runs], bench.seed
        base = margins(self._scores(bench, scorer, drawn, None))
        return SubjectPart(
            scorer=scorer.name,
            what="embedder" if isinstance(scorer, ByEmbedder) else "reranker",
            language=language,
            questions=self.config.questions,
            runs=len(drawn),
            name=mean_part(mean_of(base.name, seed=seed)),
            topic=mean_part(mean_of(base.topic, seed=seed)),
            both=mean_part(mean_of(base.both, seed=seed)),
            small=small_share(base),
            ablations=tuple(self._ablation(bench, scorer, drawn, each, base) for each in self.perturbers),
            **name_by_topic(base, seed),
        )

    def _ablation(self, bench: Bench, scorer: Scorer, drawn: Runs, perturber: Perturber, base: Margins) -> AblationPart:
        after = margins(self._scores(bench, scorer, drawn, perturber))
        found = change(after.name, base.name, seed=bench.seed)
        limits = self.config.least_loss, self.config.most_loss
        return ablation_part(perturber.config.type, perturber.FAMILY, found, limits)

    def _scores(self, bench: Bench, scorer: Scorer, drawn: Runs, perturber: Perturber | None) -> Floats:
        language, done = drawn[0][0].language, None if perturber is None else perturber.causes()
        causes = {
            "version": self.VERSION,
            "drawn": [self._list_causes(bench), language, self.config.questions, len(drawn), bench.seed],
            "raw": self.config.raw,
            "perturber": done,
        }
        return kept_scores(bench, scorer, causes, self._perturbed(perturber, drawn, bench.seed))
