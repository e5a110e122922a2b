"""What a server remembers of prompts, as providers do: the beginnings that it has answered before.

A prompt is its form of answers (which providers put first), then its messages. It is remembered in steps of `step`
tokens from `least` on, and only from when its answer ends. Tokens are characters / 4. `seen` keeps for each request
what it sent, what was remembered of it, and what it had in common with any earlier prompt, however short.
"""

from __future__ import annotations

import bisect
import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

CHARACTERS = 4  # of a token


@dataclass(frozen=True)
class Seen:
    """One request, in tokens. `form`: what was asked for; `common`: what began like an earlier, answered prompt."""

    model: str
    form: str
    sent: int
    cached: int
    common: int
    said: int


@dataclass
class Prefixes:
    """The cache. `least`: tokens from which on anything is remembered; `step`: of what is remembered."""

    least: int = 1024
    step: int = 128
    seen: list[Seen] = field(default_factory=list)
    _kept: set[bytes] = field(default_factory=set)
    _texts: dict[str, list[str]] = field(default_factory=dict)
    _begun: dict[int, tuple[int, int]] = field(default_factory=dict)

    def begins(self, body: dict[str, Any]) -> None:
        """A request has come: what is remembered of it now is what it is told at its end."""
        text, model = prompt_of(body), body["model"]
        steps = [size for size in self._steps(text) if _hash(model, text, size) in self._kept]
        self._begun[id(body)] = max(steps, default=0), self._common(model, text)

    def ends(self, body: dict[str, Any], said: int) -> dict[str, Any]:
        """Its answer ends: the usage, in OpenAI's form; from now on the prompt is remembered."""
        text, model = prompt_of(body), body["model"]
        cached, common = self._begun.pop(id(body), (0, 0))
        sent = len(text) // CHARACTERS
        self.seen.append(Seen(model, form_of(body), sent, cached, common, said))
        self._kept.update(_hash(model, text, size) for size in self._steps(text))
        bisect.insort(self._texts.setdefault(model, []), text)
        details = {"cached_tokens": cached}
        usage = {"prompt_tokens": sent, "completion_tokens": said, "total_tokens": sent + said}
        return {**usage, "prompt_tokens_details": details}

    def _steps(self, text: str) -> range:
        return range(self.least, len(text) // CHARACTERS + 1, self.step)

    def _common(self, model: str, text: str) -> int:
        texts = self._texts.get(model, [])
        place = bisect.bisect(texts, text)
        near = texts[max(0, place - 1) : place + 1]
        return max((_shared(text, other) for other in near), default=0) // CHARACTERS


def prompt_of(body: dict[str, Any]) -> str:
    """All that is sent, in the order in which providers read it."""
    form = json.dumps(body.get("response_format", {}).get("json_schema", {}).get("schema", {}))
    return "\n".join([form, *(f"{message['role']}\n{_text(message['content'])}" for message in body["messages"])])


def form_of(body: dict[str, Any]) -> str:
    """What is asked for: "grade", "order", ..."""
    return str(body.get("response_format", {}).get("json_schema", {}).get("name", ""))


def _text(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _shared(one: str, other: str) -> int:
    return next(
        (place for place, (left, right) in enumerate(zip(one, other, strict=False)) if left != right),
        min(len(one), len(other)),
    )


def _hash(model: str, text: str, size: int) -> bytes:
    return sha256(f"{model}\n{text[: size * CHARACTERS]}".encode()).digest()
