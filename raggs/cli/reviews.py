"""`raggs review`: people's word on passages, from the command line.

`raggs review import` and `raggs review export`: people's word from elsewhere, and to elsewhere.

`raggs review plan`: what a person should read next.

`raggs review serve`: the page on which people grade.

`raggs judge`: a run's judge, held against people, and two judges against each other.
"""

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
    typer.Option("--reviews", metavar="DIR", help="The folder of reviews; `reviews` beside the runs' if left out."),
]
WhoOption = Annotated[str | None, typer.Option("--who", metavar="NAME", help="The reviewer; your login if left out.")]
CANNOT_TELL = "?"
BLIND_NOTE = "before a machine's grade was seen; these alone count for raggs judge and gates"


def set_(
    run: RunFolder,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A query id, e.g. q12.")],
    passage: Annotated[str, typer.Argument(metavar="PASSAGE", help="A passage of its pool, e.g. doc7.")],
    grade: Annotated[str, typer.Argument(metavar="GRADE", help="1 (not relevant) to 5 (answers); ? for cannot tell.")],
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Why.")] = "",
    who: WhoOption = None,
    settle: Annotated[bool, typer.Option("--settle", help="Decide where reviewers differ.")] = False,
    reviews: ReviewsFolder = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Note your grade of one passage. The run stays as it is; the judge `human` reads it.

    \b
    Examples:
      raggs review set runs/demo q12 doc7 4 --note "names the limit, not the exception"
      raggs review set runs/demo q12 doc7 ? --who ada
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
    replaced = ", in place of your earlier word" if said.replaces else ""
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
    from raggs.cli.review_summaries import summarize_reviews
    from raggs.cli.screen import open_console

    def rest() -> None:
        for name, count in found.reviewers.items():
            say(f"{name}: {count:,}")
        say(f"labels: {found.folder}")

    summary = summarize_reviews(found, annotator_agreement(opened, reviews), typed(run))
    show_details(summary, open_console(), details, rest)


def _grade(given: str) -> int | None:
    """What was typed as a grade.

    Raises:
        UsageError: it is neither a whole number nor a question mark.
    """
    from raggs.base.errors import UsageError

    if given == CANNOT_TELL:
        return None
    if not given.isascii() or not given.isdigit():
        raise UsageError(f"{given!r} is no grade", remedy="give 1 to 5, or ? for cannot tell")
    return int(given[:9])


def import_(
    run: RunFolder,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help=".csv, .jsonl or .json.")],
    who: Annotated[
        list[str] | None,
        typer.Option(
            "--who", metavar="[AS=]NAME", help="Whose words rows without a name are, or those of AS. Repeatable."
        ),
    ] = None,
    column: ColumnOption = None,
    reviews: ReviewsFolder = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Add grades that people gave elsewhere to the reviews.

    All rows of all files are added, or none.

    A table has the columns grade (1 to 5, or ? for cannot tell), qid and doc_id, and perhaps who, at, note, seconds
    and blind (true: no machine's grade was seen before; raggs judge counts these alone). Lists of Argilla's records
    and of Label Studio's tasks are read as these write them. Rows with an empty grade are left out; what was imported
    before is not added again.

    \b
    Examples:
      raggs review import runs/demo grades.csv --who ada
      raggs review import runs/demo label-studio.json --who 7=ada --who 9=bo
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
    say(f"{plural(taken.added, 'word')} added to {taken.folder}")
    if taken.known:
        say(f"{plural(taken.known, 'row')} said what was known already")
    if taken.open:
        say(f"{plural(taken.open, 'row')} without a grade left out")
    if taken.stale:
        say(f"{plural(taken.stale, 'word')} on texts that have changed since: kept, not used")


def export(
    run: RunFolder,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file.")],
    form: Annotated[str, typer.Option("--format", metavar="FORM", help="csv, jsonl, argilla or label-studio.")] = "csv",
    todo: Annotated[bool, typer.Option("--todo", help="The passages that nobody has read, as tasks.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="All lines, also those that hold no longer; with --format jsonl.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    reviews: ReviewsFolder = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write what people say of a run, or what waits for them, as a file.

    Tasks show the question and the passage and no machine's grade; they carry ids and digests, so that
    raggs review import finds where their grades belong.

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
        say(f"{out}: {plural(given.items, 'passage')} to read")
    elif everything:
        say(f"{out}: {plural(given.words, 'line')}")
    else:
        say(f"{out}: {plural(given.words, 'word')} on {plural(given.items, 'passage')}")


Systems = Annotated[
    list[str] | None,
    typer.Option(
        "--systems",
        "-s",
        metavar="[NAME=]FILE|RUN",
        help="What a system returned, or a run for its retrievers; the run's own if left out. Repeatable.",
    ),
]
Measures = Annotated[
    str | None,
    typer.Option("--measures", "-m", metavar="NAMES", help="With commas. [default: ra_nwg@10,ndcg@10,recall@10]"),
]
Minutes = Annotated[float, typer.Option("--minutes", metavar="N", help="How long somebody will read.")]
RandomShareOption = Annotated[
    float,
    typer.Option("--random", metavar="SHARE", help="Of the time, for passages drawn at random, in 0 to 1."),
]
WholeQuestionsOption = Annotated[
    bool,
    typer.Option("--whole", help="Draw whole questions: any measure can be corrected by them."),
]
Out = Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the plan there, JSON lines.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Of the draw.")]


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
    """Say what to read so that verdicts on systems become sure soonest.

    What was read already is left out. A part is drawn at random, which tells how far the judge errs.

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
    port: Annotated[int, typer.Option("--port", metavar="N", help="Where to listen; 0 takes a free one.")] = 8765,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Another than this machine's own needs --token.")
    ] = "127.0.0.1",
    hosts: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A name of this server, such as a proxy's. Repeatable."),
    ] = None,
    token: Annotated[
        str | None, typer.Option("--token", metavar="SECRET", help="What the address holds; drawn if left out.")
    ] = None,
    who: Annotated[
        str | None, typer.Option("--who", metavar="NAME", help="The reviewer; asked on the page if left out.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option("--sample", metavar="N", help="Only so many passages, drawn at random.")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="Only the passages of a plan, in its order.")
    ] = None,
    overlap: Annotated[
        float, typer.Option("--overlap", metavar="SHARE", help="Share of the passages that two people grade.")
    ] = 0.2,
    repeats: Annotated[
        float, typer.Option("--repeats", metavar="SHARE", help="Share that comes to a person a second time.")
    ] = 0.05,
    by: Annotated[
        QueueOrder, typer.Option("--by", help="A question's passages together, or all passages in one order.")
    ] = "question",
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Let people see the model's reason, after their own grade.")
    ] = False,
    systems: Systems = None,
    measures: Measures = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of every order and draw.")] = 0,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="Time limit for a request to arrive in full.")
    ] = 15.0,
    look: Annotated[
        bool, typer.Option("--look", help="Show what the runs decided, at /look; grades are then not blind.")
    ] = False,
    reviews: ReviewsFolder = None,
    debug: Debug = False,
) -> None:
    """Grade passages in the browser, alone or with others. Runs stay as they are.

    \b
    Nobody sees a machine's grade or another's before their own, and no system.
    Every keystroke is on the disk before the page says so. Where grades
    differ one decides, first what matters most to systems (-s) by measures (-m).

    \b
    Examples:
      raggs review serve runs/demo
      raggs review serve runs/demo --who ada --sample 200
      raggs review serve runs/a runs/b --host 0.0.0.0 --token "$SECRET"
    """
    from raggs.app.serve import ServedReview, ServeRequest, offer_sentence
    from raggs.app.serve import serve as run
    from raggs.metrics.names import split_names

    def tell(served: ServedReview) -> None:
        say_secret(served.address)  # the token in it is what it is for
        say_note(f"{offer_sentence(served)}; grades go to {served.folder}; Ctrl-C ends")
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
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write check.json and check.md there.")
]
CalibrationFile = Annotated[
    Path | None,
    typer.Option("--calibration", metavar="FILE", help="Write what the judge's grades are worth in people's there."),
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
    from raggs.cli.review_summaries import summarize_check
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
    show_details(summarize_check(found, typed(run)), screen, details, lambda: show_sweep(lay_out_check(found), screen))
    for file in files:
        say(str(file))


FirstRun = Annotated[Path, typer.Argument(metavar="A", help="A run directory.")]
SecondRun = Annotated[
    Path | None,
    typer.Argument(metavar="B", help="Another, over the same questions and passages; A's panel if left out."),
]
Members = Annotated[
    str | None, typer.Option("--members", metavar="A,B", help="Two members of a panel, by parts of their names.")
]
ComparisonOut = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write compare.json and compare.md there.")
]
PlanFile = Annotated[
    Path | None,
    typer.Option("--plan", metavar="FILE", help="Write what to read, where they differ, for review serve --plan."),
]
ShowOption = Annotated[int, typer.Option("--show", metavar="N", min=0, help="Passages listed on which they differ.")]


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
    from raggs.cli.review_summaries import summarize_comparison
    from raggs.cli.screen import open_console
    from raggs.runs.manifests.open_run import open_run

    if second is not None and members is not None:
        raise UsageError("members are of one run's panel", remedy="leave out B, or --members")
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
    summary = summarize_comparison(found, command)
    show_details(summary, screen, details, lambda: show_sweep(lay_out_comparison(found, show), screen))
    if plan is not None and not found.unread:
        say("no plan written: every passage on which the judges differ has a human label")
    for file in files:
        say(str(file))
