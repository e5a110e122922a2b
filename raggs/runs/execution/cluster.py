"""The dask cluster of a run: worker processes on this machine, or an existing scheduler at an address.

A scheduler runs all code that it receives, with the rights of its user. The scheduler and the workers that raggs starts
on this machine therefore communicate only over TLS. The certificate is created for the run. It is kept in memory; dask
writes it to a temporary file only while it loads it. Other users of the machine can reach their ports, but are
rejected. These processes serve no HTTP pages. Of the environment variables, they get only those for which `passes`
returns true; the others are empty. The security of a scheduler at an address depends on how it was started (see
docs/how-to/many-machines.md).
"""

from __future__ import annotations

import logging
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import resource_tracker
from typing import Any, TypeVar
from urllib.parse import urlsplit

from raggs.base.errors import ConfigError, PrerequisiteError, ProviderError
from raggs.base.secrets import is_secret_name
from raggs.parts.elastic.server import API_KEY, PASSWORD, USERNAME

C = TypeVar("C")

PROTOCOLS = ("tcp", "tls", "ws", "wss", "ucx")
# Variables that give a worker the same interpreter, libraries, threads, locale, folders and certificates.
PASSED_VARIABLES = re.compile(
    r"(PATH|HOME|USER|LOGNAME|SHELL|PWD|LANG|LANGUAGE|TZ|TMPDIR|TEMP|TMP|HOSTNAME|VIRTUAL_ENV|COLUMNS"
    r"|SYSTEMROOT|WINDIR|COMSPEC|APPDATA|LOCALAPPDATA|USERPROFILE|SSL_CERT_FILE|SSL_CERT_DIR|HF_HOME|XDG_CACHE_HOME"
    r"|LC_\w+|PYTHON\w*|LD_\w+|DYLD_\w+|CONDA_\w+|CUDA_\w+|NVIDIA_\w+|MALLOC_\w+|\w+_NUM_THREADS|DASK_\w+)",
    re.IGNORECASE,
)
CREDENTIALS = (API_KEY, USERNAME, PASSWORD)  # workers need them: they search an Elasticsearch index directly
NO_PAGES: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
REMEDY = 'pip install ".[distributed]" in a clone of raggs'
START_ATTEMPTS = 3  # maximum number of attempts to start the event loop of dask


def distributed() -> Any:
    """Import and return the package `distributed`.

    Raises:
        PrerequisiteError: it is not installed.
    """
    try:
        package = import_module("distributed")
    except ImportError as error:
        raise PrerequisiteError(
            "execution dask needs dask.distributed, which is not installed", remedy=REMEDY
        ) from error
    logging.getLogger("distributed").propagate = False  # the package prints its log messages by its own handlers
    return package


def check_address(address: str) -> str:
    """Return `address` if it is a valid address of a scheduler.

    Raises:
        ValueError: it is not.
    """
    problem = f"expected an address such as tcp://host:8786 (protocols: {', '.join(PROTOCOLS)}; ports: 1 to 65535)"
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise ValueError(problem) from None
    strange = parts.path or parts.query or parts.fragment or any(char.isspace() for char in address)
    if parts.scheme not in PROTOCOLS or not parts.hostname or not port or strange:
        raise ValueError(problem)
    return address


def passes(name: str) -> bool:
    """Return whether a worker on this machine gets the environment variable `name`.

    It gets the credentials for Elasticsearch. It also gets variables that match `PASSED_VARIABLES`, unless their names
    look like those of secrets.
    """
    return name in CREDENTIALS or (PASSED_VARIABLES.fullmatch(name) is not None and not is_secret_name(name))


def local_cluster(workers: int) -> Any:
    """Start a scheduler and workers on this machine. They accept connections only with the certificate of this process.

    Raises:
        PrerequisiteError: `distributed` or the package for TLS is not installed.
    """
    package = distributed()
    try:
        security = import_module("distributed.security").Security.temporary()
    except ImportError as error:
        raise PrerequisiteError("execution dask needs cryptography, which is not installed", remedy=REMEDY) from error
    cluster: Any = None
    try:
        with _interrupts_held(), import_module("dask").config.set(NO_PAGES):
            cluster = package.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                protocol="tls",
                security=security,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
                env={name: "" for name in os.environ if not passes(name)},
            )
    except KeyboardInterrupt:
        if cluster is not None:
            cluster.close()
        raise
    return cluster


def connect(address: str | None, cluster: Any, patience_s: float) -> Any:
    """Connect to a scheduler that has workers, and return the client.

    Args:
        address: address of the scheduler; None to connect to `cluster`.
        patience_s: timeout for the scheduler and for its workers, in seconds.

    Raises:
        PrerequisiteError: `distributed` is not installed.
        ConfigError: dask cannot use the address.
        ProviderError: no scheduler answers, or the scheduler has no workers.
    """
    where = address or "this machine"
    try:
        client = _retried(lambda: distributed().Client(address or cluster, timeout=patience_s, set_as_default=False))
    except (OSError, TimeoutError) as error:
        remedy = (
            "check execution.address, or start a scheduler: dask scheduler" if address else "raise execution.connect_s"
        )
        raise ProviderError(f"no scheduler answers ({error})", where=where, remedy=remedy) from error
    # an address with an unknown protocol, or TLS without certificates
    except (ValueError, TypeError, RuntimeError) as error:
        remedy = "check execution.address; for tls:// set dask's distributed.comm.tls"
        raise ConfigError(f"dask cannot use this address ({error})", where=where, remedy=remedy) from error
    try:
        client.wait_for_workers(1, timeout=patience_s)
    except TimeoutError as error:
        client.close()
        remedy = f"start workers: dask worker {address} --nthreads 1" if address else "raise execution.connect_s"
        raise ProviderError("the scheduler has no workers", where=where, remedy=remedy) from error
    return client


def _retried(start: Callable[[], C]) -> C:
    """Call `start`, with retries, and return its result.

    If the thread of its event loop does not start within ten seconds, `distributed` fails an assertion. A machine under
    load may need another attempt.
    """
    from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

    attempts = Retrying(
        retry=retry_if_exception_type(AssertionError), stop=stop_after_attempt(START_ATTEMPTS), reraise=True
    )
    try:
        return attempts(start)
    except AssertionError as error:
        raise TimeoutError("dask's event loop did not start") from error


@contextmanager
def quiet(*packages: str) -> Iterator[None]:
    """Suppress the log messages of `packages`, because raggs reports a lost connection itself."""
    loggers = [logger for name, logger in logging.root.manager.loggerDict.items() if name.partition(".")[0] in packages]
    heard = [logger for logger in loggers if isinstance(logger, logging.Logger) and not logger.disabled]
    for logger in heard:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in heard:
            logger.disabled = False


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block Ctrl-C inside the ``with`` statement. Threads and processes that are started there, and their children,
    never receive Ctrl-C. On Windows, nothing is blocked.

    Only the client receives Ctrl-C, and it stops these processes in an orderly way.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # a later start would unblock Ctrl-C for the next processes
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
