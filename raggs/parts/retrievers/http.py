"""Retrieval from any search service with an HTTP interface.

A template describes the request. Paths name the parts of the JSON answer: the list of results and, in each result,
the passage id (or the text) and the score. Requests run concurrently. They are retried after transient errors: no
connection, a timeout, an incomplete answer, or status 408, 425, 429 or 5xx. Pauses between attempts grow, unless the
server states a pause. Redirects are not followed, because they could send the key to another address.

Results are cached under the hash of the request and of the paths, so that an interrupted run does not repeat answered
requests. `latency_ms` always sends a request. It measures the successful attempt until the last byte is received,
including a new connection if none is open.

The key is read from the environment variable `api_key_env` for each request. It is never written to a file.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import ssl
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator, model_validator

from raggs.base.arrays import shortest_float
from raggs.base.cache import CacheTable
from raggs.base.errors import (
    AuthenticationError,
    DataError,
    NotFoundError,
    PrerequisiteError,
    ProviderError,
    RaggsError,
)
from raggs.base.hashing import canonical_json, hash_value
from raggs.base.secrets import add_secrets
from raggs.base.settings import Effort, http_address
from raggs.base.text import replace_surrogates, shorten
from raggs.parts.indexes.passages import TextIds
from raggs.parts.retrievers import Hit, Retriever, RetrieverConfig

if TYPE_CHECKING:
    from aiohttp import ClientSession

    from raggs.base.artifacts import EmbedRecord

QUERY, COUNT = "{query}", "{k}"
TRANSIENT = frozenset({408, 425, 429})
MAX_ANSWER_BYTES = 64 << 20  # maximum size of an answer
FIRST_PAUSE_S = 0.2  # upper bound of the random pause before the first retry
LONGEST_PAUSE_S = 30.0  # upper bound of any pause, including one that the server states
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
SHOWN_CHARS = 200  # maximum length of a server's message in an error


class HttpRetriever(Retriever):
    """A search service with an HTTP interface."""

    class Config(RetrieverConfig):
        type: Literal["http"] = "http"
        url: str = Field(description="address of the service's search endpoint")
        method: Literal["GET", "POST"] = Field(
            "POST", description="POST sends `request` as JSON body; GET sends it as URL parameters"
        )
        request: Mapping[str, object] = Field(
            default={"query": QUERY, "k": COUNT},
            description='template of the request; "{query}" is replaced by the query, and "{k}" by the setting k',
        )
        results: str = Field("results", description="path of the list of results in the answer, such as hits.hits")
        id: str = Field(
            "id",
            description="path of the passage id in a result, such as metadata.doc_id; empty if results are plain ids",
        )
        score: str | None = Field(
            "score", description="path of the score in a result, higher is better; null: only the order counts"
        )
        text: str | None = Field(
            None,
            description="path of the text in a result, for services without ids of the corpus: the passage with this "
            "text is the hit; replaces id",
        )
        headers: Mapping[str, str] = Field(default_factory=dict, description="headers of each request, without keys")
        api_key_env: Effort[str | None] = Field(None, description="environment variable with the service's key")
        api_key_header: Effort[str] = Field(
            "Authorization",
            description="header with the key; in Authorization, a key of one word is sent as `Bearer KEY`",
        )
        concurrency: Effort[int] = Field(8, ge=1, description="maximum number of concurrent requests")
        timeout_s: Effort[float] = Field(30.0, gt=0, description="timeout of a request in seconds")
        max_attempts: Effort[int] = Field(4, ge=1, description="maximum number of attempts per request")
        revision: str | None = Field(
            None, description="version of the service's index; another value sends all requests again"
        )

        @field_validator("url")
        @classmethod
        def _address(cls, url: str) -> str:
            return http_address(url)

        @field_validator("request")
        @classmethod
        def _sends_the_query(cls, template: Mapping[str, object]) -> Mapping[str, object]:
            if fill_template(dict(template), "", 1) == fill_template(dict(template), "?", 1):
                raise ValueError(f"it does not contain {QUERY!r}, so all queries would have the same hits")
            return template

        @field_validator("headers")
        @classmethod
        def _can_be_sent(cls, headers: Mapping[str, str]) -> Mapping[str, str]:
            for name, value in headers.items():
                if not HEADER_NAME.fullmatch(name) or not value.isprintable():
                    raise ValueError(f"{name!r}: its name or value has a character that is not allowed in a header")
                if value.startswith("$"):
                    raise ValueError(
                        f"{name!r}: variables are not expanded; set api_key_env and api_key_header for a key"
                    )
            return headers

        @model_validator(mode="after")
        def _parameters_are_flat(self) -> HttpRetriever.Config:
            nested = [key for key, value in self.request.items() if isinstance(value, Mapping | list)]
            if self.method == "GET" and nested:
                raise ValueError(f"request.{nested[0]} is nested, which URL parameters cannot be; use method: POST")
            return self

    config: Config

    @classmethod
    def whole_corpus(cls, config: RetrieverConfig) -> bool:
        """Return whether hits are identified by their texts, which requires all passages."""
        return isinstance(config, cls.Config) and config.text is not None

    def check(self) -> None:
        """Check that the key is set, if `api_key_env` names one.

        Raises:
            AuthenticationError: the environment variable is not set, or its value is not allowed in a header.
        """
        self._key_header()

    def search(self, queries: Sequence[EmbedRecord]) -> Iterator[list[Hit]]:
        keys = [self._cache_key(query) for query in queries]
        cached = self._table.find(keys)
        missing = {key: query for key, query in zip(keys, queries, strict=True) if key not in cached}
        if missing:
            self.context.loop().run(self._fetch(missing))
            cached |= self._table.find(missing)
        for query, key in zip(queries, keys, strict=True):
            yield self._hits([(identity, score) for identity, score in json.loads(cached[key])], query)

    def latency_ms(self, query: EmbedRecord) -> float:
        _, ms = self.context.loop().run(self._answer(query))
        return ms

    def close(self) -> None:
        if "_session" in self.__dict__:
            self.context.loop().run(self._session.close())
            del self.__dict__["_session"]

    # --- requests ---

    @cached_property
    def _table(self) -> CacheTable:
        return self.context.cache.table("http")

    def _cache_key(self, query: EmbedRecord) -> str:
        config = self.config
        request = [config.url, config.method, self._filled(query), dict(config.headers), config.revision]
        return hash_value(["http", self.VERSION, request, [config.results, config.id, config.score, config.text]])

    def _filled(self, query: EmbedRecord) -> dict[str, object]:
        return {key: fill_template(each, query.rewrite, self.config.k) for key, each in self.config.request.items()}

    @cached_property
    def _session(self) -> ClientSession:
        """The open connections; created within the event loop."""
        import aiohttp  # imported lazily: needed only for requests
        import certifi

        trusted = ssl.create_default_context()
        trusted.load_verify_locations(certifi.where())
        connector = aiohttp.TCPConnector(limit=self.config.concurrency, ssl=trusted)
        timeout = aiohttp.ClientTimeout(total=self.config.timeout_s)
        return aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=True)

    def _key_header(self) -> dict[str, str]:
        config = self.config
        if config.api_key_env is None:
            return {}
        key = os.environ.get(config.api_key_env, "").strip()
        if not key or not (key.isascii() and key.isprintable()):
            problem = "is not set" if not key else "contains a character that is not allowed in a header"
            raise AuthenticationError(
                f"the environment variable {config.api_key_env} {problem}",
                where=config.url,
                remedy="set it to the service's key",
            )
        add_secrets([key])  # the variable's name may not look like that of a secret
        bearer = config.api_key_header.lower() == "authorization" and " " not in key
        return {config.api_key_header: f"Bearer {key}" if bearer else key}

    async def _fetch(self, queries: Mapping[str, EmbedRecord]) -> None:
        """Send the requests and store each list of results as it arrives, under the key of its request.

        The first error cancels the other requests.
        """
        slots = asyncio.Semaphore(self.config.concurrency)

        async def one(query: EmbedRecord, key: str) -> None:
            async with slots:
                results, _ = await self._answer(query)
            self._table.put({key: canonical_json(results).encode()})

        try:
            async with asyncio.TaskGroup() as group:
                for key, query in queries.items():
                    group.create_task(one(query, key))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _answer(self, query: EmbedRecord) -> tuple[list[tuple[str, float]], float]:
        """Return the id (or text) and score of each result, and the latency in milliseconds."""
        from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt
        from tenacity import wait_random_exponential as growing

        pauses = growing(FIRST_PAUSE_S, LONGEST_PAUSE_S)

        def pause(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome is not None else None
            stated = error.pause_s if isinstance(error, TransientError) else None
            return pauses(state) if stated is None else min(stated, LONGEST_PAUSE_S)

        attempts = AsyncRetrying(
            retry=retry_if_exception_type(TransientError),
            stop=stop_after_attempt(self.config.max_attempts),
            wait=pause,
            reraise=True,
        )
        found: tuple[bytes, float] = await attempts(self._send, query)
        raw, ms = found
        return self._parsed(raw, query), ms

    async def _send(self, query: EmbedRecord) -> tuple[bytes, float]:
        """Return the answer and the latency in milliseconds.

        Raises:
            TransientError: another attempt may succeed.
            RaggsError: the service rejects the request.
        """
        import aiohttp

        config, filled = self.config, self._filled(query)
        post = config.method == "POST"
        headers, session = {**config.headers, **self._key_header()}, self._session
        began = time.perf_counter()
        try:
            async with session.request(
                config.method,
                config.url,
                headers=headers,
                allow_redirects=False,
                json=filled if post else None,
                params=None if post else _parameters(filled),
            ) as answer:
                content = bytearray()
                while len(content) <= MAX_ANSWER_BYTES and (more := await answer.content.readany()):
                    content += more
                ms = 1000 * (time.perf_counter() - began)
                if answer.status == 200 and len(content) <= MAX_ANSWER_BYTES:
                    return bytes(content), ms
                status, pause = answer.status, answer.headers.get("Retry-After", "")
        except TimeoutError:
            raise TransientError(
                f"no answer within {config.timeout_s:g} s", where=config.url, remedy="increase timeout_s"
            ) from None
        except aiohttp.ClientPayloadError:
            raise TransientError(
                "the answer ends too early", where=config.url, remedy="run again later; finished queries are kept"
            ) from None
        except aiohttp.ClientResponseError as error:
            problem = shorten(" ".join(error.message.split()), SHOWN_CHARS)
            raise TransientError(
                f"the answer is not HTTP ({problem})", where=config.url, remedy="check url and port"
            ) from None
        except aiohttp.ClientError as error:
            raise TransientError(
                f"the service cannot be reached ({shorten(str(error) or type(error).__name__, SHOWN_CHARS)})",
                where=config.url,
                remedy="start the service, or check url",
            ) from None
        raise self._refusal(status, bytes(content[:4096]), pause)

    def _refusal(self, status: int, raw: bytes, pause: str) -> RaggsError:
        """Return the error for an answer that cannot be used; `raw` is the beginning of the answer."""
        where = self.config.url
        if status == 200:
            return DataError(f"the answer has more than {MAX_ANSWER_BYTES >> 20} MB", where=where, remedy="lower k")
        shown = shorten(" ".join(raw.decode("utf-8", "replace").split()), SHOWN_CHARS) or "no message"
        said = f"the service answers with status {status}: {shown}"
        if status in TRANSIENT or status >= 500:
            seconds = float(pause) if pause.isdecimal() else None
            return TransientError(
                said, where=where, remedy="run again later; finished queries are kept", pause_s=seconds
            )
        if status in (401, 403):
            return AuthenticationError(said, where=where, remedy="set api_key_env to the variable with the key")
        if status == 404:
            return NotFoundError(said, where=where, remedy="check url")
        if 300 <= status < 400:
            return PrerequisiteError(said, where=where, remedy="set url to the final address")
        return DataError(said, where=where, remedy="check method, request and headers")

    # --- answers ---

    def _parsed(self, raw: bytes, query: EmbedRecord) -> list[tuple[str, float]]:
        """Return the id (or text) and the score of the first `k` results; if `score` is null, the score is 1 / rank."""
        config = self.config
        try:
            answer = json.loads(raw)
        except (ValueError, RecursionError):
            raise self._unusable(query, "is not JSON", "check url and method") from None
        found = value_at(answer, config.results)
        if not isinstance(found, list):
            known = ", ".join(sorted(answer)[:8]) if isinstance(answer, dict) else type(answer).__name__
            held = f"it has: {shorten(known, SHOWN_CHARS)}" if found is None else f"but {shorten(repr(found), 60)}"
            raise self._unusable(query, f"has no list at {config.results!r} ({held})", "correct the setting results")
        return [self._result(each, rank, query) for rank, each in enumerate(found[: config.k], start=1)]

    def _result(self, each: object, rank: int, query: EmbedRecord) -> tuple[str, float]:
        config, place = self.config, f"result {rank}"
        named = config.id if config.text is None else config.text
        identity = value_at(each, named)
        if isinstance(identity, int) and not isinstance(identity, bool) and config.text is None:
            identity = str(identity)
        if not isinstance(identity, str) or not identity:
            setting = "id" if config.text is None else "text"
            raise self._unusable(query, f"has no {setting} at {named!r} in {place}", f"correct the setting {setting}")
        if not identity.isascii() and replace_surrogates(identity) != identity:
            raise self._unusable(query, f"has invalid Unicode at {named!r} in {place}", "correct the service")
        if config.score is None:
            return identity, 1 / rank
        score = value_at(each, config.score)
        if isinstance(score, bool) or not isinstance(score, int | float) or not abs(score) <= sys.float_info.max:
            raise self._unusable(
                query,
                f"has no finite number at {config.score!r} in {place}",
                "correct the setting score, or set it to null",
            )
        return identity, shortest_float(float(score))

    def _hits(self, results: Sequence[tuple[str, float]], query: EmbedRecord) -> list[Hit]:
        """Return the hits, best first.

        Raises:
            DataError: a passage is not in the corpus, or occurs twice.
        """
        ids = [each[0] for each in results]
        if self.config.text is not None:
            found = self._texts.find(ids)
            lost = [text for text, doc_id in zip(ids, found, strict=True) if doc_id is None]
            if lost:
                raise self._unusable(
                    query,
                    f"contains a text that no passage of the corpus has: {shorten(lost[0], 60)!r}",
                    "index the same corpus in the service, or set id instead of text",
                )
            ids = [doc_id for doc_id in found if doc_id is not None]
        elif strange := sorted(set(ids) - self.context.passages.known(ids)):
            shown = ", ".join(islice(strange, 3))
            raise self._unusable(
                query, f"contains {shown}, which the corpus does not contain", "index the same corpus in the service"
            )
        if twice := next((doc_id for at, doc_id in enumerate(ids) if doc_id in ids[:at]), None):
            raise self._unusable(query, f"contains the passage {twice!r} twice", "return each passage once")
        hits = [Hit(doc_id, float(score)) for doc_id, (_, score) in zip(ids, results, strict=True)]
        return sorted(hits, key=lambda hit: (-hit.score, hit.doc_id))

    @cached_property
    def _texts(self) -> TextIds:
        return TextIds(self.context.store)

    def _unusable(self, query: EmbedRecord, problem: str, remedy: str) -> DataError:
        return DataError(f"the answer for query {query.qid} {problem}", where=self.config.url, remedy=remedy)


class TransientError(ProviderError):
    """A failed request that may succeed later. `pause_s`: pause in seconds that the server states, or None."""

    def __init__(self, message: str, *, where: str, remedy: str, pause_s: float | None = None) -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.pause_s = pause_s


def fill_template(template: object, query: str, k: int) -> object:
    """Return the template with the query and `k` inserted; keys stay unchanged.

    A text that is only "{k}" becomes a number. The query is inserted last, so that its own braces are not replaced.
    """
    if isinstance(template, str):
        return k if template == COUNT else template.replace(COUNT, str(k)).replace(QUERY, query)
    if isinstance(template, dict):
        return {key: fill_template(value, query, k) for key, value in template.items()}
    if isinstance(template, list):
        return [fill_template(value, query, k) for value in template]
    return template


def value_at(tree: object, path: str) -> object:
    """Return the value at a path of keys and positions, such as `hits.0.id` or `$.hits[0].id`; None if it is missing.

    An empty path is the tree itself.
    """
    for step in _steps(path):
        if isinstance(tree, dict):
            tree = tree.get(step)
        elif isinstance(tree, list) and step.isdecimal() and int(step) < len(tree):
            tree = tree[int(step)]
        else:
            return None
    return tree


def _steps(path: str) -> Iterable[str]:
    plain = path.removeprefix("$").replace("[*]", "").replace("[", ".").replace("]", "")
    return (step for step in plain.split(".") if step)


def _parameters(filled: dict[str, object]) -> dict[str, str]:
    """Return URL parameters as texts."""
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in filled.items()}
