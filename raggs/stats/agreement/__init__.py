"""Do two orders, or two judges, say the same?

Pure: orders of identifiers and arrays of labels in, frozen results out; seeded where a result has a bootstrap
interval. What is undefined is NaN, never a number that looks like an answer, and what was left out is counted.
"""

from raggs.stats.agreement.labels import (
    GRADES,
    AccuracyGivenHit,
    Agreement,
    Checked,
    Confusion,
    Estimate,
    accuracy_given_hit,
    check_labels,
    cohen_kappa,
    confusion,
    count_pairs,
    krippendorff_alpha,
    wilson,
)
from raggs.stats.agreement.orders import (
    RBO,
    Order,
    OrderAgreement,
    compare_orders,
    kendall_tau_b,
    overlap_at_k,
    rbo,
    spearman,
    tau_ap,
)
from raggs.stats.agreement.trust import Trust, trust

__all__ = [
    "GRADES",
    "RBO",
    "AccuracyGivenHit",
    "Agreement",
    "Checked",
    "Confusion",
    "Estimate",
    "Order",
    "OrderAgreement",
    "Trust",
    "accuracy_given_hit",
    "check_labels",
    "cohen_kappa",
    "compare_orders",
    "confusion",
    "count_pairs",
    "kendall_tau_b",
    "krippendorff_alpha",
    "overlap_at_k",
    "rbo",
    "spearman",
    "tau_ap",
    "trust",
    "wilson",
]
