"""Is a configuration right, and are its inputs? Reads them; runs nothing, asks no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from raggs.app.addresses import permit
from raggs.app.services import RunServices
from raggs.base.progress import Notice
from raggs.config.load import load_config


@dataclass(frozen=True)
class Inputs:
    """What a configuration's inputs hold: queries, passages, the retrievers' names, and what was found on the way."""

    queries: int
    passages: int
    retrievers: tuple[str, ...]
    notes: tuple[str, ...] = ()


def validate(config: Path, overrides: Sequence[str] = ()) -> Inputs:
    """Check a configuration and its inputs.

    Raises:
        RaggsError: the first thing that is wrong, with file and line.
    """
    settings = load_config(config, overrides).run
    permit(settings, ())
    notes: list[str] = []
    services = RunServices(settings, lambda news: notes.append(news.message) if isinstance(news, Notice) else None)
    try:
        services.check_keys()
        services.check_inputs()
        sizes = len(services.queries), len(services.passages)
        return Inputs(*sizes, tuple(services.retrievers), tuple(dict.fromkeys(notes)))
    finally:
        services.close()
