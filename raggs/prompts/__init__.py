"""Prompts: versioned Markdown files, checked when they are loaded.

A prompt is one file a language, `grade@1.en.md`, with a part `# system` and a part `# user`; what stands above
the first part is a note to people and is not sent. `{{name}}` is a placeholder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

Task = Literal["grade", "order", "rewrite"]


@dataclass(frozen=True)
class Template:
    """One language of a prompt."""

    system: str
    user: str


@dataclass(frozen=True)
class Prompt:
    """A prompt in its languages."""

    name: str
    templates: Mapping[str, Template]

    @cached_property
    def sha256(self) -> str:
        """Hash of all that is sent, over all languages."""
        raise NotImplementedError

    def render(self, language: str, **fields: str) -> list[dict[str, str]]:
        """The messages in `language`, else in English."""
        raise NotImplementedError


def load_prompt(name_or_path: str | Path, task: Task, base: Path | None = None) -> Prompt:
    """The prompt of that name, or in that file."""
    raise NotImplementedError
