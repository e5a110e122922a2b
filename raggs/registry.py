"""Names for adapters: one lazy table per kind of thing.

An adapter is one file and one line here-after: ``"bm25": "raggs.retrievers.bm25:Bm25"``. The module is imported
when the name is first used, so that listing or validating costs nothing and a missing extra hurts only those
who ask for it. An adapter class carries its own `Config` (pydantic) with a literal `type`; `spec_type` turns a
whole registry into one pydantic type that picks the right `Config` by its `type`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, ClassVar, Generic, TypeVar, Union

from pydantic import Discriminator, SerializeAsAny, Tag

from raggs.errors import UsageError
from raggs.settings import Settings, causes
from raggs.text import did_you_mean


class Adapter:
    """What every adapter states about itself. The first line of its docstring is its line in `raggs list`."""

    Config: ClassVar[type[Settings]]
    VERSION: ClassVar[int] = 1  # raised when the adapter's own code changes what comes out
    PACKAGES: ClassVar[tuple[str, ...]] = ()  # packages whose installed version can change what comes out


T = TypeVar("T")


class Registry(Generic[T]):
    """A table ``name -> "module:Class"`` for one kind of adapter.

    Args:
        kind: what the entries are, in the singular, for messages ("retriever").
        entries: the table.
    """

    def __init__(self, kind: str, entries: Mapping[str, str]) -> None:
        self.kind = kind
        self._entries = dict(sorted(entries.items()))

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def load(self, name: str) -> type[T]:
        """The class that bears `name`.

        Raises:
            UsageError: no such name; the message lists the known ones.
        """
        if name not in self._entries:
            raise UsageError(f"unknown {self.kind} {name!r}", remedy=did_you_mean(name, self._entries))
        module, _, attribute = self._entries[name].partition(":")
        found: type[T] = getattr(import_module(module), attribute)
        return found

    def summary(self, name: str) -> str:
        """The first line of the adapter's docstring."""
        doc = inspect.getdoc(self.load(name)) or ""
        return doc.partition("\n")[0]


def adapter_causes(adapter: type[Adapter], config: Settings) -> dict[str, Any]:
    """All of an adapter that can change a result: its settings, its code's version, its packages' versions."""
    return {
        **causes(config),
        "version": adapter.VERSION,
        "packages": {name: installed(name) for name in adapter.PACKAGES},
    }


def installed(package: str) -> str | None:
    """The installed version of a package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _tag(value: Any) -> Any:
    return value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)


def spec_type(registry: Registry[Any]) -> Any:
    """A pydantic type: any of the registry's `Config` classes, chosen by the field `type`."""
    tagged = tuple(Annotated[registry.load(name).Config, Tag(name)] for name in registry)
    union: Any = tagged[0] if len(tagged) == 1 else Union[tagged]  # noqa: UP007 - built at run time
    choice: Any = Annotated[union, Discriminator(_tag)] if len(tagged) > 1 else union
    marker: Any = SerializeAsAny  # its subclass's fields are written out, not those of the declared base
    return Annotated[choice, marker()]
