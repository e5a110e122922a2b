"""A run on disk: what has to run, how it runs, and what is stored.

plan        decides which stages run, and why: pure functions of locks and hashes
runner      runs stages, validates their records and commits them; `events`: what it reports
partial     finishes a run whose budget is used up, or continues a stopped stage
execution   where the queries of a stage are processed: this process or a dask cluster
manifests   the run store: manifest, locks, reasons, audit, golden.lock
"""
