"""Names for things: one lazy, typed table for each kind of thing that has a name.

A thing is one file and one line of a table: ``"bm25": "raggs.parts.retrievers.bm25:Bm25Retriever"``. Its module is
imported when its name is first used, so listing names costs nothing, and a missing extra or a broken thing hurts only
those who ask for it. Packages add to a table by entry points (see below), which are looked for only
where a name is not in the table, or where all names are wanted. A name in the table is always the table's own.

Pure but for the imports: it knows neither settings nor pydantic (see `raggs.base.adapter` for what is configured).

What other packages add to raggs: entry points of the groups ``raggs.retrievers``, ``raggs.judges``, and so on.

    [project.entry-points."raggs.retrievers"]
    mine = "my_package:MyRetriever"

All groups are read at once and at most once in a process, since that opens a file of each installed package; nobody
asks for them who uses only what raggs has itself. A plugin's module is imported when its name is used. Whatever it
raises then becomes one sentence that names the package, the entry point and the cause.
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

_packages: dict[object, Package] = {}  # of what was loaded from a plugin


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
        """``module:attribute``."""
        return self.point.value

    def load(self) -> type:
        """What the entry point names.

        Raises:
            PrerequisiteError: it cannot be had.
        """
        try:
            found: type = self.point.load()
        except Exception as error:  # another's code may raise anything while it is imported
            raise self.broken(f"{type(error).__name__}: {error}") from error
        _packages[found] = self.package
        return found

    def broken(self, problem: str) -> PrerequisiteError:
        """The error that says what is wrong with it."""
        group = f"{self.point.group}: {self.point.name} = {self.target}"
        return PrerequisiteError(
            f"the plugin {self.point.name!r} of package {self.package} cannot be used ({group}): {problem}",
            remedy=f"repair the package, or remove it: pip uninstall {self.package.name}",
        )


def package_of(found: object) -> Package | None:
    """The package that gave a loaded plugin; None for what is raggs' own."""
    return _packages.get(found)


def loaded_versions() -> dict[str, str]:
    """By name the versions of the packages whose plugins this process has loaded, sorted."""
    return {package.name: package.version for package in sorted(_packages.values())}


def plugins(group: str) -> Mapping[str, tuple[Plugin, ...]]:
    """The plugins of a group ("retrievers") by name, sorted; several where packages want the same name."""
    return _all().get(group, {})


def _offering() -> list[Distribution]:
    """The installed packages; none where no one has a word for raggs, so that only one file of each is read."""
    found = list(distributions())
    return found if any(f"[{PREFIX}" in (dist.read_text("entry_points.txt") or "") for dist in found) else []


@cache
def _all() -> Mapping[str, Mapping[str, tuple[Plugin, ...]]]:
    found: dict[str, dict[str, tuple[Plugin, ...]]] = {}
    seen: set[str] = set()
    for dist in _offering():
        if dist.name in seen:  # of a package that stands twice on the path, the first one is imported
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
    """A configuration that says by its `type` whose it is."""

    @property
    def type(self) -> str: ...


class Registry(Generic[A]):
    """A table ``name -> "module:Class"`` of one kind of thing; `A` is the class that all of them derive from.

    Args:
        kind: what the entries are, in the singular, for messages ("retriever").
        group: the same in the plural: the title in `raggs list`, and with ``raggs.`` before it the group of the entry
            points by which packages add to the table.
        base: ``"module:Class"`` of `A`; imported only to check what a package adds.
        entries: the table, in the order in which it is listed.
    """

    def __init__(self, kind: str, group: str, base: str, entries: Mapping[str, str]) -> None:
        self.kind = kind
        self.group = group
        self.builtin = tuple(entries)
        self._base = base
        self._entries = dict(entries)

    def __iter__(self) -> Iterator[str]:
        """All names: those of the table, then those of packages."""
        yield from self._entries
        yield from (name for name in plugins(self.group) if name not in self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in plugins(self.group)

    def load(self, name: str) -> type[A]:
        """The class that bears `name`.

        Raises:
            UsageError: no such name; the message lists the known ones.
            PrerequisiteError: a package's entry point does not give what it should; names the package and the cause.
        """
        if name in self._entries:
            return self._resolve(self._entries[name])
        plugin = self._plugin(name)
        found: type[A] = plugin.load()
        base = self._resolve(self._base)
        if not (isinstance(found, type) and issubclass(found, base)):
            raise plugin.broken(f"{plugin.target} is no {base.__module__}.{base.__qualname__}")
        check = getattr(base, "fault", None)  # what the base wants of those who derive from it
        if check is not None and (problem := check(found, name)):
            raise plugin.broken(problem)
        return found

    def of(self, config: Typed) -> type[A]:
        """The class whose configuration `config` is.

        Raises:
            UsageError, PrerequisiteError: as `load`.
        """
        return self.load(config.type)

    def origin(self, name: str) -> Package:
        """The package that gives `name`, and its version.

        Raises:
            UsageError: no such name.
        """
        return RAGGS if name in self._entries else self._plugin(name).package

    def packages(self, name: str) -> tuple[Package, ...]:
        """The packages that offer `name`; none where nobody does."""
        offers = plugins(self.group).get(name, ())
        return (RAGGS,) if name in self._entries else tuple(offer.package for offer in offers)

    def summary(self, name: str) -> str:
        """The first line of the class's docstring.

        Raises:
            UsageError, PrerequisiteError: as `load`.
        """
        return (inspect.getdoc(self.load(name)) or "").partition("\n")[0]

    def edition(self, name: str) -> str:
        """The name with all by which its code is told from other code of that name, as locks and journals have it.

        Raises:
            UsageError, PrerequisiteError: as `load`.
        """
        number = getattr(self.load(name), "VERSION", 1)
        return f"{name}/{number}" if name in self._entries else f"{name}/{number} ({self.origin(name)})"

    def shadowed(self) -> list[Plugin]:
        """What packages offer under names that the table has already; none of it is used."""
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
    """The installed version of a package, or None."""
    return _installed(package, tuple(sys.path))


@cache
def _installed(package: str, _path: tuple[str, ...]) -> str | None:
    """Looked up once, since that reads all that a package says of itself; on another path it is another package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
