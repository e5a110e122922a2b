"""What people say around a question, by seeded generators: greetings, fillers, digressions, emoji, slips.

One file each and one line here, as other adapters; `levels` puts them together. The same question, seed and level
give the same noise. A few phrases are those of the paper that this follows; the others are written for themselves and
not for the lists of the rewriter `clean`, which knows some and not the rest: docs/diagnose/noise.md says how many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.parts.noises.base import Noise

REGISTRY: Registry[Noise] = Registry(
    "noise",
    "noises",
    "raggs.parts.noises.base:Noise",
    {
        "greetings": "raggs.parts.noises.phrases:Greetings",
        "fillers": "raggs.parts.noises.phrases:Fillers",
        "digressions": "raggs.parts.noises.phrases:Digressions",
        "personal_context": "raggs.parts.noises.phrases:PersonalContext",
        "emoji": "raggs.parts.noises.phrases:Emoji",
        "typing_errors": "raggs.parts.noises.phrases:TypingErrors",
        "code_switching": "raggs.parts.noises.phrases:CodeSwitching",
    },
)
