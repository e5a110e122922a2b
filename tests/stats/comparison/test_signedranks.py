import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from raggs.stats import comparison
from raggs.stats.comparison import mean_ranks, signed_rank_test

sixteenths = st.integers(-16, 16).map(lambda step: step / 16)
fine = st.floats(-1, 1, width=32)


@given(st.lists(sixteenths, min_size=1, max_size=30))
def test_ranks_are_those_of_scipy(values):
    ranks, ties = mean_ranks(np.array(values))
    assert ranks.tolist() == scipy_stats.rankdata(values).tolist()
    assert sorted(ties) == sorted(values.count(value) for value in set(values))


@pytest.mark.parametrize("elements", [sixteenths, fine])
@given(data=st.data())
def test_the_p_is_that_of_scipy_with_ties_and_without(elements, data):
    found = data.draw(st.lists(elements.filter(bool), min_size=21, max_size=70))
    assert signed_rank_test(np.array(found)) == pytest.approx(scipy_stats.wilcoxon(found).pvalue, rel=1e-12)


@given(st.lists(fine, min_size=2, max_size=40).map(np.array))
def test_the_p_of_student_is_that_of_scipy(differences):
    assume(np.ptp(differences) > 1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert comparison.t_test(differences) == pytest.approx(
            scipy_stats.ttest_1samp(differences, 0).pvalue, rel=1e-12
        )


@pytest.mark.parametrize(("count", "effect"), [(6, 1.3), (34, 0.5), (199, 0.2), (3_000, 0.05), (800_000, 0.003)])
def test_the_power_is_that_of_the_noncentral_distribution_of_scipy(count, effect):
    least = scipy_stats.t.isf(0.025, count - 1)
    expected = scipy_stats.nct.sf(least, count - 1, effect * count**0.5)
    assert comparison._power(count, effect, 0.05) == pytest.approx(expected, abs=1e-9)


def test_no_test_loads_scipy():
    code = """if True:
        import sys
        import numpy as np
        from raggs.stats.comparison import compare
        found = compare(np.linspace(0, 1, 60), np.linspace(0.3, 0.8, 60) ** 2, seed=1)
        sys.exit("scipy" in sys.modules or found.queries_needed is None)
    """
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
