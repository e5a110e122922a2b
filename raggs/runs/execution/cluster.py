"""The cluster that does the work: one of this machine's own processes, or the one at a scheduler's address.

A scheduler runs whatever code it is sent, as the user whose it is. So the processes of this machine talk over TLS
alone, with a certificate that is made for the run and exists in memory only: another user of the machine, who can reach
their ports, is refused. They offer no pages over HTTP, and get what `PASSED_VARIABLES` lets through of the environment.
A scheduler at an address is as safe as whoever started it made it (see docs/how-to/many-machines.md).
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
# What a process needs to run where this one runs: interpreter, libraries, threads, locale, folders, certificates.
PASSED_VARIABLES = re.compile(
    r"(PATH|HOME|USER|LOGNAME|SHELL|PWD|LANG|LANGUAGE|TZ|TMPDIR|TEMP|TMP|HOSTNAME|VIRTUAL_ENV|COLUMNS"
    r"|SYSTEMROOT|WINDIR|COMSPEC|APPDATA|LOCALAPPDATA|USERPROFILE|SSL_CERT_FILE|SSL_CERT_DIR|HF_HOME|XDG_CACHE_HOME"
    r"|LC_\w+|PYTHON\w*|LD_\w+|DYLD_\w+|CONDA_\w+|CUDA_\w+|NVIDIA_\w+|MALLOC_\w+|\w+_NUM_THREADS|DASK_\w+)",
    re.IGNORECASE,
)
CREDENTIALS = (API_KEY, USERNAME, PASSWORD)  # workers ask an index of Elasticsearch themselves
NO_PAGES: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
REMEDY = 'pip install "raggs[distributed]"'
START_ATTEMPTS = 3  # of the event loop


def distributed() -> Any:
    """The package.

    Raises:
        PrerequisiteError: it is not installed.
    """
    try:
        package = import_module("distributed")
    except ImportError as error:
        raise PrerequisiteError(
            "execution dask needs dask.distributed, which is not installed", remedy=REMEDY
        ) from error
    logging.getLogger("distributed").propagate = False  # it has handlers of its own
    return package


def check_address(address: str) -> str:
    """`address`, if a scheduler could be there.

    Raises:
        ValueError: it could not.
    """
    problem = f"not an address such as tcp://host:8786 (protocols: {', '.join(PROTOCOLS)}; ports: 1 to 65535)"
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
    """Whether a worker on this machine gets the variable `name`."""
    return name in CREDENTIALS or (PASSED_VARIABLES.fullmatch(name) is not None and not is_secret_name(name))


def local_cluster(workers: int) -> Any:
    """Processes on this machine that only this one can talk to.

    Raises:
        PrerequisiteError: what TLS needs is not installed.
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
    """A client of a scheduler that has workers.

    Args:
        address: the scheduler's; None for `cluster`.
        patience_s: seconds until scheduler or workers are given up.

    Raises:
        ConfigError: dask cannot use the address.
        ProviderError: nobody answers, or nobody would do the work.
    """
    where = address or "this machine"
    try:
        client = _retried(lambda: distributed().Client(address or cluster, timeout=patience_s, set_as_default=False))
    except (OSError, TimeoutError) as error:
        remedy = "check execution.address, or start one: dask scheduler"
        raise ProviderError(f"no scheduler answers ({error})", where=where, remedy=remedy) from error
    except (ValueError, TypeError, RuntimeError) as error:  # an address dask knows no way to, TLS without certificates
        remedy = "check execution.address; for tls:// set dask's distributed.comm.tls"
        raise ConfigError(f"dask cannot use this address ({error})", where=where, remedy=remedy) from error
    try:
        client.wait_for_workers(1, timeout=patience_s)
    except TimeoutError as error:
        client.close()
        remedy = f"start some: dask worker {where} --nthreads 1"
        raise ProviderError("the scheduler has no workers", where=where, remedy=remedy) from error
    return client


def _retried(start: Callable[[], C]) -> C:
    """Return what `start` returns.

    distributed gives the thread of its event loop ten seconds to start and then fails an assertion, so that a machine
    under load needs another attempt.
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
    """Without what `packages` log: where a connection is lost, our own sentence says so."""
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
    """Ctrl-C waits until the block has ended. Threads and processes begun in it never hear it, nor do theirs.

    The client hears it, and stops them in good order.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # begun later, it would let Ctrl-C through to what is begun after it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
