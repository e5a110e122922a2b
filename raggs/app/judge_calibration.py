"""Calibration of the probabilities that a judge states, fitted on human labels of a run or on a labelled collection.

Labels of a run count if they are blind. A leaderboard of `raggs judge bench` contains labels and probabilities, too.
A judge looks better on the labels of its fit than it is. The calibration file names these labels, so that other
commands can exclude them.

Hidden control items are not used. They are easy on purpose, so a calibration on them would make the judge overconfident
on other passages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from raggs.app.corrections import chance_of
from raggs.app.judge_check import blind_only, format_estimate
from raggs.app.leaderboard import JudgeBenchEntry, read_leaderboard
from raggs.app.review import calibration_files, items_of, reviews_of
from raggs.base.artifacts import JudgeRecord
from raggs.base.document import Summary, Table
from raggs.base.errors import DataError, UsageError
from raggs.base.files import disk, write_atomic
from raggs.base.text import did_you_mean, plural
from raggs.base.types import leaves
from raggs.parts.judges import by_people
from raggs.parts.reviews import ReviewStore, ever_drawn, read_draws
from raggs.runs.manifests.open_run import OpenedRun, open_run
from raggs.runs.manifests.store import dump_json
from raggs.stats.agreement import FEWEST_CASES, FEWEST_CLUSTERS, AgreementEstimate
from raggs.stats.calibration import (
    CalibrationEffect,
    CrossValidation,
    DistributionCalibration,
    cross_validate,
    fit_calibration,
)

Pair = tuple[str, str]  # query id and passage id
ANSWERS_REMEDY = "set judge.judge.answers to logprobs, decision or auto"


@dataclass(frozen=True)
class LabelledProbabilities:
    """Stated probabilities of a labelled passage.

    Attributes:
        drawn: whether the passage was drawn at random.
    """

    qid: str
    doc_id: str
    shares: tuple[float, ...]
    label: int
    drawn: bool = False


@dataclass(frozen=True)
class CalibrationRequest:
    """Calibration as requested.

    Attributes:
        source: run directory, or leaderboard.json of `raggs judge bench`.
        reviews: folder of the human labels [default: `reviews` next to the folder of runs].
        judge: name of the judge in the leaderboard; None if there is only one with probabilities.
        chosen: whether to use only labels that were not drawn at random.
        confidence: confidence level of the intervals.
        seed: random seed of the folds and of the bootstrap.
    """

    source: Path
    reviews: Path | None = None
    judge: str | None = None
    chosen: bool = False
    confidence: float = 0.95
    seed: int = 1


@dataclass(frozen=True)
class JudgeCalibration:
    """A calibration with its effect.

    Attributes:
        source: run directory or leaderboard.
        judge: name of the judge.
        labels, queries: number of labels of the fit, and of their queries.
        drawn: number of these labels that were drawn at random.
        fit: the calibration.
        effect: accuracy before and after, on queries that were not used for the fit.
        fitted_on: query id and passage id of each label of the fit, sorted.
        notes: limitations.
    """

    source: str
    judge: str
    labels: int
    queries: int
    drawn: int
    fit: DistributionCalibration
    effect: CrossValidation
    fitted_on: tuple[Pair, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Verdict on the calibrated probabilities, by the interval of the change of the log score."""
        change = self.effect.log_score.change
        return "better" if change.high < 0 else "worse" if change.low > 0 else "inconclusive"


def calibrate_judge(request: CalibrationRequest) -> JudgeCalibration:
    """Fit the calibration of a judge's probabilities. No model is called, and the source does not change.

    Raises:
        NotFoundError: the source does not exist.
        UsageError: the judge is unknown or ambiguous, or an option does not apply to the source.
        DataError: there are too few labels, or the probabilities are missing, already calibrated, means over several
            judges, or replaced by human labels.
    """
    if request.source.is_dir():
        if request.judge is not None:
            raise UsageError("--judge applies to a leaderboard, not to a run", remedy="omit --judge")
        judge, found, notes = _of_run(open_run(request.source), request)
    else:
        if request.chosen or request.reviews is not None:
            raise UsageError("--chosen and --reviews apply to a run, not to a leaderboard", remedy="omit them")
        judge, found, notes = _of_leaderboard(request)
    found = sorted(found, key=lambda each: (each.qid, each.doc_id))
    queries = [each.qid for each in found]
    if len(found) < FEWEST_CASES or len(set(queries)) < FEWEST_CLUSTERS:
        said = f"{plural(len(found), 'usable label')} of {plural(len(set(queries)), 'query')}"
        needed = f"a calibration needs {FEWEST_CASES} labels of {FEWEST_CLUSTERS} queries"
        run = quote(str(request.source))
        remedy = f"label more passages: raggs review serve {run}" if request.source.is_dir() else "use more --pairs"
        raise DataError(f"{said}, but {needed}", where=request.source, remedy=remedy)
    rows, labels = [each.shares for each in found], [each.label for each in found]
    return JudgeCalibration(
        source=str(request.source),
        judge=judge,
        labels=len(found),
        queries=len(set(queries)),
        drawn=sum(each.drawn for each in found),
        fit=fit_calibration(rows, labels),
        effect=cross_validate(rows, labels, queries, seed=request.seed, confidence=request.confidence),
        fitted_on=tuple((each.qid, each.doc_id) for each in found),
        notes=notes,
    )


def _of_run(run: OpenedRun, request: CalibrationRequest) -> tuple[str, list[LabelledProbabilities], tuple[str, ...]]:
    """Return the name of a run's judge, its probabilities of labelled passages, and notes.

    Each group of near-duplicates counts once, by its representative.
    """
    if calibration_files(run):
        raise DataError(
            "the probabilities of this run are already calibrated",
            where=run.folder,
            remedy="remove judge.judge.calibration and repeat the run: answers are cached, so no call is paid again",
        )
    store = ReviewStore(reviews_of(run.folder, request.reviews))
    said, present = store.held(), items_of(run)
    held = blind_only(said)
    settled, drawn = held.items(), ever_drawn(read_draws(store.folder), set(present.values()), said.grades)
    drawn |= {key for key in held.grades if chance_of(held, key) is not None}
    found, stated, several, samples = list[LabelledProbabilities](), 0, 0, 1
    judge, own = "", 0
    for record in run.typed("judge", JudgeRecord):
        own += by_people(record)
        if record.distribution is None or record.duplicate_of not in {None, record.doc_id}:
            continue
        stated += 1
        several += len(record.votes) > 1
        samples = max(samples, len(record.grades))
        key = present.get((record.qid, record.doc_id))
        if key is None or key not in settled or (request.chosen and key in drawn):
            continue
        judge, label = record.judge, settled[key].grade
        found.append(LabelledProbabilities(record.qid, record.doc_id, record.distribution, label, key in drawn))
    if not stated:
        said_ = "the judge of this run states no probabilities"
        raise DataError(said_, where=run.folder, remedy=f"{ANSWERS_REMEDY}, and repeat the run")
    if several:
        raise DataError(
            "the probabilities are means over several judges, but a calibration is for one of them",
            where=run.folder,
            remedy="repeat the run with each judge separately (--run-id), and calibrate each",
        )
    if own:
        raise DataError(
            f"the grades of {plural(own, 'passage')} are human labels, without probabilities of the judge",
            where=run.folder,
            remedy="repeat the run without human_first: the judge's answers are cached",
        )
    notes = [] if samples == 1 else [f"Fitted on means of {samples} samples, but applied to each sample."]
    if not request.chosen and (random := sum(each.drawn for each in found)):
        notes.append(
            f"{plural(random, 'label')} of a random draw are used. With --chosen, they stay available for "
            "raggs judge check and raggs eval --reviews."
        )
    return judge, found, tuple(notes)


def _of_leaderboard(request: CalibrationRequest) -> tuple[str, list[LabelledProbabilities], tuple[str, ...]]:
    """Return the name of a judge in a leaderboard, its probabilities of labelled pairs, and notes."""
    board = read_leaderboard(request.source)
    entry = _entry(board.entries, request)
    if any(place[-1:] == ("calibration",) and value is not None for place, value in leaves(dict(entry.settings))):
        raise DataError(
            f"the probabilities of {entry.judge} are already calibrated",
            where=request.source,
            remedy="remove calibration from its settings and repeat raggs judge bench: answers are cached",
        )
    if '"judges":' in dump_json(dict(entry.settings)):
        raise DataError(
            f"{entry.judge} consists of several judges, but a calibration is for one of them",
            where=request.source,
            remedy="list each judge separately in raggs judge bench, and calibrate each",
        )
    return (
        entry.judge,
        [
            LabelledProbabilities(qid, doc_id, shares, label)
            for shares, (qid, doc_id, label) in zip(entry.distributions, board.sample.labels, strict=False)
            if shares is not None
        ],
        ("The sample is stratified by label. In your pools, other labels may be more common.",),
    )


def _entry(entries: Sequence[JudgeBenchEntry], request: CalibrationRequest) -> JudgeBenchEntry:
    """Return the entry of the requested judge, or of the only one with probabilities.

    Raises:
        DataError: no entry has probabilities.
        UsageError: the requested judge has none, or several entries have probabilities and no judge is requested.
    """
    fit = {entry.judge: entry for entry in entries if entry.distributions}
    if not fit:
        raise DataError(
            "no judge of this leaderboard states probabilities", where=request.source, remedy=ANSWERS_REMEDY
        )
    if request.judge is None and len(fit) > 1:
        said = f"{plural(len(fit), 'judge')} of this leaderboard state probabilities"
        raise UsageError(said, remedy=f"name one: --judge {quote(next(iter(fit)))}")
    if request.judge is not None and request.judge not in fit:
        said = f"no judge named {request.judge} states probabilities in this leaderboard"
        raise UsageError(said, remedy=did_you_mean(request.judge, fit) or f"known: {', '.join(fit)}")
    return next(iter(fit.values())) if request.judge is None else fit[request.judge]


# --- results --------------------------------------------------------------------------------------------------


def write_calibration_file(found: JudgeCalibration, file: Path, *, force: bool = False) -> None:
    """Write the file for the setting `calibration` of a judge.

    Raises:
        UsageError: the file exists and `force` is false.
        ProviderError: the file cannot be written.
    """
    if file.exists() and not force:
        raise UsageError(f"{file} exists", remedy="choose another --out, or overwrite it with --force")
    with disk(file, "choose another --out"):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, (dump_json(_file_content(found)) + "\n").encode())


def _file_content(found: JudgeCalibration) -> Mapping[str, object]:
    return {
        "v": 1,
        "judge": found.judge,
        "temperature": round(found.fit.temperature, 6),
        "mix": round(found.fit.weight, 6),
        "confusion": [[round(each, 6) for each in row] for row in found.fit.confusion],
        "labels": found.labels,
        "queries": found.queries,
        "effect": {name: _effect_json(effect) for name, effect in _effects(found)},
        "fitted_on": [list(pair) for pair in found.fitted_on],
    }


def _effects(found: JudgeCalibration) -> Iterator[tuple[str, CalibrationEffect]]:
    yield "log_score", found.effect.log_score
    yield "calibration_error", found.effect.error
    yield "exact", found.effect.exact


def _effect_json(effect: CalibrationEffect) -> Mapping[str, object]:
    sides = {"before": effect.before, "after": effect.after, "change": effect.change}
    return {name: [round(part, 6) for part in (each.value, each.low, each.high)] for name, each in sides.items()}


def calibration_json(found: JudgeCalibration) -> str:
    """Return the result as JSON: the content of the calibration file, with source, verdict and notes."""
    return dump_json({**_file_content(found), "source": found.source, "verdict": found.verdict, "notes": found.notes})


HEADLINES = {
    "better": "Calibrated probabilities are better",
    "worse": "Calibrated probabilities are worse, so do not use the file",
    "inconclusive": "The effect of the calibration is inconclusive",
}


def summarise_calibration(found: JudgeCalibration, file: Path) -> Summary:
    """Return the default output of `raggs judge calibrate`: the effect, and the command that uses the file."""
    change = format_estimate(found.effect.log_score.change, signed=True)
    labels = f"{plural(found.labels, 'label')} of {plural(found.queries, 'query')}"
    headline = f"{HEADLINES[found.verdict]}: log score {change}, cross-validated with {labels}."
    names = ("log score", "calibration error (ECE)", "exact grades")
    rows = [
        (name, _text(effect.before), _text(effect.after), _text(effect.change, signed=True))
        for name, (_, effect) in zip(names, _effects(found), strict=True)
    ]
    fit = f"Temperature {found.fit.temperature:.2f}; mix {found.fit.weight:.2f}"
    command = f"raggs run --config raggs.yaml --set judge.judge.calibration={quote(str(file))} --dry-run"
    return Summary(
        headline=(headline, f"{fit} is the share of the probability that depends only on the grade."),
        table=Table.of(("figure", "as stated", "calibrated", "change"), rows),
        legend="log score: mean of -log p(label), 0 perfect; ECE: mean error of the probabilities",
        trust=found.notes,
        next="" if found.verdict == "worse" else command,
    )


def _text(each: AgreementEstimate, *, signed: bool = False) -> str:
    form = "+z.3f" if signed else "z.3f"
    return f"{each.value:{form}} [{each.low:{form}}, {each.high:{form}}]" if signed else f"{each.value:{form}}"
