"""Runs on disk: decide what has to run, run it, and store the results.

plan        decide which stages run, and why, from locks and hashes
runner      run stages, validate their records and commit them
events      events that the runner reports
partial     finish a run whose budget is used up, or continue a stopped stage
forecast    estimate calls, tokens and cost without calling a model
execution   where the queries of a stage are processed: in this process or on a dask cluster
manifests   the run store: manifest, locks, reasons, audit, golden.lock
"""
