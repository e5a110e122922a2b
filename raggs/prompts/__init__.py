"""Prompts: versioned Markdown files, validated when they are loaded.

A prompt has one file per language, such as `grade@1.en.md`. The text above the first heading is a note for readers of
the file; it is never sent to a model. The note is followed by the parts `# system` (optional) and `# user`, with
placeholders such as `{{query}}`. A published version never changes: an improved prompt becomes `grade@2`.

Values are inserted once, and placeholders in an inserted value are not replaced. So a passage that contains `{{query}}`
stays unchanged.

The module also labels the passages in a prompt, and defines the schemas of answers per label and of orders.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from raggs.base.errors import ConfigError, NotFoundError
from raggs.base.files import regular_file
from raggs.base.hashing import hash_value
from raggs.base.text import did_you_mean

PromptUse = Literal[
    "grade",
    "digit",
    "grades",
    "order",
    "rewrite",
    "standalone",
    "hyde",
    "multi_query",
    "rerank",
    "relevance",
    "split",
    "ask",
    "answer",
    "correct",
    "evidence",
    "suffices",
]

TASKS: tuple[PromptUse, ...] = get_args(PromptUse)
FOLDER = Path(__file__).parent
FALLBACK_LANGUAGE = "en"
PLACEHOLDERS: Mapping[PromptUse, frozenset[str]] = {
    "grade": frozenset({"query", "passage"}),
    "digit": frozenset({"query", "passage"}),
    "grades": frozenset({"query", "passages"}),
    "order": frozenset({"query", "passages"}),
    "rewrite": frozenset({"query"}),
    "standalone": frozenset({"query", "history"}),
    "hyde": frozenset({"query", "count"}),
    "multi_query": frozenset({"query", "count"}),
    "rerank": frozenset({"query", "passages"}),
    "relevance": frozenset({"query", "passage"}),
    "split": frozenset({"pieces"}),
    "ask": frozenset({"kind", "style", "persona", "earlier", "texts"}),
    "answer": frozenset({"query", "passages"}),
    "correct": frozenset({"query", "reference", "answer"}),
    "evidence": frozenset({"query", "passages", "sets", "members"}),
    "suffices": frozenset({"query", "passages"}),
}
PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
HEADING = re.compile(r"^# (system|user)[ \t]*$", re.MULTILINE)
FILE_NAME = re.compile(r"(?P<stem>.+?)(?:\.(?P<language>[a-z]{2}))?\.md")


@dataclass(frozen=True)
class Template:
    """One language of a prompt. `note` is the first line of the note, which is not sent to a model."""

    system: str
    user: str
    note: str = ""


@dataclass(frozen=True)
class Prompt:
    """A prompt: its templates by language (ISO 639-1 code)."""

    name: str
    templates: Mapping[str, Template]

    @cached_property
    def sha256(self) -> str:
        """Hash of everything that can be sent, over all languages, without notes."""
        return hash_value({language: [part.system, part.user] for language, part in self.templates.items()})

    def template(self, language: str) -> Template:
        """Return the template in `language`, otherwise in English, otherwise in the first available language."""
        return (
            self.templates.get(language) or self.templates.get(FALLBACK_LANGUAGE) or next(iter(self.templates.values()))
        )

    def text(self, language: str = FALLBACK_LANGUAGE) -> str:
        """Return the prompt's text without inserted values, for cost estimates."""
        template = self.template(language)
        return f"{template.system}\n{template.user}"

    def render(self, language: str, **fields: str) -> list[dict[str, str]]:
        """Return the messages, with `fields` inserted for the placeholders."""
        template = self.template(language)
        parts = (("system", template.system), ("user", template.user))
        return [{"role": role, "content": _fill(text, fields)} for role, text in parts if text]


def load_prompt(name_or_path: str | Path, task: PromptUse, base: Path | None = None) -> Prompt:
    """Return the prompt with that name, or in that file.

    Args:
        name_or_path: a known name ("grade@1"), or the path of a Markdown file. A text with a slash or ending in ".md"
            is a path. `mine.md` counts as English; a name such as `mine.fr.md` states another language. Files next to
            it that differ only in the language are loaded, too.
        task: task of the prompt, which determines its placeholders.
        base: folder of relative paths.

    Raises:
        NotFoundError: the file does not exist.
        ConfigError: the name is unknown, or a part or placeholder is missing or unknown.
    """
    name = str(name_or_path)
    if isinstance(name_or_path, Path) or name.endswith(".md") or "/" in name or "\\" in name:
        files = _languages_of((base or Path()) / name_or_path)
    else:
        files = _prompt_files(task).get(name) or {}
        if not files:
            raise _unknown_prompt_error(name, task)
    return Prompt(_stem(name), {language: _read(path, task) for language, path in sorted(files.items())})


def known_prompts() -> dict[str, str]:
    """Return the names and notes of the prompts that are shipped with raggs."""
    return {
        name: load_prompt(name, task).template(FALLBACK_LANGUAGE).note for task in TASKS for name in _prompt_files(task)
    }


def shipped_prompt(name: str) -> tuple[Prompt, Mapping[str, Path]]:
    """Return a shipped prompt of any task, and its file in each language.

    Raises:
        ConfigError: the name is unknown.
    """
    for task in TASKS:
        if files := _prompt_files(task).get(name):
            return load_prompt(name, task), files
    raise ConfigError(f"unknown prompt {name!r}", remedy=did_you_mean(name, known_prompts()))


def _prompt_files(task: PromptUse) -> dict[str, dict[str, Path]]:
    """Return the files of the task's prompts, by name and language."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(FOLDER.glob(f"{task}@*.md")):
        found.setdefault(_stem(path.name), {})[_language(path)] = path
    return found


def _unknown_prompt_error(name: str, task: PromptUse) -> ConfigError:
    known = _prompt_files(task)
    listed = f"known for this task: {', '.join(known)}; or give the path of a Markdown file"
    return ConfigError(f"unknown prompt {name!r}", remedy=did_you_mean(name, known, listed))


def _languages_of(path: Path) -> dict[str, Path]:
    """Return the file at `path`, and the files next to it that differ only in the language."""
    if not path.is_file():
        raise NotFoundError("there is no such prompt", where=path, remedy="give a known name or an existing file")
    beside = (
        entry for entry in path.parent.iterdir() if entry.suffix == ".md" and _stem(entry.name) == _stem(path.name)
    )
    return {_language(entry): entry for entry in beside} | {_language(path): path}


def _stem(name: str) -> str:
    match = FILE_NAME.fullmatch(Path(name).name)
    return match["stem"] if match else Path(name).name


def _language(path: Path) -> str:
    match = FILE_NAME.fullmatch(path.name)
    return (match and match["language"]) or FALLBACK_LANGUAGE


def _read(path: Path, task: PromptUse) -> Template:
    try:
        text = regular_file(path).read_text(encoding="utf-8")
    except OSError as error:
        remedy = "give a file that you may read"
        raise NotFoundError(f"cannot be read: {error.strerror}", where=path, remedy=remedy) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"byte {error.start} is not UTF-8", where=path, remedy="save the file as UTF-8") from None
    note, *parts = HEADING.split(text)
    headings, bodies = parts[::2], [body.strip() for body in parts[1::2]]
    found = dict(zip(headings, bodies, strict=True))
    if len(found) < len(headings) or not found.get("user"):
        remedy = 'add text under "# user", and remove repeated headings'
        raise ConfigError('a prompt has one part "# user" and at most one "# system"', where=path, remedy=remedy)
    _check_placeholders(PLACEHOLDER.findall(text[len(note) :]), task, path)
    return Template(found.get("system", ""), found["user"], note.strip().partition("\n")[0])


def _check_placeholders(found: Iterable[str], task: PromptUse, path: Path) -> None:
    wanted, present = PLACEHOLDERS[task], set(found)
    listed = f"a prompt for this task has {', '.join(f'{{{{{name}}}}}' for name in sorted(wanted))}"
    for name in sorted(present - wanted):
        remedy = did_you_mean(name, wanted, listed)
        raise ConfigError(f"unknown placeholder {{{{{name}}}}}", where=path, remedy=remedy)
    for name in sorted(wanted - present):
        raise ConfigError(f"the placeholder {{{{{name}}}}} is missing", where=path, remedy=listed)


def _fill(text: str, fields: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda match: fields[match[1]], text)


def labels_for(count: int) -> tuple[str, ...]:
    """Return the labels A, B, ..., Z, AA, AB, ..., as in spreadsheet columns."""
    return tuple(_label(position) for position in range(count))


def label_texts(texts: Sequence[str], guard: Callable[[str], str]) -> str:
    """Return all texts under their labels, each between markers that guard against prompt injection."""
    labels = labels_for(len(texts))
    return "\n\n".join(f"Passage {label}:\n{guard(text)}" for label, text in zip(labels, texts, strict=True))


def schema_by_label(labels: Sequence[str], schema: Mapping[str, object]) -> dict[str, object]:
    """Return the schema of one answer per label: an object with the labels as keys, so that each label occurs once."""
    return {
        "type": "object",
        "properties": {label: dict(schema) for label in labels},
        "required": list(labels),
        "additionalProperties": False,
    }


def order_schema(labels: Sequence[str]) -> dict[str, object]:
    """Return the schema of an order. Providers cannot enforce unique labels, so the function that reads the answer
    checks it.
    """
    return {
        "type": "object",
        "properties": {"order": {"type": "array", "items": {"type": "string", "enum": list(labels)}}},
        "required": ["order"],
        "additionalProperties": False,
    }


def _label(position: int) -> str:
    head, tail = divmod(position, 26)
    return (_label(head - 1) if head else "") + chr(ord("A") + tail)
