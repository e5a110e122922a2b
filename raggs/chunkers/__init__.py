"""Texts cut into passages, with exact places. Pure: text in, slices out.

Imports: nothing.
"""
