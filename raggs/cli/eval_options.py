"""The options of `raggs eval` in groups, and what each group asks for.

Each analysis that is a yes or no is a field with its name: the names of those that are set go into the request.

What the options of `raggs eval` write as texts, read into values: cutoffs, scales, gains, limits, names.

The options of `raggs eval` that a CI job sets: what its result must hold, and by which golden set.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
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
    """``5,10``, ascending and each once.

    Raises:
        UsageError: one is no whole number from 1 on.
    """
    pieces = split(text)
    for piece in pieces:
        if not CUTOFF.fullmatch(piece):
            raise UsageError(f"--k {piece} is no cutoff", remedy="write e.g. --k 5,10,20")
    return tuple(sorted(set(map(int, pieces))))


def parse_scale(text: str) -> tuple[int, int]:
    """``1-5`` or ``0..3``: the lowest and the highest grade.

    Raises:
        UsageError: not of this form.
    """
    ends = SCALE.fullmatch(text.strip())
    if not ends:
        raise UsageError(f"--scale {text} is no scale", remedy="write e.g. --scale 1-5 or --scale 0-3")
    return int(ends[1]), int(ends[2])


def parse_gains(text: str) -> dict[int, float]:
    """``5=4,4=2``: gains by grade.

    Raises:
        UsageError: a grade or a gain is no number.
    """
    gains = {}
    for piece in filter(None, text.split(",")):
        grade, _, gain = piece.partition("=")
        try:
            gains[int(grade)] = float(gain)
        except ValueError:
            raise UsageError(f"--gains: {piece!r} is no grade=gain", remedy="write e.g. --gains 5=4,4=2") from None
    return gains


def parse_limit(text: str) -> tuple[str, float]:
    """``ndcg@10=0.55`` as a canonical measure and its limit.

    Raises:
        UsageError: not of this form.
    """
    from raggs.metrics.names import parse_measure  # late: most commands measure nothing

    found = LIMIT.fullmatch(text.strip())
    if not found:
        raise UsageError(f"--fail-under {text}: no number after =", remedy="write e.g. ndcg@10=0.55")
    return parse_measure(found[1]).name, float(found[2])


def parse_ties(text: str) -> Literal["trec", "file"]:
    """``trec`` or ``file``.

    Raises:
        UsageError: neither.
    """
    return parse_choice("--ties", text, TIES)


def parse_choice(option: str, text: str, choices: Mapping[str, V]) -> V:
    """One of the values of an option.

    Raises:
        UsageError: it is none of them.
    """
    if (found := choices.get(text)) is None:
        raise UsageError(f"{option} {text} is not known", remedy=" or ".join(choices))
    return found


def finite(option: str, value: float) -> float:
    """`value`, which ranges of options let be no number.

    Raises:
        UsageError: it is none.
    """
    if not math.isfinite(value):
        raise UsageError(f"{option} is a number", remedy=f"write e.g. {option} 0.9")
    return value


def split(text: str) -> list[str]:
    """What stands between commas, without white space and empty pieces."""
    return [piece for piece in (part.strip() for part in text.split(",")) if piece]


GoldenPath = Annotated[
    Path | None,
    typer.Option(
        "--golden",
        "-g",
        metavar="RUN|FILE",
        help="Golden set: a run directory, or a qrels file (TREC, BEIR, CSV, ranx).",
    ),
]
Runs = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        "-r",
        metavar="[NAME=]FILE|RUN",
        help="System to score: a run file (TREC, CSV, ranx JSON; .gz), or a run directory for all of its retrievers. "
        "Repeatable.",
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
        help="Measures, separated by commas; the first one decides. List them with: raggs list measures.",
    ),
]
Cutoffs = Annotated[
    str,
    typer.Option(
        "--k",
        "-k",
        metavar="5,10",
        help="Cutoffs for measures that are named without one (ndcg, not ndcg@5). [default: 10]",
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
PerQuery = Annotated[bool, typer.Option("--per-query", help="Print one line per system and query, too.")]
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
        help="Lowest grade that counts as relevant. [default: 4 on the scale 1-5, else 1]",
    ),
]
Gains = Annotated[
    str | None,
    typer.Option("--gains", metavar="5=4,4=3,…", help="Gain of each grade. [default: grade minus lowest grade]"),
]
Condensed = Annotated[bool, typer.Option("--condensed", help="Remove unjudged passages from the lists before scoring.")]
Pool = Annotated[
    int,
    typer.Option("--pool", metavar="N", min=1, help="Candidates per query that the ceilings (PROC) may reorder."),
]
Bounds = Annotated[
    bool,
    typer.Option(
        "--bounds", help="Range of each score with all unjudged passages at the lowest and at the highest grade."
    ),
]
Grid = Annotated[
    bool, typer.Option("--sensitivity", help="Changes in the order of systems under other parameters of RA-nWG.")
]
Robust = Annotated[bool, typer.Option("--robustness", help="Distribution of recall over queries.")]
LeftOut = Annotated[
    bool,
    typer.Option(
        "--leave-one-out", help="Score of each system without the judgments of passages that only this system found."
    ),
]
AnalysesOption = Annotated[
    str | None,
    typer.Option("--analyses", metavar="NAMES", help="More analyses, separated by commas: raggs list analyses."),
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
        "--max-usd", metavar="USD", min=0, help="Cap in USD on all calls of --answers with this --out. [default: 1]"
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
# Sections of `raggs eval --help` by title, with the names of their parameters; the first section is what most need.
HELP_SECTIONS: Mapping[str, Sequence[str]] = {
    "Options": (
        *("golden", "run", "baseline", "measures", "k", "out", "fail_under", "details", "precision", "as_json"),
        *("quiet", "help"),
    ),
    "Input": ("samples", "outputs", "column", "project", "corpus"),
    "Measures and grades": ("default_k", "ties", "condensed", "facets", "scale", "binary_at", "gains"),
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
    """What is scored, and against what."""

    golden: GoldenPath = None
    run: Runs = None
    samples: SamplesFile = None
    outputs: OutputsFile = None
    project: Project = False
    corpus: Corpora = None
    column: ColumnOption = None

    def request(self) -> JudgedFiles | SampleFiles:
        """Judged files, or samples.

        Raises:
            UsageError: something is missing, or both were given.
        """
        from raggs.app.eval_request import JudgedFiles, SampleFiles
        from raggs.base.tables import EVAL_ROLES, parse_column_names

        if self.samples is None and self.outputs is None:
            if self.golden is None or not self.run:
                raise UsageError("what is scored, and against what?", remedy="raggs eval --golden RUN|QRELS --run FILE")
            columns = parse_column_names(self.column or (), EVAL_ROLES)
            return JudgedFiles(self.golden, tuple(self.run), self._projection(), columns)
        if self.samples is None or self.outputs is None:
            raise UsageError("--samples and --outputs belong together", remedy="give both")
        if self.golden is not None or self.run:
            raise UsageError("--samples stands for --golden and --run", remedy="give one of both")
        if self.column:
            raise UsageError("samples have no columns", remedy="--column goes with --golden and --run")
        if self.project or self.corpus:
            raise UsageError("samples have no places to project", remedy="--project goes with --golden RUN")
        return SampleFiles(self.samples, self.outputs)

    def words(self) -> list[str]:
        """Return the options of this group as words of a command."""
        pairs = (
            *(("--samples", self.samples), ("--outputs", self.outputs), ("-g", self.golden)),
            *(("-r", each) for each in self.run or ()),
            *(("--corpus", each) for each in self.corpus or ()),
            *(("--column", each) for each in self.column or ()),
        )
        found = [word for flag, value in pairs if value is not None for word in (flag, str(value))]
        return [*found, *(["--project"] if self.project else [])]

    def _projection(self) -> ProjectionRequest | None:
        from raggs.app.eval_request import ProjectionRequest

        if self.corpus and not self.project:
            raise UsageError("--corpus says whose passages grades are carried over to", remedy="add --project")
        return ProjectionRequest(tuple(self.corpus or ())) if self.project else None


@dataclass(frozen=True)
class MeasureFlags:
    """What is measured, and on which lists."""

    measures: Measures = None
    k: Cutoffs = ""
    ties: TieRule = "trec"
    condensed: Condensed = False
    facets: Facets = None
    default_k: DefaultK = None

    def request(self) -> MeasureRequest:
        """Names and cutoffs, read.

        Raises:
            UsageError: a cutoff or the rule for ties is none.
        """
        from raggs.app.eval_request import MeasureRequest
        from raggs.metrics.names import split_names

        names = tuple(split_names(self.measures or ""))
        cutoffs, ties = parse_cutoffs(self.k), parse_ties(self.ties)
        return MeasureRequest(names, cutoffs, ties, self.condensed, self.facets, self.default_k)


@dataclass(frozen=True)
class ScaleFlags:
    """What grades mean."""

    scale: ScaleText = None
    binary_at: BinaryAt = None
    gains: Gains = None

    def request(self) -> ScaleRequest:
        """Ends and gains, read.

        Raises:
            UsageError: a text is no scale or no gains.
        """
        from raggs.app.eval_request import ScaleRequest

        ends = None if self.scale is None else parse_scale(self.scale)
        return ScaleRequest(ends, self.binary_at, parse_gains(self.gains or ""))


@dataclass(frozen=True)
class AnalysisFlags:
    """What is asked beyond the scores."""

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
        """The names of what was asked for."""
        from raggs.app.eval_request import AnalysisRequest

        set_ = (field.name for field in fields(self) if getattr(self, field.name) is True)
        names = frozenset({*set_, *split(self.analyses or "")})
        return AnalysisRequest(names, self.baseline, self.pool, self.correct, self.reviews)

    @property
    def named(self) -> bool:
        """Whether an analysis is requested, whose result only the detailed output shows."""
        return bool(self.request().names) or self.correct is not None or self.reviews is not None


@dataclass(frozen=True)
class AnswerFlags:
    """Answers that a model generates."""

    answers: AnswersModel = None
    max_usd: AnswersUsd = None
    allow_mixed: AllowMixed = False
    dry_run: AnswersDryRun = False

    def request(self, out: Path | None, correct: Path | None) -> AnswersRequest | None:
        """The model, its folder and its cap; None without `--answers`.

        Args:
            out: the folder of the evaluation.
            correct: a file of answers that was given instead.

        Raises:
            UsageError: options contradict each other, or one is missing.
        """
        if self.answers is None:
            if self.max_usd is not None or self.dry_run or self.allow_mixed:
                message = "--max-usd, --allow-mixed and --dry-run belong to --answers"
                raise UsageError(message, remedy="add --answers litellm:MODEL")
            return None
        from raggs.app.answers import CAP, AnswersRequest, parse_model  # late: most evaluations call no model

        if correct is not None:
            raise UsageError("--answers and --correct both say which answers are correct", remedy="give one of both")
        if out is None:
            raise UsageError("--answers writes its answers and its ledger to a folder", remedy="add --out DIR")
        cap = CAP if self.max_usd is None else finite("--max-usd", self.max_usd)
        return AnswersRequest(parse_model(self.answers), out, cap, self.allow_mixed)


@dataclass(frozen=True)
class StatisticsFlags:
    """How sure is sure."""

    confidence: Confidence = 0.95
    seed: Seed = 1

    def checked(self) -> float:
        """The confidence.

        Raises:
            UsageError: it is no number.
        """
        return finite("--confidence", self.confidence)


@dataclass(frozen=True)
class OutputFlags:
    """Where the result goes."""

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
        help="Exit with 7 if the mean of a measure is below a value, e.g. ndcg@10=0.55. Repeatable.",
    ),
]
FailOn = Annotated[
    Path | None,
    typer.Option(
        "--fail-on-regression", metavar="EVAL.JSON", help="Exit with 7 if the result is worse than this earlier one."
    ),
]
MaxDrop = Annotated[
    float,
    typer.Option("--max-drop", metavar="X", min=0.0, help="Largest drop of a mean that --fail-on-regression accepts."),
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
    """Conditions that the result must hold."""

    fail_under: FailUnder = None
    fail_on_regression: FailOn = None
    max_drop: MaxDrop = 0.01
    across_sets: AcrossSets = False
    lock: LockFile = None
    if_inconclusive: IfInconclusive = "fail"

    def request(self) -> GateRequest:
        """Limits, read.

        Raises:
            UsageError: a limit or the drop is not a number, or an option has no such value.
        """
        from raggs.app.gates import GateRequest

        limits = dict(parsed := [parse_limit(text) for text in self.fail_under or ()])
        if len(limits) < len(parsed):
            twice = next(name for place, (name, _) in enumerate(parsed) if name in dict(parsed[:place]))
            raise UsageError(f"--fail-under {twice} stands twice", remedy="one limit for each measure")
        if self.across_sets and self.fail_on_regression is None:
            raise UsageError("--across-sets is about an earlier result", remedy="add --fail-on-regression EVAL.JSON")
        drop = finite("--max-drop", self.max_drop)
        inconclusive = parse_choice("--if-inconclusive", self.if_inconclusive, INCONCLUSIVE)
        return GateRequest(limits, self.fail_on_regression, drop, self.across_sets, self.lock, inconclusive)
