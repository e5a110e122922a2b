"""Base of all configurable components: settings, version, and types that refer to components by name.

An adapter is a class with a `Config`. The `type` of the `Config` is the adapter's name in a registry. `OneOf(registry)`
is a pydantic type for the configuration of one adapter. The value is validated by the adapter that its `type` names. If
the value is valid, no other adapter is imported.

`UserFunction` calls a user's function as a component of a run: ``callable: "my_module:search"`` in the configuration.
The module is searched for in the configuration's folder first, then on Python's path. The folder is on the path only
while the module is imported. To detect changes, the module is not imported. Instead, its file is hashed, and for an
installed package its version counts. Modules imported by it do not count.

Like a configuration, a function is the user's own code and trusted: it is not sandboxed. Its exceptions, including
`sys.exit`, become an error that names the function, its input and the line. Exceptions of raggs, interrupts and
cancellations are passed on. While such code runs, the output of the process goes to standard error, so that the JSON of
a command stays clean. Output of subprocesses is not redirected.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    """Settings of an adapter. Each adapter's subclass restricts `type` to one value."""

    type: str


class Adapter:
    """Base of adapters. The first line of its docstring is shown in `raggs list`."""

    Config: ClassVar[type[AdapterConfig]] = AdapterConfig
    VERSION: ClassVar[int] = 1  # increased when a code change of the adapter can change results
    PACKAGES: ClassVar[tuple[str, ...]] = ()  # packages whose version can change results

    config: AdapterConfig

    def own_causes(self) -> Causes:
        """Return the settings that can change a result, the code version, and package versions.

        For a plugin, they include the version of the plugin's package.
        """
        packages = {name: installed(name) for name in self.PACKAGES}
        if package := package_of(type(self)):
            packages[package.name] = package.version
        return {**causes_of(self.config), "version": self.VERSION, "packages": packages}

    @classmethod
    def fault(cls, adapter: type[Adapter], name: str) -> str | None:
        """Return what is wrong with a subclass that a package offers as the adapter `name`, or None."""
        if inspect.isabstract(adapter):
            missing = ", ".join(sorted(getattr(adapter, "__abstractmethods__", ())))
            return f"{adapter.__qualname__} lacks {missing}"
        config, wanted = adapter.Config, cls.Config
        if not (isinstance(config, type) and issubclass(config, wanted)) or config is wanted:
            return f"{adapter.__qualname__} has no Config that derives from {wanted.__module__}.{wanted.__qualname__}"
        if config.model_fields["type"].default != name:
            return f'the Config of {adapter.__qualname__} has no field `type: Literal["{name}"] = "{name}"`'
        return None


# the `OneOf` objects whose schemas are being generated
_WRITING: ContextVar[tuple[object, ...]] = ContextVar("_WRITING", default=())

D = TypeVar("D", bound=Adapter)


class OneOf(Generic[D]):
    """Type annotation: the configuration of an adapter. Its `type` selects the adapter from a registry.

    Args:
        registry: registry of the adapters.
        fits: returns whether an adapter is allowed here (default: all are).
    """

    def __init__(self, registry: Registry[D], fits: Callable[[type[D]], bool] | None = None) -> None:
        self.registry = registry
        self._fits = fits

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(self._read)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        if any(each is self for each in _WRITING.get()):  # an adapter that contains another one of the same kind
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
        """Return the names of the allowed adapters. With `fits`, this imports all adapters."""
        if self._fits is None:
            return list(self.registry)
        return [adapter.Config.model_fields["type"].default for adapter in self._loadable([])]

    def _loadable(self, broken: list[str]) -> Iterator[type[D]]:
        """Yield all allowed adapters. Those that cannot be loaded are added to `broken`."""
        for name in self.registry:
            try:
                adapter = self.registry.load(name)
            except PrerequisiteError as error:
                broken.append(error.message)
            else:
                if self._fits is None or self._fits(adapter):
                    yield adapter


class NameOf:
    """Type annotation: a name in a registry whose entries have no configuration model."""

    def __init__(self, registry: Registry[object]) -> None:
        self.registry = registry

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._read, handler(source))

    def _read(self, name: str) -> str:
        if name not in self.registry:
            raise unknown_name(self.registry.kind, name, list(self.registry))
        return name


def unknown_name(what: str, name: object, known: list[str]) -> PydanticCustomError:
    """Return the error about a name that does not exist."""
    context = {"what": what, "name": str(name), "known": known}
    return PydanticCustomError("unknown_name", "unknown {what} '{name}'", context)


MAX_MESSAGE_CHARS = 500  # characters
TARGET = r"^[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*$"
Target = Annotated[str, Field(pattern=TARGET, description='"module:function"')]


class CallableConfig(AdapterConfig):
    """Settings of an adapter that calls a user's function."""

    callable: Target
    folder: SourcePath = Field(
        Path(),
        validate_default=True,
        description="folder that is searched for the module first; default: folder of the configuration",
    )


@contextmanager
def wrap_user_errors(name: str, about: str, *, awaits: bool = False) -> Iterator[None]:
    """Convert the exceptions of a user's code into an error. A `RaggsError` and a KeyboardInterrupt are passed on. So
    are a cancellation and the closing of a coroutine from outside.

    Args:
        name: name of the function.
        about: its input, for the message.
        awaits: whether the block belongs to a coroutine, which may be closed from outside.

    Raises:
        ProviderError: the code raised an exception. The error names the file and line that raised it.
    """
    try:
        with printing_to_stderr():
            yield
    except (RaggsError, KeyboardInterrupt):
        raise
    except BaseException as error:  # the user's code may raise anything
        if isinstance(error, GeneratorExit) and awaits and _outside_tasks():  # the coroutine was closed from outside
            raise
        if awaits and _is_cancelled(error):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise ProviderError(
            f"{name} raised {type(error).__name__} on {about}: {_message(error)}",
            where=last.filename,
            line=last.lineno,
            remedy="repair the function and run again; finished work is kept",
        ) from error


class _Printing:
    """How many calls of user code are running, and the standard output to restore after the last one."""

    lock = Lock()
    running = 0
    output: TextIO | None = None


@contextmanager
def printing_to_stderr() -> Iterator[None]:
    """Redirect output to standard error while user code runs, in any number of threads and tasks."""
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
    """Return the text of a user's error on one line, even if the error's own code fails."""
    try:
        return shorten(" ".join(str(error).split()), MAX_MESSAGE_CHARS)
    except Exception:  # noqa: BLE001 - user code again
        return "its text cannot be read"


def _is_cancelled(error: BaseException) -> bool:
    """Return whether the task was cancelled from outside, not by the user's own code."""
    from asyncio import CancelledError, current_task  # imported lazily: most commands are not asynchronous

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
    """A function given by name, imported at its first use.

    Args:
        target: ``module:function``.
        folder: folder that is searched for the module first.
        methods: names of methods. If the target is an object with one of them, the first one is the function.
    """

    def __init__(self, target: str, folder: Path, methods: Sequence[str] = ()) -> None:
        self.target = target
        self._methods = methods
        self._module, _, self._name = target.partition(":")
        self._folder = str(folder.resolve())

    def causes(self) -> Causes:
        """Return the hash of the module's file, and the version of its package, without importing the module.

        Raises:
            ConfigError: the module does not exist.
        """
        file = self._file
        content = None if file is None or not file.is_file() else hash_file(file)
        if file is not None and file.is_relative_to(self._folder):
            return {"source": content, "package": None}
        packages = packages_distributions().get(self._module.partition(".")[0], [])
        return {"source": content, "package": [f"{name} {installed(name)}" for name in sorted(set(packages))]}

    @property
    def is_method(self) -> bool:
        """Whether the function is one of `methods` of an object.

        Raises:
            ConfigError: the module cannot be imported, or has no such function.
        """
        return inspect.ismethod(self._function) and self._function.__name__ in self._methods

    def load(self) -> Callable[..., object]:
        """Return the function.

        Raises:
            ConfigError: the module cannot be imported, or has no such function.
        """
        return self._function

    def __call__(self, about: str, *arguments: object) -> object:
        """Call the function and return its result.

        Args:
            about: its input, for the error message.
            arguments: arguments of the function.

        Raises:
            ConfigError: see `load`.
            ProviderError: the function raised an exception.
        """
        with self._told(about):
            return self._function(*arguments)

    def iterate(self, about: str, found: Iterable[object]) -> Iterator[object]:
        """Yield the results of the function. The code of a generator runs only now.

        Raises:
            ProviderError: the generator raised an exception.
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
        """Call the function and return its result. If it is a coroutine function, its result is awaited."""
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
        """The module's file, found without importing the module; None if the module has no file."""
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
        if not inspect.isroutine(found) and not isinstance(found, type):
            found = next((method for name in self._methods if callable(method := getattr(found, name, None))), found)
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
            problem = f"it cannot be imported ({type(error).__name__}: {_message(error)})"
            raise self._missing(problem, "repair the module, or install what it imports") from error
        finally:
            sys.path.remove(self._folder)
        loaded = getattr(module, "__file__", None)
        if file is not None and loaded is not None and Path(loaded).resolve() != file.resolve():
            problem = f"another module {self._module!r} was imported from {loaded} before"
            raise self._missing(problem, "rename one of the two modules")
        return module

    def _missing(self, problem: str, remedy: str = 'name it as "module:function"') -> ConfigError:
        return ConfigError(f"callable {self.target!r}: {problem}", remedy=remedy)
