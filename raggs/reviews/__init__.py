"""What people said of passages: kept for good, one line a judgment, and folded to what holds now.

Imports: leaves.
"""
