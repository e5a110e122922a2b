"""Whether a judge can err, and whether it may abstain, told from its causes as locks keep them, without making one.

A judge that answers by rule has no errors to repeat, and pairs that it cannot tell apart are ties. What is said of the
health of others would be wrong of it.
"""

from __future__ import annotations

from raggs.base.jsontypes import as_list, as_object
from raggs.parts.judges import REGISTRY


def is_exact(causes: object) -> bool:
    """Whether the judge of these causes answers by rule and without noise; only those of raggs itself are believed.

    Causes of orders say nothing of noise in grades: see `grade_noises`.
    """
    found = as_object(causes)
    kind = found.get("type")
    return isinstance(kind, str) and kind in REGISTRY.builtin and REGISTRY.load(kind).exact(dict(found))


def grade_noises(causes: object) -> list[float]:
    """The noise that the judge of these causes adds to labels, and that of the judges that it is made of."""
    found = as_object(causes)
    own = found.get("grade_noise")
    inner = [noise for each in as_list(found.get("judges")) for noise in grade_noises(each)]
    return [*([float(own)] if isinstance(own, int | float) and own else []), *inner]


def may_abstain(settings: object) -> bool:
    """Whether the judge of these settings may abstain from a grade; one that raggs has not itself is taken to."""
    found = as_object(settings)
    kind = found.get("type")
    return not isinstance(kind, str) or kind not in REGISTRY.builtin or REGISTRY.load(kind).abstains(dict(found))
