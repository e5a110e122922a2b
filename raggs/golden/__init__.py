"""Golden sets: queries, pools, grades and orders, read query by query from a run or from files.

base               the interface of a golden set
sources            open what a path refers to: a golden set, or the output of a system
runs, files        golden sets in run directories and in files of other tools
judgments          the grades as columns for measures, and their origin
ceilings           best possible scores of the retrieved lists
places             positions of judged passages in their documents, and projection to another chunking
questions, views   one query with everything known about it, for the terminal, the review page and the report
formats            importers and exporters, one module per family of formats

It imports `raggs.runs` and no higher layer.
"""
