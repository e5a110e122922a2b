"""Diagnosis `noise`: how much quality conversational noise costs, and how much of this loss rewriting recovers.

The ideal text of a query is the text that answers it best. `measuring` compares noisy and rewritten queries with
their ideal texts by cosine. `losses` compares their search results on a golden set. This module contains the diagnosis,
its tables and plots.

Cosines published for other models are shown next to the measured ones: "Practical RAG Evaluation" (2025), table 12.
raggs has not reproduced them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from raggs.base.document import (
    Column,
    ColumnSpec,
    Legend,
    NumberForm,
    Section,
    Table,
    table_of,
    terms_of,
    without_intervals,
)
from raggs.base.errors import PrerequisiteError
from raggs.base.hashing import hash_value
from raggs.base.settings import Causes
from raggs.base.text import plural
from raggs.base.types import Number
from raggs.chunking.models import spec_name
from raggs.diagnosis.base import Bench, Diagnosis, capital, join_with_and, verdict_sentences
from raggs.diagnosis.models import KeyFigure, MeanPart, NextAction
from raggs.diagnosis.noise.losses import HYBRID, NoiseLosses, SearchedQuestions, conditions, questions_of
from raggs.diagnosis.noise.measuring import (
    GOLDEN,
    NO_REWRITER,
    OWN_TEXTS_LABEL,
    Cosines,
    ExamplePart,
    IdealText,
    LevelPart,
    NoiseCondition,
    NoiseDiagnosisConfig,
    NoiseEndToEndPart,
    NoiseFindings,
    NoisyQuestions,
    TargetPart,
    golden_questions,
    own_questions,
)
from raggs.evaluation.svg import ChartAxis, Curve, ForestRow, chart, forest

LARGE, SMALL_MODEL = "large model, published", "small model, published"
TABLE_12: dict[tuple[str, int], tuple[float, float]] = {
    ("fr", 0): (0.818, 0.936),
    ("fr", 2): (0.653, 0.757),
    ("fr", 4): (0.522, 0.559),
    ("en", 0): (0.828, 0.908),
    ("en", 2): (0.749, 0.806),
    ("en", 4): (0.593, 0.634),
}


def targets(languages: tuple[str, ...]) -> tuple[TargetPart, ...]:
    """Return the published cosines of these languages as a table, by language and noise level."""
    return tuple(
        TargetPart(model=model, language=language, level=level, cosine=cosine)
        for (language, level), pair in TABLE_12.items()
        if language in languages
        for model, cosine in zip((LARGE, SMALL_MODEL), pair, strict=True)
    )


PUBLISHED = Legend("published", "published results of the study that this diagnosis follows (other models and queries)")
INTERVAL_LEGEND = Legend("[ ]", "95% confidence interval over queries (paired bootstrap)")
LOST_LEGEND = Legend("lost", "value with noise minus value without noise; negative: noise reduces the measure")
REGAINED_LEGEND = Legend(
    "back", "share of the loss that the rewriter recovers; – if the noise has no significant effect"
)


def _cosines(found: NoiseFindings) -> Section:
    counted = ", ".join(f"{count} in {language}" for language, count in found.questions.items())
    told = f"{found.source}: {counted}, {plural(found.draws, 'random draw')} of noise: {', '.join(found.noises)}."
    published = {(each.language, each.level, each.model): each.cosine for each in found.targets}

    def target(model: str) -> ColumnSpec:
        return Column(
            model
        ), lambda part: published.get((part.language, part.level, model)) if part.rewriter == NO_REWRITER else None

    columns = ("embedder", "language", "level", "rewriter", "cosine", "changed", "changed_percent", "regained")
    table = table_of(found.cosines, *columns, target(LARGE), target(SMALL_MODEL))
    return Section(
        "Cosine of the query to its ideal text", (told,), table, (), (INTERVAL_LEGEND, REGAINED_LEGEND, PUBLISHED)
    )


def _search_sections(found: NoiseFindings) -> Iterator[Section]:
    """Yield the results of the searches, and the effect of rewriting on queries without noise."""
    if found.untold is not None:
        yield Section("Retrieval with noise", (found.untold,))
        return
    others = f"; {found.strange} in other languages omitted" if found.strange else ""
    told = f"{plural(found.searched, 'query')} of the golden set, unchanged and with noise{others}."
    ends = {(part.system, part.measure, part.level, part.rewriter): part for part in found.ends}

    def beside(title: str, form: NumberForm, name: str, rewriter: str, level: int | None = None) -> ColumnSpec:
        def value(part: NoiseEndToEndPart) -> object:
            return getattr(ends[part.system, part.measure, part.level if level is None else level, rewriter], name)

        return Column(title, form), value

    tried = [name for name in dict.fromkeys(part.rewriter for part in found.ends) if name != NO_REWRITER]
    columns = [
        *("system", "level", "measure", beside("without noise", "score", "mean", NO_REWRITER, 0), "mean"),
        beside("lost", "signed", "change", NO_REWRITER),
    ]
    for name in tried:
        columns += [beside(f"gained by {name}", "signed", "gained", name)]
        columns += [beside(f"recovered by {name}", "share", "regained", name)]
    noisy = [part for part in found.ends if part.level and part.rewriter == NO_REWRITER]
    terms = (INTERVAL_LEGEND, LOST_LEGEND, *([replace(REGAINED_LEGEND, sign="recovered")] if tried else []))
    yield Section("Retrieval with noise", (told,), table_of(noisy, *columns), (), terms)
    if tried:
        parts = [part for part in found.ends if part.level == 0 and part.rewriter != NO_REWRITER]
        worse = [part for part in parts if part.change.high is not None and part.change.high < 0]
        named = ", ".join(f"{part.rewriter} ({part.system}, {part.measure})" for part in worse)
        told = f"Rewriting queries without noise reduces: {named}."
        told = told if worse else "Rewriting queries without noise has no significant cost."
        table = table_of(parts, "system", "rewriter", "measure", "change")
        yield Section("Queries without noise", (told,), table, (), (INTERVAL_LEGEND,))


def _shuffles(found: NoiseFindings) -> Iterator[Section]:
    if table := table_of(found.shuffles, "system", "level", "rewriter", "k", "overlap", "tau"):
        terms = (*terms_of(found.shuffles, "overlap", "tau"), INTERVAL_LEGEND)
        yield Section("Similarity of the lists with and without noise", (), table, (), terms)


# --- plots --------------------------------------------------------------------------------------------------


def _curves(name: str, parts: Sequence[LevelPart]) -> str:
    lines = dict.fromkeys((part.language, part.rewriter) for part in parts)
    levels = sorted({part.level for part in parts})
    drawn = [
        Curve(
            (f"{language}, {'unchanged' if rewriter == NO_REWRITER else f'rewritten by {rewriter}'}",),
            tuple(
                (float(part.level), part.cosine.mean or 0.0)
                for part in parts
                if (part.language, part.rewriter) == (language, rewriter)
            ),
        )
        for language, rewriter in lines
    ]
    title = f"How far does noise move queries from their ideal texts? {name}"
    axes = (
        ChartAxis("noise level", ticks=[float(level) for level in levels]),
        ChartAxis("mean cosine of the query and its ideal text", (-1.0, 1.0)),
    )
    return chart(title, axes, lines=drawn)


def _forest(ends: Sequence[NoiseEndToEndPart]) -> str:
    """Return the plot of each system's loss by the highest noise level, without rewriting and with each rewriter."""
    level, measure = max(part.level for part in ends), ends[0].measure
    shown = [part for part in ends if (part.level, part.measure) == (level, measure)]
    rows = [
        ForestRow(
            f"{part.system}, {'unchanged' if part.rewriter == NO_REWRITER else part.rewriter}",
            part.change.mean or 0.0,
            part.change.low,
            part.change.high,
            part.change.high is not None and part.change.high < 0,
        )
        for part in shown
    ]
    title = f"How much does noise of level {level} change {measure}?"
    return forest(title, rows, f"mean change of {measure}, with its interval", changes=True)


def verdict(cosines: Sequence[LevelPart], ends: Sequence[NoiseEndToEndPart], untold: str | None = None) -> str:
    """Return the cost of noise in a search. If nothing was searched, or the cost is not
    significant, return the effect on cosines and this reason instead.

    Args:
        cosines: results by cosine.
        ends: results of searches.
        untold: reason why nothing was searched; None if the searches were made.
    """
    level, measure, system, parts = _deciding(ends)
    lost = _loss_of(parts)
    if lost.mean is not None and lost.high is not None and lost.high < 0:
        costs = f"Noise of level {level} reduces {measure} of {system} search by {-100 * lost.mean:.1f} points"
        name, back = _recovery(parts)
        return verdict_sentences(costs if back is None else f"{costs}; rewriter {name} recovers {_regained_text(back)}")
    if lost.mean is not None:
        untold = f"Its effect on {measure} of {system} search is not significant ({100 * lost.mean:+.1f} points)"
    elif ends:
        untold = f"{capital(measure)} is not defined for any searched query"
    return verdict_sentences(_of_embedder(cosines), "" if untold is None else untold.removesuffix("."))


def _deciding(ends: Sequence[NoiseEndToEndPart]) -> tuple[int, str, str, list[NoiseEndToEndPart]]:
    """Return level, measure and system of the searches that the verdict is about, and their results."""
    level, measure, system = (max(part.level for part in ends), ends[0].measure, _system(ends)) if ends else (0, "", "")
    parts = [part for part in ends if (part.system, part.level, part.measure) == (system, level, measure)]
    return level, measure, system, parts


def _loss_of(parts: Sequence[NoiseEndToEndPart]) -> MeanPart:
    """Return the change by noise without a rewriter."""
    return next((part.change for part in parts if part.rewriter == NO_REWRITER), MeanPart())


def best_rewriter(parts: Iterable[tuple[str, Number]]) -> str | None:
    """Return the rewriter with the highest mean; None if no rewriter was tested or none has a value."""
    sums: dict[str, list[float]] = {}
    for name, value in parts:
        if name != NO_REWRITER and value is not None:
            sums.setdefault(name, []).append(value)
    return max(sums, key=lambda name: sum(sums[name]) / len(sums[name]), default=None)


def _of_embedder(cosines: Sequence[LevelPart]) -> str:
    level = max(part.level for part in cosines)
    noisy = [part for part in cosines if part.level == level]
    worst = min((part for part in noisy if part.rewriter == NO_REWRITER), key=lambda part: part.percent or 0).embedder
    parts = [part for part in noisy if part.embedder == worst]
    costs = join_with_and(
        f"{-(part.percent or 0):.0f}% in {part.language}" for part in parts if part.rewriter == NO_REWRITER
    )
    told = f"Noise of level {level} reduces the cosine of query and ideal text by {costs} ({worst})"
    name = best_rewriter((part.rewriter, part.cosine.mean) for part in parts)
    if name is None:
        return told
    own = [part for part in parts if part.rewriter == name]
    shares = join_with_and(_regained_text(part.regained, part.language) for part in own)
    return f"{told}; rewriter {name} recovers {shares}"


def _recovery(parts: Sequence[NoiseEndToEndPart]) -> tuple[str | None, MeanPart | None]:
    """Return the best rewriter, and the share of the loss that it recovers."""
    name = best_rewriter((part.rewriter, part.mean.mean) for part in parts)
    return name, next((part.regained for part in parts if part.rewriter == name), None)


def _system(ends: Sequence[NoiseEndToEndPart]) -> str:
    """Return the system for the verdict: the last one that reranks, or, if none does, the first hybrid one."""
    names = list(dict.fromkeys(part.system for part in ends))
    reranked = [name for name in names if name.startswith("reranked")]
    return (reranked[-1:] or [name for name in names if name.startswith(HYBRID)] or names)[0]


def _regained_text(part: MeanPart, language: str = "") -> str:
    share = "an unknown share of the loss" if part.mean is None else f"{100 * part.mean:.0f}% of the loss"
    if part.low is not None and part.low <= 0:
        share = (
            "no significant part of the loss"
            if part.high is None or part.high >= 0
            else "nothing and increases the loss"
        )
    return f"{share} in {language}" if language else share


MIN_IDEAL_TEXTS = 5  # minimum number of queries in a language for a comparison
MAX_EXAMPLES = 2  # number of example queries per language and noise level
NO_GOLDEN = "Nothing was searched: no golden set (pass --golden RUN|FILE)."
NO_CORPUS = "Nothing was searched: the corpus of the golden set is unknown (pass --config FILE)."
NOT_WANTED = "Nothing was searched: --cosine-only."


class NoiseDiagnosis(Diagnosis[NoiseFindings]):
    """Measure what greetings and digressions cost, and what rewriting recovers.

    Noise of several levels is added to queries, which are compared with the text that answers them best. With a
    golden set and its corpus, the noisy queries are also searched: by BM25, by vectors and by both. If a reranker is
    given, the results are also reranked.
    """

    Config = NoiseDiagnosisConfig
    Result = NoiseFindings
    TITLE = "How much does conversational noise cost, and how much does rewriting recover?"
    EXAMPLES = (
        "",
        "--golden runs/demo --rewriter clean",
        "-c raggs.yaml --rewriter llm:gpt-5-mini --dry-run",
    )
    NEEDS = ("embedder",)
    TAKES = ("golden", "reranker")
    TIME = "a minute"
    config: NoiseDiagnosisConfig

    def causes(self, bench: Bench) -> Causes:
        """Return everything that can change the findings, including noise, rewriters, and raggs' own queries."""
        questions = NoisyQuestions(bench, self.config)
        asked = [questions.causes(each) for each in conditions(self.config)]
        own = hash_value([[each.question, each.text] for code in self.config.languages for each in own_questions(code)])
        corpus = bench.workspace.corpus(bench.corpus).key if bench.has("corpus") else None
        return {**super().causes(bench), "questions": own, "asked": asked, "passages": corpus}

    def models(self, bench: Bench) -> tuple[str, ...]:
        """Return the paid models, including those of rewriters."""
        return tuple(dict.fromkeys([*super().models(bench), *NoisyQuestions(bench, self.config).models]))

    def check(self, bench: Bench) -> None:
        """Check that a requested golden set is available and has enough queries of each language.

        Raises:
            PrerequisiteError: the golden set or its corpus is missing.
            RaggsError: a language has too few queries, or an input cannot be read.
        """
        if self.config.of == "golden":
            bench.require(("golden", "corpus"))
            for language in self.config.languages:
                self._ideals(bench, language)

    def forecast(self, bench: Bench) -> tuple[str, ...]:
        questions = NoisyQuestions(bench, self.config)
        paid = questions.models or any(each.models for each in bench.embedders.values())
        for cosines in self._cosines(bench, questions) if paid else ():
            cosines.ask()
        asking, untold = self._searched(bench)
        if untold is None:
            every = conditions(self.config)
            if paid:
                found = (record for each in every for record in questions.prepared(asking.questions, each))
                bench.count_vectors([text for each in found for text in each.searched])
            texts = [query.text for query, _ in asking.questions]
            bench.count_reranking(texts, self.config.depth, len(texts) * len(every))
        config, searches = self.config, len(asking.questions) * len(conditions(self.config))
        count = sum(len(self._ideals(bench, code)) for code in config.languages)
        noisy = (len(config.levels) - 1) * config.draws + 1
        tried = plural(len(config.rewriters), "rewriter")
        return (
            f"{plural(count * noisy, 'query')}, {tried}, {plural(len(bench.embedders), 'embedder')} by cosine",
            untold or f"{plural(searches, 'query')} searched by lexical, dense and hybrid search",
        )

    def measure(self, bench: Bench) -> NoiseFindings:
        questions = NoisyQuestions(bench, self.config)
        found = tuple(part for cosines in self._cosines(bench, questions) for part in cosines.parts())
        asking, untold = self._searched(bench)
        losses = NoiseLosses(bench, questions, self.config, asking) if untold is None else None
        ends = () if losses is None else tuple(losses.ends())
        return NoiseFindings(
            verdict=verdict(found, ends, untold),
            passed=None,
            source=OWN_TEXTS_LABEL if self.config.of == "own" else GOLDEN,
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

    def decision_effect(self, found: NoiseFindings) -> str:
        return "Unchanged for these queries: this diagnosis adds noise to them. It matters if users write such queries."

    def action(self, found: NoiseFindings) -> NextAction | None:
        *_, parts = _deciding(found.ends)
        if (lost := _loss_of(parts)).high is None or lost.high >= 0:
            return None
        name, back = _recovery(parts)
        if back is not None and back.low is not None and back.low > 0:
            return NextAction(text=f"rewrite queries (embed.rewrite: {name})")
        text = "try a rewriter" if back is None else "try another rewriter, such as a model"
        # --dry-run estimates the cost first
        return NextAction(text=text, kind="noise", options="--rewriter llm:gpt-5-mini --dry-run")

    def rests_on(self, found: NoiseFindings) -> int:
        return found.searched if found.ends else min(found.questions.values())

    def sections(self, found: NoiseFindings) -> tuple[Section, ...]:
        tried = [("rewritten", name) for name in (found.examples[0].rewritten if found.examples else ())]
        examples = Section("Examples", (), table_of(found.examples, "language", "level", "text", *tried))
        return (_cosines(found), *_search_sections(found), *_shuffles(found), examples)

    def key_figure(self, found: NoiseFindings) -> KeyFigure | None:
        """Return the change of the first measure by the strongest noise; None if it is unknown."""
        level, measure, system, parts = _deciding(found.ends)
        lost = _loss_of(parts)
        label = f"change of {measure} of {system} search by noise of level {level}"
        return KeyFigure.in_points(label, (lost.mean, lost.low, lost.high))

    def main_table(self, found: NoiseFindings) -> Table | None:
        """Return the table of losses of the first metric, by system and noise level. If nothing was searched, return
        the table of cosines.
        """
        searched = found.model_copy(update={"ends": tuple(p for p in found.ends if p.measure == found.ends[0].measure)})
        table = next((each.table for each in (*_search_sections(searched), _cosines(found)) if each.table), None)
        return None if table is None else without_intervals(table)

    def plots(self, found: NoiseFindings) -> Mapping[str, str]:
        drawn = {}
        for number, name in enumerate(dict.fromkeys(part.embedder for part in found.cosines), start=1):
            parts = [part for part in found.cosines if part.embedder == name]
            drawn["cosine" if number == 1 else f"cosine-{number}"] = _curves(name, parts)
        return {**drawn, "search": _forest(found.ends)} if found.ends else drawn

    # --- queries ---

    def _ideals(self, bench: Bench, language: str) -> Sequence[IdealText]:
        if self.config.of == "own":
            return own_questions(language)
        found = golden_questions(bench, language)
        if len(found) < MIN_IDEAL_TEXTS:
            raise PrerequisiteError(
                f"{bench.golden.source} has {plural(len(found), 'query')} with labels in {language!r}; "
                f"at least {MIN_IDEAL_TEXTS} are needed",
                remedy="choose languages with --language CODE, or use the built-in queries: --of own",
            )
        return found

    def _searched(self, bench: Bench) -> tuple[SearchedQuestions, str | None]:
        """Return the queries of the golden set that are searched, or the reason why none is searched."""
        nothing = SearchedQuestions((), 0)
        if not self.config.retrieval:
            return nothing, NOT_WANTED
        if not bench.has("golden"):
            return nothing, NO_GOLDEN
        if not bench.has("corpus"):
            return nothing, NO_CORPUS
        asking = questions_of(bench, self.config.languages)
        if len(asking.questions) < MIN_IDEAL_TEXTS:
            spoken = ", ".join(self.config.languages)
            judged = plural(len(asking.questions), "judged query")
            told = f"{bench.golden.source} has {judged} in {spoken}; at least {MIN_IDEAL_TEXTS} are needed"
            return nothing, f"Nothing was searched: {told}."
        return asking, None

    def _cosines(self, bench: Bench, questions: NoisyQuestions) -> Iterator[Cosines]:
        for name in bench.embedders:
            for language in self.config.languages:
                yield Cosines(bench, questions, self.config, name, self._ideals(bench, language))

    def _examples(self, bench: Bench, questions: NoisyQuestions) -> Iterator[ExamplePart]:
        from raggs.base.artifacts import Query

        for language in self.config.languages:
            for at, each in enumerate(self._ideals(bench, language)[:MAX_EXAMPLES]):
                level = self.config.levels[-1 - at % 2]
                asked = [(Query(qid=each.key, text=each.question, language=language), language)]
                prepared = {
                    spec_name(spec): questions.prepared(asked, NoiseCondition(level, spec))[0]
                    for spec in self.config.rewriters
                }
                rewritten = {name: record.rewrite for name, record in prepared.items() if name != NO_REWRITER}
                yield ExamplePart(language=language, level=level, text=prepared[NO_REWRITER].text, rewritten=rewritten)
