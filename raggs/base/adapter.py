"""What everything that a configuration names has in common: its settings, its version, and who may be named where.

An adapter is a class with a `Config`, whose `type` is the name under which a registry has it. `OneOf(registry)` makes
of a registry a type for pydantic: what stands in the configuration is checked by the one adapter that its `type`
names, and no other one is imported.

A user's own function as a part of a run: ``callable: "my_module:search"`` in the configuration.

The module is looked for in the configuration's folder first, then where Python finds modules; the folder is on Python's
path only while the module is imported. It is not imported to tell whether something changed: for that its file is
found and hashed, and of an installed package its version counts. Modules that it imports in turn do not count.

Like any configuration, a function is its user's own code and trusted as such: nothing is fenced. Whatever it raises,
`sys.exit` too, becomes an error that names the function, what it was asked about, and the line. While such code runs,
what is printed goes to standard error, so that a command's JSON stays clean; output of its subprocesses is not caught.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import packages_distributions
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, ClassVar, Generic, TextIO, TypeVar

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from raggs.base.errors import ConfigError, PrerequisiteError, ProviderError, RaggsError
from raggs.base.files import hash_file
from raggs.base.registry import Registry, installed, package_of
from raggs.base.settings import Causes, Settings, SourcePath, causes_of
from raggs.base.text import shorten


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


MAX_MESSAGE_CHARS = 500  # characters
TARGET = r"^[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*$"
Target = Annotated[str, Field(pattern=TARGET, description='"module:function"')]


class CallableConfig(AdapterConfig):
    """What the settings of an adapter hold that calls a function."""

    callable: Target
    folder: SourcePath = Field(
        Path(), validate_default=True, description="where the module is looked for first; the configuration's if absent"
    )


@contextmanager
def wrap_user_errors(name: str, about: str, *, awaits: bool = False) -> Iterator[None]:
    """Make an error of whatever a user's code raises.

    Args:
        name: of the function.
        about: what it is asked about.
        awaits: whether the block is of a coroutine, which may be closed from outside.

    Raises:
        ProviderError: the code raised something, at the file and line that it names.
    """
    try:
        with printing_to_stderr():
            yield
    except (RaggsError, KeyboardInterrupt):
        raise
    except BaseException as error:  # the user's code may raise anything
        if isinstance(error, GeneratorExit) and awaits and _outside_tasks():  # nobody waits for it any more
            raise
        if awaits and _is_cancelled(error):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise ProviderError(
            f"{name} raised {type(error).__name__} on {about}: {_message(error)}",
            where=last.filename,
            line=last.lineno,
            remedy="mend the function and run again; what was finished is kept",
        ) from error


class _Printing:
    """How many pieces of user code are running, and where standard output goes when none is."""

    lock = Lock()
    running = 0
    output: TextIO | None = None


@contextmanager
def printing_to_stderr() -> Iterator[None]:
    """Send what is printed to standard error while user code runs, in any number of threads and tasks at once."""
    with _Printing.lock:
        if not _Printing.running:
            _Printing.output, sys.stdout = sys.stdout, sys.stderr
        _Printing.running += 1
    try:
        yield
    finally:
        with _Printing.lock:
            _Printing.running -= 1
            if not _Printing.running and _Printing.output is not None:
                sys.stdout, _Printing.output = _Printing.output, None


def _message(error: BaseException) -> str:
    """Return the text of a user's error on one line, whatever its class does."""
    try:
        return shorten(" ".join(str(error).split()), MAX_MESSAGE_CHARS)
    except Exception:  # noqa: BLE001 - its own code again
        return "its text cannot be read"


def _is_cancelled(error: BaseException) -> bool:
    """Return whether the task was cancelled from outside, rather than by the user's own code."""
    from asyncio import CancelledError, current_task  # late: most commands await nothing

    if not isinstance(error, CancelledError):
        return False
    task = current_task()
    return task is not None and task.cancelling() > 0


def _outside_tasks() -> bool:
    from asyncio import current_task

    try:
        return current_task() is None
    except RuntimeError:  # no loop is running
        return True


class UserFunction:
    """A function by its name; imported when it is first called.

    Args:
        target: ``module:function``.
        folder: where the module is looked for first.
    """

    def __init__(self, target: str, folder: Path) -> None:
        self.target = target
        self._module, _, self._name = target.partition(":")
        self._folder = str(folder.resolve())

    def causes(self) -> Causes:
        """The content of the module's file, and the version of the package that it is from. Imports nothing.

        Raises:
            ConfigError: there is no such module.
        """
        file = self._file
        content = None if file is None or not file.is_file() else hash_file(file)
        if file is not None and file.is_relative_to(self._folder):
            return {"source": content, "package": None}
        packages = packages_distributions().get(self._module.partition(".")[0], [])
        return {"source": content, "package": [f"{name} {installed(name)}" for name in sorted(set(packages))]}

    def load(self) -> Callable[..., object]:
        """The function itself.

        Raises:
            ConfigError: the module cannot be imported, or has no such function.
        """
        return self._function

    def __call__(self, about: str, *arguments: object) -> object:
        """What the function gives.

        Args:
            about: what it is asked about, for the error.

        Raises:
            ProviderError: the function raised something.
        """
        with self._told(about):
            return self._function(*arguments)

    def iterate(self, about: str, found: Iterable[object]) -> Iterator[object]:
        """Yield what the function gave; of a generator, its code runs only now.

        Raises:
            ProviderError: the generator raised something.
        """
        end = object()
        with self._told(about):
            entries = iter(found)
        while True:
            with self._told(about):
                entry = next(entries, end)
            if entry is end:
                return
            yield entry

    async def ask(self, about: str, *arguments: object) -> object:
        """As a call; what a coroutine function gives is waited for."""
        with self._told(about, awaits=True):
            found = self._function(*arguments)
            return await found if inspect.isawaitable(found) else found

    @contextmanager
    def _told(self, about: str, *, awaits: bool = False) -> Iterator[None]:
        self.load()
        with wrap_user_errors(self.target, about, awaits=awaits):
            yield

    @cached_property
    def _file(self) -> Path | None:
        """The module's file, found without importing it; None for one that has none."""
        places: list[str] | None = [self._folder, *sys.path]
        found = None
        for step in self._module.split("."):
            found = None if places is None else PathFinder.find_spec(step, places)
            if found is None:
                if self._module in sys.builtin_module_names:
                    return None
                raise self._missing(f"there is no module {self._module!r}, neither in {self._folder} nor installed")
            places = found.submodule_search_locations and list(found.submodule_search_locations)
        return Path(found.origin) if found is not None and found.origin is not None else None

    @cached_property
    def _function(self) -> Callable[..., object]:
        module = self._import()
        found: object = module
        for step in self._name.split("."):
            found = getattr(found, step, None)
        if not callable(found):
            names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
            known = ", ".join(names) or "none"
            raise self._missing(f"module {self._module} has no function {self._name!r}; its functions: {known}")
        return found

    def _import(self) -> object:
        file = self._file
        sys.path.insert(0, self._folder)
        try:
            with printing_to_stderr():
                module = import_module(self._module)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the user's module may raise anything
            raise self._missing(f"it cannot be imported ({type(error).__name__}: {_message(error)})") from error
        finally:
            sys.path.remove(self._folder)
        loaded = getattr(module, "__file__", None)
        if file is not None and loaded is not None and Path(loaded).resolve() != file.resolve():
            raise self._missing(f"the module {self._module!r} was imported from {loaded} before; rename one of them")
        return module

    def _missing(self, problem: str) -> ConfigError:
        return ConfigError(f"callable {self.target!r}: {problem}", remedy='name it as "module:function"')
