"""`raggs show`: one question of a golden set on the screen, with its order, its passages and what systems returned.

`raggs explain`: what a word means that a table or a configuration uses.

`raggs prompts list` and `raggs prompts show`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from shlex import join
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from raggs.cli.boundary import Debug
from raggs.cli.options import Json
from raggs.cli.plain_text import say, say_json, say_page
from raggs.cli.reviews import ReviewsFolder

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from raggs.app.catalog import GlossaryEntry
    from raggs.app.show import ShownQuestion, ShowRequest
    from raggs.golden.views import HitView, PassageView, QuestionView

MAX_ROWS = 20  # of a table, unless all are asked for
GRADES_SHOWN = 10  # hits of each system, as grades in a line
MAX_TEXT_CHARS = 2_000  # characters of a passage
MAX_TITLE_CHARS = 60
MAX_FACT_CHARS = 300
LEGEND = "95%: plausible ranks; conf.: how surely it stands above the next one (locked: beyond doubt)"

Golden = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, e.g. runs/demo, or a golden set.")]
Query = Annotated[str | None, typer.Argument(metavar="QUERY", help="A query id, e.g. q12; left out: all in a table.")]
System = Annotated[
    str | None, typer.Option("--system", "-s", metavar="NAME", help="What this system returned, passage by passage.")
]
Runs = Annotated[
    list[str] | None,
    typer.Option("--run", "-r", metavar="[NAME=]FILE", help="What another system returned. Repeatable."),
]
Passages = Annotated[
    int, typer.Option("--passages", "-p", metavar="N", min=0, help="How many passages are printed with their text.")
]
All = Annotated[bool, typer.Option("--all", "-a", help=f"Every rank and every hit, not only the first {MAX_ROWS}.")]
NoText = Annotated[bool, typer.Option("--no-text", help="Leave out what passages say, and what was said of them.")]


def show(
    golden: Golden,
    query: Query = None,
    system: System = None,
    runs: Runs = None,
    passages: Passages = 3,
    every: All = False,
    no_text: NoText = False,
    reviews: ReviewsFolder = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show a question: its order, grades, passages and systems.

    \b
    Examples:
      raggs show runs/demo                         all questions, a line each
      raggs show runs/demo q12
      raggs show runs/demo q12 --system bm25 --passages 10
      raggs show runs/demo q12 --run new=new.trec --json
    """
    from raggs.app.show import ShowRequest
    from raggs.app.show import show as show_question

    request = ShowRequest(golden, runs or (), reviews, not no_text)
    if query is None:
        _all(request, as_json)
        return
    found = show_question(request, query, system)
    if as_json:
        say_json(found.json)
    else:
        _show_question(golden, found, _ShowOptions(system, 0 if no_text else passages, None if every else MAX_ROWS))


LINE = ("qid", "text", "language", "pooled", "graded", "relevant", "doubt")  # of a question, as JSON


def _all(request: ShowRequest, as_json: bool) -> None:
    from raggs.app.show import lines
    from raggs.base.text import shorten
    from raggs.cli.screen import open_console, table
    from raggs.runs.manifests.store import dump_json

    found = list(lines(request))
    if as_json:
        say_json(dump_json([{name: getattr(line, name) for name in LINE} for line in found]))
        return
    console = open_console()
    rows = _numbers(table("query", "lang", "pool", "graded", "4-5", "doubt"), 2, 3, 4, 5)
    for line in found:
        doubt = "" if line.doubt is None else f"{line.doubt:.1f}"
        title = shorten(f"{line.qid} {line.text}", MAX_TITLE_CHARS)
        relevant = str(line.relevant) if line.graded else "–"  # without a grade nobody knows
        rows.add_row(title, line.language, str(line.pooled), str(line.graded), relevant, doubt)
    console.print(rows)
    said = "4-5: passages with these grades; doubt: wrongly ordered pairs expected in the top"
    console.print(said, soft_wrap=not console.is_terminal)


class _ShowOptions(NamedTuple):
    """What is printed of a question: one system's list, or the order; how many texts, and rows of a table."""

    system: str | None
    passages: int
    rows: int | None

    def more(self, length: int) -> str:
        """What is left out, as a clause."""
        left = 0 if self.rows is None else max(0, length - self.rows)
        return f"; {left} more with --all" if left else ""


def _show_question(golden: Path, shown: ShownQuestion, wanted: _ShowOptions) -> None:
    from raggs.cli.screen import open_console

    console, found = open_console(), shown.question
    for line in _question_lines(found, console):
        say(line)
    listed = found.order or (shown.pool if shown.by_grade else found.passages)
    if wanted.system is None:
        _order(console, shown, wanted)
        _systems(console, shown)
    else:
        _hits(console, found, wanted)
        known = {passage.doc_id: passage for passage in found.passages}
        listed = tuple(known[hit.doc_id] for hit in found.systems[0].hits if hit.doc_id in known)
    for passage in listed[: wanted.passages]:
        for line in _passage(passage, console):
            say(line)
    if found.order and wanted.system is None:
        say(f"\n{join(['raggs', 'why', str(golden), '--query', found.qid])} tells what the places rest on")


def _question_lines(found: QuestionView, console: Console) -> Iterator[str]:
    from raggs.base.text import one_line, shorten
    from raggs.cli.screen import hanging

    yield hanging(f"{found.qid}  ", one_line(found.text), console)
    facts = {"searched for": found.rewrite, "searched deeper": ", ".join(found.escalated), "language": found.language}
    own = {name: value for name, value in found.metadata.items() if isinstance(value, str | int | float)}
    for name, value in (*facts.items(), ("answer", found.answer or ""), *own.items()):
        if value not in ("", None):
            yield hanging(f"{name}: ", shorten(str(value), MAX_FACT_CHARS), console)


def _order(console: Console, shown: ShownQuestion, wanted: _ShowOptions) -> None:
    """The golden order; where nothing is ranked, the pool."""
    from raggs.app.show import said_by
    from raggs.cli.screen import table

    found = shown.question
    console.print()
    if not found.passages:
        say("no retriever found a passage")
        return
    by = ("by",) if len({said_by(passage) for passage in found.passages}) > 1 else ()
    if not found.order:
        rows = table("#", "grade", *by, "passage")
        for passage in shown.pool[: wanted.rows]:
            cells = [said_by(passage)] if by else []
            rows.add_row(str(passage.pooled or ""), _grade(passage), *cells, _passage_name(passage))
        console.print(rows)
        if more := wanted.more(len(found.passages)):
            say(more.removeprefix("; "))
        return
    rows = table("#", "95%", "grade", "conf.", *by, "passage")
    for passage, sure in list(zip(found.order, _confidences(found.order), strict=True))[: wanted.rows]:
        place = passage.place
        if place is not None:
            cells = [said_by(passage)] if by else []
            span = f"{place.rank_low}-{place.rank_high}"
            rows.add_row(str(place.rank), span, _grade(passage), sure, *cells, _passage_name(passage))
    console.print(rows)
    for line in (LEGEND + wanted.more(len(found.order)), *_below_order_lines(found, shown.top)):
        console.print(line, soft_wrap=not console.is_terminal)


def _below_order_lines(found: QuestionView, top: int) -> Iterator[str]:
    """What there is to tell below an order: what remains unsure, and what stands in the pool besides."""
    from raggs.base.text import plural

    course = found.course
    if course is not None:
        wrong = f"{course.expected_inversions:.1f} wrongly ordered pairs expected in the top {top}"
        yield f"{wrong}; stopped: {course.stop_reason}"
    left = Counter(passage.grade or 0 for passage in found.passages if passage.place is None)
    told = [f"{left[grade]} {f'of grade {grade}' if grade else 'without a grade'}" for grade in sorted(left)[::-1]]
    if told:
        yield f"{plural(sum(left.values()), 'more passage')} in the pool: {', '.join(told)}"


def _confidences(order: tuple[PassageView, ...]) -> Iterator[str]:
    """Of each passage, how surely it stands above the next one."""
    for number, passage in enumerate(order):
        place, after = passage.place, order[number + 1].doc_id if number + 1 < len(order) else None
        if place is None or after is None or place.unordered:
            yield "not ordered" if place and place.unordered else ""
        else:
            yield "locked" if after in place.locks_out else f"{place.confidence:.0%}"


def _systems(console: Console, shown: ShownQuestion) -> None:
    """What each system returned, as grades."""
    from raggs.cli.screen import table

    found = shown.question
    if not found.systems:
        return
    best = {passage.doc_id for passage in found.order if passage.place and passage.place.rank <= shown.top}
    console.print()
    among = [f"of top {shown.top}"] if best else []
    rows = _numbers(table("system", "found", *among, f"grades of its first {GRADES_SHOWN}"), *range(1, 2 + len(among)))
    for returned in found.systems:
        counts = [len(returned.hits), *(sum(hit.doc_id in best for hit in returned.hits) for _ in among)]
        signs = " ".join(str(hit.grade or "·") for hit in returned.hits[:GRADES_SHOWN])
        rows.add_row(returned.system, *map(str, counts), signs)
    console.print(rows)
    if any(hit.grade is None for returned in found.systems for hit in returned.hits[:GRADES_SHOWN]):
        say("·: not judged")


def _hits(console: Console, found: QuestionView, wanted: _ShowOptions) -> None:
    """What one system returned, passage by passage."""
    from raggs.cli.screen import table

    returned = found.systems[0]
    console.print()
    if not returned.hits:
        say(f"{returned.system} returned nothing for this question")
        return
    rows = _numbers(table("#", "grade", "place", "passage"), 2)
    known = {passage.doc_id: passage for passage in found.passages}
    for hit in returned.hits[: wanted.rows]:
        passage = known.get(hit.doc_id)
        place = "" if passage is None or passage.place is None else str(passage.place.rank)
        rows.add_row(
            str(hit.rank), _hit_grade(hit, passage), place, hit.doc_id if passage is None else _passage_name(passage)
        )
    console.print(rows)
    told = f"{returned.system}; place: in the golden order{wanted.more(len(returned.hits))}"
    console.print(told, soft_wrap=not console.is_terminal)


def _numbers(rows: Table, *columns: int) -> Table:
    """Columns of numbers stand to the right."""
    for column in columns:
        rows.columns[column].justify = "right"
    return rows


def _hit_grade(hit: HitView, passage: PassageView | None) -> str:
    return "not judged" if hit.grade is None and passage is None else str(hit.grade or "-")


def _grade(passage: PassageView) -> str:
    return "-" if passage.grade is None else str(passage.grade)


def _passage_name(passage: PassageView) -> str:
    """Id and title; a near-duplicate names whom it repeats."""
    from raggs.base.text import shorten

    twin = passage.duplicate_of
    same = f" (= {twin})" if twin not in (None, passage.doc_id) else ""
    return f"{passage.doc_id}{same} {shorten(passage.title, MAX_TITLE_CHARS)}".rstrip()


def _passage(passage: PassageView, console: Console) -> Iterator[str]:
    """A passage with its text, what the judge said of it, and people."""
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
        yield hanging("  out of: ", passage.votes, console)
    for word in passage.words:
        grade = "cannot tell" if word.grade is None else f"grade {word.grade}"
        note = f", {one_line(word.note)}" if word.note else ""
        yield hanging(f"  {word.who}{' decided' if word.settles else ''}: ", grade + note, console)


def _text(text: str, console: Console) -> Iterator[str]:
    shown = text[:MAX_TEXT_CHARS]
    for line in shown.splitlines():
        if console.is_terminal:
            yield from (f"  {part}" for part in wrap(line, console.width - 4, replace_whitespace=False) or [""])
        else:
            yield f"  {line}"
    if len(text) > MAX_TEXT_CHARS:
        yield f"  … {len(text) - MAX_TEXT_CHARS:,} characters more; --json has them all"


def explain(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="WORD", help="Of a table; a measure, setting or part; if left out, all words of tables."
        ),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Explain a word of raggs' tables, a measure, a setting or a part.

    \b
    Examples:
      raggs explain kappa
      raggs explain "p (Holm)"
      raggs explain ndcg@10
      raggs explain rank                a section of the configuration
      raggs explain rank.floor
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
    """What a word means; nothing, where it is a command and no word besides."""
    from raggs.app.catalog import explain_word
    from raggs.base.errors import NotFoundError

    try:
        return explain_word(word)
    except NotFoundError:
        if command:
            return ()
        raise


def list_(as_json: Json = False, debug: Debug = False) -> None:
    """List the prompts, their languages and what each is for.

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
    name: Annotated[str, typer.Argument(metavar="NAME", help="One of `raggs prompts list`.")],
    language: Annotated[str, typer.Option("--language", "-l", metavar="CODE", help="ISO 639-1.")] = "en",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print a prompt, word for word.

    The output is a Markdown file that `judge.prompt`, `rank.prompt` and the rewriter's `prompt` take in its place.

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
