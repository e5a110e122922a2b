"""Is a configuration right, and are its inputs? Reads them; runs nothing, asks no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from raggs.app.addresses import permit
from raggs.app.services import RunServices
from raggs.config.load import load_config


@dataclass(frozen=True)
class Inputs:
    """What a configuration's inputs hold: queries, passages, and the retrievers' names."""

    queries: int
    passages: int
    retrievers: tuple[str, ...]


def validate(config: Path, overrides: Sequence[str] = ()) -> Inputs:
    """Check a configuration and its inputs.

    Raises:
        RaggsError: the first thing that is wrong, with file and line.
    """
    settings = load_config(config, overrides).run
    permit(settings, ())
    services = RunServices(settings)
    try:
        services.check_keys()
        services.check_inputs()
        return Inputs(len(services.queries), len(services.passages), tuple(services.retrievers))
    finally:
        services.close()
