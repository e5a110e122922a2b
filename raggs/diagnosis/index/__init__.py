"""`raggs diagnose index`: what approximate indexes lose, and whom they lose it for."""
