"""Checks and maintenance.

- Requirements of the machine and of a configuration (`examine`). If the settings request probabilities, it calls the
  judge's models once.
- Caches of a workspace: their contents, and how to clear them (`survey`, `clear`).
- Validation of a configuration and its inputs (`validate`).
- Loading a corpus, with its vectors, into the server indexes that retrievers search (`loads`). Missing vectors are
  computed by the embedder.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from raggs.app.addresses import permit
from raggs.app.services import RunServices
from raggs.base import __version__
from raggs.base.arrays import Vectors, shortest_floats
from raggs.base.cache import CACHE_NOTES, Cache
from raggs.base.errors import ConfigError, RaggsError, UsageError
from raggs.base.registry import installed
from raggs.base.text import did_you_mean, plural
from raggs.base.types import Notice
from raggs.config.load import load_config
from raggs.config.models import RunConfig
from raggs.llm import Price
from raggs.llm.cache import DATABASE, cache_stats, clear_cache
from raggs.llm.prices import key_state
from raggs.parts import corpora, retrievers
from raggs.parts.elastic import VectorPlace
from raggs.parts.elastic.load import Contents, IndexDocument, IndexState, Loader, LoadResult
from raggs.parts.embedders import default_embedder, default_reason
from raggs.parts.indexes.vectors import VectorIndex
from raggs.parts.retrievers import name_of

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY", "AZURE_API_KEY")
EXTRAS = {
    "ann": "faiss",
    "distributed": "distributed",
    "elastic": "elasticsearch",
    "local": "onnxruntime",
    "sign": "cryptography",
    "pdf": "pypdfium2",
    "review": "starlette",
}
LOW_DISK = 1 << 30
CONNECT_TIMEOUT = 3.0


@dataclass(frozen=True)
class HealthCheck:
    """Result of one check: True if it passed, False if it failed, None if it only informs."""

    name: str
    ok: bool | None
    note: str


def examine(config: Path | None) -> list[HealthCheck]:
    """Run all checks of the machine, and of a configuration if one is given (this may call the judge's models once)."""
    # before the checks of the machine, because it reads the .env file
    found = [] if config is None else [*_configuration(config)]
    return [*_machine(), *found]


def _machine() -> Iterator[HealthCheck]:
    yield HealthCheck("raggs", True, f"{__version__} on Python {platform.python_version()}")
    for package in ("litellm", "bm25s", "numpy"):
        found = installed(package)
        yield HealthCheck(
            package, found is not None, found or "not installed; in a clone of raggs: pip install --force-reinstall ."
        )
    default = default_embedder()["type"]
    yield HealthCheck("embedder", True, default_reason(default).removeprefix("embedder "))
    for extra, module in EXTRAS.items():
        there = importlib.util.find_spec(module) is not None
        yield HealthCheck(
            f"extra {extra}",
            True if there else None,
            "installed" if there else f'not installed; pip install ".[{extra}]" in a clone of raggs',
        )
    for key in KEYS:
        yield HealthCheck(key, True if os.environ.get(key) else None, "set" if os.environ.get(key) else "not set")


def _configuration(path: Path) -> Iterator[HealthCheck]:
    try:
        config = load_config(path).run
    except RaggsError as error:
        yield HealthCheck("configuration", False, str(error))
        return
    yield HealthCheck("configuration", True, str(path))
    services = RunServices(config)
    try:
        yield from _disk(config.workspace)
        permit(config, ())
        asker = services.workspace.asker(config.questions.ask.asker)
        models = tuple(dict.fromkeys((*services.models(), *asker.models)))
        for model in models:
            yield from _key(model, config)
        services.check_inputs()
        yield HealthCheck(
            "inputs", True, f"{plural(len(services.queries), 'query')}, {plural(len(services.passages), 'passage')}"
        )
        for model in models:
            yield from _model(model, config, services)
        bases = (config.llm.base_of(model) or os.environ.get("OPENAI_BASE_URL") for model in models)
        for base in dict.fromkeys(filter(None, bases)):
            yield _server(base)
        if address := getattr(config.execution, "address", None):
            yield _server(address)
        yield from _answers(services)
    except RaggsError as error:
        yield HealthCheck("inputs", False, str(error))
    finally:
        services.close()


def _disk(workspace: Path) -> Iterator[HealthCheck]:
    existing = next(folder for folder in (workspace, *workspace.resolve().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    yield HealthCheck("disk", free > LOW_DISK, f"{free / 1e9:,.1f} GB free for {workspace}")
    yield HealthCheck(
        "workspace",
        os.access(existing, os.W_OK),
        "can be written" if os.access(existing, os.W_OK) else f"{existing} cannot be written",
    )


def _model(model: str, config: RunConfig, services: RunServices) -> Iterator[HealthCheck]:
    try:
        price = services.workspace.llm.price(model)
    except RaggsError as error:
        yield HealthCheck("price", False, str(error))
    else:
        note = f"{model}: {_price_text(price)}" if price else f"{model} has no known price; set llm.prices"
        yield HealthCheck("price", price is not None or not config.budget.limits_usd, note)


def _answers(services: RunServices) -> Iterator[HealthCheck]:
    """Test whether the judge's models state probabilities, if the settings request them; makes one call per model."""
    try:
        for note, passed in services.workspace.loop.run(services.judge.confirm()):
            yield HealthCheck("answers", passed, note)
    except RaggsError as error:
        yield HealthCheck("answers", False, str(error))


def _price_text(price: Price) -> str:
    if price.per_1k_searches:
        return f"${price.per_1k_searches:g} per 1,000 searches"
    remembered = "" if price.cached_input is None else f" (${price.cached_input:g} for cached input)"
    return f"${price.input:g} in{remembered}, ${price.output:g} out per million tokens"


def _key(model: str, config: RunConfig) -> Iterator[HealthCheck]:
    if (state := key_state(model, config.llm)) is not None:
        variable, there = state
        lacking = f"{model} needs {variable}, which is not set"
        if there is None:
            lacking = f"{variable} is not set; {model} may find credentials elsewhere"
        yield HealthCheck("key", there, f"{variable} is set" if there else lacking)


def _server(url: str) -> HealthCheck:
    """Check whether a server accepts connections at this address; no data is sent."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        with socket.create_connection((parts.hostname or "", port), timeout=CONNECT_TIMEOUT):
            return HealthCheck("server", True, f"{parts.hostname}:{port} answers")
    except OSError as error:
        return HealthCheck("server", False, f"{parts.hostname}:{port} does not answer ({error.strerror or error})")


OTHER_CACHES = "other"
LEFT = "left by earlier versions of raggs and no longer used"


@dataclass(frozen=True)
class CachePart:
    """One cache: number of entries (answers or files), number of unusable ones, and size on disk."""

    name: str
    entries: int
    bytes: int
    note: str
    damaged: int = 0


def survey(workspace: Path) -> list[CachePart]:
    """Return all caches of a workspace; missing ones have no entries.

    Raises:
        UsageError: the workspace, or a cache in it, is not a folder.
        BusyError, ProviderError: the cache of answers is locked or cannot be read.
    """
    cache = _cache(workspace)
    parts = [_part(name, [cache.at(name).folder], note) for name, note in CACHE_NOTES.items()]
    strangers = _unknown_folders(cache)
    return [*parts, _part(OTHER_CACHES, strangers, LEFT)] if strangers else parts


def clear(workspace: Path, what: str) -> list[str]:
    """Clear one cache, or all of them.

    Returns:
        The names of the caches that existed.

    Raises:
        UsageError: no cache has this name, a cache is a link, or the workspace is not a folder. In these cases, nothing
            is cleared.
    """
    known = (*CACHE_NOTES, OTHER_CACHES)
    if what != "all" and what not in known:
        raise UsageError(f"there is no cache {what!r}", remedy=did_you_mean(what, (*known, "all")))
    cache, names = _cache(workspace), known if what == "all" else (what,)
    for name in names:
        for folder in _folders(cache, name):
            _stay(workspace, folder)
    return [name for name in names if _clear(cache, name)]


def _cache(workspace: Path) -> Cache:
    """Return the cache of a workspace.

    Raises:
        UsageError: the workspace, or a cache in it, is not a folder.
    """
    cache = Cache.of(workspace)
    for path in (workspace, cache.folder, *(cache.at(name).folder for name in CACHE_NOTES)):
        if path.exists() and not path.is_dir():
            raise UsageError(f"{path} is not a folder", remedy="name the folder that holds the runs: --workspace")
    return cache


def _clear(cache: Cache, name: str) -> bool:
    held = [folder for folder in _folders(cache, name) if folder.is_dir()]
    for folder in held:
        if name == "llm":
            clear_cache(folder)
        else:
            shutil.rmtree(folder)
    return bool(held)


def _folders(cache: Cache, name: str) -> list[Path]:
    return _unknown_folders(cache) if name == OTHER_CACHES else [cache.at(name).folder]


def _stay(workspace: Path, folder: Path) -> None:
    """Raise an error if a cache is a link to another folder, whose files may belong to another user."""
    for path in (folder, folder / DATABASE):
        there = path.resolve()
        if path.exists() and (folder.is_symlink() or not there.is_relative_to(workspace.resolve())):
            raise UsageError(
                f"{path} is a link to {there}; nothing was cleared", remedy=f"clear {there} itself, or remove the link"
            )


def _unknown_folders(cache: Cache) -> list[Path]:
    """Return subfolders of the cache folder that raggs does not use as a cache."""
    if not cache.folder.is_dir():
        return []
    return sorted(path for path in cache.folder.iterdir() if path.is_dir() and path.name not in CACHE_NOTES)


def _part(name: str, folders: list[Path], note: str) -> CachePart:
    files = [path for folder in folders if folder.is_dir() for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    if name != "llm" or not (files or (folders[0] / DATABASE).exists()):
        return CachePart(name, len(files), size, note)
    found = cache_stats(folders[0])
    return CachePart(name, found.entries, size, note, found.damaged)


@dataclass(frozen=True)
class ConfigInputs:
    """Inputs of a configuration: numbers of queries and passages, names of retrievers, and notes."""

    queries: int
    passages: int
    retrievers: tuple[str, ...]
    notes: tuple[str, ...] = ()


def validate(config: Path, overrides: Sequence[str] = ()) -> ConfigInputs:
    """Check a configuration and its inputs.

    Raises:
        RaggsError: the first error found.
    """
    settings = load_config(config, overrides).run
    permit(settings, ())
    notes: list[str] = []
    services = RunServices(settings, lambda news: notes.append(news.message) if isinstance(news, Notice) else None)
    try:
        services.check_keys()
        services.check_inputs()
        sizes = len(services.queries), len(services.passages)
        return ConfigInputs(*sizes, tuple(services.retrievers), tuple(dict.fromkeys(notes)))
    finally:
        services.close()


SHARED_FIELDS = ("id_field", "title_field", "text_field", "metadata_field")


@dataclass(frozen=True)
class IndexLoad:
    """One index to load, and its current state."""

    loader: Loader
    standing: IndexState


def loads(config: RunConfig, services: RunServices) -> Iterator[IndexLoad]:
    """Yield the indexes to load. The server is asked for the state of an index only when the caller reaches it.

    Raises:
        UsageError: no retriever searches Elasticsearch, or the index itself is the source of the corpus.
        ConfigError: two retrievers define the same index differently, or the name of an index is invalid.
        RaggsError: the server failed (see `raggs.parts.elastic.server`).
    """
    for place in targets(config):
        contents = _contents(services, place)
        loader = Loader(place, config.index, contents)
        try:
            yield IndexLoad(loader, loader.standing())
        finally:
            loader.close()


def targets(config: RunConfig) -> list[VectorPlace]:
    """Return each index that retrievers search. If a retriever needs vectors in it, its settings are used.

    Raises:
        UsageError: no retriever searches Elasticsearch, or the index itself is the source of the corpus.
        ConfigError: two retrievers define the same index differently, or the name of an index is invalid.
    """
    places = [(name_of(spec), retrievers.REGISTRY.of(spec).index_place(spec)) for spec in config.retrieve.retrievers]
    searched = [(name, place) for name, place in places if place is not None]
    if not searched:
        raise UsageError(
            "no retriever of type elasticsearch is configured",
            remedy="add one to retrieve.retrievers: {type: elasticsearch, url: ..., index: ...}",
        )
    found: dict[tuple[str, str], tuple[str, VectorPlace]] = {}
    for who, place in sorted(searched, key=lambda pair: not pair[1].by_vectors):
        if place.index != place.index.lower():
            raise ConfigError(
                f"retriever {who}: the name of a new index cannot have upper-case letters: {place.index!r}",
                remedy="use lower case; only the alias of an existing index may contain upper-case letters",
            )
        other, first = found.setdefault((place.url, place.index), (who, place))
        for field in (*SHARED_FIELDS, "vector_field") if place.by_vectors else SHARED_FIELDS:
            if getattr(first, field) != getattr(place, field):
                raise ConfigError(
                    f"retrievers {other} and {who} search the index {place.index} with different values of {field}",
                    remedy="set the same value in both",
                )
    corpus = corpora.REGISTRY.of(config.corpus).index_place(config.corpus)
    if corpus is not None and (corpus.url, corpus.index) in found:
        raise UsageError(
            f"the corpus is read from the index {corpus.index} itself", remedy="nothing to load: use raggs run"
        )
    return [place for _, place in found.values()]


def run_load(load: IndexLoad, services: RunServices, overwrite: bool) -> LoadResult:
    """Create the index and load it.

    Raises:
        RaggsError: see `Loader.prepare` and `Loader.load`. Documents that are already loaded stay in the index; the
            next call loads only the rest.
    """
    load.loader.prepare(overwrite)
    return load.loader.load(_documents(services), services.workspace.building)


def _contents(services: RunServices, place: VectorPlace) -> Contents:
    store, embedder = services.corpus.store, services.embedder
    if embedder is None:
        return Contents(len(store), store.search_hash)
    return Contents(len(store), store.search_hash, embedder.identity, embedder.dims, place.vector_field)


def _documents(services: RunServices) -> Callable[[int, int], Sequence[IndexDocument]]:
    """Return a function that reads documents by position, with their vectors. Each vector is computed once and
    cached.
    """
    store, embedder, workspace = services.corpus.store, services.embedder, services.workspace
    vectors: VectorIndex | None = None
    if embedder is not None:
        vectors = workspace.vectors(store, embedder)

    def part(start: int, stop: int) -> list[IndexDocument]:
        passages = store.slice(start, stop)
        if vectors is None:
            return [IndexDocument(passage, None) for passage in passages]
        rows = vectors.vectors[start:stop]
        return [IndexDocument(passage, _values(row)) for passage, row in zip(passages, rows, strict=True)]

    return part


def _values(row: Vectors) -> list[float] | None:
    """Return the shortest decimals that read back as the same float32; None for a zero vector."""
    return shortest_floats(row) if row.any() else None
