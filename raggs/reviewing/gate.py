"""Who may come in: the holder of the token, who gets a cookie for it; from this page only, not too much, not too often.

It stands before everything else as an ASGI application of its own, so that no route can be forgotten. What it refuses
is told in one sentence. TLS is a proxy's work.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Collection
from hashlib import sha256
from html import escape
from ipaddress import ip_address
from socket import gethostname
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE, HEADER = "raggs_review", "x-raggs"
DEEP = "/look"  # where an address may lead to, and below; all others lead to the beginning
MOST_BODY = 64 * 1024  # bytes of a request
BODY_SECONDS = 15.0  # until a request's body must have arrived
PER_SECOND, BURST = 40.0, 200.0  # requests of one address
MOST_ADDRESSES = 1_000
SAFE = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Rate:
    """So many requests a second for each address, some more at once."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._left = dict[str, tuple[float, float]]()

    def passes(self, address: str) -> bool:
        """Whether one more may come."""
        now = self._now()
        left, since = self._left.pop(address, (BURST, now))
        left = min(BURST, left + (now - since) * PER_SECOND)
        self._left[address] = max(0.0, left - 1), now
        while len(self._left) > MOST_ADDRESSES:
            del self._left[next(iter(self._left))]
        return left >= 1


class Gate:
    """Lets requests through to `app`, or not.

    Args:
        token: that the first address holds.
        hosts: names of this server besides its addresses, localhost and the machine's own name. A page of another
            site can make its own name lead here, so requests for other names are refused.
        timeout: seconds within which a request's body must arrive.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str,
        rate: Rate | None = None,
        hosts: Collection[str] = (),
        timeout: float = BODY_SECONDS,
    ) -> None:
        self._hosts = {"localhost", gethostname().lower(), *(name.lower() for name in hosts)}
        self._app, self._token, self._rate, self._timeout = app, token, rate or Rate(), timeout
        # Another value than the token's, so that a cookie that leaks opens no other browser's first visit.
        self._cookie = sha256(f"raggs review {token}".encode()).hexdigest()
        self._name = f"{COOKIE}_{self._cookie[:8]}"  # one for each server: cookies do not tell ports apart

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
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
        """What is answered instead; None: come in."""
        if not self._rate.passes(request.client.host if request.client else ""):
            return refused(429, "too many requests; wait a little")
        if not self._is_mine(request.headers.get("host", "")):
            said = "this server does not have that name: open the address that raggs review serve has shown"
            return refused(400, f"{said}, or start it with --allow-host NAME")
        given = request.query_params.get("token")
        if given is not None:
            return self._first_visit(request, given)
        if not secrets.compare_digest(request.cookies.get(self._name, "").encode(), self._cookie.encode()):
            return refused(403, "not for you: open the address that raggs review serve has shown, with its token")
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > MOST_BODY:
            return refused(413, f"a request holds at most {MOST_BODY:,} bytes")
        if request.method not in ("GET", "HEAD"):
            return _foreign(request)
        return None

    def _is_mine(self, host: str) -> bool:
        name = (urlsplit(f"//{host}").hostname or "").lower()
        try:
            return name in self._hosts or ip_address(name) is not None
        except ValueError:
            return False

    def _first_visit(self, request: Request, given: str) -> Response:
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return refused(403, "not for you: the token in the address is another one")
        asked = request.scope["path"]
        answer = RedirectResponse(quote(asked) if asked == DEEP or asked.startswith(f"{DEEP}/") else "/", 303)
        secure = request.headers.get("x-forwarded-proto") == "https"
        answer.set_cookie(self._name, self._cookie, httponly=True, samesite="lax", secure=secure, path="/")
        return answer


def _foreign(request: Request) -> Response | None:
    """Refuse what another site's page makes a browser send."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        return refused(403, "the request comes from another page")
    if HEADER not in request.headers or request.headers.get("content-type", "").split(";")[0] != "application/json":
        return refused(403, f"a request is JSON and has the header {HEADER}")
    return None


class Refusal(JSONResponse):
    """An answer that says why not, as JSON for the page's own requests or as a page for a person."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__({"error": why}, status)
        self._why = why

    def page(self) -> Response:
        """Return the same as a page of HTML."""
        title = "raggs review"
        words = escape(self._why[:1].upper() + self._why[1:])
        head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        scale = '<meta name="viewport" content="width=device-width">'
        return HTMLResponse(f"{head}{scale}<main><h1>{title}</h1><p>{words}.</p></main></html>", self.status_code)


def refused(status: int, why: str) -> Refusal:
    """Return an answer that says why not."""
    return Refusal(status, why)


def wants_page(request: Request) -> bool:
    """Return whether a person opened an address, rather than the page's code."""
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")


def _guarded(send: Send) -> Send:
    """Headers that keep a browser from doing what the page does not want, on every answer."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            extra = [(name.encode(), value.encode()) for name, value in SAFE.items()]
            message = {**message, "headers": [*message.get("headers", []), *extra]}
        await send(message)

    return guarded


def _limited(receive: Receive, seconds: float) -> Receive:
    """End a body that is too long, whatever length it claimed, or that does not arrive in time."""
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
        return {"type": "http.disconnect"} if come > MOST_BODY else message

    return limited
