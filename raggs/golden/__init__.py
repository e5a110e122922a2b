"""Golden sets: what was judged, by whom, and in which order it stands; read from a run or from files of others.

A room above `manifests`, which says what a run directory is, and below everything that reads golden sets: exporters,
evaluation, and whoever compares, reviews or reports.
"""
