"""`raggs questions`: generate questions from documents, and calibrate thresholds."""

from __future__ import annotations

import json
import math
import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import AllowMixed, Json, MaxCalls, MaxUsd, Overrides, Quiet, Yes
from raggs.cli.plain_text import is_quiet, prompt_user, say, say_json

if TYPE_CHECKING:
    from raggs.app.question_results import QuestionsResult
    from raggs.app.question_tools import Kind, ThresholdCalibration, ThresholdPairs
    from raggs.cli.options import RunFlags
    from raggs.config.load import LoadedConfig
    from raggs.llm import BudgetSpent
    from raggs.runs.runner import Runner
    from raggs.stats.question_filters import Thresholds

IN_PART = 7


def make(
    documents: Annotated[
        Path | None, typer.Argument(metavar="DOCS", help="Folder of documents (alternative to --config).")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="Configuration file with the corpus, without DOCS [default: raggs.yaml].",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File for the questions: .jsonl, .yaml or .csv [default: queries.path of the configuration; with DOCS "
            "questions.jsonl].",
        ),
    ] = None,
    n: Annotated[
        int | None,
        typer.Option(
            "--n", "-n", metavar="N", min=1, help="Number of questions to generate (questions.sample.n) [default: 100]."
        ),
    ] = None,
    asker: Annotated[
        str | None,
        typer.Option(
            "--asker",
            metavar="ASKER",
            help="Question generator: extractive, litellm:MODEL, ... (raggs list askers) [default: extractive, "
            "unless the configuration sets another].",
        ),
    ] = None,
    overrides: Overrides = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print calls, tokens and cost; call no paid model and write only caches."),
    ] = False,
    max_usd: MaxUsd = None,
    max_calls: MaxCalls = None,
    allow_mixed: AllowMixed = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Generate no more questions: verify and filter those of a stopped run.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that this run did not write.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Generate questions from documents, each with the excerpts that answer it.

    raggs samples text windows from all parts of the documents, and the asker writes questions about each window.
    Questions whose excerpts are not found verbatim are dropped, and so are duplicates and questions that are dissimilar
    to an excerpt. The default asker makes questions by rules,
    offline, to try the tool. With DOCS, raggs also writes a configuration for raggs run next to the questions, unless
    one exists. To import questions from user logs, use raggs questions import. To find thresholds, use raggs questions
    calibrate.

    \b
    Examples:
      raggs questions docs --out questions.jsonl
      raggs questions docs --asker litellm:openai/gpt-5-mini --n 200 --dry-run
      raggs questions make --config raggs.yaml --max-usd 2
    """
    from raggs.app.addresses import permit
    from raggs.app.question_tools import config_for, says_otherwise
    from raggs.app.questions import open_questions, output_of
    from raggs.app.run import forecast
    from raggs.base.errors import PartialError
    from raggs.cli import render
    from raggs.cli.options import RunFlags, approver, find_config
    from raggs.config.load import load_config
    from raggs.runs.plan import Selection
    from raggs.stages.questions import QUESTIONS

    written, wanted = False, (*(overrides or ()), *_settings(n, asker))
    if documents is not None:
        config, written = config_for(documents, config, out, wanted, writes=not dry_run)
    config = find_config(None, config, "raggs.yaml", "name a folder of documents: raggs questions docs")
    settings = (*wanted, *_caps(max_usd, max_calls), *(("llm.allow_mixed=true",) if allow_mixed else ()))
    loaded = load_config(config, settings)
    target = output_of(loaded.run, out)
    permit(loaded.run, () if dry_run else QUESTIONS.order, approver(yes, quiet))
    if dry_run:
        with open_questions(loaded) as runner:
            expected = forecast(runner, Selection(QUESTIONS.order))
            render.dry_run(expected, loaded.run.budget.max_usd, as_json, loaded.run.llm)
        return
    asked = RunFlags(config, settings, verb="questions")
    asks = not (yes or quiet or partial) and sys.stdin.isatty() and sys.stderr.isatty()
    flags = QuestionsFlags(partial=partial, force=force, asks=asks, shows=not (quiet or as_json), sure=yes)
    made = _make(loaded, target, asked, flags)
    if as_json:
        say_json(made_json(made))
    elif not quiet:
        _say_results(made, asked, loaded, config if written else None)
        if not written and documents is not None and says_otherwise(config, loaded.run):
            kept = ", ".join(setting.replace("=", ": ", 1) for setting in wanted)
            say(f"note: {config} has other settings, and would lead to other questions; set in this file: {kept}")
    if made.stopped is not None:
        raise made.stopped
    if not made.kept:
        raise PartialError(
            "no question remains after filtering",
            where=made.run.folder,
            remedy="see filter.jsonl and ask.jsonl for the reasons",
        )


def _caps(max_usd: float | None, max_calls: int | None) -> list[str]:
    """Return the limits of cost and calls as settings."""
    caps = {"budget.max_usd": max_usd, "budget.max_calls": max_calls}
    return [f"{name}={value}" for name, value in caps.items() if value is not None]


def _settings(n: int | None, asker: str | None) -> list[str]:
    """Return the number of questions and the asker as settings."""
    from raggs.app.question_tools import asker_setting

    found = [] if n is None else [f"questions.sample.n={n}"]
    return found if asker is None else [*found, f"questions.ask.asker={asker_setting(asker)}"]


@dataclass(frozen=True)
class QuestionsFlags:
    """Flags of `raggs questions make`.

    Attributes:
        partial: whether to use the questions of a stopped run without generating more.
        force: whether to overwrite files that the run did not write.
        asks: whether a user can be asked for confirmation.
        shows: whether progress is shown.
        sure: whether artifacts that were edited by hand may be replaced.
    """

    partial: bool
    force: bool
    asks: bool
    shows: bool
    sure: bool


def _make(loaded: LoadedConfig, target: Path, asked: RunFlags, flags: QuestionsFlags) -> QuestionsResult:
    from raggs.app.questions import check_free, make_questions, open_questions
    from raggs.app.run import forecast
    from raggs.cli.progress import listener
    from raggs.cli.runs import confirm_cost
    from raggs.llm import BudgetSpent
    from raggs.runs.events import ignore_event
    from raggs.runs.plan import Selection

    display = listener(not flags.shows)
    with open_questions(loaded, listen=display or ignore_event) as runner:
        check_free(runner.store, target, force=flags.force)
        if flags.asks:
            confirm_cost(forecast(runner, Selection(runner.pipeline.order)), loaded.run.budget.max_usd)
        try:
            with display or nullcontext():
                made = make_questions(
                    runner, target, partial=flags.partial, force=flags.force, discard_edits=flags.sure
                )
        except BudgetSpent as error:
            _tell_how_to_go_on(error, runner, asked)
            raise
        if made.stopped is not None:
            _tell_how_to_go_on(made.stopped, runner, asked)
        return made


def _tell_how_to_go_on(error: BudgetSpent, runner: Runner, asked: RunFlags) -> None:
    """Extend the error with the command that resumes the run with a sufficient budget."""
    from raggs.app.run import forecast
    from raggs.runs.plan import Selection

    expected, cap = forecast(runner, Selection(runner.pipeline.order)), error.cap
    usd, calls = expected.usd, sum(line.calls for line in expected.running)
    left = usd if cap.money else calls
    enough = 2 * cap.limit if left is None else cap.spent + left
    value = f"{math.ceil(100 * enough) / 100 or 0.01:.2f}" if cap.money else str(math.ceil(enough))
    again = asked.command({} if cap.per_invocation else {f"budget.{cap.setting}": value})
    error.remedy = f"paid answers are cached; to resume: {again}"


def made_json(made: QuestionsResult) -> str:
    """Return the result as JSON."""
    from raggs.runs.manifests.store import dump_json

    return dump_json(
        {
            "run": str(made.run.folder),
            "files": [str(file) for file in made.files],
            "asked": made.asked,
            "short": made.short,
            "kept": made.kept,
            "rejected": made.rejected,
            "types": made.kinds,
            "splits": made.parts,
            "difficulty": made.difficulties,
            "leakage": None if not made.leakage.count else made.leakage.mean,
            "asker": made.asker,
            "made": made.note,
            "usd": made.usd,
            "usd_each": made.usd_each,
            "stopped": None if made.stopped is None else str(made.stopped),
        }
    )


def _say_results(made: QuestionsResult, asked: RunFlags, loaded: LoadedConfig, written: Path | None) -> None:
    """Print the result and the next command."""
    from raggs.base.text import plural

    say(f"{plural(made.kept, 'question')} of {made.asked:,} kept, {made.note} ({made.asker})")
    if made.short:
        say(made.short)
    if made.rejected:
        told = {reason: f" ({made.why[reason]})" if reason in made.why else "" for reason in made.rejected}
        say("dropped: " + ", ".join(f"{count:,} {reason}{told[reason]}" for reason, count in made.rejected.items()))
    if made.kinds:
        say("types: " + ", ".join(f"{count:,} {kind}" for kind, count in made.kinds.items()))
    if made.difficulties:
        counts = ", ".join(f"{count:,} {level}" for level, count in made.difficulties.items())
        say(f"difficulty, by {plural(made.systems, 'system')}: {counts}")
    if made.kept:
        say("split: " + ", ".join(f"{count:,} {part}" for part, count in made.parts.items()))
    if made.leakage.warning:
        say(made.leakage.warning)
    if made.usd:
        each = "" if made.usd_each is None else f", ${made.usd_each:,.4f} per kept question"
        say(f"${made.usd:,.4f} spent{each}")
    if made.files and {"duplicate", "off the question"} & made.rejected.keys():
        say(f"the thresholds depend on the embedder; to check them: raggs questions calibrate {made.files[0]}")
    if made.files:
        say("questions: " + ", ".join(map(str, made.files)))
    if written is not None:
        say(f"configuration: {written}")
    say(f"run: {made.run.folder}")
    if made.kept:
        say(f"next: {replace(asked, verb='run', overrides=()).command()}")


PAIRS_EACH_SIDE = 5  # pairs shown on each side of a threshold
BAR = 40
WIDTH = 400  # characters of a text that are shown
QUESTIONS_BY_KIND = {"duplicate": "same question?", "excerpt": "is the excerpt about the question?"}
PAIR_NAMES = {
    "duplicate": "questions and their nearest earlier question",
    "excerpt": "questions and their least similar excerpt",
}


def calibrate(
    questions: Annotated[
        Path, typer.Argument(metavar="FILE", help="File of questions with excerpts: CSV, JSONL or YAML.")
    ],
    embedder: Annotated[
        str | None,
        typer.Option(
            "--embedder",
            metavar="NAME",
            help="Embedder, as type:path or type:model:key=value [default: wordllama, or lsa if it is not installed].",
        ),
    ] = None,
    corpus: Annotated[
        str | None, typer.Option("--corpus", metavar="NAME", help="Use only questions about this document or corpus.")
    ] = None,
    duplicate: Annotated[
        float | None,
        typer.Option(
            "--duplicate",
            metavar="COSINE",
            min=-1,
            max=1,
            help="Similarity above which questions are duplicates [default: wordllama 0.85, lsa 0.95, others 0.70].",
        ),
    ] = None,
    excerpt: Annotated[
        float | None,
        typer.Option(
            "--excerpt",
            metavar="COSINE",
            min=-1,
            max=1,
            help="Similarity below which an excerpt is off-topic [default: wordllama 0.15, lsa 0.35, others 0.41].",
        ),
    ] = None,
    ask: Annotated[
        bool | None, typer.Option("--ask/--no-ask", help="Decide on pairs interactively [default: on a terminal].")
    ] = None,
    max_usd: Annotated[
        float, typer.Option("--max-usd", metavar="USD", min=0, help="Cap for the cost of the embedder, in USD.")
    ] = 5.0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Find similarity thresholds by reviewing pairs of questions and excerpts.

    Thresholds depend on the corpus and the embedder. Prints histograms of both similarities and the pairs next to each
    threshold. On a terminal, a binary search shows pairs instead: answer y or n, u (undo) or q (quit).

    \b
    Examples:
      raggs questions calibrate questions.csv
      raggs questions calibrate questions.csv --corpus finance --duplicate 0.8
    """
    from raggs.app.question_tools import CalibrateRequest, calibrate
    from raggs.cli.progress import listener
    from raggs.runs.events import ignore_event
    from raggs.stats.question_filters import Thresholds

    request = CalibrateRequest(questions, embedder, corpus, max_usd=max_usd)
    display = listener(as_json)
    with display or nullcontext():
        found = calibrate(request, display or ignore_event)
    thresholds = Thresholds(
        found.usual.excerpt if excerpt is None else excerpt,
        found.usual.duplicate if duplicate is None else duplicate,
    )
    if as_json:
        say_json(json.dumps(_calibrating_as_json(found, thresholds), indent=2))
        return
    interactive = sys.stdin.isatty() and sys.stdout.isatty() if ask is None else ask
    for pairs in found.pairs.values():
        _histogram(pairs)
        if not interactive:
            _say_near_pairs(pairs, getattr(thresholds, pairs.kind))
    if interactive:
        thresholds = _searched(found, thresholds)
    _end(found, thresholds)


def _calibrating_as_json(found: ThresholdCalibration, thresholds: Thresholds) -> dict[str, object]:
    gone = found.gone(thresholds)
    return {
        "questions": found.questions,
        "embedder": found.embedder,
        **{
            kind: {
                "threshold": getattr(thresholds, kind),
                "gone": gone[kind],
                "pairs": len(pairs.texts),
                "histogram": [{"from": edge, "count": count} for edge, count in pairs.histogram],
            }
            for kind, pairs in found.pairs.items()
        },
    }


def _histogram(pairs: ThresholdPairs) -> None:
    """Print a histogram of the cosines as bars, without the empty bins at both ends."""
    say(f"\ncosines of {PAIR_NAMES[pairs.kind]}: {len(pairs.texts):,}")
    bins = pairs.histogram
    held = [place for place, (_, count) in enumerate(bins) if count]
    most = max((count for _, count in bins), default=0)
    for edge, count in bins[held[0] : held[-1] + 1] if held else ():
        say(f"  {edge:.2f}  {'#' * -(-BAR * count // most)} {count:,}")


def _say_near_pairs(pairs: ThresholdPairs, threshold: float) -> None:
    """Print the pairs just above and just below a threshold."""
    order = pairs.cosines.argsort(kind="stable")[::-1].tolist()
    above = [row for row in order if pairs.cosines[row] > threshold]
    shown = order[max(0, len(above) - PAIRS_EACH_SIDE) : len(above) + PAIRS_EACH_SIDE]
    for place, row in enumerate(shown):
        if place == min(PAIRS_EACH_SIDE, len(above)):
            say(f"  ---- {pairs.kind} {threshold:g} ----")
        _pair(pairs, row)


def _pair(pairs: ThresholdPairs, row: int, err: bool = False) -> None:
    from raggs.base.text import shorten

    one, other = (shorten(text, WIDTH) for text in pairs.texts[row])
    say(f"  {pairs.cosines[row]:.3f}  {one}\n         {other}", err=err)


def _searched(found: ThresholdCalibration, usual: Thresholds) -> Thresholds:
    """Return both thresholds from the user's answers; without pairs, a threshold keeps its default."""
    from raggs.stats.question_filters import Thresholds

    values = {kind: _search(kind, pairs) for kind, pairs in found.pairs.items()}
    return Thresholds(
        usual.excerpt if values["excerpt"] is None else values["excerpt"],
        usual.duplicate if values["duplicate"] is None else values["duplicate"],
    )


def _search(kind: Kind, pairs: ThresholdPairs) -> float | None:
    """Return one threshold from the user's answers; None if there are no pairs."""
    from raggs.stats.question_filters import ThresholdSearch

    search = ThresholdSearch(pairs.cosines)
    if not len(pairs.cosines):
        return None
    while (standing := search.standing()).row is not None:
        say("", err=is_quiet())  # printed even with --quiet (to stderr), because the user must see the pair
        _pair(pairs, standing.row, err=is_quiet())
        answer = _answer(f"{QUESTIONS_BY_KIND[kind]} [y/n/u/q] ({standing.low:.2f} to {standing.high:.2f})")
        if answer == "q":
            break
        if answer == "u":
            search.undo()
        else:
            search.answer(answer == "y")
    return search.standing().threshold


def _answer(question: str) -> str:
    while True:
        given = prompt_user(question).strip().lower()[:1]
        if given and given in "ynuq":
            return given


def _end(found: ThresholdCalibration, thresholds: Thresholds) -> None:
    """Print how many questions the thresholds remove, and the settings to use them."""
    gone = found.gone(thresholds)
    say(
        f"\nduplicate {thresholds.duplicate:g}: {gone['duplicate']:,} of {found.questions:,} questions removed; "
        f"excerpt {thresholds.excerpt:g}: {gone['excerpt']:,} removed"
    )
    say(f"embedder: {found.embedder} (thresholds of other embedders differ)")
    place, values = "questions.filter", thresholds
    say(f"to use these thresholds, set {place}.duplicate={values.duplicate:g} {place}.excerpt={values.excerpt:g}")


def evidence(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, e.g. runs/demo.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="File for the queries: .jsonl, .csv or .yaml.")
    ],
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge", metavar="MODEL", help="litellm:MODEL, the model to call [default: model of the run's judge]."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print calls, tokens and cost; call no model and write nothing.")
    ] = False,
    max_usd: Annotated[
        float,
        typer.Option("--max-usd", metavar="USD", min=0, help="Budget in USD for all invocations with this --out."),
    ] = 1.0,
    allow_mixed: AllowMixed = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Find the combinations of passages that suffice for an answer, with a language model.

    The model reads up to 8 passages of grade 4 or 5 per query and proposes minimal combinations. Each one is verified:
    its passages must suffice together, and no longer suffice if any one of them is removed. The measures complete@k and
    evidence_recall@k use the result.

    \b
    Examples:
      raggs questions evidence runs/demo --out queries.jsonl --dry-run
      raggs questions evidence runs/demo --out queries.jsonl --judge litellm:openai/gpt-5-mini
    """
    from raggs.app.question_evidence import (
        ESTIMATED,
        EvidenceRequest,
        find_question_evidence,
        forecast_question_evidence,
        summarise_evidence,
    )
    from raggs.base.errors import PartialError
    from raggs.cli.chunks import show_costs
    from raggs.cli.documents import show_summary
    from raggs.cli.options import approver, typed
    from raggs.cli.progress import listener
    from raggs.cli.screen import open_console
    from raggs.llm import BudgetSpent
    from raggs.runs.events import ignore_event

    request = EvidenceRequest(run, out, judge, max_usd, force, allow_mixed)
    if dry_run:
        config, estimates = forecast_question_evidence(request)
        show_costs(estimates, max_usd, as_json=as_json, llm=config.llm, about=ESTIMATED)
        return
    display = listener(quiet or as_json)
    try:
        with display or nullcontext():
            found = find_question_evidence(request, display or ignore_event, approver(yes, quiet))
    except BudgetSpent as error:
        error.remedy = "paid answers are cached; run the same command with a higher --max-usd"
        raise
    if as_json:
        sets = {each.query.qid: each.evidence for each in found.found if each.evidence}
        counts = {"queries": len(found.found), "failed": found.failed, "usd": found.usd}
        say_json(json.dumps({"evidence": sets, **counts, "files": list(map(str, found.files))}, indent=2))
    elif not quiet:
        show_summary(summarise_evidence(found, f"raggs run --set queries.path={typed(out)}"), open_console())
        for file in found.files:
            say(str(file))
    if found.failed:
        raise PartialError(
            f"{found.failed:,} of {len(found.found):,} queries have no evidence because a call failed",
            where=found.files[-1],
            remedy="to try these queries again, run the same command; paid answers are cached",
        )
