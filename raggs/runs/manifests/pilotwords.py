"""What a pilot taught and what lists of each length told for their price, in sentences for people. Computes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from raggs.base.believed import JudgeProfile
from raggs.base.text import plural

WORTH_A_WORD = 0.05  # grades


def care_words(profile: JudgeProfile) -> str:
    """What was learned of a judge, in a line."""
    sharp = f"sharpness {profile.sharpness:.1f} for lists of five"
    falls = [(place + 1, left) for place, left in enumerate(profile.left) if place and left < profile.left[place - 1]]
    care = ", ".join(f"{left:.0%} from pick {pick}" for pick, left in falls)
    tires = f"of its care is left {care}" if care else "its care lasts to the end of a list"
    strain = f", and long lists cost it care (strain {profile.strain:g})" if profile.strain else ""
    repeats = f"; it errs the same way when asked again: echo {profile.echo:.1f}" if profile.echo else ""
    learned = f"of the judge, learned from {plural(profile.questions, 'question')}"
    return f"{learned}: {sharp}; {tires}{strain}{_favour(profile)}{repeats}"


def _favour(profile: JudgeProfile) -> str:
    if not profile.favour:
        return ""
    gain = (profile.favour[0] - profile.favour[-1]) / profile.sharpness
    if abs(gain) < WORTH_A_WORD:
        return "; it favours some places of a list"
    places = ("first", "last") if gain > 0 else ("last", "first")
    return f"; the {places[0]} of a list gains {abs(gain):.1f} grades over the {places[1]}"


def price_words(profile: JudgeProfile, told: Mapping[int, float]) -> str:
    """What lists of each length told for their price, in a line; of the first length 1."""
    first, one = next(iter(told.items()))
    each = ", ".join(f"{length}: {amount / one:.2f}" for length, amount in told.items() if one)
    return (
        f"a call costs as much as {profile.overhead:.1f} passages more; told for the price by lists of each length, "
        f"of {first} = 1: {each}"
    )
