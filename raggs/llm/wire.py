"""Calls to OpenAI and to servers that speak its protocol, over HTTP and nothing else.

litellm answers for every provider, at 4 ms of processor time a call and 3 s for its import; a run makes thousands of
calls, most of them to this protocol, which is a POST of JSON. Whatever needs more than that (another provider, a model
that is not asked by chat, a parameter that only litellm knows) goes the way of litellm: see `speaks`.

A failed call leaves as `Refused`, `Garbled`, TimeoutError or aiohttp's ClientError, all of which have their row in
`raggs.llm.faults`. The key is read from the environment at each call and kept nowhere.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncGenerator, Iterable, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from raggs.llm.prices import address_of, mode_of, provider_of

if TYPE_CHECKING:
    from aiohttp import ClientSession

PROVIDER = "openai"
HOME = "https://api.openai.com/v1"
# What the protocol takes as it stands; anything else may be an instruction to litellm.
PARAMETERS = frozenset(
    {"dimensions", "frequency_penalty", "logit_bias", "max_completion_tokens", "max_tokens", "presence_penalty"}
    | {"reasoning_effort", "response_format", "seed", "service_tier", "stop", "temperature", "top_p", "user"}
    | {"verbosity"}
)
KEEP_ALIVE_S = 55.0  # below the minute after which load balancers drop a silent connection


class Refused(Exception):
    """An answer whose status is not 200, with the server's words. `status_code` is None where nothing was sent."""

    def __init__(self, words: str, status_code: int | None = None, code: str = "", headers: Any = None) -> None:
        super().__init__(words)
        self.status_code = status_code
        self.code = code
        self.headers: Mapping[str, str] = headers or {}


class Garbled(Exception):
    """An answer that is not of the protocol."""


@cache
def exceptions() -> tuple[type[Exception], ...]:
    """Everything that `post` may raise."""
    import aiohttp

    return (Refused, Garbled, aiohttp.ClientError, OSError)


def speaks(model: str, parameters: Iterable[str], mode: str) -> bool:
    """Whether `model` can be asked here; `mode` is "chat" or "embedding"."""
    known = mode_of(model)
    named = model.startswith(f"{PROVIDER}/") or (known is not None and provider_of(model) == PROVIDER)
    return named and known in (mode, None) and PARAMETERS.issuperset(parameters)


async def post(
    path: str, model: str, body: Mapping[str, Any], api_base: str | None, timeout_s: float
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """The JSON object that the server answers, and the answer's headers.

    Raises:
        Refused, Garbled, TimeoutError, aiohttp.ClientError: see the module.
    """
    address = address_of(model, api_base)
    content = json.dumps(named(body, own_server=address is not None) | {"model": _name(model)})
    url = f"{(address or HOME).rstrip('/')}/{path}"
    session, trusted, proxy = await _session(), _trusted() if url.startswith("https:") else True, _proxy(url)
    async with asyncio.timeout(timeout_s):
        async with session.post(url, data=content.encode(), headers=_headers(), ssl=trusted, proxy=proxy) as response:
            raw = await response.read()
    if response.status != 200:
        words, code = _complaint(raw)
        raise Refused(words or str(response.reason), response.status, code, response.headers)
    try:
        answer = json.loads(raw)
    except ValueError:
        raise Garbled("it is not JSON") from None
    if not isinstance(answer, dict):
        raise Garbled("it is not a JSON object")
    return answer, response.headers


async def close() -> None:
    """Close the connections of this loop."""
    if (found := _open.get(asyncio.get_running_loop())) is not None:
        await found[1].aclose()


def _name(model: str) -> str:
    """The model's name without the provider's."""
    head, slash, rest = model.partition("/")
    return rest if slash and head == PROVIDER else model


def named(body: Mapping[str, Any], *, own_server: bool) -> dict[str, Any]:
    """OpenAI's newer models know only the newer name of the limit; other servers may know only the older one."""
    sent = dict(body)
    if not own_server and "max_tokens" in sent:
        sent["max_completion_tokens"] = sent.pop("max_tokens")
    return sent


def _headers() -> dict[str, str]:
    key = os.environ.get("OPENAI_API_KEY")
    if not key:
        raise Refused("missing credentials")
    found = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    for header, variable in (("OpenAI-Organization", "OPENAI_ORG_ID"), ("OpenAI-Project", "OPENAI_PROJECT_ID")):
        if value := os.environ.get(variable):
            found[header] = value
    return found


def _complaint(raw: bytes) -> tuple[str, str]:
    """The server's words, and its code for what is wrong."""
    text = raw.decode("utf-8", "replace").strip()
    try:
        error = json.loads(text)["error"]
        return (error, "") if isinstance(error, str) else (str(error["message"]), str(error.get("code") or ""))
    except (ValueError, TypeError, KeyError):
        return text, ""


@cache
def _trusted() -> ssl.SSLContext:
    """The system's certificate authorities, which not every Python knows, and certifi's."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


@lru_cache(maxsize=8)
def _proxy(url: str) -> str | None:
    """The proxy that the environment names for this address. aiohttp would look it up in a thread at each call."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    return None if proxy is None or proxy_bypass(parts.netloc) else proxy


# By loop: connections, and the generator whose end closes them.
_open: dict[asyncio.AbstractEventLoop, tuple[ClientSession, AsyncGenerator[ClientSession, None]]] = {}


async def _session() -> ClientSession:
    """The connections of this loop, kept open between calls."""
    loop = asyncio.get_running_loop()
    if loop not in _open:
        lifetime = _connections(loop)
        _open[loop] = (await anext(lifetime), lifetime)
    return _open[loop][0]


async def _connections(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[ClientSession, None]:
    """A generator, since a loop that ends closes its generators: no connection outlives its loop."""
    import aiohttp  # late: only a call that has to be paid needs it

    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S)
    timeout = aiohttp.ClientTimeout(total=None)  # the caller's clock is the only one
    try:
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            yield session
    finally:
        _open.pop(loop, None)
