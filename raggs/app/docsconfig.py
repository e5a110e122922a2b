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
from pathlib import Path

from raggs import askers
from raggs.adapter import AdapterConfig
from raggs.atomic import disk, write_atomic
from raggs.chunking.specs import parse_spec
from raggs.config.load import load_config
from raggs.errors import UsageError
from raggs.queries.base import format_of

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


def config_for(documents: Path, config: Path | None, out: Path | None, *, writes: bool = True) -> tuple[Path, bool]:
    """The configuration for a folder of documents, and whether it is new: one that lies beside the questions, or made.

    Args:
        out: where the questions go.
        writes: whether it may be made there; else in a folder that is gone with the process.

    Raises:
        UsageError: `config` is given too; or the file that is there is about other documents.
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
        write_atomic(where, _text(documents, out or QUESTIONS, where.parent if writes else None).encode())
    return where, True


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
        documents=json.dumps(folder.as_posix(), ensure_ascii=False),
        format=format_of(out),
        questions=json.dumps(out.name, ensure_ascii=False),
    )
