"""What everything that a configuration names has in common: its settings, its version, and who may be named where.

An adapter is a class with a `Config`, whose `type` is the name under which a registry has it. `OneOf(registry)` makes
of a registry a type for pydantic: what stands in the configuration is checked by the one adapter that its `type`
names, and no other one is imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from raggs.base.errors import PrerequisiteError
from raggs.base.plugins import package_of
from raggs.base.registry import Registry, installed
from raggs.base.settings import Causes, Settings, causes_of


class AdapterConfig(Settings):
    """The settings of an adapter; each adapter's own class gives `type` the one value that it may have."""

    type: str


class Adapter:
    """What every adapter states about itself. The first line of its docstring is its line in `raggs list`."""

    Config: ClassVar[type[AdapterConfig]] = AdapterConfig
    VERSION: ClassVar[int] = 1  # raised when the adapter's own code changes what comes out
    PACKAGES: ClassVar[tuple[str, ...]] = ()  # packages whose installed version can change what comes out

    config: AdapterConfig

    def own_causes(self) -> Causes:
        """What of the adapter itself can change a result: its settings, its code's version, its packages' versions.

        Of a plugin its package counts too.
        """
        packages = {name: installed(name) for name in self.PACKAGES}
        if package := package_of(type(self)):
            packages[package.name] = package.version
        return {**causes_of(self.config), "version": self.VERSION, "packages": packages}

    @classmethod
    def fault(cls, adapter: type[Adapter], name: str) -> str | None:
        """What is wrong with a subclass that a package offers as the adapter `name`; None where it will do."""
        if inspect.isabstract(adapter):
            missing = ", ".join(sorted(getattr(adapter, "__abstractmethods__", ())))
            return f"{adapter.__qualname__} lacks {missing}"
        config, wanted = adapter.Config, cls.Config
        if not (isinstance(config, type) and issubclass(config, wanted)) or config is wanted:
            return f"{adapter.__qualname__} has no Config that derives from {wanted.__module__}.{wanted.__qualname__}"
        if config.model_fields["type"].default != name:
            return f'the Config of {adapter.__qualname__} has no field `type: Literal["{name}"] = "{name}"`'
        return None


_WRITING: ContextVar[tuple[object, ...]] = ContextVar("_WRITING", default=())  # whose schemas are being written

D = TypeVar("D", bound=Adapter)


class OneOf(Generic[D]):
    """An annotation: the configuration of one of a registry's adapters, chosen by its `type`.

    Args:
        registry: of the adapters.
        fits: which of them may stand here.
    """

    def __init__(self, registry: Registry[D], fits: Callable[[type[D]], bool] | None = None) -> None:
        self.registry = registry
        self._fits = fits

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(self._read)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        if any(each is self for each in _WRITING.get()):  # in an adapter that is made with another of its kind
            return {"type": "object", "description": f"another {self.registry.kind}", "required": ["type"]}
        token = _WRITING.set((*_WRITING.get(), self))
        try:
            return self._schemas(handler)
        finally:
            _WRITING.reset(token)

    def _schemas(self, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        broken: list[str] = []
        found = [handler(adapter.Config.__pydantic_core_schema__) for adapter in self._loadable(broken)]
        return {"oneOf": found} | ({"$comment": "left out: " + "; ".join(broken)} if broken else {})

    def _read(self, value: object, info: ValidationInfo) -> AdapterConfig:
        name = value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
        if name is None:
            raise PydanticCustomError("type_missing", "needs a `type`")
        if not isinstance(name, str) or name not in self.registry:
            raise unknown_name("type", name, self._names())
        adapter = self.registry.load(name)
        if self._fits is not None and not self._fits(adapter):
            raise unknown_name("type", name, self._names())
        return adapter.Config.model_validate(value, context=info.context)

    def _names(self) -> list[str]:
        """What could stand here. All adapters are imported only where not all may."""
        if self._fits is None:
            return list(self.registry)
        return [adapter.Config.model_fields["type"].default for adapter in self._loadable([])]

    def _loadable(self, broken: list[str]) -> Iterator[type[D]]:
        """All adapters that may stand here; those that cannot be loaded are noted."""
        for name in self.registry:
            try:
                adapter = self.registry.load(name)
            except PrerequisiteError as error:
                broken.append(error.message)
            else:
                if self._fits is None or self._fits(adapter):
                    yield adapter


class NameOf:
    """An annotation: a name in a registry of things that are not configured by a model of their own."""

    def __init__(self, registry: Registry[object]) -> None:
        self.registry = registry

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._read, handler(source))

    def _read(self, name: str) -> str:
        if name not in self.registry:
            raise unknown_name(self.registry.kind, name, list(self.registry))
        return name


def unknown_name(what: str, name: object, known: list[str]) -> PydanticCustomError:
    """The error about a name that does not exist."""
    context = {"what": what, "name": str(name), "known": known}
    return PydanticCustomError("unknown_name", "unknown {what} '{name}'", context)
