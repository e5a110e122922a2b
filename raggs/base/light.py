"""Parts of large packages without the rest of them: what a first run of two seconds would mostly spend its time on.

Each package of scipy takes a fifth of a second to import, since it looks at all of numpy down to its Fortran compiler;
of it raggs needs three functions of LAPACK and the distributions of tests at first. The functions are the very same,
only loaded by themselves. Nothing depends on that: what cannot be had by itself comes with its package, as ever.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from threading import active_count, get_ident
from types import ModuleType


def extension(place: str, function: str, whole: str) -> ModuleType:
    """What holds a compiled function: the extension module at a place in a package, else the module that offers it.

    Args:
        place: such as "scipy/linalg/_flapack": an extension that needs nothing but numpy.
        function: that both hold; an extension without it is not the right one.
        whole: such as "scipy.linalg.lapack".
    """
    if whole not in sys.modules:
        root, *folders, name = place.split("/")
        found = find_spec(root)
        inside = Path(found.origin).parent.joinpath(*folders) if found is not None and found.origin else None
        spec = PathFinder.find_spec(name, [str(inside)]) if inside else None
        if spec is not None and spec.loader is not None:
            try:
                module = module_from_spec(spec)
                spec.loader.exec_module(module)
            except ImportError:  # such as where a system finds what it links to by the package alone
                return import_module(whole)
            if hasattr(module, function):
                return module
    return import_module(whole)


def part(name: str, whole: str, functions: Sequence[str]) -> ModuleType:
    """A module inside a package, without what the package itself imports: itself, else the module that offers as much.

    While it is imported, its package is there by name alone. So that nobody else meets it like that, a process with
    several threads gets the whole.

    Args:
        name: such as "scipy.special._ufuncs", which needs nothing of its package but modules beside it.
        whole: such as "scipy.special".
        functions: that both hold; a module without them is not the right one.
    """
    package = name.rpartition(".")[0]
    if whole in sys.modules or package in sys.modules or active_count() > 1:
        return import_module(whole)
    spec = find_spec(package)
    if spec is None or package in sys.modules:
        return import_module(whole)
    sys.modules[package] = module_from_spec(spec)
    try:
        module = import_module(name)
    except ImportError:  # of a version that is made otherwise
        module = None
    finally:
        del sys.modules[package]
    if module is not None and all(hasattr(module, each) for each in functions):
        return module
    return import_module(whole)


@cache
def distributions() -> ModuleType:
    """What holds `ndtr`, `ndtri`, `stdtr`, `stdtrit` and `nctdtr`, as `scipy.special` defines them."""
    return part("scipy.special._ufuncs", "scipy.special", ("ndtr", "ndtri", "stdtr", "stdtrit", "nctdtr"))


class _Absent:
    """A finder for which a package is not installed, as far as one thread can see."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread = get_ident()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`.

        Raises:
            ModuleNotFoundError: the thread asks for the module.
        """
        if (fullname == self._name or fullname.startswith(f"{self._name}.")) and get_ident() == self._thread:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def without(absent: str, package: str) -> ModuleType:
    """A package that is imported as if `absent`, which it takes where it is there, were not installed.

    A version of the package that cannot do without gets it.
    """
    finder = _Absent(absent)
    sys.meta_path.insert(0, finder)
    try:
        return import_module(package)
    except ImportError:
        sys.meta_path.remove(finder)
        return import_module(package)
    finally:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
