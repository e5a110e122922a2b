"""`raggs validate` and `raggs config show`."""

from __future__ import annotations

from dataclasses import asdict

from raggs.cli.boundary import Debug
from raggs.cli.options import GivenConfig, Json, Overrides, RunFile, SameConfig, meant
from raggs.cli.plain import say, say_json


def validate(
    file: RunFile = None,
    config: SameConfig = None,
    overrides: Overrides = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Check a configuration and its inputs.

    Nothing is run.

    \b
    Example:
      raggs validate raggs.yaml
    """
    from raggs.app.validate import validate as inputs_of
    from raggs.base.text import plural
    from raggs.cli.again import Asked
    from raggs.runs.manifests.store import dump_json

    config = meant(file, config, "raggs.yaml", "name one: raggs validate raggs.yaml; raggs init DIR makes one")
    found = inputs_of(config, overrides or ())
    if as_json:
        say_json(dump_json({"valid": True, **asdict(found)}))
        return
    sizes = f"{plural(found.queries, 'query')}, {plural(found.passages, 'passage')}"
    say(f"{config} is valid: {sizes}, retrievers {', '.join(found.retrievers)}")
    for note in found.notes:
        say(note)
    say(f"next: {Asked(config, overrides or ()).command()}")


def show(
    file: GivenConfig = None,
    config: SameConfig = None,
    overrides: Overrides = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the effective configuration.

    Each value with its origin: default, file, environment or --set. What a
    setting does: raggs explain KEY.

    \b
    Example:
      raggs config show raggs.yaml --set rank.max_calls=40
    """
    from raggs.config.load import load_config
    from raggs.runs.manifests.store import dump_json

    loaded = load_config(meant(file, config, "raggs.yaml", "name one: raggs config show raggs.yaml"), overrides or ())
    rows = [(name, value, origin) for name, value, origin in loaded.with_origins()]
    if as_json:
        say_json(dump_json({name: {"value": value, "origin": origin} for name, value, origin in rows}))
        return
    width = max(len(name) for name, _, _ in rows)
    for name, value, origin in rows:
        say(f"{name:<{width}}  {_yaml(value):<12}  # {origin}")


def _yaml(value: object) -> str:
    """A value as --set takes it."""
    import json

    from raggs.config.source import parse_value

    plain = isinstance(value, str) and parse_value(value) == value
    return str(value) if plain and value else json.dumps(value, ensure_ascii=False)
