"""The page docs/reference/configuration.md, from the models: every key, its type, its default and what it means.

Used by docs/generate.py. The keys come from raggs/config/models.py, what is said of an adapter from its docstring.
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

Every key that a run's YAML file may hold. What is left out has the default; an unknown key is an error that
names the nearest known one. Only `name`, `corpus`, `queries` and `judge` must be there:

```yaml
name: mine
corpus:  {type: jsonl, path: corpus.jsonl}
queries: {type: jsonl, path: queries.jsonl}
judge:   {judge: {type: litellm, model: openai/gpt-5-mini}}
```

Later sources win: defaults; the file, where `${NAME}` and `${NAME:-default}` expand; variables such as
`RAGGS__RANK__MAX_CALLS=40`; `--set rank.max_calls=40`. The keys below are those that `--set` takes, and
`raggs config show --config raggs.yaml` prints the values in force with their origins. In a list an entry is named by
its number from 0 (`retrieve.retrievers.0.k`), or by its name (`retrieve.retrievers.bm25.k`); `<name>` stands for a name
of yours. Paths are relative to the file that they stand in. Keys of providers stand in no setting: they come from the
environment, or from a `.env` beside the file.

A setting marked ◦ changes how the work is done, never what comes out: no stage runs again for it. A file or a prompt
counts by its content, not by its path.

Where a value is *one of* a list, it is a mapping whose `type` chooses an adapter, and the keys of that adapter stand in
its section below. Packages may add more of them (`raggs list`)."""

SWEEP = """## A sweep

Keys of a sweep's file (`raggs sweep`, [compare configurations](../how-to/compare-configurations.md)).
`name` and `golden` are required, all others are optional.
Each of `axes` is a list of levels, and a level's setting that is a list of plain values stands for a level with each of
them. `llm` and `budget` hold the same keys as in a run's file."""
SHARED = {"llm", "budget"}
WRITTEN = {"excluded": "except"}  # keys that Python has no name for

OPTIONS = """## {title}

`{key}` names one of them; its options stand below `{options}`."""

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
    """The whole page."""
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
    """Keys under their head."""
    return "\n".join([TABLE, *map(_row, found)])


def _row(key: Key) -> str:
    form = key.form.replace(str(key.group), f"[{key.group}](#{key.group})") if key.group else key.form
    usual = "*left out*" if key.default is None else f"`{key.default}`"
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
