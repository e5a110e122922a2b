"""Runs on disk: manifest, locks, reasons, audit.

Imports: questions, stages, judges, retrievers, rewriters, indexes, ranking, agreement, llm, health, leaves.
"""
