"""Who fails, who is in doubt, and the one sentence on all."""

from __future__ import annotations

import pytest

from raggs.diagnosis.names import is_passed, verdict
from raggs.diagnosis.names.models import AblationPart, MarginPart, SubjectPart
from raggs.diagnosis.names.scoring import is_within_limit


def mean(value: float, low: float, high: float) -> MarginPart:
    return MarginPart(value=value, sd=0.1, run_low=low, run_high=high, low=low, high=high, count=10)


def subject(scorer: str, language: str, small: float = 0.0, **changes: tuple[float, float]) -> SubjectPart:
    """Changes by perturber, each as the ends of its interval."""
    parts = []
    for name, (low, high) in changes.items():
        family = "identity" if name == "gibberish_name" else "form"
        percent = mean((low + high) / 2, low, high)
        fields = {"of_means": low, "of_means_low": low, "of_means_high": high, "absolute": percent, "left_out": 0}
        held = is_within_limit(percent, family, 50, 20)
        parts.append(AblationPart(perturber=name, family=family, percent=percent, holds=held, **fields))
    margins = {"name": mean(0.3, 0.2, 0.4), "topic": mean(0.3, 0.2, 0.4), "both": mean(0.6, 0.5, 0.7)}
    ratio = {"ratio": 1.0, "ratio_low": 0.9, "ratio_high": 1.1}
    told = {"what": "embedder", "questions": 5, "runs": 2, "small": small, "ablations": tuple(parts)}
    return SubjectPart(scorer=scorer, language=language, **told, **margins, **ratio)


@pytest.mark.parametrize(
    ("family", "low", "high", "held"),
    [
        ("identity", -70, -50, True),
        ("identity", -60, -40, None),
        ("identity", -49, -40, False),
        ("form", -20, 30, True),
        ("form", -25, -15, None),
        ("layout", -30, -21, False),
    ],
)
def test_a_limit_holds_where_the_whole_interval_keeps_it(family, low, high, held):
    assert is_within_limit(mean((low + high) / 2, low, high), family, 50, 20) is held


def test_all_hold():
    subjects = [subject(name, "en", gibberish_name=(-80, -60), initials_form=(-5, 1)) for name in ("a", "b")]
    assert is_passed(subjects) is True
    assert verdict(subjects, 50, 20).startswith("a and b distinguish names within the limits: removing the identity")


def test_whoever_fails_is_named_with_what_over_languages():
    subjects = [
        subject("a", "en", gibberish_name=(-40, -20), initials_form=(-40, -30)),
        subject("a", "fr", initials_form=(-31, -29)),
        subject("b", "en", initials_form=(-25, -15)),
    ]
    assert is_passed(subjects) is False
    told = '"names as random codes" leaves 70% (en) of the name margin and "initials only" costs 35% (en) and 30% (fr)'
    assert verdict(subjects, 50, 20) == f"a fails: {told} of the name margin."


def test_doubt_names_its_perturber():
    subjects = [subject("a", "en", gibberish_name=(-80, -60)), subject("b", "fr", initials_form=(-25, -15))]
    assert is_passed(subjects) is None
    assert "b under initials only (fr) cannot be distinguished from the limit" in verdict(subjects, 50, 20)


def test_who_tells_nobody_apart_fails_whatever_the_changes():
    subjects = [subject("a", "fr", small=0.6, gibberish_name=(-80, -60))]
    assert is_passed(subjects) is False
    told = "a fails: it hardly distinguishes names in fr."
    assert verdict(subjects, 50, 20) == told
