"""The sections of the report; see `raggs.reporting` for how one is added."""
