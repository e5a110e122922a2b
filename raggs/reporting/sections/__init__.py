"""The sections of the report; see `raggs.reporting` for how to add one."""
