"""How measures are written, and what is said about a name that is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import UsageError
from raggs.metrics import parse_measure
from raggs.metrics.measures import REGISTRY, aliases
from raggs.metrics.names import ByMeasure, at_cutoffs, glossary, needs_cutoff, parse_measures


@st.composite
def spelled(draw):
    """A measure with any of its parameters, in a mode."""
    measure = REGISTRY.load(draw(st.sampled_from(sorted(REGISTRY))))
    params = []
    for name in (
        draw(st.lists(st.sampled_from(sorted({*measure.PARAMS} - {measure.AT})), unique=True)) if measure.PARAMS else []
    ):
        wanted = measure.PARAMS[name]
        low, high = wanted.low, wanted.high
        numbers = st.integers(int(low), int(high)) if wanted.whole else st.floats(low, high)
        params.append(f"{name}={draw(numbers)!r}")
    behind = draw(st.integers(1, 10**9)) if measure.AT is None else round(draw(st.floats(0, 1)), 6)
    text = measure.NAME + (f"({','.join(params)})" if params else "") + f"@{behind}"
    mode = draw(st.sampled_from(["", "E", "range", "bias", "min", "max"])) if measure.TIES else ""
    return f"{mode}[{text}]" if mode else text


@given(spelled())
def test_a_canonical_name_parses_back_to_itself(text):
    named = parse_measure(text)
    again = parse_measure(named.name)
    assert again == named
    assert again.name == named.name
    assert parse_measure(f"  {named.name.upper()} ").name == named.name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("nDCG@10", "ndcg@10"),
        ("P@5", "precision@5"),
        ("P(rel=4)@10", "precision(rel=4)@10"),
        ("R@100", "recall@100"),
        ("AP", "map"),
        ("AP(rel=2)@7", "map(rel=2)@7"),
        ("RR", "mrr"),
        ("recip_rank", "mrr"),
        ("Success@1", "hit@1"),
        ("Judged@10", "judged@10"),
        ("Bpref", "bpref"),
        ("RBP(p=0.8)@10", "rbp@10"),
        ("Rprec", "rprec"),
        ("IPrec@0.25", "iprec@0.25"),
        ("IPrec(rel=2)@.1", "iprec(rel=2)@0.1"),
        ("iprec_at_recall@1", "iprec@1"),
        ("SetP(rel=2)", "set_p(rel=2)"),
        ("SetR", "recall"),
        ("set_F(beta=0.5)", "set_f(beta=0.5)"),
        ("infAP", "infap"),
        ("ERR@20", "err@20"),
        ("unj@5", "unj@5"),
        ("INST(T=2.0,max_rel=3)", "inst(t=2, max_rel=3)"),
        ("BPM(T=2.0,max_rel=1)@10", "bpm(t=2, max_rel=1)@10"),
        ("NERR10(p=0.8,max_rel=1)", "nerr10(p=0.8, max_rel=1)"),
        ("SetAP(rel=2)", "set_ap(rel=2)"),
        ("set_map", "set_ap"),
        ("SetP(relative=True)", "set_p(relative=1)"),
        ("Accuracy(rel=2)@5", "accuracy(rel=2)@5"),
        ("Compat(p=0.9,normalize=False)", "compat(p=0.9, normalize=0)"),
        ("Compat(normalize=True)", "compat"),
        ("RBP(p=0.5)", "rbp(p=0.5)"),
        ("RA_nWG@10", "ra_nwg@10"),
        ("ra_nwg(alpha=1.0)@10", "ra_nwg@10"),
        ("ra_nwg(cap3=0.2, alpha=0)@10", "ra_nwg(alpha=0, cap3=0.2)@10"),
        ("robustness(0.3)@10", "robustness(delta=0.3)@10"),
        ("proc_ra_nwg(100)@10", "proc_ra_nwg(pool=100)@10"),
        ("proc_ra_nwg(1234567)@10", "proc_ra_nwg(pool=1234567)@10"),
        ("rbp(0.12345678)", "rbp(p=0.12345678)"),
        ("e[NDCG@10]", "E[ndcg@10]"),
        ("Range[ R@5 ]", "range[recall@5]"),
        ("Range_At_K[R@5]", "range_at_k[recall@5]"),
        ("retrieval-hit-at-k@5", "hit@5"),
        ("retrieval-recall-at-k@5", "recall@5"),
        ("Retrieval-nDCG-at-k@5", "ndcg@5"),
        ("E[retrieval-mrr]", "E[mrr]"),
        ("answer-containment-at-k@5", "containment@5"),
    ],
)
def test_one_name_for_many_spellings(text, name):
    assert parse_measure(text).name == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not the name of a measure"),
        ("ndcg@", "is not the name of a measure"),
        ("ndcg@-1", "is not the name of a measure"),
        ("ndcg 10", "is not the name of a measure"),
        ("E[ndcg@10", "is not the name of a measure"),
        ("racall@10", "did you mean 'recall'"),
        ("quality@10", "see: raggs list measures"),
        ("ra_nwg", "needs a cutoff"),
        ("precision(rel=2)", "needs a cutoff"),
        ("retrieval-ndcg-at-k", "needs a cutoff"),
        ("retrieval-ndgc-at-k@5", "did you mean"),
        ("ndcg@0", "the cutoff must be in 1 to"),
        ("map@99999999999999999999", "the cutoff must be in 1 to"),
        ("ndcg(rel=2)@10", "parameters of ndcg: none"),
        ("recall(alpha=2)@10", "parameters of recall: rel"),
        ("recall(2)@10", "parameters of recall: rel"),
        ("ra_nwg(alpha=much)@10", "is not a number"),
        ("ra_nwg(alpha=-1)@10", "alpha must be in 0 to 10"),
        ("ra_nwg(cap4=nan)@10", "cap4 must be in 0 to 1"),
        ("rbp(p=1)", "p must be in 0 to 0.9999"),
        ("proc_ra_nwg(pool=2.5)@10", "pool must be a whole number"),
        ("recall(rel=2.5)@10", "rel must be a whole number"),
        ("mean[ndcg@10]", "write one of: E, min, max, range, range_at_k, bias"),
        ("E[E[ndcg@10]]", "is not defined for E[ndcg@10]"),
        ("range[bpref]", "is not defined for bpref"),
    ],
)
def test_errors_name_the_remedy(text, message):
    with pytest.raises(UsageError) as caught:
        parse_measure(text)
    assert message in str(caught.value)


@given(st.text(max_size=20))
def test_any_text_is_a_measure_or_a_usage_error(text):
    try:
        parse_measure(text)
    except UsageError:
        return


def test_a_measure_asked_for_twice_is_computed_once():
    assert [named.name for named in parse_measures(["R@5", "ndcg@3", "recall@5"])] == ["recall@5", "ndcg@3"]


def test_no_alias_hides_a_measure():
    assert not set(aliases()) & set(REGISTRY)


def test_a_range_is_not_better_when_higher():
    assert [parse_measure(text).higher for text in ("ndcg@3", "E[ndcg@3]", "range[ndcg@3]", "harm@3")] == [
        True,
        True,
        False,
        False,
    ]


def test_values_are_found_under_any_spelling():
    found = ByMeasure({"recall@5": 1.0})
    assert (found["R@5"], found["recall@5"], dict(found), len(found)) == (1.0, 1.0, {"recall@5": 1.0}, 1)
    assert "recall@6" not in found
    with pytest.raises(KeyError):
        found["nonsense@5"]


def test_cutoffs_are_given_to_names_without_one():
    assert [named.name for named in at_cutoffs("E[P(rel=2)]", [5, 10])] == [
        "E[precision(rel=2)@5]",
        "E[precision(rel=2)@10]",
    ]
    assert [named.name for named in at_cutoffs("ndcg@3", [5])] == ["ndcg@3"]
    assert [named.name for named in at_cutoffs("map", [])] == ["map"]
    asked = {
        "ra_nwg": True,
        "E[ P ]": True,
        "harm()": True,
        "ndcg": False,
        "min[AP]": False,
        "nothing": False,
        "[": False,
    }
    assert {name: needs_cutoff(name) for name in asked} == asked


@pytest.mark.parametrize(
    ("slip", "meant"),
    [("ndgc@10", "ndcg"), ("nDGC@10", "ndcg"), ("E[ndgc@10]", "ndcg"), ("ndcg_epx@5", "ndcg_exp"), ("recal", "recall"),
     ("mpa", "map"), ("mmr@10", "mrr"), ("ranwg@10", "ra_nwg"), ("jugded@10", "judged"), ("hit_al@10", "hit_all")],
)  # fmt: skip
def test_a_slip_of_the_fingers_is_told_from_a_longer_name(slip, meant):
    with pytest.raises(UsageError, match=f"did you mean '{meant}'"):
        parse_measure(slip)


def test_every_measure_has_a_clause_that_fits_a_line_of_80_columns_beside_the_longest_name():
    words = glossary(f"{name}@1" for name in REGISTRY.builtin)
    assert set(words) == set(REGISTRY.builtin)
    longest = max(map(len, words))
    assert {name: said for name, said in words.items() if longest + 2 + len(said) > 80 or not said} == {}


def test_a_glossary_says_each_thing_once_and_passes_over_what_it_does_not_know():
    words = glossary(["E[ndcg@10]", "ndcg@5", "ndcg(rel=2)@5", "precision(rel=2)@5", "gone@5", "min[recall]"])
    assert list(words) == ["ndcg", "precision", "recall", "E[ ]", "min[ ]"]
