"""Cosines that were published for other models: "Practical RAG Evaluation" (2025), table 12. Not repeated here."""

from __future__ import annotations

from raggs.diagnosis.noise.models import TargetPart

LARGE, SMALL = "large model, published", "small model, published"
TABLE_12: dict[tuple[str, int], tuple[float, float]] = {
    ("fr", 0): (0.818, 0.936),
    ("fr", 2): (0.653, 0.757),
    ("fr", 4): (0.522, 0.559),
    ("en", 0): (0.828, 0.908),
    ("en", 2): (0.749, 0.806),
    ("en", 4): (0.593, 0.634),
}


def targets(languages: tuple[str, ...]) -> tuple[TargetPart, ...]:
    """Of these languages, by language and level."""
    return tuple(
        TargetPart(model=model, language=language, level=level, cosine=cosine)
        for (language, level), pair in TABLE_12.items()
        if language in languages
        for model, cosine in zip((LARGE, SMALL), pair, strict=True)
    )
