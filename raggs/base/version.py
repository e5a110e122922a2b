"""The version of raggs: the one place where it is written. Runs keep it in their manifests."""

__version__ = "0.1.0"
