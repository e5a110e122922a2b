"""A configuration for a folder of documents: where a user with nothing but documents begins.

It lies beside the questions, so that `raggs questions`, `raggs run` and `raggs eval` go on with it.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from raggs.base.adapter import AdapterConfig
from raggs.base.errors import ConfigError, RaggsError, UsageError
from raggs.base.files import disk, write_atomic
from raggs.chunking.specs import parse_spec
from raggs.config.load import load_config
from raggs.config.models import RunConfig
from raggs.config.source import parse_value, read_source, split_key
from raggs.parts import askers
from raggs.parts.queries.base import format_of

FILE = "raggs.yaml"
QUESTIONS = Path("questions.jsonl")
TEMPLATE = """# Questions made of documents, and a golden set over them. Paths are relative to this file.
# What is left out has a default: raggs config show --config <this file>

name: {name}

corpus:                           # the documents, cut into passages; raggs chunks show --config <this file>
  type: folder
  path: {documents}

queries:                          # where `raggs questions` writes the questions and `raggs run` reads them
  type: {format}
  path: {questions}

questions:                        # raggs questions --config <this file>
  sample: {{n: 100}}                # questions that are asked for
  ask:
    asker: {{type: extractive}}     # by rule, offline; a model: {{type: litellm, model: openai/gpt-5-mini}}

judge:                            # raggs run --config <this file>
  judge: {{type: reference}}        # grades passages by the excerpts that answer: no key, no network

# budget:
#   max_usd: 1                    # a run stops in good order before it would spend more
"""


def config_for(
    documents: Path, config: Path | None, out: Path | None, asked: Sequence[str] = (), *, writes: bool = True
) -> tuple[Path, bool]:
    """The configuration for a folder of documents, and whether it is new: one that lies beside the questions, or made.

    Args:
        out: where the questions go.
        asked: settings, as ``key=value``, that a new one says, so that going on by it asks the same.
        writes: whether it may be made there; else in a folder that is gone with the process.

    Raises:
        UsageError: `config` is given too; or the file that is there is about other documents.
        ConfigError: what is asked cannot be.
        NotFoundError: there is no such folder.
    """
    if config is not None:
        raise UsageError("DOCS and --config both say what is asked about", remedy="leave one out")
    if not documents.is_dir():
        told = "is a file, not a folder of documents" if documents.exists() else "no such folder"
        raise UsageError(told, where=documents, remedy="name the folder that holds the documents")
    file = (out or QUESTIONS).parent / FILE
    if file.exists():
        _check_same(file, documents)
        return file, False
    where = file if writes else _passing() / FILE
    with disk(where, "name another folder with --out"):
        where.parent.mkdir(parents=True, exist_ok=True)
        text = _text(documents, out or QUESTIONS, where.parent if writes else None)
        write_atomic(where, text.encode())
        if asked and writes:
            _say_what_is_asked(where, text, asked)
    return where, True


def says_otherwise(file: Path, run: RunConfig) -> bool:
    """Whether going on by the file alone would make other questions than those of `run`."""
    told = load_config(file).run
    return (told.questions, told.corpus, told.embed) != (run.questions, run.corpus, run.embed)


def _say_what_is_asked(where: Path, text: str, asked: Sequence[str]) -> None:
    """Put settings into a new file; it stays as it is where they cannot be put in so that it says the same."""
    try:
        meant = load_config(where, asked).run
    except RaggsError:
        where.unlink(missing_ok=True)  # or the call that mends it would find a file that says something else
        raise
    write_atomic(where, _with(text, read_source(where, {}).values, asked).encode())
    try:
        same = load_config(where).run == meant
    except ConfigError:  # a list's entry by its name
        same = False
    if not same:
        write_atomic(where, text.encode())


def _with(text: str, values: dict[str, object], asked: Sequence[str]) -> str:
    """The file's text with sections that say what is asked, their comments kept; each in few lines."""
    for setting in asked:
        key, _, value = setting.partition("=")
        *above, last = split_key(key.strip())
        level = values
        for step in above:
            found = level.setdefault(step, {})
            level = found if isinstance(found, dict) else {}
        level[last] = parse_value(value)
    blocks = text.rstrip("\n").split("\n\n")
    for section in dict.fromkeys(split_key(setting.partition("=")[0].strip())[0] for setting in asked):
        own = next((block for block in blocks if block.startswith(f"{section}:")), f"{section}:")
        comment = "#" + own.partition("\n")[0].partition("#")[2] if "#" in own.partition("\n")[0] else ""
        held = values[section]
        inner = held if isinstance(held, dict) else {}
        lines = [f"  {_flow(key)}: {_flow(each)}" for key, each in inner.items()]
        head = f"{section}:" if lines else f"{section}: {_flow(held)}"
        new = "\n".join([f"{head:<33} {comment}".rstrip(), *lines])
        blocks = [new if block == own else block for block in blocks] if own in blocks else [*blocks, new]
    return "\n\n".join(blocks) + "\n"


def _flow(value: object) -> str:
    """On one line, as YAML reads it; names stand bare, and a dollar is no variable."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    plain = isinstance(value, str) and re.fullmatch(r"[a-z_]+", value) and parse_value(value) == value
    return str(value) if plain else json.dumps(value, ensure_ascii=False).replace("$", "$$")


def _passing() -> Path:
    """A folder that is gone with the process."""
    folder = tempfile.mkdtemp(prefix="raggs-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def asker_setting(text: str) -> str:
    """The value of `questions.ask.asker` that one word stands for: ``litellm:openai/gpt-5-mini``.

    Raises:
        UsageError: no such asker, or no such setting.
    """
    found = parse_spec(text, askers.REGISTRY, AdapterConfig)
    return json.dumps({"type": found.type, **found.model_dump(mode="json", exclude_unset=True)}, ensure_ascii=False)


def _check_same(file: Path, documents: Path) -> None:
    path = getattr(load_config(file).run.corpus, "path", None)
    if not isinstance(path, Path) or path.resolve() != documents.resolve():
        raise UsageError(
            f"is there already, and its corpus is not {documents}",
            where=file,
            remedy=f"pass --config {file} for its own corpus, or --out FILE in another folder",
        )


def _text(documents: Path, out: Path, beside: Path | None) -> str:
    """The file's text. `beside`: the folder that its paths start from; None: they are absolute."""
    name = re.sub(r"[^\w.-]+", "-", documents.resolve().name).strip(".-") or "documents"
    folder = documents.resolve() if beside is None else Path(os.path.relpath(documents, beside))
    return TEMPLATE.format(
        name=json.dumps(name, ensure_ascii=False),
        documents=_flow(folder.as_posix()),
        format=format_of(out),
        questions=_flow(out.name),
    )
