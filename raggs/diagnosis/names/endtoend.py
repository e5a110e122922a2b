"""The same changes on a golden set: what they do to recall, and how well the cheap margin foretells that."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import NotFoundError
from raggs.base.jsontypes import Number, number
from raggs.base.progress import Building
from raggs.base.text import plural
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.names.models import EndPart, EndToEnd, NamesConfig, PredictionPart, SubjectPart
from raggs.diagnosis.names.scoring import Hygiene
from raggs.diagnosis.names.searching import Scene, measure_of
from raggs.evaluation.models import Part
from raggs.metrics.stats import compare
from raggs.parts.embedders.base import Embedder
from raggs.parts.perturbers.base import Perturber
from raggs.stats.probes.prediction import predict

NAME_IT = "name the run's YAML file, --config raggs.yaml, or a run, --golden RUN."
FEWEST = 5  # questions with names of which a change says anything


class ValuesRow(Part):
    """What one search found, as it is kept: a value a question, and how many passages were changed."""

    values: tuple[Number, ...]
    changed: int


def perturb_golden(
    bench: Bench, config: NamesConfig, perturbers: Sequence[Perturber], subjects: Sequence[SubjectPart]
) -> EndToEnd:
    """What each perturber does to the golden set's questions that hold names, with each embedder.

    Raises:
        RaggsError: the golden set or the corpus cannot be read, or a model failed.
    """
    scene = Scene(bench, Hygiene(config.raw), config.name_field, config.most_passages)
    found = EndToEnd(
        measure=measure_of(bench.judgments.qrels.scale, config.cutoff),
        questions=len(scene.names),
        judged=scene.judged,
        passages=len(scene.docs),
        language=scene.language,
    )
    if len(scene.names) < FEWEST:
        of = plural(scene.judged, "judged question")
        note = f"{len(scene.names)} of {of} name somebody who stands in the corpus: too few to tell."
        return found.model_copy(update={"note": note})
    searches = list(_searches(bench, config, scene, perturbers))
    changes = [_part(embedder, perturber, rows, subjects, scene, bench) for embedder, perturber, rows in searches]
    told = _prediction(changes, [_difference(rows) for *_, rows in searches], bench.seed)
    return found.model_copy(update={"changes": tuple(changes), "prediction": told})


def lacking(bench: Bench) -> str | None:
    """What a golden set lacks to be searched; None where nothing."""
    if not bench.has("corpus"):
        return f"There is no corpus to search in: {NAME_IT}"
    try:
        found = bench.queries
    except NotFoundError:
        found = {}
    return None if found else f"Labels alone hold no questions: {NAME_IT}"


def unsearched(bench: Bench, config: NamesConfig, note: str) -> EndToEnd:
    """A golden set that lacks something, and what that is."""
    measure = measure_of(bench.judgments.qrels.scale, config.cutoff)
    return EndToEnd(measure=measure, questions=0, judged=0, passages=0, language="", note=note)


def rehearse_golden(bench: Bench, config: NamesConfig, perturbers: Sequence[Perturber]) -> None:
    """Ask what `perturb_golden` would ask of embedders that are paid."""
    paid = [embedder for embedder in bench.embedders.values() if embedder.models]
    if paid:
        scene = Scene(bench, Hygiene(config.raw), config.name_field, config.most_passages)
        for each in (None, *perturbers) if len(scene.names) >= FEWEST else ():
            for embedder in paid:
                scene.rehearse(embedder, scene.under(each))


Rows = tuple[ValuesRow, ValuesRow]  # before and after


def _searches(
    bench: Bench, config: NamesConfig, scene: Scene, perturbers: Sequence[Perturber]
) -> Iterator[tuple[str, Perturber, Rows]]:
    total = len(bench.embedders) * len(perturbers)
    for number_, (name, embedder) in enumerate(bench.embedders.items()):
        before = _kept(bench, config, scene, embedder, None)
        for at, perturber in enumerate(perturbers, 1):
            yield name, perturber, (before, _kept(bench, config, scene, embedder, perturber))
            bench.hear(Building("searches of perturbed questions", number_ * len(perturbers) + at, total))


def _kept(
    bench: Bench, config: NamesConfig, scene: Scene, embedder: Embedder, perturber: Perturber | None
) -> ValuesRow:
    def make() -> list[ValuesRow]:
        texts = scene.under(perturber)
        values = scene.values(embedder, texts, config.cutoff)
        return [ValuesRow(values=tuple(map(number, values)), changed=texts.changed)]

    causes = {
        "of": [bench.causes("golden"), bench.causes("corpus"), bench.seed],
        "settings": [config.raw, config.name_field, config.cutoff, config.most_passages],
        "embedder": embedder.causes(),
        "perturber": None if perturber is None else perturber.causes(),
    }
    return bench.kept(["names", "golden", causes], ValuesRow, make)[0]


def _part(
    embedder: str, perturber: Perturber, rows: Rows, subjects: Sequence[SubjectPart], scene: Scene, bench: Bench
) -> EndPart:
    before, after = (_values(row) for row in rows)
    found = compare(after, before, seed=bench.seed).difference
    return EndPart(
        embedder=embedder,
        perturber=perturber.config.type,
        before=_mean(before),
        after=_mean(after),
        difference=number(found.mean),
        low=number(found.low),
        high=number(found.high),
        passages=rows[1].changed,
        margin=_margin(embedder, perturber, subjects, scene.language),
    )


def _margin(embedder: str, perturber: Perturber, subjects: Sequence[SubjectPart], language: str) -> Number:
    """What the probes say, in the language of the questions where it was probed."""
    own = [each for each in subjects if each.scorer == embedder and each.what == "embedder"]
    near = [each for each in own if each.language == language] or own
    parts = [part for each in near[:1] for part in each.ablations if part.perturber == perturber.config.type]
    return parts[0].of_means if parts else None


def _prediction(changes: Sequence[EndPart], differences: Sequence[Floats], seed: int) -> PredictionPart | None:
    pairs = zip(changes, differences, strict=True)
    points = [(part.margin, row) for part, row in pairs if part.margin is not None and row.size]
    if not points:
        return None
    found = predict(np.array([margin for margin, _ in points]), np.array([row for _, row in points]), seed=seed)
    return PredictionPart(
        spearman=number(found.spearman), low=number(found.low), high=number(found.high), points=found.points
    )


def _difference(rows: Rows) -> Floats:
    """By question on which the measure is defined, which hangs on the grades alone."""
    before, after = (_values(row) for row in rows)
    found: Floats = (after - before)[np.isfinite(before)]
    return found


def _values(row: ValuesRow) -> Floats:
    return np.array([math.nan if value is None else value for value in row.values])


def _mean(values: Floats) -> Number:
    there = values[np.isfinite(values)]
    return float(there.mean()) if there.size else None
