"""Send calls: directly to servers with OpenAI's protocol if possible (`direct`), otherwise through litellm.

Only this module imports litellm, and only when needed. litellm is restricted: no telemetry, no log lines (they may
contain prompts and keys), no price list from the network, and no retries. Errors of a call are raised as a `Fault`, or
as a ConfigError if the environment is invalid.

`ModelEndpoint` implements OpenAI's protocol over HTTP: chat, decisions, embeddings, files and batches, for OpenAI and
compatible servers. It also sends the rerank request that most rerankers share.

litellm supports many providers, but needs 4 ms of CPU time per call and 3 s for its import. A run makes thousands of
calls, mostly with this protocol, which consists of a few JSON requests. Everything else goes through litellm: other
providers, models without a chat endpoint, and parameters that only litellm knows. See `speaks_openai`.

A failed call of `ModelEndpoint` raises `Refused`, `Redirected`, `Garbled`, `Unreached`, an OSError such as
TimeoutError, or aiohttp's ClientError, and `raggs.llm.faults` has a row for each. This module never retries. The key is
read from the environment for each call. It is not stored, except in the list of secrets to mask if `api_key_env` names
its variable.

Redirects are not followed. After a status 301, 302 or 303, the client would send a GET request, and its answer would
count as the model's answer. After a status 307 or 308, it would send queries, passages and the key to a host that the
user did not configure.

For calls through litellm, redirects of its HTTP clients are disabled only while such a call runs. A program that uses
raggs may use these clients for other purposes.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import ssl
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Literal
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from raggs.base.errors import ConfigError
from raggs.base.secrets import add_secrets
from raggs.base.types import JsonObject, as_list
from raggs.llm.faults import Fault, fault_of, lower_headers
from raggs.llm.messages import add_cache_marks
from raggs.llm.prices import address_of, decides, key_variable, mode_of, provider_of
from raggs.llm.settings import LLMSettings

if TYPE_CHECKING:
    from types import ModuleType

    from aiohttp import ClientSession, FormData

    Headers = Mapping[str, str]

SEND = "send"  # name of the method of httpx's client that is replaced


class Redirected(Exception):
    """A redirect to another address. The message names both hosts."""

    status_code = None  # a redirect is not an error of the request

    def __init__(self, status: int, address: str, location: str) -> None:
        here, there = _redirect_host(address, ""), _redirect_host(address, location)
        super().__init__(f"{here} redirects to {there} (status {status})")


_seen_redirects: ContextVar[list[Redirected] | None] = ContextVar("raggs_redirects", default=None)


@contextmanager
def refuse_redirects() -> Iterator[list[Redirected]]:
    """Turn redirects of asynchronous httpx clients into errors within the block. The list collects these errors."""
    _refuse()
    seen: list[Redirected] = []
    token = _seen_redirects.set(seen)
    try:
        yield seen
    finally:
        _seen_redirects.reset(token)


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
        seen = _seen_redirects.get()
        follow = follow_redirects if seen is None else False
        response = await original(self, request, stream=stream, auth=auth, follow_redirects=follow)
        if seen is not None and response.has_redirect_location:
            await response.aclose()
            seen.append(Redirected(response.status_code, str(request.url), response.headers["location"]))
            raise httpx.TooManyRedirects(str(seen[-1]), request=request)
        return response

    setattr(httpx.AsyncClient, SEND, send)


def _redirect_host(address: str, location: str) -> str:
    """Return host and port of a redirect target, resolved against an address, without user name and password."""
    try:
        return urlsplit(urljoin(address, location)).netloc.rpartition("@")[2] or "another address"
    except ValueError:
        return "another address"


PROVIDER = "openai"
HOME = "https://api.openai.com/v1"
# Parameters of the protocol. All others may be instructions to litellm.
PARAMETERS = frozenset(
    {"dimensions", "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens"}
    | {"presence_penalty", "reasoning_effort", "response_format", "seed", "service_tier", "stop", "temperature"}
    | {"top_logprobs", "top_p", "user", "verbosity"}
)
OWN_HEADERS = (("OpenAI-Organization", "OPENAI_ORG_ID"), ("OpenAI-Project", "OPENAI_PROJECT_ID"))
JSON = {"Content-Type": "application/json"}
KEEP_ALIVE_S = 55.0  # below one minute, after which load balancers drop idle connections


class Refused(Exception):
    """A refused request, with the server's message. `status_code` is None if nothing was sent, or if the server stated
    an error without a status.
    """

    def __init__(
        self, words: str, status_code: int | None = None, code: str = "", headers: Headers | None = None
    ) -> None:
        super().__init__(words)
        self.status_code = status_code
        self.code = code
        self.headers: Headers = headers or {}


class Garbled(Exception):
    """A response that violates the protocol."""


class Unreached(Exception):
    """No connection was made: nothing was sent, so nothing can be charged."""


class StoppedUnsent(asyncio.CancelledError):
    """The caller was cancelled before anything was sent."""


@cache
def http_exceptions() -> tuple[type[Exception], ...]:
    """Return all exceptions that a request may raise."""
    import aiohttp

    return (Refused, Garbled, Unreached, Redirected, aiohttp.ClientError, OSError)


def speaks_openai(model: str, parameters: Iterable[str], mode: str) -> bool:
    """Return whether `model` can be called with OpenAI's protocol. `mode` is "chat" or "embedding"."""
    known = mode_of(model)
    named = model.startswith(f"{PROVIDER}/") or (known is not None and provider_of(model) == PROVIDER)
    return named and known in (mode, None) and PARAMETERS.issuperset(parameters)


@dataclass(frozen=True)
class ModelEndpoint:
    """Endpoint of `model`. `address` is None for OpenAI's own. `timeout_s`: limit for each request, in seconds.
    `key_env`: variable of the key, None for the provider's own.

    Every request may raise the exceptions in `http_exceptions`, or a ConfigError if OPENAI_ORG_ID or OPENAI_PROJECT_ID
    is malformed.
    """

    model: str
    address: str | None
    timeout_s: float
    key_env: str | None = None

    async def ask(self, path: str, body: Mapping[str, object]) -> tuple[Mapping[str, object], Headers]:
        """Send `body` with the model's name. Return the JSON object and the headers of the response."""
        named = with_named_limit(body, own_server=self.address is not None) | {"model": _name(self.model)}
        raw, headers = await self._request("POST", path, json.dumps(named).encode(), JSON)
        answer = _parse_object(raw)
        if answer.get("error") and not any(map(answer.get, ("answers", "choices", "data", "results"))):
            words, code = _complaint(raw)  # an error with a success status
            raise Refused(words, int(code) if code.isdecimal() and len(code) == 3 else None, code, headers)
        return answer, headers

    async def post(self, path: str, body: Mapping[str, object]) -> Mapping[str, object]:
        """Send `body` unchanged and return the JSON object of the response."""
        return _parse_object((await self._request("POST", path, json.dumps(body).encode(), JSON))[0])

    async def get(self, path: str) -> Mapping[str, object]:
        """Return the JSON object at a path."""
        return _parse_object((await self._request("GET", path))[0])

    async def download(self, path: str) -> bytes:
        """Return the content of a file, unchecked."""
        return (await self._request("GET", path))[0]

    async def upload(self, path: str, name: str, content: bytes, **fields: str) -> Mapping[str, object]:
        """Upload a file with form `fields` and return the JSON object of the response."""
        from aiohttp import FormData

        form = FormData(fields)
        form.add_field("file", io.BytesIO(content), filename=name)
        return _parse_object((await self._request("POST", path, form))[0])

    async def _request(
        self, method: str, path: str, data: bytes | FormData | None = None, headers: Headers | None = None
    ) -> tuple[bytes, Headers]:
        base = (self.address or HOME).rstrip("/")
        sent = {**self._credentials(), **(headers or {})}
        session, trusted, proxy = await _session(), _trusted() if base.startswith("https:") else True, _proxy(base)
        address, way = f"{base}/{path}", _RequestProgress()
        async with _connected(way, self.timeout_s), asyncio.timeout(self.timeout_s):
            request = session.request(
                method,
                address,
                data=data,
                headers=sent,
                ssl=trusted,
                proxy=proxy,
                allow_redirects=False,
                trace_request_ctx=way,
            )
            async with request as response:
                raw = await response.read()
        if 300 <= response.status < 400:
            raise Redirected(response.status, address, response.headers.get("Location", ""))
        if not 200 <= response.status < 300:
            words, code = _complaint(raw)
            raise Refused(words or str(response.reason), response.status, code, response.headers)
        return raw, response.headers

    def _credentials(self) -> dict[str, str]:
        variable = key_variable(self.model, self.key_env)
        key = "none" if variable is None else os.environ.get(variable)
        if not key or not (key := key.strip()):
            raise Refused("missing credentials")
        if not (key.isascii() and key.isprintable()):
            raise Refused("malformed credentials")
        if self.key_env is not None:
            add_secrets([key])  # `mask` may not recognise a secret by the name of this variable
        found = {"Authorization": f"Bearer {key}"}
        for header, known in OWN_HEADERS if provider_of(self.model) == PROVIDER else ():
            if value := os.environ.get(known, "").strip():
                if not (value.isascii() and value.isprintable()):
                    said = f"environment {known}: contains a character that is not allowed in a request header"
                    raise ConfigError(said, remedy="correct it, or unset it")
                found[header] = value
        return found


@dataclass
class _RequestProgress:
    """Progress of a request."""

    sent: bool = False


@asynccontextmanager
async def _connected(way: _RequestProgress, timeout_s: float) -> AsyncGenerator[None, None]:
    """Raise `Unreached` or `StoppedUnsent` for a fault or a cancellation before any part of the request was sent."""
    from aiohttp import ClientConnectionError

    try:
        yield
    except (TimeoutError, ClientConnectionError) as error:
        if way.sent:
            raise
        raise Unreached(str(error) or f"no connection within {timeout_s:g} s") from error
    except asyncio.CancelledError as stop:
        if way.sent:
            raise
        raise StoppedUnsent(*stop.args) from stop


async def _note_sent(_: ClientSession, context: SimpleNamespace, __: object) -> None:
    way = context.trace_request_ctx
    if isinstance(way, _RequestProgress):
        way.sent = True


async def close_http() -> None:
    """Close the connections of this event loop."""
    if (found := _open_sessions.get(asyncio.get_running_loop())) is not None:
        await found[1].aclose()


def with_named_limit(body: Mapping[str, object], *, own_server: bool) -> dict[str, object]:
    """Rename `max_tokens` to `max_completion_tokens` for OpenAI, whose newer models accept only the second name. Other
    servers may accept only the first one.
    """
    sent = dict(body)
    if not own_server and "max_tokens" in sent:
        sent["max_completion_tokens"] = sent.pop("max_tokens")
    return sent


def _name(model: str) -> str:
    """Return the model's name without the provider."""
    return model.partition("/")[2] or model


def _parse_object(raw: bytes) -> dict[str, object]:
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):
        raise Garbled("it is not JSON") from None
    if not isinstance(answer, dict):
        raise Garbled("it is not a JSON object")
    return answer


def _complaint(raw: bytes) -> tuple[str, str]:
    """Return the server's error message and error code."""
    text = raw.decode("utf-8", "replace").strip()
    try:
        error = json.loads(text)["error"]
        return (error, "") if isinstance(error, str) else (str(error["message"]), str(error.get("code") or ""))
    except (ValueError, TypeError, KeyError, RecursionError):
        return text, ""


@cache
def _trusted() -> ssl.SSLContext:
    """Return a context with the system's certificate authorities, which some Python builds lack, and certifi's."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


@lru_cache(maxsize=8)
def _proxy(address: str) -> str | None:
    """Return the proxy in the environment for this address. aiohttp would look it up in a thread for each call."""
    parts = urlsplit(address)
    proxy = getproxies().get(parts.scheme)
    return None if proxy is None or proxy_bypass(parts.netloc) else proxy


# By event loop: connections, and the generator that closes them.
_open_sessions: dict[asyncio.AbstractEventLoop, tuple[ClientSession, AsyncGenerator[ClientSession, None]]] = {}


async def _session() -> ClientSession:
    """Return the connections of this event loop, which stay open between calls."""
    loop = asyncio.get_running_loop()
    if loop not in _open_sessions:
        lifetime = _connections(loop)
        _open_sessions[loop] = (await anext(lifetime), lifetime)
    return _open_sessions[loop][0]


async def _connections(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[ClientSession, None]:
    """Yield the connections. This is a generator because an event loop closes its generators when it ends."""
    import aiohttp  # imported lazily: needed only for paid calls

    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S)
    timeout = aiohttp.ClientTimeout(total=None)  # the caller limits the time
    trace = aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(_note_sent)
    try:
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, trace_configs=[trace]) as session:
            yield session
    finally:
        _open_sessions.pop(loop, None)


# Providers whose servers score passages at `<address>/rerank`, in Cohere's form, if an address is set.
RERANKS = frozenset(
    {"cohere", "hosted_vllm", "infinity", "jina_ai", "litellm_proxy", "llamafile", "openai", "together_ai", "voyage"}
)
AnswerForm = Literal["text", "logprobs", "decision"]
CallKind = Literal["chat", "decision", "embedding", "rerank"]
Answered = tuple[Mapping[str, object], dict[str, str]]  # the JSON object, and headers with lower-case names


def direct(kind: CallKind, model: str, parameters: Iterable[str], settings: LLMSettings) -> bool:
    """Return whether a call goes directly to its server and not through litellm."""
    if kind in ("chat", "embedding"):
        return speaks_openai(model, parameters, kind)
    provider = provider_of(model)
    known = kind == "rerank" and provider in RERANKS and settings.base_of(model) is not None
    return provider == PROVIDER or known


def prepare(kind: CallKind, model: str, parameters: Iterable[str], settings: LLMSettings) -> None:
    """Import what a call of this kind needs. litellm takes seconds, which must not count as latency of a call."""
    if direct(kind, model, parameters, settings):
        http_exceptions()
    else:
        exceptions()


async def chat(model: str, body: Mapping[str, object], settings: LLMSettings) -> Answered:
    """Return the answer to one chat completion. `body` contains everything but the model's name.

    Raises:
        Fault: the call failed.
        ConfigError: an address or a header value in the environment is invalid.
    """
    told = add_cache_marks(model, body, home=address_of(model, settings.base_of(model)) is None)
    try:
        if direct("chat", model, body.keys() - {"messages"}, settings):
            return await _post("chat/completions", model, told, settings)
        return await _litellm("acompletion", model, told, settings)
    except Fault as fault:
        fault.about_marks = fault.about_marks and told is not body
        raise


async def decide(model: str, body: Mapping[str, object], settings: LLMSettings) -> Answered:
    """Return the answer to one decision request. `body` contains everything but the model's name.

    Raises:
        Fault: the call failed.
        ConfigError: an address or a header value in the environment is invalid.
    """
    if direct("decision", model, (), settings):
        return await _post("decisions", model, body, settings)
    return await _litellm("adecisions", model, body, settings)


async def embeddings(model: str, body: Mapping[str, object], settings: LLMSettings) -> Answered:
    """Return the answer to one embedding request. `body` contains everything but the model's name.

    Raises:
        Fault: the call failed.
        ConfigError: an address or a header value in the environment is invalid.
    """
    if direct("embedding", model, body.keys() - {"input"}, settings):
        return await _post("embeddings", model, {**body, "encoding_format": "float"}, settings)
    return await _litellm("aembedding", model, body, settings)


async def rerank(model: str, body: Mapping[str, object], settings: LLMSettings) -> Answered:
    """Return the answer to one rerank request for all documents. `body` contains everything but model and format.

    Raises:
        Fault: the call failed.
        ConfigError: an address or a header value in the environment is invalid.
    """
    wanted = len(as_list(body["documents"]))
    if direct("rerank", model, (), settings):
        count = {"top_k" if provider_of(model) == "voyage" else "top_n": wanted}
        return await _post("rerank", model, {**body, **count, "return_documents": False}, settings)
    return await _litellm("arerank", model, {**body, "top_n": wanted, "return_documents": False}, settings)


@cache
def answer_form(model: str) -> AnswerForm:
    """Return the best form of a grade that `model` supports according to litellm's tables: a decision, otherwise
    log-probabilities of the answer's tokens, otherwise text. Make no call.
    """
    if decides(model):
        return "decision"
    try:
        name, provider, *_ = library().get_llm_provider(model)
        known = library().get_supported_openai_params(name, provider)
    except exceptions():  # an unknown provider
        return "text"
    return "logprobs" if "top_logprobs" in (known or ()) else "text"


async def close() -> None:
    """Close the connections of this event loop."""
    await close_http()
    if library.cache_info().currsize:
        from litellm.llms.custom_httpx.async_client_cleanup import close_litellm_async_clients

        await close_litellm_async_clients()  # type: ignore[no-untyped-call]
        library().in_memory_llm_clients_cache.flush_cache()


@cache
def library() -> ModuleType:
    """Import and silence litellm, and return it."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.turn_off_message_logging = True
    for name in ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return litellm


@cache
def exceptions() -> tuple[type[Exception], ...]:
    """Return all exceptions that a call of litellm may raise: its classes, their bases, and time-outs."""
    import openai

    own = vars(library().exceptions).values()
    return (
        *(kind for kind in own if isinstance(kind, type) and issubclass(kind, Exception)),
        openai.OpenAIError,
        OSError,
        RecursionError,  # an answer that is nested too deeply
    )


async def _post(path: str, model: str, body: Mapping[str, object], settings: LLMSettings) -> Answered:
    key_env = settings.of(model).api_key_env
    server = ModelEndpoint(model, address_of(model, settings.base_of(model)), settings.timeout_s, key_env)
    try:
        answer, headers = await server.ask(path, body)
    except http_exceptions() as error:
        raise fault_of(error, model, key_env) from None  # the original may contain a key
    return answer, lower_headers(headers)


def _key(model: str, key_env: str | None) -> dict[str, str]:
    """Return the key if litellm would not find it, or would find it with a line break from a file."""
    key = os.environ.get(key_variable(model, key_env) or "", "")
    return {"api_key": key.strip()} if key_env is not None or key != key.strip() else {}


async def _litellm(function: str, model: str, body: Mapping[str, object], settings: LLMSettings) -> Answered:
    ask = getattr(library(), function)
    key_env = settings.of(model).api_key_env
    quiet = {"timeout": settings.timeout_s, "max_retries": 0, "num_retries": 0, **_key(model, key_env)}
    with refuse_redirects() as elsewhere:
        try:
            async with asyncio.timeout(settings.timeout_s):
                response = await ask(**body, model=model, api_base=settings.base_of(model), **quiet)
        except exceptions() as error:
            found = elsewhere[0] if elsewhere else error
            raise fault_of(found, model, key_env) from None  # the original may contain a key
    hidden = getattr(response, "_hidden_params", None) or {}
    # Answers of decision models contain tuples, which are lists in JSON.
    answer: JsonObject = response.model_dump(mode="json" if function == "adecisions" else "python")
    return answer, lower_headers(hidden.get("additional_headers") or {})
