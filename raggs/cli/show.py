"""`raggs show`, `raggs explain`, `raggs prompts list` and `raggs prompts show`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import Details, Json, typed
from raggs.cli.plain_text import say, say_json, say_page
from raggs.cli.reviews import ReviewsFolder

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as Grid

    from raggs.app.catalog import GlossaryEntry
    from raggs.app.show import ShownQuestion, ShowRequest
    from raggs.base.document import Summary, Table
    from raggs.golden.views import HitView, PassageView, QuestionView

MAX_ROWS = 10  # rows of a table without --details or --all
MAX_DETAILED_ROWS = 20  # rows of a table with --details
MAX_QUERIES = 16  # rows of the table of queries without --details or --all
GRADES_SHOWN = 10  # hits per system, as grades in one line
MAX_TEXT_CHARS = 2_000  # characters of a passage
MAX_TITLE_CHARS = 60
MAX_NAME_CHARS = 44  # characters of a passage's id and title in a default output
MAX_QUERY_CHARS = 40
MAX_FACT_CHARS = 300
MAX_SYSTEMS = 6  # named in one line
RELEVANT_GRADE = 4
LEGEND = "95%: plausible ranks; conf.: probability of being better than the next passage (locked: certain)"

Golden = Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, e.g. runs/demo, or a golden set in files.")]
Query = Annotated[str | None, typer.Argument(metavar="QUERY", help="Query id, e.g. q12 [default: list the queries].")]
System = Annotated[
    str | None, typer.Option("--system", "-s", metavar="NAME", help="Show the results of this system, in its order.")
]
Runs = Annotated[
    list[str] | None,
    typer.Option("--run", "-r", metavar="[NAME=]FILE", help="Run file of another system to show. Repeatable."),
]
Passages = Annotated[
    int | None,
    typer.Option(
        "--passages",
        "-p",
        metavar="N",
        min=0,
        show_default=False,
        help="Number of passages printed with their text [default: 0, with --details 3].",
    ),
]
All = Annotated[bool, typer.Option("--all", "-a", help="Print all rows of the tables, not only the first ones.")]
NoText = Annotated[bool, typer.Option("--no-text", help="Omit passage texts and the judge's reasons.")]


def show(
    golden: Golden,
    query: Query = None,
    system: System = None,
    runs: Runs = None,
    passages: Passages = None,
    every: All = False,
    no_text: NoText = False,
    reviews: ReviewsFolder = None,
    details: Details = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show a query with its ranked passages and grades.

    Without a query id, lists the first queries, or all with --all or --details. For a query, --details also prints the
    first passages with their text, the judge's reasons, human labels and what each system returned.

    \b
    Examples:
      raggs show runs/demo                         the first queries, one per line
      raggs show runs/demo q12
      raggs show runs/demo q12 --system bm25 --passages 10
      raggs show runs/demo q12 --run new=new.trec --json
    """
    from raggs.app.show import ShowRequest
    from raggs.app.show import show as show_question

    request = ShowRequest(golden, runs or (), reviews, not no_text)
    if query is None:
        _all(request, every or details, as_json)
        return
    found = show_question(request, query, system)
    if as_json:
        say_json(found.json)
        return
    texts = 0 if no_text else (3 if details else 0) if passages is None else passages
    rows = None if every else MAX_DETAILED_ROWS if details else MAX_ROWS
    _show_question(golden, found, _ShowOptions(system, texts, rows, details))


LINE = ("qid", "text", "language", "pooled", "graded", "relevant", "doubt")  # of a question, as JSON


def _all(request: ShowRequest, every: bool, as_json: bool) -> None:
    from raggs.app.show import lines
    from raggs.base.document import Summary, Table
    from raggs.base.text import plural, shorten
    from raggs.cli.documents import show_summary
    from raggs.cli.screen import open_console
    from raggs.runs.manifests.store import dump_json

    found = list(lines(request))
    if as_json:
        say_json(dump_json([{name: getattr(line, name) for name in LINE} for line in found]))
        return
    shown = found if every else found[:MAX_QUERIES]
    rows = [
        (
            shorten(f"{line.qid} {line.text}", MAX_QUERY_CHARS),
            str(line.pooled),
            str(line.graded),
            str(line.relevant) if line.graded else "–",
            "" if line.doubt is None else f"{line.doubt:.1f}",
        )
        for line in shown
    ]
    empty = sum(line.graded > 0 and not line.relevant for line in found)
    more = f"{len(found) - len(shown):,} more with --all; " if len(shown) < len(found) else ""
    without = f", {empty:,} without a relevant passage" if empty else ""
    show_summary(
        Summary(
            headline=(f"{plural(len(found), 'query')}{without}.",),
            table=Table.of(("query", "pool", "graded", "relevant", "inversions"), rows),
            legend=f"{more}relevant: grade 4 or 5; inversions: discordant pairs expected in the top",
            next=f"raggs show {typed(request.golden)} {found[0].qid}" if found else "",
        ),
        open_console(),
    )


class _ShowOptions(NamedTuple):
    """Options of `raggs show` for one query.

    Attributes:
        system: the system whose results are printed; None: the golden order.
        passages: number of passages with their text.
        rows: maximum number of rows per table; None: all.
        details: whether to print systems and facts in full.
    """

    system: str | None
    passages: int
    rows: int | None
    details: bool

    def more(self, length: int) -> str:
        """Return how many rows are omitted, as a clause."""
        left = 0 if self.rows is None else max(0, length - self.rows)
        return f"; {left} more with --all" if left else ""


def _show_question(golden: Path, shown: ShownQuestion, wanted: _ShowOptions) -> None:
    from raggs.cli.documents import show_summary
    from raggs.cli.screen import open_console

    console, found = open_console(), shown.question
    listed = found.order or (shown.pool if shown.by_grade else found.passages)
    if wanted.system is not None:
        known = {passage.doc_id: passage for passage in found.passages}
        listed = tuple(known[hit.doc_id] for hit in found.systems[0].hits if hit.doc_id in known)
    show_summary(_summary(golden, shown, wanted), console)
    if wanted.details:
        for line in _question_lines(found, console):
            say(line)
        if wanted.system is None:
            for line in _below_order_lines(found, shown.top):
                console.print(line, soft_wrap=not console.is_terminal)
            _systems(console, shown)
    for passage in listed[: wanted.passages]:
        for line in _passage(passage, console):
            say(line)


def _summary(golden: Path, shown: ShownQuestion, wanted: _ShowOptions) -> Summary:
    """Return the query, its counts, and the table of its order, its pool or one system's results."""
    from raggs.base.document import Summary
    from raggs.base.text import one_line, plural, shorten

    found = shown.question
    counts = Counter(passage.grade for passage in found.passages if passage.grade is not None)
    relevant = sum(count for grade, count in counts.items() if grade >= RELEVANT_GRADE)
    sizes = f"{plural(len(found.passages), 'passage')}, {sum(counts.values()):,} graded, {relevant:,} relevant (4 or 5)"
    if wanted.system is not None:
        table, legend = _hits(found, wanted)
    else:
        table, legend = _order(shown, wanted)
    if not found.passages:
        sizes = "no retriever found a passage"
    systems = "" if wanted.system is not None or not found.systems else _systems_line(shown)
    place = typed(golden)
    explains = found.order and wanted.system is None
    return Summary(
        headline=(shorten(f"{found.qid}: {one_line(found.text)}", MAX_FACT_CHARS), f"{sizes}."),
        table=table,
        legend=legend,
        trust=(systems,) if systems else (),
        next=f"raggs why {place} --query {quote(found.qid)}" if explains and not wanted.details else "",
        details="" if wanted.details else "--details: passage texts, reasons, human labels and system results",
    )


def _systems_line(shown: ShownQuestion) -> str:
    """Return how many passages of the top each system found; without an order, how many relevant passages."""
    best = {passage.doc_id for passage in shown.question.order if passage.place and passage.place.rank <= shown.top}
    counts = [
        (
            returned.system,
            sum(hit.doc_id in best if best else (hit.grade or 0) >= RELEVANT_GRADE for hit in returned.hits),
        )
        for returned in shown.question.systems
    ]
    what = f"Passages of the top {shown.top} found" if best else "Relevant passages found"
    named = ", ".join(f"{name} {count}" for name, count in counts[:MAX_SYSTEMS])
    more = f" and {len(counts) - MAX_SYSTEMS} more systems" if len(counts) > MAX_SYSTEMS else ""
    return f"{what} by {named}{more}."


def _question_lines(found: QuestionView, console: Console) -> Iterator[str]:
    from raggs.base.text import one_line, shorten
    from raggs.cli.screen import hanging

    yield hanging(f"{found.qid}  ", one_line(found.text), console)
    facts = {"searched for": found.rewrite, "searched deeper": ", ".join(found.escalated), "language": found.language}
    own = {name: value for name, value in found.metadata.items() if isinstance(value, str | int | float)}
    for name, value in (*facts.items(), ("answer", found.answer or ""), *own.items()):
        if value not in ("", None):
            yield hanging(f"{name}: ", shorten(str(value), MAX_FACT_CHARS), console)


def _order(shown: ShownQuestion, wanted: _ShowOptions) -> tuple[Table | None, str]:
    """Return the golden order with its legend; without a ranking, the pool."""
    from raggs.app.show import said_by
    from raggs.base.document import Table
    from raggs.golden.views import rank_of_position

    found = shown.question
    by = ("by",) if len({said_by(passage) for passage in found.passages}) > 1 else ()
    if not found.order:
        pool = [
            (str(each.pooled or ""), _grade(each), *([said_by(each)] if by else []), _passage_name(each, wanted))
            for each in shown.pool[: wanted.rows]
        ]
        return Table.of(("#", "grade", *by, "passage"), pool), wanted.more(len(found.passages)).removeprefix("; ")
    ranks = found.ranks
    rows = [
        (
            str(passage.place.rank),
            f"{rank_of_position(passage.place.rank_low, ranks)}-{rank_of_position(passage.place.rank_high, ranks)}",
            _grade(passage),
            sure,
            *([said_by(passage)] if by else []),
            _passage_name(passage, wanted),
        )
        for passage, sure in list(zip(found.order, _confidences(found.order), strict=True))[: wanted.rows]
        if passage.place is not None
    ]
    return Table.of(("#", "95%", "grade", "conf.", *by, "passage"), rows), LEGEND + wanted.more(len(found.order))


def _below_order_lines(found: QuestionView, top: int) -> Iterator[str]:
    """Yield the uncertainty of the order, and the grades of the passages that are not ranked."""
    from raggs.base.text import plural

    course = found.course
    if course is not None:
        wrong = f"{course.expected_inversions:.1f} discordant pairs expected in the top {top}"
        yield f"{wrong}; ranking stopped: {course.stop_reason}"
    left = Counter(passage.grade or 0 for passage in found.passages if passage.place is None)
    told = [f"{left[grade]} {f'of grade {grade}' if grade else 'without a grade'}" for grade in sorted(left)[::-1]]
    if told:
        yield f"{plural(sum(left.values()), 'passage')} not ranked: {', '.join(told)}"


def _confidences(order: tuple[PassageView, ...]) -> Iterator[str]:
    """Yield for each passage the probability of being better than the next one, as text: ``93%``, ``locked`` or
    ``not ordered``. The last passage has an empty text.
    """
    for number, passage in enumerate(order):
        place, after = passage.place, order[number + 1].doc_id if number + 1 < len(order) else None
        if place is None or after is None or place.unordered:
            yield "not ordered" if place and place.unordered else ""
        else:
            yield "locked" if after in place.locks_out else f"{place.confidence:.0%}"


def _systems(console: Console, shown: ShownQuestion) -> None:
    """Print the grades of each system's results."""
    from raggs.cli.screen import table

    found = shown.question
    if not found.systems:
        return
    best = {passage.doc_id for passage in found.order if passage.place and passage.place.rank <= shown.top}
    console.print()
    among = [f"of top {shown.top}"] if best else []
    rows = _numbers(table("system", "found", *among, f"grades of the first {GRADES_SHOWN}"), *range(1, 2 + len(among)))
    for returned in found.systems:
        counts = [len(returned.hits), *(sum(hit.doc_id in best for hit in returned.hits) for _ in among)]
        signs = " ".join(str(hit.grade or "·") for hit in returned.hits[:GRADES_SHOWN])
        rows.add_row(returned.system, *map(str, counts), signs)
    console.print(rows)
    if any(hit.grade is None for returned in found.systems for hit in returned.hits[:GRADES_SHOWN]):
        say("·: not judged")


def _hits(found: QuestionView, wanted: _ShowOptions) -> tuple[Table | None, str]:
    """Return the results of one system with their legend."""
    from raggs.base.document import Table

    returned, known = found.systems[0], {passage.doc_id: passage for passage in found.passages}
    if not returned.hits:
        return None, f"{returned.system} returned nothing for this query"
    rows = []
    for hit in returned.hits[: wanted.rows]:
        passage = known.get(hit.doc_id)
        rank = "" if passage is None or passage.place is None else str(passage.place.rank)
        name = hit.doc_id if passage is None else _passage_name(passage, wanted)
        rows.append((str(hit.rank), _hit_grade(hit, passage), rank, name))
    legend = f"results of {returned.system}; golden: rank in the golden order{wanted.more(len(returned.hits))}"
    return Table.of(("#", "grade", "golden", "passage"), rows), legend


def _numbers(rows: Grid, *columns: int) -> Grid:
    """Right-align columns of numbers and return the table."""
    for column in columns:
        rows.columns[column].justify = "right"
    return rows


def _hit_grade(hit: HitView, passage: PassageView | None) -> str:
    return "not judged" if hit.grade is None and passage is None else str(hit.grade or "-")


def _grade(passage: PassageView) -> str:
    return "-" if passage.grade is None else str(passage.grade)


def _passage_name(passage: PassageView, wanted: _ShowOptions) -> str:
    """Return id and title; a near-duplicate also names the passage that it repeats."""
    from raggs.base.text import shorten

    same = f" (= {passage.duplicate_of})" if passage.repeats else ""
    room = MAX_TITLE_CHARS if wanted.details else MAX_NAME_CHARS
    return shorten(f"{passage.doc_id}{same} {passage.title}", room).rstrip()


def _passage(passage: PassageView, console: Console) -> Iterator[str]:
    """Yield a passage with its text, the judge's reason and the human labels."""
    from raggs.base.text import one_line
    from raggs.cli.screen import hanging

    place = "" if passage.place is None else f"#{passage.place.rank}, "
    span = passage.span
    own = "" if span is not None and passage.source == span.source else passage.source
    places = (own, "" if span is None else f"{span.source} {span.start}-{span.end}")
    where = "".join(f", {one_line(place)}" for place in places if place)
    yield ""
    yield hanging(f"[{place}grade {_grade(passage)}] ", f"{passage.doc_id} {one_line(passage.title)}{where}", console)
    yield from _text(passage.text, console)
    judged = passage.judged
    if judged is not None and (judged.reason or judged.error or judged.skipped):
        said = judged.reason or judged.error or judged.skipped or ""
        yield hanging(f"  {judged.judge or 'judge'}: ", one_line(said), console)
    if passage.votes:
        yield hanging("  answers: ", passage.votes, console)
    for word in passage.words:
        grade = "cannot tell" if word.grade is None else f"grade {word.grade}"
        note = f", {one_line(word.note)}" if word.note else ""
        yield hanging(f"  {word.who}{' (adjudicated)' if word.settles else ''}: ", grade + note, console)


def _text(text: str, console: Console) -> Iterator[str]:
    shown = text[:MAX_TEXT_CHARS]
    for line in shown.splitlines():
        if console.is_terminal:
            yield from (f"  {part}" for part in wrap(line, console.width - 4, replace_whitespace=False) or [""])
        else:
            yield f"  {line}"
    if len(text) > MAX_TEXT_CHARS:
        yield f"  … {len(text) - MAX_TEXT_CHARS:,} more characters: --json prints all"


def explain(
    word: Annotated[
        str | None,
        typer.Argument(metavar="WORD", help="Table column, metric, setting or part [default: all terms of tables]."),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Explain a term of a table, a metric or a setting.

    \b
    Examples:
      raggs explain kappa
      raggs explain "p (Holm)"
      raggs explain ndcg@10
      raggs explain rank                a section of the configuration
      raggs explain rank.floor
      raggs explain binary-at           an option of raggs eval
    """
    from raggs.app.catalog import glossary_entries
    from raggs.cli.app import COMMANDS
    from raggs.cli.screen import hanging
    from raggs.runs.manifests.store import dump_json

    command = word in COMMANDS
    found = tuple(dict.fromkeys(glossary_entries().values())) if word is None else _explained(word, command)
    if as_json:
        say_json(dump_json([asdict(entry) for entry in found]))
        return
    for entry in found:
        named = entry.words[0].lower() in entry.text[: len(entry.words[0]) + 2].lower()
        say(hanging("" if named else f"{', '.join(entry.words)}: ", entry.text))
    if command:
        say(f"a command: raggs {word} --help")


def _explained(word: str, command: bool) -> tuple[GlossaryEntry, ...]:
    """Return the entries of a word; nothing if it is only a command."""
    from raggs.app.catalog import explain_word
    from raggs.base.errors import NotFoundError

    try:
        return explain_word(word)
    except NotFoundError:
        if (option := _eval_option(word)) is not None:
            return (option,)
        if command:
            return ()
        raise


def _eval_option(word: str) -> GlossaryEntry | None:
    """Return the help of an option of `raggs eval`: ``--binary-at``, ``binary-at`` or ``binary_at``."""
    from raggs.app.catalog import GlossaryEntry
    from raggs.cli.app import COMMANDS, Commands

    name = "--" + word.strip().lstrip("-").replace("_", "-").lower()
    texts = {each: getattr(param, "help", None) for param in Commands(COMMANDS)["eval"].params for each in param.opts}
    return GlossaryEntry((name,), f"option of raggs eval. {texts[name]}") if texts.get(name) else None


def list_(as_json: Json = False, debug: Debug = False) -> None:
    """List the prompts with their languages and uses.

    \b
    Example:
      raggs prompts list
    """
    from raggs.app.catalog import prompt_pages
    from raggs.cli.screen import hanging
    from raggs.runs.manifests.store import dump_json

    pages = prompt_pages()
    if as_json:
        say_json(dump_json({page.name: {"languages": page.languages, "note": page.note} for page in pages}))
        return
    width = max(len(page.name) for page in pages)
    for page in pages:
        say(hanging(f"{page.name:<{width}}  {', '.join(page.languages)}  ", page.note))


def show_prompt(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a prompt (raggs prompts list).")],
    language: Annotated[
        str, typer.Option("--language", "-l", metavar="CODE", help="Language of the prompt (ISO 639-1).")
    ] = "en",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print a prompt.

    The output is a Markdown file that can be edited and set as `judge.prompt`, `rank.prompt` or the `prompt` of a
    rewriter.

    \b
    Examples:
      raggs prompts show grade@1 --language fr
      raggs prompts show grade@1 > mine.en.md
    """
    from raggs.app.catalog import prompt_page
    from raggs.runs.manifests.store import dump_json

    page = prompt_page(name, language)
    if as_json:
        say_json(dump_json(asdict(page)))
    else:
        say_page(page.markdown)
