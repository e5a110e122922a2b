"""Projection of a golden set onto corpora with other chunks: find the corpus of each system, and open it.

A run directory records its own corpus. For a run file, you name the corpus. If a system records which corpus it
searched, raggs refuses to score it on another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from raggs.app.addresses import permit
from raggs.app.eval_request import ProjectionRequest
from raggs.app.status import stored_config
from raggs.base.errors import DataError, NotFoundError, UsageError
from raggs.base.text import did_you_mean
from raggs.config.load import load_config
from raggs.config.models import RunConfig
from raggs.golden.base import GoldenSet
from raggs.golden.judgments import DataOrigin, Judgments
from raggs.golden.places import DEFAULT_RULE, JudgedPlaces, Projection, judged_places, project_onto
from raggs.golden.sources import NamedSystem
from raggs.metrics.spans import ProjectionRule
from raggs.parts.workspace import OpenCorpus, Workspace
from raggs.runs.events import Listener, ignore_event
from raggs.runs.manifests.store import RunStore

GOLDEN = "golden"  # name of the golden set in --corpus
NAME_IT = "pass the configuration of its corpus: --corpus CONFIG (--corpus SYSTEM=CONFIG for one system)"


def projected(
    golden: GoldenSet,
    judgments: Judgments,
    systems: Sequence[NamedSystem],
    asked: ProjectionRequest,
    listen: Listener = ignore_event,
) -> tuple[Judgments, list[NamedSystem]]:
    """Return the judgments, and the systems with the golden set projected onto their corpora.

    The returned judgments lack the uncertainty of their labels, because it cannot be projected.

    Raises:
        UsageError: a corpus is named for an unknown system, or two corpora for the same one.
        NotFoundError, DataError: a corpus is unknown, or differs from the one that was judged or searched, or its
            passages have no positions in documents, or other texts than the judged ones.
    """
    named = _corpora_by_system(asked.corpora, [system.name for system in systems])
    places = _find_judged_places(golden, judgments, named.get(GOLDEN), listen)
    rule, scale = asked.rule, judgments.qrels.scale
    rule = rule if scale.golden else replace(rule, proof=scale.relevant)
    made: dict[Path, Projection] = {}
    found = []
    for system in systems:
        path = named.get(system.name) or _run_of_system(system) or named.get("")
        if path is None:
            raise DataError("does not record which corpus was searched", where=system.source, remedy=NAME_IT)
        if path not in made:
            made[path] = project_corpus(places, _config(path), rule, listen)
        found.append(replace(system, projection=_check_same_corpus(made[path], system)))
    return replace(judgments, doubt=None), found


def project_corpus(
    places: JudgedPlaces, config: RunConfig, rule: ProjectionRule = DEFAULT_RULE, listen: Listener = ignore_event
) -> Projection:
    """Project a golden set onto the corpus of a configuration. The corpus is read, and chunked if necessary.

    Raises:
        NotFoundError, DataError: the corpus cannot be read, has no positions, or has other texts than the judged ones.
    """
    with _opened_corpus(config, listen) as corpus:
        return project_onto(places, corpus.store, corpus.store.content_hash, corpus.place, rule)


@contextmanager
def _opened_corpus(config: RunConfig, listen: Listener) -> Iterator[OpenCorpus]:
    """Open the corpus of a configuration without any paid call."""
    permit(config, ())
    with Workspace(config.workspace, config.llm, config.budget, hear=listen) as workspace:
        try:
            yield workspace.corpus(config.corpus)
        except NotFoundError as error:
            error.remedy = NAME_IT
            raise


def _find_judged_places(golden: GoldenSet, judgments: Judgments, path: Path | None, listen: Listener) -> JudgedPlaces:
    """Return the positions of judged passages in their documents, from the golden set or from the judged corpus.

    Raises:
        DataError: the given corpus differs from the one that was judged.
    """
    if path is None:
        return judged_places(golden, judgments)
    with _opened_corpus(_config(path), listen) as corpus:
        if other := DataOrigin(corpus.store.content_hash).other_corpus(judgments.origin):
            raise DataError(
                f"was judged on another corpus ({other}) than {corpus.place} now contains",
                where=golden.source,
                remedy=f"pass the configuration of the judged corpus: --corpus {GOLDEN}=CONFIG",
            )
        return judged_places(golden, judgments, corpus.store.get)


def _check_same_corpus(projection: Projection, system: NamedSystem) -> Projection:
    """Return the projection unchanged; raise an error if the system searched another corpus.

    Raises:
        DataError: the system searched another corpus.
    """
    if other := projection.origin.other_corpus(system.origin):
        raise DataError(
            f"searched another corpus ({other}) than {projection.cut.place} now contains",
            where=system.source,
            remedy=f"run the system again, or {NAME_IT}",
        )
    return projection


def _corpora_by_system(specs: Sequence[str], systems: Sequence[str]) -> dict[str, Path]:
    """Return the path of the corpus by system. The key `GOLDEN` is the golden set; "" is the default for other systems.

    Raises:
        UsageError: a system is unknown, or has two corpora, or there are two defaults.
    """
    found: dict[str, Path] = {}
    for spec in specs:
        name, _, place = ("", "", spec) if Path(spec).exists() else spec.rpartition("=")
        if name and name not in (GOLDEN, *systems):
            raise UsageError(f"--corpus {spec}: no system has the name {name}", remedy=did_you_mean(name, systems))
        if name in found:
            raise UsageError(f"--corpus {spec}: a second corpus for {name or 'all'}", remedy="write SYSTEM=CONFIG")
        found[name] = Path(place)
    return found


def _run_of_system(system: NamedSystem) -> Path | None:
    """Return the run directory of a system; None for a file."""
    path = Path(system.source)
    return path if path.is_dir() and RunStore(path).exists else None


def _config(path: Path) -> RunConfig:
    return stored_config(path) if path.is_dir() else load_config(path).run
