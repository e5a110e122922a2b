"""`raggs questions import` and `gaps`: queries of users from logs and traces, compared with a golden set."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import Confidence, Details, Json, Quiet, typed, with_option_groups
from raggs.cli.plain_text import say, say_json

if TYPE_CHECKING:
    from raggs.app.question_tools import QuestionImportResult
    from raggs.app.traces import TraceOptions
    from raggs.runs.events import Listener

TAG = "logged"  # name of the logged retriever in reports
MAX_SHOWN_QUESTIONS = 5


@dataclass(frozen=True)
class LogFlags:
    """Options about texts."""

    column: Annotated[
        str | None, typer.Option("--column", metavar="NAME", help="Column with the texts; other columns are not read.")
    ] = None
    allow: Annotated[
        str, typer.Option("--allow", metavar="KINDS", help="Kinds of personal data to keep, e.g. email,phone.")
    ] = ""
    mask: Annotated[
        bool, typer.Option("--mask", help="Replace personal data with placeholders such as [EMAIL]; always for traces.")
    ] = False
    near: Annotated[
        float,
        typer.Option(
            "--similarity",
            metavar="COSINE",
            min=0,
            max=1,
            help="Cosine above which two queries of a log are merged; 1 merges none.",
        ),
    ] = 0.92
    language: Annotated[
        str | None,
        typer.Option("--language", metavar="CODE", help="Language of all questions [default: detected for each]."),
    ] = None

    @property
    def kinds(self) -> list[str]:
        """Kinds of personal data to keep."""
        return [kind.strip() for kind in self.allow.split(",") if kind.strip()]


@dataclass(frozen=True)
class TraceFlags:
    """Options about traces."""

    form: Annotated[
        str,
        typer.Option(
            "--format", metavar="NAME", help="Format of traces: otlp, phoenix, langfuse, langsmith or auto (detected)."
        ),
    ] = "auto"
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Skip and count broken lines of traces [default: an error].")
    ] = False
    retriever: Annotated[
        str | None,
        typer.Option("--retriever", metavar="NAME", help="Name of the spans of a search in traces [default: all]."),
    ] = None
    feedback: Annotated[
        list[str] | None,
        typer.Option("--feedback", metavar="NAME", help="Name of feedback in traces [default: all]. Repeatable."),
    ] = None

    def options(self, log: LogFlags | None = None) -> TraceOptions:
        """Return the options of a log of traces.

        Raises:
            UsageError: the format is unknown.
        """
        from typing import get_args

        from raggs.app.traces import TraceOptions
        from raggs.base.errors import UsageError
        from raggs.base.text import did_you_mean
        from raggs.parts.queries.traces import TraceFormat, TraceFormatName

        known: tuple[TraceFormatName, ...] = ("auto", *get_args(TraceFormat))
        form = next((name for name in known if name == self.form), None)
        if form is None:
            raise UsageError(f"unknown format {self.form!r}", remedy=did_you_mean(self.form, known))
        allow, language = (log.kinds, log.language) if log is not None else ((), None)
        return TraceOptions(form, self.skip_invalid, self.retriever, tuple(self.feedback or ()), allow, language)


@dataclass(frozen=True)
class ImportFiles:
    """Files of an import."""

    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="File for the questions: .jsonl, .csv or .yaml.")
    ] = Path("questions.jsonl")
    run_file: Annotated[
        Path | None,
        typer.Option(
            "--run-file",
            metavar="FILE",
            help="File for the lists of the logged retriever: .jsonl or .csv (with latency), or .trec.",
        ),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="Configuration whose corpus has the documents of traces."),
    ] = None
    golden: Annotated[
        Path | None,
        typer.Option(
            "--golden", "-g", metavar="PATH", help="Golden set whose ids are used for queries with the same words."
        ),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the result; write nothing.")] = False
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False

    def free(self, path: Path | None) -> Path | None:
        """Return a path to write to; None in a dry run."""
        return None if self.dry_run else path


@with_option_groups
def import_(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Logs (.txt, .csv, .tsv, .jsonl) or traces (.json, .jsonl, .csv); also .gz."
        ),
    ],
    texts: LogFlags,
    traces: TraceFlags,
    files: ImportFiles,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Import questions from user logs or from traces, without personal data.

    No data is sent to a server. Entries that are not questions are dropped, and duplicates are counted. Questions of a
    log with personal data (e-mail addresses, phone numbers, IBANs, cards, IP addresses, social security numbers, names)
    are written to a second file (by default questions.flagged.jsonl), unless they are allowed or masked. In traces,
    personal data is masked, unless --allow names its kind.

    Traces are exports of OpenTelemetry (OTLP JSON), Phoenix, Langfuse or LangSmith. With --run-file, the logged lists
    become a system for raggs eval.

    \b
    Examples:
      raggs questions import search.log.gz --dry-run
      raggs questions import chats.csv --column message --mask
      raggs questions import traces.jsonl --run-file logged.jsonl -c raggs.yaml
    """
    from raggs.app.traces import is_trace_import
    from raggs.cli.progress import listener
    from raggs.runs.events import ignore_event

    listening = listener(quiet or as_json)
    options = traces.options(texts)
    with listening or nullcontext():
        hear = listening or ignore_event
        if is_trace_import(logs, options.form, texts.column):
            lines, found = _import_traces(logs, options, files, hear)
        else:
            lines, found = _import_logs(logs, texts, files, hear)
    if as_json:
        say_json(json.dumps(found, indent=2))
    elif not quiet:
        say("\n".join(lines))


def _import_logs(
    logs: list[Path], texts: LogFlags, files: ImportFiles, listen: Listener
) -> tuple[list[str], dict[str, object]]:
    """Import logs; return the lines to print and the JSON object.

    Raises:
        UsageError: an option of traces is given.
    """
    from raggs.app.question_tools import ImportRequest, import_logs
    from raggs.base.errors import UsageError

    given = {"--run-file": files.run_file, "--config": files.config, "--golden": files.golden}
    for option, value in given.items():
        if value is not None:
            remedy = f"omit {option}, or name the format of the traces with --format"
            raise UsageError(f"{option} is only for traces, and {logs[0]} is a log", remedy=remedy)
    request = ImportRequest(
        logs,
        files.free(files.out),
        texts.column,
        texts.kinds,
        mask=texts.mask,
        near=texts.near,
        language=texts.language,
        force=files.force,
    )
    found = import_logs(request, listen)
    return list(_lines(found)), _as_json(found)


def _import_traces(
    paths: list[Path], options: TraceOptions, files: ImportFiles, listen: Listener
) -> tuple[list[str], dict[str, object]]:
    """Import traces; return the lines to print and the JSON object."""
    from raggs.app.traces import TraceImportRequest, import_json, import_sentences, import_traces
    from raggs.base.text import shorten

    out, run_file = files.free(files.out), files.free(files.run_file)
    request = TraceImportRequest(paths, options, out, run_file, files.config, files.golden, files.force)
    found = import_traces(request, listen)
    lines = list(import_sentences(found))
    lines += [f"  {each.searches:>7}  {shorten(each.text, 100)}" for each in found.logged[:MAX_SHOWN_QUESTIONS]]
    lines += map(str, found.files or ("no file written",))
    if found.lists:
        lines.append(f"next: raggs eval --golden {files.golden or 'RUN'} --run {TAG}={files.run_file}")
    return lines, import_json(found)


def _as_json(found: QuestionImportResult) -> dict[str, object]:
    return {
        "entries": found.entries,
        "questions": len(found.questions),
        "same": found.same,
        "near": found.near,
        "dropped": dict(found.dropped),
        "flagged": {"questions": found.flagged_questions, "entries": found.flagged_entries, **found.flagged},
        "masked": dict(found.masked),
        "languages": dict(found.languages),
        "files": [str(path) for path in found.files],
    }


def _lines(found: QuestionImportResult) -> Iterator[str]:
    from raggs.base.text import plural, shorten

    yield f"{plural(found.entries, 'entry')}: {plural(len(found.questions), 'question')} ({_counts(found.languages)})"
    if found.same or found.near:
        yield f"duplicates: {found.same:,} with the same text, {found.near:,} with similar text"
    if found.dropped:
        yield f"not a question: {_counts(found.dropped)}"
    if found.flagged:
        aside = plural(found.flagged_questions, "question")
        yield f"personal data: {aside} set aside ({_counts(found.flagged)}); --mask or --allow KINDS keeps them"
    if found.masked:
        yield f"personal data masked: {_counts(found.masked)}"
    for query in found.questions[:MAX_SHOWN_QUESTIONS]:
        yield f"  {query.metadata['frequency']:>7}  {shorten(query.text, 100)}"
    yield "\n".join(map(str, found.files)) if found.files else "no file written"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


@with_option_groups
def gaps(
    golden: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory or golden set, e.g. runs/demo.")],
    paths: Annotated[
        list[Path],
        typer.Option("--traces", "-t", metavar="FILE", help="File of traces. Repeatable.", show_default=False),
    ],
    traces: TraceFlags,
    count: Annotated[int, typer.Option("--n", "-n", metavar="N", min=1, help="Number of queries to propose.")] = 20,
    similarity: Annotated[
        float,
        typer.Option(
            "--similarity",
            metavar="COSINE",
            min=0,
            max=1,
            help="Cosine from which a query of the set covers a query of users; the default is for wordllama.",
        ),
    ] = 0.45,
    embedder: Annotated[
        str,
        typer.Option(
            "--embedder", metavar="NAME", help="Embedder, as type:path or type:model:key=value (raggs list embedders)."
        ),
    ] = "wordllama",
    max_usd: Annotated[
        float, typer.Option("--max-usd", metavar="USD", min=0, help="Cap for the cost of the embedder, in USD.")
    ] = 5.0,
    confidence: Confidence = 0.95,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="File for the proposed queries: .jsonl, .csv or .yaml."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    details: Details = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Find the kinds of user queries that a golden set misses, and the queries to label next.

    Queries of traces are grouped by meaning. A query is covered if a query of the set is similar. The proposed queries
    are from kinds with many searches, many failure signals and few labelled queries. Personal data is masked.

    \b
    Examples:
      raggs questions gaps runs/demo --traces traces.jsonl
      raggs questions gaps runs/demo --traces traces.json.gz --n 50 --out next.jsonl
    """
    from raggs.app.question_gaps import GapsRequest, find_gaps, gaps_json, lay_out_gaps, summarise_gaps
    from raggs.cli.documents import show_summary, show_sweep
    from raggs.cli.progress import listener
    from raggs.cli.screen import open_console
    from raggs.runs.events import ignore_event

    wanted = (count, similarity, embedder, confidence, out, force)
    request = GapsRequest(golden, paths, traces.options(), *wanted, max_usd=max_usd)
    display = listener(quiet or as_json)
    with display or nullcontext():
        found = find_gaps(request, display or ignore_event)
    if as_json:
        say_json(json.dumps(gaps_json(found), indent=2))
    elif not quiet:
        if details:
            show_sweep(lay_out_gaps(found), open_console())
        else:
            show_summary(summarise_gaps(found, _after_gaps(golden, paths, out, found.proposed)), open_console())
        if found.file is not None:
            say(str(found.file))


def _after_gaps(golden: Path, paths: list[Path], out: Path | None, proposed: Sequence[object]) -> str:
    """Return the command to run next: one that writes the proposed queries, or one that labels them."""
    if not proposed:
        return ""
    if out is None:
        named = " ".join(f"--traces {typed(path)}" for path in paths)
        return f"raggs questions gaps {typed(golden)} {named} --out next.jsonl"
    return f"raggs run --config raggs.yaml --set queries.path={typed(out)} --set name=next"
