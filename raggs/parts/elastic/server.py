"""Client of an Elasticsearch server: requests with timeouts and retries, and errors as `RaggsError`.

Credentials are read from the environment when the client is created: `ELASTIC_API_KEY`, or `ELASTIC_PASSWORD` with
`ELASTIC_USERNAME` (default: elastic). Only the client stores the credentials. Requests are retried with growing pauses
after transient errors (no connection, timeout, 429, 502, 503, 504). All requests made here can safely be repeated.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from raggs.base.errors import (
    AuthenticationError,
    DataError,
    NotFoundError,
    PrerequisiteError,
    ProviderError,
    RaggsError,
)
from raggs.parts.elastic import IndexPlace

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

API_KEY, USERNAME, PASSWORD = "ELASTIC_API_KEY", "ELASTIC_USERNAME", "ELASTIC_PASSWORD"
TRANSIENT = (429, 502, 503, 504)
PAUSES = (0.2, 10.0)  # longest first pause and longest pause before a retry, in seconds

T = TypeVar("T")


class ElasticServer:
    """The server of `place`. Connects at the first request.

    Args:
        place: address, timeout, retries and certificate authority.
        environment: mapping with the credentials; default: the process environment.
        pauses: longest first pause and longest pause before a retry, in seconds; pauses are random up to a growing
            limit.
    """

    def __init__(
        self,
        place: IndexPlace,
        environment: Mapping[str, str] | None = None,
        pauses: tuple[float, float] = PAUSES,
    ) -> None:
        self._place = place
        self._pauses = pauses
        self._environment = os.environ if environment is None else environment
        self._client: Elasticsearch | None = None

    def call(self, request: Callable[[Elasticsearch], T]) -> T:
        """Return the result of `request`; after transient errors, the request is retried.

        Raises:
            PrerequisiteError: the server is unreachable, is not Elasticsearch, has an unsupported version, or
                redirects to another address, or TLS failed.
            AuthenticationError: the credentials are rejected or lack privileges.
            NotFoundError: the index or the file `ca_certs` does not exist.
            DataError: the server rejects the request as invalid.
            ProviderError: the request timed out, or the server failed.
        """
        import elasticsearch
        from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

        attempts = Retrying(
            retry=retry_if_exception(_transient),
            stop=stop_after_attempt(self._place.retries + 1),
            wait=wait_random_exponential(*self._pauses),
            reraise=True,
        )
        try:
            return attempts(request, self._connected())
        except (elasticsearch.ApiError, elasticsearch.TransportError) as error:
            raise explain(error, self._place) from error
        except RecursionError as error:  # the JSON parser of the client raises it
            said = "the server's answer is nested too deeply"
            raise ProviderError(
                said, where=self._place.url, remedy="check that url is the address of an Elasticsearch server"
            ) from error

    def close(self) -> None:
        """Close the connections. May be called twice."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _connected(self) -> Elasticsearch:
        if self._client is None:
            import elasticsearch  # imported lazily: the import takes a quarter of a second

            # Hide two kinds of repeated warnings: the server's about its settings, and the client's about each attempt.
            warnings.filterwarnings("ignore", category=elasticsearch.ElasticsearchWarning)
            logging.getLogger("elastic_transport").setLevel(logging.ERROR)
            options: dict[str, Any] = {"request_timeout": self._place.timeout, "max_retries": 0}
            authority = self._place.ca_certs
            if authority is not None:
                if not authority.is_file():
                    raise NotFoundError("no such file", where=authority, remedy="check ca_certs")
                options["ca_certs"] = str(authority)
            self._client = elasticsearch.Elasticsearch(self._place.url, **options, **self._credentials())
        return self._client

    def _credentials(self) -> dict[str, Any]:
        key, password = self._environment.get(API_KEY), self._environment.get(PASSWORD)
        if key:
            return {"api_key": key}
        return {"basic_auth": (self._environment.get(USERNAME) or "elastic", password)} if password else {}


def _transient(error: BaseException) -> bool:
    import elasticsearch

    if isinstance(error, elasticsearch.ApiError):
        return error.status_code in TRANSIENT
    return isinstance(error, elasticsearch.ConnectionError | elasticsearch.ConnectionTimeout) and not isinstance(
        error, elasticsearch.SSLError
    )


def explain(error: Exception, place: IndexPlace) -> RaggsError:
    """Convert an error of the client library to a RaggsError; credentials are never included."""
    import elasticsearch

    if isinstance(error, elasticsearch.UnsupportedProductError):
        return PrerequisiteError("the server is not Elasticsearch", where=place.url, remedy="check url")
    if isinstance(error, elasticsearch.ApiError) and 300 <= error.status_code < 400:
        return redirect_error(str(error.meta.headers.get("location", "")), place)
    if isinstance(error, elasticsearch.ApiError):
        return refusal(error.status_code, error.body, place)
    if isinstance(error, elasticsearch.SSLError):
        return PrerequisiteError(
            f"TLS failed ({error.message})",
            where=place.url,
            remedy="set ca_certs to the PEM file of the server's certificate authority",
        )
    if isinstance(error, elasticsearch.ConnectionTimeout):
        return ProviderError(f"no answer within {place.timeout:g} s", where=place.url, remedy="increase timeout")
    if isinstance(error, elasticsearch.ConnectionError):
        return PrerequisiteError(
            "Elasticsearch cannot be reached",
            where=place.url,
            remedy="start the server or check url; docs/how-to/elasticsearch.md has a command that starts one",
        )
    return ProviderError(f"the client failed ({error})", where=place.url, remedy="check the server's log")


def redirect_error(location: str, place: IndexPlace) -> RaggsError:
    """Return the error for a redirect. Following it could send data and the API key to another server."""
    here = urlsplit(place.url).netloc
    there = urlsplit(location).netloc or here
    return PrerequisiteError(
        f"{here} redirects to {there}; redirects are not followed",
        where=place.url,
        remedy="set url to the address of the server itself",
    )


def refusal(status: int, body: Any, place: IndexPlace) -> RaggsError:
    """Return the error for an answer that reports a failed request, or a failed search of a batch."""
    from elasticsearch import __version__ as client

    kind, reason = cause_of(body)
    if kind == "media_type_header_exception":
        major = client[0]
        return PrerequisiteError(
            f"the server does not support client {'.'.join(map(str, client))} ({reason})",
            where=place.url,
            remedy=f'for a server of version {major - 1}: pip install "elasticsearch<{major}"',
        )
    if status == 401:
        return AuthenticationError(
            "the server rejected the credentials",
            where=place.url,
            remedy=f"set {API_KEY}, or {USERNAME} and {PASSWORD}",
        )
    if status == 403:
        return AuthenticationError(
            f"not allowed ({reason})",
            where=place.shown,
            remedy="grant the privileges read, monitor and view_index_metadata; for loading also manage and write",
        )
    if kind == "index_not_found_exception":
        return NotFoundError(
            f"index {place.index!r} not found",
            where=place.url,
            remedy="check index, or create it: raggs index --config FILE",
        )
    if status == 404:
        return NotFoundError(f"not found ({reason})", where=place.shown, remedy="run the command again")
    if "number of dimensions" in reason:
        return DataError(f"wrong dimensions ({reason})", where=place.shown, remedy="use the embedder of the index")
    if status in (400, 413):
        return DataError(f"the server rejected the request ({reason})", where=place.shown, remedy="check the settings")
    return ProviderError(
        f"the request failed with {status} ({reason})", where=place.shown, remedy="check the server's log"
    )


def cause_of(body: Any) -> tuple[str, str]:
    """Return the type of an error's root cause and the reason of its innermost cause, if the body contains them."""
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        return "", str(error)[:300] or "no reason given"
    outer = str(error.get("type", ""))
    roots = error.get("root_cause") or [error]
    kind = str(roots[0].get("type", outer))
    deepest = error
    while isinstance(deepest.get("caused_by"), Mapping):
        deepest = deepest["caused_by"]
    reason = str(deepest.get("reason") or roots[0].get("reason") or kind)
    return (outer if outer == "media_type_header_exception" else kind), reason[:300]
