"""Scores of systems against golden sets: the report, its analyses, its words, and the files it is written to.

May import the golden sets, readers and libraries below; knows neither a configuration nor a terminal.
"""
