"""Sweeps: which retrieval stack to ship. Systems from a grid, measured on the same questions, and a choice among them.

Knows what a system is and how parts are shared between systems; scores are those of `raggs.evaluation`, the rules of
choosing those of `raggs.stats`.
"""
