"""What was published of two paid embedders, to stand beside what is measured here. None of it was repeated by raggs.

Source: "Practical RAG Evaluation" (2025), tables 4.1, 4.2, 10 and 11: mean change of the name margin in percent.
"""

from __future__ import annotations

from collections.abc import Mapping

LARGE, VOYAGE = "text-embedding-3-large", "voyage-3.5"
ORDER = (
    "hard_name_mask", "gibberish_name", "edit_distance_near_miss", "remove_label", "strip_diacritics", "initials_form",
    "name_order_inversion", "case_punct_perturb", "author_position_shift", "unicode_normalization_stress",
)  # fmt: skip
CHANGES: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "en": {
        LARGE: (-100, -76.9, -69.3, -3.0, 0, -11.0, -3.6, -3.0, 8.4, -6.9),
        VOYAGE: (-100, -68.0, -64.4, 15.7, 0, -8.5, -3.2, -7.4, -6.2, -15.1),
    },
    "fr": {
        LARGE: (-100, -71.6, -76.2, 6.1, 2.3, -10.7, 5.0, -3.4, 21.8, -7.9),
        VOYAGE: (-100, -71.4, -69.5, 18.1, -1.5, -18.0, -8.5, -12.6, 8.4, 1.7),
    },
}


def published(language: str, perturber: str) -> dict[str, float]:
    """By embedder, the published change in percent; empty where nothing was."""
    if perturber not in ORDER:
        return {}
    return {name: values[ORDER.index(perturber)] for name, values in CHANGES.get(language, {}).items()}
