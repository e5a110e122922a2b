"""Options of `raggs eval` in groups, and the requests that they form.

Texts such as cutoffs, scales, gains and limits are parsed here, including the options for CI gates. Each yes-or-no
analysis is a field. The names of the fields that are set form the request.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from raggs.base.errors import UsageError
from raggs.cli.options import AllowMixed, ColumnOption, Confidence, Json, Quiet, Seed, Summary

if TYPE_CHECKING:
    from raggs.app.answers import AnswersRequest
    from raggs.app.eval_request import (
        AnalysisRequest,
        JudgedFiles,
        MeasureRequest,
        ProjectionRequest,
        SampleFiles,
        ScaleRequest,
    )
    from raggs.app.gates import GateRequest

V = TypeVar("V")

CUTOFF = re.compile(r"[1-9][0-9]{0,8}")
SCALE = re.compile(r"([0-9]{1,3})\s*(?:-|\.\.)\s*([0-9]{1,3})")
INCONCLUSIVE: dict[str, Literal["fail", "pass"]] = {"fail": "fail", "pass": "pass"}
TIES: dict[str, Literal["trec", "file"]] = {"trec": "trec", "file": "file"}
LIMIT = re.compile(r"(.+)=\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?)", re.ASCII)


def parse_cutoffs(text: str) -> tuple[int, ...]:
    """Return cutoffs such as ``5,10``, ascending and without duplicates.

    Raises:
        UsageError: a cutoff is not a positive integer.
    """
    pieces = split(text)
    for piece in pieces:
        if not CUTOFF.fullmatch(piece):
            raise UsageError(f"--k {piece} is not a cutoff", remedy="write e.g. --k 5,10,20")
    return tuple(sorted(set(map(int, pieces))))


def parse_scale(text: str) -> tuple[int, int]:
    """Return the lowest and the highest grade of a scale such as ``1-5`` or ``0..3``.

    Raises:
        UsageError: the text has another form.
    """
    ends = SCALE.fullmatch(text.strip())
    if not ends:
        raise UsageError(f"--scale {text} is not a scale", remedy="write e.g. --scale 1-5 or --scale 0-3")
    return int(ends[1]), int(ends[2])


def parse_day(text: str | None) -> date | None:
    """Return the day of a text: YYYY-MM-DD, or "today" (UTC).

    Raises:
        UsageError: the text is neither.
    """
    if text is None:
        return None
    if text == "today":
        return datetime.now(UTC).date()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--as-of: {text!r} is not a date", remedy="write e.g. --as-of 2026-01-31, or today") from None


def parse_gains(text: str) -> dict[int, float]:
    """Return the gain of each grade from a text such as ``5=4,4=2``.

    Raises:
        UsageError: a grade is not an integer, or a gain is not a number.
    """
    gains = {}
    for piece in filter(None, text.split(",")):
        grade, _, gain = piece.partition("=")
        try:
            gains[int(grade)] = float(gain)
        except ValueError:
            raise UsageError(
                f"--gains: {piece!r} is not of the form grade=gain", remedy="write e.g. --gains 5=4,4=2"
            ) from None
    return gains


def parse_limit(text: str) -> tuple[str, float]:
    """Return the canonical measure and the limit of a text such as ``ndcg@10=0.55``.

    Raises:
        UsageError: the text has another form, or the measure is unknown.
    """
    from raggs.metrics.names import parse_measure  # imported lazily: most commands compute no measures

    found = LIMIT.fullmatch(text.strip())
    if not found:
        raise UsageError(f"--fail-under {text}: no number after =", remedy="write e.g. ndcg@10=0.55")
    return parse_measure(found[1]).name, float(found[2])


def parse_ties(text: str) -> Literal["trec", "file"]:
    """Return the rule for ties, ``trec`` or ``file``.

    Raises:
        UsageError: the text is neither.
    """
    return parse_choice("--ties", text, TIES)


def parse_choice(option: str, text: str, choices: Mapping[str, V]) -> V:
    """Return the value of an option.

    Raises:
        UsageError: the text is not one of the choices.
    """
    if (found := choices.get(text)) is None:
        raise UsageError(f"{option} {text} is not known", remedy=f"use {' or '.join(choices)}")
    return found


def finite(option: str, value: float) -> float:
    """Return `value` if it is finite. Typer's ranges do not reject NaN.

    Raises:
        UsageError: the value is NaN or infinite.
    """
    if not math.isfinite(value):
        raise UsageError(f"{option} must be a finite number", remedy=f"write e.g. {option} 0.9")
    return value


def split(text: str) -> list[str]:
    """Return the parts of a text between commas, trimmed and without empty ones."""
    return [piece for piece in (part.strip() for part in text.split(",")) if piece]


def set_options(pairs: Iterable[tuple[str, object]]) -> list[str]:
    """Return options as command-line arguments: None, False and "" are omitted, and True is a flag without a value."""
    given = [(flag, value) for flag, value in pairs if value is not None and value is not False and value != ""]
    return [word for flag, value in given for word in ([flag] if value is True else [flag, str(value)])]


GoldenPath = Annotated[
    Path | None,
    typer.Option(
        "--golden",
        "-g",
        metavar="RUN|FILE",
        help="Golden set: a run directory, an export, or a qrels file (TREC, BEIR, CSV, ranx).",
    ),
]
Runs = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        "-r",
        metavar="[NAME=]FILE|RUN",
        help="System to score: a run file (TREC, CSV, ranx JSON; .gz), a run directory for its retrievers and their "
        "fusion, or a YAML file with a search service. Repeatable.",
    ),
]
Project = Annotated[
    bool, typer.Option("--project", help="Project the grades onto systems that use other chunks of the documents.")
]
Corpora = Annotated[
    list[str] | None,
    typer.Option(
        "--corpus",
        metavar="[SYSTEM=]CONFIG|RUN",
        help="With --project: corpus of a run file, or of the labels (golden=CONFIG). Repeatable.",
    ),
]
Measures = Annotated[
    str | None,
    typer.Option(
        "--measures",
        "-m",
        metavar="NAMES",
        help="Measures, separated by commas; the first one is primary (raggs list measures). "
        "[default: by the scale of the labels]",
    ),
]
Cutoffs = Annotated[
    str,
    typer.Option(
        "--k",
        "-k",
        metavar="5,10",
        help="Cutoffs for measures that are named without one (ndcg, not ndcg@5). [default: 10; for --samples 5]",
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline", "-b", metavar="NAME", help="System that all others are compared with. [default: the first one]"
    ),
]
OutFolder = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIR", help="Write eval.json, eval.csv and eval.md to this folder."),
]
JunitFile = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Write JUnit XML with one test case per gate and per score."),
]
PerQuery = Annotated[bool, typer.Option("--per-query", help="Also print one line per system and query.")]
TieRule = Annotated[
    str,
    typer.Option(
        "--ties", metavar="trec|file", help="Order of passages with equal scores: as in trec_eval, or as in the file."
    ),
]
ScaleText = Annotated[
    str | None,
    typer.Option("--scale", metavar="1-5", help="Lowest and highest grade. [default: read from the labels]"),
]
BinaryAt = Annotated[
    int | None,
    typer.Option(
        "--binary-at",
        metavar="GRADE",
        help="Lowest grade that counts as relevant. [default: 4 on the scale 1-5; 1 on a scale from 0]",
    ),
]
Gains = Annotated[
    str | None,
    typer.Option("--gains", metavar="5=4,4=3,…", help="Gain of each grade. [default: grade minus lowest grade]"),
]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="DATE",
        help="Exclude queries and labels that are not valid on this day: YYYY-MM-DD or today. "
        "[default: all count; expired ones are reported]",
    ),
]
Condensed = Annotated[bool, typer.Option("--condensed", help="Remove unjudged passages from the lists before scoring.")]
Pool = Annotated[
    int,
    typer.Option(
        "--pool", metavar="N", min=1, help="Candidates per query that the ceiling measures (PROC) may reorder."
    ),
]
Bounds = Annotated[
    bool,
    typer.Option(
        "--bounds", help="Print the range of each score: unjudged passages at the lowest and at the highest grade."
    ),
]
Grid = Annotated[
    bool, typer.Option("--sensitivity", help="Print how the order of systems changes with other parameters of RA-nWG.")
]
Robust = Annotated[bool, typer.Option("--robustness", help="Print the distribution of recall over queries.")]
LeftOut = Annotated[
    bool,
    typer.Option(
        "--leave-one-out", help="Print each system's score without the judgments of passages that only it found."
    ),
]
AnalysesOption = Annotated[
    str | None,
    typer.Option("--analyses", metavar="NAMES", help="Further analyses, separated by commas (raggs list analyses)."),
]
UncertaintyOption = Annotated[
    bool,
    typer.Option("--uncertainty", help="Widen the intervals by the uncertainty of the labels (needs --golden RUN)."),
]
DefaultK = Annotated[
    int | None,
    typer.Option(
        "--default-k",
        metavar="K",
        min=1,
        help="Cutoff if neither the measure, the sample nor -k sets one. [default: 10; for samples 5]",
    ),
]
Facets = Annotated[
    Path | None,
    typer.Option("--facets", metavar="FILE", help="Facets of passages for novelty measures: doc_id<TAB>facet lines."),
]
Correct = Annotated[
    Path | None,
    typer.Option(
        "--correct", metavar="FILE", help="Correctness of answers for Acc|Hit: qid<TAB>0|1 lines, or JSON lines."
    ),
]
AnswersModel = Annotated[
    str | None,
    typer.Option(
        "--answers",
        metavar="litellm:MODEL",
        help="Generate answers with this model from the top K of each system and check them, for Acc|Hit. Needs --out.",
    ),
]
AnswersUsd = Annotated[
    float | None,
    typer.Option(
        "--max-usd", metavar="USD", min=0, help="Budget in USD for all --answers calls with this --out. [default: 1]"
    ),
]
AnswersDryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="With --answers: print the expected calls, tokens and USD without calling a model."),
]
SamplesFile = Annotated[
    Path | None,
    typer.Option("--samples", metavar="FILE", help="Samples with expected passages (YAML, JSON), instead of --golden."),
]
OutputsFile = Annotated[
    Path | None,
    typer.Option("--outputs", metavar="FILE", help="JSON lines with the passages retrieved for --samples."),
]
Reviews = Annotated[
    Path | None,
    typer.Option(
        "--reviews",
        metavar="DIR",
        help="Bias-correct the scores with human labels of a random sample (prediction-powered inference).",
    ),
]
EvalPrecision = Annotated[
    int | None,
    typer.Option(
        "--precision",
        metavar="N",
        min=1,
        max=10,
        help="Decimals of scores on the screen. [default: 3; with --details 4]",
    ),
]
EvalDetails = Annotated[
    bool,
    typer.Option(
        "--details",
        help="Print all measures, intervals, analyses, definitions and notes. Implied by an analysis option.",
    ),
]
# Sections of `raggs eval --help` by title, with parameter names. The first section has the most common options.
HELP_SECTIONS: Mapping[str, Sequence[str]] = {
    "Options": (
        *("golden", "run", "baseline", "measures", "k", "out", "fail_under", "details", "precision", "as_json"),
        *("quiet", "help"),
    ),
    "Input": ("samples", "outputs", "column", "project", "corpus"),
    "Measures and grades": ("default_k", "ties", "condensed", "facets", "scale", "binary_at", "gains", "as_of"),
    "Analyses": (
        *("analyses", "bounds", "sensitivity", "robustness", "leave_one_out", "uncertainty", "reviews", "pool"),
        *("confidence", "seed"),
    ),
    "Answers (Acc|Hit)": ("correct", "answers", "max_usd", "allow_mixed", "dry_run"),
    "Gates for CI": ("fail_on_regression", "max_drop", "across_sets", "lock", "if_inconclusive", "junit", "summary"),
    "Debugging": ("per_query", "debug"),
}


@dataclass(frozen=True)
class SubjectFlags:
    """Options for the systems to score and the golden set."""

    golden: GoldenPath = None
    run: Runs = None
    samples: SamplesFile = None
    outputs: OutputsFile = None
    project: Project = False
    corpus: Corpora = None
    column: ColumnOption = None

    def request(self) -> JudgedFiles | SampleFiles:
        """Return the request: judged files or samples.

        Raises:
            UsageError: an option is missing, or options contradict each other.
        """
        from raggs.app.eval_request import JudgedFiles, SampleFiles
        from raggs.base.tables import EVAL_ROLES, parse_column_names

        if self.samples is None and self.outputs is None:
            if self.golden is None or not self.run:
                raise UsageError(
                    "a golden set and at least one run are required", remedy="raggs eval --golden RUN|QRELS --run FILE"
                )
            columns = parse_column_names(self.column or (), EVAL_ROLES)
            return JudgedFiles(self.golden, tuple(self.run), self._projection(), columns)
        if self.samples is None or self.outputs is None:
            raise UsageError("--samples needs --outputs, and --outputs needs --samples", remedy="give both")
        if self.golden is not None or self.run:
            raise UsageError("--samples replaces --golden and --run", remedy="use only one of them")
        if self.column:
            raise UsageError("samples have no columns", remedy="use --column only with --golden and --run")
        if self.project or self.corpus:
            raise UsageError("samples cannot be projected", remedy="use --project only with --golden RUN")
        return SampleFiles(self.samples, self.outputs)

    def words(self) -> list[str]:
        """Return the options of this group as command-line arguments."""
        return set_options(
            (
                *(("--samples", self.samples), ("--outputs", self.outputs), ("-g", self.golden)),
                *(("-r", each) for each in self.run or ()),
                *(("--corpus", each) for each in self.corpus or ()),
                *(("--column", each) for each in self.column or ()),
                ("--project", self.project),
            )
        )

    def _projection(self) -> ProjectionRequest | None:
        from raggs.app.eval_request import ProjectionRequest

        if self.corpus and not self.project:
            raise UsageError("--corpus applies only to projected grades", remedy="add --project")
        return ProjectionRequest(tuple(self.corpus or ())) if self.project else None


@dataclass(frozen=True)
class MeasureFlags:
    """Options for measures, cutoffs and ties."""

    measures: Measures = None
    k: Cutoffs = ""
    ties: TieRule = "trec"
    condensed: Condensed = False
    facets: Facets = None
    default_k: DefaultK = None

    def request(self) -> MeasureRequest:
        """Return the parsed names and cutoffs.

        Raises:
            UsageError: a cutoff or the rule for ties is invalid.
        """
        from raggs.app.eval_request import MeasureRequest
        from raggs.metrics.names import split_names

        names = tuple(split_names(self.measures or ""))
        cutoffs, ties = parse_cutoffs(self.k), parse_ties(self.ties)
        return MeasureRequest(names, cutoffs, ties, self.condensed, self.facets, self.default_k)

    def words(self) -> list[str]:
        """Return the options that the user set as command-line arguments."""
        ties = None if self.ties == "trec" else self.ties
        return set_options(
            (
                *(("-m", self.measures), ("-k", self.k), ("--default-k", self.default_k), ("--ties", ties)),
                *(("--condensed", self.condensed), ("--facets", self.facets)),
            )
        )


@dataclass(frozen=True)
class ScaleFlags:
    """Options for the scale of grades and their gains."""

    scale: ScaleText = None
    binary_at: BinaryAt = None
    gains: Gains = None
    as_of: AsOf = None

    def request(self) -> ScaleRequest:
        """Return the parsed scale, gains and day.

        Raises:
            UsageError: the scale, the gains or the day are invalid.
        """
        from raggs.app.eval_request import ScaleRequest

        ends = None if self.scale is None else parse_scale(self.scale)
        return ScaleRequest(ends, self.binary_at, parse_gains(self.gains or ""), parse_day(self.as_of))

    def words(self) -> list[str]:
        """Return the options that the user set as command-line arguments."""
        return set_options(
            (
                ("--scale", self.scale),
                ("--binary-at", self.binary_at),
                ("--gains", self.gains),
                ("--as-of", self.as_of),
            )
        )


@dataclass(frozen=True)
class AnalysisFlags:
    """Options for the baseline and for analyses."""

    baseline: Baseline = None
    pool: Pool = 50
    bounds: Bounds = False
    sensitivity: Grid = False
    robustness: Robust = False
    uncertainty: UncertaintyOption = False
    leave_one_out: LeftOut = False
    correct: Correct = None
    reviews: Reviews = None
    analyses: AnalysesOption = None

    def request(self) -> AnalysisRequest:
        """Return the names of the requested analyses, with their options."""
        from raggs.app.eval_request import AnalysisRequest

        set_ = (field.name for field in fields(self) if getattr(self, field.name) is True)
        names = frozenset({*set_, *split(self.analyses or "")})
        return AnalysisRequest(names, self.baseline, self.pool, self.correct, self.reviews)

    @property
    def named(self) -> bool:
        """Whether an analysis is requested. Only the detailed output shows its result."""
        return bool(self.request().names) or self.correct is not None or self.reviews is not None


@dataclass(frozen=True)
class AnswerFlags:
    """Options for answers that a model generates."""

    answers: AnswersModel = None
    max_usd: AnswersUsd = None
    allow_mixed: AllowMixed = False
    dry_run: AnswersDryRun = False

    def request(self, out: Path | None, correct: Path | None) -> AnswersRequest | None:
        """Return the model, the output folder and the budget; None without `--answers`.

        Args:
            out: output folder of the evaluation.
            correct: file of `--correct`, which excludes `--answers`.

        Raises:
            UsageError: options contradict each other, or one is missing.
        """
        if self.answers is None:
            if self.max_usd is not None or self.dry_run or self.allow_mixed:
                message = "--max-usd, --allow-mixed and --dry-run need --answers"
                raise UsageError(message, remedy="add --answers litellm:MODEL")
            return None
        # imported lazily: most evaluations call no model
        from raggs.app.answers import CAP, AnswersRequest, parse_model

        if correct is not None:
            raise UsageError("--answers and --correct exclude each other", remedy="use only one of them")
        if out is None:
            raise UsageError("--answers needs an output folder", remedy="add --out DIR")
        cap = CAP if self.max_usd is None else finite("--max-usd", self.max_usd)
        return AnswersRequest(parse_model(self.answers), out, cap, self.allow_mixed)


@dataclass(frozen=True)
class StatisticsFlags:
    """Options for intervals and significance tests."""

    confidence: Confidence = 0.95
    seed: Seed = 1

    def checked(self) -> float:
        """Return the confidence level.

        Raises:
            UsageError: the level is not a finite number.
        """
        return finite("--confidence", self.confidence)

    def words(self) -> list[str]:
        """Return the options that differ from the defaults as command-line arguments."""
        usual = type(self)()
        pairs = (("--confidence", self.confidence, usual.confidence), ("--seed", self.seed, usual.seed))
        return set_options((flag, value) for flag, value, default in pairs if value != default)


@dataclass(frozen=True)
class OutputFlags:
    """Options for the output."""

    out: OutFolder = None
    details: EvalDetails = False
    precision: EvalPrecision = None
    per_query: PerQuery = False
    summary: Summary = False
    junit: JunitFile = None
    as_json: Json = False
    quiet: Quiet = False


FailUnder = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-under",
        metavar="NAME=VALUE",
        help="Exit with 7 if the mean of a measure is worse than a value, e.g. ndcg@10=0.55. Repeatable.",
    ),
]
FailOn = Annotated[
    Path | None,
    typer.Option(
        "--fail-on-regression",
        metavar="EVAL.JSON",
        help="Exit with 7 if a mean is worse than in this earlier result: by more than --max-drop, or by a "
        "significant and not negligible difference.",
    ),
]
MaxDrop = Annotated[
    float,
    typer.Option(
        "--max-drop",
        metavar="X",
        min=0.0,
        help="Loss of a mean above which --fail-on-regression fails, even if the loss is not significant.",
    ),
]
LockFile = Annotated[
    Path | None,
    typer.Option("--lock", metavar="FILE", help="Exit with 5 if the golden set is not the one of this golden.lock."),
]
AcrossSets = Annotated[
    bool,
    typer.Option(
        "--across-sets",
        help="Accept an earlier result on other judgments in --fail-on-regression, and print how the sets differ.",
    ),
]
IfInconclusive = Annotated[
    str,
    typer.Option(
        "--if-inconclusive",
        metavar="fail|pass",
        help="Outcome of a gate whose result unjudged passages could reverse.",
    ),
]


@dataclass(frozen=True)
class GateFlags:
    """Gates: conditions that the result must meet."""

    fail_under: FailUnder = None
    fail_on_regression: FailOn = None
    max_drop: MaxDrop = 0.01
    across_sets: AcrossSets = False
    lock: LockFile = None
    if_inconclusive: IfInconclusive = "fail"

    def request(self) -> GateRequest:
        """Return the parsed limits and gates.

        Raises:
            UsageError: a limit or the drop is not a number, or an option has an invalid value.
        """
        from raggs.app.gates import GateRequest

        limits = dict(parsed := [parse_limit(text) for text in self.fail_under or ()])
        if len(limits) < len(parsed):
            twice = next(name for place, (name, _) in enumerate(parsed) if name in dict(parsed[:place]))
            raise UsageError(f"--fail-under {twice} occurs twice", remedy="set one limit per measure")
        if self.across_sets and self.fail_on_regression is None:
            raise UsageError("--across-sets needs an earlier result", remedy="add --fail-on-regression EVAL.JSON")
        drop = finite("--max-drop", self.max_drop)
        inconclusive = parse_choice("--if-inconclusive", self.if_inconclusive, INCONCLUSIVE)
        return GateRequest(limits, self.fail_on_regression, drop, self.across_sets, self.lock, inconclusive)
