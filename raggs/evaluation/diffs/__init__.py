"""Two golden sets, or two runs, held beside each other: what is new, what moved, and what that does to decisions.

Pure but for `sides`, which reads a set: values in, frozen parts out. It scores nothing; who compares systems under both
sets hands in their values by query.
"""
