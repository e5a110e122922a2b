"""What raggs can do, one file a use case: a typed request in, a typed result out. May import every floor but cli.

Imports: evaluation, golden, metrics, leaves.
"""
