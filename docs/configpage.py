"""Generate docs/reference/configuration.md: every key with its type, default and meaning.

Used by docs/generate.py. The keys come from raggs/config/models.py, the texts about adapters from their docstrings.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from raggs import ranking
from raggs.base.adapter import Adapter
from raggs.base.registry import Registry
from raggs.config.models import Key, RunConfig, engine_keys, fusion_keys, keys_of, sections
from raggs.parts import askers, chunkers, corpora, embedders, indexes, judges, queries, rerankers, retrievers, rewriters
from raggs.ranking import fusion
from raggs.runs import execution
from raggs.sweeps.config import SweepConfig

HEAD = """# Configuration

All keys of a run's YAML file. Only `name`, `corpus`, `queries` and `judge` are required. An unknown key is an error
that names a similar key or the known keys.

```yaml
name: mine
corpus:  {type: jsonl, path: corpus.jsonl}
queries: {type: jsonl, path: queries.jsonl}
judge:   {judge: {type: litellm, model: openai/gpt-5-mini}}
```

Values come from these sources. Later ones take precedence:

1. the default
2. the file, in which `${NAME}` and `${NAME:-default}` are replaced by environment variables
3. environment variables such as `RAGGS__RANK__MAX_CALLS=40`
4. `--set rank.max_calls=40`

`raggs config show --config raggs.yaml` prints every value with its source.

- **Keys.** Use the keys below with `--set`. In a list, an entry has a number from 0 (`retrieve.retrievers.0.k`) or
  a name (`retrieve.retrievers.bm25.k`). `<name>` is a name that you choose.
- **Paths** are relative to the file that contains them.
- **API keys** must not be in the configuration. They come from the environment, or from a `.env` file next to the
  configuration.
- **◦** marks settings that do not change a result, such as the number of workers. If you change them, no stage runs
  again. Files and prompts are compared by content, not by path.
- ***one of*** marks a mapping whose `type` chooses an adapter. The keys of each adapter are in its section. Packages
  can add adapters (`raggs list`)."""

SWEEP = """## A sweep

Keys of the file for `raggs sweep` ([compare configurations](../how-to/compare-configurations.md)). Only `name` and
`golden` are required. Each axis in `axes` is a list of levels. If a setting of a level is a list of plain values, each
of them becomes a level. `llm` and `budget` have the same keys as in a run's file."""
SHARED = {"llm", "budget"}
WRITTEN = {"excluded": "except"}  # `except` is a keyword in Python

OPTIONS = """## {title}

`{key}` chooses one of these. Its options are in `{options}`."""

KINDS: tuple[Registry[Any], ...] = (
    corpora.REGISTRY,
    chunkers.REGISTRY,
    queries.REGISTRY,
    embedders.REGISTRY,
    rewriters.REGISTRY,
    retrievers.REGISTRY,
    rerankers.REGISTRY,
    indexes.REGISTRY,
    judges.REGISTRY,
    askers.REGISTRY,
    execution.REGISTRY,
)
PAGE = re.compile(r"docs/([\w/-]+\.md)")
TABLE = "| key | type | default | meaning |\n|---|---|---|---|"


def configuration() -> str:
    """Return the page."""
    found = sections()
    top = RunConfig.model_fields.keys() - found.keys()
    parts = [HEAD, "## The file", table(key for key in keys_of(RunConfig) if key.name in top)]
    for name, model in found.items():
        about = PAGE.sub(r"[\1](../\1)", inspect.getdoc(model) or "")
        parts += [f"## {name}", about, table(keys_of(model, f"{name}."))]
    for registry in KINDS:
        parts += [f"## {registry.group}", *_adapters(registry)]
    sweep = [key for key in keys_of(SweepConfig) if key.name.partition(".")[0] not in SHARED]
    parts += [SWEEP, table(replace(key, name=WRITTEN.get(key.name, key.name)) for key in sweep)]
    parts += [OPTIONS.format(title="engines", key="rank.engine", options="rank.options")]
    parts += [_options(name, ranking.REGISTRY, engine_keys(name)) for name in ranking.REGISTRY.builtin]
    parts += [OPTIONS.format(title="fusions", key="merge.type", options="merge.options")]
    parts += [_options(name, fusion.REGISTRY, fusion_keys(name)) for name in fusion.REGISTRY.builtin]
    return "\n\n".join(parts) + "\n"


def table(found: Iterable[Key]) -> str:
    """Return a table of keys."""
    return "\n".join([TABLE, *map(_row, found)])


def _row(key: Key) -> str:
    form = key.form.replace(str(key.group), f"[{key.group}](#{key.group})") if key.group else key.form
    usual = "*none*" if key.default is None else f"`{key.default}`"
    meaning = (key.meaning + (" ◦" if key.effort else "")).replace("<", "&lt;")
    cells = (f"`{key.name}`", form, "*required*" if key.required else usual, meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _adapters(registry: Registry[Adapter]) -> Iterator[str]:
    for name in registry.builtin:
        yield f"### {registry.kind} `{name}`"
        yield registry.summary(name)
        if found := list(keys_of(registry.load(name).Config)):
            yield table(found)


def _options(name: str, registry: Registry[object], found: list[Key]) -> str:
    return f"### `{name}`\n\n{registry.summary(name)}" + (f"\n\n{table(found)}" if found else "")
