"""The page's HTTP: requests in, a session's answers out. Files of the page are those of the package, by fixed names.

Each handler reads a typed request and calls one method; errors become one sentence with the status that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache, partial
from importlib.resources import files
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from raggs.base.errors import NotFoundError, RaggsError, UsageError
from raggs.base.frozen import Frozen
from raggs.base.jsonl import first_fault
from raggs.base.text import clean_unicode
from raggs.parts.reviews.models import HEX, MOST_NOTE, Name
from raggs.reviewing.agreeing import agreed
from raggs.reviewing.deciding import Deciding, Wanted
from raggs.reviewing.gate import BODY_SECONDS, MOST_BODY, Gate, refused, wants_page
from raggs.reviewing.leases import Holder
from raggs.reviewing.looking import Looking
from raggs.reviewing.ordering import AT_ONCE, Ordering
from raggs.reviewing.revealing import Revealing
from raggs.reviewing.session import Session

TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
PAGE = {
    "/": "page.html",
    **{
        f"/{name}.js": f"{name}.js" for name in ("page", "words", "waiting", "views", "decide", "order", "reveal", "el")
    },
    **{f"/{name}": name for name in ("page.css", "icon.svg")},
}
LOOK = {
    "/look": "look.html",
    "/look/{question:path}": "look.html",
    **{f"/{name}": name for name in ("look.css", "look.js", "lookwords.js", "sheet.css", "sheet.js")},
}
MOST_SECONDS = 86_400.0
MOST_LATER = 500  # items that somebody has put off
DIGITS = 100_000  # of a grade, so that a wrong one is told in our words

ItemId = Annotated[str, StringConstraints(pattern=rf"^[0-9a-f]{{{2 * HEX}}}$")]


def _legible(name: object) -> object:
    """A name without what nobody sees, so that two that look the same are one."""
    return clean_unicode(name) if isinstance(name, str) else name


class Who(Frozen):
    """Who asks, and from which window."""

    who: Annotated[Name, BeforeValidator(_legible)]
    tab: str = Field(min_length=1, max_length=40)

    @property
    def holder(self) -> Holder:
        """The window."""
        return Holder(self.who, self.tab)


class GradeRequest(Who):
    """A grade; null: cannot tell."""

    item: ItemId
    grade: Annotated[int, Field(strict=True, ge=-DIGITS, le=DIGITS)] | None
    note: str = Field("", max_length=MOST_NOTE)
    seconds: float | None = Field(None, ge=0, le=MOST_SECONDS)


class DifferencesRequest(Who):
    """What is to be decided: which kind, and what comes last."""

    wanted: Wanted = "all"
    later: tuple[ItemId, ...] = Field((), max_length=MOST_LATER)

    @property
    def choice(self) -> tuple[Wanted, tuple[str, ...]]:
        """What `Deciding.upcoming` takes."""
        return self.wanted, self.later


class SettleRequest(DifferencesRequest):
    """A decision."""

    item: ItemId
    grade: Annotated[int, Field(strict=True, ge=-DIGITS, le=DIGITS)] | None
    note: str = Field("", max_length=MOST_NOTE)


class UnsettleRequest(DifferencesRequest):
    """Take a decision back: a line, or the latest."""

    line: str | None = Field(None, max_length=40)


class ModelRequest(Who):
    """What the model said: of an item, or of the one that was graded last."""

    item: ItemId | None = None


class ChangeRequest(Who):
    """Another grade, after the model's was seen."""

    item: ItemId
    grade: Annotated[int, Field(strict=True, ge=-DIGITS, le=DIGITS)] | None
    note: str = Field("", max_length=MOST_NOTE)


class OrderRequest(Who):
    """Passages from best to worst, in groups of equals."""

    shown: tuple[ItemId, ...] = Field(min_length=2, max_length=AT_ONCE)
    order: tuple[tuple[ItemId, ...], ...] = Field(min_length=1, max_length=AT_ONCE)
    note: str = Field("", max_length=MOST_NOTE)
    seconds: float | None = Field(None, ge=0, le=MOST_SECONDS)


class ReopenRequest(Who):
    """Take an order back: a line, or the latest."""

    line: str | None = Field(None, max_length=40)


class UndoRequest(Who):
    """Take back: a line, or the latest."""

    line: str | None = Field(None, max_length=40)


class ItemRequest(Who):
    """Something about an item."""

    item: ItemId


class LookRequest(Frozen):
    """A run, by its number."""

    run: int = Field(0, ge=0, le=DIGITS)


class SheetRequest(LookRequest):
    """A question of it."""

    question: str = Field(min_length=1, max_length=10_000)


R = TypeVar("R", bound=Frozen)


class About(Frozen):
    """What the page says of the work.

    Attributes:
        rubric: by language, what each grade means.
        text: by language, the judge's instructions as they are, where they do not say it grade by grade.
        who: the reviewer's name, where it was given.
        reveal: whether a reviewer may see what the model said of a passage that they have graded.
    """

    rubric: dict[str, dict[int, str]]
    text: dict[str, str]
    title: str
    who: str | None = None
    reveal: bool = False
    look: bool = False


def make_app(
    session: Session,
    ordering: Ordering,
    deciding: Deciding,
    revealing: Revealing,
    about: About,
    token: str,
    looking: Looking | None = None,
    hosts: Collection[str] = (),
    timeout: float = BODY_SECONDS,
) -> Gate:
    """The page as an ASGI application, behind its gate; with what is to be looked at, where that is offered."""
    told = about.model_dump_json().encode()

    def settle(asked: SettleRequest) -> Frozen:
        line = deciding.settle(asked.who, asked.item, asked.grade, asked.note)
        return deciding.upcoming(asked.who, *asked.choice, line=line)

    def reopen(asked: UnsettleRequest) -> Frozen:
        return deciding.upcoming(asked.who, *asked.choice, first=deciding.reopen(asked.who, asked.line))

    async def hello(_: Request) -> Response:
        return Response(told, media_type="application/json")

    def post(path: str, model: type[R], step: Callable[[R], Frozen | bytes]) -> Route:
        return _post(path, model, step, session.store.spelling)

    routes = [
        *(Route(path, partial(_file, name=name), methods=["GET"]) for path, name in PAGE.items()),
        Route("/api/about", hello, methods=["GET"]),
        post("/api/next", Who, lambda asked: session.upcoming(asked.holder)),
        post(
            "/api/grade",
            GradeRequest,
            lambda asked: session.grade(asked.holder, asked.item, asked.grade, asked.note, asked.seconds),
        ),
        post("/api/undo", UndoRequest, lambda asked: session.undo(asked.holder, asked.line)),
        post("/api/skip", ItemRequest, lambda asked: session.skip(asked.holder, asked.item)),
        post("/api/around", ItemRequest, lambda asked: session.around(asked.item)),
        post("/api/model", ModelRequest, lambda asked: revealing.reveal(asked.who, asked.item)),
        post(
            "/api/change",
            ChangeRequest,
            lambda asked: revealing.change(asked.who, asked.item, asked.grade, asked.note),
        ),
        post("/api/differences", DifferencesRequest, lambda asked: deciding.upcoming(asked.who, *asked.choice)),
        post("/api/settle", SettleRequest, settle),
        post("/api/reopen", UnsettleRequest, reopen),
        post("/api/order/next", Who, lambda asked: ordering.upcoming(asked.who)),
        post(
            "/api/order",
            OrderRequest,
            lambda asked: ordering.note(asked.who, asked.shown, asked.order, asked.note, asked.seconds),
        ),
        post("/api/order/undo", ReopenRequest, lambda asked: ordering.undo(asked.who, asked.line)),
        post("/api/agreement", Who, lambda _: agreed(session.pool, session.store.lines())),
        *([] if looking is None else _looking(looking)),
        post("/api/known", Who, lambda asked: Known(words=session.known(asked.who))),
    ]
    app = Starlette(routes=routes, exception_handlers={RaggsError: _error, HTTPException: _missing})
    return Gate(app, token, hosts=hosts, timeout=timeout)


class Known(Frozen):
    """How many words of a name there are."""

    words: int


def _looking(looking: Looking) -> list[Route]:
    """What is there to look at, where that was asked for."""
    return [
        *(Route(path, partial(_file, name=name), methods=["GET"]) for path, name in LOOK.items()),
        _post("/api/look/list", LookRequest, lambda asked: looking.questions(asked.run)),
        _post("/api/look", SheetRequest, lambda asked: looking.sheet(asked.run, asked.question)),
    ]


def _post(
    path: str, model: type[R], step: Callable[[R], Frozen | bytes], spelling: Callable[[str], str] | None = None
) -> Route:
    async def handler(request: Request) -> Response:
        try:
            asked = model.model_validate_json(await request.body())
        except ValidationError as error:
            raise UsageError(first_fault(error)) from error
        except ClientDisconnect:
            return refused(413, f"a request holds at most {MOST_BODY:,} bytes, and arrives in time")
        if spelling is not None and isinstance(asked, Who):
            asked = asked.model_copy(update={"who": spelling(asked.who)})
        answer = await run_in_threadpool(step, asked)
        told = answer if isinstance(answer, bytes) else answer.model_dump_json()
        return Response(told, media_type="application/json")

    return Route(path, handler, methods=["POST"])


async def _file(_: Request, name: str) -> Response:
    return Response(_content(name), media_type=TYPES[name.rpartition(".")[2]])


@cache
def _content(name: str) -> bytes:
    return (files("raggs.reviewing") / "page" / name).read_bytes()


async def _error(request: Request, error: Exception) -> Response:
    status = 404 if isinstance(error, NotFoundError) else 400 if isinstance(error, UsageError) else 500
    answer = refused(status, str(error))
    return answer.page() if wants_page(request) else answer


async def _missing(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    answer = refused(status, "there is no such page" if status == 404 else "not like this")
    return answer.page() if wants_page(request) else answer
