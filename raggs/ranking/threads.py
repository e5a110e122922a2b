"""Small matrices on one BLAS thread.

A posterior over some dozens of passages is a matrix of some kilobytes: handing it to a pool of threads costs more
than the work, and on a busy machine a hundred times more. Limits hold for the length of a call only, so that the rest
of the process keeps its threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from types import ModuleType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from raggs.base.light import extension

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
T = TypeVar("T")


def one_blas_thread(function: Callable[P, T]) -> Callable[P, T]:
    """The function, with BLAS held to one thread while it runs."""

    @wraps(function)
    def held(*args: P.args, **kwargs: P.kwargs) -> T:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return held


@cache
def lapack() -> ModuleType:
    """The functions of LAPACK that scipy brings. Late: naming an engine needs no scipy."""
    return extension("scipy/linalg/_flapack", "dpotrf", "scipy.linalg.lapack")


@cache
def _controller() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    lapack()  # brings a BLAS of its own, which is only limited once it is loaded

    return ThreadpoolController()
