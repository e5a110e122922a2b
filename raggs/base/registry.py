"""Registries: one lazy, typed table of names for each kind of component.

A component is one file and one line of a table: ``"bm25": "raggs.parts.retrievers.bm25:Bm25Retriever"``. The
component's module is imported when its name is first used. Listing names is therefore cheap, and a missing extra or a
broken component affects only runs that use it. Other packages add names with entry points. Entry points are searched
only for names that are not in the table, or if all names are requested. A name in the table always refers to the
built-in component.

Registries only import; they know neither settings nor pydantic (see `raggs.base.adapter` for configured components).

Other packages extend raggs with entry points of the groups ``raggs.retrievers``, ``raggs.judges``, and so on:

    [project.entry-points."raggs.retrievers"]
    mine = "my_package:MyRetriever"

All groups are read at once and at most once per process, because reading opens a file of each installed package. If
only built-in components are used, entry points are not read. A plugin's module is imported when its name is used. Its
exceptions become one error that names the package, the entry point and the cause.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distributions, version
from typing import Generic, NamedTuple, Protocol, TypeVar

from raggs.base import __version__
from raggs.base.errors import PrerequisiteError, UsageError
from raggs.base.text import did_you_mean

PREFIX = "raggs."

_packages: dict[object, Package] = {}  # packages of loaded plugins


class Package(NamedTuple):
    """An installed package and its version."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True)
class Plugin:
    """One entry point of a package."""

    point: EntryPoint
    package: Package

    @property
    def target(self) -> str:
        """Target of the entry point: ``module:attribute``."""
        return self.point.value

    def load(self) -> type:
        """Load and return the class of the entry point.

        Raises:
            PrerequisiteError: it cannot be loaded.
        """
        try:
            found: type = self.point.load()
        except Exception as error:  # foreign code may raise anything while it is imported
            raise self.broken(f"{type(error).__name__}: {error}") from error
        _packages[found] = self.package
        return found

    def broken(self, problem: str) -> PrerequisiteError:
        """Return the error for a plugin with this problem."""
        group = f"{self.point.group}: {self.point.name} = {self.target}"
        return PrerequisiteError(
            f"the plugin {self.point.name!r} of package {self.package} cannot be used ({group}): {problem}",
            remedy=f"repair the package, or remove it: pip uninstall {self.package.name}",
        )


def package_of(found: object) -> Package | None:
    """Return the package of a loaded plugin, or None for a built-in component."""
    return _packages.get(found)


def loaded_versions() -> dict[str, str]:
    """Return the versions of the packages whose plugins this process has loaded, sorted by name."""
    return {package.name: package.version for package in sorted(_packages.values())}


def plugins(group: str) -> Mapping[str, tuple[Plugin, ...]]:
    """Return the plugins of a group ("retrievers") by name, sorted. Several packages may offer the same name."""
    return _all().get(group, {})


def _offering() -> list[Distribution]:
    """Return all installed packages if one of them extends raggs, otherwise no package. This reads one file per
    package.
    """
    found = list(distributions())
    return found if any(f"[{PREFIX}" in (dist.read_text("entry_points.txt") or "") for dist in found) else []


@cache
def _all() -> Mapping[str, Mapping[str, tuple[Plugin, ...]]]:
    found: dict[str, dict[str, tuple[Plugin, ...]]] = {}
    seen: set[str] = set()
    for dist in _offering():
        if dist.name in seen:  # if a package is on the path twice, the first one is imported
            continue
        seen.add(dist.name)
        for point in dist.entry_points:
            if point.group.startswith(PREFIX):
                named = found.setdefault(point.group.removeprefix(PREFIX), {})
                named[point.name] = (*named.get(point.name, ()), Plugin(point, Package(dist.name, dist.version)))
    return {
        group: {name: tuple(sorted(named[name], key=lambda offer: offer.package)) for name in sorted(named)}
        for group, named in found.items()
    }


A = TypeVar("A", covariant=True)

RAGGS = Package("raggs", __version__)


class Typed(Protocol):
    """A configuration whose `type` names its class."""

    @property
    def type(self) -> str: ...


class Registry(Generic[A]):
    """A table ``name -> "module:Class"`` of one kind of component; `A` is their common base class.

    Args:
        kind: singular name of the entries, for messages ("retriever").
        group: plural name: the title in `raggs list`, and, with the prefix ``raggs.``, the name of the entry-point
            group.
        base: ``"module:Class"`` of `A`; imported only to check plugins.
        entries: the table, in the order of listings.
    """

    def __init__(self, kind: str, group: str, base: str, entries: Mapping[str, str]) -> None:
        self.kind = kind
        self.group = group
        self.builtin = tuple(entries)
        self._base = base
        self._entries = dict(entries)

    def __iter__(self) -> Iterator[str]:
        """Yield all names: first those of the table, then those that packages add."""
        yield from self._entries
        yield from (name for name in plugins(self.group) if name not in self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in plugins(self.group)

    def load(self, name: str) -> type[A]:
        """Return the class called `name`.

        Raises:
            UsageError: the name is unknown; the message lists the known names.
            PrerequisiteError: several packages offer the name, or a package's entry point is invalid. The error names
                the packages and the cause.
        """
        if name in self._entries:
            return self._resolve(self._entries[name])
        plugin = self._plugin(name)
        found: type[A] = plugin.load()
        base = self._resolve(self._base)
        if not (isinstance(found, type) and issubclass(found, base)):
            raise plugin.broken(f"{plugin.target} is not a subclass of {base.__module__}.{base.__qualname__}")
        check = getattr(base, "fault", None)  # some base classes have requirements for subclasses
        if check is not None and (problem := check(found, name)):
            raise plugin.broken(problem)
        return found

    def of(self, config: Typed) -> type[A]:
        """Return the class that a configuration names.

        Raises:
            UsageError, PrerequisiteError: see `load`.
        """
        return self.load(config.type)

    def origin(self, name: str) -> Package:
        """Return the package of `name`, with its version.

        Raises:
            UsageError: the name is unknown.
            PrerequisiteError: several packages offer the name.
        """
        return RAGGS if name in self._entries else self._plugin(name).package

    def packages(self, name: str) -> tuple[Package, ...]:
        """Return the packages that offer `name`; empty if none does."""
        offers = plugins(self.group).get(name, ())
        return (RAGGS,) if name in self._entries else tuple(offer.package for offer in offers)

    def summary(self, name: str) -> str:
        """Return the first line of the class's docstring.

        Raises:
            UsageError, PrerequisiteError: see `load`.
        """
        return (inspect.getdoc(self.load(name)) or "").partition("\n")[0]

    def edition(self, name: str) -> str:
        """Return the name with its code version and, for a plugin, its package, as stored in locks and journals.

        Raises:
            UsageError, PrerequisiteError: see `load`.
        """
        number = getattr(self.load(name), "VERSION", 1)
        return f"{name}/{number}" if name in self._entries else f"{name}/{number} ({self.origin(name)})"

    def shadowed(self) -> list[Plugin]:
        """Return the plugins that are not used, because the table already has their names."""
        return [found for name, offers in plugins(self.group).items() if name in self._entries for found in offers]

    @staticmethod
    def _resolve(target: str) -> type[A]:
        module, _, attribute = target.partition(":")
        found: type[A] = getattr(import_module(module), attribute)
        return found

    def _plugin(self, name: str) -> Plugin:
        offers = plugins(self.group).get(name)
        if offers is None:
            raise UsageError(f"unknown {self.kind} {name!r}", remedy=did_you_mean(name, self))
        if len(offers) > 1:
            who = " and ".join(str(offer.package) for offer in offers)
            raise PrerequisiteError(f"{self.kind} {name!r} is offered by {who}", remedy="uninstall one of them")
        return offers[0]


def installed(package: str) -> str | None:
    """Return the installed version of a package, or None."""
    return _installed(package, tuple(sys.path))


@cache
def _installed(package: str, _path: tuple[str, ...]) -> str | None:
    """Return the version of a package. Cached, because reading its metadata is slow; the path is part of the cache
    key.
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return None
