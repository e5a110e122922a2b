"""No redirect is followed. A 301, 302 or 303 would turn a question into a GET whose answer counts as the model's, and
a 307 or 308 would hand questions and passages, with the key, to a host that nobody has named.

For the calls that go through litellm, its HTTP clients are told so while one of our calls is under way, and only then:
a program that uses raggs may have other business with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from urllib.parse import urljoin, urlsplit

SEND = "send"  # what is replaced of the client's class


class Redirected(Exception):
    """A server that sends us elsewhere; the sentence names both hosts."""

    status_code = None  # a redirect is no fault of the request

    def __init__(self, status: int, address: str, location: str) -> None:
        here, there = _host(address, ""), _host(address, location)
        super().__init__(f"{here} redirects to {there} (status {status})")


_seen: ContextVar[list[Redirected] | None] = ContextVar("raggs_redirects", default=None)


@contextmanager
def refused() -> Iterator[list[Redirected]]:
    """While the block runs, redirects of httpx's clients are errors; they are found in the list."""
    _refuse()
    seen: list[Redirected] = []
    token = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(token)


@cache
def _refuse() -> None:
    import httpx

    original = httpx.AsyncClient.send

    async def send(
        self: httpx.AsyncClient,
        request: httpx.Request,
        *,
        stream: bool = False,
        auth: httpx._types.AuthTypes | httpx._client.UseClientDefault | None = httpx.USE_CLIENT_DEFAULT,
        follow_redirects: bool | httpx._client.UseClientDefault = httpx.USE_CLIENT_DEFAULT,
    ) -> httpx.Response:
        seen = _seen.get()
        follow = follow_redirects if seen is None else False
        response = await original(self, request, stream=stream, auth=auth, follow_redirects=follow)
        if seen is not None and response.has_redirect_location:
            await response.aclose()
            seen.append(Redirected(response.status_code, str(request.url), response.headers["location"]))
            raise httpx.TooManyRedirects(str(seen[-1]), request=request)
        return response

    setattr(httpx.AsyncClient, SEND, send)


def _host(address: str, location: str) -> str:
    """Host and port of a place, as seen from an address, without anybody's name and password."""
    try:
        return urlsplit(urljoin(address, location)).netloc.rpartition("@")[2] or "another address"
    except ValueError:
        return "another address"
