"""HTTP server of the labelling page: routes and access control. Static files are read from the package by fixed names.

Handlers validate a typed request and call the session. Errors become a one-sentence answer with a suitable status.

`AccessGate` admits only browsers that have opened the address with the token. They get a cookie that is derived from
the token. `AccessGate` rejects cross-site, large and frequent requests. It wraps the application as ASGI middleware, so
that it covers all routes. TLS requires a proxy.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from base64 import b64encode
from collections.abc import Callable, Collection
from functools import cache, partial
from hashlib import sha256
from html import escape
from importlib.resources import files
from ipaddress import ip_address
from socket import gethostname
from typing import Annotated, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from raggs.base.artifacts import MAX_EVIDENCE_SETS, Frozen, Identifier
from raggs.base.errors import NotFoundError, RaggsError, UsageError
from raggs.base.jsonl import first_fault
from raggs.base.text import clean_unicode
from raggs.base.types import MAX_EVIDENCE_PASSAGES
from raggs.parts.reviews import HEX, MAX_NOTE_CHARS, EvidenceReview, Name
from raggs.reviewing.agreeing import agreed
from raggs.reviewing.deciding import Adjudication, DisputeFilter, ModelLabelReveal, RunBrowser
from raggs.reviewing.evidence import EvidenceFilter, EvidenceSession
from raggs.reviewing.ordering import AT_ONCE, OrderingSession
from raggs.reviewing.session import LeaseHolder, Session

COOKIE, HEADER = "raggs_review", "x-raggs"
NO_LOOK = (
    "this server hides grades of models, so that they do not influence labels. To see queries, passages and results, "
    "stop it and run `raggs review serve RUN --look`"
)
DEEP = "/look"  # a link with a token may lead to this path and below; others are redirected to /
MAX_BODY_BYTES = 64 * 1024  # per request
BODY_SECONDS = 15.0  # timeout of a request body
PER_SECOND, BURST = 40.0, 200.0  # rate limit per client address
MAX_ADDRESSES = 1_000
COMMAND = re.compile(r"`([^`]+)`")  # in the text of an error
CLAUSE_END = re.compile(r": |; |\. ")  # between the problem and the remedy
POLICY = "content-security-policy"
SAFE = {
    POLICY: "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class AddressRateLimit:
    """Rate limit per client address (token bucket)."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._left = dict[str, tuple[float, float]]()

    def passes(self, address: str) -> bool:
        """Return whether another request is allowed."""
        now = self._now()
        left, since = self._left.pop(address, (BURST, now))
        left = min(BURST, left + (now - since) * PER_SECOND)
        self._left[address] = max(0.0, left - 1), now
        while len(self._left) > MAX_ADDRESSES:
            del self._left[next(iter(self._left))]
        return left >= 1


class AccessGate:
    """ASGI middleware that admits or rejects requests to `app`.

    Args:
        token: token in the first address.
        hosts: names of this server, in addition to IP addresses, localhost and the host name. Other names are rejected,
            because another site could make its name resolve to this server (DNS rebinding).
        timeout: timeout of a request body, in seconds.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str,
        rate: AddressRateLimit | None = None,
        hosts: Collection[str] = (),
        timeout: float = BODY_SECONDS,
    ) -> None:
        self._hosts = {"localhost", gethostname().lower(), *(name.lower() for name in hosts)}
        self._app, self._token, self._rate, self._timeout = app, token, rate or AddressRateLimit(), timeout
        # Differs from the token, so that a leaked cookie does not reveal it.
        self._cookie = sha256(f"raggs review {token}".encode()).hexdigest()
        self._name = f"{COOKIE}_{self._cookie[:8]}"  # one per server, because cookies are shared by all ports

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; see the ASGI specification."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        answer = self._refusal(request)
        if isinstance(answer, Refusal) and wants_page(request):
            answer = answer.page()
        guarded = _guarded(send)
        if answer is not None:
            await answer(scope, receive, guarded)
        else:
            await self._app(scope, _limited(receive, self._timeout), guarded)

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a rejected request or a first visit; None to admit the request."""
        if not self._rate.passes(request.client.host if request.client else ""):
            return Refusal(429, "too many requests; try again later")
        if not self._is_mine(request.headers.get("host", "")):
            said = "unknown host name: open the address that `raggs review serve` printed"
            return Refusal(400, f"{said}, or start the server with --allow-host NAME")
        given = request.query_params.get("token")
        if given is not None:
            return self._first_visit(request, given)
        if not secrets.compare_digest(request.cookies.get(self._name, "").encode(), self._cookie.encode()):
            return Refusal(
                403, "access denied: open the address that `raggs review serve` printed, including the token"
            )
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > MAX_BODY_BYTES:
            return Refusal(413, f"the maximum request size is {MAX_BODY_BYTES:,} bytes")
        if request.method not in ("GET", "HEAD"):
            return _refuse_cross_site(request)
        return None

    def _is_mine(self, host: str) -> bool:
        name = (urlsplit(f"//{host}").hostname or "").lower()
        try:
            return name in self._hosts or ip_address(name) is not None
        except ValueError:
            return False

    def _first_visit(self, request: Request, given: str) -> Response:
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return Refusal(403, "access denied: wrong token; open the address that `raggs review serve` printed last")
        asked = request.scope["path"]
        answer = RedirectResponse(quote(asked) if asked == DEEP or asked.startswith(f"{DEEP}/") else "/", 303)
        secure = request.headers.get("x-forwarded-proto") == "https"
        answer.set_cookie(self._name, self._cookie, httponly=True, samesite="lax", secure=secure, path="/")
        return answer


def _refuse_cross_site(request: Request) -> Response | None:
    """Reject requests that the page of another site makes a browser send."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        return Refusal(403, "the request comes from another page")
    if HEADER not in request.headers or request.headers.get("content-type", "").split(";")[0] != "application/json":
        return Refusal(403, f"requests must be JSON with the header {HEADER}")
    return None


class Refusal(JSONResponse):
    """An error answer, as JSON for the page's scripts or as HTML."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__({"error": why}, status)
        self._why = why

    def page(self) -> Response:
        """Return the answer as an HTML page that contains its styles, because a request for them is refused, too."""
        parts = CLAUSE_END.split(self._why.removesuffix("."), maxsplit=1)
        title, *more = (COMMAND.sub(r"<code>\1</code>", escape(part[:1].upper() + part[1:])) for part in parts)
        style = _content("theme.css").decode() + _content("error.css").decode()
        head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>raggs review</title><style>{style}</style>'
        scale = '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        # Without the token, the start page is refused as well.
        link = "" if self.status_code in (400, 403) else '<p><a href="/">Open the start page</a></p>'
        text = "".join(f"<p>{each}.</p>" for each in more)
        body = f"<main><p class=from>raggs review</p><h1>{title}</h1>{text}{link}</main>"
        allowed = f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'"
        policy = {POLICY: SAFE[POLICY].replace("style-src 'self'", f"style-src {allowed}")}
        return HTMLResponse(f"{head}{scale}{body}</html>", self.status_code, headers=policy)


def wants_page(request: Request) -> bool:
    """Return whether a browser navigates to the address, rather than a script of the page."""
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")


def _guarded(send: Send) -> Send:
    """Add security headers to every answer."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = message.get("headers", [])
            own = {name.lower() for name, _ in given}  # error pages set their policy themselves
            extra = [(name.encode(), value.encode()) for name, value in SAFE.items() if name.encode() not in own]
            message = {**message, "headers": [*given, *extra]}
        await send(message)

    return guarded


def _limited(receive: Receive, seconds: float) -> Receive:
    """Disconnect if a body is too long, regardless of its stated length, or too slow."""
    come, waiting, until = 0, True, time.monotonic() + seconds

    async def limited() -> Message:
        nonlocal come, waiting
        try:
            left = max(0.0, until - time.monotonic())
            message = await asyncio.wait_for(receive(), left) if waiting else await receive()
        except TimeoutError:
            return {"type": "http.disconnect"}
        waiting = message.get("more_body", False)
        come += len(message.get("body", b""))
        return {"type": "http.disconnect"} if come > MAX_BODY_BYTES else message

    return limited


TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
SCRIPTS = ("page", "words", "waiting", "views", "decide", "order", "evidence", "reveal", "el", "local", "own", "theme")
PAGE = {
    "/": "page.html",
    **{f"/{name}.js": f"{name}.js" for name in SCRIPTS},
    **{f"/{name}": name for name in ("theme.css", "matrix.css", "page.css", "icon.svg")},
}
LOOK_FILES = {
    "/look": "look.html",
    "/look/{question:path}": "look.html",
    **{f"/{name}": name for name in ("look.css", "look.js", "lookwords.js", "sheet.css", "sheet.js")},
}
MAX_READING_SECONDS = 86_400.0
MAX_POSTPONED = 500  # items that an annotator has postponed
MAX_SHOWN_PASSAGES = 500  # of one query in the view Evidence
DIGITS = 100_000  # wide limit of grades, so that invalid ones are reported by the session

ItemId = Annotated[str, StringConstraints(pattern=rf"^[0-9a-f]{{{2 * HEX}}}$")]


def _legible(name: object) -> object:
    """Return a name without invisible characters, so that names that look the same are equal."""
    return clean_unicode(name) if isinstance(name, str) else name


class ReviewerRequest(Frozen):
    """Annotator and browser tab of a request."""

    who: Annotated[Name, BeforeValidator(_legible)]
    tab: str = Field(min_length=1, max_length=40)

    @property
    def holder(self) -> LeaseHolder:
        """Browser tab."""
        return LeaseHolder(self.who, self.tab)


class NextRequest(ReviewerRequest):
    """Request for the next items, first those of a query."""

    query: str | None = Field(None, min_length=1, max_length=10_000)


class OwnRequest(ReviewerRequest):
    """Request for the annotator's own labels, latest first. Grade 0 selects labels without a grade."""

    start: int = Field(0, ge=0, le=10_000_000)
    grade: int | None = Field(None, ge=0, le=DIGITS)
    text: str = Field("", max_length=1_000)


class GradeRequest(ReviewerRequest):
    """A grade, or null for "cannot tell". With `correct`, it replaces the annotator's label of the item."""

    item: ItemId
    grade: Annotated[int, Field(strict=True, ge=-DIGITS, le=DIGITS)] | None
    note: str = Field("", max_length=MAX_NOTE_CHARS)
    seconds: float | None = Field(None, ge=0, le=MAX_READING_SECONDS)
    correct: bool = False


class DifferencesRequest(ReviewerRequest):
    """Request for disputes: which kind, which items come last, and which item is shown and stays first."""

    wanted: DisputeFilter = "all"
    shown: ItemId | None = None
    later: tuple[ItemId, ...] = Field((), max_length=MAX_POSTPONED)

    @property
    def choice(self) -> tuple[DisputeFilter, tuple[str, ...]]:
        """Arguments of `Adjudication.upcoming`."""
        return self.wanted, self.later


class SettleRequest(DifferencesRequest):
    """An adjudicated grade."""

    item: ItemId
    grade: Annotated[int, Field(strict=True, ge=-DIGITS, le=DIGITS)] | None
    note: str = Field("", max_length=MAX_NOTE_CHARS)


class UnsettleRequest(DifferencesRequest):
    """Withdraw an adjudication: a line, or the latest."""

    line: str | None = Field(None, max_length=40)


class ModelRequest(ReviewerRequest):
    """Request for the model's grade of an item, or of the one labelled last."""

    item: ItemId | None = None


class ChangeRequest(ReviewerRequest):
    """Another grade, after the model's was shown."""

    item: ItemId
    grade: Annotated[int, Field(strict=True, ge=-DIGITS, le=DIGITS)] | None
    note: str = Field("", max_length=MAX_NOTE_CHARS)


class OrderRequest(ReviewerRequest):
    """Passages from best to worst, in groups of ties."""

    shown: tuple[ItemId, ...] = Field(min_length=2, max_length=AT_ONCE)
    order: tuple[tuple[ItemId, ...], ...] = Field(min_length=1, max_length=AT_ONCE)
    note: str = Field("", max_length=MAX_NOTE_CHARS)
    seconds: float | None = Field(None, ge=0, le=MAX_READING_SECONDS)


class ReopenRequest(ReviewerRequest):
    """Withdraw an order: a line, or the latest."""

    line: str | None = Field(None, max_length=40)


PassageSets = Annotated[
    tuple[Annotated[tuple[Identifier, ...], Field(max_length=MAX_EVIDENCE_PASSAGES)], ...],
    Field(max_length=MAX_EVIDENCE_SETS),
]


class NextEvidenceRequest(ReviewerRequest):
    """Request for a query with its evidence sets.

    Attributes:
        wanted: queries that the annotator has not decided (open), or queries with differing sets (differ).
        later: digests of queries that come last.
        seen: whether the annotator agrees to see grades of passages that are not yet graded blind.
    """

    wanted: EvidenceFilter = "open"
    later: tuple[str, ...] = Field((), max_length=MAX_POSTPONED)
    seen: bool = False


class EvidenceAnswerRequest(NextEvidenceRequest):
    """The sets of a query that suffice. If `wanted` is "differ", they adjudicate the query."""

    query: str = Field(max_length=HEX)
    shown: tuple[Identifier, ...] = Field(min_length=1, max_length=MAX_SHOWN_PASSAGES)
    proposed: PassageSets
    sets: PassageSets
    note: str = Field("", max_length=MAX_NOTE_CHARS)
    seconds: float | None = Field(None, ge=0, le=MAX_READING_SECONDS)


class UndoEvidenceRequest(NextEvidenceRequest):
    """Withdraw evidence sets: a line, or the latest."""

    line: str | None = Field(None, max_length=40)


class UndoRequest(ReopenRequest):
    """Withdraw a label: that of an item, a line, or the latest."""

    item: ItemId | None = None


class ItemRequest(ReviewerRequest):
    """Request about an item."""

    item: ItemId


class LookRequest(Frozen):
    """A run, by its number."""

    run: int = Field(0, ge=0, le=DIGITS)


class SheetRequest(LookRequest):
    """A query of a run."""

    question: str = Field(min_length=1, max_length=10_000)


R = TypeVar("R", bound=Frozen)


class PageInfo(Frozen):
    """Settings of the page.

    Attributes:
        rubric: meaning of each grade, by language.
        text: full text of the judge's prompt by language, if it does not list meanings.
        title: title of the page.
        who: name of the annotator, if given.
        reveal: whether annotators may see the model's grade of a passage that they have labelled.
        look: whether runs can be browsed.
        chosen: whether the passages are those of a plan or a sample, so that all of them are the annotator's target.
        shared: whether two annotators label each passage.
        place: identifier of the labels, which separates what a browser stores for several servers.
    """

    rubric: dict[str, dict[int, str]]
    text: dict[str, str]
    title: str
    who: str | None = None
    reveal: bool = False
    look: bool = False
    chosen: bool = False
    shared: bool = False
    place: str = ""


def make_app(
    session: Session,
    ordering: OrderingSession,
    evidence: EvidenceSession,
    deciding: Adjudication,
    revealing: ModelLabelReveal,
    about: PageInfo,
    token: str,
    looking: RunBrowser | None = None,
    hosts: Collection[str] = (),
    timeout: float = BODY_SECONDS,
) -> AccessGate:
    """Return the page as an ASGI application behind its access gate, with `looking` if runs can be browsed."""
    told = about.model_dump_json().encode()

    def differences(asked: DifferencesRequest) -> Frozen:
        shown = None if asked.shown is None else (asked.shown[:HEX], asked.shown[HEX:])
        return deciding.upcoming(asked.who, *asked.choice, first=shown)

    def settle(asked: SettleRequest) -> Frozen:
        line = deciding.settle(asked.who, asked.item, asked.grade, asked.note)
        return deciding.upcoming(asked.who, *asked.choice, line=line)

    def reopen(asked: UnsettleRequest) -> Frozen:
        first, reason = deciding.reopen(asked.who, asked.line)
        return deciding.upcoming(asked.who, *asked.choice, first=first, reason=reason)

    def undo(asked: UndoRequest) -> Frozen:
        if asked.item is not None:
            return session.withdraw(asked.holder, asked.item)
        return session.undo(asked.holder, asked.line)

    async def hello(_: Request) -> Response:
        return Response(told, media_type="application/json")

    def post(path: str, model: type[R], step: Callable[[R], Frozen | bytes]) -> Route:
        return _post(path, model, step, session.store.spelling)

    routes = [
        *(Route(path, partial(_file, name=name), methods=["GET"]) for path, name in PAGE.items()),
        Route("/api/about", hello, methods=["GET"]),
        post("/api/next", NextRequest, lambda asked: session.upcoming(asked.holder, asked.query)),
        post("/api/own", OwnRequest, lambda asked: session.own(asked.who, asked.start, asked.grade, asked.text)),
        post(
            "/api/grade",
            GradeRequest,
            lambda asked: session.grade(
                asked.holder, asked.item, asked.grade, asked.note, asked.seconds, correct=asked.correct
            ),
        ),
        post("/api/undo", UndoRequest, undo),
        post("/api/skip", ItemRequest, lambda asked: session.skip(asked.holder, asked.item)),
        post("/api/around", ItemRequest, lambda asked: session.around(asked.item)),
        post("/api/model", ModelRequest, lambda asked: revealing.reveal(asked.who, asked.item)),
        post(
            "/api/change",
            ChangeRequest,
            lambda asked: revealing.change(asked.who, asked.item, asked.grade, asked.note),
        ),
        post("/api/differences", DifferencesRequest, differences),
        post("/api/settle", SettleRequest, settle),
        post("/api/reopen", UnsettleRequest, reopen),
        post("/api/order/next", ReviewerRequest, lambda asked: ordering.upcoming(asked.who)),
        post(
            "/api/order",
            OrderRequest,
            lambda asked: ordering.note(asked.who, asked.shown, asked.order, asked.note, asked.seconds),
        ),
        post("/api/order/undo", ReopenRequest, lambda asked: ordering.undo(asked.who, asked.line)),
        *_evidence_routes(evidence, session.store.spelling),
        post("/api/agreement", ReviewerRequest, lambda _: agreed(session.pool, session.store.lines())),
        *([_no_look_route()] if looking is None else _look_routes(looking)),
        post("/api/known", ReviewerRequest, lambda asked: NameUse(words=session.known(asked.who))),
    ]
    app = Starlette(routes=routes, exception_handlers=HANDLERS)
    return AccessGate(app, token, hosts=hosts, timeout=timeout)


class NameUse(Frozen):
    """Number of labels under a name."""

    words: int


def _evidence_routes(evidence: EvidenceSession, spelling: Callable[[str], str]) -> list[Route]:
    """Return the routes of the view Evidence."""

    def upcoming(asked: NextEvidenceRequest, line: str | None = None, undone: EvidenceReview | None = None) -> Frozen:
        return evidence.upcoming(asked.who, asked.wanted, asked.later, seen=asked.seen, line=line, withdrawn=undone)

    def note(asked: EvidenceAnswerRequest) -> Frozen:
        line = evidence.note(
            asked.who,
            asked.query,
            asked.shown,
            asked.proposed,
            asked.sets,
            asked.note,
            asked.seconds,
            settles=asked.wanted == "differ",
        )
        return upcoming(asked, line)

    def undo(asked: UndoEvidenceRequest) -> Frozen:
        return upcoming(asked, undone=evidence.undo(asked.who, asked.line))

    return [
        _post("/api/evidence/next", NextEvidenceRequest, upcoming, spelling),
        _post("/api/evidence", EvidenceAnswerRequest, note, spelling),
        _post("/api/evidence/undo", UndoEvidenceRequest, undo, spelling),
    ]


def _no_look_route() -> Route:
    async def explain(request: Request) -> Response:
        answer = Refusal(404, NO_LOOK)
        return answer.page() if wants_page(request) else answer

    return Route(f"{DEEP}{{rest:path}}", explain, methods=["GET"])


def _look_routes(looking: RunBrowser) -> list[Route]:
    """Return the routes for browsing runs."""
    return [
        *(Route(path, partial(_file, name=name), methods=["GET"]) for path, name in LOOK_FILES.items()),
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
            return Refusal(413, f"the request is larger than {MAX_BODY_BYTES:,} bytes, or too slow")
        if spelling is not None and isinstance(asked, ReviewerRequest):
            asked = asked.model_copy(update={"who": spelling(asked.who)})
        answer = await run_in_threadpool(step, asked)
        told = answer if isinstance(answer, bytes) else answer.model_dump_json()
        return Response(told, media_type="application/json")

    return Route(path, handler, methods=["POST"])


async def _file(_: Request, name: str) -> Response:
    return Response(_content(name), media_type=TYPES[name.rpartition(".")[2]])


@cache
def _content(name: str) -> bytes:
    place = files("raggs.base") if name in ("theme.css", "matrix.css") else files("raggs.reviewing") / "page"
    return (place / name).read_bytes()


async def _error(request: Request, error: Exception) -> Response:
    status = 404 if isinstance(error, NotFoundError) else 400 if isinstance(error, UsageError) else 500
    answer = Refusal(status, str(error))
    return answer.page() if wants_page(request) else answer


async def _http_error_response(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    why = {404: "there is no page at this address", 500: "an error in the server; its terminal shows the details"}
    answer = Refusal(status, why.get(status, "this address accepts no such request"))
    return answer.page() if wants_page(request) else answer


HANDLERS = {RaggsError: _error, HTTPException: _http_error_response, Exception: _http_error_response}
