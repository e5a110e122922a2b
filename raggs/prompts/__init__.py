"""Prompts: versioned Markdown files, checked when they are loaded.

A prompt is one file a language, such as `grade@1.en.md`. What stands above the first heading is a note to people
and is never sent; then come the parts `# system` (may be missing) and `# user`, with placeholders like
`{{query}}`. A published version never changes: a better prompt is `grade@2`.

Values are put in once and never looked at again, so a passage with a placeholder in its text stays as it is.

Passages under labels, and the forms in which a model says something of each, or puts them in order.
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

PromptUse = Literal["grade", "grades", "order", "rewrite", "rerank", "relevance", "split", "ask", "answer", "correct"]

TASKS: tuple[PromptUse, ...] = get_args(PromptUse)
FOLDER = Path(__file__).parent
FALLBACK_LANGUAGE = "en"
PLACEHOLDERS: Mapping[PromptUse, frozenset[str]] = {
    "grade": frozenset({"query", "passage"}),
    "grades": frozenset({"query", "passages"}),
    "order": frozenset({"query", "passages"}),
    "rewrite": frozenset({"query"}),
    "rerank": frozenset({"query", "passages"}),
    "relevance": frozenset({"query", "passage"}),
    "split": frozenset({"pieces"}),
    "ask": frozenset({"kind", "style", "persona", "earlier", "texts"}),
    "answer": frozenset({"query", "passages"}),
    "correct": frozenset({"query", "reference", "answer"}),
}
PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
HEADING = re.compile(r"^# (system|user)[ \t]*$", re.MULTILINE)
FILE_NAME = re.compile(r"(?P<stem>.+?)(?:\.(?P<language>[a-z]{2}))?\.md")


@dataclass(frozen=True)
class Template:
    """One language of a prompt. `note` is the line for people."""

    system: str
    user: str
    note: str = ""


@dataclass(frozen=True)
class Prompt:
    """A prompt in its languages, by ISO 639-1 code."""

    name: str
    templates: Mapping[str, Template]

    @cached_property
    def sha256(self) -> str:
        """Hash of everything that can be sent, over all languages; notes do not count."""
        return hash_value({language: [part.system, part.user] for language, part in self.templates.items()})

    def template(self, language: str) -> Template:
        """The template in `language`; else in English; else in the only language there is."""
        return (
            self.templates.get(language) or self.templates.get(FALLBACK_LANGUAGE) or next(iter(self.templates.values()))
        )

    def text(self, language: str = FALLBACK_LANGUAGE) -> str:
        """The prompt's own words, for estimates."""
        template = self.template(language)
        return f"{template.system}\n{template.user}"

    def render(self, language: str, **fields: str) -> list[dict[str, str]]:
        """The messages, with `fields` in place of the placeholders."""
        template = self.template(language)
        parts = (("system", template.system), ("user", template.user))
        return [{"role": role, "content": _fill(text, fields)} for role, text in parts if text]


def load_prompt(name_or_path: str | Path, task: PromptUse, base: Path | None = None) -> Prompt:
    """The prompt of that name, or in that file.

    Args:
        name_or_path: a known name ("grade@1"), or the path of a Markdown file: anything with a slash or ending in
            ".md". `mine.md` is taken for English unless its name says otherwise (`mine.fr.md`); files beside it
            that differ in the language only come along.
        task: what it is for, which fixes its placeholders.
        base: where a relative path starts.

    Raises:
        NotFoundError: no such file.
        ConfigError: no such name; a part or a placeholder is missing, or not known.
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
    """The names of the prompts that come with raggs, and what each is for."""
    return {
        name: load_prompt(name, task).template(FALLBACK_LANGUAGE).note for task in TASKS for name in _prompt_files(task)
    }


def shipped_prompt(name: str) -> tuple[Prompt, Mapping[str, Path]]:
    """A prompt that comes with raggs, whatever its task, and its file in each language.

    Raises:
        ConfigError: no such name.
    """
    for task in TASKS:
        if files := _prompt_files(task).get(name):
            return load_prompt(name, task), files
    raise ConfigError(f"unknown prompt {name!r}", remedy=did_you_mean(name, known_prompts()))


def _prompt_files(task: PromptUse) -> dict[str, dict[str, Path]]:
    """The files of the task's prompts, by name and language."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(FOLDER.glob(f"{task}@*.md")):
        found.setdefault(_stem(path.name), {})[_language(path)] = path
    return found


def _unknown_prompt_error(name: str, task: PromptUse) -> ConfigError:
    known = _prompt_files(task)
    listed = f"known for this task: {', '.join(known)}; or give the path of a Markdown file"
    return ConfigError(f"unknown prompt {name!r}", remedy=did_you_mean(name, known, listed))


def _languages_of(path: Path) -> dict[str, Path]:
    """The file itself, and those beside it that differ in the language only."""
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
        raise NotFoundError(f"cannot be read: {error.strerror}", where=path) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"byte {error.start} is not UTF-8", where=path, remedy="save the file as UTF-8") from None
    note, *parts = HEADING.split(text)
    headings, bodies = parts[::2], [body.strip() for body in parts[1::2]]
    found = dict(zip(headings, bodies, strict=True))
    if len(found) < len(headings) or not found.get("user"):
        raise ConfigError('a prompt has one part "# user" and at most one "# system"', where=path)
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
    """A, B, ..., Z, AA, AB, ...: as columns of a spreadsheet."""
    return tuple(_label(position) for position in range(count))


def label_texts(texts: Sequence[str], guard: Callable[[str], str]) -> str:
    """All texts under their labels, each between marks that guard against orders in it."""
    labels = labels_for(len(texts))
    return "\n\n".join(f"Passage {label}:\n{guard(text)}" for label, text in zip(labels, texts, strict=True))


def schema_by_label(labels: Sequence[str], schema: Mapping[str, object]) -> dict[str, object]:
    """The form of one answer for each label: an object whose keys are the labels, so that each is there once."""
    return {
        "type": "object",
        "properties": {label: dict(schema) for label in labels},
        "required": list(labels),
        "additionalProperties": False,
    }


def order_schema(labels: Sequence[str]) -> dict[str, object]:
    """The form of an order. That labels must not repeat is beyond what providers enforce; whoever reads it checks."""
    return {
        "type": "object",
        "properties": {"order": {"type": "array", "items": {"type": "string", "enum": list(labels)}}},
        "required": ["order"],
        "additionalProperties": False,
    }


def _label(position: int) -> str:
    head, tail = divmod(position, 26)
    return (_label(head - 1) if head else "") + chr(ord("A") + tail)
