"""Measures of retrieval against a golden set, and what can be said from them."""
