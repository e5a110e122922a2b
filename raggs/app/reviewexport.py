"""People's word, and passages that wait for it, as files for elsewhere.

A task shows no machine's grade, rank or system.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raggs.app.review import reviews_of
from raggs.app.reviewitems import Items
from raggs.base.atomic import disk, write_atomic
from raggs.base.errors import UsageError
from raggs.base.text import did_you_mean
from raggs.parts.reviews.folding import Reviewed, fold
from raggs.parts.reviews.store import ReviewStore
from raggs.parts.reviews.writing import FORMS, Task
from raggs.runs.manifests.opened import OpenedRun


@dataclass(frozen=True)
class Given:
    """What was written.

    Attributes:
        items: passages.
        words: what people said of them; 0 where they are to be read.
    """

    path: Path
    items: int
    words: int


def export_reviews(
    run: OpenedRun,
    out: Path,
    form: str,
    *,
    folder: Path | None = None,
    todo: bool = False,
    everything: bool = False,
    force: bool = False,
) -> Given:
    """Write what people say of a run's passages, or the passages that nobody has read, for elsewhere.

    Args:
        form: csv, jsonl, argilla or label-studio.
        todo: the passages that nobody has read, in the order of the pools, rather than those with words.
        everything: all lines on this run's questions, also those that hold no longer, as they are; JSON lines only.

    Raises:
        UsageError: an unknown form, a file in the way, or `everything` with `todo` or another form.
        DataError: a line of the reviews cannot be right.
        ProviderError: the disk refuses.
    """
    if form not in FORMS:
        raise UsageError(f"no form of reviews is called {form!r}", remedy=did_you_mean(form, FORMS))
    if everything and (todo or form != "jsonl"):
        raise UsageError("only JSON lines hold all that was ever said", remedy="pass --all with --format jsonl alone")
    if out.exists() and not force:
        raise UsageError(f"{out} exists", remedy="name another --out, or pass --force to replace it")
    lines, items = ReviewStore(reviews_of(run.folder, folder)).read(), Items(run)
    if everything:
        questions = set(items.questions.values())
        of_run = [line for line in lines if line.query in questions or line.qid in items.queries]
        text, given = "".join(line.model_dump_json() + "\n" for line in of_run), Given(out, 0, len(of_run))
    else:
        tasks = _tasks(items, fold(lines), todo)
        text, given = FORMS[form](tasks), Given(out, len(tasks), sum(len(task.words) for task in tasks))
        if form == "jsonl" and not todo:
            orders = _orders(items, fold(lines))
            text, given = text + "".join(orders), Given(out, len(tasks), given.words + len(orders))
    with disk(out, "write to another folder"):
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(out, text.encode())
    return given


def _tasks(items: Items, held: Reviewed, todo: bool) -> list[Task]:
    found = []
    for key, query, passage in items.tasks():
        words = list(held.grades.get(key, {}).values())
        if key in held.settling:
            words.append(held.settling[key])
        if bool(words) != todo:
            found.append(Task(query, passage, tuple(words)))
    return found


def _orders(items: Items, held: Reviewed) -> list[str]:
    questions = set(items.questions.values())
    orders = [order for by in held.orders.values() for order in by.values() if order.query in questions]
    return [order.model_dump_json() + "\n" for order in orders]
