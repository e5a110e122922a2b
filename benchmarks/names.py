"""Run `raggs diagnose names` with the offline embedder, and check its gates, margins and time.

    python benchmarks/names.py            100 queries per language, 15 runs, three seeds; half a minute each

A masked name costs the whole margin, codes and near misses cost half of it or more, and order, position and case at
most 2%. Other code points cost at most 1% after texts are cleaned. The exit code is 1 if one of these conditions
fails.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import raggs
from raggs.diagnosis.names.models import NamesFindings, SubjectPart

GATES = {
    "hard_name_mask": (-100.0, -100.0),
    "gibberish_name": (-100.0, -50.0),
    "edit_distance_near_miss": (-100.0, -50.0),
    "name_order_inversion": (-2.0, 2.0),
    "author_position_shift": (-2.0, 2.0),
    "case_punct_perturb": (-2.0, 2.0),
    "unicode_normalization_stress": (-1.0, 1.0),
}


def measure(seed: int, runs: int, *, raw: bool) -> tuple[NamesFindings, float]:
    """Return the result of the diagnosis and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        found = raggs.diagnose("names", out=Path(folder) / "names", seed=seed, runs=runs, raw=raw).found
        took = time.perf_counter() - began
    if not isinstance(found, NamesFindings):
        raise TypeError("findings of another kind")
    return found, took


def percent(subject: SubjectPart, perturber: str) -> float:
    """Return the mean change of the name margin."""
    found = next(part.percent.value for part in subject.ablations if part.perturber == perturber)
    return float("nan") if found is None else found


def show(seed: int, found: NamesFindings, took: float) -> bool:
    """Print the figures of a seed and return whether all gates pass."""
    print(f"seed {seed}: {took:.1f} s")
    good = True
    for subject in found.subjects:
        margins = ", ".join(f"{part.value:.3f}" for part in (subject.name, subject.topic, subject.both))
        print(f"  {subject.language}: name, topic, both {margins}; name / topic {subject.ratio:.2f}")
        for perturber, (low, high) in GATES.items():
            value = percent(subject, perturber)
            held = low - 1e-9 <= value <= high + 1e-9
            good &= held
            print(f"    {perturber:<30} {value:+7.1f} %  {'' if held else f'beyond {low:g} to {high:g}'}")
    return good


def main() -> int:
    """Check all seeds, then the first of them without hygiene."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=15)
    given = parser.parse_args()
    held = [show(seed, *measure(seed, given.runs, raw=False)) for seed in range(given.seeds)]
    found, _ = measure(0, given.runs, raw=True)
    for subject in found.subjects:
        print(f"raw {subject.language}: {percent(subject, 'unicode_normalization_stress'):+.1f} % by other code points")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
