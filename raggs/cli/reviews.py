"""`raggs review` (human labels) and `raggs judge` (validation and comparison of judges)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Annotated, Literal

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import ColumnOption, Confidence, Details, Json, RunFolder, typed
from raggs.cli.options import Seed as options_Seed
from raggs.cli.plain_text import say, say_json, say_note, say_secret

ReviewsFolder = Annotated[
    Path | None,
    typer.Option(
        "--reviews", metavar="DIR", help="Folder of the human labels [default: `reviews` next to the folder of runs]."
    ),
]
AnnotatorOption = Annotated[
    str | None, typer.Option("--annotator", metavar="NAME", help="Name of the annotator [default: your login name].")
]
CANNOT_TELL = "?"


def set_(
    run: RunFolder,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Query id, e.g. q12.")],
    passage: Annotated[str, typer.Argument(metavar="PASSAGE", help="Passage id in the pool of the query, e.g. doc7.")],
    grade: Annotated[
        str, typer.Argument(metavar="GRADE", help="Grade: 1 (not relevant) to 5 (answers the query), or ? (undecided).")
    ],
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Note that is stored with the label.")] = "",
    who: AnnotatorOption = None,
    settle: Annotated[bool, typer.Option("--settle", help="Adjudicate: this grade replaces differing grades.")] = False,
    reviews: ReviewsFolder = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Store a human label for one passage.

    The run does not change. The label is used by the next run with the judge `human`, or with raggs run --human-first.

    \b
    Examples:
      raggs review set runs/demo q12 doc7 4 --note "names the limit, not the exception"
      raggs review set runs/demo q12 doc7 ? --annotator ada
      raggs review set runs/demo q12 doc7 3 --settle
    """
    from raggs.app.review import next_run, reviews_of, set_grade
    from raggs.runs.manifests.open_run import open_run

    opened = open_run(run)
    number = _grade(grade)
    said = set_grade(opened, query, passage, number, folder=reviews, who=who, note=note, settles=settle)
    if as_json:
        say_json(said.model_dump_json(indent=2))
        return
    what = "cannot tell" if number is None else f"grade {number}"
    replaced = ", replaces your earlier label" if said.replaces else ""
    say(f"{said.who}: {what} for {passage} of {query}{replaced}, in {reviews_of(opened.folder, reviews)}")
    say(f"next: {next_run(opened, reviews)}")


def status(
    run: RunFolder,
    reviews: ReviewsFolder = None,
    details: Details = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show human labels by annotator, and how far they agree.

    \b
    Example:
      raggs review status runs/demo
    """
    from raggs.app.review import annotator_agreement, review_status
    from raggs.runs.manifests.open_run import open_run
    from raggs.runs.manifests.store import dump_json

    opened = open_run(run)
    found = review_status(opened, reviews)
    if as_json:
        say_json(dump_json({**asdict(found), "folder": str(found.folder)}))
        return
    from raggs.cli.documents import show_details
    from raggs.cli.review_summaries import summarise_reviews
    from raggs.cli.screen import open_console

    def rest() -> None:
        for name, count in found.reviewers.items():
            say(f"{name}: {count:,}")
        say(f"labels: {found.folder}")

    summary = summarise_reviews(found, annotator_agreement(opened, reviews), typed(run))
    show_details(summary, open_console(), details, rest)


def _grade(given: str) -> int | None:
    """Return a typed grade; None for a question mark.

    Raises:
        UsageError: it is neither a whole number nor a question mark.
    """
    from raggs.base.errors import UsageError

    if given == CANNOT_TELL:
        return None
    if not given.isascii() or not given.isdigit():
        raise UsageError(f"{given!r} is not a grade", remedy="give 1 to 5, or ? for undecided")
    return int(given[:9])


def import_(
    run: RunFolder,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files of labels: .csv, .jsonl or .json.")],
    who: Annotated[
        list[str] | None,
        typer.Option(
            "--annotator",
            metavar="[AS=]NAME",
            help="Annotator of rows without a name; with AS=NAME, of rows by AS. Repeatable.",
        ),
    ] = None,
    column: ColumnOption = None,
    reviews: ReviewsFolder = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Import human labels from a file.

    If a row is invalid, nothing is imported.

    A table needs the columns qid, doc_id and grade (1 to 5, or ? for undecided). Optional columns: who, at, note,
    seconds and blind. Blind is true if the annotator had not yet seen a grade by a model. Only blind labels validate
    the judge. Exports of Argilla and Label Studio can be imported directly. Rows without a grade and duplicates are
    skipped.

    \b
    Examples:
      raggs review import runs/demo grades.csv --annotator ada
      raggs review import runs/demo label-studio.json --annotator 7=ada
    """
    from raggs.app.review_files import import_reviews
    from raggs.base.tables import REVIEW_ROLES, parse_column_names
    from raggs.base.text import plural
    from raggs.runs.manifests.open_run import open_run
    from raggs.runs.manifests.store import dump_json

    columns = parse_column_names(column or (), REVIEW_ROLES)
    taken = import_reviews(open_run(run), files, folder=reviews, who=who or (), columns=columns)
    if as_json:
        say_json(dump_json({**asdict(taken), "folder": str(taken.folder)}))
        return
    say(f"{plural(taken.added, 'label')} added to {taken.folder}")
    if taken.known:
        say(f"{plural(taken.known, 'duplicate row')} skipped")
    if taken.open:
        say(f"{plural(taken.open, 'row')} without a grade skipped")
    if taken.stale:
        say(f"{plural(taken.stale, 'label')} stored but not used: the text of the query or passage changed")


def export(
    run: RunFolder,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="File to write.")],
    form: Annotated[
        str, typer.Option("--format", metavar="FORM", help="Format: csv, jsonl, argilla or label-studio.")
    ] = "csv",
    todo: Annotated[bool, typer.Option("--todo", help="Write the passages without a label, as tasks.")] = False,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Write all lines, also replaced and withdrawn labels (only with --format jsonl)."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
    reviews: ReviewsFolder = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Export human labels, or the passages that still need a label.

    Tasks (--todo) contain the query and the passage but no grade by a model. Their ids and digests let
    raggs review import match the labels to the passages.

    \b
    Examples:
      raggs review export runs/demo --out words.csv
      raggs review export runs/demo --todo --format label-studio --out tasks.json
    """
    from raggs.app.review_files import export_reviews
    from raggs.base.text import plural
    from raggs.runs.manifests.open_run import open_run
    from raggs.runs.manifests.store import dump_json

    given = export_reviews(open_run(run), out, form, folder=reviews, todo=todo, everything=everything, force=force)
    if as_json:
        say_json(dump_json({**asdict(given), "path": str(given.path)}))
    elif todo:
        say(f"{out}: {plural(given.items, 'passage')} to label")
    elif everything:
        say(f"{out}: {plural(given.words, 'line')}")
    else:
        say(f"{out}: {plural(given.words, 'label')} of {plural(given.items, 'passage')}")


Systems = Annotated[
    list[str] | None,
    typer.Option(
        "--systems",
        "-s",
        metavar="[NAME=]FILE|RUN",
        help="Run file of a system, or a run directory for its retrievers [default: RUN]. Repeatable.",
    ),
]
Measures = Annotated[
    str | None,
    typer.Option(
        "--measures", "-m", metavar="NAMES", help="Metrics, separated by commas [default: ra_nwg@10,ndcg@10,recall@10]."
    ),
]
Minutes = Annotated[float, typer.Option("--minutes", metavar="N", help="Time available for labelling, in minutes.")]
RandomShareOption = Annotated[
    float,
    typer.Option("--random", metavar="SHARE", help="Share of the time for randomly drawn passages (0 to 1)."),
]
WholeQuestionsOption = Annotated[
    bool,
    typer.Option("--whole", help="Draw all passages of a query together, which allows correcting any metric."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="File for the plan (JSON lines) [default: not written]."),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Random seed of the draw.")]


def plan(
    run: RunFolder,
    systems: Systems = None,
    measures: Measures = None,
    minutes: Minutes = 60.0,
    share: RandomShareOption = 0.1,
    whole: WholeQuestionsOption = False,
    out: Out = None,
    seed: Seed = 1,
    reviews: ReviewsFolder = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Plan which passages to label next.

    Chooses the passages that make the verdicts on systems more certain, in the available time. Labelled passages are
    skipped. Some passages are drawn at random, to estimate the error of the judge.

    \b
    Examples:
      raggs review plan runs/demo --minutes 60 --out plan.jsonl
      raggs review plan runs/demo -s runs/demo -s new=new.trec -m ndcg@10
      raggs review plan runs/demo --whole --random 1 --minutes 600 --out plan.jsonl
    """
    from raggs.app.review_plan import MEASURES, PlanRequest, keep_plan, lay_out_plan, plan_json, plan_reading
    from raggs.cli.documents import show_sweep
    from raggs.cli.screen import open_console
    from raggs.metrics.names import split_names
    from raggs.runs.manifests.open_run import open_run

    names = MEASURES if measures is None else tuple(split_names(measures))
    request = PlanRequest(tuple(systems or ()), names, minutes, share, whole, seed)
    found = plan_reading(open_run(run), request, reviews)
    if out is not None:
        keep_plan(found, out)
    if as_json:
        say_json(plan_json(found))
        return
    show_sweep(lay_out_plan(found), open_console())
    if out is not None:
        say(str(out))


Runs = Annotated[list[Path], typer.Argument(metavar="RUN", help="Run directories, e.g. runs/demo.")]

QueueOrder = Literal["question", "passage"]


def serve(
    runs: Runs,
    port: Annotated[int, typer.Option("--port", metavar="N", help="Port to listen on; 0 selects a free port.")] = 8765,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDRESS", help="Address to listen on; any address other than localhost needs --token."
        ),
    ] = "127.0.0.1",
    hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", metavar="NAME", help="Accepted host name of this server, e.g. that of a proxy. Repeatable."
        ),
    ] = None,
    token: Annotated[
        str | None, typer.Option("--token", metavar="SECRET", help="Access token in the URL [default: a random token].")
    ] = None,
    who: Annotated[
        str | None,
        typer.Option("--annotator", metavar="NAME", help="Name of the annotator [default: entered on the page]."),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option("--sample", metavar="N", help="Number of passages to label, drawn at random [default: all]."),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="Label only the passages of this plan, in its order.")
    ] = None,
    overlap: Annotated[
        float,
        typer.Option("--overlap", metavar="SHARE", help="Share of the passages that two annotators label (0 to 1)."),
    ] = 0.2,
    repeats: Annotated[
        float,
        typer.Option(
            "--repeats", metavar="SHARE", help="Share of the passages that an annotator labels twice (0 to 1)."
        ),
    ] = 0.05,
    by: Annotated[
        QueueOrder, typer.Option("--by", help="Show the passages of a query together, or all passages in random order.")
    ] = "question",
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Show the model's grade and reason after the annotator's own grade.")
    ] = False,
    systems: Systems = None,
    measures: Measures = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Random seed of all orders and samples.")] = 0,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="Time limit for receiving a request, in seconds.")
    ] = 15.0,
    look: Annotated[
        bool, typer.Option("--look", help="Serve the results of the runs at /look; labels are then not blind.")
    ] = False,
    reviews: ReviewsFolder = None,
    debug: Debug = False,
) -> None:
    """Label passages in the browser.

    Annotators see no grade by a model or another annotator before their own, unless the server also shows results
    (--look). Each grade is written to disk before the page confirms it. Passages with different grades are adjudicated,
    those with the largest effect on the systems (-s) and metrics (-m) first. Runs do not change.

    \b
    Examples:
      raggs review serve runs/demo
      raggs review serve runs/demo --annotator ada --sample 200
      raggs review serve runs/a runs/b --host 0.0.0.0 --token "$SECRET"
    """
    from raggs.app.serve import ServedReview, ServeRequest, offer_sentence
    from raggs.app.serve import serve as run
    from raggs.metrics.names import split_names

    def tell(served: ServedReview) -> None:
        say_secret(served.address)  # unmasked: the token is part of the address
        say_note(f"{offer_sentence(served)}; labels are written to {served.folder} (stop with Ctrl-C)")
        for note in served.notes:
            say_note(f"note: {note}")

    names = () if measures is None else tuple(split_names(measures))
    request = ServeRequest(
        runs,
        reviews,
        host,
        port,
        token,
        who,
        sample,
        plan,
        seed,
        overlap,
        repeats,
        by,
        reveal,
        look,
        tuple(hosts or ()),
        timeout,
        tuple(systems or ()),
        names,
    )
    run(request, tell)


OutFolder = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for check.json and check.md.")
]
CalibrationFile = Annotated[
    Path | None,
    typer.Option(
        "--calibration", metavar="FILE", help="File for the map from judge grades to expected human grades (JSON)."
    ),
]


def check(
    run: RunFolder,
    reviews: ReviewsFolder = None,
    out: OutFolder = None,
    calibration: CalibrationFile = None,
    confidence: Confidence = 0.95,
    seed: options_Seed = 1,
    details: Details = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Validate a run's judge against human labels.

    Prints how far both agree and whether the judge may be used to compare systems and for absolute scores. Only blind
    labels count: those given before the annotator saw a grade by a model.

    \b
    Examples:
      raggs judge check runs/demo
      raggs judge check runs/demo --reviews team/reviews --out check
      raggs judge check runs/demo --calibration map.json
    """
    from raggs.app.judge_check import check_json, check_judge, lay_out_check, write_calibration, write_check
    from raggs.cli.documents import show_details, show_sweep
    from raggs.cli.review_summaries import summarise_check
    from raggs.cli.screen import open_console
    from raggs.runs.manifests.open_run import open_run

    found = check_judge(open_run(run), reviews, confidence=confidence, seed=seed)
    files = [] if out is None else write_check(found, out)
    if calibration is not None:
        write_calibration(found, calibration)
        files.append(calibration)
    if as_json:
        say_json(check_json(found))
        return
    screen = open_console()
    show_details(summarise_check(found, typed(run)), screen, details, lambda: show_sweep(lay_out_check(found), screen))
    for file in files:
        say(str(file))


FirstRun = Annotated[Path, typer.Argument(metavar="A", help="Run directory.")]
SecondRun = Annotated[
    Path | None,
    typer.Argument(
        metavar="B", help="Run directory with the same queries and passages [default: compare two panel members of A]."
    ),
]
Members = Annotated[
    str | None, typer.Option("--members", metavar="A,B", help="Two panel members, by a part of their names.")
]
ComparisonOut = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for compare.json and compare.md.")
]
PlanFile = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="File for a plan of the passages on which the judges differ (for raggs review serve --plan).",
    ),
]
ShowOption = Annotated[
    int,
    typer.Option(
        "--show",
        metavar="N",
        min=0,
        help="Maximum number of passages with different grades to list in compare.md and with --details.",
    ),
]


def compare(
    first: FirstRun,
    second: SecondRun = None,
    members: Members = None,
    reviews: ReviewsFolder = None,
    out: ComparisonOut = None,
    plan: PlanFile = None,
    show: ShowOption = 10,
    confidence: Confidence = 0.95,
    seed: options_Seed = 1,
    details: Details = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare two judges, prompts or models on the same passages.

    Prints which one is closer to the human labels, how far they agree, and what each costs.

    \b
    Examples:
      raggs run --to judge --run-id strict --set judge.prompt=strict.md --dry-run
      raggs run --to judge --run-id strict --set judge.prompt=strict.md
      raggs judge compare runs/demo runs/strict
      raggs judge compare runs/demo runs/strict --plan differ.jsonl
      raggs review serve runs/demo --plan differ.jsonl
      raggs judge compare runs/panel --members mini,haiku
    """
    from raggs.app.judge_compare import (
        compare_judges,
        compare_members,
        comparison_json,
        lay_out_comparison,
        plan_differing,
        write_comparison,
    )
    from raggs.base.errors import UsageError
    from raggs.cli.documents import show_details, show_sweep
    from raggs.cli.review_summaries import summarise_comparison
    from raggs.cli.screen import open_console
    from raggs.runs.manifests.open_run import open_run

    if second is not None and members is not None:
        raise UsageError("--members applies to the panel of one run", remedy="omit B or --members")
    if second is None:
        names = [name.strip() for name in (members or "").split(",") if name.strip()]
        found = compare_members(open_run(first), names, reviews, confidence=confidence, seed=seed)
    else:
        found = compare_judges(open_run(first), open_run(second), reviews, confidence=confidence, seed=seed)
    files = [] if out is None else write_comparison(found, out, show)
    if plan is not None and plan_differing(found, plan, seed):
        files.append(plan)
    if as_json:
        say_json(comparison_json(found))
        return
    screen = open_console()
    command = f"raggs judge compare {typed(first)}" + (f" {typed(second)}" if second else "")
    command += f" --members {quote(members)}" if members else ""
    summary = summarise_comparison(found, command)
    show_details(summary, screen, details, lambda: show_sweep(lay_out_comparison(found, show), screen))
    if plan is not None and not found.unread:
        say("no plan written: every passage on which the judges differ has a human label")
    for file in files:
        say(str(file))
