"""Diagnosis `names`: how much of a score depends on the named person, and which changes of a text remove this
dependence.

`models` contains settings, findings and the generated test cases (bundles). `scoring` scores the bundles by embedders
and rerankers. This module contains the diagnosis, its tables, plots and verdict.

Published figures of two paid embedders are shown next to the measured ones; raggs has not reproduced them. Source:
"Practical RAG Evaluation" (2025), tables 4.1, 4.2, 10 and 11: mean change of the name margin in percent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from raggs.base.arrays import Floats
from raggs.base.document import Legend, Section, Table, formatted, table_of, terms_of
from raggs.base.hashing import hash_value
from raggs.base.settings import Causes
from raggs.base.text import plural
from raggs.base.types import finite_or_none
from raggs.diagnosis.base import Bench, Diagnosis, join_with_and, some_of, verdict_sentences
from raggs.diagnosis.models import KeyFigure, NextAction
from raggs.diagnosis.names.models import (
    AblationPart,
    EndToEnd,
    NameLists,
    NamesConfig,
    NamesEndToEndPart,
    NamesFindings,
    SubjectPart,
    corpus_lists,
    draw,
    field_rows,
    own_lists,
)
from raggs.diagnosis.names.scoring import (
    MAX_SMALL_MARGIN_SHARE,
    EmbedderScorer,
    NameScorer,
    RerankerScorer,
    Runs,
    TextCleaning,
    is_within_limit,
    kept_scores,
    mean_part,
    missing_input,
    perturb_golden,
    rehearse_golden,
)
from raggs.evaluation.svg import ChartAxis, ForestRow, Point, chart, forest
from raggs.parts import perturbers
from raggs.parts.perturbers import Perturber
from raggs.stats.name_margins import LEAST_BASE, Margins, margin_change, margins, mean_of, ratio

SMALL_MARGIN_NOTE = "test cases with a base margin below 0.02 have no percentage"
LEGEND = (
    Legend("[ ]", "95% confidence interval over queries (bootstrap)"),
    Legend("✗", "limit not met"),
    Legend("?", "inconclusive: the interval contains the limit"),
)


def _all_scorers_section(found: NamesFindings) -> Section:
    """Return a table with one column for each scorer in each language."""
    head = ("change of the names", *(f"{each.scorer}, {each.language}" for each in found.subjects))
    rows = (
        (parts[0].label, *(formatted(part.percent.value, "+z.1f") + part.mark for part in parts))
        for parts in zip(*(each.ablations for each in found.subjects), strict=True)
    )
    return Section("Change of the name margin in percent", (), Table.of(head, rows), LEGEND[1:])


def _changes(found: NamesFindings, subject: SubjectPart) -> Section:
    left = max((part.left_out for part in subject.ablations), default=0)
    limits = (
        f"Limits: removing the identity must reduce the name margin by at least {found.min_drop:g}%; another "
        "form or layout by at most "
        f"{found.max_drop:g}%."
    )
    return Section(
        f"Name margin of {subject.scorer}, {subject.language}",
        (limits, f"{SMALL_MARGIN_NOTE}: {left:,} of {subject.questions * subject.runs:,}.") if left else (limits,),
        table_of(subject.ablations, "label", "family", "percent", "spread", "of_means", "absolute"),
        LEGEND,
    )


def _bases(found: NamesFindings) -> Section:
    names = ", ".join(f"{count:,} ({language})" for language, count in found.names.items())
    read = "after Unicode normalisation" if found.cleaned else "without Unicode normalisation"
    first = found.subjects[0]
    drawn = (
        f"{plural(first.questions, 'query')} per language, {plural(first.runs, 'repetition')}; "
        f"names of {found.source}: {names}; texts are embedded {read}."
    )
    return Section(
        "Margins on unchanged texts",
        (drawn,),
        table_of(found.subjects, "scorer", "language", "name", "spread", "topic", "both", "ratio"),
        terms=terms_of(found.subjects, "name", "topic", "spread"),
    )


def _searched(end: EndToEnd, subjects: Sequence[SubjectPart]) -> Section:
    title = f"Effect on {end.measure} of the golden set"
    if end.note is not None:
        return Section(title, (end.note,))
    told = [
        f"{end.questions:,} of {plural(end.judged, 'judged query')} contain names that occur in the corpus; "
        f"dense search in {plural(end.passages, 'passage')}."
    ]
    probed = list(dict.fromkeys(each.language for each in subjects))
    if end.language not in probed:
        told.append(
            f"Most of these queries are in {end.language}; the name margins in the table were measured in {probed[0]}."
        )
    found = end.prediction
    if found is not None and found.spearman is not None:
        bounds = "" if found.low is None or found.high is None else f" [{found.low:.2f}, {found.high:.2f}]"
        told.append(
            f"Rank correlation between the change in name margin and the change in {end.measure}, over {found.points} "
            f"points: {found.spearman:.2f}{bounds}."
        )
    columns = ("embedder", "label", "before", "after", "difference", "margin", "passages")
    return Section(title, tuple(told), table_of(end.changes, *columns), LEGEND[:1])


LARGE, VOYAGE = "text-embedding-3-large", "voyage-3.5"
ORDER = (
    "hard_name_mask", "gibberish_name", "edit_distance_near_miss", "remove_label", "strip_diacritics", "initials_form",
    "name_order_inversion", "case_punct_perturb", "author_position_shift", "unicode_normalization_stress",
)  # fmt: skip
CHANGES: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "en": {
        LARGE: (-100, -76.9, -69.3, -3.0, 0, -11.0, -3.6, -3.0, 8.4, -6.9),
        VOYAGE: (-100, -68.0, -64.4, 15.7, 0, -8.5, -3.2, -7.4, -6.2, -15.1),
    },
    "fr": {
        LARGE: (-100, -71.6, -76.2, 6.1, 2.3, -10.7, 5.0, -3.4, 21.8, -7.9),
        VOYAGE: (-100, -71.4, -69.5, 18.1, -1.5, -18.0, -8.5, -12.6, 8.4, 1.7),
    },
}


def published(language: str, perturber: str) -> dict[str, float]:
    """Return the published changes in percent by embedder; empty if none was published."""
    if perturber not in ORDER:
        return {}
    return {name: values[ORDER.index(perturber)] for name, values in CHANGES.get(language, {}).items()}


KEY = {"bar": "limit met", "unclear": "limit not decided", "failed": "limit not met"}


# --- changes of the margin ------------------------------------------------------------------------------------


def _bars(subjects: Sequence[SubjectPart]) -> str:
    language, parts = subjects[0].language, subjects[0].ablations
    rows = []
    for number, (name, label) in enumerate((part.perturber, part.label) for part in parts):
        for subject in subjects:
            part = subject.ablations[number]
            percent = part.percent
            rows.append(
                ForestRow(
                    f"{label}, {subject.scorer}" if len(subjects) > 1 else label,
                    percent.value,
                    percent.low,
                    percent.high,
                    part.holds is not None,
                    part.holds is False,
                    {f"{model}, published": value for model, value in published(language, name).items()},
                )
            )
    return forest(
        f"How does each change of a name shift the name margin? ({language})",
        rows,
        "change of the name margin in percent",
        changes=True,
        sides=("smaller margin", "larger margin"),
        key=KEY,
    )


# --- margin against recall ------------------------------------------------------------------------------------


def _margin_plot(measure: str, changes: Sequence[NamesEndToEndPart]) -> str:
    points = [
        (each, each.margin, each.difference)
        for each in changes
        if each.margin is not None and each.difference is not None
    ]
    return chart(
        f"Does a smaller name margin lower {measure}?",
        (ChartAxis("change of the name margin in percent"), ChartAxis(f"change of {measure}", (-1.0, 1.0))),
        points=[
            Point(x, y, each.label, f"{each.embedder}, {each.label}: {x:+.1f}%, {y:+.3f}") for each, x, y in points
        ],
    )


ADVICE = {
    "embedder": "fuse it with a lexical retriever (RRF), which treats names as ordinary words",
    "reranker": "try another reranker, or fuse its order with a lexical one (RRF)",
}


def blind(subject: SubjectPart) -> bool:
    """Return whether the scorer hardly distinguishes names in this language: too many test cases have a small margin.
    If so, changes of the margin are meaningless.
    """
    return subject.small > MAX_SMALL_MARGIN_SHARE


def is_passed(subjects: Sequence[SubjectPart]) -> bool | None:
    """Return whether all scorers meet the limits in all languages; None if no scorer fails but some results are
    inconclusive.
    """
    if any(blind(each) or _failed(each) for each in subjects):
        return False
    return None if any(_inconclusive_ablations(each) for each in subjects) else True


def verdict(subjects: Sequence[SubjectPart], least: float, most: float) -> str:
    """Return which scorer fails and by which changes."""
    scorers = list(dict.fromkeys(each.scorer for each in subjects))
    wrong = [
        text for name in scorers if (text := _failure_clause(name, [each for each in subjects if each.scorer == name]))
    ]
    if wrong:
        others = len(wrong) - 1
        more = [f"{plural(others, 'other scorer')} also fail{'s' * (others == 1)}"] if others else []
        return verdict_sentences("; ".join([wrong[0], *more]))
    kept = (
        f"removing the identity costs at least {least:g}% of the name margin, another form or layout at most {most:g}%"
    )
    if doubted := [
        f"{each.scorer} under {some_of([part.label for part in _inconclusive_ablations(each)])} ({each.language})"
        for each in subjects
        if _inconclusive_ablations(each)
    ]:
        return verdict_sentences(
            f"Inconclusive: {some_of(doubted)} cannot be distinguished from the limit ({kept})",
        )
    return verdict_sentences(
        f"{some_of(scorers)} {'distinguishes' if len(scorers) == 1 else 'distinguish'} names within the limits: {kept}"
    )


def _failure_clause(scorer: str, subjects: Sequence[SubjectPart]) -> str | None:
    """Return a clause about the failures of one scorer in all languages, or None if it does not fail."""
    told = [f"it hardly distinguishes names in {each.language}" for each in subjects if blind(each)]
    failed: dict[str, list[tuple[str, AblationPart]]] = {}
    for each in subjects:
        for part in [] if blind(each) else _failed(each):
            failed.setdefault(part.perturber, []).append((each.language, part))
    told += [_loss_clause(parts) for parts in failed.values()]
    return f"{scorer} fails: {some_of(told)}" if told else None


def _loss_clause(parts: Sequence[tuple[str, AblationPart]]) -> str:
    """Return a clause such as ``"initials only" costs 27% (en) and 33% (fr) of the name margin``."""
    changes = [(language, part.percent.value or 0.0) for language, part in parts]
    identity = parts[0][1].family == "identity"
    figures = join_with_and(
        f"{100 + change if identity else -change:.0f}% ({language})" for language, change in changes
    )
    return f'"{parts[0][1].label}" {"leaves" if identity else "costs"} {figures} of the name margin'


def _failed(subject: SubjectPart) -> list[AblationPart]:
    return [part for part in subject.ablations if part.holds is False]


def _inconclusive_ablations(subject: SubjectPart) -> list[AblationPart]:
    return [part for part in subject.ablations if part.holds is None]


OWN_LISTS_LABEL = "raggs' built-in lists"


class NamesDiagnosis(Diagnosis[NamesFindings]):
    """Test whether retrieval still finds the right person: name margins, and what destroys them.

    Each query names a person and a topic, and has five candidates: the right one, two with other people, one on
    another topic, and one with another person and another topic. Ten changes of the texts show what an embedder or
    reranker relies on. If you pass a golden set, the names in its queries and passages are also changed, and the
    passages are searched again.
    """

    Config = NamesConfig
    Result = NamesFindings
    TITLE = "Does the embedder find the right person if a name is written differently?"
    EXAMPLES = (
        "",
        "--embedder wordllama --embedder onnx:models/minilm",
        "-c raggs.yaml --name-field author --topic-field title",
        "--golden runs/demo --language en",
    )
    NEEDS = ("embedder",)
    TAKES = ("reranker", "golden")
    TIME = "a minute"
    VERSION = 1
    config: NamesConfig
    _of_corpus: NameLists | None = None

    @cached_property
    def perturbers(self) -> tuple[Perturber, ...]:
        """The perturbers, which change the texts, in the given order."""
        return tuple(perturbers.REGISTRY.of(spec)(spec) for spec in self.config.perturbers)

    def causes(self, bench: Bench) -> Causes:
        done: Causes = {each.config.type: each.causes() for each in self.perturbers}
        searched = bench.causes("corpus") if self._ends(bench) else None
        return {**super().causes(bench), "perturbers": done, "lists": self._list_causes(bench), "searched": searched}

    def check(self, bench: Bench) -> None:
        """Read the lists of names now, so that an error about too few names is raised before anything is embedded."""
        for language in self.config.languages:
            self._lists(bench, language)

    def forecast(self, bench: Bench) -> tuple[str, ...]:
        for scorer in (each for each in self._scorers(bench) if each.paid):
            for language in self.config.languages:
                drawn = self._drawn(bench, language)[: scorer.runs]
                for each in (None, *self.perturbers):
                    scorer.ask(self._perturbed(each, drawn, bench.seed))
        if self._ends(bench):
            rehearse_golden(bench, self.config, self.perturbers)
        config = self.config
        bundles = config.questions * config.runs * len(config.languages) * (1 + len(self.perturbers))
        who = plural(len(bench.embedders), "embedder")
        more = f" and {plural(len(bench.rerankers), 'reranker')}" if bench.rerankers else ""
        return (f"{plural(bundles, 'test case')} (a query and five candidates), scored by {who}{more}",)

    def measure(self, bench: Bench) -> NamesFindings:
        found = [
            self._subject(bench, scorer, language)
            for scorer in self._scorers(bench)
            for language in self.config.languages
        ]
        least, most = self.config.min_drop, self.config.max_drop
        drawn = {language: self._lists(bench, language) for language in self.config.languages}
        return NamesFindings(
            verdict=verdict(found, least, most),
            passed=is_passed(found),
            source=OWN_LISTS_LABEL
            if self.config.name_field is None
            else f"the field {self.config.name_field} of the corpus",
            names={language: len(lists.home) + len(lists.abroad) for language, lists in drawn.items()},
            cleaned=not self.config.raw,
            min_drop=least,
            max_drop=most,
            subjects=tuple(found),
            end_to_end=perturb_golden(bench, self.config, self.perturbers, found) if self._wanted(bench) else None,
        )

    def decision_effect(self, found: NamesFindings) -> str:
        return "Unchanged for these queries: this diagnosis tests names. It matters if your users search for people."

    def action(self, found: NamesFindings) -> NextAction | None:
        failed = next((each for each in found.subjects if blind(each) or _failed(each)), None)
        text = "increase --questions and --runs" if failed is None else ADVICE[failed.what]
        return None if failed is None and found.passed is not None else NextAction(text=text)

    def is_conclusive(self, found: NamesFindings) -> bool:
        return super().is_conclusive(found) and found.passed is not None

    def rests_on(self, found: NamesFindings) -> int:
        return min(each.questions for each in found.subjects)

    def key_figure(self, found: NamesFindings) -> KeyFigure | None:
        """Return the change of the name margin that decides: the first that fails, else the first that is
        inconclusive, in the language in which it is worst.
        """
        parts = [(each, part) for each in found.subjects if not blind(each) for part in each.ablations]
        for state in (False, None):
            for first, deciding in [(each, part) for each, part in parts if part.holds is state][:1]:
                key = (first.scorer, deciding.perturber, state)
                same = [(each, part) for each, part in parts if (each.scorer, part.perturber, part.holds) == key]
                worst = max if deciding.family == "identity" else min  # a change of identity must reduce the margin
                each, part = worst(same, key=lambda pair: pair[1].percent.value or 0.0)
                at = part.percent
                label = f'change of the name margin by "{part.label}" ({each.scorer}, {each.language})'
                return KeyFigure.of(label, (at.value, at.low, at.high), "+z.1%", 0.01)
        return None

    def sections(self, found: NamesFindings) -> tuple[Section, ...]:
        several = (_all_scorers_section(found),) if len(found.subjects) > 1 else ()
        ends = () if found.end_to_end is None else (_searched(found.end_to_end, found.subjects),)
        return (*several, *(_changes(found, each) for each in found.subjects), _bases(found), *ends)

    def plots(self, found: NamesFindings) -> Mapping[str, str]:
        by_language: dict[str, list[SubjectPart]] = {}
        for each in found.subjects:
            by_language.setdefault(each.language, []).append(each)
        drawn = {language: _bars(subjects) for language, subjects in by_language.items()}
        end = found.end_to_end
        return drawn if end is None or not end.changes else {**drawn, "recall": _margin_plot(end.measure, end.changes)}

    def _wanted(self, bench: Bench) -> bool:
        """Return whether searching the golden set was requested, and the golden set is available."""
        return self.config.end_to_end and bench.has("golden")

    def _ends(self, bench: Bench) -> bool:
        """Return whether a golden set can be searched: it is requested, and its queries and corpus are available."""
        return self._wanted(bench) and missing_input(bench) is None

    # --- names and bundles ---

    def _lists(self, bench: Bench, language: str) -> NameLists:
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

    def _drawn(self, bench: Bench, language: str) -> Runs:
        lists, config = self._lists(bench, language), self.config
        return draw(lists, language, questions=config.questions, runs=config.runs, seed=bench.seed)

    @staticmethod
    def _perturbed(perturber: Perturber | None, drawn: Runs, seed: int) -> Runs:
        return drawn if perturber is None else [[perturber.bundle(each, seed) for each in run] for run in drawn]

    # --- scorers ---

    def _scorers(self, bench: Bench) -> Iterator[NameScorer]:
        hygiene, runs = TextCleaning(self.config.raw), self.config.runs
        for name, embedder in bench.embedders.items():
            yield EmbedderScorer(name, embedder, runs, hygiene, bench)
        for name, reranker in bench.rerankers.items():
            yield RerankerScorer(name, reranker, min(runs, self.config.reranker_runs), hygiene, bench)

    # --- findings ---

    def _subject(self, bench: Bench, scorer: NameScorer, language: str) -> SubjectPart:
        drawn, seed = self._drawn(bench, language)[: scorer.runs], bench.seed
        scorer.fit(drawn)
        base = margins(self._scores(bench, scorer, drawn, None))
        by_topic, bounds = ratio(base.name, base.topic, seed=seed)
        return SubjectPart(
            scorer=scorer.name,
            what="embedder" if isinstance(scorer, EmbedderScorer) else "reranker",
            language=language,
            questions=self.config.questions,
            runs=len(drawn),
            name=mean_part(mean_of(base.name, seed=seed)),
            topic=mean_part(mean_of(base.topic, seed=seed)),
            both=mean_part(mean_of(base.both, seed=seed)),
            ratio=finite_or_none(by_topic),
            ratio_low=finite_or_none(bounds.low),
            ratio_high=finite_or_none(bounds.high),
            small=float((base.name < LEAST_BASE).mean()),
            ablations=tuple(self._ablation(bench, scorer, drawn, each, base) for each in self.perturbers),
        )

    def _ablation(
        self, bench: Bench, scorer: NameScorer, drawn: Runs, perturber: Perturber, base: Margins
    ) -> AblationPart:
        after = margins(self._scores(bench, scorer, drawn, perturber))
        found = margin_change(after.name, base.name, seed=bench.seed)
        percent = mean_part(found.percent)
        return AblationPart(
            perturber=perturber.config.type,
            family=perturber.FAMILY,
            percent=percent,
            of_means=finite_or_none(found.of_means),
            of_means_low=finite_or_none(found.of_means_bounds.low),
            of_means_high=finite_or_none(found.of_means_bounds.high),
            absolute=mean_part(found.absolute),
            left_out=found.left_out,
            holds=is_within_limit(percent, perturber.FAMILY, self.config.min_drop, self.config.max_drop),
        )

    def _scores(self, bench: Bench, scorer: NameScorer, drawn: Runs, perturber: Perturber | None) -> Floats:
        language, done = drawn[0][0].language, None if perturber is None else perturber.causes()
        causes = {
            "version": self.VERSION,
            "drawn": [self._list_causes(bench), language, self.config.questions, len(drawn), bench.seed],
            "raw": self.config.raw,
            "perturber": done,
        }
        return kept_scores(bench, scorer, causes, self._perturbed(perturber, drawn, bench.seed))
