"""Texts cut into passages, with exact places."""
