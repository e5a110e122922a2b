"""Catalogue of named items: adapters, engines, metrics, prompts, artifacts and their schemas.

Used by `raggs list`, `raggs schema`, `raggs prompts` and `raggs explain`. Terms are in `glossary.md`, the source of
docs/reference/glossary.md; headings of tables are in `headings.md`. Metrics and settings are described in their
classes.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from os.path import normpath
from pathlib import Path

from raggs import diagnosis, ranking, reporting
from raggs.base.adapter import AdapterConfig
from raggs.base.errors import NotFoundError, PrerequisiteError, UsageError
from raggs.base.registry import RAGGS, Registry
from raggs.base.text import did_you_mean
from raggs.config.models import Key, RunConfig, keys_of, run_keys, sections
from raggs.evaluation import analyses
from raggs.golden import formats
from raggs.llm.ledger import INTENTS_FILE as INTENTS
from raggs.llm.ledger import LEDGER_FILE as LEDGER
from raggs.llm.ledger import CallIntent, LedgerLine
from raggs.metrics.measure import Measure
from raggs.metrics.measures import REGISTRY as MEASURES
from raggs.metrics.names import MeasureSpec, glossary, parse_measure
from raggs.parts import (
    askers,
    chunkers,
    corpora,
    documents,
    embedders,
    indexes,
    judges,
    noises,
    perturbers,
    queries,
    rerankers,
    retrievers,
    rewriters,
)
from raggs.prompts import FALLBACK_LANGUAGE, known_prompts, shipped_prompt
from raggs.ranking import fusion
from raggs.runs import execution
from raggs.runs.manifests.models import RunManifest
from raggs.stages.pipeline import pipelines
from raggs.sweeps.config import SweepConfig

REGISTRIES: dict[str, Registry[object]] = {
    "corpora": corpora.REGISTRY,
    "documents": documents.REGISTRY,
    "chunkers": chunkers.REGISTRY,
    "queries": queries.REGISTRY,
    "embedders": embedders.REGISTRY,
    "rewriters": rewriters.REGISTRY,
    "retrievers": retrievers.REGISTRY,
    "rerankers": rerankers.REGISTRY,
    "indexes": indexes.REGISTRY,
    "judges": judges.REGISTRY,
    "askers": askers.REGISTRY,
    "exporters": formats.EXPORTERS,
    "importers": formats.IMPORTERS,
    "executions": execution.REGISTRY,
    "perturbers": perturbers.REGISTRY,
    "noises": noises.REGISTRY,
    "analyses": analyses.REGISTRY,
    "sections": reporting.REGISTRY,
    "diagnoses": diagnosis.REGISTRY,
    "fusions": fusion.REGISTRY,
    "engines": ranking.REGISTRY,
    "measures": MEASURES,
}


@dataclass(frozen=True)
class MeasureEntry:
    """Description of a retrieval metric.

    Attributes:
        summary: one line.
        written: its name with its cutoff, in brackets if the cutoff is optional.
        formula, source: definition and reference.
        range: smallest and largest value; None if unbounded.
        better: "higher" or "lower".
        parameters: default values; None if the default depends on the scale of the labels.
        aliases: other names.
        grades: whether it needs the grades 1 to 5 of a golden set.
        origin: package and version that provide it.
        ties: whether it supports E[...], range[...], range_at_k[...], bias[...], min[...] and max[...].
    """

    summary: str
    written: str
    formula: str
    range: tuple[float | None, float | None]
    source: str
    better: str
    parameters: Mapping[str, float | None]
    aliases: tuple[str, ...]
    grades: bool
    ties: bool
    origin: str


def measure_entries() -> dict[str, MeasureEntry]:
    """Return the description of each usable metric by name."""
    usable = [name for name, entry in _entries("measures").items() if entry.usable]
    return {name: _measure_entry(name, MEASURES.load(name)) for name in usable}


def _measure_entry(name: str, measure: type[Measure]) -> MeasureEntry:
    return MeasureEntry(
        summary=_first_line(measure),
        written=_measure_notation(name, measure),
        formula=measure.FORMULA,
        range=(_finite_or_none(measure.RANGE[0]), _finite_or_none(measure.RANGE[1])),
        source=measure.SOURCE,
        better="higher" if measure.HIGHER else "lower",
        parameters={key: parameter.usual for key, parameter in measure.PARAMS.items()},
        aliases=measure.ALIASES,
        grades=measure.GOLDEN,
        ties=measure.TIES,
        origin=str(MEASURES.origin(name)),
    )


def _measure_notation(name: str, measure: type[Measure]) -> str:
    if measure.AT is not None:
        return f"{name}@{measure.AT}"
    return f"{name}@k" if measure.CUTOFF == "needed" else f"{name}[@k]"


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class CatalogEntry:
    """Description of a named item: one line, its package and version, and whether it can be used."""

    summary: str
    package: str = RAGGS.name
    version: str = RAGGS.version
    usable: bool = True

    @property
    def origin(self) -> str:
        """Package and version."""
        return f"{self.package} {self.version}"


def catalog(kind: str | None = None) -> dict[str, dict[str, CatalogEntry]]:
    """Return the named items of one kind, or of all kinds. Plugins that cannot be used are included, with the reason.

    Raises:
        UsageError: the kind does not exist.
    """
    kinds = [*REGISTRIES, *OTHER_KINDS]
    if kind is not None and kind not in kinds:
        raise UsageError(f"there is no list of {kind!r}", remedy=did_you_mean(kind, kinds))
    return {title: _entries(title) for title in kinds if kind in (None, title)}


def _entries(title: str) -> dict[str, CatalogEntry]:
    if title in OTHER_KINDS:
        return {name: CatalogEntry(summary) for name, summary in OTHER_KINDS[title]().items()}
    registry = REGISTRIES[title]
    found = {name: _entry(registry, name) for name in registry}
    for plugin in registry.shadowed():
        message = f"not used: raggs already has a {registry.kind} with this name"
        found[f"{plugin.point.name} of {plugin.package.name}"] = CatalogEntry(message, *plugin.package, usable=False)
    return found


def _entry(registry: Registry[object], name: str) -> CatalogEntry:
    try:
        return CatalogEntry(registry.summary(name), *registry.origin(name))
    except PrerequisiteError as error:
        packages = registry.packages(name)
        return CatalogEntry(
            error.message, " and ".join(each.name for each in packages), packages[0].version, usable=False
        )


OTHER_KINDS: dict[str, Callable[[], dict[str, str]]] = {
    "prompts": known_prompts,
    "stages": lambda: {
        name: _first_line(inspect.getmodule(type(each.stage(name)))) for each in pipelines() for name in each.order
    },
    "artifacts": lambda: {name: _first_line(model) for each in pipelines() for name, model in each.artifacts.items()},
}


def json_schema(name: str) -> dict[str, object]:
    """Return the JSON Schema of a file or of its records.

    Args:
        name: an artifact, ``manifest``, ``llm.ledger``, ``llm.intents``, ``config``, or a report: ``diff``, ``sweep``,
            ``chunks`` or ``diagnose``.

    Raises:
        UsageError: the name is unknown.
    """
    name = name.removesuffix(".jsonl").removesuffix(".json")
    if name == "manifest":
        return RunManifest.model_json_schema()
    if name == LEDGER.removesuffix(".jsonl"):
        return LedgerLine.model_json_schema()
    if name == INTENTS.removesuffix(".jsonl"):
        return CallIntent.model_json_schema()
    if name == "config":
        return RunConfig.model_json_schema()
    if name == "sweep":
        from raggs.sweeps.models import SweepReport

        return SweepReport.model_json_schema(mode="serialization")
    if name == "diff":
        from raggs.evaluation.diff_sets import DiffReport

        return DiffReport.model_json_schema(mode="serialization")
    if name == "diagnose":
        from raggs.diagnosis.models import report_schema

        return report_schema()
    if name == "chunks":
        from raggs.chunking.models import ChunkReport

        return ChunkReport.model_json_schema(mode="serialization")
    artifacts = {artifact: model for pipeline in pipelines() for artifact, model in pipeline.artifacts.items()}
    if name not in artifacts:
        raise UsageError(f"there is no artifact {name!r}", remedy=did_you_mean(name, artifacts))
    return artifacts[name].model_json_schema()


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


@dataclass(frozen=True)
class PromptPage:
    """One language version of a prompt.

    Attributes:
        name, language: name of the prompt, and its language.
        languages: all languages of the prompt.
        note: purpose of the prompt, one line in this language.
        sha256: hash of all text that can be sent, over all languages; cached answers depend on it.
        markdown: text of the file, in the format of settings such as `judge.prompt`.
    """

    name: str
    language: str
    languages: tuple[str, ...]
    note: str
    sha256: str
    markdown: str


def prompt_page(name: str, language: str = FALLBACK_LANGUAGE) -> PromptPage:
    """Return a prompt in one of its languages.

    Raises:
        ConfigError: the prompt does not exist.
        NotFoundError: the prompt has no version in that language.
    """
    prompt, files = shipped_prompt(name)
    if language not in files:
        remedy = did_you_mean(language, files)
        raise NotFoundError(
            f"{name} has no version in {language!r}; queries in this language get the one in {FALLBACK_LANGUAGE!r}",
            remedy=remedy,
        )
    note, markdown = prompt.template(language).note, files[language].read_text(encoding="utf-8")
    return PromptPage(name, language, tuple(sorted(files)), note, prompt.sha256, markdown)


def prompt_pages() -> list[PromptPage]:
    """Return all prompts in the fallback language."""
    return [prompt_page(name) for name in known_prompts()]


GLOSSARY_FILE = Path(__file__).with_name("glossary.md")  # terms: **term** (synonym, synonym): text
HEADINGS_FILE = Path(__file__).with_name("headings.md")  # headings of tables: **heading**, **heading**: text
ENTRY = re.compile(r"^- ((?:\*\*[^*]+\*\*(?:, )?)+)(?: \(((?:[^()]|\n)+)\))?: (.+(?:\n  .+)*)", re.MULTILINE)
TERM_PATTERN = re.compile(r"\*\*([^*]+)\*\*")
MIN_GUESS = 3  # letters; a shorter word is similar to too many terms
PLACE = re.compile(r"(\.\d+)+$")  # index in a list
MAP = re.compile(r"map( to|$)")  # type of a key whose subkeys the user names
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


@dataclass(frozen=True)
class GlossaryEntry:
    """Entry of the glossary.

    Attributes:
        words: terms that it explains, as written in tables.
        text: explanation as plain text; links are written as paths in the repository.
    """

    words: tuple[str, ...]
    text: str


def explain_word(word: str) -> tuple[GlossaryEntry, ...]:
    """Return the entries of a word: the term (or heading), metric, settings, parts and prompts of that name.

    Raises:
        NotFoundError: nothing has that name; the remedy names the nearest word, if there is one.
    """
    known = {**heading_entries(), **glossary_entries()}
    said = (
        known.get(_normalised_word(word)),
        _measure(word),
        *_settings(_normalised_word(word)),
        *_parts(_normalised_word(word)),
        *_prompts(word),
    )
    found = tuple(dict.fromkeys(filter(None, said)))
    path = PLACE.sub("", " ".join(word.split()))
    found = found or tuple(dict.fromkeys((*_settings(path), *_below_parts(path))))
    found = found or tuple(_settings_of_parts(_normalised_word(word)))
    if not found:
        names = {*glossary_entries(), *measure_entries(), *(key.name for key in run_keys())}
        names = {name for name in names if len(name) >= MIN_GUESS} if len(word) >= MIN_GUESS else set()
        remedy = did_you_mean(_normalised_word(word), sorted(names), "list of all terms: raggs explain")
        raise NotFoundError(f"{word!r} is not a term, metric, setting or heading", remedy=remedy)
    return found


@cache
def glossary_entries() -> Mapping[str, GlossaryEntry]:
    """Return the glossary's entries by term and synonym, in lower case and in the order of the page."""
    return _entries_of(GLOSSARY_FILE)


@cache
def heading_entries() -> Mapping[str, GlossaryEntry]:
    """Return the entries of `headings.md` by heading, in lower case."""
    return _entries_of(HEADINGS_FILE)


def _entries_of(file: Path) -> Mapping[str, GlossaryEntry]:
    found: dict[str, GlossaryEntry] = {}
    for names, synonyms, text in ENTRY.findall(file.read_text(encoding="utf-8")):
        words = tuple(TERM_PATTERN.findall(names))
        entry = GlossaryEntry(words, LINK.sub(_link_target, " ".join(text.split())))
        also = filter(None, map(_normalised_word, synonyms.split(",")))
        found |= dict.fromkeys((*map(_normalised_word, words), *also), entry)
    return found


def _link_target(link: re.Match[str]) -> str:
    """Return the path of the linked page from the root of the repository; links are relative to docs/reference."""
    return normpath("docs/reference/" + link[2].partition("#")[0])


def _normalised_word(word: str) -> str:
    return " ".join(word.split()).lower()


def _measure(word: str) -> GlossaryEntry | None:
    """Return the metric with that name. Other spellings are accepted, such as "N-Recall4+" or "hit rate"."""
    for name in (word, re.sub(r"[\s-]+", "_", word.strip().rstrip("+"))):
        try:
            return _measure_of(parse_measure(name if "@" in name else f"{name}@10"))
        except (UsageError, PrerequisiteError):
            continue
    return None


def _measure_of(named: MeasureSpec) -> GlossaryEntry:
    name = named.measure.NAME
    entry = measure_entries()[name]
    wrapped = [f"{sign}: {said}." for sign, said in glossary([named.name]).items() if sign != name]
    text = f"{entry.summary} {entry.formula} ({entry.better} is better; docs/reference/metrics.md)."
    return GlossaryEntry((entry.written,), " ".join([text, *wrapped]))


def _settings(word: str) -> Iterator[GlossaryEntry]:
    """Yield the section of the configuration with that name. If there is none, yield the key with that name, or else
    all keys of a run that end with the word, or else the section inside another section with that name.
    """
    (runs, of_sweeps), named = _all_keys(), sections(SweepConfig) | sections()
    keys = [*runs, *of_sweeps]
    if word in named:
        about = " ".join((inspect.getdoc(named[word]) or "").split())
        yield GlossaryEntry((word,), f"{word}, a section of the configuration. {about}{_list_next_keys(keys, word)}")
        return
    found = [key for key in keys if _is(word, key.name)] or _keys_ending_in(runs, word)
    if not (found or word.endswith(">")) and (below := _list_next_keys(keys, word)):
        yield GlossaryEntry((word,), f"{word}, a section of the configuration.{below}")
    for key in found:
        yield GlossaryEntry(
            (key.name,), _setting(key, f"In the YAML file, or --set {key.name}=…") + _list_next_keys(keys, key.name)
        )
    above = dict.fromkeys(key.name.rpartition(".")[0] for key in keys)
    for place in (place for place in above if place.endswith(">") and _is(word, place)):
        yield GlossaryEntry((place,), f"{place}: <name> is a name that you choose.{_list_next_keys(keys, place)}")


def _is(word: str, name: str) -> bool:
    """Return whether the word is this key; `<name>` in the key matches any text."""
    return re.fullmatch(".+".join(map(re.escape, re.split("<.+?>", name))), word) is not None


@cache
def _all_keys() -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """Return the keys of a run, and the keys that exist only in the configuration of a sweep."""
    of_sweeps = (key for key in keys_of(SweepConfig) if key.name.partition(".")[0] not in RunConfig.model_fields)
    return tuple(run_keys()), tuple(of_sweeps)


def _parts(word: str) -> Iterator[GlossaryEntry]:
    """Yield the parts of that name in `raggs list`, except metrics."""
    for registry in REGISTRIES.values():
        if registry.group != "measures" and word in registry:
            keys = ", ".join(key.name for key in _keys_of_part(registry.load(word)))
            text = f"{word}, one of the {registry.group}. {registry.summary(word)}"
            yield GlossaryEntry((word,), text + (f" Its settings: {keys}." if keys else ""))


def _prompts(word: str) -> Iterator[GlossaryEntry]:
    yield from (GlossaryEntry((word,), f"prompt: {page.note}") for page in prompt_pages() if page.name == word)


def _below_parts(path: str) -> Iterator[GlossaryEntry]:
    """Yield entries for a key inside a part, such as judge.judge.model, or inside a mapping whose keys the user
    chooses.
    """
    runs, of_sweeps = _all_keys()
    steps = path.split(".")
    for key in (*runs, *of_sweeps):
        above = key.name.split(".")
        if len(above) >= len(steps) or not _is(".".join(steps[: len(above)]).lower(), key.name.lower()):
            continue
        below = steps[len(above) :]
        if key.group is not None:
            yield from _of_parts(path, key.group, below)
        elif MAP.match(key.form):
            yield GlossaryEntry(
                (path,), f"{'.'.join(below)} is a key that you choose in {_setting(key, 'In the YAML file')}"
            )


def _of_parts(path: str, group: str, below: Sequence[str]) -> Iterator[GlossaryEntry]:
    """Yield one entry per meaning of a key inside a part; each entry names the types of parts that have the key."""
    rest = below[1:] if below[0].isdecimal() else below  # index in a list of parts
    registry = next(each for each in REGISTRIES.values() if each.group == group)
    if rest in ([], ["type"]):
        yield GlossaryEntry((path,), f"{path}: one of the {group}: {', '.join(registry.builtin)}.")
        return
    types: dict[str, list[str]] = {}
    for name in registry.builtin:
        for key in _keys_of_part(registry.load(name)):
            steps = key.name.split(".")
            if rest == steps:
                types.setdefault(_setting(replace(key, name=path), "In the YAML file, or with --set"), []).append(name)
            elif rest[: len(steps)] == steps and key.group is not None:
                yield from _of_parts(path, key.group, rest[len(steps) :])
            elif rest[: len(steps)] == steps and MAP.match(key.form):
                types.setdefault(
                    f"{rest[-1]} is a key that you choose in {_setting(key, 'In the section with type')}", []
                ).append(name)
    for text, names in types.items():
        yield GlossaryEntry((path,), f"{text} For type: {' or '.join(names)}.")


def _settings_of_parts(word: str) -> Iterator[GlossaryEntry]:
    """Yield the settings of parts with that name. All built-in parts are imported, which is slow."""
    for registry in REGISTRIES.values():
        for name in registry.builtin:
            for key in _keys_ending_in(_keys_of_part(registry.load(name)), word):
                yield GlossaryEntry(
                    (f"{name}.{key.name}",), _setting(key, f"In the section with type: {name} ({registry.group})")
                )


def _keys_of_part(part: type[object]) -> list[Key]:
    config = getattr(part, "Config", None)
    return list(keys_of(config)) if isinstance(config, type) and issubclass(config, AdapterConfig) else []


def _keys_ending_in(keys: Iterable[Key], word: str) -> list[Key]:
    return [key for key in keys if f".{key.name}".endswith(f".{word}")]


def _setting(key: Key, how: str) -> str:
    usual = "required" if key.required else f"default: {key.default or 'none'}"
    again = "; changing it does not rerun a stage" if key.effort else ""
    return f"{key.name}: {key.meaning.rstrip('.')}. {how}: {key.form}; {usual}{again}."


def _list_next_keys(keys: Iterable[Key], above: str) -> str:
    """Return a clause that lists the keys one level below a key; empty if there are none."""
    below = dict.fromkeys(
        key.name for key in keys if above in (place := key.name.rpartition(".")[0], place.removesuffix(".<name>"))
    )
    return f" Its settings: {', '.join(below)}." if below else ""
