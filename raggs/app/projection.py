"""Carry a golden set over to the corpora of systems that are cut in another way: which corpus is whose, and opening it.

A run directory knows its own corpus; of a file of lists somebody must say it. Nothing is scored on a corpus that is not
the one a run searched.
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

GOLDEN = "golden"  # what --corpus calls the golden set
NAME_IT = "--corpus CONFIG names the configuration whose corpus it is (SYSTEM=CONFIG for one system)"


def projected(
    golden: GoldenSet,
    judgments: Judgments,
    systems: Sequence[NamedSystem],
    asked: ProjectionRequest,
    listen: Listener = ignore_event,
) -> tuple[Judgments, list[NamedSystem]]:
    """The systems with the golden set on the passages of each one's corpus, and the set without the doubt about its
    labels, which nobody can carry over.

    Raises:
        UsageError: a corpus is named for no system.
        NotFoundError, DataError: a corpus is not known or not what was judged or searched; passages have no places, or
            other texts than were judged.
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
            raise DataError("says nothing of its corpus", where=system.source, remedy=NAME_IT)
        if path not in made:
            made[path] = project_corpus(places, _config(path), rule, listen)
        found.append(replace(system, projection=_check_same_corpus(made[path], system)))
    return replace(judgments, doubt=None), found


def project_corpus(
    places: JudgedPlaces, config: RunConfig, rule: ProjectionRule = DEFAULT_RULE, listen: Listener = ignore_event
) -> Projection:
    """A golden set on the passages of a configuration's corpus, which is read, and cut where that was not done yet.

    Raises:
        NotFoundError, DataError: the corpus cannot be read, has no places, or other texts than were judged.
    """
    with _opened_corpus(config, listen) as corpus:
        return project_onto(places, corpus.store, corpus.store.content_hash, corpus.place, rule)


@contextmanager
def _opened_corpus(config: RunConfig, listen: Listener) -> Iterator[OpenCorpus]:
    """The corpus of a configuration; nobody is paid."""
    permit(config, ())
    with Workspace(config.workspace, config.llm, config.budget, hear=listen) as workspace:
        try:
            yield workspace.corpus(config.corpus)
        except NotFoundError as error:
            error.remedy = NAME_IT
            raise


def _find_judged_places(golden: GoldenSet, judgments: Judgments, path: Path | None, listen: Listener) -> JudgedPlaces:
    """Where judged passages stand, by the set itself or by the corpus that was named for it.

    Raises:
        DataError: the corpus is not the one that was judged.
    """
    if path is None:
        return judged_places(golden, judgments)
    with _opened_corpus(_config(path), listen) as corpus:
        if other := DataOrigin(corpus.store.content_hash).other_corpus(judgments.origin):
            raise DataError(
                f"was judged on another corpus than {corpus.place} now is (content {other})",
                where=golden.source,
                remedy=f"--corpus {GOLDEN}=CONFIG names the configuration whose corpus was judged",
            )
        return judged_places(golden, judgments, corpus.store.get)


def _check_same_corpus(projection: Projection, system: NamedSystem) -> Projection:
    """The projection, where it is onto the corpus that the system searched.

    Raises:
        DataError: it is not.
    """
    if other := projection.origin.other_corpus(system.origin):
        raise DataError(
            f"searched another corpus than {projection.cut.place} now is (content {other})",
            where=system.source,
            remedy=f"run it again, or {NAME_IT}",
        )
    return projection


def _corpora_by_system(specs: Sequence[str], systems: Sequence[str]) -> dict[str, Path]:
    """The corpora by system, of the golden set by `GOLDEN`; for all others by "".

    Raises:
        UsageError: there is no such system, or two corpora for one.
    """
    found: dict[str, Path] = {}
    for spec in specs:
        name, _, place = ("", "", spec) if Path(spec).exists() else spec.rpartition("=")
        if name and name not in (GOLDEN, *systems):
            raise UsageError(f"--corpus {spec}: no system is called {name}", remedy=did_you_mean(name, systems))
        if name in found:
            raise UsageError(f"--corpus {spec}: a second corpus for {name or 'all'}", remedy="write SYSTEM=CONFIG")
        found[name] = Path(place)
    return found


def _run_of_system(system: NamedSystem) -> Path | None:
    """The run directory that a system is of; None for a file."""
    path = Path(system.source)
    return path if path.is_dir() and RunStore(path).exists else None


def _config(path: Path) -> RunConfig:
    return stored_config(path) if path.is_dir() else load_config(path).run
