"""From a plan to a finished run: decide, run, validate, commit."""
