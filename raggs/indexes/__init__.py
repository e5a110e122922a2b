"""What searching needs on disk: the passages of a corpus and their vectors, each built once and never changed.

Imports: leaves.
"""
