"""Passages and queries from memory, written as files of a run under the hash of their content.

A run reads files, so that it can be resumed and workers find its inputs. Inputs from memory are written to `given/` in
the workspace. The same content gives the same file. If the content changes, stages run again, as with any input file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from raggs.base.artifacts import Passage
from raggs.base.errors import DataError
from raggs.base.files import atomic_writer, disk, make_folder
from raggs.config.load import LoadedConfig, load_config
from raggs.config.models import RunConfig
from raggs.golden.files import queries_of
from raggs.parts.corpora.jsonl import ID_FIELDS, JsonlConfig
from raggs.parts.queries.formats import JsonlQueriesConfig
from raggs.parts.queries.writing import query_facts
from raggs.parts.run_files import as_id, describe_value, rows_of

FOLDER = "given"
AnyConfig = LoadedConfig | RunConfig | Mapping[str, object] | Path | str
HOLDER = {"type": "jsonl", "path": "given"}  # used for validation before the real file is written


def configured(config: AnyConfig, corpus: object = None, queries: object = None) -> LoadedConfig | RunConfig:
    """Return a configuration with its corpus and queries replaced by the given ones.

    Args:
        config: loaded, a mapping with the keys of the YAML file, or the path of a file.
        corpus: ``{doc_id: text}``, passages, rows, or a table with the columns of a JSON-lines corpus.
        queries: ``{qid: text}``, queries, rows, or a table with the columns of a query file.

    Raises:
        RaggsError: the configuration, a passage or a query is invalid, or a file cannot be written.
    """
    if isinstance(config, Mapping):
        held = {"corpus": corpus, "queries": queries}
        config = {**config, **{name: HOLDER for name, given in held.items() if given is not None}}
    loaded = config if isinstance(config, LoadedConfig | RunConfig) else load_config(config)
    if corpus is None and queries is None:
        return loaded
    run = loaded.run if isinstance(loaded, LoadedConfig) else loaded
    changed: dict[str, object] = {}
    if corpus is not None:
        changed["corpus"] = JsonlConfig(path=_store_rows(run.workspace, "corpus", _passages(corpus)))
    if queries is not None:
        asked = queries_of(queries).values()
        lines = ({"_id": each.qid, "text": each.text, **query_facts(each)} for each in asked)
        changed["queries"] = JsonlQueriesConfig(path=_store_rows(run.workspace, "queries", lines))
    fresh = run.model_copy(update=changed)
    return replace(loaded, run=fresh) if isinstance(loaded, LoadedConfig) else fresh


def _store_rows(workspace: Path, name: str, rows: Iterable[Mapping[str, object]]) -> Path:
    """Write rows to a file named by their hash, and return it."""
    folder, digest = workspace / FOLDER, hashlib.sha256()
    make_folder(folder)
    fresh = folder / f"{name}.jsonl"
    with disk(fresh, "choose another workspace"):
        with atomic_writer(fresh) as file:
            for place, row in enumerate(rows):
                line = _line(row, f"{name}, row {place}")
                digest.update(line)
                file.write(line)
        return fresh.replace(folder / f"{name}-{digest.hexdigest()[:16]}.jsonl")


def _line(row: Mapping[str, object], at: str) -> bytes:
    try:
        return (json.dumps(row, sort_keys=True, allow_nan=False, default=_plain_number) + "\n").encode()
    except (TypeError, ValueError) as error:
        raise DataError(f"{at}: cannot be written as JSON ({error})", remedy="use texts, numbers and lists") from error


def _plain_number(value: object) -> object:
    """Return a number from a table, such as a NumPy scalar, as a plain Python number."""
    item = getattr(value, "item", None)
    if not callable(item):
        raise TypeError(f"{describe_value(value)} cannot be written as JSON")
    return item()


def _passages(given: object) -> Iterator[Mapping[str, object]]:
    if isinstance(given, Mapping) and not hasattr(given, "to_dict"):
        yield from ({"_id": as_id(key, "corpus"), "text": text} for key, text in given.items())
        return
    for place, row in enumerate(rows_of(given, "corpus")):
        yield _passage(row, f"corpus, row {place}")


def _passage(row: object, at: str) -> Mapping[str, object]:
    if isinstance(row, Passage):
        facts = row.model_dump(mode="json", exclude={"doc_id", "v"}, exclude_none=True)
        return {"_id": row.doc_id, **facts}
    if not isinstance(row, Mapping):
        raise DataError(f"{at}: {describe_value(row)} is not a passage", remedy='e.g. {"_id": "d1", "text": "..."}')
    plain = {str(key): value for key, value in row.items() if value is not None and value == value}
    for name in set(ID_FIELDS) & plain.keys():
        plain[name] = as_id(plain[name], at)
    return plain
