from __future__ import annotations

import math

import pytest

from raggs.base.errors import DataError
from raggs.metrics.bottleneck import USUAL_PARAMETERS, sensitivity
from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.hits import find_hits
from raggs.metrics.names import parse_measure

# One passage of grade 5, ten of grade 4, three of grade 3: by rarity three 3s outweigh one 4, by utility not.
LABELS = {"best": 5, **{f"good-{n}": 4 for n in range(10)}, **{f"fair-{n}": 3 for n in range(3)}}
LISTS = {"fours": ["good-0"], "threes": ["fair-0", "fair-1", "fair-2"]}


def systems(scale=(1, 5), labels=LABELS):
    qrels = Qrels.of({"one": labels}, GradeScale.of(*scale))
    return {name: find_hits(qrels, Run.of({"one": ids})) for name, ids in LISTS.items()}


def test_a_swap_is_found_where_the_parameters_make_one():
    points = {(point.alpha, point.cap4, point.cap3): point for point in sensitivity(systems(), k=3)}
    assert len(points) == 24
    usual, without_rarity = points[USUAL_PARAMETERS], points[0.0, 1.0, 0.25]
    assert (usual.order, usual.swapped) == (("threes", "fours"), ())
    assert (without_rarity.order, without_rarity.swapped) == (("fours", "threes"), (("fours", "threes"),))
    for (alpha, *_), point in points.items():
        assert bool(point.swapped) is (alpha in (0.0, 0.5) and point.means["fours"] > point.means["threes"])


def test_the_means_are_those_of_the_measure_with_these_parameters():
    for point in sensitivity(systems(), k=3):
        named = parse_measure(f"ra_nwg(alpha={point.alpha}, cap4={point.cap4}, cap3={point.cap3})@3")
        expected = {name: float(named.values(hits)[0]) for name, hits in systems().items()}
        assert point.means == pytest.approx(expected)


def test_where_nothing_is_defined_there_is_no_mean():
    assert all(math.isnan(point.means["fours"]) for point in sensitivity(systems(labels={"poor": 1})))


def test_equal_systems_stand_by_name_and_never_swap():
    same = dict.fromkeys(("b", "a"), systems()["fours"])
    assert all(point.order == ("a", "b") and not point.swapped for point in sensitivity(same))


def test_other_scales_are_refused():
    with pytest.raises(DataError, match="1 to 5"):
        sensitivity(systems(scale=(0, 5)))
