"""Passages and questions from memory as the files of a run: written once, under the hash of their content.

A run reads files: so it can be stopped and gone on with, workers find what it reads, and content enters the fingerprint
as that of any file does. What is given is written into `given/` of the workspace; the same content is the same file.
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
HOLDER = {"type": "jsonl", "path": "given"}  # until the content has its place


def configured(config: AnyConfig, corpus: object = None, queries: object = None) -> LoadedConfig | RunConfig:
    """A configuration, with what is given in place of its own corpus and questions.

    Args:
        config: loaded, a mapping as the YAML has it, or the path of a file.
        corpus: ``{doc_id: text}``, passages, rows or a table with the columns that a JSON-lines corpus has.
        queries: ``{qid: text}``, questions, rows or a table with the columns that a file of questions has.

    Raises:
        RaggsError: the configuration, a passage or a question cannot be right; the disk refuses.
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
    """The file of some rows."""
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
    """Numbers of tables, as plain ones."""
    item = getattr(value, "item", None)
    if not callable(item):
        raise TypeError(f"{describe_value(value)} is no JSON")
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
        raise DataError(f"{at}: {describe_value(row)} is no passage", remedy='e.g. {"_id": "d1", "text": "..."}')
    plain = {str(key): value for key, value in row.items() if value is not None and value == value}
    for name in set(ID_FIELDS) & plain.keys():
        plain[name] = as_id(plain[name], at)
    return plain
