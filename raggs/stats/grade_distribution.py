"""Probabilities of the grades 1 to 5, from the answer of a model that states a probability for each option.

`option_shares` turns the probabilities that an answer lists into one number per option. It applies these rules, in this
order:

- An answer is unusable if one of its probabilities is NaN, infinite, negative or above 1e9, or if all are 0. It is also
  unusable if it lists none.
- Several entries of one option are added ("3" and " 3" are two tokens of one grade).
- If the listed probabilities add up to more than 1, all are divided by their sum. If a closed list names every option,
  all are divided by their sum even if it is below 1.
- If less than half of the probability is on options, the answer is unusable.
- Options that are not listed share the probability that is left, equally. None gets more than the smallest listed
  probability, because lists contain the most probable entries.
- The result is divided by its sum.

`canonical` rounds probabilities so that they add up to exactly 1. Stored distributions are canonical, so equal answers
give equal bytes. The grade of a distribution is its lower median (`median_grade`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from raggs.base.types import as_list, as_object

GRADE_COUNT = 5
UNITS = 10_000  # a canonical probability is a multiple of 1 / UNITS
LEAST_MASS = 0.5  # least probability of the options, below which an answer is unusable
MAX_PROBABILITY = 1e9  # larger numbers are neither probabilities nor percentages
ROUNDING = 1e-6  # tolerance for sums of probabilities that a server rounded
# A grade as a model may spell it. Tokenizers mark a leading space by "▁" or "Ġ".
GRADE_SPELLING = re.compile(
    r"""[\s▁Ġ"'`*#(\[{:]*(?:(?:grade|score|level|rating|note|niveau)[\s▁Ġ"'`*:=_]*)?([1-5])[\s▁Ġ"'`*.,;:)\]}]*""",
    re.IGNORECASE,
)

Distribution = tuple[float, ...]


def grade_named(name: str) -> int | None:
    """Return the grade that a token or an option names, such as "3", " 3", "Grade 3" or "3."; None for other text."""
    found = GRADE_SPELLING.fullmatch(name)
    return None if found is None else int(found[1])


def probability(value: object) -> float:
    """Return a stated probability.

    Raises:
        ValueError: it is not a number from 0 to 1e9.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a probability is not a number")
    if not 0 <= value <= MAX_PROBABILITY:  # false for NaN
        raise ValueError("a probability is negative, infinite or not a number")
    return float(value)


def log_probability(value: object) -> float:
    """Return the probability of a stated log-probability.

    Raises:
        ValueError: it is not a finite number of at most 0, up to rounding.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a log-probability is not a number")
    if not -math.inf < value <= ROUNDING:
        raise ValueError("a log-probability is positive, infinite or not a number")
    return math.exp(min(0.0, max(value, -MAX_PROBABILITY)))


def option_shares(
    listed: Iterable[tuple[int | None, float]], options: int = GRADE_COUNT, *, closed: bool
) -> Distribution:
    """Return a probability per option from the listed ones, by the rules of the module.

    Args:
        listed: for each entry the number of its option from 0, or None if it names no option, and its probability.
        options: number of options.
        closed: whether only options can be listed, so that a complete list accounts for all probability.

    Raises:
        ValueError: nothing is listed, a probability is out of range, all are 0, or less than `LEAST_MASS` is on
            options.
    """
    entries = [(option, probability(share)) for option, share in listed]
    total = math.fsum(share for _, share in entries)
    if not entries or total <= 0:
        raise ValueError("no option has a probability")
    named: dict[int, float] = {}
    for option, share in entries:
        if option is not None:
            named[option] = named.get(option, 0.0) + share
    missing = [option for option in range(options) if option not in named]
    scale = total if total > 1 or (closed and not missing) else 1.0
    mass = math.fsum(named.values()) / scale
    if mass < LEAST_MASS - ROUNDING:
        raise ValueError(f"only {mass:.0%} of the probability is on the options")
    if missing:
        left = max(0.0, 1.0 - total / scale)
        least = min(share for _, share in entries) / scale
        named.update(dict.fromkeys(missing, min(left / len(missing), least) * scale))
    whole = math.fsum(named.values())
    return tuple(named[option] / whole for option in range(options))


def canonical(shares: Sequence[float]) -> Distribution:
    """Return the shares rounded to multiples of 0.0001 that add up to exactly 1, by largest remainder.

    Of equal remainders, the first one is rounded up.

    Raises:
        ValueError: a share is not a number from 0 to 1e9, or all are 0.
    """
    known = [probability(share) for share in shares]
    whole = math.fsum(known)
    if not whole > 0:
        raise ValueError("no option has a probability")
    exact = [share / whole * UNITS for share in known]
    units = [math.floor(each + ROUNDING) for each in exact]
    rest = UNITS - sum(units)
    by_remainder = sorted(range(len(units)), key=lambda place: round(units[place] - exact[place], 6))
    for place in by_remainder[:rest]:
        units[place] += 1
    return tuple(round(each / UNITS, 4) for each in units)


def median_grade(distribution: Sequence[float]) -> int:
    """Return the lower median of a canonical distribution: the lowest grade such that it and all lower grades have at
    least half of the probability.

    Raises:
        ValueError: the probabilities add up to less than a half.
    """
    below = 0
    for grade, share in enumerate(distribution, start=1):
        below += round(share * UNITS)
        if 2 * below >= UNITS:
            return grade
    raise ValueError("the probabilities add up to less than a half")


def mean_distribution(found: Sequence[Sequence[float]], weights: Sequence[float] | None = None) -> Distribution:
    """Return the canonical mean of one or more distributions. `weights` has one value above 0 for each of them."""
    weights = [1.0] * len(found) if weights is None else weights
    return canonical(
        [
            math.fsum(weight * share for weight, share in zip(weights, shares, strict=True))
            for shares in zip(*found, strict=True)
        ]
    )


def distribution_of_levels(answer: Mapping[str, object]) -> Distribution:
    """Return the canonical distribution of the answer to a score question with the levels "1" to "5".

    `probabilities` of the answer is a list of objects, each with a `probability`, and a `label` or a `value`. If it is
    an object of names and probabilities, each name counts as a `value`. The level of an entry is:

    - the grade that its `label` names, if it names one
    - otherwise, the grade that a text in `value` names, or the level from 0 if one of these texts is "0"
    - otherwise, the level from 0 that a number in `value` gives, or from 1 if one of these numbers is 5

    Raises:
        ValueError: the probabilities cannot be used; see `option_shares`.
    """
    items = _items(answer)
    values = [item.get("value") for item in items]
    from_zero, from_one = "0" in values, GRADE_COUNT in values
    listed = [(_level(item, from_zero, from_one), probability(item.get("probability"))) for item in items]
    return canonical(option_shares(listed, closed=True))


def distribution_of_choices(answer: Mapping[str, object], labels: Sequence[str]) -> Distribution:
    """Return the canonical probabilities of the answer to a choice question, in the order of `labels`.

    Raises:
        ValueError: the probabilities cannot be used; see `option_shares`.
    """
    places = {label: place for place, label in enumerate(labels)}
    listed = [
        (places.get(value.strip()) if isinstance(value := item.get("value"), str) else None, item.get("probability"))
        for item in _items(answer)
    ]
    stated = [(place, probability(share)) for place, share in listed]
    return canonical(option_shares(stated, len(labels), closed=True))


def distribution_of_tokens(tokens: object) -> Distribution:
    """Return the canonical distribution of the first token whose alternatives have enough probability on grades.

    Args:
        tokens: for each token of the answer its alternatives, each with its text and its log-probability.

    Raises:
        ValueError: there is no such token, or a log-probability cannot be used.
    """
    problem = ValueError("it holds no log-probabilities")
    for alternatives in as_list(tokens):
        pairs = [pair for pair in map(as_list, as_list(alternatives)) if len(pair) == 2]
        listed = [(_grade_place(text), log_probability(value)) for text, value in pairs]
        try:
            return canonical(option_shares(listed, closed=False))
        except ValueError as error:
            problem = error
    raise problem


def _items(answer: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return the listed probabilities of an answer as objects."""
    found = answer.get("probabilities")
    if isinstance(found, Mapping):
        return [{"value": name, "probability": share} for name, share in found.items()]
    return [as_object(item) for item in as_list(found)]


def _level(item: Mapping[str, object], from_zero: bool, from_one: bool) -> int | None:
    """Return the number of an item's level from 0, or None.

    Args:
        from_zero: whether texts count levels from 0, and do not name grades.
        from_one: whether numbers count levels from 1.
    """
    value = item.get("value")
    if (place := _grade_place(item.get("label"))) is not None:
        return place
    if isinstance(value, str) and not from_zero:
        return _grade_place(value)
    if isinstance(value, str) and value.isdecimal() and len(value) == 1:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    level = value - from_one
    return level if 0 <= level < GRADE_COUNT else None


def _grade_place(text: object) -> int | None:
    """Return the place of the grade that a text names, from 0; None if it names none."""
    grade = grade_named(text) if isinstance(text, str) else None
    return None if grade is None else grade - 1
