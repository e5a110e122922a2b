"""The prompts that come with raggs, to be read, and to be begun from with one's own."""

from __future__ import annotations

from dataclasses import dataclass

from raggs.base.errors import NotFoundError
from raggs.base.text import did_you_mean
from raggs.prompts import FALLBACK, known_prompts, shipped_prompt


@dataclass(frozen=True)
class PromptPage:
    """One language of a prompt, as its file has it.

    Attributes:
        name, language: which one this is.
        languages: all that there are.
        note: what it is for, in one line of that language.
        sha256: of all that can be sent, over all languages: what answers in the cache depend on.
        markdown: the file, as `judge.prompt` and its like take one.
    """

    name: str
    language: str
    languages: tuple[str, ...]
    note: str
    sha256: str
    markdown: str


def prompt_page(name: str, language: str = FALLBACK) -> PromptPage:
    """A prompt in one of its languages.

    Raises:
        ConfigError: no such prompt.
        NotFoundError: not in that language.
    """
    prompt, files = shipped_prompt(name)
    if language not in files:
        remedy = did_you_mean(language, files)
        raise NotFoundError(f"{name} is not there in {language!r}; questions in it get {FALLBACK!r}", remedy=remedy)
    note, markdown = prompt.template(language).note, files[language].read_text(encoding="utf-8")
    return PromptPage(name, language, tuple(sorted(files)), note, prompt.sha256, markdown)


def prompt_pages() -> list[PromptPage]:
    """All prompts, in the language that others fall back to."""
    return [prompt_page(name) for name in known_prompts()]
