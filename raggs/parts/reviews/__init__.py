"""Human labels: kept for good, one line per label, and folded to the labels that hold now."""
