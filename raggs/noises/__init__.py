"""What people say around a question, by seeded generators: greetings, fillers, digressions, emoji, slips.

One file each and one line here, as other adapters; `levels` puts them together. The same question, seed and level
give the same noise. A few phrases are those of the paper that this follows; the others are written for themselves and
not for the lists of the rewriter `clean`, which knows some and not the rest: docs/diagnose/noise.md says how many.

Imports: tools, probes, libraries, llm, leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.registry import Registry

if TYPE_CHECKING:
    from raggs.noises.base import Noise

REGISTRY: Registry[Noise] = Registry(
    "noise",
    "noises",
    "raggs.noises.base:Noise",
    {
        "greetings": "raggs.noises.greetings:Greetings",
        "fillers": "raggs.noises.fillers:Fillers",
        "digressions": "raggs.noises.digressions:Digressions",
        "personal_context": "raggs.noises.personal_context:PersonalContext",
        "emoji": "raggs.noises.emoji:Emoji",
        "typing_errors": "raggs.noises.typing_errors:TypingErrors",
        "code_switching": "raggs.noises.code_switching:CodeSwitching",
    },
)
