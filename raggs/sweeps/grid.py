"""Systems of a sweep: chains of named parts, expanded from the axes of the grid. This module does not build indexes,
load models or read files.

Combinations without meaning are detected and reported. For example, a lexical search has no embedder and no index, so
all its combinations with embedders and indexes are one system.

Equal searches of several systems run only once. Lexical and exact dense searches run at the largest depth of these
systems, because the best 200 contain the best 50. An approximate index may use more effort for a larger k, so its
searches run separately for each depth. The searches of custom retrievers run separately, too. The searches of a hybrid
run at `hybrid.depth`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from pydantic import BaseModel

from raggs.base.adapter import AdapterConfig
from raggs.base.errors import ConfigError
from raggs.base.text import did_you_mean, plural
from raggs.parts import retrievers
from raggs.parts.chunkers import ChunkerConfig
from raggs.parts.embedders import EmbedderConfig
from raggs.parts.rerankers import RerankerConfig
from raggs.parts.rerankers.boosted import FIT, BoostedConfig
from raggs.parts.retrievers import RetrieverConfig
from raggs.parts.retrievers.dense import DenseRetriever
from raggs.parts.retrievers.depth import RoutedDepth, ScoreSource
from raggs.parts.retrievers.runfile import RunFileRetriever
from raggs.sweeps.config import AS_IT_IS, NO_RERANKER, Axes, HybridSettings, SweepConfig, SystemSpec, reads_corpus

AXES = tuple(Axes.model_fields)
IDENTIFYING_SETTINGS = ("path", "model", "callable")  # settings that are always part of a level's name
NAMED_WITH_INNER = ("parent",)  # The label of these retrievers contains the type of the inner one.
NAMED_ALWAYS = ("mode", "embedder")
CHUNKER = "chunker"
SEARCH = "a search without vectors has no embedder and no index, so it is one system for all of them"
TYPED = "an external run is not searched, so it is the same with all embedders, indexes and rewriters"
CHUNKING_MERGE_NOTE = (
    "a retriever that does not read the corpus does not depend on its chunks, so it is one system for all chunkings "
    "(its lists are assumed to be of `corpus`; name another under `systems` with its own `chunker`)"
)
Level = BaseModel | str | int | None


@dataclass(frozen=True)
class RetrievalStack:
    """One retrieval configuration.

    Attributes:
        name: name of the system and of its files.
        levels: label of the level for each axis. Axes that do not apply are missing, and so is `chunker` if none is
            set.
        chunker: chunker that replaces the one of the corpus settings; None: the corpus is chunked as its settings say.
        rewrite: rewriter of the queries.
        mode: "dense", "lexical", "hybrid", or "own" for a custom retriever.
        embedder: None if the system does not search vectors that raggs made.
        index: vector index of the modes "dense" and "hybrid"; None for other modes.
        own: retriever of the mode "own".
        k: number of candidates; the maximum if depth is routed.
        reranker: None if the candidates are not reranked.
        depth: rule for the number of candidates of each query; None if it is k for all queries.
    """

    name: str
    levels: Mapping[str, str]
    chunker: ChunkerConfig | None
    rewrite: AdapterConfig
    mode: str
    embedder: EmbedderConfig | None
    index: AdapterConfig | None
    own: RetrieverConfig | None
    k: int
    reranker: RerankerConfig | None
    depth: RoutedDepth | None = None

    @property
    def run_file(self) -> Path | None:
        """File of an external run, which is scored without a search; None if the system searches or reranks."""
        return self.own.path if isinstance(self.own, RunFileRetriever.Config) and self.reranker is None else None


@dataclass(frozen=True)
class SystemGrid:
    """The systems, in the order of the axes, then those of `systems`. `left_out` has a sentence for each kind of
    omitted combination.
    """

    systems: tuple[RetrievalStack, ...]
    left_out: tuple[str, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by axis, in the order of its levels

    @property
    def searched(self) -> tuple[RetrievalStack, ...]:
        """The systems that need a corpus: all except external runs."""
        return tuple(system for system in self.systems if system.run_file is None)


def make_grid(config: SweepConfig) -> SystemGrid:
    """Return all systems of a configuration; equal chains are one system.

    Raises:
        ConfigError: two systems have the same name, there are no systems, the baseline is not a system, or the depth of
            a single system cannot be routed.
    """
    axes = {axis: tuple(getattr(config.axes, axis)) for axis in AXES}
    labels = {axis: _labels(levels) for axis, levels in axes.items()}
    cuts = cut_labels(config)
    labels[CHUNKER] = tuple(cuts[repr(level)] for level in axes[CHUNKER])
    varied = {axis for axis in AXES if len(axes[axis]) > 1}
    found: dict[tuple[object, ...], RetrievalStack] = {}
    merged, excluded = Counter[str](), 0
    idle = set(range(len(config.excluded)))
    for choice in product(*(range(len(axes[axis])) for axis in AXES)):
        spec = SystemSpec.model_construct(None, **{axis: axes[axis][at] for axis, at in zip(AXES, choice, strict=True)})
        told = {axis: labels[axis][at] for axis, at in zip(AXES, choice, strict=True)}
        if matching := [at for at, pattern in enumerate(config.excluded) if _matches(pattern, spec, told)]:
            idle.difference_update(matching)
            excluded += 1
            continue
        # The lists of such a retriever use one chunking, but raggs does not know which.
        if not reads_corpus(spec.mode):
            spec, told = spec.model_copy(update={"chunker": None}), {**told, CHUNKER: AS_IT_IS}
        system = _system(spec, told, varied, recut=config.recuts)
        if why := unroutable_reason(system):
            merged[f"k {told['k']}: {why}"] += 1
            continue
        key = tuple(system.levels.items())
        merged[_why_one(system, spec, recut=config.recuts)] += key in found
        found.setdefault(key, system)
    left_out = [f"{plural(count, 'combination')} omitted: {why}" for why, count in merged.items() if count]
    if excluded:
        left_out.append(f"{plural(excluded, 'combination')} omitted by `except`")
    left_out += [
        f"`except` has {_pattern_text(config.excluded[at])}, which no combination matches" for at in sorted(idle)
    ]
    systems = (*found.values(), *_single(config, cuts))
    if not systems:
        raise ConfigError("no system is left", remedy="remove something from `except`, or add `systems`")
    often = Counter(system.name for system in systems)
    if twice := next((name for name, count in often.items() if count > 1), None):
        raise ConfigError(f"two systems are called {twice!r}", remedy="rename the system under `systems`")
    if config.baseline is not None and config.baseline not in often:
        remedy = did_you_mean(config.baseline, often, "raggs sweep --dry-run lists all systems")
        raise ConfigError(f"the baseline {config.baseline!r} is not a system", remedy=remedy)
    return SystemGrid(
        systems, tuple(left_out), {axis: labels[axis] for axis in AXES if axis != CHUNKER or config.recuts}
    )


def cut_labels(config: SweepConfig) -> Mapping[str, str]:
    """Return the label of each chunking by its `repr`."""
    labels = _labels([AS_IT_IS if level is None else level for level in config.cuts])
    return dict(zip(map(repr, config.cuts), labels, strict=True))


def _single(config: SweepConfig, cuts: Mapping[str, str]) -> Iterator[RetrievalStack]:
    for name, spec in config.systems.items():
        labels = {axis: _labels([getattr(spec, axis)])[0] for axis in AXES} | {CHUNKER: cuts[repr(spec.chunker)]}
        found = replace(_system(spec, labels, set(), recut=config.recuts), name=name)
        if why := unroutable_reason(found):
            raise ConfigError(f"system {name!r}: {why}", remedy="remove the signal from k.when, or give k as a number")
        yield found


def _why_one(system: RetrievalStack, spec: SystemSpec, *, recut: bool) -> str:
    """Return a clause on why some combinations are the same system."""
    if recut and not reads_corpus(spec.mode):
        return CHUNKING_MERGE_NOTE
    return SEARCH if system.run_file is None else TYPED


def _system(spec: SystemSpec, labels: Mapping[str, str], varied: set[str], *, recut: bool) -> RetrievalStack:
    """Return the system with one level per axis, without axes that do not apply.

    Args:
        recut: whether any system uses other chunks than those of the corpus.
    """
    own = spec.mode if isinstance(spec.mode, RetrieverConfig) else None
    dense = spec.mode in ("dense", "hybrid")
    vectors = dense or (own is not None and retrievers.REGISTRY.of(own).needs_vectors(own))
    as_it_is = isinstance(own, RunFileRetriever.Config) and spec.reranker is None
    lacks = {
        "embedder": not vectors,
        "index": not dense,
        "rewrite": as_it_is,
        CHUNKER: not recut,
    }
    told = {axis: label for axis, label in labels.items() if not lacks.get(axis)}
    return RetrievalStack(
        name=system_name(told, axes_in_names(told, varied)),
        levels=told,
        chunker=spec.chunker,
        rewrite=spec.rewrite,
        mode="own" if own else str(spec.mode),
        embedder=spec.embedder if vectors else None,
        index=spec.index if dense else None,
        own=own,
        k=spec.k.deep if isinstance(spec.k, RoutedDepth) else spec.k,
        reranker=spec.reranker,
        depth=spec.k if isinstance(spec.k, RoutedDepth) else None,
    )


def unroutable_reason(system: RetrievalStack) -> str | None:
    """Return why a system's depth cannot be routed, as a clause. Return None if it can be routed, or is fixed."""
    depth = system.depth
    if depth is None:
        return None
    if isinstance(system.reranker, BoostedConfig) and system.reranker.weight == FIT:
        return "weight: fit needs the same number of candidates for all queries"
    if system.run_file is not None:
        return "the depth of an external run is fixed"
    by_mode: Mapping[str, tuple[ScoreSource, ...]] = {
        "dense": ("vectors",),
        "lexical": ("words",),
        "hybrid": ("vectors", "words"),
    }
    there = set(by_mode.get(system.mode, ()))
    if system.own is not None and (reads := retrievers.REGISTRY.of(system.own).reads(system.own)) is not None:
        there.add(reads)
    if system.reranker is not None:
        there.add("candidates")
    if depth.when.rewrite is not None and (system.embedder is None or system.rewrite.type == "none"):
        return "when.rewrite compares vectors of a query and its rewrite, but one of these vectors does not exist"
    return depth.lacking(there)


def axes_in_names(levels: Mapping[str, str], varied: Collection[str]) -> list[str]:
    """Return the axes that the name of a system lists, in their order.

    Args:
        levels: level of the system by axis.
        varied: axes with more than one level in the sweep.
    """
    return [axis for axis in dict.fromkeys(("mode", *AXES)) if axis in {*varied, *NAMED_ALWAYS} & levels.keys()]


def system_name(levels: Mapping[str, str], axes: Iterable[str]) -> str:
    """Return the name of a system of the grid."""
    return "+".join(_in_name(axis, levels[axis]) for axis in axes)


def _in_name(axis: str, label: str) -> str:
    return f"k{label}" if axis == "k" and label.isdigit() else label


def family_levels(levels: Mapping[str, str], *axes: str) -> tuple[tuple[str, str], ...]:
    """Return the levels shared by systems that differ only in some axes."""
    return tuple((axis, level) for axis, level in levels.items() if axis not in axes)


# --- labels ---------------------------------------------------------------------------------------------------


def _labels(levels: Sequence[Level]) -> tuple[str, ...]:
    """Return a short label for each level of an axis: its type, its identifying settings, and the settings in which it
    differs from others of its type. Equal labels are numbered.
    """
    settings = [level.model_dump(mode="json") if isinstance(level, BaseModel) else {} for level in levels]
    taken: dict[tuple[str, str], set[str]] = {}
    for level, found in zip(levels, settings, strict=True):
        for key, value in found.items():
            taken.setdefault((_type(level), key), set()).add(repr(value))
    varied = {place for place, values in taken.items() if len(values) > 1}
    labels = [_label(level, found, varied) for level, found in zip(levels, settings, strict=True)]
    often, met = Counter(labels), Counter[str]()
    numbered = []
    for label in labels:
        met[label] += 1
        numbered.append(label if often[label] == 1 else f"{label}-{met[label]}")
    return tuple(numbered)


def _label(level: Level, settings: Mapping[str, object], varied: Collection[tuple[str, str]]) -> str:
    if not isinstance(level, BaseModel):
        return NO_RERANKER if level is None else str(level)
    parts = [_type(level)]
    if parts[0] in NAMED_WITH_INNER:
        parts.append(_type(getattr(level, "of", None)))
    for key, value in settings.items():
        if key != "type" and (key in IDENTIFYING_SETTINGS or (_type(level), key) in varied):
            parts.append(_part(key, value))
    return "-".join(part for part in parts if part).replace(" ", "_").replace("/", "_")


def _part(key: str, value: object) -> str:
    if value is None or isinstance(value, (dict, list)):
        return ""
    if isinstance(value, bool):
        return key if value else f"no_{key}"
    if key == "path":
        return Path(str(value)).stem
    if isinstance(value, str):
        return value.rpartition("/")[2].rpartition(":")[2]
    return str(value) if key == "dims" else f"{key}{value}"


def _type(level: Level) -> str:
    return str(getattr(level, "type", level))


def _pattern_text(pattern: Mapping[str, object]) -> str:
    """Return a pattern of `except` as text."""
    return "{" + ", ".join(f"{axis}: {wanted}" for axis, wanted in pattern.items()) + "}"


def _matches(pattern: Mapping[str, object], spec: SystemSpec, labels: Mapping[str, str]) -> bool:
    """Return whether every axis in a pattern has the described level."""
    return all(_fits_level(wanted, getattr(spec, axis), labels[axis]) for axis, wanted in pattern.items())


def _fits_level(wanted: object, level: Level, label: str) -> bool:
    if isinstance(wanted, (list, tuple)):
        return any(_fits_level(each, level, label) for each in wanted)
    if isinstance(wanted, Mapping):
        settings = level.model_dump(mode="json") if isinstance(level, BaseModel) else {}
        return all(settings.get(key) == value for key, value in wanted.items())
    return str(wanted) in (label, _type(level)) or (wanted is None and level is None)


EXACT = "flat"


@dataclass(frozen=True)
class SystemRetriever:
    """One retriever of a system: its settings, rewriter, embedder and chunking."""

    retriever: RetrieverConfig
    rewrite: AdapterConfig
    embedder: EmbedderConfig | None
    chunker: ChunkerConfig | None = None


def searches_of(
    system: RetrievalStack, systems: Sequence[RetrievalStack], hybrid: HybridSettings
) -> tuple[SystemRetriever, ...]:
    """Return the retrievers of a system with their depths.

    Args:
        systems: all systems, which determine the depth of exact searches.
        hybrid: settings of the modes lexical and hybrid.
    """
    match system.mode:
        case "dense":
            return (_dense(system, _deepest_k(system, systems)),)
        case "lexical":
            return (_vectorless_search(system, hybrid.lexical.model_copy(update={"k": _deepest_k(system, systems)})),)
        case "hybrid":
            lexical = hybrid.lexical.model_copy(update={"k": hybrid.depth})
            return (_dense(system, hybrid.depth), _vectorless_search(system, lexical))
    own = system.own or hybrid.lexical
    retriever = own.model_copy(update={"k": system.k})
    return (SystemRetriever(retriever, system.rewrite, system.embedder, system.chunker),)


def _dense(system: RetrievalStack, depth: int) -> SystemRetriever:
    spec: dict[str, object] = {"type": "dense", "k": depth}
    if system.index is not None and system.index.type != EXACT:
        spec["index"] = system.index
    retriever = DenseRetriever.Config.model_validate(spec)
    return SystemRetriever(retriever, system.rewrite, system.embedder, system.chunker)


def _vectorless_search(system: RetrievalStack, retriever: RetrieverConfig) -> SystemRetriever:
    return SystemRetriever(retriever, system.rewrite, None, system.chunker)


def _deepest_k(system: RetrievalStack, systems: Sequence[RetrievalStack]) -> int:
    """Return the largest k of all systems with the same search. If k changes the search of the index, return the
    system's own k.
    """
    if system.index is not None and system.index.type != EXACT:
        return system.k
    return max(each.k for each in systems if _search_key(each) == _search_key(system))


def _search_key(system: RetrievalStack) -> tuple[object, ...]:
    """Return a key that is equal for systems with the same search."""
    return system.mode, system.rewrite, system.embedder, system.index, system.chunker
