"""Run directories: store, read, explain and audit runs.

store                           the folder: commits, seal, journal, ledger mark
models                          models of the manifest
reasons, outdated               why a stage runs again, as values that print as messages
open_run                        a run opened for reading, query by query
audit, audit_pairs              compare files, locks, records and ledger
derive                          recompute artifacts
explain, shared_budget_replay   replay one ranking, or all that share a budget
costs                           sums over the ledger, and the judge gate
goldenlock                      golden.lock and signatures
messages, rank_messages         messages about the judge's health and about an order
"""
