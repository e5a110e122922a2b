"""Runs on disk: manifest, locks, reasons, audit."""
