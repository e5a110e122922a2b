"""Changes of a text whose effect on a vector or a score is measured: a name masked, an order turned, a case changed.

One file each and one line here, as other adapters. A perturber is seeded: the same text, seed and place give
the same change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raggs.base.registry import Registry

if TYPE_CHECKING:
    from raggs.parts.perturbers.base import Perturber

REGISTRY: Registry[Perturber] = Registry(
    "perturber",
    "perturbers",
    "raggs.parts.perturbers.base:Perturber",
    {
        "hard_name_mask": "raggs.parts.perturbers.identity:HardNameMask",
        "gibberish_name": "raggs.parts.perturbers.identity:GibberishName",
        "edit_distance_near_miss": "raggs.parts.perturbers.identity:EditDistanceNearMiss",
        "remove_label": "raggs.parts.perturbers.identity:RemoveLabel",
        "strip_diacritics": "raggs.parts.perturbers.form:StripDiacritics",
        "initials_form": "raggs.parts.perturbers.identity:InitialsForm",
        "name_order_inversion": "raggs.parts.perturbers.identity:NameOrderInversion",
        "case_punct_perturb": "raggs.parts.perturbers.form:CasePunctPerturb",
        "author_position_shift": "raggs.parts.perturbers.form:AuthorPositionShift",
        "unicode_normalization_stress": ("raggs.parts.perturbers.form:UnicodeNormalizationStress"),
    },
)
