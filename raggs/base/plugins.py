"""What other packages add to raggs: entry points of the groups ``raggs.retrievers``, ``raggs.judges``, and so on.

    [project.entry-points."raggs.retrievers"]
    mine = "my_package:MyRetriever"

All groups are read at once and at most once in a process, since that opens a file of each installed package; nobody
asks for them who uses only what raggs has itself. A plugin's module is imported when its name is used. Whatever it
raises then becomes one sentence that names the package, the entry point and the cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, EntryPoint, distributions
from typing import NamedTuple

from raggs.base.errors import PrerequisiteError

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


def loaded() -> dict[str, str]:
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
