"""Golden sets: queries, pools, grades and orders, read query by query from a run or from files.

base               what a golden set is, wherever it comes from
opened             what a path names: a golden set, or the output of a system
runs, files        golden sets in run directories and in files of other tools
judgments          the grades as columns for measures, and their origin
places             where judged passages are in their documents, and projection to another chunking
questions, views   one query with all that is known of it, for the terminal, the review page and the report
formats            importers and exporters, one module per family of formats

It imports `raggs.runs` and nothing above it.
"""
