"""Runs on disk: manifest, locks, reasons, audit.

Imports: questions, stages, judges, indexes, ranking, llm, health, leaves.
"""
