"""Runs on disk: what was done, from what, and whether the files still say so.

store                     the folder: commits, seal, journal, ledger mark; `models`: the manifest's models
reasons, outdated         why a stage runs again, as values that print as sentences
opened                    a run opened for reading, query by query
audit, audit_pairs        compare files, locks, records and ledger; `derive`: compute artifacts again
explain, together         replay one ranking, or all that share a budget
costs                     sums over the ledger, and the judge gate
goldenlock                golden.lock and signatures
words, orderwords         sentences about the judge's health and about an order
"""
