"""The mathematics of `raggs diagnose`: margins, precision, depth and what else is probed, one file a concept.

Pure: ids, texts and numbers in, frozen results out, with the formula and its source in each docstring. Nothing here
knows an embedder, a file or a report; intervals are those of `raggs.stats.comparison`.
"""
